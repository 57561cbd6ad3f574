import { describe, expect, test } from 'vitest'
import type { BrokerId, LeaderEpoch, Uuid } from '../../../src/base/index.ts'
import { apis, type FetchRequest, type MessageInput } from '../../../src/protocol/index.ts'
import type { FetchedPartition, ReplicaRefusal } from '../../../src/replication/index.ts'
import { brokerImage, harness, partitionImage, topicId } from './harness.ts'

type Body = MessageInput<typeof FetchRequest>

function fetchBody(changes: Partial<Body> = {}, topic: { topic?: string; topicId?: Uuid } = { topic: 'orders' }): Body {
  const partitions = [{ partition: 0, fetchOffset: 5, partitionMaxBytes: 1000 }]
  const topics = [{ ...topic, partitions }]
  return { maxWaitMs: 500, minBytes: 1, maxBytes: 5000, topics, forgottenTopicsData: [], ...changes }
}

function fetched(chunks: readonly Buffer[]): FetchedPartition {
  return {
    outcome: { ok: true },
    highWatermark: 10,
    lastStableOffset: 9,
    logStartOffset: 2,
    chunks,
    sizeBytes: chunks.reduce((sum, { length }) => sum + length, 0),
  }
}

function refused(reason: ReplicaRefusal): FetchedPartition {
  return {
    outcome: { ok: false, reason },
    highWatermark: -1,
    lastStableOffset: -1,
    logStartOffset: -1,
    chunks: [],
    sizeBytes: 0,
  }
}

const byName = [4, 5, 6, 7, 8, 9, 10, 11, 12]
const byId = [13, 14, 15, 16, 17, 18]

test.each(byName)('Fetch %i reads by topic name and gives the chunks as they are', async (version) => {
  const { ask, replicas } = harness()
  replicas.fetchAnswer = () => [fetched([Buffer.from('batch one'), Buffer.from('batch two')])]
  const response = await ask(apis.Fetch, version, fetchBody())
  expect(replicas.fetches).toMatchObject([
    {
      maxWaitMs: 500,
      minBytes: 1,
      maxBytes: 5000,
      isolation: 'read-uncommitted',
      partitions: [{ topic: 'orders', partition: 0, fetchOffset: 5, maxBytes: 1000, currentLeaderEpoch: -1 }],
    },
  ])
  expect(response).toMatchObject({
    errorCode: 0,
    sessionId: 0,
    responses: [
      {
        topic: 'orders',
        partitions: [
          {
            partitionIndex: 0,
            errorCode: 0,
            highWatermark: 10,
            lastStableOffset: 9,
            logStartOffset: version >= 5 ? 2 : -1,
            abortedTransactions: null,
            preferredReadReplica: -1,
            records: Buffer.from('batch onebatch two'),
          },
        ],
      },
    ],
  })
  expect(replicas.released).toBe(1)
})

test.each(byId)('Fetch %i reads by topic id and echoes it', async (version) => {
  const { ask, replicas, coordination } = harness()
  const { topicId: id } = coordination.addTopic('orders')
  const response = await ask(apis.Fetch, version, fetchBody({}, { topicId: id }))
  expect(replicas.fetches[0]!.partitions).toMatchObject([{ topic: 'orders', topicId: id }])
  expect(response.responses).toMatchObject([{ topicId: id, partitions: [{ errorCode: 0 }] }])
})

test('an unknown topic id is refused for its partitions, and the answer does not wait', async () => {
  const { ask, replicas, coordination } = harness()
  const { topicId: known } = coordination.addTopic('orders')
  const partitions = [{ partition: 3, fetchOffset: 0, partitionMaxBytes: 1 }]
  const topics = [
    { topicId: topicId(900), partitions },
    { topicId: known, partitions },
  ] as Body['topics']
  const { responses } = await ask(apis.Fetch, 13, fetchBody({ topics }))
  expect(responses).toMatchObject([
    { topicId: topicId(900), partitions: [{ partitionIndex: 3, errorCode: 100 }] },
    { topicId: known, partitions: [{ partitionIndex: 3, errorCode: 0 }] },
  ])
  expect(replicas.fetches[0]!.maxWaitMs).toBe(0)
})

