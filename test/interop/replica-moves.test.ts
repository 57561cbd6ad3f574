import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apis } from '../../src/protocol/index.ts'
import { ClusterProcesses } from '../support/cluster-processes.ts'
import { until } from '../support/condition.ts'
import { readPartition } from '../support/kafka-connection.ts'
import { describeWithPeer } from '../support/peers.ts'
import { produceBatch } from '../support/producing.ts'
import { ToolHost } from './java/tool-host.ts'

/** A look is a call of a tool; one node hears of a change a moment after another. */
const patient = { timeout: 60_000, interval: 100 }

/** kafka-reassign-partitions.sh with throttles and folders, against three nodes with two folders each. The tests build on each other. */
describeWithPeer('kafka-compiled', "Kafka's tool for reassignments, with throttles and folders", (peer) => {
  let cluster: ClusterProcesses
  let host: ToolHost
  let folder: string
  const dirOf = (node: number, name: string) => join(cluster.folder, `${name}-${node}`)
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rookery-replica-moves-'))
    host = new ToolHost(peer)
    cluster = await ClusterProcesses.prepare()
    for (const id of cluster.ids) cluster.launch(id, { 'log.dirs': `${dirOf(id, 'x')},${dirOf(id, 'y')}` })
    await Promise.all(cluster.ids.map((id) => cluster.node(id).whenServing()))
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
    await cluster[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  const run = async (tool: string, ...args: string[]): Promise<string> => {
    const own = ['--bootstrap-server', cluster.bootstrapServers, ...args]
    const { exitCode, stdout, output } = await host.run(`org.apache.kafka.tools.${tool}`, own)
    expect(exitCode, output).toBe(0)
    return stdout
  }
  const reassign = (...args: string[]) => run('reassign.ReassignPartitionsCommand', ...args)
  const plan = async (name: string, ...partitions: readonly object[]): Promise<string> => {
    await writeFile(join(folder, name), JSON.stringify({ version: 1, partitions }))
    return join(folder, name)
  }
  const configsOf = (type: string, name: string) =>
    run('ConfigCommand', '--describe', '--entity-type', type, '--entity-name', name)
  const untilDone = async (path: string): Promise<string> => {
    let last = ''
    await until(async () => {
      last = await reassign('--verify', '--reassignment-json-file', path)
      return !/still in progress/.test(last)
    }, 'the reassignment is done')
    return last
  }
  const foldersOf = async (topic: string): Promise<string[]> => {
    const found: string[] = []
    for (const id of cluster.ids) {
      const { results } = await cluster.with(id, (client) => client.request(apis.DescribeLogDirs, 4, { topics: null }))
      for (const { logDir, topics } of results) {
        for (const { partitionIndex, isFutureKey } of topics.find(({ name }) => name === topic)?.partitions ?? []) {
          found.push(`${partitionIndex} ${logDir}${isFutureKey ? ' future' : ''}`)
        }
      }
    }
    return found.sort()
  }

  test('a throttled move sets the throttles, and --verify takes them back', async () => {
    await run('TopicCommand', '--create', '--topic', 'orders', '--replica-assignment', '1')
    await cluster.with(1, async (client) => {
      for (let i = 0; i < 40; i++) {
        const records = [{ key: null, value: Buffer.alloc(50_000, i), timestamp: Date.now() }]
        await produceBatch(client, 'orders', 0, { records })
      }
    })
    const moves = await plan('moves.json', { topic: 'orders', partition: 0, replicas: [2] })
    const startedMs = Date.now()
    const begun = await reassign('--execute', '--throttle', '400000', '--reassignment-json-file', moves)
    expect(begun).toContain('The inter-broker throttle limit was set to 400000 B/s')
    const throttled = () => configsOf('topics', 'orders')
    await expect.poll(throttled, patient).toMatch(/leader\.replication\.throttled\.replicas=0:1/)
    await expect.poll(throttled, patient).toMatch(/follower\.replication\.throttled\.replicas=0:2/)
    await expect.poll(() => configsOf('brokers', '2'), patient).toContain('follower.replication.throttled.rate=400000')
    const verified = await untilDone(moves)
    // 2 MB at 400 kB a second, but for what goes at once at the beginning.
    expect(Date.now() - startedMs).toBeGreaterThan(1500)
    expect(verified).toMatch(/Clearing (broker|topic)-level throttles/)
    await expect.poll(throttled, patient).not.toContain('throttled.replicas=0:')
    await expect.poll(() => configsOf('brokers', '2'), patient).not.toContain('throttled.rate=400000')
  })

  test('replicas move between folders of a broker, and to a folder of another', async () => {
    // Where it was, it goes a moment after the move.
    await expect.poll(() => foldersOf('orders'), patient).toHaveLength(1)
    const [there = ''] = await foldersOf('orders')
    const other = there.endsWith(dirOf(2, 'x')) ? dirOf(2, 'y') : dirOf(2, 'x')
    const inside = await plan('inside.json', { topic: 'orders', partition: 0, replicas: [2], log_dirs: [other] })
    const rate = ['--replica-alter-log-dirs-throttle', '50000000']
    await reassign('--execute', ...rate, '--reassignment-json-file', inside)
    expect(await untilDone(inside)).toMatch(/Reassignment of replica orders-0-2 completed successfully/)
    await expect.poll(() => foldersOf('orders'), patient).toEqual([`0 ${other}`])
    const across = await plan('across.json', {
      topic: 'orders',
      partition: 0,
      replicas: [3, 2],
      log_dirs: [dirOf(3, 'y'), 'any'],
    })
    await reassign('--execute', '--timeout', '20000', '--reassignment-json-file', across)
    await untilDone(across)
    await expect.poll(() => foldersOf('orders'), patient).toEqual([`0 ${other}`, `0 ${dirOf(3, 'y')}`].sort())
    const batches = await cluster.with(3, (client) => readPartition(client, 'orders', 0))
    expect(batches.flatMap(({ records }) => records)).toHaveLength(40)
  })
})
