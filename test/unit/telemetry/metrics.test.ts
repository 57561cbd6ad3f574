import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Histogram, Metrics } from '../../../src/telemetry/index.ts'

describe('Metrics', () => {
  test('gives the same counter for the same name and shows its value', () => {
    const metrics = new Metrics()
    metrics.counter('BytesInPerSec').value += 5
    metrics.counter('BytesInPerSec').value++
    metrics.gauge('PartitionCount').value = 3
    let size = 1
    metrics.reading('QueueSize', () => size)
    size = 9
    expect(metrics.snapshot()).toEqual({ BytesInPerSec: 6, PartitionCount: 3, QueueSize: 9 })
  })

  test('shows a histogram with its count and percentiles', () => {
    const metrics = new Metrics()
    for (const ms of [1, 2, 3, 4]) metrics.histogram('FlushTimeMs').record(ms)
    expect(metrics.snapshot()).toEqual({ FlushTimeMs: { count: 4, sum: 10, max: 4, p50: 2, p99: 4 } })
  })

  test('refuses a name that has another kind', () => {
    const metrics = new Metrics()
    metrics.counter('a')
    metrics.histogram('b')
    expect(() => metrics.gauge('a')).toThrow('metric a has one kind')
    expect(() => metrics.histogram('a')).toThrow('metric a has one kind')
    expect(() => metrics.counter('b')).toThrow('metric b has one kind')
    expect(() => metrics.reading('b', () => 0)).toThrow('metric b has one kind')
  })

  test('forgets what was removed', () => {
    const metrics = new Metrics()
    metrics.counter('a').value = 4
    metrics.remove('a')
    expect(metrics.snapshot()).toEqual({})
    expect(metrics.counter('a').value).toBe(0)
  })
})

describe('Histogram', () => {
  test('is all zero while nothing was recorded', () => {
    expect(new Histogram().snapshot()).toEqual({ count: 0, sum: 0, max: 0, p50: 0, p99: 0 })
  })

  test('gives a percentile at or above the exact one, by an eighth at most', () => {
    const values = fc.array(fc.nat({ max: 2 ** 40 }), { minLength: 1, maxLength: 200 })
    fc.assert(
      fc.property(values, fc.double({ min: 0.01, max: 1, noNaN: true }), (recorded, share) => {
        const histogram = new Histogram()
        for (const value of recorded) histogram.record(value)
        const exact = recorded.toSorted((a, b) => a - b)[Math.ceil(recorded.length * share) - 1]!
        const given = histogram.percentile(share)
        expect(given).toBeGreaterThanOrEqual(exact)
        expect(given).toBeLessThanOrEqual(exact + exact / 8)
      }),
    )
  })

  test('takes zero, fractions, the largest numbers and nonsense', () => {
    const histogram = new Histogram()
    for (const value of [0, 0.9, -5, Number.NaN, 2 ** 52, Number.MAX_SAFE_INTEGER]) histogram.record(value)
    expect(histogram.count).toBe(6)
    expect(histogram.percentile(0.5)).toBe(0)
    expect(histogram.max).toBe(Number.MAX_SAFE_INTEGER)
  })
})
