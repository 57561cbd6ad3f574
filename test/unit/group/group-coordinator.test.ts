import { beforeEach, describe, expect, test } from 'vitest'
import { type LeaderEpoch, zeroUuid } from '../../../src/base/index.ts'
import {
  type GroupConfig,
  GroupCoordinator,
  groupTopic,
  type JoinGroupRequest,
  type OffsetCommitRequest,
  partitionFor,
} from '../../../src/group/index.ts'
import type { Random } from '../../../src/platform/index.ts'
import { Metrics, silentLogger } from '../../../src/telemetry/index.ts'
import { inlineOffload, ManualTime, MemoryStore } from '../coordinator-runtime/support.ts'
import { defaultConfig, good, rebalanceMs, sessionMs } from './bench.ts'

let time: ManualTime
let store: MemoryStore
let partitionCount: number | undefined
let coordinator: GroupCoordinator
let metrics: Metrics
let lines: { readonly message: string; readonly [field: string]: unknown }[]

function create(config: Partial<GroupConfig> = {}): GroupCoordinator {
  let drawn = 0
  const random = { bytes: (length: number) => Buffer.alloc(length, ++drawn) } as Partial<Random> as Random
  return new GroupCoordinator({
    config: { ...defaultConfig, ...config },
    store,
    platform: { clock: time, timers: time, random, offload: inlineOffload },
    logger: { ...silentLogger, info: (fields, message) => void lines.push({ ...fields, message }) },
    metrics,
    partitionCount: () => partitionCount,
    writeTimeoutMs: 5000,
  })
}

beforeEach(async () => {
  metrics = new Metrics()
  lines = []
  time = new ManualTime()
  store = new MemoryStore()
  partitionCount = 1
  coordinator = create()
  coordinator.becomeLeader(0, store.lead(0, 1))
  await time.settle()
})

const join = (request: Partial<JoinGroupRequest> = {}, to = coordinator) =>
  to.joinGroup({
    groupId: 'g',
    memberId: '',
    groupInstanceId: null,
    clientId: 'client',
    clientHost: '/127.0.0.1',
    sessionTimeoutMs: sessionMs,
    rebalanceTimeoutMs: rebalanceMs,
    protocolType: 'consumer',
    protocols: [{ name: 'range', metadata: Buffer.from('metadata') }],
    requireKnownMemberId: false,
    supportsSkippingAssignment: false,
    ...request,
  })

const sync = (memberId: string, generationId: number) =>
  coordinator.syncGroup({
    groupId: 'g',
    memberId,
    groupInstanceId: null,
    generationId,
    protocolType: null,
    protocolName: null,
    assignments: [{ memberId, assignment: Buffer.from('all') }],
  })

const heartbeat = (memberId: string, generationId: number) =>
  coordinator.heartbeat({ groupId: 'g', memberId, groupInstanceId: null, generationId })

const commit = (offset: number, request: Partial<OffsetCommitRequest> = {}) =>
  coordinator.offsetCommit({
    groupId: 'g',
    memberId: '',
    groupInstanceId: null,
    generationId: -1,
    retentionTimeMs: -1,
    reportsUnknownGroup: true,
    topics: [
      {
        topic: 't',
        topicId: zeroUuid,
        partitions: [{ partition: 0, offset, leaderEpoch: -1, metadata: '' }],
      },
    ],
    ...request,
  })

async function fetchOffset(): Promise<number> {
  const [answer] = await coordinator.offsetFetch([{ groupId: 'g', topics: [{ topic: 't', partitions: [0] }] }])
  return good(answer).topics[0]!.partitions[0]!.offset
}

/** Whether a promise is still open when all else is done. */
async function isOpen(promise: Promise<unknown>): Promise<boolean> {
  let open = true
  void promise.then(() => {
    open = false
  })
  await time.settle()
  return open
}

test('partitionFor() picks Kafka’s partition', () => {
  // Java: Math.abs(id.hashCode()) % 50, with Utils.abs of Integer.MIN_VALUE as 0.
  expect(partitionFor('', 50)).toBe(0)
  expect(partitionFor('a', 50)).toBe(97 % 50)
  expect(partitionFor('my-group', 50)).toBe(12)
  expect(partitionFor('console-consumer-12345', 50)).toBe(6)
  expect(partitionFor('gr\u00fcppe', 50)).toBe(12)
  expect(partitionFor('\u{1f600}', 50)).toBe(49)
  expect(partitionFor('polygenelubricants', 50)).toBe(0)
})

