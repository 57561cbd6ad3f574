import { readdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis, ErrorCode } from '../../src/protocol/index.ts'
import { BrokerProcess } from '../support/broker-process.ts'
import { ClusterProcesses } from '../support/cluster-processes.ts'
import { until } from '../support/condition.ts'
import { connect, readPartition } from '../support/kafka-connection.ts'
import { ProduceError, produceBatch } from '../support/producing.ts'
import { commitOffset, committedOffset } from '../support/raw-group.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const partitions = [0, 1, 2, 3]
/** Of two partitions, each in a directory of its own. */
const groups = ['g0', 'g1']
const { NONE, KAFKA_STORAGE_ERROR } = ErrorCode

/** Puts a file in the place of a log directory; what is given puts the directory back. */
async function takeAway(directory: string): Promise<() => Promise<void>> {
  await rename(directory, `${directory}.away`)
  await writeFile(directory, 'not a folder')
  return async () => {
    await rename(directory, `${directory}.file`)
    await rename(`${directory}.away`, directory)
  }
}

describe('a node without one of its log directories', () => {
  const config = (folder: string, dirs: readonly string[]) => ({
    'log.dirs': dirs.join(),
    'metadata.log.dir': folder,
    'offsets.topic.num.partitions': 4,
  })
  /** Records in every partition, and an offset of every group. */
  const filled = async (folder: string, dirs: readonly string[]) => {
    await using node = await BrokerProcess.start({ folder, config: config(folder, dirs) })
    const client = await connect(node.bootstrapServers)
    await createTopic(client, 'orders', partitions.length)
    for (const partition of partitions) expect(await produce(client, 'orders', partition)).toBe(NONE)
    for (const group of groups) await until(() => commits(client, group, 7), `${group} has a coordinator`)
    client.close()
    await node.stop()
  }

  test('serves the rest and what is new, and has everything when it is back', async () => {
    await using parent = await temporaryFolder()
    const [folder, other] = [join(parent.path, 'a'), join(parent.path, 'b')]
    const dirs = [folder, other]
    await filled(folder, dirs)
    const inOther = new Set(await readdir(other))
    const isThere = (name: string) => !inOther.has(name)
    expect(partitions.filter((partition) => isThere(`orders-${partition}`))).toHaveLength(2)
    expect([...inOther].filter((name) => name.startsWith('__consumer_offsets-'))).toHaveLength(1)
    const putBack = await takeAway(other)
    const served = new Set<string>()
    for (const run of [1, 2]) {
      await using node = await BrokerProcess.start({ folder, config: config(folder, dirs) })
      const client = await connect(node.bootstrapServers)
      for (const partition of partitions) {
        const expected = isThere(`orders-${partition}`) ? NONE : KAFKA_STORAGE_ERROR
        expect(await produce(client, 'orders', partition)).toBe(expected)
      }
      for (const group of groups) if (await commits(client, group, 7 + run)) served.add(group)
      await createTopic(client, `new${run}`, 2)
      for (const partition of [0, 1]) expect(await produce(client, `new${run}`, partition)).toBe(NONE)
      const faults = node
        .logLines()
        .flatMap(({ partition, error, level }) => (partition && level === 'error' ? [`${error}`] : []))
      expect(faults).toHaveLength(4)
      for (const fault of faults) {
        const words =
          /^Partition \S+-\d may be in a log directory that cannot be opened, (\S+): .+ taken out of log\.dirs$/
        expect(words.exec(fault)?.[1]).toBe(other)
      }
      client.close()
      if (run === 1) await node.kill()
      else await node.stop()
    }
    expect(served.size).toBe(1)
    await putBack()
    await using node = await BrokerProcess.start({ folder, config: config(folder, dirs) })
    const client = await connect(node.bootstrapServers)
    for (const partition of partitions) {
      const count = isThere(`orders-${partition}`) ? 3 : 1
      expect(await readPartition(client, 'orders', partition)).toHaveLength(count)
      expect(await produce(client, 'orders', partition)).toBe(NONE)
    }
    for (const name of ['new1', 'new2']) {
      for (const partition of [0, 1]) expect(await readPartition(client, name, partition)).toHaveLength(1)
    }
    for (const group of groups) expect(await committedOffset(client, group, 'orders')).toBe(served.has(group) ? 9 : 7)
    client.close()
    await node.stop()
  })

  test('that is taken out of log.dirs starts its partitions empty, and says so', async () => {
    await using parent = await temporaryFolder()
    const [folder, other] = [join(parent.path, 'a'), join(parent.path, 'b')]
    await filled(folder, [folder, other])
    const inOther = new Set(await readdir(other))
    for (const run of [1, 2]) {
      await using node = await BrokerProcess.start({ folder, config: config(folder, [folder]) })
      const client = await connect(node.bootstrapServers)
      for (const partition of partitions) {
        const produced = async () => (await produce(client, 'orders', partition)) === NONE
        await until(produced, `orders-${partition} has a leader`)
        const before = inOther.has(`orders-${partition}`) ? 0 : 1
        expect(await readPartition(client, 'orders', partition)).toHaveLength(before + run)
      }
      for (const group of groups) await until(() => commits(client, group, 8), `${group} has a coordinator`)
      const empty = node.logLines().filter(({ msg }) => `${msg}`.startsWith('partition starts empty'))
      expect(empty).toHaveLength(run === 1 ? 4 : 0)
      client.close()
      await node.stop()
    }
  })
})

