import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { TailCache, type TailSlices } from '../../../src/log/tail-cache.ts'
import { BatchView, buildBatch } from '../../../src/protocol/index.ts'

/** One record of `bytes` bytes at `baseOffset`. */
function batch(baseOffset: number, bytes: number, mark: number): Buffer {
  return buildBatch({ baseOffset, records: [{ timestamp: 0, value: Buffer.alloc(bytes, mark) }] })
}

function offsets(slices: TailSlices | undefined): number[] | undefined {
  if (slices === undefined) return undefined
  const found: number[] = []
  const bytes = Buffer.concat(slices.chunks)
  for (let at = 0; at < bytes.length; at += new BatchView(bytes, at).sizeBytes)
    found.push(new BatchView(bytes, at).baseOffset)
  slices.release()
  return found
}

const everything = (tail: ReturnType<TailCache['openTail']>, from: number) =>
  offsets(tail.read(from, Number.MAX_SAFE_INTEGER, 1 << 30, true))

describe('the tail cache', () => {
  test('gives batches of one log as few slices, without a copy', () => {
    const tail = new TailCache({ budgetBytes: 1 << 20 }).openTail()
    for (let i = 0; i < 100; i++) tail.append(batch(i, 50, i), i, i + 1)
    const slices = tail.read(10, 90, 1 << 20, true)!
    expect(slices.chunks).toHaveLength(1)
    expect(offsets(slices)).toEqual(Array.from({ length: 80 }, (_, i) => i + 10))
  })

  test('forgets the oldest when its memory is full, and knows nothing of what it forgot', () => {
    const cache = new TailCache({ budgetBytes: 40_000, arenaBytes: 10_000 })
    const tail = cache.openTail()
    const idle = cache.openTail()
    idle.append(batch(0, 50, 1), 0, 1)
    for (let i = 0; i < 1000; i++) tail.append(batch(i, 1000, i), i, i + 1)
    expect(cache.allocatedBytes).toBe(40_000)
    expect(tail.read(0, 1000, 100, true)).toBeUndefined()
    expect(idle.read(0, 1, 100, true)).toBeUndefined()
    expect(idle.firstOffset).toBeUndefined()
    expect(everything(tail, tail.firstOffset!)!.at(-1)).toBe(999)
  })

  test('never writes over what a reader holds, and never takes more memory for it', () => {
    const cache = new TailCache({ budgetBytes: 40_000, arenaBytes: 10_000 })
    const tail = cache.openTail()
    const held: { slices: TailSlices; copy: Buffer }[] = []
    for (let i = 0; i < 400; i++) {
      tail.append(batch(i, 900, i), i, i + 1)
      const slices = i % 20 === 0 ? tail.read(i, i + 1, 1, true) : undefined
      if (slices !== undefined) held.push({ slices, copy: Buffer.concat(slices.chunks) })
      expect(cache.allocatedBytes).toBeLessThanOrEqual(40_000)
    }
    expect(held.length).toBeGreaterThanOrEqual(4)
    for (const { slices, copy } of held) expect(Buffer.concat(slices.chunks)).toEqual(copy)
    // All arenas are held: what comes is not cached, until they are given back.
    expect(tail.firstOffset).toBeUndefined()
    for (const { slices } of held) {
      slices.release()
      slices.release()
    }
    tail.append(batch(400, 900, 1), 400, 401)
    expect(everything(tail, 400)).toEqual([400])
  })

  test('has no gap: after a batch that was too large it begins anew', () => {
    const tail = new TailCache({ budgetBytes: 40_000, arenaBytes: 10_000 }).openTail()
    tail.append(batch(0, 10, 1), 0, 1)
    tail.append(batch(1, 20_000, 1), 1, 2)
    tail.append(batch(2, 10, 1), 2, 3)
    expect(tail.read(0, 3, 100, true)).toBeUndefined()
    expect(tail.firstOffset).toBe(2)
  })

  test('with a budget of 0 caches nothing', () => {
    const cache = new TailCache({ budgetBytes: 0 })
    const tail = cache.openTail()
    tail.append(batch(0, 10, 1), 0, 1)
    expect([cache.allocatedBytes, tail.firstOffset]).toEqual([0, undefined])
  })

  test('whatever logs append and read, they get their own bytes', () => {
    const step = fc.record({
      log: fc.nat(2),
      records: fc.integer({ min: 1, max: 5 }),
      bytes: fc.integer({ min: 0, max: 1500 }),
      read: fc.boolean(),
      back: fc.nat(20),
      maxBytes: fc.integer({ min: 0, max: 4000 }),
      keep: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), (steps) => {
        const cache = new TailCache({ budgetBytes: 16_000, arenaBytes: 4000 })
        const logs = [0, 1, 2].map(() => ({ tail: cache.openTail(), batches: [] as Buffer[], end: 0 }))
        const held: { slices: TailSlices; copy: Buffer }[] = []
        for (const [i, { log, records, bytes, read, back, maxBytes, keep }] of steps.entries()) {
          const own = logs[log]!
          const values = Array.from({ length: records }, () => ({
            timestamp: 0,
            value: Buffer.alloc(bytes / records, i),
          }))
          const appended = buildBatch({ baseOffset: own.end, records: values })
          own.tail.append(appended, own.end, own.end + records)
          own.batches.push(appended)
          own.end += records
          if (!read) continue
          const from = Math.max(0, own.end - 1 - back)
          const slices = own.tail.read(from, own.end, maxBytes, true)
          if (slices === undefined) continue
          const copy = Buffer.concat(slices.chunks)
          const first = own.batches.findIndex((each) => new BatchView(each).lastOffset >= from)
          const expected = Buffer.concat(own.batches.slice(first))
          expect(copy.equals(expected.subarray(0, copy.length))).toBe(true)
          expect(copy.length).toBeGreaterThan(0)
          if (copy.length > maxBytes) expect(copy.length).toBe(own.batches[first]!.length)
          if (keep && held.length < 3) held.push({ slices, copy })
          else slices.release()
        }
        for (const { slices, copy } of held) {
          expect(Buffer.concat(slices.chunks).equals(copy)).toBe(true)
          slices.release()
        }
      }),
      { numRuns: 60 },
    )
  })
})
