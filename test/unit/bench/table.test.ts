import { expect, test } from 'vitest'
import { figure, percentile } from '../../../bench/table.ts'

test('percentile() is a value that was measured', () => {
  const values = [50, 10, 40, 20, 30]
  expect([0, 20, 21, 50, 99, 100].map((rank) => percentile(values, rank))).toEqual([10, 10, 20, 30, 50, 50])
  expect(percentile([7], 50)).toBe(7)
  expect(percentile([1, 2], 50)).toBe(1)
})

test('percentile() leaves the values as they are, and is NaN of none', () => {
  const values = [3, 1, 2]
  percentile(values, 50)
  expect(values).toEqual([3, 1, 2])
  expect(percentile([], 50)).toBeNaN()
})

test('figure() has three digits or so, and a dash for what is not there', () => {
  expect([1.234, 12.34, 123.4, 12_345.6, Number.NaN].map(figure)).toEqual(['1.23', '12.3', '123', '12,346', '-'])
})
