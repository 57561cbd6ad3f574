import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { BrokerId } from '../../../src/base/index.ts'
import { effectiveMinIsr, highWatermarkAfter } from '../../../src/replication/partition-state.ts'

const id = (n: number) => n as BrokerId

const single = {
  current: 0,
  localOffset: 7,
  localId: id(1),
  maximalIsr: [id(1)],
  committedIsrCount: 1,
  followerOffset: (_replica: BrokerId) => 0,
  minInSyncReplicas: 1,
  replicaCount: 1,
}

test('highWatermarkAfter() follows the local counted offset when the leader is alone in the ISR', () => {
  expect(highWatermarkAfter(single)).toBe(7)
})

test('highWatermarkAfter() is the lowest counted offset over the maximal ISR', () => {
  const followers = new Map([
    [id(2), 5],
    [id(3), 3],
  ])
  const input = {
    ...single,
    maximalIsr: [id(1), id(2), id(3)],
    followerOffset: (replica: BrokerId) => followers.get(replica) ?? 0,
    replicaCount: 3,
  }
  expect(highWatermarkAfter(input)).toBe(3)
  expect(highWatermarkAfter({ ...input, maximalIsr: [id(1), id(2)] })).toBe(5)
})

test('highWatermarkAfter() counts a follower that has not fetched yet as having nothing', () => {
  expect(highWatermarkAfter({ ...single, maximalIsr: [id(1), id(2)], replicaCount: 2 })).toBe(0)
})

test('highWatermarkAfter() stays while fewer than min.insync.replicas are in sync', () => {
  expect(highWatermarkAfter({ ...single, minInSyncReplicas: 2, replicaCount: 3 })).toBe(0)
})

test('highWatermarkAfter() stays while the replicas that make up min.insync.replicas are only asked for', () => {
  const input = {
    ...single,
    maximalIsr: [id(1), id(2)],
    followerOffset: () => 7,
    minInSyncReplicas: 2,
    replicaCount: 3,
  }
  expect(highWatermarkAfter({ ...input, committedIsrCount: 1 })).toBe(0)
  expect(highWatermarkAfter({ ...input, committedIsrCount: 2 })).toBe(7)
})

test('highWatermarkAfter() never goes back', () => {
  fc.assert(
    fc.property(fc.nat(), fc.nat(), (current, localOffset) => {
      expect(highWatermarkAfter({ ...single, current, localOffset })).toBeGreaterThanOrEqual(current)
    }),
  )
})

test('effectiveMinIsr() never asks for more replicas than there are', () => {
  expect(effectiveMinIsr(2, 1)).toBe(1)
  expect(effectiveMinIsr(2, 3)).toBe(2)
})
