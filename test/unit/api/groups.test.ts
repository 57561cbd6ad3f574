import { describe, expect, test } from 'vitest'
import type { BrokerId } from '../../../src/base/index.ts'
import type { CoordinatorRefusal, JoinRefusal } from '../../../src/group/index.ts'
import { apis } from '../../../src/protocol/index.ts'
import { settled } from '../network/memory-network.ts'
import { brokerImage, harness, partitionImage, topicId } from './harness.ts'

const coordinatorRefusals: [CoordinatorRefusal, number][] = [
  ['coordinator-load-in-progress', 14],
  ['coordinator-not-available', 15],
  ['not-coordinator', 16],
]

describe('FindCoordinator', () => {
  test.each([0, 1, 2, 3])('%i finds the coordinator of a group, making its topic first', async (version) => {
    const { ask, coordination } = harness()
    const body = { key: 'group', ...(version >= 1 ? { keyType: 0 } : {}) }
    expect(await ask(apis.FindCoordinator, version, body)).toMatchObject({
      errorCode: 0,
      nodeId: 1,
      host: 'broker1',
      port: 9092,
    })
    expect(coordination.created).toMatchObject([{ name: '__consumer_offsets', partitionCount: 50 }])
  })

  test.each([4, 5, 6])('%i finds many and echoes their keys', async (version) => {
    const { ask } = harness()
    const { coordinators } = await ask(apis.FindCoordinator, version, { keyType: 0, coordinatorKeys: ['a', 'b'] })
    expect(coordinators).toMatchObject([
      { key: 'a', errorCode: 0, nodeId: 1, host: 'broker1', port: 9092 },
      { key: 'b', errorCode: 0, nodeId: 1 },
    ])
  })

  test('a group’s coordinator leads the partition that Kafka would pick', async () => {
    const { ask, coordination } = harness()
    coordination.brokers.push(brokerImage(2))
    coordination.addTopic('__consumer_offsets', [
      partitionImage(0),
      partitionImage(1, { leader: 2 as BrokerId }),
      partitionImage(2),
    ])
    // "a".hashCode() is 97 and 97 % 3 is 1.
    const { coordinators } = await ask(apis.FindCoordinator, 4, { keyType: 0, coordinatorKeys: ['a', 'b'] })
    expect(coordinators.map(({ nodeId }) => nodeId)).toEqual([2, 1])
  })

  test('a coordinator that loads is waited for', async () => {
    const { ask, coordination, groups, time } = harness()
    coordination.addTopic('__consumer_offsets')
    groups.answers.describeGroups = [{ ok: false, reason: 'coordinator-load-in-progress', groupId: 'a' }]
    let hasAnswered = false
    const answer = ask(apis.FindCoordinator, 2, { key: 'a', keyType: 0 }).finally(() => {
      hasAnswered = true
    })
    await settled()
    time.advance(50)
    await settled()
    expect(hasAnswered).toBe(false)
    groups.answers.describeGroups = [{ ok: false, reason: 'group-id-not-found', groupId: 'a' }]
    time.advance(50)
    expect(await answer).toMatchObject({ errorCode: 0, nodeId: 1 })
  })

  test('a coordinator that loads for long is named all the same', async () => {
    const { ask, coordination, groups, time } = harness()
    coordination.addTopic('__consumer_offsets')
    groups.answers.describeGroups = [{ ok: false, reason: 'coordinator-load-in-progress', groupId: 'a' }]
    const answer = ask(apis.FindCoordinator, 2, { key: 'a', keyType: 0 })
    for (let i = 0; i < 31; i++) {
      await settled()
      time.advance(100)
    }
    expect(await answer).toMatchObject({ errorCode: 0, nodeId: 1 })
  })

  test.each(['coordinator-not-available', 'group-id-not-found'] as const)(
    'a coordinator that is loaded and answers %s about the group is named at once',
    async (reason) => {
      const { ask, coordination, groups } = harness()
      coordination.addTopic('__consumer_offsets')
      groups.answers.describeGroups = [{ ok: false, reason, groupId: '' }]
      expect(await ask(apis.FindCoordinator, 2, { key: '', keyType: 0 })).toMatchObject({ errorCode: 0, nodeId: 1 })
    },
  )

  test.each([
    ['1048576', 'segment.bytes'],
    ['1000', 'internal.segment.bytes'],
  ])('offsets.topic.segment.bytes=%s makes segments of that size', async (bytes, key) => {
    const { ask, coordination } = harness({ overrides: { 'offsets.topic.segment.bytes': bytes } })
    await ask(apis.FindCoordinator, 2, { key: 'a', keyType: 0 })
    expect([...coordination.created[0]!.configs!]).toContainEqual([key, bytes])
  })

  test('without a leader in time, or without a controller, it is COORDINATOR_NOT_AVAILABLE', async () => {
    const { ask, coordination, time } = harness()
    coordination.fault = new Error('No controller')
    expect(await ask(apis.FindCoordinator, 2, { key: 'a', keyType: 0 })).toMatchObject({ errorCode: 15, nodeId: -1 })
    coordination.addTopic('__consumer_offsets', [partitionImage(0, { leader: -1 as BrokerId })])
    const answer = ask(apis.FindCoordinator, 2, { key: 'a', keyType: 0 })
    for (let i = 0; i < 31; i++) {
      await settled()
      time.advance(100)
    }
    expect(await answer).toMatchObject({ errorCode: 15, nodeId: -1 })
  })

  test('transactions are refused with a code that each client takes as final, and a sentence', async () => {
    const { ask } = harness()
    for (const version of [1, 2]) {
      expect(await ask(apis.FindCoordinator, version, { key: 't', keyType: 1 })).toMatchObject({
        errorCode: 53,
        errorMessage: expect.stringContaining('no transactions'),
        nodeId: -1,
      })
    }
    const { coordinators } = await ask(apis.FindCoordinator, 6, { keyType: 1, coordinatorKeys: ['t'] })
    expect(coordinators).toMatchObject([
      { key: 't', errorCode: 35, errorMessage: expect.stringContaining('no transactions'), nodeId: -1 },
    ])
  })

  test.each([2, 3, -1])('type %i is an invalid request', async (keyType) => {
    const { ask, coordination } = harness()
    expect(await ask(apis.FindCoordinator, 3, { key: 'k', keyType })).toMatchObject({ errorCode: 42, nodeId: -1 })
    expect(coordination.created).toEqual([])
  })
})

