import { describe, expect, test } from 'vitest'
import type { BrokerId } from '../../../src/base/index.ts'
import { CoordinationError } from '../../../src/coordination/index.ts'
import { apis, ErrorCode } from '../../../src/protocol/index.ts'
import { brokerImage, harness, partitionImage, topicId } from './harness.ts'

const noController = new CoordinationError('timed-out', 'No controller')

describe('ElectLeaders', () => {
  const asked = { topicPartitions: [{ topic: 'orders', partitions: [0, 1] }], timeoutMs: 1000 }

  test.each([0, 1, 2])(
    '%i asks the controller for preferred leaders, and answers partition by partition',
    async (version) => {
      const { ask, coordination } = harness()
      coordination.answers.electLeaders = ({ partitions }) =>
        partitions!.map((each) =>
          each.partition === 0
            ? { ...each, ok: true }
            : { ...each, ok: false, reason: 'election-not-needed', message: 'It leads already' },
        )
      expect(await ask(apis.ElectLeaders, version, asked)).toMatchObject({
        errorCode: 0,
        replicaElectionResults: [
          {
            topic: 'orders',
            partitionResult: [
              { partitionId: 0, errorCode: 0, errorMessage: null },
              { partitionId: 1, errorCode: ErrorCode.ELECTION_NOT_NEEDED, errorMessage: 'It leads already' },
            ],
          },
        ],
      })
      expect(coordination.lastAsked).toEqual({
        electionType: 'preferred',
        partitions: [
          { topic: 'orders', partition: 0 },
          { topic: 'orders', partition: 1 },
        ],
      })
    },
  )

  test('null is all partitions, and 1 an unclean election', async () => {
    const { ask, coordination } = harness()
    coordination.answers.electLeaders = () => [{ topic: 'orders', partition: 3, ok: true }]
    const answer = await ask(apis.ElectLeaders, 2, { electionType: 1, topicPartitions: null })
    expect(answer.replicaElectionResults).toMatchObject([{ topic: 'orders', partitionResult: [{ partitionId: 3 }] }])
    expect(coordination.lastAsked).toEqual({ electionType: 'unclean', partitions: null })
  })

  test('another kind of election is an invalid request, and nobody is asked', async () => {
    const { ask, coordination } = harness()
    const partition = { errorCode: 42, errorMessage: 'Unknown election type 2' }
    expect(await ask(apis.ElectLeaders, 1, { ...asked, electionType: 2 })).toMatchObject({
      errorCode: 42,
      replicaElectionResults: [{ topic: 'orders', partitionResult: [partition, partition] }],
    })
    expect(coordination.lastAsked).toBeUndefined()
  })

  test('is REQUEST_TIMED_OUT, for the whole and each partition, without a controller', async () => {
    const { ask, coordination } = harness()
    coordination.fault = noController
    expect(await ask(apis.ElectLeaders, 2, asked)).toMatchObject({
      errorCode: 7,
      replicaElectionResults: [{ topic: 'orders', partitionResult: [{ errorCode: 7 }, { errorCode: 7 }] }],
    })
  })
})

