import { describe, expect, test } from 'vitest'
import type { BrokerId, LeaderEpoch, ProducerEpoch, ProducerId } from '../../../src/base/index.ts'
import { CoordinationError } from '../../../src/coordination/index.ts'
import { apis } from '../../../src/protocol/index.ts'
import type { ReplicaRefusal } from '../../../src/replication/index.ts'
import { brokerImage, harness, partitionImage, topicId } from './harness.ts'

describe('OffsetForLeaderEpoch', () => {
  const body = (partition = 0) => ({
    topics: [{ topic: 'orders', partitions: [{ partition, currentLeaderEpoch: 4, leaderEpoch: 3 }] }],
  })

  test.each([2, 3, 4])('%i tells where an epoch ends', async (version) => {
    const { ask, replicas } = harness()
    expect(await ask(apis.OffsetForLeaderEpoch, version, body())).toMatchObject({
      topics: [{ topic: 'orders', partitions: [{ partition: 0, errorCode: 0, leaderEpoch: 3, endOffset: 9 }] }],
    })
    expect(replicas.epochs).toEqual([{ topic: 'orders', partition: 0, currentLeaderEpoch: 4, leaderEpoch: 3 }])
  })

  test('an epoch that is not known is no error', async () => {
    const { ask, replicas } = harness()
    replicas.endOutcome = { ok: true, leaderEpoch: -1 as LeaderEpoch, endOffset: -1 }
    const { topics } = await ask(apis.OffsetForLeaderEpoch, 4, body())
    expect(topics[0]!.partitions).toEqual([{ partition: 0, errorCode: 0, leaderEpoch: -1, endOffset: -1 }])
  })

  const reasons: [ReplicaRefusal, number][] = [
    ['unknown-topic-or-partition', 3],
    ['not-leader-or-follower', 6],
    ['storage-error', 56],
    ['fenced-leader-epoch', 74],
    ['unknown-leader-epoch', 75],
  ]

  test.each(reasons)('%s is error %i', async (reason, errorCode) => {
    const { ask, replicas } = harness()
    replicas.endOutcome = { ok: false, reason }
    const { topics } = await ask(apis.OffsetForLeaderEpoch, 4, body(2))
    expect(topics[0]!.partitions).toEqual([{ partition: 2, errorCode, leaderEpoch: -1, endOffset: -1 }])
  })
})