describe('JoinGroup', () => {
  const body = {
    groupId: 'g',
    sessionTimeoutMs: 10_000,
    memberId: '',
    protocolType: 'consumer',
    protocols: [{ name: 'range', metadata: Buffer.from('topics') }],
  }

  test.each([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])('%i joins and answers', async (version) => {
    const { ask, groups } = harness()
    groups.answers.joinGroup = {
      ok: true,
      memberId: 'm',
      generationId: 4,
      protocolType: 'consumer',
      protocolName: 'range',
      leader: 'm',
      skipAssignment: version >= 9,
      members: [{ memberId: 'm', groupInstanceId: 'i', metadata: Buffer.from('topics') }],
    }
    const response = await ask(apis.JoinGroup, version, body, { clientId: 'client' })
    expect(groups.asked).toEqual([
      {
        method: 'joinGroup',
        request: {
          ...body,
          groupInstanceId: null,
          clientId: 'client',
          clientHost: '/10.0.0.9',
          rebalanceTimeoutMs: -1,
          requireKnownMemberId: version >= 4,
          supportsSkippingAssignment: version >= 9,
          reason: null,
        },
      },
    ])
    expect(response).toMatchObject({
      errorCode: 0,
      generationId: 4,
      protocolType: version >= 7 ? 'consumer' : null,
      protocolName: 'range',
      leader: 'm',
      skipAssignment: version >= 9,
      memberId: 'm',
      members: [{ memberId: 'm', groupInstanceId: version >= 5 ? 'i' : null, metadata: Buffer.from('topics') }],
    })
  })

  const reasons: [JoinRefusal, number][] = [
    ...coordinatorRefusals,
    ['illegal-generation', 22],
    ['inconsistent-group-protocol', 23],
    ['invalid-group-id', 24],
    ['unknown-member-id', 25],
    ['invalid-session-timeout', 26],
    ['rebalance-in-progress', 27],
    ['member-id-required', 79],
    ['group-max-size-reached', 81],
    ['fenced-instance-id', 82],
    ['unknown-server-error', -1],
  ]

  test.each(reasons)('%s is error %i, with the member id and no protocol', async (reason, errorCode) => {
    const { ask, groups } = harness()
    groups.answers.joinGroup = { ok: false, reason, memberId: 'new-id' }
    const expected = { errorCode, memberId: 'new-id', generationId: -1, leader: '', members: [] }
    expect(await ask(apis.JoinGroup, 7, body)).toMatchObject({ ...expected, protocolName: null, protocolType: null })
    expect(await ask(apis.JoinGroup, 6, body)).toMatchObject({ ...expected, protocolName: '' })
  })
})