describe('GroupCoordinator', () => {
  test('takes a member through join, sync, heartbeat, commit, fetch and leave', async () => {
    const joined = good(await join())
    expect(joined).toMatchObject({ generationId: 1, leader: joined.memberId })
    expect(joined.memberId).toBe('client-01010101-0101-4101-8101-010101010101')
    expect(good(await sync(joined.memberId, 1)).assignment.toString()).toBe('all')
    expect(await heartbeat(joined.memberId, 1)).toEqual({ ok: true })
    expect(await commit(5, { memberId: joined.memberId, generationId: 1 })).toMatchObject({ ok: true })
    expect(await fetchOffset()).toBe(5)
    expect(await coordinator.describeGroups(['g', 'none'])).toMatchObject([
      { ok: true, state: 'Stable', members: [{ memberId: joined.memberId }] },
      { ok: false, groupId: 'none', reason: 'group-id-not-found' },
    ])
    expect(await coordinator.deleteGroups(['g', 'none'])).toEqual([
      { groupId: 'g', reason: 'non-empty-group' },
      { groupId: 'none', reason: 'group-id-not-found' },
    ])
    const members = [{ memberId: joined.memberId, groupInstanceId: null }]
    expect(await coordinator.leaveGroup({ groupId: 'g', members })).toMatchObject({ ok: true })
    expect(await coordinator.listGroups({ states: [], types: [] })).toEqual({
      ok: true,
      groups: [{ groupId: 'g', protocolType: 'consumer', state: 'Empty', type: 'classic' }],
    })
    expect(await coordinator.deleteGroups(['g'])).toEqual([{ groupId: 'g', reason: null }])
    expect(await fetchOffset()).toBe(-1)
  })

  test('names a static member after its instance, and cuts what a client calls itself', async () => {
    expect(good(await join({ groupInstanceId: 'instance' })).memberId).toMatch(/^instance-[-0-9a-f]{36}$/)
    const answer = await join({ groupId: 'h', clientId: 'x'.repeat(32_767) })
    expect(Buffer.byteLength(good(answer).memberId)).toBeLessThan(32_767)
  })

  test('refuses what would not fit into a record again, and crashes of nothing that a client can send', async () => {
    // 32767 bytes that are not UTF-8, as they are read.
    const garbage = '\ufffd'.repeat(32_767)
    const long = 'x'.repeat(32_767)
    expect(await join({ groupId: garbage })).toMatchObject({ reason: 'invalid-group-id' })
    expect(await commit(1, { groupId: garbage })).toEqual({ ok: false, reason: 'invalid-group-id' })
    expect(await join({ protocolType: garbage })).toMatchObject({ reason: 'inconsistent-group-protocol' })
    const protocols = [{ name: garbage, metadata: Buffer.alloc(0) }]
    expect(await join({ protocols })).toMatchObject({ reason: 'inconsistent-group-protocol' })
    expect(await join({ groupInstanceId: garbage })).toMatchObject({ reason: 'unknown-server-error' })

    const named = { groupId: long, protocolType: long, groupInstanceId: long, clientId: garbage }
    const { memberId } = good(await join({ ...named, protocols: [{ name: long, metadata: Buffer.alloc(0) }] }))
    const request = { groupId: long, memberId, groupInstanceId: long, generationId: 1, protocolType: null }
    expect(await coordinator.syncGroup({ ...request, protocolName: null, assignments: [] })).toMatchObject({ ok: true })
    await time.advance(sessionMs)
    expect(await coordinator.describeGroups([long])).toMatchObject([{ state: 'Empty' }])
    await time.advance(defaultConfig.offsetsRetentionCheckIntervalMs)
    expect(await coordinator.describeGroups([long])).toMatchObject([{ reason: 'group-id-not-found' }])

    const offset = (value: number, metadata: string) =>
      commit(0, {
        retentionTimeMs: 2 ** 53,
        topics: [
          { topic: 't', topicId: zeroUuid, partitions: [{ partition: 0, offset: value, leaderEpoch: -1, metadata }] },
        ],
      })
    const only = async (answer: ReturnType<typeof offset>) => good(await answer).topics[0]!.partitions[0]!.reason
    expect(await only(offset(2 ** 53, ''))).toBe('offset-out-of-range')
    expect(await only(offset(-(2 ** 53), ''))).toBe('offset-out-of-range')
    expect(await only(offset(1, garbage))).toBe('offset-metadata-too-large')
    expect(await only(offset(1, ''))).toBeNull()
    expect(await fetchOffset()).toBe(1)
  })

  test('keeps no more of what a member says than a record takes', async () => {
    const half = { name: 'range', metadata: Buffer.alloc(600_000) }
    expect(await join({ protocols: [half, { ...half, name: 'roundrobin' }] })).toMatchObject({
      reason: 'unknown-server-error',
    })
    expect(await join({ protocols: [half] })).toMatchObject({ ok: true })
  })

  test('refuses empty group ids and session timeouts out of range before all else', async () => {
    const group = { groupId: '', memberId: 'm', groupInstanceId: null, generationId: 1 }
    const invalid = { ok: false, reason: 'invalid-group-id' }
    expect(await join({ groupId: '', sessionTimeoutMs: 1 })).toEqual({ ...invalid, memberId: '' })
    expect(await coordinator.syncGroup({ ...group, protocolType: null, protocolName: null, assignments: [] })).toEqual(
      invalid,
    )
    expect(await coordinator.heartbeat(group)).toEqual(invalid)
    expect(await coordinator.leaveGroup({ groupId: '', members: [] })).toEqual(invalid)
    for (const sessionTimeoutMs of [5999, 1_800_001, -1]) {
      expect(await join({ sessionTimeoutMs })).toEqual({ ok: false, reason: 'invalid-session-timeout', memberId: '' })
    }
    for (const sessionTimeoutMs of [6000, 1_800_000]) {
      expect(await join({ groupId: `g${sessionTimeoutMs}`, sessionTimeoutMs })).toMatchObject({ ok: true })
    }
  })

  test('answers the leader of a generation and a commit when they are committed, and shows nothing of them before', async () => {
    const { memberId } = good(await join())
    store.commitsAtOnce = false
    const synced = sync(memberId, 1)
    const committed = commit(5, { memberId, generationId: 1 })
    const fetched = fetchOffset()
    expect(await isOpen(synced)).toBe(true)
    expect(await isOpen(committed)).toBe(true)
    expect(await isOpen(fetched)).toBe(true)
    store.commit()
    expect(await synced).toMatchObject({ ok: true })
    expect(await committed).toMatchObject({ ok: true })
    expect(await fetched).toBe(5)
  })

  test('shows nothing of a commit that was lost after its append, and knows the group again', async () => {
    const { memberId } = good(await join())
    await sync(memberId, 1)
    await commit(5, { memberId, generationId: 1 })
    store.commitsAtOnce = false
    const lost = commit(6, { memberId, generationId: 1 })
    store.lose('storage-error')
    expect(await lost).toEqual({ ok: false, reason: 'not-coordinator' })
    await time.settle()
    expect(await fetchOffset()).toBe(5)
    expect(await heartbeat(memberId, 1)).toEqual({ ok: true })
  })

  test('answers refused appends with errors to retry', async () => {
    store.refusal = 'not-enough-replicas'
    expect(await commit(5)).toEqual({ ok: false, reason: 'coordinator-not-available' })
    store.refusal = 'storage-error'
    expect(await commit(5)).toEqual({ ok: false, reason: 'not-coordinator' })
    store.refusal = undefined
    expect(await fetchOffset()).toBe(-1)
  })

  test('tells which record is too large', async () => {
    const { memberId } = good(await join())
    store.maxBytes = 100
    expect(await sync(memberId, 1)).toEqual({ ok: false, reason: 'unknown-server-error' })
    const partitions = Array.from({ length: 10 }, (_, partition) => ({
      partition,
      offset: 1,
      leaderEpoch: -1,
      metadata: null,
    }))
    expect(await commit(1, { groupId: 'h', topics: [{ topic: 't', topicId: zeroUuid, partitions }] })).toEqual({
      ok: false,
      reason: 'unknown-server-error',
    })
  })

  test('answers those who wait when the leadership goes, and goes on with the group when it comes back', async () => {
    const { memberId } = good(await join())
    await sync(memberId, 1)
    const newcomer = join()
    expect(await isOpen(newcomer)).toBe(true)
    coordinator.resign(0, 2 as LeaderEpoch)
    expect(await newcomer).toEqual({ ok: false, reason: 'not-coordinator', memberId: '' })
    expect(await heartbeat(memberId, 1)).toEqual({ ok: false, reason: 'not-coordinator' })
    expect(time.timerCount).toBe(0)

    coordinator.becomeLeader(0, store.lead(0, 3))
    expect(await heartbeat(memberId, 1)).toEqual({ ok: true }) // while it loads
    expect(await sync(memberId, 1)).toEqual({ ok: false, reason: 'rebalance-in-progress' })
    expect(await commit(1)).toEqual({ ok: false, reason: 'coordinator-load-in-progress' })
    expect(await coordinator.listGroups({ states: [], types: [] })).toEqual({
      ok: false,
      reason: 'coordinator-load-in-progress',
    })
    await time.settle()
    expect(await heartbeat(memberId, 1)).toEqual({ ok: true })
    expect(good(await sync(memberId, 1)).assignment.toString()).toBe('all')
  })

  test('fails a commit that waits when the epoch changes; what the log kept of it is there afterwards', async () => {
    store.commitsAtOnce = false
    const waiting = commit(5)
    coordinator.becomeLeader(0, store.lead(0, 2))
    expect(await waiting).toEqual({ ok: false, reason: 'not-coordinator' })
    store.commit()
    await time.advance(10)
    expect(await fetchOffset()).toBe(5)
  })

  test('is nobody’s coordinator while there is no topic, and only of the partitions it leads', async () => {
    partitionCount = undefined
    expect(await join()).toEqual({ ok: false, reason: 'not-coordinator', memberId: '' })
    partitionCount = 50
    const answers = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => [partitionFor(`g${i}`, 50), await commit(1, { groupId: `g${i}` })]),
    )
    for (const [partition, answer] of answers) {
      expect(answer).toEqual(
        partition === 0 ? expect.objectContaining({ ok: true }) : { ok: false, reason: 'not-coordinator' },
      )
    }
  })

  test('lists the groups of all its partitions', async () => {
    partitionCount = 3
    for (const partition of [1, 2]) coordinator.becomeLeader(partition, store.lead(partition, 1))
    await time.settle()
    for (let i = 0; i < 20; i++) await commit(1, { groupId: `g${i}` })
    expect(good(await coordinator.listGroups({ states: ['empty'], types: [] })).groups).toHaveLength(20)
    expect([0, 1, 2].every((partition) => store.batches(partition).length > 0)).toBe(true)
  })

  test('forgets deleted topics also in a partition that it is loading', async () => {
    await commit(5)
    coordinator.becomeLeader(0, store.lead(0, 2))
    const deleted = coordinator.onTopicsDeleted([{ topic: 't', topicId: zeroUuid }])
    await time.advance(1000)
    await deleted
    expect(await fetchOffset()).toBe(-1)
  })

  test('deletes single offsets', async () => {
    await commit(5)
    const request = { groupId: 'g', topics: [{ topic: 't', partitions: [0] }] }
    expect(await coordinator.offsetDelete(request)).toMatchObject({ ok: true })
    expect(await fetchOffset()).toBe(-1)
  })

  test('leaves no timer behind when it stops', async () => {
    await join()
    void join({ groupId: 'h', requireKnownMemberId: true })
    coordinator.stop()
    expect(time.timerCount).toBe(0)
    expect(groupTopic).toBe('__consumer_offsets')
  })
})