test.each([
  ['a consumer', {}, {}],
  ['a follower', { replicaState: { replicaId: 2, replicaEpoch: 7 } }, {}],
  [
    'a consumer in another rack',
    { rackId: 'b' },
    { 'broker.rack': 'a', 'replica.selector.class': 'org.apache.kafka.common.replica.RackAwareReplicaSelector' },
  ],
] as const)('each of several partitions gets what was read of it: %s', async (_reader, changes, overrides) => {
  const { ask, replicas, coordination } = harness({ overrides })
  coordination.brokers.push(brokerImage(2, { rack: 'b' }))
  const { topicId: orders } = coordination.addTopic('orders')
  const { topicId: payments } = coordination.addTopic('payments')
  replicas.fetchAnswer = ({ partitions }) =>
    partitions.map(({ topic, partition }) => fetched([Buffer.from(`${topic}-${partition}`)]))
  const both = [0, 1].map((partition) => ({ partition, fetchOffset: 5, partitionMaxBytes: 1000 }))
  const topics = [orders, topicId(900), payments].map((id) => ({ topicId: id, partitions: both }))
  const { responses } = await ask(apis.Fetch, 16, fetchBody({ topics, ...changes }))
  const records = responses.map(({ partitions }) => partitions.map((each) => String(each.records)))
  expect(records).toEqual([
    ['orders-0', 'orders-1'],
    ['', ''],
    ['payments-0', 'payments-1'],
  ])
})

test('no records are an empty set, never null', async () => {
  const { ask } = harness()
  for (const version of [4, 11, 12]) {
    const { responses } = await ask(apis.Fetch, version, fetchBody())
    expect(responses[0]!.partitions[0]!.records).toEqual(Buffer.alloc(0))
  }
})

test('read-committed has a list of aborted transactions, if an empty one', async () => {
  const { ask, replicas } = harness()
  const { responses } = await ask(apis.Fetch, 11, fetchBody({ isolationLevel: 1 }))
  expect(replicas.fetches[0]!.isolation).toBe('read-committed')
  expect(responses[0]!.partitions[0]!.abortedTransactions).toEqual([])
})