describe('SyncGroup, Heartbeat and LeaveGroup', () => {
  test.each([0, 1, 2, 3, 4, 5])('SyncGroup %i hands over assignments and gets its own', async (version) => {
    const { ask, groups } = harness()
    const assignment = Buffer.from('mine')
    groups.answers.syncGroup = { ok: true, protocolType: 'consumer', protocolName: 'range', assignment }
    const common = { groupId: 'g', generationId: 4, memberId: 'm', assignments: [{ memberId: 'm', assignment }] }
    const body = version >= 5 ? { ...common, protocolType: 'consumer', protocolName: 'range' } : common
    const response = await ask(apis.SyncGroup, version, body)
    expect(groups.asked[0]!.request).toMatchObject({ groupInstanceId: null, ...body })
    expect(response).toMatchObject({ errorCode: 0, assignment, protocolName: version >= 5 ? 'range' : null })
  })

  test('SyncGroup tells why not', async () => {
    const { ask } = harness()
    const body = { groupId: 'g', generationId: 4, memberId: 'm', assignments: [] }
    expect(await ask(apis.SyncGroup, 4, body)).toMatchObject({ errorCode: 16, assignment: Buffer.alloc(0) })
  })

  test('SyncGroup 5 names the protocol and its type', async () => {
    const { ask, groups } = harness()
    const body = { groupId: 'g', generationId: 4, memberId: 'm', assignments: [] }
    for (const missing of [
      { protocolType: null, protocolName: 'range' },
      { protocolType: 'consumer', protocolName: null },
    ]) {
      expect((await ask(apis.SyncGroup, 5, { ...body, ...missing })).errorCode).toBe(23)
    }
    expect(groups.asked).toEqual([])
  })

  test.each([0, 1, 2, 3, 4])('Heartbeat %i answers', async (version) => {
    const { ask, groups } = harness()
    const body = { groupId: 'g', generationId: 4, memberId: 'm' }
    groups.answers.heartbeat = { ok: true }
    expect((await ask(apis.Heartbeat, version, body)).errorCode).toBe(0)
    groups.answers.heartbeat = { ok: false, reason: 'rebalance-in-progress' }
    expect((await ask(apis.Heartbeat, version, body)).errorCode).toBe(27)
  })

  test.each([0, 1, 2])('LeaveGroup %i is about one member, whose error is the answer’s', async (version) => {
    const { ask, groups } = harness()
    groups.answers.leaveGroup = {
      ok: true,
      members: [{ memberId: 'm', groupInstanceId: null, reason: 'unknown-member-id' }],
    }
    expect((await ask(apis.LeaveGroup, version, { groupId: 'g', memberId: 'm' })).errorCode).toBe(25)
    expect(groups.asked[0]!.request).toEqual({ groupId: 'g', members: [{ memberId: 'm', groupInstanceId: null }] })
  })

  test.each([3, 4, 5])('LeaveGroup %i is about many, each with its error', async (version) => {
    const { ask, groups } = harness()
    groups.answers.leaveGroup = {
      ok: true,
      members: [
        { memberId: 'm', groupInstanceId: null, reason: null },
        { memberId: '', groupInstanceId: 'i', reason: 'fenced-instance-id' },
      ],
    }
    const members = [{ memberId: 'm' }, { memberId: '', groupInstanceId: 'i' }]
    expect(await ask(apis.LeaveGroup, version, { groupId: 'g', members })).toMatchObject({
      errorCode: 0,
      members: [
        { memberId: 'm', errorCode: 0 },
        { groupInstanceId: 'i', errorCode: 82 },
      ],
    })
  })
})

