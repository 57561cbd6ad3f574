import { expect, test } from 'vitest'
import { startBroker } from '../../src/index.ts'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis } from '../../src/protocol/index.ts'
import { connect, readPartition } from '../support/kafka-connection.ts'
import { ProduceError, produceBatch } from '../support/producing.ts'
import { recordsOfAnyAge } from '../support/records-of-any-age.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** What changes of topics and settings do to a running node: the other tests of them see answers only. */

const value = (text: string) => ({ records: [{ timestamp: 1, value: Buffer.from(text) }] })

async function deleteRecords(client: KafkaClient, topic: string, offset: number) {
  const topics = [{ name: topic, partitions: [{ partitionIndex: 0, offset }] }]
  const answer = await client.request(apis.DeleteRecords, 2, { topics, timeoutMs: 5000 })
  const { lowWatermark, errorCode } = answer.topics[0]!.partitions[0]!
  return { lowWatermark, errorCode }
}

async function fetchError(client: KafkaClient, topic: string, fetchOffset: number): Promise<number> {
  const partitions = [{ partition: 0, fetchOffset, partitionMaxBytes: 1000 }]
  const answer = await client.request(apis.Fetch, 12, { maxWaitMs: 0, minBytes: 0, topics: [{ topic, partitions }] })
  return answer.responses[0]!.partitions[0]!.errorCode
}

test('a new partition takes records as soon as it is answered', async () => {
  await using broker = await startBroker({ topics: ['orders'], config: recordsOfAnyAge })
  const client = await connect(broker.bootstrapServers)
  const topics = [{ name: 'orders', count: 4, assignments: null }]
  const { results } = await client.request(apis.CreatePartitions, 3, { topics, timeoutMs: 5000, validateOnly: false })
  expect(results).toMatchObject([{ name: 'orders', errorCode: 0 }])
  expect(await produceBatch(client, 'orders', 3, value('a'))).toBe(0)
  expect(await readPartition(client, 'orders', 3)).toHaveLength(1)
  client.close()
})

test('deleted records stay deleted when the node starts again, and new ones go on after them', async () => {
  await using folder = await temporaryFolder()
  {
    await using broker = await startBroker({ storage: folder.path, topics: ['orders'], config: recordsOfAnyAge })
    const client = await connect(broker.bootstrapServers)
    for (let i = 0; i < 5; i++) await produceBatch(client, 'orders', 0, value(`${i}`))
    expect(await deleteRecords(client, 'orders', 6)).toEqual({ lowWatermark: -1, errorCode: 1 })
    expect(await deleteRecords(client, 'orders', 3)).toEqual({ lowWatermark: 3, errorCode: 0 })
    expect(await fetchError(client, 'orders', 2)).toBe(1)
    expect((await readPartition(client, 'orders', 0, 3)).map(({ baseOffset }) => baseOffset)).toEqual([3, 4])
    client.close()
  }
  await using broker = await startBroker({ storage: folder.path, config: recordsOfAnyAge })
  const client = await connect(broker.bootstrapServers)
  expect(await fetchError(client, 'orders', 2)).toBe(1)
  expect(await fetchError(client, 'orders', 3)).toBe(0)
  expect(await deleteRecords(client, 'orders', -1)).toEqual({ lowWatermark: 5, errorCode: 0 })
  expect(await produceBatch(client, 'orders', 0, value('next'))).toBe(5)
  expect((await readPartition(client, 'orders', 0, 5)).map(({ records }) => `${records[0]?.value}`)).toEqual(['next'])
  client.close()
})

async function alter(
  client: KafkaClient,
  resourceType: number,
  resourceName: string,
  configs: Record<string, string | null>,
) {
  const changes = Object.entries(configs).map(([name, value]) => ({
    name,
    value,
    configOperation: value === null ? 1 : 0,
  }))
  const resources = [{ resourceType, resourceName, configs: changes }]
  const { responses } = await client.request(apis.IncrementalAlterConfigs, 1, { resources, validateOnly: false })
  return responses[0]!.errorCode
}

