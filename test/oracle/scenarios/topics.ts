import type { Uuid } from '../../../src/base/index.ts'
import { zeroUuid } from '../../../src/base/index.ts'
import { apis } from '../../../src/protocol/index.ts'
import type { Recorder } from '../recorder.ts'
import type { Scenarios } from '../scenario.ts'
import { versionsOf } from '../versions.ts'

interface Wanted {
  readonly name: string
  readonly numPartitions?: number
  readonly replicationFactor?: number
  readonly assignments?: { partitionIndex: number; brokerIds: number[] }[]
  readonly configs?: { name: string; value: string | null }[]
}

export const topicScenarios: Scenarios = {
  'topics are created, every version': async (broker) => {
    for (const version of versionsOf(apis.CreateTopics)) {
      const [plain, several, spread, configured] = ['plain', 'several', 'spread', 'configured'].map((each) =>
        broker.named(`${each}-${version}`),
      ) as [string, string, string, string]
      await create(broker, version, [{ name: plain }])
      await create(broker, version, [{ name: plain }])
      await create(broker, version, [
        { name: several, numPartitions: 4 },
        { name: spread, numPartitions: -1, replicationFactor: -1 },
      ])
      await create(broker, version, [
        {
          name: configured,
          configs: [
            { name: 'retention.ms', value: '1000' },
            { name: 'cleanup.policy', value: 'compact,delete' },
          ],
        },
      ])
      await broker.untilServed(several, 4)
      for (const name of [spread, configured]) await broker.untilServed(name)
      await broker.ask(apis.Metadata, 9, { topics: [{ name: several }, { name: spread }, { name: configured }] })
      await remove(broker, Math.min(version, 5), [plain, several, spread, configured])
    }
  },

  'topics that are only validated': async (broker) => {
    for (const version of versionsOf(apis.CreateTopics)) {
      const name = broker.named('valid')
      await create(broker, version, [{ name, numPartitions: 2 }], true)
      await create(broker, version, [{ name, numPartitions: 0 }], true)
      await create(broker, version, [{ name: 'a b' }], true)
      await broker.ask(apis.Metadata, 9, { topics: [{ name }], allowAutoTopicCreation: false })
    }
  },

  'topics that can not be created, every version': async (broker) => {
    const name = broker.named('bad')
    const config = (key: string, value: string | null): Wanted => ({ name, configs: [{ name: key, value }] })
    const wanted: Wanted[] = [
      { name, numPartitions: 0 },
      { name, numPartitions: -2 },
      { name, replicationFactor: 0 },
      { name, replicationFactor: -2 },
      { name, replicationFactor: 2 },
      { name, numPartitions: -1, replicationFactor: 5 },
      { name: '' },
      { name: '.' },
      { name: '..' },
      { name: 'a b' },
      { name: 'x'.repeat(250) },
      { name: '__consumer_offsets' },
      { name: '__cluster_metadata' },
      config('no.such.key', '1'),
      config('retention.ms', 'soon'),
      config('retention.ms', '-2'),
      config('retention.ms', null),
      config('cleanup.policy', 'burn'),
      config('cleanup.policy', ''),
      config('cleanup.policy', 'delete,delete'),
      config('cleanup.policy', 'delete , compact'),
      config('max.message.bytes', '-1'),
      config('segment.bytes', '10'),
      config('min.insync.replicas', '0'),
      config('min.insync.replicas', '2'),
      config('compression.type', 'rar'),
      config('message.timestamp.type', 'Sometimes'),
      config('preallocate', 'perhaps'),
      config('preallocate', 'TRUE'),
      config('retention.ms', ' 1000 '),
      config('retention.bytes', '1.5'),
      config('min.cleanable.dirty.ratio', '1.5'),
      config('max.compaction.lag.ms', '0'),
      config('message.format.version', '2.8'),
      config('message.downconversion.enable', 'true'),
      config('message.timestamp.difference.max.ms', '1'),
      config('compression.gzip.level', '10'),
      config('compression.zstd.level', '23'),
      config('compression.lz4.level', '0'),
      config('remote.storage.enable', 'true'),
      config('follower.replication.throttled.replicas', 'nonsense'),
      config('flush.messages', '0'),
      config('segment.jitter.ms', '-1'),
      config('local.retention.ms', '5'),
      config('local.retention.bytes', '-3'),
      config('min.compaction.lag.ms', '100'),
      {
        name,
        configs: [
          { name: 'min.compaction.lag.ms', value: '100' },
          { name: 'max.compaction.lag.ms', value: '50' },
        ],
      },
      {
        name,
        configs: [
          { name: 'retention.ms', value: '1' },
          { name: 'retention.ms', value: '2' },
        ],
      },
      { name, numPartitions: -1, replicationFactor: -1, assignments: [{ partitionIndex: 0, brokerIds: [] }] },
      { name, numPartitions: -1, replicationFactor: -1, assignments: [{ partitionIndex: 0, brokerIds: [1, 1] }] },
      { name, numPartitions: -1, replicationFactor: -1, assignments: [{ partitionIndex: 0, brokerIds: [9] }] },
      { name, numPartitions: -1, replicationFactor: -1, assignments: [{ partitionIndex: 1, brokerIds: [1] }] },
      { name, numPartitions: -1, replicationFactor: -1, assignments: [{ partitionIndex: 0, brokerIds: [-1] }] },
      {
        name,
        numPartitions: -1,
        replicationFactor: -1,
        assignments: [
          { partitionIndex: 0, brokerIds: [1] },
          { partitionIndex: 0, brokerIds: [1] },
        ],
      },
      { name, numPartitions: 1, replicationFactor: -1, assignments: [{ partitionIndex: 0, brokerIds: [1] }] },
      { name, numPartitions: -1, replicationFactor: 1, assignments: [{ partitionIndex: 0, brokerIds: [1] }] },
      { name, numPartitions: -1, replicationFactor: -1, assignments: [{ partitionIndex: 0, brokerIds: [1] }] },
    ]
    for (const version of versionsOf(apis.CreateTopics)) {
      for (const topic of wanted) await create(broker, version, [topic], true)
    }
  },

  assignments: async (broker) => {
    const name = broker.named('assigned')
    const assignments = [1, 0].map((partitionIndex) => ({ partitionIndex, brokerIds: [1] }))
    await create(broker, 7, [{ name, numPartitions: -1, replicationFactor: -1, assignments }])
    await broker.untilServed(name, 2)
    await broker.ask(apis.Metadata, 9, { topics: [{ name }] })
  },

  'a name twice in one request, and names that collide': async (broker) => {
    const name = broker.named('twice')
    for (const version of versionsOf(apis.CreateTopics)) {
      const other = broker.named(`other-${version}`)
      await create(broker, version, [{ name }, { name: other }, { name, numPartitions: 2 }])
      await create(broker, version, [])
    }
    await create(broker, 7, [{ name: broker.named('c.d') }])
    await create(broker, 7, [{ name: broker.named('c_d') }])
    await create(broker, 7, [{ name: broker.named('e.f') }, { name: broker.named('e_f') }])
  },

  'topics are deleted, every version': async (broker) => {
    for (const version of versionsOf(apis.DeleteTopics)) {
      const name = broker.named(`gone-${version}`)
      const topicId = await broker.createTopic(name)
      const missing = broker.named('missing')
      if (version < 6) {
        await remove(broker, version, [missing, name])
        await broker.untilGone(name)
        await remove(broker, version, [name])
        await remove(broker, version, [name, name])
        await remove(broker, version, [''])
        await remove(broker, version, ['a b'])
        await remove(broker, version, [])
        continue
      }
      const unknownId = 'c29tZS11bmtub3duLWlkIQ' as Uuid
      await removeById(broker, version, [
        { name: missing, topicId: zeroUuid },
        { name: null, topicId: unknownId },
      ])
      await removeById(broker, version, [{ name, topicId }])
      await removeById(broker, version, [{ name: null, topicId: zeroUuid }])
      await removeById(broker, version, [
        { name, topicId: zeroUuid },
        { name, topicId: zeroUuid },
      ])
      await removeById(broker, version, [
        { name: null, topicId },
        { name: null, topicId },
      ])
      await removeById(broker, version, [
        { name: null, topicId },
        { name, topicId: zeroUuid },
      ])
      await removeById(broker, version, [])
      await removeById(broker, version, [{ name: null, topicId }])
      await broker.untilGone(name)
      await removeById(broker, version, [{ name: null, topicId }])
      const again = broker.named('again')
      await broker.createTopic(again)
      await removeById(broker, version, [{ name: again, topicId: zeroUuid }])
    }
  },

  'a topic made again is another topic': async (broker) => {
    const name = broker.named('phoenix')
    await broker.createTopic(name)
    await broker.ask(apis.Metadata, 12, { topics: [{ name }] })
    await remove(broker, 5, [name])
    await broker.untilGone(name)
    await broker.createTopic(name, { partitions: 2 })
    await broker.ask(apis.Metadata, 12, { topics: [{ name }] })
  },
}

function create(broker: Recorder, version: number, topics: readonly Wanted[], validateOnly = false) {
  const all = topics.map((topic) => ({
    numPartitions: 1,
    replicationFactor: 1,
    assignments: [],
    configs: [],
    ...topic,
  }))
  // -1 for the numbers came with version 4.
  const body = { topics: all, timeoutMs: 10_000, validateOnly }
  return broker.attempt(apis.CreateTopics, version, body)
}

function remove(broker: Recorder, version: number, topicNames: readonly string[]) {
  return broker.attempt(apis.DeleteTopics, version, { topicNames, timeoutMs: 10_000 })
}

function removeById(broker: Recorder, version: number, topics: readonly { name: string | null; topicId: Uuid }[]) {
  return broker.attempt(apis.DeleteTopics, version, { topics, timeoutMs: 10_000 })
}
