import { expect, test } from 'vitest'
import { ReadQueue } from '../../../../src/raft/core/read-queue.ts'
import type { LogIndex } from '../../../../src/raft/index.ts'

const at = (index: number) => index as LogIndex

test('ReadQueue confirms reads by round, never one that came after the round began', () => {
  const queue = new ReadQueue()
  queue.add(1)
  queue.add(2)
  queue.beginRound(at(5))
  queue.add(3)
  queue.confirm(queue.lastRound)
  expect(queue.takeConfirmed()).toEqual([
    { id: 1, index: 5 },
    { id: 2, index: 5 },
  ])
  expect([queue.length, queue.isWaiting, queue.isRoundUnderWay]).toEqual([1, true, false])
  queue.beginRound(at(8))
  queue.confirm(1)
  expect(queue.hasConfirmed).toBe(false)
  queue.beginRound(at(9)) // nothing waits: no round
  expect(queue.lastRound).toBe(2)
  queue.confirm(2)
  expect(queue.takeConfirmed()).toEqual([{ id: 3, index: 8 }])
})

test('ReadQueue forgets every read with the leadership, and repeats no number of a round', () => {
  const queue = new ReadQueue()
  queue.add(1)
  queue.beginRound(at(5))
  queue.add(2)
  queue.clear()
  expect([queue.length, queue.isWaiting, queue.isRoundUnderWay, queue.hasConfirmed]).toEqual([0, false, false, false])
  queue.add(3)
  queue.beginRound(at(7))
  queue.confirm(1)
  expect(queue.takeConfirmed()).toEqual([])
})
