import { expect, test } from 'vitest'
import type { BrokerId, LeaderEpoch, PartitionEpoch } from '../../../src/base/index.ts'
import { StorageError } from '../../../src/log/index.ts'
import type { PartitionImage } from '../../../src/metadata/index.ts'
import type { Platform } from '../../../src/platform/index.ts'
import type { WantedIsr } from '../../../src/replication/in-sync-replicas.ts'
import { Partition } from '../../../src/replication/partition.ts'
import { turn } from '../../support/condition.ts'
import { FakeLog } from '../../support/fake-log.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { settledReplicas } from '../../support/partition-image.ts'

const self = 1 as BrokerId
const other = 2 as BrokerId

function image(changes: Partial<PartitionImage> = {}): PartitionImage {
  return {
    partition: 0,
    replicas: [self],
    isr: [self],
    leader: self,
    leaderEpoch: 3 as LeaderEpoch,
    partitionEpoch: 0 as PartitionEpoch,
    ...settledReplicas,
    ...changes,
  }
}

function setUp(options: { minInSyncReplicas?: number; image?: PartitionImage } = {}) {
  const log = new FakeLog()
  const time = new ManualTime()
  const isrsWanted: WantedIsr[] = []
  const fetchAs = (replica: BrokerId, fetchOffset: number) =>
    partition.onFollowerFetch({ replica, brokerEpoch: -1, fetchOffset, logStartOffset: 0 })
  const faults: unknown[] = []
  const partition = new Partition({
    topic: 'orders',
    partition: 0,
    localId: self,
    platform: { clock: time, timers: time } as unknown as Platform,
    log,
    wasEmptied: false,
    minInSyncReplicas: () => options.minInSyncReplicas ?? 1,
    mayJoinIsr: () => true,
    onIsrWanted: (_partition, wanted) => isrsWanted.push(wanted),
    onFault: (error) => void faults.push(error),
  })
  partition.applyImage(options.image ?? image())
  const append = (requiredAcks: 0 | 1 | -1, records = Buffer.from('abc')) =>
    partition.append({ topic: 'orders', partition: 0, records, requiredAcks, timeoutMs: 1000, origin: 'client' })
  return { log, time, partition, append, fetchAs, isrsWanted, faults }
}

/** The value of a promise that has settled by now, else 'pending'. */
async function settled<T>(promise: Promise<T>): Promise<T | 'pending'> {
  await turn()
  return Promise.race([promise, Promise.resolve('pending' as const)])
}

test('Partition answers acks=0 at once', async () => {
  const { append } = setUp()
  expect(await settled(append(0))).toMatchObject({ ok: true, baseOffset: 0 })
})

test.each([1, -1] as const)('Partition answers acks=%i only after the sync that covers it', async (acks) => {
  const { log, append, partition } = setUp()
  const answer = append(acks)
  expect(await settled(answer)).toBe('pending')
  expect(partition.highWatermark).toBe(0)
  log.completeFlush()
  expect(await settled(answer)).toMatchObject({ ok: true, baseOffset: 0, lastOffset: 2 })
  expect(partition.highWatermark).toBe(3)
})

test('Partition commits at append where acknowledgements do not wait for syncs', async () => {
  const { log, append, partition } = setUp()
  log.acksWaitForFlush = false
  expect(await settled(append(-1))).toMatchObject({ ok: true })
  expect(partition.highWatermark).toBe(3)
})

test('Partition waits for every replica in the ISR before it answers acks=-1, but not for acks=1', async () => {
  const { log, append, fetchAs } = setUp({ image: image({ replicas: [self, other], isr: [self, other] }) })
  const all = append(-1)
  const one = append(1)
  log.completeFlush()
  expect(await settled(one)).toMatchObject({ ok: true })
  expect(await settled(all)).toBe('pending')
  fetchAs(other, 3)
  expect(await settled(all)).toMatchObject({ ok: true, lastOffset: 2 })
})

test('Partition refuses acks=-1 before the append when too few replicas are in sync', async () => {
  const { log, append } = setUp({ minInSyncReplicas: 2, image: image({ replicas: [self, other], isr: [self] }) })
  expect(await append(-1)).toMatchObject({ ok: false, reason: 'not-enough-replicas' })
  expect(log.logEndOffset).toBe(0)
})

test('Partition tells when the ISR became too small after the append', async () => {
  const setup = setUp({ image: image({ replicas: [self, other], isr: [self, other] }), minInSyncReplicas: 2 })
  const answer = setup.append(-1)
  setup.log.completeFlush()
  setup.fetchAs(other, 3)
  setup.partition.applyImage(image({ replicas: [self, other], isr: [self], partitionEpoch: 1 as PartitionEpoch }))
  expect(await answer).toMatchObject({ ok: false, reason: 'not-enough-replicas-after-append' })
})

test('Partition gives up an append that is not committed in its time, and answers later ones', async () => {
  const { log, time, append } = setUp()
  const first = append(-1)
  time.advance(600)
  const second = append(-1)
  time.advance(500)
  expect(await settled(first)).toMatchObject({ ok: false, reason: 'request-timed-out' })
  expect(await settled(second)).toBe('pending')
  log.completeFlush()
  expect(await settled(second)).toMatchObject({ ok: true, baseOffset: 3 })
})