describe('sessions', () => {
  const two = [0, 1].map((partition) => ({ partition, fetchOffset: 5, partitionMaxBytes: 1000 }))
  const both = (changes: Partial<Body> = {}) =>
    fetchBody({ topics: [{ topic: 'orders', partitions: two }], ...changes })
  const none = (sessionId: number, sessionEpoch: number, changes: Partial<Body> = {}) =>
    fetchBody({ topics: [], sessionId, sessionEpoch, ...changes })

  test.each([
    ['sessionless', 0, -1],
    ['closing its session', 5, -1],
  ])('a request that is %s is answered without a session', async (_name, sessionId, sessionEpoch) => {
    const { ask } = harness()
    const response = await ask(apis.Fetch, 11, fetchBody({ sessionId, sessionEpoch }))
    expect(response).toMatchObject({ errorCode: 0, sessionId: 0, responses: [{ topic: 'orders' }] })
  })

  test.each([7, 11, 12])(
    'Fetch %i: a full request makes a session, in which only what changed is said',
    async (version) => {
      const { ask, replicas } = harness()
      const made = await ask(apis.Fetch, version, both({ sessionId: 0, sessionEpoch: 0 }))
      expect(made).toMatchObject({ errorCode: 0, responses: [{ partitions: [{}, {}] }] })
      const { sessionId } = made
      expect(sessionId).toBeGreaterThan(0)
      expect(await ask(apis.Fetch, version, none(sessionId, 1))).toMatchObject({
        errorCode: 0,
        sessionId,
        responses: [],
      })
      expect(replicas.fetches[1]!.partitions).toMatchObject([
        { topic: 'orders', partition: 0, fetchOffset: 5, maxBytes: 1000 },
        { topic: 'orders', partition: 1, fetchOffset: 5, maxBytes: 1000 },
      ])
      replicas.fetchAnswer = ({ partitions }) => partitions.map((each) => (each.partition === 1 ? data : idle))
      expect(await ask(apis.Fetch, version, none(sessionId, 2))).toMatchObject({
        sessionId,
        responses: [{ topic: 'orders', partitions: [{ partitionIndex: 1, records: Buffer.from('batch') }] }],
      })
      const moved = [{ partition: 1, fetchOffset: 8, partitionMaxBytes: 10 }]
      replicas.fetchAnswer = ({ partitions }) => partitions.map(() => idle)
      await ask(apis.Fetch, version, none(sessionId, 3, { topics: [{ topic: 'orders', partitions: moved }] }))
      expect(replicas.fetches[3]!.partitions).toMatchObject([
        { partition: 0, fetchOffset: 5 },
        { partition: 1, fetchOffset: 8, maxBytes: 10 },
      ])
      const forgottenTopicsData = [{ topic: 'orders', partitions: [0] }]
      await ask(apis.Fetch, version, none(sessionId, 4, { forgottenTopicsData }))
      expect(replicas.fetches[4]!.partitions).toMatchObject([{ partition: 1 }])
      expect(replicas.released).toBe(5)
    },
  )

  const idle: FetchedPartition = { ...fetched([]), lastStableOffset: 10, logStartOffset: 0 }
  const data: FetchedPartition = { ...fetched([Buffer.from('batch')]), logStartOffset: 0 }

  test('errors are told again and again, and their end once', async () => {
    const { ask, replicas } = harness()
    const { sessionId } = await ask(apis.Fetch, 11, fetchBody({ sessionEpoch: 0 }))
    replicas.fetchAnswer = () => [refused('not-leader-or-follower')]
    for (const epoch of [1, 2]) {
      const { responses } = await ask(apis.Fetch, 11, none(sessionId, epoch))
      expect(responses).toMatchObject([{ topic: 'orders', partitions: [{ partitionIndex: 0, errorCode: 6 }] }])
    }
    replicas.fetchAnswer = () => [idle]
    expect((await ask(apis.Fetch, 11, none(sessionId, 3))).responses).toHaveLength(1)
    expect((await ask(apis.Fetch, 11, none(sessionId, 4))).responses).toEqual([])
  })

  test('by topic id: one that is not there yet is UNKNOWN_TOPIC_ID until it is, and the others go on', async () => {
    const { ask, replicas, coordination } = harness()
    const { topicId: known } = coordination.addTopic('orders')
    const late = topicId(1)
    const partitions = [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1 }]
    const topics = [late, known].map((id) => ({ topicId: id, partitions }))
    const { sessionId, responses } = await ask(apis.Fetch, 13, fetchBody({ topics, sessionEpoch: 0 }))
    expect(responses.map((topic) => topic.partitions[0]!.errorCode)).toEqual([100, 0])
    const again = await ask(apis.Fetch, 13, none(sessionId, 1))
    expect(again.responses).toMatchObject([{ topicId: late, partitions: [{ errorCode: 100 }] }])
    expect(replicas.fetches[1]).toMatchObject({ maxWaitMs: 0, partitions: [{ topic: 'orders', topicId: known }] })
    coordination.addTopic('late')
    const found = await ask(apis.Fetch, 13, none(sessionId, 2))
    expect(found.responses).toMatchObject([{ topicId: late, partitions: [{ errorCode: 0 }] }])
    expect(replicas.fetches[2]).toMatchObject({ maxWaitMs: 500, partitions: [{ topic: 'late' }, { topic: 'orders' }] })
  })

  test('by topic id a topic that is deleted or made anew is asked for by its old id; by name whichever is there', async () => {
    const { ask, replicas, coordination } = harness()
    const { topicId: id } = coordination.addTopic('orders')
    const byId = await ask(apis.Fetch, 13, fetchBody({ sessionEpoch: 0 }, { topicId: id }))
    const byName = await ask(apis.Fetch, 12, fetchBody({ sessionEpoch: 0 }))
    coordination.topics.delete('orders')
    coordination.addTopic('filler')
    coordination.addTopic('orders')
    await ask(apis.Fetch, 13, none(byId.sessionId, 1))
    await ask(apis.Fetch, 12, none(byName.sessionId, 1))
    expect(replicas.fetches[2]!.partitions).toMatchObject([{ topic: 'orders', topicId: id }])
    expect(replicas.fetches[3]!.partitions[0]!.topicId).toBe(undefined)
  })

  test('a full request ends the session that it names', async () => {
    const { ask } = harness()
    const first = await ask(apis.Fetch, 11, fetchBody({ sessionEpoch: 0 }))
    const second = await ask(apis.Fetch, 11, fetchBody({ sessionId: first.sessionId, sessionEpoch: 0 }))
    expect(second.sessionId).not.toBe(first.sessionId)
    expect((await ask(apis.Fetch, 11, none(first.sessionId, 1))).errorCode).toBe(70)
    await ask(apis.Fetch, 11, fetchBody({ sessionId: second.sessionId, sessionEpoch: -1 }))
    expect((await ask(apis.Fetch, 11, none(second.sessionId, 1))).errorCode).toBe(70)
  })

  test('a session that is emptied is answered like no session', async () => {
    const { ask } = harness()
    const { sessionId } = await ask(apis.Fetch, 11, fetchBody({ sessionEpoch: 0 }))
    const forgottenTopicsData = [{ topic: 'orders', partitions: [0] }]
    const emptied = await ask(apis.Fetch, 11, none(sessionId, 1, { forgottenTopicsData }))
    expect(emptied).toMatchObject({ errorCode: 0, sessionId: 0, responses: [] })
  })

  test('an unknown session, another epoch, and a change from names to ids are refused for the whole request', async () => {
    const { ask, replicas } = harness()
    const { sessionId } = await ask(apis.Fetch, 11, fetchBody({ sessionEpoch: 0 }))
    for (const [version, id, epoch, errorCode] of [
      [11, sessionId + 1, 1, 70],
      [11, sessionId, 2, 71],
      [13, sessionId, 1, 106],
    ] as const) {
      const response = await ask(apis.Fetch, version, none(id, epoch))
      expect(response).toMatchObject({ errorCode, sessionId: 0, responses: [] })
    }
    expect(replicas.fetches).toHaveLength(1)
    expect((await ask(apis.Fetch, 11, none(sessionId, 1))).errorCode).toBe(0)
  })

  test('of two connections that use one session the slower is refused, and its records are released', async () => {
    const { ask, replicas } = harness()
    const { sessionId } = await ask(apis.Fetch, 11, fetchBody({ sessionEpoch: 0 }))
    replicas.fetchAnswer = () => [data]
    const [slower, faster] = await Promise.all([
      ask(apis.Fetch, 11, none(sessionId, 1)),
      ask(apis.Fetch, 11, none(sessionId, 2)),
    ])
    expect(slower).toMatchObject({ errorCode: 71, sessionId, responses: [] })
    expect(faster).toMatchObject({ errorCode: 0, sessionId, responses: [{ topic: 'orders' }] })
    expect(replicas.released).toBe(3)
  })

  test('with max.incremental.fetch.session.cache.slots at 0 a full request is answered without one', async () => {
    const { ask } = harness({ overrides: { 'max.incremental.fetch.session.cache.slots': '0' } })
    expect((await ask(apis.Fetch, 11, fetchBody({ sessionEpoch: 0 }))).sessionId).toBe(0)
  })
})

