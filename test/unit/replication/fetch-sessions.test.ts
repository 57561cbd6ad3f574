import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type LeaderEpoch, type Uuid, zeroUuid } from '../../../src/base/index.ts'
import {
  type AskedPartition,
  type FetchedPartition,
  type FetchSession,
  FetchSessions,
} from '../../../src/replication/index.ts'
import { Metrics } from '../../../src/telemetry/index.ts'
import { ManualTime } from '../../support/manual-time.ts'

const noEpoch = -1 as LeaderEpoch

function asked(topic: string, partition: number, changes: Partial<AskedPartition> = {}): AskedPartition {
  return {
    topic,
    topicId: zeroUuid,
    partition,
    fetchOffset: 0,
    maxBytes: 100,
    currentLeaderEpoch: noEpoch,
    lastFetchedEpoch: noEpoch,
    logStartOffset: 0,
    ...changes,
  }
}

function fetched(changes: Partial<FetchedPartition> = {}): FetchedPartition {
  const none = { highWatermark: 10, lastStableOffset: 10, logStartOffset: 0, chunks: [], sizeBytes: 0 }
  return { outcome: { ok: true }, ...none, ...changes }
}

function failed(): FetchedPartition {
  const none = { highWatermark: -1, lastStableOffset: -1, logStartOffset: -1, chunks: [], sizeBytes: 0 }
  return { outcome: { ok: false, reason: 'not-leader-or-follower' }, ...none }
}

function partitions(count: number, topic = 'orders'): AskedPartition[] {
  return Array.from({ length: count }, (_, i) => asked(topic, i))
}

function makeSessions(options: { maxSessions?: number; maxBytes?: number; ids?: number[] } = {}) {
  const time = new ManualTime()
  const metrics = new Metrics()
  let nextId = 0
  const sessions = new FetchSessions({
    maxSessions: options.maxSessions ?? 10,
    clock: time,
    random: { int: () => options.ids?.shift() ?? nextId++ },
    metrics,
    ...(options.maxBytes === undefined ? {} : { maxBytes: options.maxBytes }),
  })
  const create = (list: readonly AskedPartition[], usesTopicIds = false) =>
    sessions.create(
      usesTopicIds,
      list,
      list.map(() => fetched()),
    )
  const resume = (sessionId: number, epoch: number, changes: Partial<Parameters<FetchSessions['resume']>[0]> = {}) =>
    sessions.resume({ sessionId, epoch, usesTopicIds: false, changed: [], forgotten: [], ...changes })
  /** The session, which must go on. */
  const resumed = (sessionId: number, epoch: number, changes: Parameters<typeof resume>[2] = {}): FetchSession => {
    const outcome = resume(sessionId, epoch, changes)
    if (!outcome.ok || outcome.session === undefined) throw new Error(`It ended: ${JSON.stringify(outcome)}`)
    return outcome.session
  }
  return { time, metrics, sessions, create, resume, resumed }
}

const namesOf = (session: FetchSession) => [...session.partitions].map((each) => `${each.topic}-${each.partition}`)