describe('OffsetCommit', () => {
  const partition = { partitionIndex: 0, committedOffset: 12, committedMetadata: 'note' }
  const names = [2, 3, 4, 5, 6, 7, 8, 9]

  test.each(names)('%i commits what exists and refuses the rest', async (version) => {
    const { ask, groups, coordination } = harness()
    const { topicId: id } = coordination.addTopic('orders')
    groups.answers.offsetCommit = {
      ok: true,
      topics: [{ topic: 'orders', partitions: [{ partition: 0, reason: null }] }],
    }
    const { topics } = await ask(apis.OffsetCommit, version, {
      groupId: 'g',
      generationIdOrMemberEpoch: 4,
      memberId: 'm',
      topics: [
        { name: 'none', partitions: [partition] },
        { name: 'orders', partitions: [{ ...partition, partitionIndex: 9 }, partition] },
      ],
    })
    expect(groups.asked[0]!.request).toEqual({
      groupId: 'g',
      memberId: 'm',
      groupInstanceId: null,
      generationId: 4,
      retentionTimeMs: -1,
      reportsUnknownGroup: version >= 9,
      topics: [
        {
          topic: 'orders',
          topicId: id,
          partitions: [{ partition: 0, offset: 12, leaderEpoch: -1, metadata: 'note' }],
        },
      ],
    })
    expect(topics).toMatchObject([
      { name: 'none', partitions: [{ partitionIndex: 0, errorCode: 3 }] },
      {
        name: 'orders',
        partitions: [
          { partitionIndex: 9, errorCode: 3 },
          { partitionIndex: 0, errorCode: 0 },
        ],
      },
    ])
  })

  test('10 goes by topic id', async () => {
    const { ask, groups, coordination } = harness()
    const { topicId: id } = coordination.addTopic('orders')
    groups.answers.offsetCommit = {
      ok: true,
      topics: [{ topic: 'orders', partitions: [{ partition: 0, reason: 'offset-metadata-too-large' }] }],
    }
    const { topics } = await ask(apis.OffsetCommit, 10, {
      groupId: 'g',
      memberId: '',
      topics: [
        { topicId: id, partitions: [partition] },
        { topicId: topicId(900), partitions: [partition] },
      ],
    })
    expect(topics).toMatchObject([
      { topicId: id, partitions: [{ errorCode: 12 }] },
      { topicId: topicId(900), partitions: [{ errorCode: 100 }] },
    ])
  })

  test('a refusal of the group is told at every partition that exists', async () => {
    const { ask, groups, coordination } = harness()
    coordination.addTopic('orders')
    groups.answers.offsetCommit = { ok: false, reason: 'illegal-generation' }
    const { topics } = await ask(apis.OffsetCommit, 8, {
      groupId: 'g',
      memberId: 'm',
      topics: [{ name: 'orders', partitions: [partition, { ...partition, partitionIndex: 5 }] }],
    })
    expect(topics[0]!.partitions.map(({ errorCode }) => errorCode)).toEqual([22, 3])
  })

  test('with nothing that exists the group is not asked', async () => {
    const { ask, groups } = harness()
    const topics = [{ name: 'none', partitions: [partition] }]
    await ask(apis.OffsetCommit, 8, { groupId: 'g', memberId: 'm', topics })
    expect(groups.asked).toEqual([])
  })
})

