import type { Uuid } from '../../../src/base/index.ts'
import { apis, encodeRequest } from '../../../src/protocol/index.ts'
import { batchOf, patched } from '../batches.ts'
import type { Recorder } from '../recorder.ts'
import type { Scenarios } from '../scenario.ts'
import { versionsOf } from '../versions.ts'
import { Group } from './groups.ts'

const noMember = 'nobody-00000000-0000-0000-0000-000000000000'
const [topicType, brokerType, loggerType, metricsType, groupType] = [2, 4, 8, 16, 32] as const

/** What is refused for a reason that has little to do with the rest of its API. */
export const refusalScenarios: Scenarios = {
  'batches of transactions without a transactional id': async (broker) => {
    const [topic, other] = [await filled(broker, 'a'), await filled(broker, 'b')]
    const inTransaction = patched(batchOf(1, { producerId: 5, producerEpoch: 0, baseSequence: 0 }), 21, [0, 0x10])
    const damaged = Buffer.from(inTransaction)
    damaged[damaged.length - 1]! ^= 1
    for (const version of versionsOf(apis.Produce)) {
      const data = (name: string, records: Buffer) => ({ name, partitionData: [{ index: 0, records }] })
      const send = (topicData: ReturnType<typeof data>[], acks = -1) =>
        broker.attempt(apis.Produce, version, { acks, timeoutMs: 5000, topicData })
      await send([data(topic, inTransaction)])
      await send([data(topic, inTransaction)], 1)
      await send([data(topic, inTransaction)], 7)
      await send([data(topic, batchOf(1)), data(other, inTransaction)])
      await send([data(broker.named('missing'), inTransaction)])
      await send([data(topic, damaged)])
      await broker.tell(apis.Produce, version, { acks: 0, timeoutMs: 5000, topicData: [data(topic, inTransaction)] })
    }
    await fetch(broker, 11, topic)
    await fetch(broker, 11, other)
  },

  'a fetch of a topic that is packed with zstd, every version': async (broker) => {
    const topic = broker.named('packed')
    await broker.createTopic(topic, { configs: { 'compression.type': 'zstd' } })
    for (const version of versionsOf(apis.Produce, 7))
      await produce(broker, version, topic, batchOf(2, { codec: 'zstd' }))
    for (const version of versionsOf(apis.Fetch)) await fetch(broker, version, topic)
    for (const version of versionsOf(apis.Fetch, 7)) {
      const made = await fetch(broker, version, topic, { sessionId: 0, sessionEpoch: 0 })
      await fetch(broker, version, topic, { sessionId: made?.sessionId ?? 0, sessionEpoch: 1 })
    }
  },

  'replicas that are none': async (broker) => {
    const topic = await filled(broker, 'a')
    for (const replicaId of [0, 1, 9, -2, -3]) {
      for (const version of versionsOf(apis.Fetch)) {
        await fetch(broker, version, topic, { replicaId, replicaState: { replicaId, replicaEpoch: -1 } })
      }
      for (const version of versionsOf(apis.ListOffsets)) {
        for (const timestamp of [-1n, -2n, 0n]) {
          const topics = [{ name: topic, partitions: [{ partitionIndex: 0, timestamp }] }]
          await broker.attempt(apis.ListOffsets, version, { replicaId, topics })
        }
      }
      for (const version of versionsOf(apis.OffsetForLeaderEpoch, 3)) {
        const topics = [{ topic, partitions: [{ partition: 0, currentLeaderEpoch: -1, leaderEpoch: 0 }] }]
        await broker.attempt(apis.OffsetForLeaderEpoch, version, { replicaId, topics })
      }
    }
  },

  'records of internal topics are not deleted': async (broker) => {
    for (const version of versionsOf(apis.DeleteRecords)) {
      for (const name of ['__consumer_offsets', '__transaction_state', '__cluster_metadata']) {
        const topics = [{ name, partitions: [{ partitionIndex: 0, offset: 0 }] }]
        await broker.attempt(apis.DeleteRecords, version, { topics, timeoutMs: 5000 })
      }
    }
  },

  'commits of groups and members that are not there': async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of versionsOf(apis.OffsetCommit)) {
      const commit = (groupId: string, generation: number, memberId: string, groupInstanceId: string | null = null) =>
        broker.attempt(apis.OffsetCommit, version, {
          groupId,
          generationIdOrMemberEpoch: generation,
          memberId,
          groupInstanceId,
          topics: [
            {
              name: topic,
              topicId: broker.topicIds.get(topic) as Uuid,
              partitions: [{ partitionIndex: 0, committedOffset: 1, committedMetadata: '' }],
            },
          ],
        })
      await commit(broker.named(`unknown${version}`), 3, noMember)
      await commit(broker.named(`unknown${version}`), 0, '')
      await commit('', 3, noMember)
      await commit('', -1, '')
      if (version < 7) continue
      await commit(broker.named(`unknown${version}`), 3, noMember, 'one')
      const group = new Group(broker, broker.named(`static${version}`), 5)
      const a = await group.join('a', { groupInstanceId: 'one' })
      if (a === undefined) return
      await group.sync({ ...a, groupInstanceId: 'one' }, [[a.memberId, 'x']])
      await commit(group.id, a.generationId, noMember, 'one')
      await commit(group.id, a.generationId, a.memberId, 'one')
      await commit(group.id, a.generationId + 1, a.memberId, 'one')
      await group.leaveStatic([{ memberId: '', groupInstanceId: 'one' }])
      await commit(group.id, a.generationId, a.memberId, 'one')
    }
  },

  'what is too large for the topic of offsets': async (broker) => {
    const limit = async (value: string | null) => {
      const configs = [{ name: 'max.message.bytes', configOperation: value === null ? 1 : 0, value }]
      const resources = [{ resourceType: topicType, resourceName: '__consumer_offsets', configs }]
      await broker.ask(apis.IncrementalAlterConfigs, 1, { resources, validateOnly: false })
      // Who sees the later topic has seen the change.
      await broker.createTopic(broker.named(`limit-${value}`))
    }
    const topic = broker.named('wide')
    await broker.createTopic(topic, { partitions: 3 })
    const group = new Group(broker, broker.named('group'), 5)
    const member = await group.enter('a')
    await limit('10000')
    await group.sync(member, [[member.memberId, 'x'.repeat(12_000)]])
    await group.heartbeat(member)
    await group.describe()
    const partitions = Array.from({ length: 3 }, (_, partitionIndex) => ({
      partitionIndex,
      committedOffset: 1,
      committedMetadata: 'x'.repeat(4096),
    }))
    for (const version of versionsOf(apis.OffsetCommit)) {
      await broker.attempt(apis.OffsetCommit, version, {
        groupId: broker.named('simple'),
        memberId: '',
        topics: [{ name: topic, topicId: broker.topicIds.get(topic) as Uuid, partitions }],
      })
    }
    await broker.ask(apis.OffsetFetch, 7, { groupId: broker.named('simple'), topics: null })
    await broker.ask(apis.DescribeGroups, 5, { groups: [broker.named('simple')] })
    await limit(null)
  },

  'offsets of topics that a group reads': async (broker) => {
    const [topic, other] = [await filled(broker, 'a'), await filled(broker, 'b')]
    const group = new Group(broker, broker.named('group'), 5)
    const member = await group.enter('a', { metadata: subscription([topic]) })
    await group.sync(member, [[member.memberId, 'x']])
    const partitions = [{ partitionIndex: 0 }, { partitionIndex: 1 }]
    const remove = (...names: string[]) =>
      broker.attempt(apis.OffsetDelete, 0, {
        groupId: group.id,
        topics: names.map((name) => ({ name, partitions })),
      })
    const commit = (name: string) =>
      broker.ask(apis.OffsetCommit, 8, {
        groupId: group.id,
        generationIdOrMemberEpoch: member.generationId,
        memberId: member.memberId,
        topics: [{ name, partitions: [{ partitionIndex: 0, committedOffset: 1, committedMetadata: '' }] }],
      })
    await commit(topic)
    await commit(other)
    await remove(topic)
    await remove(other)
    await remove(topic, other, broker.named('missing'))
    await broker.ask(apis.OffsetFetch, 7, { groupId: group.id, topics: null })
    await group.leave([member.memberId])
    await remove(topic)
  },

  'groups without a name, where that is refused': async (broker) => {
    for (const version of versionsOf(apis.DeleteGroups)) {
      await broker.attempt(apis.DeleteGroups, version, { groupsNames: [''] })
      await broker.attempt(apis.DeleteGroups, version, { groupsNames: [broker.named('never'), ''] })
    }
    for (const version of versionsOf(apis.OffsetFetch)) {
      await broker.attempt(apis.OffsetFetch, version, {
        groupId: '',
        topics: [],
        groups: [{ groupId: '', topics: [] }],
      })
    }
  },

  'requests that have no time': async (broker) => {
    for (const timeoutMs of [0, -1]) {
      for (const version of versionsOf(apis.CreateTopics)) {
        const name = broker.named(`t${version}${timeoutMs}`)
        const topics = [{ name, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }]
        await broker.attempt(apis.CreateTopics, version, { topics, timeoutMs })
        await broker.ask(apis.Metadata, 9, { topics: [{ name }], allowAutoTopicCreation: false })
      }
      const name = broker.named(`grown${timeoutMs}`)
      await broker.createTopic(name)
      for (const version of versionsOf(apis.CreatePartitions)) {
        const topics = [{ name, count: 2, assignments: null }]
        await broker.attempt(apis.CreatePartitions, version, { topics, timeoutMs, validateOnly: false })
      }
      for (const version of versionsOf(apis.DeleteTopics)) {
        const each = broker.named(`gone${version}${timeoutMs}`)
        await broker.createTopic(each)
        const topics = [{ name: each, topicId: 'AAAAAAAAAAAAAAAAAAAAAA' as Uuid }]
        await broker.attempt(apis.DeleteTopics, version, { topicNames: [each], topics, timeoutMs })
        await broker.ask(apis.Metadata, 9, { topics: [{ name: each }, { name }], allowAutoTopicCreation: false })
      }
    }
  },

  'settings of what has none': async (broker) => {
    const topic = await filled(broker, 'a')
    const resources: [number, string][] = [
      [brokerType, ''],
      [loggerType, '1'],
      [loggerType, ''],
      [loggerType, '9'],
      [loggerType, 'x'],
      [metricsType, topic],
      [metricsType, ''],
      [groupType, broker.named('group')],
      [groupType, ''],
      [topicType, ''],
    ]
    for (const [resourceType, resourceName] of resources) {
      for (const version of versionsOf(apis.DescribeConfigs)) {
        const asked = [{ resourceType, resourceName, configurationKeys: null }]
        await broker.attempt(apis.DescribeConfigs, version, { resources: asked })
      }
      for (const [name, value] of [
        ['no.such.key', '1'],
        ['root', 'INFO'],
      ] as const) {
        for (const version of versionsOf(apis.IncrementalAlterConfigs)) {
          const asked = [{ resourceType, resourceName, configs: [{ name, configOperation: 0, value }] }]
          await broker.attempt(apis.IncrementalAlterConfigs, version, { resources: asked, validateOnly: true })
        }
        for (const version of versionsOf(apis.AlterConfigs)) {
          const asked = [{ resourceType, resourceName, configs: [{ name, value }] }]
          await broker.attempt(apis.AlterConfigs, version, { resources: asked, validateOnly: true })
        }
      }
    }
  },

  'ApiVersions of a version that is too new': async (broker) => {
    const body = { clientSoftwareName: 'oracle', clientSoftwareVersion: '1' }
    const frame = Buffer.concat(encodeRequest(apis.ApiVersions.request, 4, { correlationId: 1, clientId: 'x' }, body))
    frame.writeInt16BE(99, 6)
    await broker.raw('ApiVersions v99', frame, { compared: 14, answerOf: apis.ApiVersions })
  },

  'partitions of topics without a name, and a cursor that is none': async (broker) => {
    const topic = await filled(broker, 'a')
    const ask = (cursor: { topicName: string; partitionIndex: number } | null, responsePartitionLimit = 10) =>
      broker.attempt(apis.DescribeTopicPartitions, 0, { topics: [{ name: topic }], responsePartitionLimit, cursor })
    for (const topicName of [topic, '', 'a b'])
      for (const index of [-1, -5, 0, 7]) await ask({ topicName, partitionIndex: index })
    await broker.attempt(apis.DescribeTopicPartitions, 0, {
      topics: [],
      responsePartitionLimit: 10,
      cursor: { topicName: topic, partitionIndex: -3 },
    })
  },

  'quorums that are none': async (broker) => {
    for (const version of versionsOf(apis.DescribeQuorum)) {
      const ask = (...topics: { topicName: string; partitions: { partitionIndex: number }[] }[]) =>
        broker.attempt(apis.DescribeQuorum, version, { topics })
      const quorum = { topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }
      await ask({ ...quorum, partitions: [] })
      await ask({ ...quorum, partitions: [{ partitionIndex: 0 }, { partitionIndex: 1 }] })
      await ask(quorum, { topicName: 'other', partitions: [{ partitionIndex: 0 }] })
      await ask({ topicName: '', partitions: [{ partitionIndex: 0 }] })
      await ask({ ...quorum, partitions: [{ partitionIndex: -1 }] })
    }
  },
}

/** What a consumer says of itself when it joins: the topics that it reads. */
function subscription(topics: readonly string[]): Buffer {
  const int = (bytes: number, value: number) => {
    const buffer = Buffer.alloc(bytes)
    buffer.writeIntBE(value, 0, bytes)
    return buffer
  }
  const names = topics.flatMap((name) => [int(2, name.length), Buffer.from(name)])
  return Buffer.concat([int(2, 0), int(4, topics.length), ...names, int(4, -1)])
}

async function filled(broker: Recorder, text: string): Promise<string> {
  const name = broker.named(text)
  await broker.createTopic(name)
  await produce(broker, 9, name)
  return name
}

function produce(broker: Recorder, version: number, name: string, records = batchOf(2)) {
  const topicData = [{ name, partitionData: [{ index: 0, records }] }]
  return broker.attempt(apis.Produce, version, { acks: -1, timeoutMs: 5000, topicData })
}

function fetch(broker: Recorder, version: number, topic: string, body: object = {}) {
  const partitions = [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1_000_000 }]
  const topics = [{ topic, topicId: broker.topicIds.get(topic) as Uuid, partitions }]
  return broker.attempt(apis.Fetch, version, { maxWaitMs: 0, minBytes: 0, ...body, topics })
}