describe('FetchSessions.create() and resume()', () => {
  test('a session goes on epoch by epoch, and every other epoch is refused', () => {
    const { create, resume, resumed } = makeSessions()
    const id = create(partitions(2))
    expect(id).toBeGreaterThan(0)
    for (const epoch of [0, 2, -2]) {
      expect(resume(id, epoch)).toEqual({ ok: false, reason: 'invalid-fetch-session-epoch' })
    }
    expect(namesOf(resumed(id, 1))).toEqual(['orders-0', 'orders-1'])
    expect(resume(id, 1)).toEqual({ ok: false, reason: 'invalid-fetch-session-epoch' })
    expect(resumed(id, 2).epoch).toBe(3)
  })

  test('after epoch 2147483647 comes 1', () => {
    const { create, resumed } = makeSessions()
    const id = create(partitions(1))
    const session = resumed(id, 1)
    session.epoch = 2 ** 31 - 1
    expect(resumed(id, 2 ** 31 - 1).epoch).toBe(1)
    expect(resumed(id, 1).epoch).toBe(2)
  })

  test('ids are random from 1 to 2147483647, and none is given twice', () => {
    const { create } = makeSessions({ ids: [0, 0, 2 ** 31 - 2] })
    expect(create(partitions(1))).toBe(1)
    expect(create(partitions(1))).toBe(2 ** 31 - 1)
  })

  test('one that was never made, or was closed, is not found', () => {
    const { create, resume, sessions } = makeSessions()
    const id = create(partitions(1))
    expect(resume(id + 1, 1)).toEqual({ ok: false, reason: 'fetch-session-id-not-found' })
    sessions.close(id)
    sessions.close(id)
    expect(resume(id, 1)).toEqual({ ok: false, reason: 'fetch-session-id-not-found' })
  })

  test('names and topic ids are not mixed in one session', () => {
    const { create, resume } = makeSessions()
    const byName = create(partitions(1))
    const byId = create([asked('orders', 0, { topicId: 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid })], true)
    const error = { ok: false, reason: 'fetch-session-topic-id-error' }
    expect(resume(byName, 1, { usesTopicIds: true })).toEqual(error)
    expect(resume(byId, 1)).toEqual(error)
    // It can still go on as it was.
    expect(resume(byId, 1, { usesTopicIds: true }).ok).toBe(true)
  })

  test('partitions are added, changed and forgotten', () => {
    const { create, resumed, metrics } = makeSessions()
    const id = create(partitions(2))
    const changed = [asked('orders', 1, { fetchOffset: 7, maxBytes: 9 }), asked('other', 0)]
    const session = resumed(id, 1, { changed, forgotten: [asked('orders', 0), asked('never', 3)] })
    expect([...session.partitions]).toMatchObject([
      { topic: 'orders', partition: 1, fetchOffset: 7, maxBytes: 9 },
      { topic: 'other', partition: 0, fetchOffset: 0, maxBytes: 100 },
    ])
    expect(metrics.snapshot()).toMatchObject({
      NumIncrementalFetchSessions: 1,
      NumIncrementalFetchPartitionsCached: 2,
    })
  })

  test('by topic id a partition is the same whatever its name', () => {
    const { create, resumed } = makeSessions()
    const topicId = 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid
    const id = create([asked('orders', 0, { topicId })], true)
    const changed = [{ ...asked('orders', 0, { topicId, fetchOffset: 3 }), topic: undefined }]
    const session = resumed(id, 1, { usesTopicIds: true, changed })
    expect([...session.partitions]).toMatchObject([{ topic: 'orders', topicId, fetchOffset: 3 }])
  })

  test('a session without partitions ends, and the request goes on without one', () => {
    const { create, resume, metrics } = makeSessions()
    const id = create(partitions(1))
    expect(resume(id, 1, { forgotten: partitions(1) })).toEqual({ ok: true, session: undefined })
    expect(resume(id, 2)).toEqual({ ok: false, reason: 'fetch-session-id-not-found' })
    expect(metrics.snapshot()).toMatchObject({ NumIncrementalFetchSessions: 0, NumIncrementalFetchPartitionsCached: 0 })
  })
})

describe('FetchSession.tell()', () => {
  const only = (session: FetchSession) => [...session.partitions][0]!

  test('tells of records, of an error, of the end of an error, and of offsets that moved; and of nothing else', () => {
    const { create, resumed } = makeSessions()
    const session = resumed(create(partitions(1)), 1)
    const told = (answer: FetchedPartition) => session.tell(only(session), answer)
    expect(told(fetched())).toBe(false)
    expect(told(fetched({ sizeBytes: 1 }))).toBe(true)
    expect(told(fetched())).toBe(false)
    expect(told(fetched({ highWatermark: 11 }))).toBe(true)
    expect(told(fetched({ highWatermark: 11, logStartOffset: 2 }))).toBe(true)
    const last = fetched({ highWatermark: 11, logStartOffset: 2 })
    expect(told(last)).toBe(false)
    expect(told(failed())).toBe(true)
    expect(told(failed())).toBe(true)
    expect(told({ ...last, divergingEpoch: { epoch: 0 as LeaderEpoch, endOffset: 4 } })).toBe(true)
    expect(told(last)).toBe(true)
    expect(told(last)).toBe(false)
  })

  test('a partition that gave records is read last the next time', () => {
    const { create, resumed } = makeSessions()
    const session = resumed(create(partitions(3)), 1)
    for (const each of [...session.partitions]) {
      session.tell(each, fetched({ sizeBytes: each.partition === 0 ? 100 : 0 }))
    }
    expect(namesOf(session)).toEqual(['orders-1', 'orders-2', 'orders-0'])
  })

  test('with room for one partition in each answer, busy partitions take turns', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 60 }), (count, rounds) => {
        const { create, resumed } = makeSessions()
        const session = resumed(create(partitions(count)), 1)
        const served = new Array<number>(count).fill(0)
        for (let round = 0; round < rounds; round++) {
          let isFirst = true
          for (const each of [...session.partitions]) {
            if (isFirst) served[each.partition]!++
            session.tell(each, fetched({ sizeBytes: isFirst ? 50 : 0 }))
            isFirst = false
          }
        }
        expect(Math.max(...served) - Math.min(...served)).toBeLessThanOrEqual(1)
      }),
    )
  })

  test('one that was forgotten while it was read does not come back', () => {
    const { create, resumed } = makeSessions()
    const id = create(partitions(2))
    const session = resumed(id, 1)
    const first = only(session)
    resumed(id, 2, { forgotten: [asked('orders', 0)] })
    session.tell(first, fetched({ sizeBytes: 5 }))
    expect(namesOf(session)).toEqual(['orders-1'])
  })
})