describe('OffsetFetch', () => {
  const offset = { partition: 2, offset: 12, leaderEpoch: 3, metadata: 'note' }
  const nothing = { partition: 5, offset: -1, leaderEpoch: -1, metadata: '' }
  const fetched = [{ ok: true as const, groupId: 'g', topics: [{ topic: 'orders', partitions: [offset, nothing] }] }]
  const topics = [{ name: 'orders', partitionIndexes: [2, 5] }]

  test.each([1, 2, 3, 4, 5, 6, 7])('%i tells the offsets of one group', async (version) => {
    const { ask, groups } = harness()
    groups.answers.offsetFetch = fetched
    const response = await ask(apis.OffsetFetch, version, { groupId: 'g', topics })
    expect(groups.asked[0]!.request).toEqual([{ groupId: 'g', topics: [{ topic: 'orders', partitions: [2, 5] }] }])
    expect(response).toMatchObject({
      errorCode: 0,
      topics: [
        {
          name: 'orders',
          partitions: [
            {
              partitionIndex: 2,
              committedOffset: 12,
              committedLeaderEpoch: version >= 5 ? 3 : -1,
              metadata: 'note',
              errorCode: 0,
            },
            { partitionIndex: 5, committedOffset: -1, metadata: '', errorCode: 0 },
          ],
        },
      ],
    })
  })

  test.each([8, 9])('%i tells those of many groups', async (version) => {
    const { ask, groups } = harness()
    groups.answers.offsetFetch = [...fetched, { ok: false, groupId: 'h', reason: 'not-coordinator' }]
    const response = await ask(apis.OffsetFetch, version, {
      groups: [
        { groupId: 'g', topics },
        { groupId: 'h', topics: null },
      ],
    })
    expect(groups.asked[0]!.request).toMatchObject([{ groupId: 'g' }, { groupId: 'h', topics: null }])
    expect(response.groups).toMatchObject([
      {
        groupId: 'g',
        errorCode: 0,
        topics: [
          { name: 'orders', partitions: [{ committedOffset: 12, committedLeaderEpoch: 3, metadata: 'note' }, {}] },
        ],
      },
      { groupId: 'h', errorCode: 16, topics: [] },
    ])
  })

  test('10 goes by topic id, and leaves out what has none', async () => {
    const { ask, groups, coordination } = harness()
    const { topicId: id } = coordination.addTopic('orders')
    groups.answers.offsetFetch = [
      { ok: true, groupId: 'g', topics: [...fetched[0]!.topics, { topic: 'gone', partitions: [offset] }] },
    ]
    const asked = [
      { topicId: id, partitionIndexes: [2] },
      { topicId: topicId(900), partitionIndexes: [7] },
    ]
    const { groups: answered } = await ask(apis.OffsetFetch, 10, { groups: [{ groupId: 'g', topics: asked }] })
    expect(groups.asked[0]!.request).toEqual([{ groupId: 'g', topics: [{ topic: 'orders', partitions: [2] }] }])
    expect(answered[0]!.topics).toMatchObject([
      { topicId: id, partitions: [{ partitionIndex: 2, committedOffset: 12, errorCode: 0 }, {}] },
      { topicId: topicId(900), partitions: [{ partitionIndex: 7, committedOffset: -1, errorCode: 100 }] },
    ])
    expect(answered[0]!.topics).toHaveLength(2)
  })

  test('null is all topics', async () => {
    const { ask, groups } = harness()
    await ask(apis.OffsetFetch, 2, { groupId: 'g', topics: null })
    expect(groups.asked[0]!.request).toEqual([{ groupId: 'g', topics: null }])
  })

  test('an error of the group stands at the top, in version 1 at the partitions', async () => {
    const { ask } = harness()
    expect(await ask(apis.OffsetFetch, 2, { groupId: 'g', topics })).toMatchObject({ errorCode: 16, topics: [] })
    const old = await ask(apis.OffsetFetch, 1, { groupId: 'g', topics })
    expect(old.topics).toMatchObject([
      { name: 'orders', partitions: [{ partitionIndex: 2, committedOffset: -1, errorCode: 16 }, { errorCode: 16 }] },
    ])
  })
})

