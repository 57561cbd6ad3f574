import { expect, test } from 'vitest'
import { startBroker } from '../../src/index.ts'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis } from '../../src/protocol/index.ts'
import { connect, readPartition } from '../support/kafka-connection.ts'
import { produceBatch } from '../support/producing.ts'
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
  await using broker = await startBroker({ topics: ['orders'] })
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
    await using broker = await startBroker({ storage: folder.path, topics: ['orders'] })
    const client = await connect(broker.bootstrapServers)
    for (let i = 0; i < 5; i++) await produceBatch(client, 'orders', 0, value(`${i}`))
    expect(await deleteRecords(client, 'orders', 6)).toEqual({ lowWatermark: -1, errorCode: 1 })
    expect(await deleteRecords(client, 'orders', 3)).toEqual({ lowWatermark: 3, errorCode: 0 })
    expect(await fetchError(client, 'orders', 2)).toBe(1)
    expect((await readPartition(client, 'orders', 0, 3)).map(({ baseOffset }) => baseOffset)).toEqual([3, 4])
    client.close()
  }
  await using broker = await startBroker({ storage: folder.path })
  const client = await connect(broker.bootstrapServers)
  expect(await fetchError(client, 'orders', 2)).toBe(1)
  expect(await fetchError(client, 'orders', 3)).toBe(0)
  expect(await deleteRecords(client, 'orders', -1)).toEqual({ lowWatermark: 5, errorCode: 0 })
  expect(await produceBatch(client, 'orders', 0, value('next'))).toBe(5)
  expect((await readPartition(client, 'orders', 0, 5)).map(({ records }) => `${records[0]?.value}`)).toEqual(['next'])
  client.close()
})
