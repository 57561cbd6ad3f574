import { expect, test } from 'vitest'
import type { LeaderEpoch, Uuid } from '../../../src/base/index.ts'
import { FetchSessionClient, type PartitionFetch } from '../../../src/replication/fetch-session-client.ts'

const topicId = 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid

function asks(partition: number, fetchOffset: number): PartitionFetch {
  return {
    topicId,
    partition,
    currentLeaderEpoch: 1 as LeaderEpoch,
    fetchOffset,
    lastFetchedEpoch: 1 as LeaderEpoch,
    logStartOffset: 0,
    maxBytes: 1000,
  }
}

test('FetchSessionClient says everything at first, then only what changed', () => {
  const session = new FetchSessionClient()
  expect(session.next([asks(0, 5), asks(1, 7)])).toMatchObject({ sessionId: 0, sessionEpoch: 0, partitions: [{}, {}] })
  expect(session.onAnswer(0, 42)).toBe(true)
  expect(session.next([asks(0, 5), asks(1, 9), asks(2, 0)])).toEqual({
    sessionId: 42,
    sessionEpoch: 1,
    partitions: [asks(1, 9), asks(2, 0)],
    forgotten: [],
  })
  session.onAnswer(0, 42)
  expect(session.next([asks(1, 9)])).toEqual({
    sessionId: 42,
    sessionEpoch: 2,
    partitions: [],
    forgotten: [
      { topicId, partition: 0 },
      { topicId, partition: 2 },
    ],
  })
})

test('FetchSessionClient begins anew when the leader knows no such session, and when nobody knows what it heard', () => {
  const session = new FetchSessionClient()
  session.next([asks(0, 5)])
  session.onAnswer(0, 42)
  session.next([asks(0, 6)])
  expect(session.onAnswer(70, 0)).toBe(false)
  expect(session.next([asks(0, 6)])).toMatchObject({ sessionEpoch: 0, partitions: [asks(0, 6)] })
  session.onAnswer(0, 43)
  session.next([asks(0, 7)])
  session.reset()
  expect(session.next([asks(0, 7)])).toMatchObject({ sessionEpoch: 0, partitions: [asks(0, 7)] })
})

test('FetchSessionClient says everything each time to a leader that gives no session', () => {
  const session = new FetchSessionClient()
  session.next([asks(0, 5)])
  expect(session.onAnswer(0, 0)).toBe(true)
  expect(session.next([asks(0, 5)])).toMatchObject({ sessionEpoch: 0, partitions: [asks(0, 5)] })
})