const reasons: [ReplicaRefusal, number][] = [
  ['offset-out-of-range', 1],
  ['unknown-topic-or-partition', 3],
  ['not-leader-or-follower', 6],
  ['storage-error', 56],
  ['fenced-leader-epoch', 74],
  ['unknown-leader-epoch', 75],
  ['offset-not-available', 78],
  ['inconsistent-topic-id', 103],
]

test.each(reasons)('%s is error %i, with no watermarks', async (reason, errorCode) => {
  const { ask, replicas } = harness()
  replicas.fetchAnswer = () => [refused(reason)]
  const { responses } = await ask(apis.Fetch, 11, fetchBody())
  expect(responses[0]!.partitions[0]).toMatchObject({
    errorCode,
    highWatermark: -1,
    lastStableOffset: -1,
    logStartOffset: -1,
    records: Buffer.alloc(0),
  })
})

test('a storage error is NOT_LEADER_OR_FOLLOWER up to version 5', async () => {
  const { ask, replicas } = harness()
  replicas.fetchAnswer = () => [refused('storage-error')]
  expect((await ask(apis.Fetch, 5, fetchBody())).responses[0]!.partitions[0]!.errorCode).toBe(6)
  expect((await ask(apis.Fetch, 6, fetchBody())).responses[0]!.partitions[0]!.errorCode).toBe(56)
})

