import { expect, test } from 'vitest'
import {
  type BrokerEpoch,
  type BrokerId,
  type LeaderEpoch,
  type PartitionEpoch,
  type Uuid,
  zeroUuid,
} from '../../../src/base/index.ts'
import type { TopicConfig } from '../../../src/config/index.ts'
import type { BrokerImage, MetadataDelta, PartitionImage, TopicImage } from '../../../src/metadata/index.ts'
import type { Platform } from '../../../src/platform/index.ts'
import {
  type AskForIsrs,
  type FetchRequest,
  type IsrAnswer,
  type IsrChangeRequest,
  type ReplicaLogs,
  ReplicaManager,
  ReplicationQuotas,
} from '../../../src/replication/index.ts'
import { Metrics, silentLogger } from '../../../src/telemetry/index.ts'
import { turn } from '../../support/condition.ts'
import { FakeLog } from '../../support/fake-log.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { deltaOn, imageOfTopics, settledReplicas } from '../../support/partition-image.ts'

const self = 1 as BrokerId
const ordersId = 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid

const orders: TopicImage = {
  name: 'orders',
  topicId: ordersId,
  partitions: [
    {
      partition: 0,
      replicas: [self],
      isr: [self],
      leader: self,
      leaderEpoch: 0 as LeaderEpoch,
      partitionEpoch: 0 as PartitionEpoch,
      ...settledReplicas,
    },
  ],
}

const image = imageOfTopics([orders])

const delta = (changes: Partial<MetadataDelta>) => deltaOn(image, changes)

function setUp(
  openLog: (log: FakeLog, spec: Parameters<ReplicaLogs['getOrCreate']>[0]) => Promise<FakeLog> = async (log) => log,
  topicConfig: Partial<TopicConfig> = {},
  askForIsrs: AskForIsrs = async () => [],
) {
  const log = new FakeLog()
  const time = new ManualTime()
  const deleted: string[] = []
  const deleting: { blocked?: PromiseWithResolvers<void> } = {}
  const updates: string[][] = []
  const manager = new ReplicaManager({
    platform: { clock: time, timers: time, random: { float: () => 0 } } as unknown as Platform,
    logger: silentLogger,
    localId: self,
    brokerEpoch: () => 5 as BrokerEpoch,
    askForIsrs,
    maxLagMs: 30_000,
    fetching: {
      listenerName: 'PLAINTEXT',
      settings: {
        maxWaitMs: 500,
        minBytes: 1,
        maxPartitionBytes: 1000,
        maxBytes: 1000,
        backoffMs: 1000,
        requestTimeoutMs: 30_000,
      },
    },
    quotas: new ReplicationQuotas(time, { count: 11, sizeMs: 1000 }, new Metrics()),
    topicConfig: () =>
      ({
        minInSyncReplicas: 1,
        cleanupPolicy: { delete: true, compact: false },
        leaderThrottledReplicas: [],
        followerThrottledReplicas: [],
        ...topicConfig,
      }) as unknown as TopicConfig,
    logs: {
      get: () => log,
      getOrCreate: (spec) => openLog(log, spec),
      delete: async (topic, partition) => {
        await deleting.blocked?.promise
        deleted.push(`${topic}-${partition}`)
      },
      updateTopicConfigs: (configs) => void updates.push([...configs.keys()]),
      partitions: () => [log],
    },
  })
  const create = () =>
    manager.applyDelta(
      delta({ changedTopics: new Map([[ordersId, { topic: orders, partitions: new Set([0]) }]]) }),
      image,
    )
  const produce = (text: string) =>
    manager.append({
      topic: 'orders',
      partition: 0,
      records: Buffer.from(text),
      requiredAcks: -1,
      timeoutMs: 1000,
      origin: 'client',
    })
  const fetch = (changes: Partial<FetchRequest> & { fetchOffset?: number } = {}) =>
    manager.fetch({
      maxWaitMs: 500,
      minBytes: 1,
      maxBytes: 1000,
      isolation: 'read-uncommitted',
      partitions: [
        {
          topic: 'orders',
          partition: 0,
          fetchOffset: changes.fetchOffset ?? 0,
          maxBytes: 1000,
          currentLeaderEpoch: -1,
        },
      ],
      ...changes,
    })
  return { log, time, manager, create, produce, fetch, deleted, deleting, updates }
}

