import { apis } from '../../../src/protocol/index.ts'
import { batchOf } from '../batches.ts'
import type { Recorder } from '../recorder.ts'
import type { Scenarios } from '../scenario.ts'
import { versionsOf } from '../versions.ts'
import { Group } from './groups.ts'

export const describingScenarios: Scenarios = {
  'ends of leader epochs': async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of versionsOf(apis.OffsetForLeaderEpoch)) {
      const ask = (name: string, partition: number, currentLeaderEpoch: number, leaderEpoch: number) =>
        broker.attempt(apis.OffsetForLeaderEpoch, version, {
          topics: [{ topic: name, partitions: [{ partition, currentLeaderEpoch, leaderEpoch }] }],
        })
      for (const current of [-1, 0, 1]) for (const epoch of [-1, 0, 1, 5]) await ask(topic, 0, current, epoch)
      for (const partition of [1, -1]) await ask(topic, partition, -1, 0)
      await ask(broker.named('missing'), 0, -1, 0)
      await ask('', 0, -1, 0)
      await broker.ask(apis.OffsetForLeaderEpoch, version, { topics: [] })
    }
  },

  'partitions of topics, in pieces': async (broker) => {
    const [b, a] = [broker.named('b'), broker.named('a')]
    await broker.createTopic(b, { partitions: 3 })
    await broker.createTopic(a, { partitions: 2 })
    const missing = broker.named('aa')
    const ask = (
      names: readonly string[],
      cursor: { topicName: string; partitionIndex: number } | null = null,
      responsePartitionLimit = 2000,
    ) => {
      const topics = names.map((name) => ({ name }))
      return broker.attempt(apis.DescribeTopicPartitions, 0, { topics, responsePartitionLimit, cursor })
    }
    for (const names of [[b, a], [a, a], [missing], ['a b'], [''], [b, missing, a]]) {
      for (const limit of [-1, 0, 1, 2, 3, 4, 5, 2000, 2147483647]) await ask(names, null, limit)
    }
    for (const topicName of [a, missing, b, broker.named('c')]) {
      for (const partitionIndex of [-1, 0, 1, 2, 3, 9]) {
        for (const limit of [1, 2, 100]) await ask([b, missing, a], { topicName, partitionIndex }, limit)
        await ask([a], { topicName, partitionIndex })
      }
    }
  },

  'producers of partitions': async (broker) => {
    const topic = await filled(broker, 'a')
    const ask = (name: string, partitionIndexes: number[]) =>
      broker.attempt(apis.DescribeProducers, 0, { topics: [{ name, partitionIndexes }] })
    await ask(topic, [0])
    await ask(topic, [1, -1])
    await ask(broker.named('missing'), [0])
    await ask('a b', [0])
    await ask(topic, [])
    await broker.ask(apis.DescribeProducers, 0, { topics: [] })
  },

  'folders of partitions': async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of versionsOf(apis.DescribeLogDirs)) {
      for (const partitions of [[0], [0, 0], [1], []]) {
        await broker.attempt(apis.DescribeLogDirs, version, { topics: [{ topic, partitions }] })
      }
      const topics = [{ topic: broker.named('missing'), partitions: [0] }]
      await broker.attempt(apis.DescribeLogDirs, version, { topics })
      await broker.attempt(apis.DescribeLogDirs, version, { topics: [] })
    }
  },

  'quorums of other topics': async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of versionsOf(apis.DescribeQuorum)) {
      for (const [topicName, partitionIndex] of [
        [topic, 0],
        ['__cluster_metadata', 1],
      ] as const) {
        const topics = [{ topicName, partitions: [{ partitionIndex }] }]
        await broker.attempt(apis.DescribeQuorum, version, { topics })
      }
      await broker.attempt(apis.DescribeQuorum, version, { topics: [] })
    }
  },

  'resources that have settings': async (broker) => {
    await broker.attempt(apis.ListConfigResources, 0, {})
    for (const resourceTypes of [[4], [8], [4, 8, 4], [16], [32], [99], [4, 99], [0], [-1]]) {
      await broker.attempt(apis.ListConfigResources, 1, { resourceTypes })
    }
  },

  'groups that are deleted': async (broker) => {
    for (const version of versionsOf(apis.DeleteGroups, 0, 2)) {
      const group = new Group(broker, broker.named(`group${version}`), 5)
      const remove = (...groupsNames: string[]) => broker.attempt(apis.DeleteGroups, version, { groupsNames })
      await remove(group.id)
      await remove(broker.named('never'), '', broker.named('never'))
      await remove()
      const member = await group.enter('a')
      await remove(group.id)
      await group.sync(member, [[member.memberId, 'x']])
      await remove(group.id, broker.named('never'))
      await group.leave([member.memberId])
      await remove(group.id)
      await remove(group.id)
    }
  },

  'offsets that are deleted': async (broker) => {
    const topic = await filled(broker, 'a')
    const groupId = broker.named('group')
    const remove = (id: string, name: string, ...partitions: number[]) =>
      broker.attempt(apis.OffsetDelete, 0, {
        groupId: id,
        topics: [{ name, partitions: partitions.map((partitionIndex) => ({ partitionIndex })) }],
      })
    const committed = () => broker.ask(apis.OffsetFetch, 5, { groupId, topics: null })
    await remove(groupId, topic, 0)
    await remove('', topic, 0)
    await broker.ask(apis.OffsetCommit, 7, {
      groupId,
      memberId: '',
      topics: [{ name: topic, partitions: [{ partitionIndex: 0, committedOffset: 3, committedMetadata: 'm' }] }],
    })
    await remove(groupId, topic, 1, -1)
    await remove(groupId, broker.named('missing'), 0)
    await remove(groupId, topic)
    await committed()
    await remove(groupId, topic, 0, 1)
    await committed()
    await remove(groupId, topic, 0)
    const group = new Group(broker, broker.named('other'), 5)
    const member = await group.enter('a', { protocolType: 'connect' })
    await group.sync({ ...member, protocolType: 'connect' }, [[member.memberId, 'x']])
    await remove(group.id, topic, 0)
  },
}

async function filled(broker: Recorder, text: string): Promise<string> {
  const name = broker.named(text)
  await broker.createTopic(name)
  const topicData = [{ name, partitionData: [{ index: 0, records: batchOf(2) }] }]
  await broker.ask(apis.Produce, 9, { acks: -1, timeoutMs: 5000, topicData })
  return name
}