test('a broker fetches no replica anew that is in a missing log directory', async () => {
  await using cluster = await ClusterProcesses.prepare({ config: { 'offsets.topic.num.partitions': 1 } })
  const folder = join(cluster.folder, 'node-3')
  const other = join(cluster.folder, 'node-3-b')
  const launch = () => cluster.launch(3, { 'log.dirs': `${folder},${other}`, 'metadata.log.dir': folder })
  await Promise.all([cluster.launch(1), cluster.launch(2), launch()].map((node) => node.whenServing()))
  await cluster.with(1, async (client) => {
    await createTopic(client, 'orders', partitions.length, 3)
    await createTopic(client, 'alone', 2, [[3], [3]])
  })
  /** Uses a leader that node 1 knows of, when that has heard of it too. */
  const withLeader = async <T>({ topic, partition, leader }: View, use: (client: KafkaClient) => Promise<T>) =>
    await cluster.with(leader, async (client) => {
      await until(async () => (await leads(client, topic, partition)) === NONE, `${leader} leads ${topic}-${partition}`)
      return await use(client)
    })
  const fill = async () => {
    const refused: string[] = []
    for (const topic of ['orders', 'alone']) {
      for (const view of await viewOf(cluster, topic)) {
        const { partition, leader } = view
        if (leader === -1) refused.push(`${topic}-${partition}`)
        else expect(await withLeader(view, (client) => produce(client, topic, partition))).toBe(NONE)
      }
    }
    return refused
  }
  await cluster.untilInSync(['orders'])
  expect(await fill()).toEqual([])
  await cluster.untilInSync(['orders'])
  const inOther = new Set((await readdir(other)).filter((name) => /-\d$/.test(name)))
  expect(inOther.size).toBe(3)
  await cluster.node(3).stop()
  const putBack = await takeAway(other)
  await launch().whenServing()
  const offline = async () => {
    const views = await Promise.all(['orders', 'alone'].map((topic) => viewOf(cluster, topic)))
    return views.flat().filter(({ isr, offline, leader }) => leader === -1 || !isr.includes(3) || offline.includes(3))
  }
  await until(async () => (await offline()).length === 3, 'all but those in the missing directory are in sync')
  const isMissing = ({ topic, partition }: View) => inOther.has(`${topic}-${partition}`)
  expect((await offline()).every(isMissing)).toBe(true)
  expect(await fill()).toEqual(['alone-0', 'alone-1'].filter((name) => inOther.has(name)))
  expect((await readdir(folder)).filter((name) => inOther.has(name))).toEqual([])
  await cluster.node(3).stop()
  await putBack()
  await launch().whenServing()
  await until(async () => (await offline()).length === 0, 'all are in sync again')
  for (const topic of ['orders', 'alone']) {
    for (const view of await viewOf(cluster, topic)) {
      const { partition } = view
      const count = topic === 'alone' && inOther.has(`alone-${partition}`) ? 1 : 2
      const batches = await withLeader(view, (client) => readPartition(client, topic, partition))
      expect(batches).toHaveLength(count)
    }
  }
})

interface View {
  readonly topic: string
  readonly partition: number
  readonly leader: number
  readonly isr: readonly number[]
  readonly offline: readonly number[]
}

function viewOf(cluster: ClusterProcesses, topic: string): Promise<View[]> {
  return cluster.with(1, async (client) => {
    const { topics } = await client.request(apis.Metadata, 9, { topics: [{ name: topic }] })
    return topics[0]!.partitions
      .map(({ partitionIndex, leaderId, isrNodes, offlineReplicas }) => ({
        topic,
        partition: partitionIndex,
        leader: leaderId,
        isr: isrNodes,
        offline: offlineReplicas,
      }))
      .sort((left, right) => left.partition - right.partition)
  })
}

async function createTopic(
  client: KafkaClient,
  name: string,
  numPartitions: number,
  replicas: number | readonly (readonly number[])[] = 1,
): Promise<void> {
  const assignments =
    typeof replicas === 'number' ? [] : replicas.map((brokerIds, partitionIndex) => ({ partitionIndex, brokerIds }))
  const [count, replicationFactor] = typeof replicas === 'number' ? [numPartitions, replicas] : [-1, -1]
  const { topics } = await client.request(apis.CreateTopics, 7, {
    topics: [{ name, numPartitions: count, replicationFactor, assignments, configs: [] }],
    timeoutMs: 10_000,
  })
  expect(topics[0]?.errorCode).toBe(NONE)
}

/** The error code. */
async function produce(client: KafkaClient, topic: string, partition: number): Promise<number> {
  try {
    const record = { timestamp: Date.now(), key: null, value: Buffer.from('v'), headers: [] }
    await produceBatch(client, topic, partition, { records: [record] })
    return NONE
  } catch (error) {
    if (error instanceof ProduceError) return error.errorCode
    throw error
  }
}

/** The error code of a question that only the leader answers. */
async function leads(client: KafkaClient, name: string, partitionIndex: number): Promise<number> {
  const partitions = [{ partitionIndex, timestamp: -1n }]
  const { topics } = await client.request(apis.ListOffsets, 5, { replicaId: -1, topics: [{ name, partitions }] })
  return topics[0]!.partitions[0]!.errorCode
}

/** Whether the group has a coordinator. */
async function commits(client: KafkaClient, group: string, offset: number): Promise<boolean> {
  try {
    await commitOffset(client, group, 'orders', offset)
    return true
  } catch {
    return false
  }
}