describe('AlterPartitionReassignments', () => {
  const topics = [
    { name: 'orders', partitions: [{ partitionIndex: 0, replicas: [2, 3] }] },
    { name: 'bills', partitions: [{ partitionIndex: 1, replicas: null }] },
  ]

  test.each([0, 1])('%i hands each partition on, null as a cancellation', async (version) => {
    const { ask, coordination } = harness()
    coordination.answers.alterPartitionReassignments = ({ requests }) =>
      requests.map(({ replicas }) =>
        replicas === null ? { ok: false, reason: 'no-reassignment-in-progress', message: 'None' } : { ok: true },
      )
    expect(await ask(apis.AlterPartitionReassignments, version, { topics })).toMatchObject({
      errorCode: 0,
      errorMessage: null,
      responses: [
        { name: 'orders', partitions: [{ partitionIndex: 0, errorCode: 0, errorMessage: null }] },
        {
          name: 'bills',
          partitions: [{ partitionIndex: 1, errorCode: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, errorMessage: 'None' }],
        },
      ],
    })
    expect(coordination.lastAsked).toEqual({
      requests: [
        { topic: 'orders', partition: 0, replicas: [2, 3] },
        { topic: 'bills', partition: 1, replicas: null },
      ],
      allowReplicationFactorChange: true,
    })
  })

  test('1 says back whether the number of replicas may change', async () => {
    const { ask } = harness()
    const request = { topics, allowReplicationFactorChange: false }
    expect(await ask(apis.AlterPartitionReassignments, 1, request)).toMatchObject({
      allowReplicationFactorChange: false,
    })
  })
})

describe('ListPartitionReassignments', () => {
  const ongoing = (topic: string, partition: number) => ({
    topic,
    partition,
    replicas: [1, 2] as BrokerId[],
    addingReplicas: [2] as BrokerId[],
    removingReplicas: [1] as BrokerId[],
  })

  test('tells those that run, by topic', async () => {
    const { ask, coordination } = harness()
    coordination.answers.listPartitionReassignments = () => [ongoing('a', 0), ongoing('b', 1), ongoing('a', 2)]
    const partition = { replicas: [1, 2], addingReplicas: [2], removingReplicas: [1] }
    const answer = await ask(apis.ListPartitionReassignments, 0, {})
    expect(answer).toMatchObject({ errorCode: 0, errorMessage: null })
    expect(answer.topics).toEqual([
      {
        name: 'a',
        partitions: [
          { partitionIndex: 0, ...partition },
          { partitionIndex: 2, ...partition },
        ],
      },
      { name: 'b', partitions: [{ partitionIndex: 1, ...partition }] },
    ])
    expect(coordination.lastAsked).toBeNull()
  })

  test('asks for a partition that is named twice once', async () => {
    const { ask, coordination } = harness()
    await ask(apis.ListPartitionReassignments, 0, { topics: [{ name: 'a', partitionIndexes: [0, 1, 0] }] })
    expect(coordination.lastAsked).toEqual([
      { topic: 'a', partition: 0 },
      { topic: 'a', partition: 1 },
    ])
  })
})

describe('UpdateFeatures', () => {
  const update = { feature: 'metadata.version', maxVersionLevel: 1 }

  test.each([
    [0, { allowDowngrade: false }, 'upgrade'],
    [0, { allowDowngrade: true }, 'safe-downgrade'],
    [1, { upgradeType: 2 }, 'safe-downgrade'],
    [2, { upgradeType: 3 }, 'unsafe-downgrade'],
  ])('%i %j is a %s', async (version, fields, upgradeType) => {
    const { ask, coordination } = harness()
    const validateOnly = version >= 1
    const request = { featureUpdates: [{ ...update, ...fields }], ...(validateOnly ? { validateOnly } : {}) }
    expect(await ask(apis.UpdateFeatures, version, request)).toMatchObject({ errorCode: 0, errorMessage: null })
    expect(coordination.lastAsked).toEqual([{ feature: 'metadata.version', level: 1, upgradeType }])
    expect(coordination.validateOnly).toBe(validateOnly)
  })

  test.each([0, 1, 2])('%i refuses all for the one that can not be', async (version) => {
    const { ask, coordination } = harness()
    coordination.answers.updateFeatures = () => ({
      ok: false,
      feature: 'unheard.of',
      reason: 'invalid-update-version',
      message: 'Unknown',
    })
    const answer = await ask(apis.UpdateFeatures, version, { featureUpdates: [update] })
    const refused = { errorCode: ErrorCode.INVALID_UPDATE_VERSION, errorMessage: expect.stringContaining('unheard.of') }
    expect(answer).toMatchObject(refused)
    expect(answer.results).toEqual([])
  })

  test('a kind of update that there is none of is refused, and nobody is asked', async () => {
    const { ask, coordination } = harness()
    const featureUpdates = [{ ...update, upgradeType: 7 }]
    const answer = await ask(apis.UpdateFeatures, 2, { featureUpdates })
    expect(answer.errorCode).toBe(ErrorCode.INVALID_UPDATE_VERSION)
    expect(coordination.lastAsked).toBeUndefined()
  })
})

