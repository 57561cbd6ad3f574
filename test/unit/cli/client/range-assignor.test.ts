import { expect, test } from 'vitest'
import { assignRanges } from '../../../../src/cli/client/range-assignor.ts'

test('each topic is cut into runs, the first members getting what is left over', () => {
  const subscriptions = [
    { memberId: 'b', topics: ['t', 'u'] },
    { memberId: 'a', topics: ['t'] },
    { memberId: 'c', topics: [] },
  ]
  const assigned = assignRanges(
    subscriptions,
    new Map([
      ['t', 5],
      ['u', 2],
    ]),
  )
  const shown = Object.fromEntries(
    [...assigned].map(([member, places]) => [member, places.map((place) => `${place.topic}-${place.partition}`)]),
  )
  expect(shown).toEqual({ a: ['t-0', 't-1', 't-2'], b: ['t-3', 't-4', 'u-0', 'u-1'], c: [] })
})

test('with more members than partitions the last get none', () => {
  const subscriptions = ['a', 'b', 'c'].map((memberId) => ({ memberId, topics: ['t'] }))
  const assigned = assignRanges(subscriptions, new Map([['t', 2]]))
  expect([...assigned.values()].map((places) => places.length)).toEqual([1, 1, 0])
})