test('from version 16 on who is turned away is told the leader and where it is', async () => {
  const { ask, replicas, coordination } = harness()
  coordination.brokers.push(brokerImage(2))
  const partition = partitionImage(0, { leader: 2 as BrokerId, leaderEpoch: 9 as LeaderEpoch })
  const { topicId: id } = coordination.addTopic('orders', [partition])
  replicas.fetchAnswer = () => [refused('fenced-leader-epoch')]
  const told = await ask(apis.Fetch, 16, fetchBody({}, { topicId: id }))
  expect(told.responses[0]!.partitions[0]!.currentLeader).toEqual({ leaderId: 2, leaderEpoch: 9 })
  expect(told.nodeEndpoints).toEqual([{ nodeId: 2, host: 'broker2', port: 9092, rack: null }])
})

test('the answer keeps within the broker’s limit and the memory that is left', async () => {
  const { ask, replicas } = harness({ overrides: { 'fetch.max.bytes': '4000' } })
  await ask(apis.Fetch, 11, fetchBody({ minBytes: 9000 }))
  expect(replicas.fetches[0]).toMatchObject({ maxBytes: 4000, minBytes: 9000 })
  const loan = { bytes: 7, giveBack: () => undefined }
  await ask(apis.Fetch, 11, fetchBody(), { connection: { lendResponseBytes: () => loan } })
  expect(replicas.fetches[1]!.lend?.(4000)).toBe(loan)
})

test('the wait ends with the connection', async () => {
  const { ask, replicas } = harness()
  const { signal } = new AbortController()
  await ask(apis.Fetch, 11, fetchBody(), { connection: { signal } })
  expect(replicas.fetches[0]!.signal).toBe(signal)
})

test('a partition that is asked about twice is read once', async () => {
  const { ask, replicas } = harness()
  replicas.fetchAnswer = () => [fetched([])]
  const asked = { topic: 'orders', partitions: [{ partition: 0, fetchOffset: 5, partitionMaxBytes: 1000 }] }
  const { responses } = await ask(apis.Fetch, 11, fetchBody({ topics: [asked, asked] }))
  expect(responses.map(({ partitions }) => partitions.length)).toEqual([1, 0])
  expect(replicas.fetches[0]!.partitions).toHaveLength(1)
})

test('every negative epoch is none; from version 12 on the reader’s last epoch is passed on', async () => {
  const { ask, replicas } = harness()
  replicas.fetchAnswer = () => [{ ...fetched([]), divergingEpoch: { epoch: 3 as LeaderEpoch, endOffset: 4 } }]
  const partition = { partition: 0, fetchOffset: 5, partitionMaxBytes: 1000, currentLeaderEpoch: -2 }
  const topics = (more: object) => [{ topic: 'orders', partitions: [{ ...partition, ...more }] }]
  const { responses } = await ask(apis.Fetch, 12, fetchBody({ topics: topics({ lastFetchedEpoch: 7 }) }))
  expect(replicas.fetches[0]!.partitions[0]).toMatchObject({ currentLeaderEpoch: -1, lastFetchedEpoch: 7 })
  expect(responses[0]!.partitions[0]!.divergingEpoch).toEqual({ epoch: 3, endOffset: 4 })
  await ask(apis.Fetch, 11, fetchBody({ topics: topics({}) }))
  expect(replicas.fetches[1]!.partitions[0]).toMatchObject({ lastFetchedEpoch: -1 })
})

