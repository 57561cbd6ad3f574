import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch } from '../../../src/base/index.ts'
import type { PartitionImage } from '../../../src/metadata/index.ts'
import { InSyncReplicas } from '../../../src/replication/in-sync-replicas.ts'
import { settledReplicas } from '../../support/partition-image.ts'

const id = (n: number) => n as BrokerId
const [leader, b, c] = [id(1), id(2), id(3)]
const maxLagMs = 1000
const anyone = () => true

function image(isr: readonly number[], partitionEpoch: number, changes: Partial<PartitionImage> = {}): PartitionImage {
  return {
    partition: 0,
    replicas: [leader, b, c],
    isr: isr.map(id),
    leader,
    leaderEpoch: 4 as LeaderEpoch,
    partitionEpoch: partitionEpoch as PartitionEpoch,
    ...settledReplicas,
    ...changes,
  }
}

/** Led from offset 100 on, at time 0. */
function led(isr: readonly number[] = [1, 2, 3]): InSyncReplicas {
  return new InSyncReplicas(image(isr, 7), leader, 100, 0)
}

function fetch(replica: BrokerId, fetchOffset: number, brokerEpoch = -1) {
  return { replica, fetchOffset, brokerEpoch: brokerEpoch as BrokerEpoch, logStartOffset: 0 }
}

