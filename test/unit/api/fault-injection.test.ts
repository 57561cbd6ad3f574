import { describe, expect, test } from 'vitest'
import { type FaultyApi, servedApis } from '../../../src/api/index.ts'
import { ConfigError } from '../../../src/config/index.ts'
import { type Api, apis, buildBatch, ErrorCode } from '../../../src/protocol/index.ts'
import { fitToVersion, versionsOf } from '../../oracle/versions.ts'
import { harness, topicId } from './harness.ts'

const records = buildBatch({ records: [{ timestamp: 1, value: Buffer.from('x') }] })
const orders = { name: 'orders', topic: 'orders', topicId: topicId(0) }
const other = { name: 'other', topic: 'other', topicId: topicId(1) }
const both = [orders, other]
const resources = both.map(({ name }) => ({
  resourceType: 2,
  resourceName: name,
  configurationKeys: null,
  configs: [],
}))

/** Of each API a request that names both topics, and both groups where it names groups; fields of all versions. */
const requests: Readonly<Record<FaultyApi, Record<string, unknown>>> = {
  Produce: {
    acks: 1,
    timeoutMs: 1000,
    topicData: both.map(({ name }) => ({ name, partitionData: [{ index: 0, records: Buffer.from(records) }] })),
  },
  Fetch: {
    maxWaitMs: 0,
    minBytes: 1,
    topics: both.map((each) => ({ ...each, partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1000 }] })),
    forgottenTopicsData: [],
  },
  ListOffsets: {
    replicaId: -1,
    topics: both.map(({ name }) => ({ name, partitions: [{ partitionIndex: 0, timestamp: -1n }] })),
  },
  Metadata: { topics: both.map(({ name }) => ({ name })) },
  OffsetCommit: {
    groupId: 'readers',
    memberId: '',
    topics: both.map((each) => ({
      ...each,
      partitions: [{ partitionIndex: 0, committedOffset: 1, committedMetadata: '' }],
    })),
  },
  OffsetFetch: {
    groupId: 'readers',
    topics: both.map(({ name }) => ({ name, partitionIndexes: [0] })),
    groups: ['readers', 'writers'].map((groupId) => ({
      groupId,
      topics: both.map((each) => ({ ...each, partitionIndexes: [0] })),
    })),
  },
  FindCoordinator: { key: 'readers', keyType: 0, coordinatorKeys: ['readers', 'writers'] },
  JoinGroup: { groupId: 'readers', sessionTimeoutMs: 10_000, memberId: '', protocolType: 'consumer', protocols: [] },
  Heartbeat: { groupId: 'readers', generationId: 1, memberId: 'm' },
  LeaveGroup: { groupId: 'readers', memberId: 'm', members: [{ memberId: 'm' }] },
  SyncGroup: { groupId: 'readers', generationId: 1, memberId: 'm', assignments: [] },
  DescribeGroups: { groups: ['readers', 'writers'] },
  ListGroups: { statesFilter: [], typesFilter: [] },
  ApiVersions: { clientSoftwareName: 'test', clientSoftwareVersion: '1' },
  CreateTopics: {
    topics: both.map(({ name }) => ({
      name: `new-${name}`,
      numPartitions: 1,
      replicationFactor: 1,
      assignments: [],
      configs: [],
    })),
  },
  DeleteTopics: { topics: both.map(({ name }) => ({ name })), topicNames: ['orders', 'other'], timeoutMs: 1000 },
  DeleteRecords: {
    topics: both.map(({ name }) => ({ name, partitions: [{ partitionIndex: 0, offset: 1 }] })),
    timeoutMs: 1000,
  },
  InitProducerId: { transactionalId: null, transactionTimeoutMs: 1000 },
  OffsetForLeaderEpoch: {
    topics: both.map(({ topic }) => ({ topic, partitions: [{ partition: 0, leaderEpoch: 0 }] })),
  },
  DescribeConfigs: { resources },
  AlterConfigs: { resources, validateOnly: false },
  IncrementalAlterConfigs: { resources, validateOnly: false },
  DescribeLogDirs: { topics: both.map(({ topic }) => ({ topic, partitions: [0] })) },
  CreatePartitions: {
    topics: both.map(({ name }) => ({ name, count: 2, assignments: null })),
    timeoutMs: 1000,
    validateOnly: false,
  },
  DeleteGroups: { groupsNames: ['readers', 'writers'] },
  OffsetDelete: { groupId: 'readers', topics: both.map(({ name }) => ({ name, partitions: [{ partitionIndex: 0 }] })) },
  DescribeQuorum: { topics: [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }] },
  DescribeCluster: { includeClusterAuthorizedOperations: false },
  DescribeProducers: { topics: both.map(({ name }) => ({ name, partitionIndexes: [0] })) },
  ListConfigResources: { resourceTypes: [] },
  DescribeTopicPartitions: { topics: both.map(({ name }) => ({ name })), responsePartitionLimit: 100, cursor: null },
}

