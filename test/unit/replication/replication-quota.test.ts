import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ReplicationQuota } from '../../../src/replication/index.ts'
import { Metrics } from '../../../src/telemetry/index.ts'
import { ManualTime } from '../../support/manual-time.ts'

function quotaOf(bytesPerSecond: number, windows = { count: 11, sizeMs: 1000 }) {
  const time = new ManualTime()
  const metrics = new Metrics()
  const quota = new ReplicationQuota(time, windows, metrics.counter('bytes'))
  quota.bytesPerSecond = bytesPerSecond
  return { time, metrics, quota }
}

describe('ReplicationQuota', () => {
  test('without a limit is never exceeded, and counts', () => {
    const { quota, metrics } = quotaOf(Number.POSITIVE_INFINITY)
    quota.record(1e12)
    expect(quota.isExceeded).toBe(false)
    expect(metrics.snapshot()).toEqual({ bytes: 1e12 })
  })

  test('allows what fits into one window at once, and no more', () => {
    const { quota } = quotaOf(1000)
    quota.record(1000)
    expect(quota.isExceeded).toBe(false)
    quota.record(1)
    expect(quota.waitMs).toBe(1001)
  })

  test('keeps a low rate where one batch is more than all windows allow', () => {
    const { quota, time } = quotaOf(10)
    quota.record(10_000)
    time.advance(999_000)
    expect(quota.waitMs).toBe(1000)
    time.advance(1000)
    expect(quota.isExceeded).toBe(false)
    quota.record(11)
    expect(quota.waitMs).toBe(1100)
  })

  test('at a rate of 0 moves nothing after the first', () => {
    const { quota, time } = quotaOf(0)
    expect(quota.isExceeded).toBe(false)
    quota.record(1)
    time.advance(1e9)
    expect(quota.waitMs).toBe(Number.POSITIVE_INFINITY)
  })

  test('forgets what moved under another limit', () => {
    const { quota } = quotaOf(10)
    quota.record(1e6)
    quota.bytesPerSecond = 100
    expect(quota.isExceeded).toBe(false)
  })

  test('gives the rate, whatever the pieces: neither more, beside what one window holds, nor less', () => {
    const pieces = fc.array(fc.integer({ min: 1, max: 100_000 }), { minLength: 1, maxLength: 200 })
    const windows = fc.record({ count: fc.integer({ min: 1, max: 20 }), sizeMs: fc.constantFrom(500, 1000, 5000) })
    fc.assert(
      fc.property(pieces, fc.integer({ min: 1, max: 50_000 }), windows, (sizes, rate, window) => {
        const { quota, time } = quotaOf(rate, window)
        const startMs = time.monotonic()
        let moved = 0
        for (const size of sizes) {
          time.advance(quota.waitMs)
          const allowed = (rate * (time.monotonic() - startMs + window.sizeMs)) / 1000
          expect(moved).toBeLessThanOrEqual(allowed * 1.001 + 1)
          quota.record(size)
          moved += size
        }
        time.advance(quota.waitMs)
        expect(time.monotonic() - startMs).toBeLessThanOrEqual((moved * 1000) / rate + 1)
      }),
    )
  })
})