describe('DescribeTopicPartitions', () => {
  const partitions = (count: number) => Array.from({ length: count }, (_, i) => partitionImage(i))

  function cluster(overrides: Record<string, string> = {}) {
    const made = harness({ overrides })
    for (const [name, count] of [
      ['c', 2],
      ['a', 3],
      ['b', 1],
    ] as const) {
      made.coordination.addTopic(name, partitions(count))
    }
    const describeTopics = async (
      names: readonly string[],
      cursor: { topicName: string; partitionIndex: number } | null = null,
      responsePartitionLimit = 2000,
    ) => {
      const topics = names.map((name) => ({ name }))
      return await made.ask(apis.DescribeTopicPartitions, 0, { topics, responsePartitionLimit, cursor })
    }
    return { ...made, describeTopics }
  }

  const shown = (answer: Awaited<ReturnType<ReturnType<typeof cluster>['describeTopics']>>) =>
    answer.topics.map((topic) => `${topic.name} ${topic.partitions.map((each) => each.partitionIndex).join()}`.trim())

  test('describes what was named, sorted and each once', async () => {
    const { describeTopics } = cluster()
    const answer = await describeTopics(['c', 'a', 'c'])
    expect(shown(answer)).toEqual(['a 0,1,2', 'c 0,1'])
    expect(answer.nextCursor).toBe(null)
    expect(answer.topics[0]).toMatchObject({ errorCode: 0, topicId: topicId(1), isInternal: false })
    expect(answer.topics[0]!.topicAuthorizedOperations).toBeGreaterThan(0)
    expect(answer.topics[0]!.partitions[1]).toEqual({
      errorCode: 0,
      partitionIndex: 1,
      leaderId: 1,
      leaderEpoch: 0,
      replicaNodes: [1],
      isrNodes: [1],
      eligibleLeaderReplicas: [],
      lastKnownElr: [],
      offlineReplicas: [],
    })
  })

  test('without names it describes all', async () => {
    const { describeTopics } = cluster()
    expect(shown(await describeTopics([]))).toEqual(['a 0,1,2', 'b 0', 'c 0,1'])
  })

  test.each([1, 2, 3, 4, 5, 6])(
    '%i partitions at a time, every partition comes once and the last answer says so',
    async (limit) => {
      const { describeTopics } = cluster()
      const seen: string[] = []
      let cursor: Parameters<typeof describeTopics>[1] = null
      for (let turn = 0; turn === 0 || cursor !== null; turn++) {
        const answer = await describeTopics([], cursor, limit)
        const found = answer.topics.flatMap(({ name, partitions }) =>
          partitions.map((p) => `${name}${p.partitionIndex}`),
        )
        expect(found.length).toBeLessThanOrEqual(limit)
        seen.push(...found)
        cursor = answer.nextCursor
      }
      expect(seen).toEqual(['a0', 'a1', 'a2', 'b0', 'c0', 'c1'])
    },
  )

  test('a full answer points to the topic that comes next', async () => {
    const { describeTopics } = cluster()
    const answer = await describeTopics([], null, 3)
    expect(shown(answer)).toEqual(['a 0,1,2'])
    expect(answer.nextCursor).toEqual({ topicName: 'b', partitionIndex: 0 })
  })

  test('max.request.partition.size.limit counts too, and a limit below 1 is 1', async () => {
    expect(shown(await cluster({ 'max.request.partition.size.limit': '2' }).describeTopics([]))).toEqual(['a 0,1'])
    expect(shown(await cluster().describeTopics([], null, -5))).toEqual(['a 0'])
  })

  test('what sorts before the cursor’s topic is not described', async () => {
    const { describeTopics } = cluster()
    expect(shown(await describeTopics(['a', 'b', 'c'], { topicName: 'b', partitionIndex: 0 }))).toEqual([
      'b 0',
      'c 0,1',
    ])
    expect(shown(await describeTopics([], { topicName: 'bb', partitionIndex: 1 }))).toEqual(['c 0,1'])
  })

  test('a topic that was named and is not there is an error, and one that only the cursor knew of is left out', async () => {
    const { describeTopics } = cluster()
    const answer = await describeTopics(['never', 'bad/name'])
    expect(answer.topics).toMatchObject([
      { name: 'bad/name', errorCode: 17, partitions: [] },
      { name: 'never', errorCode: 3, partitions: [] },
    ])
    expect(shown(await describeTopics([], { topicName: 'b1', partitionIndex: 0 }))).toEqual(['c 0,1'])
  })

  test.each([
    ['a', -1],
    ['b', 0],
  ])('a cursor at %s-%i, of a request for a, is INVALID_REQUEST', async (topicName, partitionIndex) => {
    const { describeTopics } = cluster()
    const answer = await describeTopics(['a'], { topicName, partitionIndex })
    expect(answer.topics).toMatchObject([{ name: 'a', errorCode: 42, partitions: [] }])
  })

  test('a cursor past a topic’s partitions gives none of them', async () => {
    const { describeTopics } = cluster()
    expect(shown(await describeTopics(['b', 'c'], { topicName: 'b', partitionIndex: 9 }))).toEqual(['b', 'c 0,1'])
  })

  test('a partition whose leader clients cannot reach has none', async () => {
    const { coordination, describeTopics } = cluster()
    coordination.brokers.push(brokerImage(2, { endpoints: [] }))
    const leaders = [2, 3].map((leader, i) => partitionImage(i, { leader: leader as BrokerId }))
    coordination.addTopic('d', leaders)
    expect((await describeTopics(['d'])).topics[0]!.partitions).toMatchObject([
      { errorCode: 72, leaderId: -1 },
      { errorCode: 5, leaderId: -1 },
    ])
  })
})

