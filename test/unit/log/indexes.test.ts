import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LeaderEpoch } from '../../../src/base/index.ts'
import { EpochCache } from '../../../src/log/epoch-cache.ts'
import { OffsetIndex, TimeIndex } from '../../../src/log/indexes.ts'

const ascending = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 5000 })), { maxLength: 200 })
  .map((steps) => {
    let offset = 999
    let position = -1
    return steps.map(([more, bytes]) => {
      offset += more
      position += bytes
      return { offset, position }
    })
  })

describe('OffsetIndex', () => {
  test('finds the last entry at or below an offset, before and after it was stored', () => {
    fc.assert(
      fc.property(ascending, fc.integer({ min: 1000, max: 12_000 }), (entries, offset) => {
        const index = new OffsetIndex(1000)
        for (const entry of entries) index.append(entry.offset, entry.position)
        const expected = entries.findLast((entry) => entry.offset <= offset)?.position ?? 0
        const stored = new OffsetIndex(1000, Buffer.from(index.stored))
        expect([index.lookup(offset), stored.lookup(offset)]).toEqual([expected, expected])
        expect(stored.isSane(1 << 30)).toBe(true)
        stored.truncateTo(offset)
        expect(stored.count).toBe(entries.filter((entry) => entry.offset < offset).length)
      }),
    )
  })

  test('looks as Kafka writes it', () => {
    const index = new OffsetIndex(1000)
    index.append(1005, 4200)
    index.append(1300, 70_000)
    expect(index.stored.toString('hex')).toBe('00000005000010680000012c00011170')
  })

  test('is insane when a column does not grow, or points past the segment', () => {
    const of = (...pairs: [number, number][]) => {
      const index = new OffsetIndex(0)
      for (const [offset, position] of pairs) index.append(offset, position)
      return index
    }
    expect(of([1, 10], [2, 20]).isSane(21)).toBe(true)
    expect(of([1, 10], [2, 20]).isSane(20)).toBe(false)
    expect(of([2, 10], [2, 20]).isSane(100)).toBe(false)
    expect(of([1, 20], [2, 10]).isSane(100)).toBe(false)
    expect(of([-1, 20]).isSane(100)).toBe(false)
  })
})

describe('TimeIndex', () => {
  test('keeps only timestamps that grow, and finds the last smaller one', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -1, max: 2 ** 45 }), { maxLength: 100 }),
        fc.nat(2 ** 45),
        (times, sought) => {
          const index = new TimeIndex(500)
          const kept: { timestamp: number; offset: number }[] = []
          for (const [i, timestamp] of times.entries()) {
            index.maybeAppend(timestamp, 500 + i)
            if (timestamp > (kept.at(-1)?.timestamp ?? -1)) kept.push({ timestamp, offset: 500 + i })
          }
          const stored = new TimeIndex(500, Buffer.from(index.stored))
          expect(stored.count).toBe(kept.length)
          expect(stored.isSane()).toBe(true)
          expect(stored.last).toEqual(kept.at(-1))
          expect(stored.lastBefore(sought)).toEqual(kept.findLast((entry) => entry.timestamp < sought))
          expect(stored.lastBelow(550)).toEqual(kept.findLast((entry) => entry.offset < 550))
        },
      ),
    )
  })

  test('looks as Kafka writes it', () => {
    const index = new TimeIndex(1000)
    index.maybeAppend(1_735_689_600_000, 1005)
    expect(index.stored.toString('hex')).toBe('000001941f297c0000000005')
  })
})

describe('EpochCache', () => {
  const epochs = fc.array(fc.tuple(fc.nat(30), fc.nat(100)), { maxLength: 30 })
  const grows = (cache: EpochCache) =>
    cache.entries.every((entry, i) => {
      const before = cache.entries[i - 1]
      return before === undefined || (before.epoch < entry.epoch && before.startOffset < entry.startOffset)
    })

  test('grows in both columns, whatever is assigned, truncated and loaded', () => {
    fc.assert(
      fc.property(epochs, fc.nat(100), fc.nat(100), (assigned, end, start) => {
        const cache = new EpochCache()
        for (const [epoch, offset] of assigned) {
          cache.assign(epoch as LeaderEpoch, offset)
          expect(cache.latestEpoch).toBe(epoch)
          expect(grows(cache)).toBe(true)
        }
        const loaded = new EpochCache()
        loaded.load(cache.entries)
        expect(loaded.entries).toEqual(cache.entries)
        cache.truncateFromEnd(end)
        expect(cache.entries.every((entry) => entry.startOffset < end)).toBe(true)
        const before = cache.epochAt(start)
        cache.truncateFromStart(start)
        expect(grows(cache)).toBe(true)
        expect(cache.epochAt(start)).toBe(before)
      }),
    )
  })

  test('tells where an epoch ended as Kafka does', () => {
    const cache = new EpochCache()
    for (const [epoch, offset] of [
      [2, 10],
      [4, 20],
      [7, 35],
    ] as const) {
      cache.assign(epoch as LeaderEpoch, offset)
    }
    const ends = [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8].map((epoch) => {
      const { leaderEpoch, endOffset } = cache.endOffsetFor(epoch as LeaderEpoch, 50)
      return [leaderEpoch, endOffset]
    })
    expect(ends).toEqual([
      [-1, -1],
      [0, 10],
      [1, 10],
      [2, 20],
      [2, 20],
      [4, 35],
      [4, 35],
      [4, 35],
      [7, 50],
      [-1, -1],
    ])
  })
})