test('ReplicaManager holds requests for a partition until its log is open', async () => {
  const opening = Promise.withResolvers<FakeLog>()
  const { log, create, produce } = setUp(() => opening.promise)
  create()
  const answer = produce('abc')
  opening.resolve(log)
  await turn()
  log.completeFlush()
  expect(await answer).toMatchObject({ ok: true, baseOffset: 0 })
})

test('ReplicaManager answers a storage error for a partition whose log cannot be opened', async () => {
  const { create, produce } = setUp(() => Promise.reject(new Error('EIO')))
  create()
  expect(await produce('abc')).toMatchObject({ ok: false, reason: 'storage-error' })
})

test('ReplicaManager tells its logs which partitions came after the start, and where the metadata has them', async () => {
  const asked: unknown[] = []
  let failure: Error | undefined
  const { manager } = setUp(async (log, { topic, isNew, directoryId }) => {
    asked.push([topic, isNew, directoryId])
    if (failure !== undefined) throw failure
    return log
  })
  const directory = 'AAAAAAAAAAAAAAAAAAAABw' as Uuid
  const before: TopicImage = { ...orders, partitions: [{ ...orders.partitions[0]!, directories: [directory] }] }
  const after: TopicImage = { ...orders, name: 'later', topicId: 'AAAAAAAAAAAAAAAAAAAACA' as Uuid }
  const show = async (...topics: TopicImage[]) => {
    manager.applyDelta({ ...delta({}), isSnapshot: true }, imageOfTopics(topics))
    await turn()
  }
  failure = new Error('EIO')
  await show(before)
  await show(before, after)
  const first = [
    ['orders', false, directory],
    ['later', true, zeroUuid],
  ]
  expect(asked.splice(0)).toEqual(first)
  const now = imageOfTopics([before, after])
  manager.reopenFailed(now)
  await turn()
  expect(asked.splice(0)).toEqual(first)
  await expect(manager.empty([before], now)).rejects.toThrow('EIO')
  failure = undefined
  manager.reopenFailed(now)
  await turn()
  await manager.empty([before], now)
  expect(asked.filter((each) => (each as unknown[])[0] === 'orders')).toEqual([
    ['orders', false, directory],
    ['orders', false, directory],
    ['orders', true, directory],
  ])
})

test('ReplicaManager refuses partitions it does not hold, and topic ids that are not theirs', async () => {
  const { manager, create } = setUp()
  const request = { requiredAcks: 1, timeoutMs: 1, origin: 'client', records: Buffer.alloc(1) } as const
  expect(await manager.append({ topic: 'x', partition: 0, ...request })).toMatchObject({
    reason: 'unknown-topic-or-partition',
  })
  create()
  const otherId = 'AAAAAAAAAAAAAAAAAAAAAg' as Uuid
  expect(await manager.append({ topic: 'orders', partition: 0, topicId: otherId, ...request })).toMatchObject({
    reason: 'inconsistent-topic-id',
  })
})

test('ReplicaManager sends clients on to the leader of a partition that another broker holds', async () => {
  const { manager } = setUp()
  const elsewhere: TopicImage = { ...orders, partitions: [{ ...orders.partitions[0]!, replicas: [2 as BrokerId] }] }
  const topics = { ...image.topics, byName: (name: string) => (name === 'orders' ? elsewhere : undefined) }
  const changedTopics = new Map([[ordersId, { topic: elsewhere, partitions: new Set([0]) }]])
  manager.applyDelta(delta({ changedTopics }), { ...image, topics })
  const target = { currentLeaderEpoch: -1, isolation: 'read-uncommitted', target: 'latest' } as const
  const answers = await Promise.all([
    manager.listOffset({ topic: 'orders', partition: 0, ...target }),
    manager.listOffset({ topic: 'orders', partition: 1, ...target }),
  ])
  expect(answers).toMatchObject([{ reason: 'not-leader-or-follower' }, { reason: 'unknown-topic-or-partition' }])
})

test('ReplicaManager.fetch() gives nothing above the high watermark and waits until there is enough below it', async () => {
  const { log, create, produce, fetch } = setUp()
  create()
  await turn()
  const waiting = fetch({ minBytes: 5 })
  void produce('abc')
  log.completeFlush()
  await turn()
  void produce('de')
  let answered = false
  void waiting.then(() => {
    answered = true
  })
  await turn()
  expect(answered).toBe(false)
  log.completeFlush()
  const answer = await waiting
  expect(Buffer.concat(answer.partitions[0]!.chunks).toString()).toBe('abcde')
  expect(answer.partitions[0]).toMatchObject({ highWatermark: 5, logStartOffset: 0 })
})

