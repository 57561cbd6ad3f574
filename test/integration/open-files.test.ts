import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { connect as connectSocket, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis, buildBatch, ErrorCode } from '../../src/protocol/index.ts'
import { BrokerProcess } from '../support/broker-process.ts'
import { until } from '../support/condition.ts'
import { connect, readPartition } from '../support/kafka-connection.ts'
import { cpuSeconds, startProgram } from '../support/programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** A node of its own process that may open few files, with more partitions and clients than that. Linux only: looks into /proc. */
const limit = 1024
const partitions = 5000
const perTopic = 1000

const sockets: Socket[] = []

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

describe('under ulimit -n 1024', () => {
  test('5,000 partitions and as many clients as go over it are served or refused, and nothing is lost', async () => {
    await using folder = await temporaryFolder()
    const options = { folder: folder.path, maxOpenFiles: limit }
    const node = await BrokerProcess.start(options)
    try {
      expect(node.logLines()).toContainEqual(
        expect.objectContaining({ level: 'warn', msg: 'few files may be open at a time', limit }),
      )
      const client = await connect(node.bootstrapServers, 120_000)
      const topics = Array.from({ length: partitions / perTopic }, (_, i) => `topic-${i}`)
      for (const name of topics) await create(client, name, perTopic)
      // A record in each partition, a thousand in one request; unsynced for one topic.
      for (const name of topics) await writeEach(client, name, 0)
      expect(await openFiles(node.program.pid)).toBeLessThan(limit)

      const before = await connectAll(node.port, 1200)
      await until(() => before.filter((socket) => socket.destroyed).length > 500, 'those above the limit are closed')
      const kept = before.filter((socket) => !socket.destroyed)
      expect(kept.length).toBeGreaterThan(300)
      expect(await openFiles(node.program.pid)).toBeLessThan(limit)
      // Who is connected is served while the node is full.
      for (const name of topics) await writeEach(client, name, 1)
      for (const socket of kept) socket.destroy()
      await until(async () => (await connectAll(node.port, 1))[0]?.destroyed === false, 'others get in again')
      for (const name of topics) {
        for (const partition of [0, 499, 999]) {
          expect(await readPartition(client, name, partition)).toHaveLength(2)
        }
      }
      client.close()
      expect(node.logLines().filter(({ level }) => level === 'error')).toEqual([])
      expect(node.logLines().filter(({ msg }) => msg === 'connection refused')).not.toHaveLength(0)
      expect((await node.stop()).exitCode).toBe(0)
    } finally {
      await node.kill()
    }
    await using again = await BrokerProcess.start(options)
    const reader = await connect(again.bootstrapServers, 120_000)
    for (const partition of [0, 500, 999]) expect(await readPartition(reader, 'topic-4', partition)).toHaveLength(2)
    reader.close()
  }, 300_000)

  test('a node that may open almost nothing is refused with what to do', async () => {
    await using folder = await temporaryFolder()
    const node = new BrokerProcess({ folder: folder.path, maxOpenFiles: 128 })
    const { exitCode, stderr } = await node.program.ended()
    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/128 files and sockets.*ulimit -n 65536/s)
  })
})

test('a process whose files were taken by others refuses connections, and serves again when they are back', async () => {
  await using folder = await temporaryFolder()
  await using node = await BrokerProcess.start({ folder: folder.path, maxOpenFiles: limit })
  const client = await connect(node.bootstrapServers, 60_000)
  await create(client, 'orders', 3)
  await writeEach(client, 'orders', 0, 3)
  // The limit of a running process, as prlimit sets it: below what it has open already.
  const open = await openFiles(node.program.pid)
  await setLimit(node.program.pid, open)
  const cpuBefore = await cpuSeconds(node.program.pid)
  const beganMs = performance.now()
  const refused = await connectAll(node.port, 20)
  const areClosed = () => refused.filter((socket) => socket.destroyed).length > 10
  await until(areClosed, 'connections that cannot be accepted are closed')
  // Files that are open go on being used.
  await writeEach(client, 'orders', 1, 3)
  const seconds = (performance.now() - beganMs) / 1000
  expect((await cpuSeconds(node.program.pid)) - cpuBefore).toBeLessThan(Math.max(1, seconds * 0.8))
  await setLimit(node.program.pid, limit)
  const other = await connect(node.bootstrapServers)
  for (let partition = 0; partition < 3; partition++) {
    expect(await readPartition(other, 'orders', partition)).toHaveLength(2)
  }
  other.close()
  client.close()
})

async function create(client: KafkaClient, name: string, numPartitions: number): Promise<void> {
  const { topics } = await client.request(apis.CreateTopics, 7, {
    topics: [{ name, numPartitions, replicationFactor: 1, assignments: [], configs: [] }],
    timeoutMs: 60_000,
  })
  expect(topics[0]?.errorCode).toBe(ErrorCode.NONE)
}

/** One record for each partition of the topic in one request; every one must be taken. */
async function writeEach(client: KafkaClient, name: string, offset: number, count = perTopic): Promise<void> {
  const partitionData = Array.from({ length: count }, (_, index) => ({
    index,
    records: buildBatch({ records: [{ timestamp: Date.now(), value: Buffer.from(`${name}-${index}-${offset}`) }] }),
  }))
  const { responses } = await client.request(apis.Produce, 9, {
    acks: -1,
    timeoutMs: 60_000,
    topicData: [{ name, partitionData }],
  })
  for (const answer of responses[0]!.partitionResponses) {
    expect(answer).toMatchObject({ errorCode: ErrorCode.NONE, baseOffset: offset })
  }
}

async function connectAll(port: number, count: number): Promise<Socket[]> {
  const opened = Array.from({ length: count }, () => {
    const socket = connectSocket(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.resume()
    sockets.push(socket)
    return socket
  })
  await Promise.all(opened.map((socket) => once(socket, 'connect').catch(() => undefined)))
  // A refusal comes after the connection was made.
  await new Promise((resolve) => setTimeout(resolve, 50))
  return opened
}

async function openFiles(pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length
}

/** The soft limit, which may be raised again. */
async function setLimit(pid: number, count: number): Promise<void> {
  const { exitCode, output } = await startProgram('prlimit', [`--nofile=${count}:`, '--pid', String(pid)]).ended()
  expect(exitCode, output).toBe(0)
}
