import { expect, test } from 'vitest'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis, buildBatch } from '../../src/protocol/index.ts'
import { until } from '../support/condition.ts'
import { connect, readPartition } from '../support/kafka-connection.ts'
import { startLoggedBroker } from '../support/logged-broker.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Legal names that are easily taken for a partition's folder, for another topic, or for a folder that is to go. */
const names = ['a', 'a-0', 'a-1-0', 'a.0', 'A', 'b-delete', 'b-stray', 'c.delete', '...', '-', '0', 'd'.repeat(249)]

async function create(client: KafkaClient, ...created: readonly string[]): Promise<number[]> {
  const topics = created.map((name) => ({ name, numPartitions: 2, replicationFactor: 1, assignments: [], configs: [] }))
  const answer = await client.request(apis.CreateTopics, 5, { topics })
  return answer.topics.map(({ errorCode }) => errorCode)
}

async function remove(client: KafkaClient, ...topicNames: readonly string[]): Promise<number[]> {
  const answer = await client.request(apis.DeleteTopics, 5, { topicNames, timeoutMs: 10_000 })
  return answer.responses.map(({ errorCode }) => errorCode)
}

async function produce(client: KafkaClient, name: string, text: string) {
  const records = buildBatch({ records: [{ timestamp: Date.now(), value: Buffer.from(text) }] })
  const topicData = [{ name, partitionData: [{ index: 0, records }] }]
  const answer = await client.request(apis.Produce, 9, { acks: -1, timeoutMs: 5000, topicData })
  return answer.responses[0]!.partitionResponses[0]!
}

async function textsOf(client: KafkaClient, name: string): Promise<string[]> {
  const batches = await readPartition(client, name, 0)
  return batches.flatMap(({ records }) => records.map(({ value }) => value!.toString()))
}

test('topics with awkward names keep their records apart, over a restart and over deletions', async () => {
  await using folder = await temporaryFolder()
  {
    await using hosted = await startLoggedBroker({ storage: folder.path })
    const client = await connect(hosted.bootstrapServers)
    expect(await create(client, ...names)).toEqual(names.map(() => 0))
    for (const name of names) expect((await produce(client, name, `in ${name}`)).errorCode).toBe(0)
    client.close()
  }
  const gone = ['a', 'b-delete', 'd'.repeat(249)]
  {
    await using hosted = await startLoggedBroker({ storage: folder.path })
    const client = await connect(hosted.bootstrapServers)
    for (const name of names) expect(await textsOf(client, name)).toEqual([`in ${name}`])
    expect(await remove(client, ...gone)).toEqual([0, 0, 0])
    // At once, while the old folders may be there still.
    expect(await create(client, ...gone)).toEqual([0, 0, 0])
    for (const name of gone) expect(await produce(client, name, 'anew')).toMatchObject({ errorCode: 0, baseOffset: 0 })
    client.close()
  }
  await using hosted = await startLoggedBroker({ storage: folder.path })
  const client = await connect(hosted.bootstrapServers)
  for (const name of names) expect(await textsOf(client, name)).toEqual([gone.includes(name) ? 'anew' : `in ${name}`])
  client.close()
})

test.each(['memory', 'temporary'])(
  'a topic that is deleted and created anew under load has only its own records (%s)',
  async (storage) => {
    await using hosted = await startLoggedBroker({ storage, topics: ['t'] })
    const admin = await connect(hosted.bootstrapServers)
    const producers = await Promise.all(Array.from({ length: 4 }, () => connect(hosted.bootstrapServers)))
    let generation = 0
    let isOver = false
    let acknowledged = 0
    const codes = new Set<number>()
    const running = producers.map(async (producer) => {
      while (!isOver) {
        const answers = await Promise.all(Array.from({ length: 5 }, () => produce(producer, 't', String(generation))))
        for (const { errorCode } of answers) {
          codes.add(errorCode)
          if (errorCode === 0) acknowledged++
        }
      }
    })
    for (generation = 1; generation <= 20; generation++) {
      expect(await remove(admin, 't')).toEqual([0])
      expect(await create(admin, 't')).toEqual([0])
      const before = acknowledged
      await until(() => acknowledged > before + 20, 'records are taken again')
    }
    generation--
    isOver = true
    await Promise.all(running)
    // A topic that is gone is unknown, and who waited for its acknowledgement is sent elsewhere: clients ask again on both.
    expect([...codes].filter((code) => ![0, 3, 6].includes(code))).toEqual([])
    const texts = await textsOf(admin, 't')
    expect(new Set(texts.filter((text) => text !== '19' && text !== '20'))).toEqual(new Set())
    admin.close()
    for (const producer of producers) producer.close()
  },
)