test('GroupCoordinator says why each rebalance began and how it ended, and counts them', async () => {
  const news = () => lines.splice(0).filter(({ message }) => message.startsWith('group rebalance'))
  const first = good(await join({ reason: 'x'.repeat(1000) }))
  await sync(first.memberId, 1)
  const group = { partition: 0, groupId: 'g' }
  const began = { ...group, message: 'group rebalance began', memberId: first.memberId, clientReason: null }
  expect(news()).toEqual([
    { ...began, generation: 0, members: 1, reason: 'member-joined', clientReason: 'x'.repeat(200) },
    {
      ...group,
      message: 'group rebalance ended',
      generation: 1,
      members: 1,
      protocol: 'range',
      leaderId: first.memberId,
    },
  ])
  await join({ memberId: first.memberId, reason: 'topics changed' })
  expect(news()[0]).toEqual({
    ...began,
    generation: 1,
    members: 1,
    reason: 'leader-rejoined',
    clientReason: 'topics changed',
  })
  const protocols = [{ name: 'range', metadata: Buffer.from('other topics') }]
  await join({ memberId: first.memberId, protocols })
  expect(news()[0]).toMatchObject({ generation: 2, reason: 'member-changed' })
  const members = [{ memberId: first.memberId, groupInstanceId: null, reason: 'closing' }]
  await coordinator.leaveGroup({ groupId: 'g', members })
  expect(news()).toMatchObject([
    { reason: 'member-left', clientReason: 'closing', members: 0 },
    { message: 'group rebalance ended', generation: 4, members: 0, protocol: null, leaderId: null },
  ])
  expect(metrics.snapshot()).toMatchObject({ 'group-rebalance-count': 4, 'group-completed-rebalance-count': 4 })
})

test('GroupCoordinator says that a session ended, or that a member did not sync', async () => {
  const reasons = () => lines.flatMap(({ reason }) => (reason === undefined ? [] : [reason]))
  const { memberId } = good(await join())
  await sync(memberId, 1)
  await time.advance(sessionMs)
  expect(reasons()).toEqual(['member-joined', 'session-expired'])
  lines = []
  good(await join({ sessionTimeoutMs: 4 * rebalanceMs }))
  await time.advance(rebalanceMs)
  expect(reasons()).toEqual(['member-joined', 'not-synced'])
})