describe('consumers in another rack', () => {
  const overrides = {
    'node.id': '1',
    'broker.rack': 'a',
    'replica.selector.class': 'org.apache.kafka.common.replica.RackAwareReplicaSelector',
  }
  const isr = [1, 2, 3] as BrokerId[]
  const inRack = (changes: Partial<Body> = {}) => fetchBody({ rackId: 'b', ...changes })

  function racks(settings: Readonly<Record<string, string>> = overrides) {
    const made = harness({ overrides: settings })
    made.coordination.brokers.splice(0, 1, brokerImage(1, { rack: 'a' }))
    made.coordination.brokers.push(brokerImage(2, { rack: 'b' }), brokerImage(3, { rack: 'b', fenced: true }))
    made.coordination.addTopic('orders', [partitionImage(0, { replicas: isr, isr })])
    made.replicas.fetchAnswer = () => [fetched([Buffer.from('batch')])]
    return made
  }

  test.each([11, 12])(
    'Fetch %i sends them to a replica in sync in theirs, at once and without records',
    async (version) => {
      const { ask, replicas } = racks()
      const { responses } = await ask(apis.Fetch, version, inRack())
      expect(responses[0]!.partitions[0]).toMatchObject({ errorCode: 0, highWatermark: 10, preferredReadReplica: 2 })
      expect(responses[0]!.partitions[0]!.records).toHaveLength(0)
      expect(replicas.fetches).toMatchObject([{ maxWaitMs: 0 }])
    },
  )

  test('in a session they are told each time that they ask here', async () => {
    const { ask } = racks()
    const { sessionId } = await ask(apis.Fetch, 12, inRack({ sessionEpoch: 0 }))
    for (const sessionEpoch of [1, 2]) {
      const { responses } = await ask(apis.Fetch, 12, inRack({ sessionId, sessionEpoch, topics: [] }))
      expect(responses[0]!.partitions[0]).toMatchObject({ preferredReadReplica: 2 })
    }
  })

  test.each([
    ['no rack is told', {}, { rackId: '' }],
    ['they are in the rack of the leader', {}, { rackId: 'a' }],
    ['nobody is in their rack', {}, { rackId: 'c' }],
    ['a follower fetches', {}, { replicaId: 2, rackId: 'b' }],
    ['no selector is set', { 'replica.selector.class': 'org.apache.kafka.common.replica.LeaderSelector' }, {}],
  ])('they read from the leader when %s', async (_why, settings, changes) => {
    const { ask, replicas } = racks({ ...overrides, ...settings })
    const { responses } = await ask(apis.Fetch, 12, inRack(changes))
    expect(responses[0]!.partitions[0]).toMatchObject({ preferredReadReplica: -1 })
    expect(responses[0]!.partitions[0]!.records).toHaveLength(5)
    expect(replicas.fetches).toMatchObject([{ maxWaitMs: 500 }])
  })

  test('a follower that they were sent to serves them', async () => {
    const { ask, coordination } = racks({ ...overrides })
    coordination.topics.clear()
    coordination.addTopic('orders', [partitionImage(0, { replicas: isr, isr, leader: 2 as BrokerId })])
    const { responses } = await ask(apis.Fetch, 12, inRack())
    expect(responses[0]!.partitions[0]!.records).toHaveLength(5)
  })

  test('what is wrong is told by the leader', async () => {
    const { ask, replicas } = racks()
    replicas.fetchAnswer = () => [refused('offset-out-of-range')]
    const { responses } = await ask(apis.Fetch, 12, inRack())
    expect(responses[0]!.partitions[0]).toMatchObject({ errorCode: 1, preferredReadReplica: -1 })
  })
})
