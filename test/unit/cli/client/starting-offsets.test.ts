import { expect, test } from 'vitest'
import { fromOf, parseFrom, parseFroms } from '../../../../src/cli/client/starting-offsets.ts'

test('places are words, offsets, times and counts from the end', () => {
  expect(parseFrom('earliest')).toEqual({ kind: 'beginning' })
  expect(parseFrom('end')).toEqual({ kind: 'latest' })
  expect(parseFrom('17')).toEqual({ kind: 'offset', offset: 17 })
  expect(parseFrom('-3')).toEqual({ kind: 'last', count: 3 })
  expect(parseFrom('2026-01-31T12:00:00Z')).toEqual({ kind: 'time', timestamp: Date.UTC(2026, 0, 31, 12) })
  expect(parseFrom('90m', 10_000_000)).toEqual({ kind: 'time', timestamp: 10_000_000 - 90 * 60_000 })
  expect(parseFrom('2d', 10 * 86_400_000)).toEqual({ kind: 'time', timestamp: 8 * 86_400_000 })
  for (const text of ['', 'soon', '5x', 'm', '1.5', '-', '2026-13-01', '99999999999999999', '+1']) {
    expect(parseFrom(text), text).toBeUndefined()
  }
})

test('partitions can each have a place; those that are not named have none', () => {
  const froms = parseFroms('0:100,2:-5,7:2026-01-31T12:00:00Z')!
  expect(fromOf(froms, 0)).toEqual({ kind: 'offset', offset: 100 })
  expect(fromOf(froms, 2)).toEqual({ kind: 'last', count: 5 })
  expect(fromOf(froms, 7)).toMatchObject({ kind: 'time' })
  expect(fromOf(froms, 1)).toBeUndefined()
  for (const text of ['0:', '0:soon', '0:1,', 'a:1', '0:1;1:2']) expect(parseFroms(text), text).toBeUndefined()
  expect(fromOf(parseFroms('latest')!, 5)).toEqual({ kind: 'latest' })
})