test('ReplicaManager.fetch() answers empty when its time is up, and leaves no timer behind', async () => {
  const { time, create, fetch } = setUp()
  create()
  await turn()
  const waiting = fetch()
  await turn()
  time.advance(500)
  const answer = await waiting
  expect(answer.partitions[0]).toMatchObject({ outcome: { ok: true }, sizeBytes: 0, highWatermark: 0 })
  expect(time.pendingCount).toBe(0)
})

test('ReplicaManager.fetch() ends when its client is gone', async () => {
  const { time, create, fetch } = setUp()
  create()
  await turn()
  const client = new AbortController()
  const waiting = fetch({ signal: client.signal })
  await turn()
  client.abort()
  expect((await waiting).partitions).toMatchObject([{ sizeBytes: 0 }])
  expect(time.pendingCount).toBe(0)
})

test('ReplicaManager.fetch() returns the first batch whole even above both limits', async () => {
  const { log, create, produce, fetch } = setUp()
  create()
  await turn()
  void produce('a long batch')
  log.completeFlush()
  const answer = await fetch({ maxBytes: 1 })
  expect(answer.partitions[0]!.sizeBytes).toBe(12)
})

test('ReplicaManager.fetch() answers at once when an offset is out of range, with -1 for every offset', async () => {
  const { create, fetch } = setUp()
  create()
  await turn()
  expect((await fetch({ fetchOffset: 1 })).partitions[0]).toMatchObject({
    outcome: { reason: 'offset-out-of-range' },
    highWatermark: -1,
    lastStableOffset: -1,
    logStartOffset: -1,
  })
})

test('ReplicaManager releases every read, also those of answers that were not sent', async () => {
  const { log, create, produce, fetch } = setUp()
  create()
  await turn()
  void produce('abc')
  log.completeFlush()
  const waiting = fetch({ minBytes: 6 })
  await turn()
  void produce('def')
  log.completeFlush()
  ;(await waiting).release()
  expect(log.releasedReads).toBe(log.openReads)
})

test('ReplicaManager answers waiting fetches and appends when the topic is deleted, then deletes the log', async () => {
  const { create, produce, fetch, manager, deleted } = setUp()
  create()
  await turn()
  const waitingFetch = fetch()
  const waitingAppend = produce('abc')
  await turn()
  const topics = { ...image.topics, byName: () => undefined }
  manager.applyDelta(delta({ deletedTopics: new Map([[ordersId, orders]]) }), { ...image, topics })
  expect((await waitingFetch).partitions[0]!.outcome).toMatchObject({ reason: 'unknown-topic-or-partition' })
  expect(await waitingAppend).toMatchObject({ ok: false })
  await turn()
  expect(deleted).toEqual(['orders-0'])
})

test('ReplicaManager deletes what could not be opened along with its topic', async () => {
  const { create, manager, deleted } = setUp(() => Promise.reject(new Error('damaged')))
  create()
  await turn()
  const topics = { ...image.topics, byName: () => undefined }
  manager.applyDelta(delta({ deletedTopics: new Map([[ordersId, orders]]) }), { ...image, topics })
  await turn()
  await turn()
  expect(deleted).toEqual(['orders-0'])
})

test('ReplicaManager opens no log of a topic that was deleted while it was emptied', async () => {
  const newId = 'AAAAAAAAAAAAAAAAAAAACA' as Uuid
  const opened: Uuid[] = []
  const { create, manager, deleting } = setUp(async (log, { topicId }) => {
    opened.push(topicId)
    return log
  })
  create()
  await turn()
  deleting.blocked = Promise.withResolvers<void>()
  const emptied = manager.empty([orders], image)
  await turn()
  const anew: TopicImage = { ...orders, topicId: newId }
  const changedTopics = new Map([[newId, { topic: anew, partitions: new Set([0]) }]])
  const deletedTopics = new Map([[ordersId, orders]])
  manager.applyDelta(delta({ deletedTopics, changedTopics }), imageOfTopics([anew]))
  await turn()
  deleting.blocked.resolve()
  await emptied
  expect(opened).toEqual([ordersId, newId])
})