describe('DescribeGroups and ListGroups', () => {
  test.each([0, 1, 2, 3, 4, 5, 6])('DescribeGroups %i tells state and members', async (version) => {
    const { ask, groups } = harness()
    const member = {
      memberId: 'm',
      groupInstanceId: 'i',
      clientId: 'c',
      clientHost: '/10.0.0.9',
      metadata: Buffer.from('meta'),
      assignment: Buffer.from('mine'),
    }
    groups.answers.describeGroups = [
      { ok: true, groupId: 'g', state: 'Stable', protocolType: 'consumer', protocolName: 'range', members: [member] },
      { ok: false, groupId: 'none', reason: 'group-id-not-found' },
      { ok: false, groupId: 'h', reason: 'not-coordinator' },
    ]
    const flags = version >= 3 ? { includeAuthorizedOperations: true } : {}
    const response = await ask(apis.DescribeGroups, version, { groups: ['g', 'none', 'h'], ...flags })
    expect(response.groups).toMatchObject([
      {
        errorCode: 0,
        groupId: 'g',
        groupState: 'Stable',
        protocolType: 'consumer',
        protocolData: 'range',
        members: [
          {
            memberId: 'm',
            groupInstanceId: version >= 4 ? 'i' : null,
            clientId: 'c',
            clientHost: '/10.0.0.9',
            memberMetadata: Buffer.from('meta'),
            memberAssignment: Buffer.from('mine'),
          },
        ],
      },
      { errorCode: version >= 6 ? 69 : 0, groupId: 'none', groupState: 'Dead', members: [] },
      { errorCode: 16, groupId: 'h', groupState: '', members: [] },
    ])
    expect(response.groups[0]!.authorizedOperations === -2147483648).toBe(version < 3)
  })

  test.each([0, 1, 2, 3, 4, 5])('ListGroups %i lists', async (version) => {
    const { ask, groups } = harness()
    groups.answers.listGroups = {
      ok: true,
      groups: [{ groupId: 'g', protocolType: 'consumer', state: 'Empty', type: 'classic' }],
    }
    const filters = {
      ...(version >= 4 ? { statesFilter: ['Empty'] } : {}),
      ...(version >= 5 ? { typesFilter: ['classic'] } : {}),
    }
    const response = await ask(apis.ListGroups, version, filters)
    expect(groups.asked[0]!.request).toEqual({
      states: version >= 4 ? ['Empty'] : [],
      types: version >= 5 ? ['classic'] : [],
    })
    expect(response).toMatchObject({
      errorCode: 0,
      groups: [
        {
          groupId: 'g',
          protocolType: 'consumer',
          groupState: version >= 4 ? 'Empty' : '',
          groupType: version >= 5 ? 'classic' : '',
        },
      ],
    })
  })

  test('ListGroups is refused while a partition loads', async () => {
    const { ask, groups } = harness()
    groups.answers.listGroups = { ok: false, reason: 'coordinator-load-in-progress' }
    expect(await ask(apis.ListGroups, 4, {})).toMatchObject({ errorCode: 14, groups: [] })
  })
})

test.each(coordinatorRefusals)('%s is error %i in Heartbeat', async (reason, errorCode) => {
  const { ask, groups } = harness()
  groups.answers.heartbeat = { ok: false, reason }
  expect((await ask(apis.Heartbeat, 4, { groupId: 'g', generationId: 1, memberId: 'm' })).errorCode).toBe(errorCode)
})
