import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { judgeAppends } from './appends.ts'
import type { Append, FinalLog } from './history.ts'
import { append, log } from './made-history.ts'

function broken(appends: readonly Append[], ...logs: readonly FinalLog[]): readonly string[] {
  return [...new Set(judgeAppends({ appends, logs }).map(({ property }) => property))]
}

describe('the judge of appends', () => {
  test('accepts what is in the log at its offsets, in the order of real time', () => {
    const appends = [append('a', [1, 2], 'x y', 0), append('b', [3, 4], 'z', 2), append('a', [5, 6], 'w', 3)]
    expect(broken(appends, log('x y z w'), log('x y z w', 2))).toEqual([])
  })

  test('accepts any order of appends that overlap', () => {
    const appends = [append('a', [1, 9], 'x', 1), append('b', [2, 8], 'y', 0)]
    expect(broken(appends, log('y x'))).toEqual([])
  })

  test('accepts an unknown outcome in the log at any later place, and out of it', () => {
    const early = append('a', [1], 'x')
    const later = append('b', [5, 6], 'y', 0)
    expect(broken([early, later], log('y x'))).toEqual([])
    expect(broken([early, later], log('y'))).toEqual([])
  })

  test('refuses an acknowledged append that is gone, or that is elsewhere', () => {
    const appends = [append('a', [1, 2], 'x', 0), append('a', [3, 4], 'y', 1)]
    expect(broken(appends, log('x'))).toEqual(['lost write'])
    expect(broken([append('a', [1, 2], 'x', 0), append('a', [3, 4], 'y', 2)], log('x y'))).toEqual(['lost write'])
  })

  test('refuses a partition that nobody could read', () => {
    expect(broken([append('a', [1, 2], 'x', 0)])).toEqual(['lost write'])
  })

  test('refuses an effect of what was refused', () => {
    const refused = append('a', [1, 2], 'x', undefined, { outcome: 'fail' })
    expect(broken([refused], log('x'))).toEqual(['effect of a refused write'])
  })

  test('refuses a record that is there twice', () => {
    expect(broken([append('a', [1, 2], 'x y', 0)], log('x y x y'))).toEqual(['duplicate'])
    expect(broken([append('a', [1, 2], 'x', 0, { attempts: 2 })], log('x x'))).toEqual(['duplicate'])
  })

  test('refuses a record that nobody sent', () => {
    expect(broken([append('a', [1, 2], 'x', 0)], log('x q'))).toEqual(['unknown value'])
  })

  test('refuses a batch that is torn', () => {
    const both = [append('a', [1, 9], 'x y', 0), append('b', [1, 9], 'z', 1)]
    expect(broken(both, log('x z y'))).toContain('torn batch')
    expect(broken([append('a', [1, 2], 'x y', 0)], log('x'))).toEqual(['torn batch'])
    expect(broken([append('a', [1], 'x y')], log('y'))).toEqual(['torn batch'])
  })

  test('refuses a gap between offsets', () => {
    const { records, ...rest } = log('x y')
    const gapped = { ...rest, records: [records[0]!, { ...records[1]!, offset: 2 }] }
    expect(broken([append('a', [1, 2], 'x', 0), append('a', [3, 4], 'y', 2)], gapped)).toEqual(['gap'])
  })

  test('refuses batches of one producer in another order than they were sent, even if their times overlap', () => {
    const first = append('a', [1, 9], 'x', 1, { sequence: 0 })
    const second = append('a', [2, 8], 'y', 0, { sequence: 1 })
    expect(broken([first, second], log('y x'))).toEqual(['reordering'])
  })

  test('refuses an append before one that was acknowledged before it was sent', () => {
    const appends = [append('a', [1, 2], 'x', 1), append('b', [3, 4], 'y', 0)]
    expect(broken(appends, log('y x'))).toEqual(['linearizability'])
  })

  test('refuses it also where others are between the two', () => {
    const appends = [
      append('a', [5, 6], 'x', 2),
      append('b', [1, 20], 'y', 1),
      append('c', [7, 8], 'z', 0),
      append('d', [1, 20], 'w', 3),
    ]
    expect(broken(appends, log('z y x w'))).toEqual(['linearizability'])
  })

  test('refuses an unknown outcome that took effect before it was sent', () => {
    expect(broken([append('a', [1, 2], 'x', 1), append('b', [3], 'y')], log('y x'))).toEqual(['linearizability'])
  })

  test('refuses replicas that differ in a value, an epoch or their length', () => {
    const appends = [append('a', [1, 9], 'x', 0), append('b', [1, 9], 'y', 1)]
    for (const other of ['y x', 'x', 'x y@2', 'x y y']) {
      expect(broken(appends, log('x y'), log(other, 2)), other).toEqual(['diverged replicas'])
    }
  })

  test('tells no more than some of many', () => {
    const appends = Array.from({ length: 100 }, (_, index) => append('a', [index, index], `v${index}`, index + 1))
    const found = judgeAppends({ appends, logs: [log(appends.map(({ values }) => values[0]).join(' '))] })
    expect(found.length).toBe(11)
    expect(found.at(-1)!.message).toBe('and 90 more')
  })

  test('agrees with the definition of linearizability on any small history', () => {
    const spans = fc.array(fc.tuple(fc.integer({ max: 20, min: 0 }), fc.integer({ max: 10, min: 1 }), fc.boolean()), {
      minLength: 1,
      maxLength: 6,
    })
    fc.assert(
      fc.property(spans, (list) => {
        const appends = list.map(([fromMs, lengthMs, isKnown], index) =>
          append(
            `p${index}`,
            isKnown ? [fromMs, fromMs + lengthMs] : [fromMs],
            `v${index}`,
            isKnown ? index : undefined,
          ),
        )
        const inOrder = appends.every((later, index) =>
          appends.slice(0, index).every((earlier) => later.completedMs >= earlier.invokedMs),
        )
        const found = broken(appends, log(appends.map(({ values }) => values[0]).join(' ')))
        expect(found).toEqual(inOrder ? [] : ['linearizability'])
      }),
    )
  })
})
