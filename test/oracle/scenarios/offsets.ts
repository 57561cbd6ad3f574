import type { Uuid } from '../../../src/base/index.ts'
import { apis } from '../../../src/protocol/index.ts'
import { until } from '../../support/condition.ts'
import type { Recorder } from '../recorder.ts'
import type { Scenarios } from '../scenario.ts'
import { versionsOf } from '../versions.ts'
import { Group } from './groups.ts'

const unknownId = 'c29tZS11bmtub3duLWlkIQ' as Uuid
const noMember = 'nobody-00000000-0000-0000-0000-000000000000'

export const offsetScenarios: Scenarios = {
  'commits of a consumer without a group, every version': async (broker) => {
    const topic = broker.named('t')
    await broker.createTopic(topic, { partitions: 2 })
    for (const version of versionsOf(apis.OffsetCommit)) {
      const group = broker.named(`g${version}`)
      await commit(broker, version, group, topic, { partition: 0, offset: 5 })
      await commit(broker, version, group, topic, { partition: 1, offset: 7, metadata: 'ä note', leaderEpoch: 0 })
      await commit(broker, version, group, topic, { partition: 0, offset: 0, metadata: null })
      await commit(broker, version, group, topic, { partition: 0, offset: -1 })
      await commit(broker, version, group, topic, { partition: 0, offset: -5, leaderEpoch: -7 })
      await commit(broker, version, group, topic, { partition: 1, offset: 1_000_000, leaderEpoch: 99 })
      await commit(broker, version, group, topic, { partition: 2, offset: 1 })
      await commit(broker, version, group, topic, { partition: -1, offset: 1 })
      await commit(broker, version, group, topic, { partition: 0, offset: 1, metadata: 'x'.repeat(4096) })
      await commit(broker, version, group, topic, { partition: 0, offset: 2, metadata: 'x'.repeat(4097) })
      await commit(broker, version, group, broker.named('missing'), { partition: 0, offset: 1 })
      await commit(broker, version, '', topic, { partition: 0, offset: 1 })
      await commit(broker, version, group, topic, { partition: 0, offset: 3, generation: 3 })
      await commit(broker, version, group, topic, { partition: 0, offset: 3, memberId: noMember })
      await commit(broker, version, group, topic, { partition: 0, offset: 3, generation: 3, memberId: noMember })
      await commit(broker, version, broker.named('other'), topic, {
        partition: 0,
        offset: 3,
        generation: 3,
        memberId: noMember,
      })
      if (version >= 7) {
        await commit(broker, version, group, topic, { partition: 0, offset: 3, groupInstanceId: 'nobody' })
        await commit(broker, version, broker.named('other'), topic, {
          partition: 0,
          offset: 3,
          groupInstanceId: 'nobody',
        })
      }
      await broker.ask(apis.OffsetCommit, version, { groupId: group, memberId: '', topics: [] })
      await fetchAll(broker, group)
    }
  },

  'commits of several topics, good and bad': async (broker) => {
    const [a, b] = [broker.named('a'), broker.named('b')]
    await broker.createTopic(a, { partitions: 2 })
    await broker.createTopic(b)
    for (const version of versionsOf(apis.OffsetCommit)) {
      const group = broker.named(`g${version}`)
      const partitions = (...all: number[]) =>
        all.map((partitionIndex) => ({ partitionIndex, committedOffset: 4, committedMetadata: '' }))
      await broker.attempt(apis.OffsetCommit, version, {
        groupId: group,
        memberId: '',
        topics: [
          { name: a, topicId: broker.topicIds.get(a) as Uuid, partitions: partitions(0, 5, 1) },
          { name: broker.named('missing'), topicId: unknownId, partitions: partitions(0) },
          { name: b, topicId: broker.topicIds.get(b) as Uuid, partitions: partitions(0) },
        ],
      })
      await fetchAll(broker, group)
    }
  },

  'commits of members, every version': async (broker) => {
    const topic = broker.named('t')
    await broker.createTopic(topic)
    for (const version of versionsOf(apis.OffsetCommit)) {
      const group = new Group(broker, broker.named(`g${version}`), 5)
      const a = await group.enter('a')
      const member = { partition: 0, generation: a.generationId, memberId: a.memberId }
      await commit(broker, version, group.id, topic, { ...member, offset: 1 })
      await group.sync(a, [[a.memberId, 'x']])
      await commit(broker, version, group.id, topic, { ...member, offset: 2 })
      await commit(broker, version, group.id, topic, { ...member, offset: 3, generation: 99 })
      await commit(broker, version, group.id, topic, { ...member, offset: 3, memberId: noMember })
      await commit(broker, version, group.id, topic, { ...member, offset: 3, memberId: '' })
      await commit(broker, version, group.id, topic, { partition: 0, offset: 3 })
      if (version >= 7)
        await commit(broker, version, group.id, topic, { ...member, offset: 3, groupInstanceId: 'nobody' })
      const joining = group.enter('b')
      await group.untilState('PreparingRebalance')
      await commit(broker, version, group.id, topic, { ...member, offset: 4 })
      const [a2, b] = await Promise.all([group.join('a', { memberId: a.memberId }), joining])
      if (a2 === undefined) return
      await commit(broker, version, group.id, topic, { ...member, offset: 5 })
      await commit(broker, version, group.id, topic, { ...member, offset: 5, generation: a2.generationId })
      await group.leave([a2.memberId])
      await group.leave([b.memberId])
      await commit(broker, version, group.id, topic, { partition: 0, offset: 6 })
      await commit(broker, version, group.id, topic, { ...member, offset: 7 })
      await fetchAll(broker, group.id)
    }
  },

  'OffsetFetch, every version': async (broker) => {
    const topic = broker.named('t')
    const topicId = await broker.createTopic(topic, { partitions: 2 })
    const group = broker.named('g')
    await commit(broker, 8, group, topic, { partition: 1, offset: 7, metadata: 'note', leaderEpoch: 0 })
    const missing = broker.named('missing')
    for (const version of versionsOf(apis.OffsetFetch)) {
      for (const groupId of [group, broker.named('nobody'), '']) {
        const wanted = [
          { name: topic, topicId, partitionIndexes: [0, 1, 2, -1] },
          { name: missing, topicId: unknownId, partitionIndexes: [0] },
        ]
        for (const requireStable of version >= 7 ? [false, true] : [false]) {
          const ask = (topics: typeof wanted | null) =>
            broker.attempt(apis.OffsetFetch, version, { groupId, topics, groups: [{ groupId, topics }], requireStable })
          await ask(wanted)
          await ask([])
          await ask([{ name: topic, topicId, partitionIndexes: [] }])
          await ask([{ name: topic, topicId, partitionIndexes: [1, 1] }])
          if (version >= 2) await ask(null)
        }
      }
      if (version >= 8) {
        await broker.ask(apis.OffsetFetch, version, {
          groups: [
            { groupId: group, topics: null },
            { groupId: broker.named('nobody'), topics: null },
          ],
        })
        await broker.ask(apis.OffsetFetch, version, { groups: [] })
      }
      if (version >= 9) {
        for (const [memberId, memberEpoch] of [
          [noMember, 1],
          [noMember, -1],
          [null, 5],
          ['', -1],
        ] as const) {
          await broker.ask(apis.OffsetFetch, version, {
            groups: [{ groupId: group, memberId, memberEpoch, topics: null }],
          })
        }
      }
    }
  },

  'offsets of a topic that is gone': async (broker) => {
    const topic = broker.named('t')
    await broker.createTopic(topic)
    const group = broker.named('g')
    await commit(broker, 8, group, topic, { partition: 0, offset: 7 })
    await broker.ask(apis.DeleteTopics, 5, { topicNames: [topic], timeoutMs: 10_000 })
    await broker.untilGone(topic)
    const offsets = { groupId: group, topics: [{ name: topic, partitionIndexes: [0] }] }
    const areGone = async () => {
      const { topics } = await broker.unrecorded(apis.OffsetFetch, 7, offsets)
      return topics[0]?.partitions[0]?.committedOffset === -1
    }
    await until(areGone, 'the offsets are gone') // both forget them some time after the topic
    await broker.ask(apis.OffsetFetch, 7, offsets)
    await commit(broker, 8, group, topic, { partition: 0, offset: 8 })
  },
}

interface CommitOptions {
  readonly partition: number
  readonly offset: number
  readonly metadata?: string | null
  readonly leaderEpoch?: number
  readonly generation?: number
  readonly memberId?: string
  readonly groupInstanceId?: string | null
}

function commit(broker: Recorder, version: number, groupId: string, topic: string, options: CommitOptions) {
  const { partition, offset, metadata = '', leaderEpoch = -1, generation = -1, memberId = '' } = options
  const { groupInstanceId = null } = options
  return broker.attempt(apis.OffsetCommit, version, {
    groupId,
    generationIdOrMemberEpoch: generation,
    memberId,
    groupInstanceId,
    topics: [
      {
        name: topic,
        topicId: broker.topicIds.get(topic) ?? unknownId,
        partitions: [
          {
            partitionIndex: partition,
            committedOffset: offset,
            committedLeaderEpoch: leaderEpoch,
            committedMetadata: metadata,
          },
        ],
      },
    ],
  })
}

function fetchAll(broker: Recorder, groupId: string) {
  return broker.ask(apis.OffsetFetch, 7, { groupId, topics: null })
}