test('UnregisterBroker says whether the broker was registered', async () => {
  const { ask, coordination } = harness()
  expect(await ask(apis.UnregisterBroker, 0, { brokerId: 3 })).toMatchObject({ errorCode: 0, errorMessage: null })
  expect(coordination.lastAsked).toBe(3)
  coordination.answers.unregisterBroker = () => ({ ok: false, reason: 'broker-not-registered', message: 'Who?' })
  expect(await ask(apis.UnregisterBroker, 0, { brokerId: 3 })).toMatchObject({
    errorCode: ErrorCode.BROKER_ID_NOT_REGISTERED,
    errorMessage: 'Who?',
  })
})

describe('Voters of the quorum', () => {
  const voter = { clusterId: null, voterId: 4, voterDirectoryId: topicId(9) }
  const listeners = [
    { name: 'CONTROLLER', host: '::1', port: 9093 },
    { name: 'OTHER', host: 'b', port: 1 },
  ]

  test.each([0, 1])('AddRaftVoter %i takes the first listener', async (version) => {
    const { ask, coordination } = harness()
    const answer = await ask(apis.AddRaftVoter, version, { ...voter, timeoutMs: 1000, listeners })
    expect(answer).toMatchObject({ errorCode: 0, errorMessage: null })
    expect(coordination.lastAsked).toEqual({ id: 4, directoryId: topicId(9), endpoint: '[::1]:9093' })
  })

  test('AddRaftVoter without a listener is an invalid request', async () => {
    const { ask } = harness()
    const answer = await ask(apis.AddRaftVoter, 0, { ...voter, timeoutMs: 1000, listeners: [] })
    expect(answer.errorCode).toBe(ErrorCode.INVALID_REQUEST)
  })

  test.each([
    ['busy', ErrorCode.REQUEST_TIMED_OUT],
    ['timeout', ErrorCode.REQUEST_TIMED_OUT],
    ['duplicate-voter', ErrorCode.DUPLICATE_VOTER],
    ['voter-not-found', ErrorCode.VOTER_NOT_FOUND],
    ['last-voter', ErrorCode.INVALID_REQUEST],
    ['no-transport', ErrorCode.UNSUPPORTED_VERSION],
  ] as const)('%s is told', async (reason, errorCode) => {
    const { ask, coordination } = harness()
    coordination.answers.removeVoter = () => ({ ok: false, reason, message: 'Why' })
    expect(await ask(apis.RemoveRaftVoter, 0, voter)).toMatchObject({ errorCode, errorMessage: 'Why' })
    expect(coordination.lastAsked).toEqual({ id: 4, directoryId: topicId(9) })
  })

  test('a request for another cluster is refused', async () => {
    const { ask, coordination } = harness()
    const request = { ...voter, clusterId: 'another' }
    const errorCode = ErrorCode.INCONSISTENT_CLUSTER_ID
    expect(await ask(apis.RemoveRaftVoter, 0, request)).toMatchObject({ errorCode })
    expect(await ask(apis.AddRaftVoter, 0, { ...request, timeoutMs: 1, listeners })).toMatchObject({ errorCode })
    expect(coordination.lastAsked).toBeUndefined()
  })
})

