import type { Uuid } from '../../../src/base/index.ts'
import { apis } from '../../../src/protocol/index.ts'
import { batchOf } from '../batches.ts'
import type { Recorder } from '../recorder.ts'
import type { Scenario } from '../scenario.ts'
import { versionsOf } from '../versions.ts'

/** What is asked before and after both brokers were stopped and started again, with other settings. */
export const restartSettings = { 'delete.topic.enable': false, 'auto.create.topics.enable': false } as const

const producer = { producerId: 70_000, producerEpoch: 1 }

export const beforeRestart: Scenario = async (broker) => {
  const topic = broker.named('kept')
  await broker.createTopic(topic, { partitions: 2, configs: { 'max.message.bytes': '123456' } })
  for (let baseSequence = 0; baseSequence < 7; baseSequence++) await produce(broker, 9, baseSequence)
  const cut = { name: topic, partitions: [{ partitionIndex: 0, offset: 2 }] }
  await broker.ask(apis.DeleteRecords, 2, { topics: [cut], timeoutMs: 5000 })
  await commit(broker, 4)
  await fetch(broker, 12, { sessionId: 0, sessionEpoch: 0 })
}

export const afterRestart: Scenario = async (broker) => {
  const topic = broker.named('kept')
  await broker.untilServed(topic, 2)
  await broker.ask(apis.Metadata, 12, { topics: [{ name: topic }] })
  for (const version of versionsOf(apis.ListOffsets)) {
    for (const currentLeaderEpoch of [-1, 0, 999]) {
      for (const timestamp of [-1n, -2n, -3n, 0n]) {
        const partitions = [{ partitionIndex: 0, timestamp, currentLeaderEpoch }]
        await broker.attempt(apis.ListOffsets, version, { replicaId: -1, topics: [{ name: topic, partitions }] })
      }
    }
  }
  for (const version of versionsOf(apis.Fetch)) {
    for (const currentLeaderEpoch of [-1, 0, 999]) await fetch(broker, version, { currentLeaderEpoch })
    for (const lastFetchedEpoch of [-1, 0, 999]) await fetch(broker, version, { lastFetchedEpoch })
    for (const fetchOffset of [0, 1, 2]) await fetch(broker, version, { fetchOffset })
  }
  for (const version of versionsOf(apis.OffsetForLeaderEpoch)) {
    for (const currentLeaderEpoch of [-1, 0, 999]) {
      for (const leaderEpoch of [-1, 0]) {
        const partitions = [{ partition: 0, currentLeaderEpoch, leaderEpoch }]
        await broker.attempt(apis.OffsetForLeaderEpoch, version, { topics: [{ topic, partitions }] })
      }
    }
  }
  await fetch(broker, 12, { sessionId: 12345, sessionEpoch: 1 })
  for (const baseSequence of [6, 5, 2, 1, 0, 9, 7, 7]) await produce(broker, 9, baseSequence)
  for (const version of versionsOf(apis.OffsetFetch)) {
    const groupId = broker.named('group')
    const topics = [{ name: topic, topicId: broker.topicIds.get(topic) as Uuid, partitionIndexes: [0, 1] }]
    await broker.ask(apis.OffsetFetch, version, { groupId, topics, groups: [{ groupId, topics }] })
  }
  await commit(broker, 9)
  await broker.ask(apis.DescribeGroups, 5, { groups: [broker.named('group')] })
  await broker.ask(apis.DescribeProducers, 0, { topics: [{ name: topic, partitionIndexes: [0, 1] }] })
  const resources = [{ resourceType: 2, resourceName: topic, configurationKeys: ['max.message.bytes'] }]
  await broker.ask(apis.DescribeConfigs, 4, { resources })
  await broker.ask(apis.Metadata, 9, { topics: [{ name: broker.named('missing') }], allowAutoTopicCreation: true })
  for (const version of versionsOf(apis.DeleteTopics)) {
    for (const name of [topic, broker.named('missing')]) {
      const topics = [{ name, topicId: 'AAAAAAAAAAAAAAAAAAAAAA' as Uuid }]
      await broker.attempt(apis.DeleteTopics, version, { topicNames: [name], topics, timeoutMs: 5000 })
    }
    await broker.attempt(apis.DeleteTopics, version, { topicNames: [], topics: [], timeoutMs: 5000 })
  }
  await broker.createTopic(broker.named('new'))
}

function produce(broker: Recorder, version: number, baseSequence: number) {
  const records = batchOf(1, { ...producer, baseSequence })
  const topicData = [{ name: broker.named('kept'), partitionData: [{ index: 0, records }] }]
  return broker.attempt(apis.Produce, version, { acks: -1, timeoutMs: 5000, topicData })
}

function commit(broker: Recorder, committedOffset: number) {
  const partitions = [{ partitionIndex: 0, committedOffset, committedLeaderEpoch: 0, committedMetadata: 'note' }]
  const topics = [{ name: broker.named('kept'), partitions }]
  return broker.ask(apis.OffsetCommit, 8, { groupId: broker.named('group'), memberId: '', topics })
}

interface Wanted {
  readonly sessionId?: number
  readonly sessionEpoch?: number
  readonly fetchOffset?: number
  readonly currentLeaderEpoch?: number
  readonly lastFetchedEpoch?: number
}

function fetch(broker: Recorder, version: number, { sessionId = 0, sessionEpoch = -1, ...wanted }: Wanted) {
  const topic = broker.named('kept')
  const partitions = [{ partition: 0, fetchOffset: 2, partitionMaxBytes: 1_000_000, ...wanted }]
  const topics = [{ topic, topicId: broker.topicIds.get(topic) as Uuid, partitions }]
  return broker.attempt(apis.Fetch, version, { maxWaitMs: 0, minBytes: 0, sessionId, sessionEpoch, topics })
}