/** The error code of a write of `bytes`; 0 when it is taken. */
async function produceError(client: KafkaClient, topic: string, bytes: number): Promise<number> {
  try {
    await produceBatch(client, topic, 0, value('x'.repeat(bytes)))
    return 0
  } catch (error) {
    if (error instanceof ProduceError) return error.errorCode
    throw error
  }
}

async function configOf(client: KafkaClient, resourceType: number, resourceName: string, key: string) {
  const resources = [{ resourceType, resourceName, configurationKeys: [key] }]
  const { results } = await client.request(apis.DescribeConfigs, 4, { resources })
  const [found] = results[0]!.configs
  return found === undefined ? undefined : [found.value, found.configSource]
}

test('settings count from the answer on: those of a topic over those of its broker over those of all brokers', async () => {
  await using broker = await startBroker({ topics: ['orders'], config: recordsOfAnyAge })
  const client = await connect(broker.bootstrapServers)
  expect(await produceError(client, 'orders', 500)).toBe(0)
  expect(await alter(client, 4, '', { 'message.max.bytes': '300' })).toBe(0)
  expect(await produceError(client, 'orders', 500)).toBe(10)
  expect(await configOf(client, 2, 'orders', 'max.message.bytes')).toEqual(['300', 3])
  expect(await alter(client, 4, '1', { 'message.max.bytes': '700' })).toBe(0)
  expect(await produceError(client, 'orders', 500)).toBe(0)
  expect(await configOf(client, 4, '1', 'message.max.bytes')).toEqual(['700', 2])
  expect(await alter(client, 2, 'orders', { 'max.message.bytes': '400' })).toBe(0)
  expect(await produceError(client, 'orders', 500)).toBe(10)
  expect(await configOf(client, 2, 'orders', 'max.message.bytes')).toEqual(['400', 1])
  expect(await alter(client, 2, 'orders', { 'max.message.bytes': null })).toBe(0)
  expect(await produceError(client, 'orders', 500)).toBe(0)
  const later = { name: 'later', numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }
  await client.request(apis.CreateTopics, 7, { topics: [later] })
  expect(await produceError(client, 'later', 900)).toBe(10)
  client.close()
})

test('a compacted topic wants keys, and takes no deletion of records, as soon as it is compacted', async () => {
  await using broker = await startBroker({ topics: ['orders'], config: recordsOfAnyAge })
  const client = await connect(broker.bootstrapServers)
  expect(await produceError(client, 'orders', 1)).toBe(0)
  expect(await alter(client, 2, 'orders', { 'cleanup.policy': 'compact' })).toBe(0)
  expect(await produceError(client, 'orders', 1)).toBe(87)
  expect(await deleteRecords(client, 'orders', -1)).toEqual({ lowWatermark: -1, errorCode: 44 })
  client.close()
})

test('settings are there after a start, and max.connections is one of them', async () => {
  await using folder = await temporaryFolder()
  {
    await using broker = await startBroker({ storage: folder.path, topics: ['orders'], config: recordsOfAnyAge })
    const client = await connect(broker.bootstrapServers)
    expect(await alter(client, 4, '', { 'log.retention.ms': '5000', 'max.connections': '1' })).toBe(0)
    expect(await alter(client, 2, 'orders', { 'segment.bytes': '2000000' })).toBe(0)
    const refused = await connect(broker.bootstrapServers)
    await expect(configOf(refused, 4, '', 'max.connections')).rejects.toThrow()
    client.close()
  }
  await using broker = await startBroker({ storage: folder.path, config: recordsOfAnyAge })
  const client = await connect(broker.bootstrapServers)
  expect(await configOf(client, 2, 'orders', 'retention.ms')).toEqual(['5000', 3])
  expect(await configOf(client, 2, 'orders', 'segment.bytes')).toEqual(['2000000', 1])
  expect(await configOf(client, 4, '1', 'max.connections')).toEqual(['1', 3])
  client.close()
})