test('ReplicaManager tells coordinators of leaderships that came, went and were deleted', async () => {
  const { create, manager } = setUp()
  const seen: string[] = []
  manager.onLeadership({
    onLeader: (partition) => seen.push(`leads ${partition.topic}-${partition.partition} in ${partition.leaderEpoch}`),
    onResigned: (topic, partition, epoch) => seen.push(`resigned ${topic}-${partition} in ${epoch}`),
    onTopicsDeleted: (topics) => seen.push(`deleted ${topics.map(({ name }) => name)}`),
  })
  create()
  await turn()
  manager.applyDelta(delta({ deletedTopics: new Map([[ordersId, orders]]) }), image)
  expect(seen).toEqual(['leads orders-0 in 0', 'resigned orders-0 in 0', 'deleted orders'])
})

/** A controller whose answers the test gives. */
function controller() {
  const asked: { change: IsrChangeRequest; answer: (answer: IsrAnswer) => void }[] = []
  const askForIsrs: AskForIsrs = async ([change]) => [
    await new Promise<IsrAnswer>((answer) => asked.push({ change: change!, answer })),
  ]
  return { asked, askForIsrs }
}

const other = 2 as BrokerId

/** The topic with a replica on another broker, which isn't in the ISR, and the step that brings it. */
function replicated(changes: Partial<PartitionImage> = {}) {
  const topic = { ...orders, partitions: [{ ...orders.partitions[0]!, replicas: [self, other], ...changes }] }
  const running = { brokerId: other, fenced: false, inControlledShutdown: false } as BrokerImage
  const base = imageOfTopics([topic])
  const broker = (brokerId: BrokerId) => (brokerId === other ? running : undefined)
  const changedTopics = new Map([[ordersId, { topic, partitions: new Set([0]) }]])
  return { delta: delta({ changedTopics }), image: { ...base, cluster: { ...base.cluster, broker } } }
}

test.each([
  ['whose topic is deleted', (topic: TopicImage) => delta({ deletedTopics: new Map([[ordersId, topic]]) })],
  [
    'that moves to other brokers',
    (topic: TopicImage) => {
      const moved = { ...topic, partitions: topic.partitions.map((each) => ({ ...each, replicas: [other] })) }
      return delta({ changedTopics: new Map([[ordersId, { topic: moved, partitions: new Set([0]) }]]) })
    },
  ],
])('ReplicaManager fetches a partition no more %s', async (_case, removal) => {
  const { time, manager } = setUp()
  const step = replicated({ leader: other, isr: [other] })
  manager.applyDelta(step.delta, step.image)
  await manager.whenOpened()
  await turn()
  expect(time.pendingCount).toBe(1) // the next try to reach the leader
  manager.applyDelta(removal(step.image.topics.byName('orders')!), image)
  await turn()
  expect(time.pendingCount).toBe(0)
})

test('ReplicaManager says that a leader has recovered, also where its leader epoch moved before that was answered', async () => {
  const { asked, askForIsrs } = controller()
  const { time, manager } = setUp(undefined, undefined, askForIsrs)
  const become = (leaderEpoch: number, partitionEpoch: number) => {
    const step = replicated({
      leaderEpoch: leaderEpoch as LeaderEpoch,
      partitionEpoch: partitionEpoch as PartitionEpoch,
      leaderRecoveryState: 'recovering',
    })
    manager.applyDelta(step.delta, step.image)
  }
  become(3, 4)
  await manager.whenOpened()
  time.advance(0)
  become(4, 6)
  asked[0]!.answer({ ok: false, reason: 'outdated' })
  await turn()
  time.advance(0)
  expect(asked.map(({ change }) => [change.leaderEpoch, change.partitionEpoch])).toEqual([
    [3, 4],
    [4, 6],
  ])
})