describe('InSyncReplicas', () => {
  test('who may follow is another broker that has a replica', () => {
    expect([leader, b, c, id(9)].map((each) => led().mayFollow(each))).toEqual([false, true, true, false])
  })

  test('takes out a follower that did not catch up for the lag time, and nobody who did', () => {
    const replicas = led()
    replicas.onFetch(fetch(b, 120), 120, 900)
    replicas.onFetch(fetch(c, 110), 120, 900)
    expect(replicas.shrink(120, 1000, maxLagMs)).toBe(false)
    expect(replicas.shrink(120, 1001, maxLagMs)).toBe(true)
    expect(replicas.wanted?.isr).toEqual([1, 2])
  })

  test('a follower of a leader that never rests is caught up when it has what the leader had a fetch before', () => {
    const replicas = led()
    for (let n = 1; n <= 50; n++) {
      // Each fetch has what was the end at the fetch before; the end itself is never reached.
      replicas.onFetch(fetch(b, 100 + n * 10), 110 + n * 10, n * 500)
      replicas.onFetch(fetch(c, 100 + n * 10), 110 + n * 10, n * 500)
    }
    expect(replicas.shrink(1000, 25_100, maxLagMs)).toBe(false)
  })

  test('a follower with nothing to fetch stays in however long it is silent', () => {
    const replicas = led([1, 2])
    replicas.onFetch(fetch(b, 100), 100, 10)
    expect(replicas.shrink(100, 1_000_000, maxLagMs)).toBe(false)
  })

  test('wants a follower in when it has all that is committed and this leader epoch, and may join', () => {
    const replicas = led([1, 2])
    replicas.onFetch(fetch(c, 99), 130, 10)
    expect(replicas.expand(c, 90, anyone)).toBe(false) // it may hold what another epoch left behind
    replicas.onFetch(fetch(c, 119), 130, 20)
    expect(replicas.expand(c, 120, anyone)).toBe(false) // not all that is committed
    replicas.onFetch(fetch(c, 120), 130, 30)
    expect(replicas.expand(c, 120, () => false)).toBe(false)
    expect(replicas.expand(c, 120, anyone)).toBe(true)
    expect(replicas.wanted).toEqual({ isr: [1, 2, 3], partitionEpoch: 7 })
    expect(replicas.maximal).toEqual([1, 2, 3])
    expect(replicas.committed).toEqual([1, 2])
  })

  test('counts whoever may be in sync until the answer is known', () => {
    const replicas = led()
    replicas.onFetch(fetch(b, 120), 120, 1)
    expect(replicas.shrink(120, 2000, maxLagMs)).toBe(true)
    expect(replicas.maximal).toEqual([1, 2, 3])
    replicas.onAnswer(replicas.wanted!, { ok: true, isr: [leader, b], partitionEpoch: 8 as PartitionEpoch })
    expect(replicas.maximal).toEqual([1, 2])
    expect(replicas.partitionEpoch).toBe(8)
  })

  test('asks for one change at a time, and not for the same again while it is outdated', () => {
    const replicas = led([1])
    replicas.onFetch(fetch(b, 100), 100, 1)
    replicas.onFetch(fetch(c, 100), 100, 1)
    expect(replicas.expand(b, 100, anyone)).toBe(true)
    expect(replicas.expand(c, 100, anyone)).toBe(false)
    const asked = replicas.wanted!
    replicas.onAnswer(asked, { ok: false, reason: 'outdated' })
    expect(replicas.maximal).toEqual([1, 2]) // it may have been made so
    replicas.applyImage(image([1, 3], 8))
    expect(replicas.maximal).toEqual([1, 3])
    expect(replicas.expand(b, 100, anyone)).toBe(true)
  })

  test('what is refused is as if it was never asked for', () => {
    const replicas = led([1])
    replicas.onFetch(fetch(b, 100), 100, 1)
    expect(replicas.expand(b, 100, anyone)).toBe(true)
    replicas.onAnswer(replicas.wanted!, { ok: false, reason: 'refused' })
    expect(replicas.maximal).toEqual([1])
  })

  test('an answer that the metadata has overtaken changes nothing', () => {
    const replicas = led([1])
    replicas.onFetch(fetch(b, 100), 100, 1)
    expect(replicas.expand(b, 100, anyone)).toBe(true)
    const asked = replicas.wanted!
    replicas.applyImage(image([1, 3], 9))
    replicas.onAnswer(asked, { ok: true, isr: [leader, b], partitionEpoch: 8 as PartitionEpoch })
    expect({ isr: replicas.committed, epoch: replicas.partitionEpoch }).toEqual({ isr: [1, 3], epoch: 9 })
  })

  test('a request of a run of the broker that has ended says nothing', () => {
    const replicas = led([1])
    replicas.onFetch(fetch(b, 0, 12), 120, 1)
    replicas.onFetch(fetch(b, 120, 11), 120, 2)
    expect([replicas.offsetOf(b), replicas.brokerEpochOf(b)]).toEqual([0, 12])
  })

  test('the low watermark is the lowest log start of who is alive', () => {
    const replicas = led([1, 2])
    replicas.onFetch({ ...fetch(b, 120), logStartOffset: 30 }, 120, 1)
    expect(replicas.lowWatermark(50, anyone)).toBe(0) // nothing is known of c
    expect(replicas.lowWatermark(50, (replica) => replica === b)).toBe(30)
    expect(replicas.lowWatermark(20, (replica) => replica === b)).toBe(20)
  })

  test('the low watermark counts who is not alive and may lead without being in sync again', () => {
    const replicas = new InSyncReplicas(image([1, 2], 7, { elr: [c] }), leader, 100, 0)
    const nobody = () => false
    replicas.onFetch({ ...fetch(b, 120), logStartOffset: 30 }, 120, 1)
    expect(replicas.lowWatermark(50, nobody)).toBe(0)
    replicas.onFetch({ ...fetch(c, 110), logStartOffset: 20 }, 120, 1)
    expect(replicas.lowWatermark(50, nobody)).toBe(20)
    replicas.applyImage(image([1], 8, { elr: [b] }))
    expect(replicas.lowWatermark(50, nobody)).toBe(30)
    replicas.applyImage(image([1], 9))
    expect(replicas.lowWatermark(50, nobody)).toBe(50)
  })

  test('a leader out of the ISR says once that it leads with what it has', () => {
    const recovering = image([1], 7, { leaderRecoveryState: 'recovering' })
    const replicas = new InSyncReplicas(recovering, leader, 100, 0)
    expect([replicas.recover(), replicas.recover()]).toEqual([true, false])
    replicas.onAnswer(replicas.wanted!, { ok: true, isr: [leader], partitionEpoch: 8 as PartitionEpoch })
    expect(replicas.recover()).toBe(false)
    expect(led().recover()).toBe(false)
  })

  test('whatever happens, the leader is in the ISR, and the maximal one holds both that may be', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('fetch'), who: fc.constantFrom(b, c), offset: fc.integer({ min: 90, max: 140 }) }),
      fc.record({ kind: fc.constant('expand'), who: fc.constantFrom(b, c), offset: fc.integer({ min: 90, max: 140 }) }),
      fc.record({
        kind: fc.constantFrom('shrink', 'accept', 'refuse', 'outdate'),
        who: fc.constant(b),
        offset: fc.constant(0),
      }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const replicas = led()
        let epoch = 7
        for (const [i, { kind, who, offset }] of steps.entries()) {
          const nowMs = i * 200
          const { wanted } = replicas
          if (kind === 'fetch') replicas.onFetch(fetch(who, offset), 140, nowMs)
          else if (kind === 'expand') replicas.expand(who, offset, anyone)
          else if (kind === 'shrink') replicas.shrink(140, nowMs, maxLagMs)
          else if (wanted === undefined) continue
          else if (kind === 'accept') {
            replicas.onAnswer(wanted, { ok: true, isr: wanted.isr, partitionEpoch: ++epoch as PartitionEpoch })
          } else if (kind === 'refuse') replicas.onAnswer(wanted, { ok: false, reason: 'refused' })
          else replicas.applyImage(image([1], ++epoch))
          expect(replicas.committed).toContain(leader)
          expect(replicas.maximal).toEqual(
            expect.arrayContaining([...replicas.committed, ...(replicas.wanted?.isr ?? [])]),
          )
          expect(replicas.partitionEpoch).toBe(epoch)
        }
      }),
    )
  })
})