describe('DescribeLogDirs', () => {
  const log = (topic: string, partition: number) => ({
    topic,
    partition,
    sizeBytes: 100 + partition,
    highWatermark: 5,
    logEndOffset: 5,
  })

  function disks() {
    const made = harness()
    made.logDirectories.directories = [
      { path: '/one', error: undefined, partitions: [log('a', 0), log('b', 0), log('a', 1)], copies: [] },
      { path: '/two', error: new Error('gone'), partitions: [log('c', 0)], copies: [] },
    ]
    return made
  }

  test.each([1, 2, 3, 4, 5])('%i describes every folder with its partitions', async (version) => {
    const { ask } = disks()
    const answer = await ask(apis.DescribeLogDirs, version, { topics: null })
    const partition = (index: number) => ({
      partitionIndex: index,
      partitionSize: 100 + index,
      offsetLag: 0,
      isFutureKey: false,
    })
    expect(answer).toMatchObject({
      errorCode: 0,
      results: [
        {
          errorCode: 0,
          logDir: '/one',
          topics: [
            { name: 'a', partitions: [partition(0), partition(1)] },
            { name: 'b', partitions: [partition(0)] },
          ],
          totalBytes: version >= 4 ? 1000 : -1,
          usableBytes: version >= 4 ? 600 : -1,
          isCordoned: false,
        },
        { errorCode: 56, logDir: '/two', topics: [], totalBytes: -1, usableBytes: -1 },
      ],
    })
  })

  test('only partitions that were asked for, and none of no topics', async () => {
    const { ask } = disks()
    const topics = [
      { topic: 'a', partitions: [1, 5] },
      { topic: 'never', partitions: [0] },
    ]
    const some = await ask(apis.DescribeLogDirs, 4, { topics })
    expect(some.results[0]!.topics).toMatchObject([{ name: 'a', partitions: [{ partitionIndex: 1 }] }])
    expect((await ask(apis.DescribeLogDirs, 4, { topics: [] })).results[0]!.topics).toEqual([])
  })

  test('a disk that does not tell its size is a storage error', async () => {
    const { ask, logDirectories, logLines } = disks()
    logDirectories.fault = new Error('EIO')
    expect((await ask(apis.DescribeLogDirs, 4, { topics: null })).results.map((each) => each.errorCode)).toEqual([
      56, 56,
    ])
    expect(logLines).toMatchObject([{ level: 'warn', fields: { directory: '/one' } }])
  })
})

describe('DescribeProducers', () => {
  test('tells what a partition knows of each producer', async () => {
    const { ask, replicas } = harness()
    const producer = {
      producerId: 7 as ProducerId,
      producerEpoch: 2 as ProducerEpoch,
      lastSequence: 41,
      lastTimestampMs: 123,
    }
    replicas.producers.set('orders-1', { ok: true, producers: [producer] })
    replicas.producers.set('orders-2', { ok: false, reason: 'storage-error' })
    const body = { topics: [{ name: 'orders', partitionIndexes: [1, 2, 3, 1] }] }
    const { topics } = await ask(apis.DescribeProducers, 0, body)
    expect(topics).toMatchObject([{ name: 'orders' }])
    expect(topics[0]!.partitions).toMatchObject([
      {
        partitionIndex: 1,
        errorCode: 0,
        errorMessage: null,
        activeProducers: [
          {
            producerId: 7,
            producerEpoch: 2,
            lastSequence: 41,
            lastTimestamp: 123,
            coordinatorEpoch: -1,
            currentTxnStartOffset: -1,
          },
        ],
      },
      { partitionIndex: 2, errorCode: 56, activeProducers: [] },
      { partitionIndex: 3, errorCode: 3, activeProducers: [] },
    ])
    expect(topics[0]!.partitions[2]!.errorMessage).not.toBe(null)
  })

  test('a name that no topic can have is INVALID_TOPIC_EXCEPTION', async () => {
    const { ask } = harness()
    const body = { topics: [{ name: 'bad/name', partitionIndexes: [0] }] }
    const { topics } = await ask(apis.DescribeProducers, 0, body)
    expect(topics[0]!.partitions).toMatchObject([{ partitionIndex: 0, errorCode: 17 }])
  })
})

