import { describe, expect, test } from 'vitest'
import type { Append, FinalLog, Read } from './history.ts'
import { append, log, read } from './made-history.ts'
import { early, judgeReads, outOfRange } from './reads.ts'

function broken(
  reads: readonly Read[],
  finalLog: FinalLog,
  appends: readonly Append[] = [append('a', [0, 1], finalLog.records.map(({ value }) => value).join(' '), 0)],
): readonly string[] {
  return [...new Set(judgeReads({ reads, appends, logs: [finalLog] }).map(({ property }) => property))]
}

describe('the judge of reads', () => {
  test('accepts reads from anywhere, again and again, of what is there in the end', () => {
    const reads = [read([2, 3], 0, 'x y z'), read([4, 5], 1, 'y', { highWatermark: 3 }), read([6, 7], 3, '')]
    expect(broken(reads, log('x y z'))).toEqual([])
  })

  test('accepts the prefix that a leader of an earlier epoch still tells', () => {
    const appends = [append('a', [0, 1], 'x', 0), append('a', [2, 3], 'y', 1)]
    const stale = read([4, 5], 0, 'x', { leaderEpoch: 1 })
    expect(broken([stale], log('x@1 y@2'), appends)).toEqual([])
  })

  test('accepts that a new leader knows less at first than the one before told', () => {
    const reads = [read([4, 5], 0, 'x y'), read([6, 7], 0, 'x', { leaderEpoch: 2 })]
    expect(broken(reads, log('x y'))).toEqual([])
  })

  test('accepts reads that know nothing of an acknowledgement that they overlap', () => {
    const appends = [append('a', [0, 5], 'x', 0)]
    expect(broken([read([4, 6], 0, '')], log('x'), appends)).toEqual([])
  })

  test('refuses a value that is another one in the end, or none', () => {
    expect(broken([read([2, 3], 0, 'x q')], log('x y'))).toContain('inconsistent offset')
    expect(broken([read([2, 3], 0, 'x y')], log('x'), [append('a', [0, 9], 'x y', 0)])).toEqual(['inconsistent offset'])
  })

  test('refuses a value whose epoch is another one in the end', () => {
    expect(broken([read([2, 3], 0, 'x y')], log('x y@2'))).toEqual(['inconsistent epoch'])
  })

  test('refuses records that are skipped, repeated or out of order', () => {
    const at = (...offsets: number[]) => offsets.map((offset) => ({ offset, value: 'xyzw'[offset]!, leaderEpoch: 1 }))
    for (const records of [at(1, 2), at(0, 2), at(0, 0), at(1, 0)]) {
      const odd = read([2, 3], 0, '', { records, highWatermark: 4 })
      expect(broken([odd], log('x y z w')), JSON.stringify(records)).toContain('skipped records')
    }
  })

  test('refuses that a position that was reached is out of range', () => {
    const refused = read([2, 3], 2, '', { outcome: 'fail', note: outOfRange })
    expect(broken([refused], log('x y z'))).toEqual(['skipped records'])
    expect(broken([{ ...refused, note: 'error 6' }], log('x y z'))).toEqual([])
  })

  test('refuses an empty answer at once where there is something to read', () => {
    const empty = read([2, 3], 0, '', { highWatermark: 1, note: early })
    expect(broken([empty], log('x'))).toEqual(['skipped records'])
  })

  test('refuses what is above the high watermark of the same answer', () => {
    expect(broken([read([2, 3], 0, 'x y', { highWatermark: 1 })], log('x y'), [append('a', [0, 9], 'x y', 0)])).toEqual(
      ['beyond the high watermark'],
    )
  })

  test('refuses a value that was sent after the answer', () => {
    const appends = [append('a', [5, 6], 'x', 0)]
    expect(broken([read([2, 3], 0, 'x')], log('x'), appends)).toEqual(['read before it was written'])
  })

  test('refuses a read that misses what the leader of its epoch acknowledged before', () => {
    const appends = [append('a', [0, 1], 'x', 0), append('a', [2, 3], 'y', 1)]
    expect(broken([read([4, 5], 0, 'x')], log('x y'), appends)).toEqual(['stale read'])
  })

  test('does not count an acknowledgement that a later leader may have given', () => {
    const appends = [append('a', [0, 1], 'x', 0), append('a', [2, 3], 'y', 1, { attempts: 2 })]
    expect(broken([read([4, 5], 0, 'x')], log('x y'), appends)).toEqual([])
  })

  test('refuses a high watermark that goes back within an epoch', () => {
    const appends = [append('a', [0], 'x y')]
    expect(broken([read([4, 5], 0, 'x y'), read([6, 7], 0, 'x')], log('x y'), appends)).toEqual(['stale read'])
    expect(broken([read([4, 7], 0, 'x y'), read([6, 9], 0, 'x')], log('x y'), appends)).toEqual([])
  })
})