describe('Several brokers', () => {
  test('offline replicas are those of brokers that are fenced, gone or not on the listener, or whose folder failed', async () => {
    const { ask, coordination } = harness()
    const directory = topicId(50)
    const elsewhere = [{ name: 'OTHER', host: 'b', port: 1, securityProtocol: 'PLAINTEXT' as const }]
    coordination.brokers.push(
      brokerImage(2, { fenced: true }),
      brokerImage(3, { endpoints: elsewhere }),
      brokerImage(4, { logDirs: [topicId(51)] }),
      brokerImage(5, { logDirs: [directory] }),
    )
    const replicas = [1, 2, 3, 4, 5, 6] as BrokerId[]
    const directories = replicas.map((id) => (id === 1 ? topicId(-1) : directory))
    coordination.addTopic('orders', [
      partitionImage(0, { replicas, directories, elr: [2 as BrokerId], lastKnownElr: [3 as BrokerId] }),
    ])
    const metadata = await ask(apis.Metadata, 12, { topics: [{ name: 'orders' }] })
    expect(metadata.topics[0]!.partitions[0]).toMatchObject({ leaderId: 1, offlineReplicas: [2, 3, 4, 6] })
    const described = await ask(apis.DescribeTopicPartitions, 0, { topics: [{ name: 'orders' }], cursor: null })
    expect(described.topics[0]!.partitions[0]).toMatchObject({
      offlineReplicas: [2, 3, 4, 6],
      eligibleLeaderReplicas: [2],
      lastKnownElr: [3],
    })
  })
})

test('AlterReplicaLogDirs moves what is known, and tells why it does not the rest', async () => {
  const { ask, coordination, logDirectories } = harness()
  coordination.addTopic('orders', [partitionImage(0), partitionImage(1)])
  logDirectories.directories = [
    { path: '/a', error: undefined, partitions: [], copies: [] },
    { path: '/broken', error: new Error('EIO'), partitions: [], copies: [] },
  ]
  const ends = async (path: string, partitions: number[], name = 'orders') => {
    const { results } = await ask(apis.AlterReplicaLogDirs, 2, { dirs: [{ path, topics: [{ name, partitions }] }] })
    return results.flatMap((topic) => topic.partitions.map(({ errorCode }) => errorCode))
  }
  expect(await ends('/a', [0, 1, 2])).toEqual([0, 0, 3])
  expect(logDirectories.moved).toEqual(['orders-0 /a', 'orders-1 /a'])
  expect(await ends('/broken', [0], 'missing')).toEqual([ErrorCode.KAFKA_STORAGE_ERROR])
  expect(await ends('/c', [0], 'missing')).toEqual([ErrorCode.LOG_DIR_NOT_FOUND])
  const refusals = {
    there: ErrorCode.NONE,
    'not-here': ErrorCode.REPLICA_NOT_AVAILABLE,
    'directory-not-found': ErrorCode.LOG_DIR_NOT_FOUND,
    'directory-offline': ErrorCode.KAFKA_STORAGE_ERROR,
    'partition-offline': ErrorCode.KAFKA_STORAGE_ERROR,
    'name-too-long': ErrorCode.INVALID_TOPIC_EXCEPTION,
  } as const
  for (const [answer, code] of Object.entries(refusals)) {
    logDirectories.moveAnswer = answer as keyof typeof refusals
    expect(await ends('/a', [0])).toEqual([code])
  }
})

test('AlterReplicaLogDirs asks for the last folder that is named for a partition, once', async () => {
  const { ask, coordination, logDirectories } = harness()
  coordination.addTopic('orders', [partitionImage(0)])
  const dirs = ['/a', '/b', '/a'].map((path) => ({ path, topics: [{ name: 'orders', partitions: [0, 0] }] }))
  const { results } = await ask(apis.AlterReplicaLogDirs, 2, { dirs: dirs.slice(0, 2) })
  expect(results).toMatchObject([{ topicName: 'orders', partitions: [{ partitionIndex: 0, errorCode: 0 }] }])
  expect(logDirectories.moved).toEqual(['orders-0 /b'])
})
