import { expect, test } from 'vitest'
import { BackgroundWork } from '../../../src/replication/background-work.ts'
import { turn } from '../../support/condition.ts'

/** Jobs that take a millisecond of the loop each, and end when the test says so. */
function setUp() {
  let nowMs = 0
  const deferred: (() => void)[] = []
  const timers = {
    set: () => ({ cancel: () => undefined }),
    defer: (callback: () => void) => void deferred.push(callback),
  }
  const work = new BackgroundWork({ now: () => nowMs, monotonic: () => nowMs }, timers)
  const begun: number[] = []
  const ends: (() => void)[] = []
  const add = (job: number) =>
    work.add(() => {
      begun.push(job)
      nowMs++
      return new Promise((resolve) => ends.push(resolve))
    })
  const nextTurn = () => {
    for (const callback of deferred.splice(0)) callback()
  }
  return { work, begun, ends, add, nextTurn }
}

test('what is asked for at once begins in its order, a stretch in each turn of the loop', () => {
  const { begun, add, nextTurn } = setUp()
  for (let job = 0; job < 8; job++) void add(job)
  expect(begun).toEqual([0, 1, 2])
  nextTurn()
  expect(begun).toEqual([0, 1, 2, 3, 4, 5])
  nextTurn()
  expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
})

test('only so many wait for the disk at a time, and the next begins when one is done', async () => {
  const { begun, ends, add, nextTurn } = setUp()
  for (let job = 0; job < 70; job++) void add(job)
  for (let i = 0; i < 70; i++) nextTurn()
  expect(begun).toHaveLength(64)
  ends[5]!()
  await turn()
  nextTurn()
  expect(begun).toHaveLength(65)
  expect(begun.at(-1)).toBe(64)
})

test('a job that fails is its own trouble', async () => {
  const { work } = setUp()
  await expect(work.add(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  await expect(work.add(async () => undefined)).resolves.toBeUndefined()
})