/** An error that no handler gives for these requests. */
const error = 'BROKER_NOT_AVAILABLE'
const errorCode = ErrorCode.BROKER_NOT_AVAILABLE

const versions = servedApis.flatMap(({ api }) =>
  versionsOf(api).map((version) => [api.name as FaultyApi, version] as const),
)

function broker() {
  const made = harness()
  for (const { name } of both) made.coordination.addTopic(name)
  made.groups.answers.offsetFetch = ['readers', 'writers'].map((groupId) => ({
    ok: true,
    groupId,
    topics: both.map(({ topic }) => ({
      topic,
      partitions: [{ partition: 0, offset: 5, leaderEpoch: -1, metadata: 'm' }],
    })),
  }))
  made.groups.answers.offsetDelete = {
    ok: true,
    topics: both.map(({ topic }) => ({ topic, partitions: [{ partition: 0, reason: null }] })),
  }
  const { faults } = made.dispatcher
  const ask = async (name: FaultyApi, version: number, body = requests[name], clientId = 'test'): Promise<unknown> => {
    const api: Api = apis[name]
    return await made.ask(api, version, fitToVersion(api.request, version, body) as never, { clientId })
  }
  const send = (name: FaultyApi, version: number, body = requests[name], options = {}) => {
    const api: Api = apis[name]
    return made.send(api, version, fitToVersion(api.request, version, body) as never, options)
  }
  return { ...made, faults, ask, send }
}

/** Error codes in an answer, each behind the names of the topics and groups around it. */
function errorsIn(answer: unknown, path: readonly string[] = []): string[] {
  if (Array.isArray(answer)) return answer.flatMap((each) => errorsIn(each, path))
  if (typeof answer !== 'object' || answer === null || Buffer.isBuffer(answer)) return []
  const { name, topic, resourceName, groupId, key, topicId: id, errorCode: code } = answer as Record<string, unknown>
  const byId = both.find((each) => each.topicId === id)?.name
  const label =
    byId ?? [name, topic, resourceName, groupId, key].find((each) => typeof each === 'string' && each !== '')
  const inner = label === undefined ? path : [...path, String(label)]
  const own = code === errorCode ? [inner.join('/')] : []
  return [...own, ...Object.values(answer).flatMap((each) => errorsIn(each, inner))]
}

test('every API that is served has a request here', () => {
  expect(Object.keys(requests).sort()).toEqual(servedApis.map(({ api }) => api.name).sort())
})

