import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis } from '../../src/protocol/index.ts'
import { BrokerProcess } from '../support/broker-process.ts'
import { until } from '../support/condition.ts'
import { SurvivingMember, SurvivingProducer } from '../support/crash-workload.ts'
import { connect } from '../support/kafka-connection.ts'
import { initProducerId } from '../support/producing.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const rounds = Number(process.env.ROOKERY_KILL_ROUNDS ?? 5)
/** How long the node is under load, at most, before it is killed. */
const maxLoadMs = 300
/** Within this time a node starts and recovers: it is killed somewhere in it. */
const maxStartMs = 500

test(
  `what was acknowledged survives ${rounds} times kill -9 under load`,
  async () => {
    await using folder = await temporaryFolder()
    // Segments of some hundred batches, so that many kills meet a roll.
    const config = { 'log.index.interval.bytes': 1024 }
    const start = () => BrokerProcess.start({ folder: folder.path, config })
    const producers = [
      ...[0, 1].map((partition) => new SurvivingProducer('idempotent', partition, true)),
      ...[0, 1].map((partition) => new SurvivingProducer('plain', partition, false)),
    ]
    const member = new SurvivingMember('survivors', 'idempotent')
    const producerIds: number[] = []

    const verify = async (client: KafkaClient, topicIds: Record<string, unknown>) => {
      expect(await topicIdsOf(client)).toEqual(topicIds)
      for (const producer of producers) await producer.verify(client)
      await member.verify(client)
      producerIds.push((await initProducerId(client)).producerId)
      expect(new Set(producerIds).size).toBe(producerIds.length) // an id is given to one producer only
    }

    let topicIds: Record<string, unknown> = {}
    for (let round = 0; round < rounds; round++) {
      if (round % 3 === 2) await killWhileStarting(folder.path)
      await using node = await start()
      const client = await connect(node.bootstrapServers)
      if (round === 0) {
        await createTopics(client)
        await member.join(client)
        topicIds = await topicIdsOf(client)
      }
      await verify(client, topicIds)
      client.close()

      const before = producers.map(({ acknowledgedCount }) => acknowledgedCount)
      const committedBefore = member.acknowledgedOffset
      const work = [...producers, member].map(async (each) => each.run(await connect(node.bootstrapServers)))
      const isUnderLoad = () =>
        member.acknowledgedOffset > committedBefore &&
        producers.every(({ acknowledgedCount }, index) => acknowledgedCount > before[index]!)
      await until(isUnderLoad, 'every producer and the member get answers')
      await sleep(Math.random() * maxLoadMs)
      await node.kill()
      await Promise.all(work)
    }

    await using last = await start()
    const client = await connect(last.bootstrapServers)
    await verify(client, topicIds)
    client.close()
  },
  60_000 + rounds * 10_000,
)

async function killWhileStarting(folder: string): Promise<void> {
  await using node = new BrokerProcess({ folder })
  await sleep(Math.random() * maxStartMs)
  await node.kill()
}

async function createTopics(client: KafkaClient): Promise<void> {
  const configs = [{ name: 'internal.segment.bytes', value: `${64 * 1024}` }]
  const topic = { numPartitions: 2, replicationFactor: 1, assignments: [], configs }
  const { topics } = await client.request(apis.CreateTopics, 7, {
    topics: ['idempotent', 'plain'].map((name) => ({ ...topic, name })),
    timeoutMs: 10_000,
  })
  expect(topics.map(({ errorCode }) => errorCode)).toEqual([0, 0])
}

async function topicIdsOf(client: KafkaClient): Promise<Record<string, unknown>> {
  const { topics } = await client.request(apis.Metadata, 12, { topics: null })
  return Object.fromEntries(topics.map(({ name, topicId }) => [name, topicId]))
}