/** A leader that has asked for the other replica in the ISR, and whose log fails and is opened anew when the test says so. */
async function askingLeader() {
  const { asked, askForIsrs } = controller()
  const logs = [new FakeLog(), new FakeLog()]
  const [failing, reopened] = logs
  const { time, manager, produce, fetch } = setUp(async () => logs.shift()!, undefined, askForIsrs)
  const step = replicated()
  manager.applyDelta(step.delta, step.image)
  await manager.whenOpened()
  await fetch({ follower: { replica: other, brokerEpoch: -1 }, maxWaitMs: 0 })
  time.advance(0)
  expect(asked[0]!.change.isr.map(({ brokerId }) => brokerId)).toEqual([self, other])
  const reopen = async () => {
    failing!.activeListener!.onFailed(new Error('ENOSPC'))
    manager.reopenFailed(step.image)
    await manager.whenOpened()
  }
  return { asked: asked[0]!, manager, produce, reopen, reopened: reopened! }
}

test('ReplicaManager counts an ISR that was asked for before the log failed and opened anew, until it is refused', async () => {
  const { asked, produce, reopen, reopened } = await askingLeader()
  await reopen()
  const answer = produce('abc')
  await turn()
  reopened.completeFlush()
  expect(reopened.highWatermark).toBe(0) // the other may be in the ISR by now, and has nothing of it
  asked.answer({ ok: false, reason: 'refused' })
  expect(await answer).toMatchObject({ ok: true })
  expect(reopened.highWatermark).toBe(3)
})

test('ReplicaManager counts an ISR that was accepted until the metadata has it, also where the log opens anew before', async () => {
  const { asked, manager, produce, reopen, reopened } = await askingLeader()
  const { partitionEpoch } = asked.change
  asked.answer({ ok: true, isr: [self, other], partitionEpoch: (partitionEpoch + 1) as PartitionEpoch })
  await turn()
  await reopen()
  void produce('abc')
  await turn()
  reopened.completeFlush()
  expect(reopened.highWatermark).toBe(0)
  const without = replicated({ partitionEpoch: (partitionEpoch + 2) as PartitionEpoch })
  manager.applyDelta(without.delta, without.image)
  expect(reopened.highWatermark).toBe(3)
})

test('ReplicaManager gives logs their new settings in one go, those of all topics when a broker has new ones', async () => {
  const { manager, create, updates } = setUp()
  create()
  const changed = (topics: string[], brokers: string[]) =>
    delta({ changedConfigs: { topics: new Set(topics), brokers: new Set(brokers) } })
  const other = { ...orders, name: 'other', partitions: [] }
  const known = new Map([orders, other].map((topic) => [topic.name, topic]))
  const topics = { ...image.topics, byName: (name: string) => known.get(name), all: () => known.values() }
  manager.applyDelta(changed(['other', 'deleted'], []), { ...image, topics })
  manager.applyDelta(changed(['other'], ['']), { ...image, topics })
  expect(updates).toEqual([['other'], ['orders', 'other']])
})

test('ReplicaManager tells where an epoch ends, as the leader in the epoch that the client knows', async () => {
  const { manager, create } = setUp()
  create()
  const ask = (topic: string, currentEpoch: number) =>
    manager.endOffsetForEpoch({ topic, partition: 0 }, currentEpoch as LeaderEpoch, 0 as LeaderEpoch)
  expect(await ask('orders', 0)).toMatchObject({ ok: true, leaderEpoch: 0, endOffset: 0 })
  expect(await ask('orders', 1)).toEqual({ ok: false, reason: 'unknown-leader-epoch' })
  const failing = setUp(() => Promise.reject(new Error('EIO')))
  failing.create()
  const refused = await failing.manager.endOffsetForEpoch({ topic: 'orders', partition: 0 }, -1, 0 as LeaderEpoch)
  expect(refused).toMatchObject({ ok: false, reason: 'storage-error' })
})

test('ReplicaManager tells a partition’s producers whoever leads it', async () => {
  const { manager, create } = setUp()
  expect(await manager.activeProducers({ topic: 'orders', partition: 0 })).toMatchObject({ ok: false })
  create()
  expect(await manager.activeProducers({ topic: 'orders', partition: 0 })).toEqual({ ok: true, producers: [] })
})

