import { describe, expect, test } from 'vitest'
import { durationText, namesLike, rowsOf, sideBySide } from '../../../bench/failover-report.ts'
import { UsageError } from '../../../bench/options.ts'

const targets = { first: { median: 400, worst: 1000 } }

function rowOf(values: readonly number[], failures: readonly string[] = []) {
  const figures = values.map((first) => ({ first }))
  return rowsOf({ brokers: 'Rookery', figures, failures }, targets)[0]!
}

describe('rowsOf()', () => {
  test('gives the median and the worst of all runs', () => {
    expect(rowOf([300, 100, 900, 200, 250])).toEqual({
      brokers: 'Rookery',
      figure: 'first',
      runs: '5',
      median: 250,
      worst: 900,
      target: 'median < 400, worst < 1000',
      met: 'yes',
    })
  })

  test('says that a target is not met by the median, or by the worst, or by what is just as long', () => {
    expect(rowOf([399, 999]).met).toBe('yes')
    expect(rowOf([400, 500, 300, 500]).met).toBe('no')
    expect(rowOf([100, 100, 1000]).met).toBe('no')
  })

  test('counts a run that failed, and a target is not met with it', () => {
    expect(rowOf([100, 200, 300], ['no leader'])).toMatchObject({ runs: '3 of 4', median: 200, worst: 300, met: 'no' })
  })

  test('has rows for what is to be met when every run failed', () => {
    const row = rowOf([], ['no leader', 'no leader'])
    expect(row).toMatchObject({ figure: 'first', runs: '0 of 2', met: 'no' })
    expect(row.median).toBeNaN()
    expect(row.worst).toBeNaN()
  })

  test('has a row for an event without targets whose every run failed', () => {
    expect(rowsOf({ brokers: 'Kafka', figures: [], failures: ['no leader'] }, {})).toMatchObject([
      { brokers: 'Kafka', figure: '', runs: '0 of 1', target: '', met: '' },
    ])
  })

  test('has no row for what has not begun', () => {
    expect(rowsOf({ brokers: 'Rookery', figures: [], failures: [] }, targets)).toEqual([])
  })

  test('judges no figure without a target, and puts those with one first', () => {
    const rows = rowsOf({ brokers: 'Rookery', figures: [{ second: 5, first: 1 }], failures: [] }, targets)
    expect(rows.map(({ figure, target, met }) => [figure, target, met])).toEqual([
      ['first', 'median < 400, worst < 1000', 'yes'],
      ['second', '', ''],
    ])
  })

  test('a figure that only some runs gave says so', () => {
    const figures = [{ first: 1 }, { first: 2, second: 3 }]
    const rows = rowsOf({ brokers: 'Rookery', figures, failures: [] }, {})
    expect(rows.map(({ figure, runs }) => [figure, runs])).toEqual([
      ['first', '2'],
      ['second', '1 of 2'],
    ])
  })
})

test('sideBySide() puts the same figure of all brokers one below the other', () => {
  const rows = ['Rookery', 'Kafka'].flatMap((brokers) =>
    rowsOf({ brokers, figures: [{ first: 1, second: 2 }], failures: [] }, {}),
  )
  expect(sideBySide(rows).map(({ figure, brokers }) => `${figure} ${brokers}`)).toEqual([
    'first Rookery',
    'first Kafka',
    'second Rookery',
    'second Kafka',
  ])
})

describe('namesLike()', () => {
  const names = ['SIGKILL of a leader', 'SIGSTOP of a leader', 'fencing']

  test('takes all when nothing is wanted', () => {
    expect(namesLike(names, undefined)).toEqual(names)
  })

  test('takes what any of the texts is in, in whatever case, once, in the order of the names', () => {
    expect(namesLike(names, 'fenc, sigkill,SIGKILL of')).toEqual(['SIGKILL of a leader', 'fencing'])
  })

  test.each(['nothing', 'fencing,nothing', '', 'fencing,'])('refuses %j and lists what there is', (wanted) => {
    expect(() => namesLike(names, wanted)).toThrow(UsageError)
    expect(() => namesLike(names, wanted)).toThrow(/SIGKILL of a leader, SIGSTOP of a leader, fencing$/)
  })
})

test('durationText() has two digits or so', () => {
  expect([0.4, 45, 60, 95, 599, 600, 4080].map(durationText)).toEqual([
    '0 s',
    '45 s',
    '1 min',
    '1.6 min',
    '10 min',
    '10 min',
    '68 min',
  ])
})