describe('FetchSessions make place', () => {
  test('none with 0 slots', () => {
    const { create } = makeSessions({ maxSessions: 0 })
    expect(create(partitions(1))).toBe(0)
  })

  test('a session in use stays, however many would like its place', () => {
    const { create, resume } = makeSessions({ maxSessions: 1 })
    const id = create(partitions(1))
    expect(create(partitions(100))).toBe(0)
    expect(resume(id, 1).ok).toBe(true)
  })

  test('the one that was used longest ago goes after 120 seconds without use', () => {
    const { time, create, resume, metrics } = makeSessions({ maxSessions: 2 })
    const old = create(partitions(5))
    const used = create(partitions(5))
    time.advance(60_000)
    expect(resume(used, 1).ok).toBe(true)
    time.advance(60_000)
    expect(create(partitions(1))).toBe(0)
    time.advance(1)
    expect(create(partitions(1))).not.toBe(0)
    expect(resume(old, 1).ok).toBe(false)
    expect(resume(used, 2).ok).toBe(true)
    expect(metrics.snapshot().IncrementalFetchSessionEvictionsPerSec).toBe(1)
  })

  test('the smallest of those that have lasted 120 seconds goes for a larger one', () => {
    const { time, create, resume } = makeSessions({ maxSessions: 3 })
    const ids = [3, 2, 4].map((count) => create(partitions(count)))
    for (let epoch = 1; epoch <= 3; epoch++) {
      time.advance(50_000)
      for (const id of ids) expect(resume(id, epoch).ok).toBe(true)
    }
    expect(create(partitions(2))).toBe(0)
    expect(create(partitions(3))).not.toBe(0)
    expect(ids.map((id) => resume(id, 4).ok)).toEqual([true, false, true])
  })

  test('what sessions remember has a bound in bytes: a large one is not made, and one that grows too large ends', () => {
    const { create, resume, metrics } = makeSessions({ maxBytes: 3000 })
    expect(create([asked('x'.repeat(5000), 0), asked('y', 0)])).toBe(0)
    expect(create(partitions(100))).toBe(0)
    const id = create(partitions(2))
    expect(id).not.toBe(0)
    const grown = resume(id, 1, { changed: partitions(100, 'more'), forgotten: partitions(100, 'more') })
    expect(grown).toEqual({ ok: false, reason: 'fetch-session-id-not-found' })
    expect(metrics.snapshot()).toMatchObject({ NumIncrementalFetchSessions: 0, NumIncrementalFetchPartitionsCached: 0 })
    expect(create(partitions(2))).not.toBe(0)
  })

  test('the count of bytes and partitions follows every change', () => {
    const step = fc.record({
      session: fc.nat({ max: 3 }),
      changed: fc.array(fc.nat({ max: 5 })),
      forgotten: fc.array(fc.nat({ max: 5 })),
    })
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const { create, resume, metrics, sessions } = makeSessions()
        const live = new Map<number, { epoch: number; partitions: Set<number> }>()
        for (const { session, changed, forgotten } of steps) {
          const id = [...live.keys()][session]
          const toAsked = (numbers: readonly number[]) => numbers.map((number) => asked('orders', number))
          if (id === undefined) {
            live.set(create(toAsked(changed)), { epoch: 1, partitions: new Set(changed) })
            continue
          }
          const known = live.get(id)!
          const outcome = resume(id, known.epoch++, { changed: toAsked(changed), forgotten: toAsked(forgotten) })
          for (const each of changed) known.partitions.add(each)
          for (const each of forgotten) known.partitions.delete(each)
          expect(outcome).toMatchObject({ ok: true })
          if (known.partitions.size === 0) live.delete(id)
        }
        const count = [...live.values()].reduce((sum, each) => sum + each.partitions.size, 0)
        expect(metrics.snapshot()).toMatchObject({
          NumIncrementalFetchSessions: live.size,
          NumIncrementalFetchPartitionsCached: count,
        })
        for (const id of live.keys()) sessions.close(id)
        expect(metrics.snapshot()).toMatchObject({ NumIncrementalFetchPartitionsCached: 0 })
      }),
    )
  })
})
