import { expect, test } from 'vitest'
import { inTurns } from '../../../src/api/in-turns.ts'

const timers = { defer: (callback: () => void) => void setImmediate(callback) }

test('many are answered in their order, and others get their turn in between', async () => {
  const asked = Array.from({ length: 2100 }, (_, i) => i)
  let turns = 0
  let inFlight = 0
  let most = 0
  const answered = inTurns(asked, timers, async (each) => {
    most = Math.max(most, ++inFlight)
    await Promise.resolve()
    inFlight--
    return each * 2
  })
  let isOver = false
  const over = answered.finally(() => {
    isOver = true
  })
  while (!isOver) {
    turns++
    await new Promise((resolve) => setImmediate(resolve))
  }
  await over
  expect(await answered).toEqual(asked.map((each) => each * 2))
  expect(turns).toBeGreaterThanOrEqual(4)
  expect(most).toBeLessThanOrEqual(500)
})

test('few are answered in the turn in which they can be', async () => {
  const refuse = { defer: () => expect.unreachable('no turn is given up') }
  expect(await inTurns([1, 2, 3], refuse, (each) => -each)).toEqual([-1, -2, -3])
})

test('a fault of one is the fault of all', async () => {
  const asked = Array.from({ length: 1000 }, (_, i) => i)
  const fail = (each: number) => (each === 700 ? Promise.reject(new Error('700')) : each)
  await expect(inTurns(asked, timers, fail)).rejects.toThrow('700')
})