test('ReplicaManager.fetch() tells a reader from where its log is another one', async () => {
  const { log, create, fetch } = setUp()
  create()
  await turn()
  const ends: Record<number, number> = { 0: 4, 2: 9 }
  log.endOffsetForEpoch = (asked) => {
    const known = [2, 0].find((epoch) => epoch <= asked)
    const leaderEpoch = (asked > 2 ? -1 : known) as LeaderEpoch
    return { leaderEpoch, endOffset: ends[leaderEpoch] ?? -1 }
  }
  const ask = async (lastFetchedEpoch: number, fetchOffset: number) => {
    const partition = { topic: 'orders', partition: 0, fetchOffset, maxBytes: 1000, currentLeaderEpoch: -1 as const }
    const partitions = [{ ...partition, lastFetchedEpoch: lastFetchedEpoch as LeaderEpoch }]
    const { partitions: answers } = await fetch({ partitions, maxWaitMs: 0 })
    return answers[0]!
  }
  expect((await ask(0, 5)).divergingEpoch).toEqual({ epoch: 0, endOffset: 4 }) // its epoch ended before
  expect((await ask(1, 3)).divergingEpoch).toEqual({ epoch: 0, endOffset: 4 }) // its epoch was never here
  expect((await ask(3, 0)).outcome).toEqual({ ok: false, reason: 'offset-out-of-range' }) // newer than all that is here
  expect(await ask(0, 0)).toMatchObject({ outcome: { ok: true } })
  expect((await ask(0, 0)).divergingEpoch).toBeUndefined()
})

const deletion = { topic: 'orders', partition: 0, beforeOffset: -1, timeoutMs: 500 } as const

test('ReplicaManager.deleteRecords() waits no longer for a replica that is gone when the metadata says so', async () => {
  const { log, time, manager, produce, fetch } = setUp()
  const isr = [self, other]
  const step = replicated({ isr })
  manager.applyDelta(step.delta, step.image)
  await manager.whenOpened()
  const produced = produce('abc')
  await turn()
  log.completeFlush()
  await fetch({ follower: { replica: other, brokerEpoch: -1 }, fetchOffset: 3, maxWaitMs: 0 })
  expect(await produced).toMatchObject({ ok: true })
  const deletion = { topic: 'orders', partition: 0, currentLeaderEpoch: -1 as const, beforeOffset: 2 }
  const late = manager.deleteRecords({ ...deletion, timeoutMs: 100 })
  const deleted = manager.deleteRecords({ ...deletion, timeoutMs: 1000 })
  await turn()
  time.advance(100)
  expect(await late).toEqual({ ok: false, reason: 'request-timed-out' })
  const alone = replicated({ partitionEpoch: 1 as PartitionEpoch })
  manager.applyDelta(alone.delta, { ...alone.image, cluster: { ...alone.image.cluster, broker: () => undefined } })
  expect(await deleted).toEqual({ ok: true, lowWatermark: 2 })
})

test('ReplicaManager.deleteRecords() moves the log start, below which nothing can be read any more', async () => {
  const { log, time, manager, create, produce, fetch } = setUp()
  create()
  await turn()
  void produce('abcde')
  log.completeFlush()
  const timers = time.pendingCount
  expect(await manager.deleteRecords({ ...deletion, beforeOffset: 2 })).toEqual({ ok: true, lowWatermark: 2 })
  const answer = await fetch({ fetchOffset: 1 })
  expect(answer.partitions[0]?.outcome).toEqual({ ok: false, reason: 'offset-out-of-range' })
  expect(await manager.deleteRecords({ ...deletion, beforeOffset: 1 })).toEqual({ ok: true, lowWatermark: 2 })
  expect(await manager.deleteRecords(deletion)).toEqual({ ok: true, lowWatermark: 5 })
  expect(time.pendingCount).toBe(timers)
})

test('ReplicaManager.deleteRecords() answers when its time is up while the disk is slow', async () => {
  const { log, time, manager, create } = setUp()
  create()
  await turn()
  log.deleteRecordsBefore = () => new Promise(() => {})
  const answer = manager.deleteRecords(deletion)
  await turn()
  time.advance(500)
  expect(await answer).toEqual({ ok: false, reason: 'request-timed-out' })
})

test('ReplicaManager.deleteRecords() refuses a topic that is compacted only, and a partition that is not there', async () => {
  const { manager, create } = setUp(undefined, { cleanupPolicy: { delete: false, compact: true } })
  create()
  await turn()
  expect(await manager.deleteRecords({ ...deletion, beforeOffset: 99 })).toMatchObject({ reason: 'policy-violation' })
  expect(await manager.deleteRecords({ ...deletion, partition: 7 })).toMatchObject({
    reason: 'unknown-topic-or-partition',
  })
})