test('Partition never acknowledges an append of an epoch that ended', async () => {
  const { log, append, partition } = setUp()
  const answer = append(-1)
  partition.applyImage(image({ leader: other, leaderEpoch: 4 as LeaderEpoch }))
  log.completeFlush()
  expect(await answer).toMatchObject({ ok: false, reason: 'not-leader-or-follower' })
  expect(await append(-1)).toMatchObject({ ok: false, reason: 'not-leader-or-follower' })
})

test('Partition answers what waits, and refuses what comes, with a storage error once its log failed', async () => {
  const { log, append, partition } = setUp()
  const answer = append(-1)
  log.isReadable = false
  log.activeListener?.onFailed(new Error('EIO'))
  expect(await answer).toMatchObject({ ok: false, reason: 'storage-error' })
  expect(await append(1)).toMatchObject({ ok: false, reason: 'storage-error', message: 'EIO' })
  expect(partition.checkLeader(-1)).toMatchObject({ reason: 'storage-error' })
  expect(partition.isOffline).toBe(true)
})

test('Partition whose disk is full is read on as by the leader, and changes nothing', async () => {
  const { log, append, partition } = setUp()
  const answer = append(-1)
  log.activeListener?.onFailed(new Error('full'))
  const refused = { ok: false, reason: 'storage-error' }
  expect(await answer).toMatchObject(refused)
  expect(await append(1)).toMatchObject(refused)
  expect(await partition.deleteRecords(0)).toMatchObject(refused)
  expect(partition.checkLeader(-1)).toBeUndefined()
  expect([partition.isOffline, partition.hasFailed, partition.isLeader]).toEqual([false, true, false])
  partition.applyImage(image({ leader: other, leaderEpoch: 4 as LeaderEpoch }))
  expect(partition.checkReplica(-1)).toMatchObject({ reason: 'storage-error' })
  // Of what it led before it may have told a higher watermark than it knows now.
  partition.applyImage(image({ leaderEpoch: 5 as LeaderEpoch }))
  expect(partition.checkLeader(-1)).toMatchObject({ reason: 'storage-error' })
})

test('Partition tells a fault of the disk from a bug, which is shown and answered as one', async () => {
  const { log, partition, append, faults } = setUp()
  const appendAsLeader = log.appendAsLeader.bind(log)
  log.appendAsLeader = () => {
    throw new StorageError('EIO', '/data')
  }
  expect(await append(1)).toEqual({ ok: false, reason: 'storage-error', message: 'EIO' })
  expect(faults).toEqual([])
  const bug = new TypeError('undefined is not a function')
  log.appendAsLeader = () => {
    throw bug
  }
  expect(await append(1)).toEqual({ ok: false, reason: 'unknown-server-error' })
  log.appendAsLeader = (() => Promise.reject(bug)) as unknown as FakeLog['appendAsLeader']
  expect(await append(-1)).toEqual({ ok: false, reason: 'unknown-server-error' })
  log.deleteRecordsBefore = () => Promise.reject(bug)
  expect(await partition.deleteRecords(0)).toEqual({ ok: false, reason: 'unknown-server-error' })
  expect(faults).toEqual([bug, bug, bug])
  log.appendAsLeader = appendAsLeader
  expect(await append(0)).toMatchObject({ ok: true })
})

test('Partition fences requests that know another leader epoch', () => {
  const { partition } = setUp()
  expect(partition.checkLeader(-1)).toBeUndefined()
  expect(partition.checkLeader(3 as LeaderEpoch)).toBeUndefined()
  expect(partition.checkLeader(2 as LeaderEpoch)).toMatchObject({ reason: 'fenced-leader-epoch' })
  expect(partition.checkLeader(4 as LeaderEpoch)).toMatchObject({ reason: 'unknown-leader-epoch' })
})

test('Partition answers a duplicate only when its original is committed', async () => {
  const { log, append } = setUp()
  const original = append(-1)
  log.appendAsLeader = () => ({
    ok: true,
    baseOffset: 0,
    lastOffset: 2,
    logAppendTimeMs: -1,
    logStartOffset: 0,
    duplicate: true,
  })
  const duplicate = append(-1)
  expect(await settled(duplicate)).toBe('pending')
  log.completeFlush()
  expect(await duplicate).toMatchObject({ ok: true, baseOffset: 0 })
  expect(await original).toMatchObject({ ok: true, baseOffset: 0 })
})

test('Partition.deleteRecords() deletes up to the high watermark at most', async () => {
  const { log, append, partition } = setUp()
  void append(1)
  log.completeFlush()
  void append(1)
  expect(partition.highWatermark).toBe(3)
  for (const offset of [4, 6, -2]) {
    expect(await partition.deleteRecords(offset)).toEqual({ ok: false, reason: 'offset-out-of-range' })
  }
  expect(log.logStartOffset).toBe(0)
  expect(await partition.deleteRecords(-1)).toEqual({ ok: true, lowWatermark: 3 })
})

test('Partition.deleteRecords() is refused by a follower, and answers a fault of the disk', async () => {
  const follower = setUp({ image: image({ leader: other, replicas: [self, other] }) })
  expect(await follower.partition.deleteRecords(-1)).toEqual({ ok: false, reason: 'not-leader-or-follower' })
  const { log, partition } = setUp()
  log.deleteRecordsBefore = () => Promise.reject(new StorageError('EIO', '/data'))
  expect(await partition.deleteRecords(0)).toEqual({ ok: false, reason: 'storage-error', message: 'EIO' })
})