describe('DescribeQuorum', () => {
  const body = (topicName = '__cluster_metadata', partitionIndex = 0) => ({
    topics: [{ topicName, partitions: [{ partitionIndex }] }],
  })

  test.each([0, 1, 2])('%i tells leader, voters and offsets', async (version) => {
    const { ask, time } = harness()
    const answer = await ask(apis.DescribeQuorum, version, body())
    expect(answer).toMatchObject({
      errorCode: 0,
      topics: [
        {
          topicName: '__cluster_metadata',
          partitions: [
            {
              partitionIndex: 0,
              errorCode: 0,
              leaderId: 1,
              leaderEpoch: 4,
              highWatermark: 8,
              currentVoters: [
                {
                  replicaId: 1,
                  logEndOffset: 9,
                  lastFetchTimestamp: version >= 1 ? time.nowMs : -1,
                  lastCaughtUpTimestamp: version >= 1 ? time.nowMs : -1,
                },
              ],
              observers: [],
            },
          ],
        },
      ],
    })
    if (version === 2) {
      expect(answer.topics[0]!.partitions[0]!.currentVoters[0]!.replicaDirectoryId).toBe(topicId(70))
      expect(answer.nodes).toEqual([{ nodeId: 1, listeners: [] }])
    }
  })

  test.each([
    ['orders', 0],
    ['__cluster_metadata', 1],
  ])('%s-%i is not the metadata log', async (topicName, partitionIndex) => {
    const { ask } = harness()
    expect(await ask(apis.DescribeQuorum, 2, body(topicName, partitionIndex))).toMatchObject({
      errorCode: 0,
      topics: [{ topicName, partitions: [{ partitionIndex, errorCode: 3 }] }],
    })
  })

  test('who asks for more than the metadata log is told about nothing', async () => {
    const { ask } = harness()
    const log = { topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }
    const both = { topics: [log, { topicName: 'orders', partitions: [{ partitionIndex: 0 }] }] }
    const { topics } = await ask(apis.DescribeQuorum, 2, both)
    expect(topics.flatMap(({ partitions }) => partitions).map(({ errorCode }) => errorCode)).toEqual([3, 3])
    const none = { topics: [{ ...log, partitions: [] }] }
    expect((await ask(apis.DescribeQuorum, 2, none)).topics).toMatchObject([{ partitions: [] }])
  })

  test('tells the leader, how far the others are and where voters listen, when another node leads', async () => {
    const { ask, coordination, time } = harness()
    const [here] = coordination.quorumFacts.voters
    const member = { ...here!, id: 2 as BrokerId, endpoint: '[::1]:9093', logEndOffset: 7, lastContactMs: 20 }
    coordination.quorumFacts = {
      ...coordination.quorumFacts,
      leaderId: 3 as BrokerId,
      voters: [member],
      observers: [{ ...member, lastContactMs: null, lastCaughtUpMs: null }],
    }
    const answer = await ask(apis.DescribeQuorum, 2, body())
    const state = { replicaId: 2, logEndOffset: 7 }
    expect(answer.topics[0]!.partitions[0]).toMatchObject({
      leaderId: 3,
      currentVoters: [{ ...state, lastFetchTimestamp: time.nowMs - 20, lastCaughtUpTimestamp: time.nowMs }],
      observers: [{ ...state, lastFetchTimestamp: -1, lastCaughtUpTimestamp: -1 }],
    })
    expect(answer.nodes).toEqual([{ nodeId: 2, listeners: [{ name: 'CONTROLLER', host: '::1', port: 9093 }] }])
  })

  test('tells where controllers without a vote listen, as they registered, and nothing of brokers', async () => {
    const { ask, coordination } = harness()
    const [here] = coordination.quorumFacts.voters
    const follower = (id: number) => ({ ...here!, id: id as BrokerId, endpoint: null })
    coordination.quorumFacts = { ...coordination.quorumFacts, observers: [follower(4), follower(5)] }
    const listener = { name: 'CONTROLLER', host: 'four', port: 9093, securityProtocol: 'PLAINTEXT' as const }
    const controller = (id: number) => ({
      controllerId: id as BrokerId,
      incarnationId: topicId(80),
      endpoints: [listener],
      features: [],
    })
    coordination.controllers = [controller(1), controller(4), controller(6)]
    const { nodes } = await ask(apis.DescribeQuorum, 2, body())
    expect(nodes).toEqual([
      { nodeId: 1, listeners: [] },
      { nodeId: 4, listeners: [{ name: 'CONTROLLER', host: 'four', port: 9093 }] },
    ])
  })

  test('is REQUEST_TIMED_OUT when no leader answers', async () => {
    const { ask, coordination } = harness()
    coordination.fault = new CoordinationError('timed-out', 'No leader')
    expect(await ask(apis.DescribeQuorum, 2, body())).toMatchObject({ errorCode: 7, topics: [] })
  })
})

describe('ListConfigResources', () => {
  test('0 lists client metrics only, of which there are none', async () => {
    const { ask, coordination } = harness()
    coordination.addTopic('orders')
    expect(await ask(apis.ListConfigResources, 0, {})).toMatchObject({ errorCode: 0, configResources: [] })
  })

  test('1 lists what settings can be of, or only some kinds of it', async () => {
    const { ask, coordination } = harness()
    coordination.addTopic('orders')
    coordination.brokers.push(brokerImage(2, { fenced: true }))
    const list = async (...resourceTypes: number[]) =>
      (await ask(apis.ListConfigResources, 1, { resourceTypes })).configResources.map(
        (each) => `${each.resourceType} ${each.resourceName}`,
      )
    expect(await list()).toEqual(['8 1', '4 1', '2 orders'])
    expect(await list(2, 2)).toEqual(['2 orders'])
    expect(await list(16, 32)).toEqual([])
  })

  test('an unknown kind is UNSUPPORTED_VERSION', async () => {
    const { ask } = harness()
    expect(await ask(apis.ListConfigResources, 1, { resourceTypes: [2, 99] })).toMatchObject({
      errorCode: 35,
      configResources: [],
    })
  })
})