test('ReplicaManager.empty() puts an empty log in place, in the same leader epoch, and answers who waits', async () => {
  const logs = [new FakeLog(), new FakeLog()]
  const { manager, create, produce, fetch, deleted } = setUp(async () => logs.shift()!)
  const news: string[] = []
  manager.onLeadership({
    onLeader: ({ leaderEpoch }) => void news.push(`led in ${leaderEpoch}`),
    onResigned: (_topic, _partition, leaderEpoch) => void news.push(`resigned in ${leaderEpoch}`),
    onTopicsDeleted: () => void news.push('deleted'),
  })
  const [before, after] = logs
  create()
  await manager.whenOpened()
  const written = produce('abc')
  before!.completeFlush()
  await written
  const waiting = produce('d')
  const poll = fetch({ fetchOffset: 3, maxWaitMs: 1_000_000 })
  await turn()
  const emptied = manager.empty([orders], image)
  expect(await waiting).toMatchObject({ ok: false, reason: 'not-leader-or-follower' })
  await emptied
  expect(deleted).toEqual(['orders-0'])
  expect(news).toEqual(['led in 0', 'resigned in 0', 'led in 0'])
  expect((await poll).partitions[0]).toMatchObject({ outcome: { ok: false, reason: 'offset-out-of-range' } })
  const again = produce('x')
  await turn()
  after!.completeFlush()
  expect(await again).toMatchObject({ ok: true, baseOffset: 0 })
})

test('ReplicaManager tells readers of a log before that they are out of range, whatever epoch they know', async () => {
  const { manager, create, fetch } = setUp()
  create()
  await manager.whenOpened()
  await manager.empty([orders], image)
  const asked = { topic: 'orders', partition: 0, fetchOffset: 7, maxBytes: 1000 }
  const epochs = { currentLeaderEpoch: 0 as LeaderEpoch, lastFetchedEpoch: 0 as LeaderEpoch }
  const { partitions } = await fetch({ partitions: [{ ...asked, ...epochs }] })
  expect(partitions[0]).toMatchObject({ outcome: { ok: false, reason: 'offset-out-of-range' } })
})

test('ReplicaManager.empty() rejects when a log cannot be deleted, and the partition is out of use', async () => {
  let opened = 0
  const { manager, create, produce } = setUp((log) =>
    opened++ === 0 ? Promise.resolve(log) : Promise.reject(new Error('EIO')),
  )
  create()
  await manager.whenOpened()
  await expect(manager.empty([orders], image)).rejects.toThrow('EIO')
  expect(await produce('abc')).toMatchObject({ ok: false, reason: 'storage-error' })
})

test.each([
  ['follows', [self, 2 as BrokerId], 2 as BrokerId],
  ['leads', [self, 2 as BrokerId], self],
])(
  'ReplicaManager begins nothing for a partition that it %s from the time it was stopped',
  async (_what, isr, leader) => {
    const opening = Promise.withResolvers<FakeLog>()
    const { log, time, manager } = setUp(() => opening.promise)
    const [partition] = orders.partitions
    const topic = { ...orders, partitions: [{ ...partition!, replicas: isr, isr, leader }] }
    manager.applyDelta(delta({ changedTopics: new Map([[ordersId, { topic, partitions: new Set([0]) }]]) }), image)
    time.advance(0)
    manager.stop()
    opening.resolve(log) // as those of a folder do that has room again
    for (let turns = 0; turns < 5; turns++) await turn()
    expect(time.pendingCount).toBe(0)
  },
)

test('deletes nothing before it knows what it holds', async () => {
  const { manager, deleted } = setUp()
  await manager.deleteStrays()
  expect(deleted).toEqual([])
})

test('deletes the log of a partition that moved to other brokers while this one was away', async () => {
  const { manager, deleted, create } = setUp()
  create()
  await manager.whenOpened()
  await manager.deleteStrays()
  expect(deleted, 'a partition that is here').toEqual([])

  const restarted = setUp()
  const moved: TopicImage = {
    ...orders,
    partitions: [{ ...orders.partitions[0]!, replicas: [2 as BrokerId], isr: [2 as BrokerId], leader: 2 as BrokerId }],
  }
  const changedTopics = new Map([[ordersId, { topic: moved, partitions: new Set([0]) }]])
  restarted.manager.applyDelta(delta({ changedTopics }), image)
  await restarted.manager.deleteStrays()
  expect(restarted.deleted).toEqual(['orders-0'])
})
