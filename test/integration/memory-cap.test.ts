import { once } from 'node:events'
import { connect as connectSocket, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import type { KafkaClient } from '../../src/network/index.ts'
import { crc32c } from '../../src/protocol/crc32c.ts'
import { apis, BatchView, buildBatch, ErrorCode, encodeRequest } from '../../src/protocol/index.ts'
import { BrokerProcess } from '../support/broker-process.ts'
import { until } from '../support/condition.ts'
import { connect } from '../support/kafka-connection.ts'
import { produceBatch } from '../support/producing.ts'
import { peakResidentBytes } from '../support/programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const mebibyte = 1024 * 1024
const requestMaxBytes = 16 * mebibyte
const queuedMaxBytes = 32 * mebibyte
const config = { 'socket.request.max.bytes': requestMaxBytes, 'queued.max.request.bytes': queuedMaxBytes }
/** What a node takes without load, its caps for requests and for responses, and room for what is not collected yet. */
const maxResidentBytes = 640 * mebibyte
/** Partitions that are made and deleted, so many times, take some 400 MB together, and 10 MB at a time. */
const churnPartitions = 2000
const churnRounds = 40
const maxChurnedBytes = 340 * mebibyte

test('memory stays under its cap, and a neighbour is served, whatever is claimed, held back or packed', async () => {
  await using folder = await temporaryFolder()
  await using node = await BrokerProcess.start({ folder: folder.path, config })
  const sockets: Socket[] = []
  const open = async () => {
    const socket = connectSocket(node.port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    return socket
  }
  const client = await connect(node.bootstrapServers, 60_000)
  await client.request(apis.Metadata, 9, { topics: [{ name: 'steady' }, { name: 'large' }] })
  await createCompacted(client)
  const neighbour = startNeighbour(client)

  // Frames of up to 2 GiB that are only announced.
  const announced = await Promise.all(Array.from({ length: 40 }, open))
  announced.forEach((socket, index) => {
    const length = Buffer.alloc(4)
    length.writeInt32BE([2 ** 31 - 1, -1, -(2 ** 31), requestMaxBytes + 1][index % 4]!)
    socket.write(length)
  })
  await Promise.all(announced.map((socket) => once(socket.resume(), 'close')))

  // Frames that are allowed, of which all but the end is sent: together many times the cap.
  const part = Buffer.alloc(requestMaxBytes)
  part.writeInt32BE(requestMaxBytes)
  for (const socket of await Promise.all(Array.from({ length: 80 }, open))) socket.write(part)
  await neighbour.rounds(3)
  for (const socket of sockets.splice(0)) socket.destroy()

  // Batches that unpack to five hundred times their size, where every record must have a key and so is looked at.
  const bomb = bombOf(200 * mebibyte)
  const refusals = Array.from({ length: 8 }, async () => {
    const each = await connect(node.bootstrapServers, 60_000)
    const error = await sendBatch(each, 'compacted', bomb)
    each.close()
    return error
  })
  await neighbour.rounds(3)
  for (const errorCode of await Promise.all(refusals)) {
    expect([ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE]).toContain(errorCode)
  }

  // Answers that nobody reads: each connection asks for several times 10 MiB and takes none of it.
  for (let i = 0; i < 12; i++) {
    await produceBatch(client, 'large', 0, { records: [{ timestamp: Date.now(), value: Buffer.alloc(900_000, i) }] })
  }
  for (const socket of await Promise.all(Array.from({ length: 16 }, open))) {
    socket.pause()
    for (let correlationId = 0; correlationId < 5; correlationId++) socket.write(fetchFrame(correlationId))
  }
  // Records are taken and read meanwhile, by who holds no answers.
  const writer = await connect(node.bootstrapServers, 60_000)
  for (let i = 0; i < 20; i++) await produceBatch(writer, 'large', 0, { records: [{ timestamp: Date.now() }] })
  writer.close()
  await neighbour.rounds(3)
  for (const socket of sockets) socket.destroy()

  await neighbour.stop()
  client.close()
  expect(await peakResidentBytes(node.program.pid)).toBeLessThan(maxResidentBytes)
  expect((await node.stop()).exitCode).toBe(0)
}, 240_000)

test('memory that is let go is collected before it is a multiple of what is in use', async () => {
  await using folder = await temporaryFolder()
  await using node = await BrokerProcess.start({ folder: folder.path, config })
  const client = await connect(node.bootstrapServers, 60_000)
  // What a topic's partitions hold lives for long enough to be old when they are deleted.
  for (let round = 0; round < churnRounds; round++) {
    const name = `churn-${round}`
    const topic = { name, numPartitions: churnPartitions, replicationFactor: 1, assignments: [], configs: [] }
    const created = await client.request(apis.CreateTopics, 7, { topics: [topic], timeoutMs: 30_000 })
    expect(created.topics[0]!.errorCode).toBe(ErrorCode.NONE)
    const deleted = await client.request(apis.DeleteTopics, 5, { topicNames: [name], timeoutMs: 30_000 })
    expect(deleted.responses[0]!.errorCode).toBe(ErrorCode.NONE)
  }
  client.close()
  expect(await peakResidentBytes(node.program.pid)).toBeLessThan(maxChurnedBytes)
})

/** Writes and reads all the time; every answer must be without an error. */
function startNeighbour(client: KafkaClient) {
  let isStopped = false
  let count = 0
  const run = async () => {
    while (!isStopped) {
      const offset = await produceBatch(client, 'steady', 0, {
        records: [{ timestamp: Date.now(), value: Buffer.from('v') }],
      })
      const { responses } = await client.request(apis.Fetch, 11, {
        maxWaitMs: 1000,
        minBytes: 1,
        topics: [{ topic: 'steady', partitions: [{ partition: 0, fetchOffset: offset, partitionMaxBytes: 1000 }] }],
        forgottenTopicsData: [],
      })
      expect(responses[0]!.partitions[0]!).toMatchObject({ errorCode: 0, highWatermark: offset + 1 })
      count++
    }
  }
  const running = run()
  let fault: unknown
  running.catch((error: unknown) => {
    fault = error
  })
  return {
    rounds: async (more: number) => {
      const enough = count + more
      await until(() => count >= enough || fault !== undefined, `${more} more rounds of the neighbour`)
      if (fault !== undefined) throw fault
    },
    stop: async () => {
      isStopped = true
      await running
    },
  }
}

async function createCompacted(client: KafkaClient): Promise<void> {
  const { topics } = await client.request(apis.CreateTopics, 7, {
    topics: [
      {
        name: 'compacted',
        numPartitions: 1,
        replicationFactor: 1,
        assignments: [],
        configs: [{ name: 'cleanup.policy', value: 'compact' }],
      },
    ],
    timeoutMs: 10_000,
  })
  expect(topics[0]?.errorCode).toBe(ErrorCode.NONE)
}

/** A batch with a right header whose records are zeros, `bytes` of them. */
function bombOf(bytes: number): Buffer {
  const header = buildBatch({ records: [{ timestamp: Date.now(), key: Buffer.from('k') }], codec: 'gzip' }).subarray(
    0,
    61,
  )
  const batch = Buffer.concat([header, gzipSync(Buffer.alloc(bytes))])
  batch.writeInt32BE(batch.length - 12, 8)
  batch.writeUInt32BE(crc32c(batch.subarray(21)), 17)
  expect(new BatchView(batch).sizeBytes).toBe(batch.length)
  return batch
}

async function sendBatch(client: KafkaClient, topic: string, records: Buffer): Promise<number> {
  const { responses } = await client.request(apis.Produce, 9, {
    acks: -1,
    timeoutMs: 30_000,
    topicData: [{ name: topic, partitionData: [{ index: 0, records }] }],
  })
  return responses[0]!.partitionResponses[0]!.errorCode
}

function fetchFrame(correlationId: number): Buffer {
  const ask = { partition: 0, fetchOffset: 0, partitionMaxBytes: 50 * mebibyte }
  return Buffer.concat(
    encodeRequest(
      apis.Fetch.request,
      11,
      { correlationId, clientId: 'greedy' },
      {
        maxWaitMs: 0,
        minBytes: 0,
        maxBytes: 50 * mebibyte,
        topics: [{ topic: 'large', partitions: [ask] }],
        forgottenTopicsData: [],
      },
    ),
  )
}