describe.each(versions)('%s %i', (name, version) => {
  test('fails once, as a whole, with the error that was asked for', async () => {
    const { faults, ask } = broker()
    const fault = faults.failNext({ api: name, error })
    expect(errorsIn(await ask(name, version)).length).toBeGreaterThan(0)
    expect(fault.hits).toBe(1)
    expect(faults).toHaveProperty('isActive', false)
    expect(errorsIn(await ask(name, version))).toEqual([])
    expect(fault.hits).toBe(1)
  })

  test('is delayed, and closes its connection', async () => {
    const { faults, ask, send, time } = broker()
    faults.delay({ api: name }, 50)
    let isAnswered = false
    const answered = ask(name, version).then(() => {
      isAnswered = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(isAnswered).toBe(false)
    time.advance(50)
    await answered
    faults.clear()
    faults.disconnect({ api: name, times: 1 })
    expect(await send(name, version)).toHaveProperty('close')
    faults.disconnect({ api: name, times: 1 }, { when: 'after' })
    expect(await send(name, version)).toHaveProperty('close')
  })
})

const names = (answer: unknown) => errorsIn(answer).sort()
const textOf = (name: FaultyApi) =>
  JSON.stringify(requests[name], (_key, value) => (typeof value === 'bigint' ? 0 : value))
const byTopic = versions.filter(([name]) => /"(?:new-)?other"/.test(textOf(name)))
const byGroup = versions.filter(([name]) => textOf(name).includes('readers'))

describe.each(byTopic)('%s %i about two topics', (name, version) => {
  test('fails for the one that is named and is carried out for the other', async () => {
    const { faults, ask } = broker()
    const topic = name === 'CreateTopics' ? 'new-orders' : 'orders'
    const fault = faults.failNext({ topic, error })
    const errors = names(await ask(name, version))
    if (name === 'DescribeLogDirs') expect(errors).toHaveLength(1)
    else expect(errors.map((each) => each.split('/').at(-1))).toEqual(errors.map(() => topic))
    expect(errors.length).toBeGreaterThan(0)
    expect(fault.hits).toBe(1)
    faults.failNext({ topic: 'third', error })
    expect(names(await ask(name, version))).toEqual([])
  })
})

describe.each(byGroup)('%s %i about a group', (name, version) => {
  test('fails for the one that is named', async () => {
    const { faults, ask } = broker()
    faults.failNext({ group: 'strangers', error })
    expect(names(await ask(name, version))).toEqual([])
    faults.clear()
    faults.failNext({ group: 'readers', error })
    const errors = names(await ask(name, version))
    expect(errors.length).toBeGreaterThan(0)
    expect(errors.filter((each) => each.includes('writers'))).toEqual([])
  })
})

describe('a fault', () => {
  test('is for clients of one name, for as many requests as it says', async () => {
    const { faults, ask } = broker()
    const fault = faults.failNext({ clientId: 'shop', error, times: 2 })
    expect(errorsIn(await ask('Heartbeat', 4))).toEqual([])
    for (const wanted of [1, 1, 0]) expect(errorsIn(await ask('Heartbeat', 4, undefined, 'shop'))).toHaveLength(wanted)
    expect(fault.hits).toBe(2)
  })

  test('that is removed, or cleared, is for nobody', async () => {
    const { faults, ask } = broker()
    const first = faults.failNext({ error })
    first.remove()
    first.remove()
    faults.failNext({ error })
    faults.clear()
    expect(errorsIn(await ask('Metadata', 9))).toEqual([])
    expect(faults).toHaveProperty('isActive', false)
  })

  test('keeps a failed append out of the log, and the rest of its request in', async () => {
    const { faults, ask, replicas } = broker()
    faults.failNext({ api: 'Produce', topic: 'orders', error: 'NOT_LEADER_OR_FOLLOWER' })
    await ask('Produce', 9)
    expect(replicas.appends.map(({ topic }) => topic)).toEqual(['other'])
  })

  test('of two topics in one request are both made', async () => {
    const { faults, ask, replicas } = broker()
    faults.failNext({ topic: 'orders', error })
    faults.failNext({ topic: 'other', error })
    expect(names(await ask('Produce', 9))).toEqual(['orders', 'other'])
    expect(replicas.appends).toEqual([])
  })

  test('closes the connection of a Produce that has no answer', async () => {
    const { faults, send, replicas } = broker()
    faults.failNext({ api: 'Produce', topic: 'orders', error })
    expect(await send('Produce', 9, { ...requests.Produce, acks: 0 })).toHaveProperty('close')
    expect(replicas.appends.map(({ topic }) => topic)).toEqual(['other'])
    expect(await send('Produce', 9, { ...requests.Produce, acks: 0 })).toBe('none')
  })

  test('after the handling loses the answer only; before it nothing is done', async () => {
    const { faults, send, replicas } = broker()
    faults.disconnect({ api: 'Produce', times: 1 })
    await send('Produce', 9)
    expect(replicas.appends).toHaveLength(0)
    faults.disconnect({ api: 'Produce', times: 1 }, { when: 'after' })
    await send('Produce', 9)
    expect(replicas.appends).toHaveLength(2)
    faults.disconnect({ api: 'Fetch', times: 1 }, { when: 'after' })
    await send('Fetch', 9)
    expect(replicas.released).toBe(1)
  })

  test('in all topics of a Metadata that names none', async () => {
    const { faults, ask } = broker()
    faults.failNext({ api: 'Metadata', error })
    expect(names(await ask('Metadata', 9, { topics: null }))).toEqual(['orders', 'other'])
    faults.failNext({ api: 'Metadata', topic: 'orders', error })
    expect(names(await ask('Metadata', 9, { topics: null }))).toEqual([])
  })

  test('leaves the brokers in a Metadata answer', async () => {
    const { faults, ask } = broker()
    faults.failNext({ api: 'Metadata', error: 'LEADER_NOT_AVAILABLE' })
    expect(await ask('Metadata', 9)).toMatchObject({ brokers: [{ nodeId: 1 }] })
  })
})

describe('a fetch in a session', () => {
  const asked = (changes: Record<string, unknown>) => ({ ...requests.Fetch, ...changes })
  const session = async (ask: ReturnType<typeof broker>['ask'], version: number) =>
    (await ask('Fetch', version, asked({ sessionId: 0, sessionEpoch: 0 }))) as { sessionId: number }

  test.each([7, 12, 13, 18])(
    'version %i fails for a topic that it does not name again, and goes on',
    async (version) => {
      const { faults, ask } = broker()
      const { sessionId } = await session(ask, version)
      const fault = faults.failNext({ topic: 'orders', error })
      expect(names(await ask('Fetch', version, asked({ sessionId, sessionEpoch: 1, topics: [] })))).toEqual(['orders'])
      expect(fault.hits).toBe(1)
      faults.failNext({ api: 'Fetch', error })
      expect(names(await ask('Fetch', version, asked({ sessionId, sessionEpoch: 2, topics: [] })))).toEqual([
        'orders',
        'other',
      ])
      expect(await ask('Fetch', version, asked({ sessionId, sessionEpoch: 3, topics: [] }))).toMatchObject({
        errorCode: 0,
        sessionId,
      })
    },
  )

  test('has an error of the session at the top', async () => {
    const { faults, ask } = broker()
    const { sessionId } = await session(ask, 12)
    faults.failNext({ api: 'Fetch', error: 'FETCH_SESSION_ID_NOT_FOUND' })
    const answer = await ask('Fetch', 12, asked({ sessionId, sessionEpoch: 1, topics: [] }))
    expect(answer).toMatchObject({ errorCode: ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses: [] })
  })
})

describe('a delay', () => {
  test('ends with its removal, and with the connection', async () => {
    const { faults, send } = broker()
    const fault = faults.delay({ api: 'Heartbeat' }, 1_000_000)
    const removed = send('Heartbeat', 4)
    fault.remove()
    await removed
    faults.delay({ api: 'Heartbeat' }, 1_000_000)
    const controller = new AbortController()
    const aborted = send('Heartbeat', 4, undefined, { connection: { signal: controller.signal } })
    controller.abort()
    await aborted
    const late = send('Heartbeat', 4, undefined, { connection: { signal: controller.signal } })
    await late
  })
})

test('what can not be made is refused', () => {
  const { faults } = broker()
  for (const wrong of [
    () => faults.failNext({ error: 'NO_SUCH_ERROR' as never }),
    () => faults.failNext({ error: 'NONE' as never }),
    () => faults.failNext({ api: 'Produces' as never, error }),
    () => faults.failNext({ api: 'SaslHandshake' as never, error }),
    () => faults.failNext({ error, times: 0 }),
    () => faults.failNext({ error, topics: 'orders' } as never),
    () => faults.disconnect({ groupId: 'g' } as never),
    () => faults.failNext({ error, times: 1.5 }),
    () => faults.delay({}, -1),
    () => faults.delay({}, Number.NaN),
    () => faults.disconnect({}, { when: 'later' as never }),
  ]) {
    expect(wrong).toThrow(ConfigError)
  }
  expect(() => faults.delay({ api: 'produce' as never }, 1)).toThrow('did you mean Produce?')
  expect(() => faults.failNext({ error: 'NOT_LEADER_OR_FOLOWER' as never })).toThrow('NOT_LEADER_OR_FOLLOWER?')
  expect(faults).toHaveProperty('isActive', false)
})
