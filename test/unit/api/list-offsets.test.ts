import { expect, test } from 'vitest'
import { apis } from '../../../src/protocol/index.ts'
import { harness } from './harness.ts'

function body(timestamp: bigint) {
  return { replicaId: -1, topics: [{ name: 'orders', partitions: [{ partitionIndex: 2, timestamp }] }] }
}

test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])('ListOffsets %i finds a time', async (version) => {
  const { ask, replicas } = harness()
  const { topics } = await ask(apis.ListOffsets, version, body(1234n))
  expect(replicas.listings).toEqual([
    {
      topic: 'orders',
      partition: 2,
      currentLeaderEpoch: -1,
      isolation: 'read-uncommitted',
      target: { timestampMs: 1234 },
    },
  ])
  expect(topics).toMatchObject([
    {
      name: 'orders',
      partitions: [
        { partitionIndex: 2, errorCode: 0, timestamp: 5000n, offset: 12, leaderEpoch: version >= 4 ? 2 : -1 },
      ],
    },
  ])
})

test.each([
  [-1n, 1, 'latest'],
  [-2n, 1, 'earliest'],
  [-3n, 7, 'max-timestamp'],
  [-4n, 8, 'earliest'],
])('time %i stands for a place from version %i on: %s', async (timestamp, since, target) => {
  const { ask, replicas } = harness()
  await ask(apis.ListOffsets, since, body(timestamp))
  expect(replicas.listings[0]!.target).toBe(target)
  if (since === 1) return
  const before = await ask(apis.ListOffsets, since - 1, body(timestamp))
  expect(before.topics[0]!.partitions[0]).toMatchObject({ errorCode: 35, offset: -1 })
})

test.each([
  [-5n, 9],
  [-6n, 11],
])('time %i is a place in tiered storage: from version %i on nothing is found', async (timestamp, since) => {
  const { ask } = harness()
  const { topics } = await ask(apis.ListOffsets, since, body(timestamp))
  expect(topics[0]!.partitions[0]).toMatchObject({ errorCode: 0, offset: -1, timestamp: -1n, leaderEpoch: -1 })
  const before = await ask(apis.ListOffsets, since - 1, body(timestamp))
  expect(before.topics[0]!.partitions[0]!.errorCode).toBe(35)
})

test('a place that is never found is refused all the same where its partition is not led here', async () => {
  const { ask, replicas } = harness()
  replicas.listOutcome = () => ({ ok: false, reason: 'unknown-topic-or-partition' })
  const { topics } = await ask(apis.ListOffsets, 9, body(-5n))
  expect(topics[0]!.partitions[0]).toMatchObject({ errorCode: 3, offset: -1 })
})

test.each([-7n, -(2n ** 63n)])('time %i stands for nothing', async (timestamp) => {
  const { ask, replicas } = harness()
  const { topics } = await ask(apis.ListOffsets, 11, body(timestamp))
  expect(topics[0]!.partitions[0]!.errorCode).toBe(35)
  expect(replicas.listings).toEqual([])
})

test('nothing found is no error', async () => {
  const { ask, replicas } = harness()
  replicas.listOutcome = () => ({ ok: true, offset: -1, timestampMs: -1, leaderEpoch: -1 as never })
  const { topics } = await ask(apis.ListOffsets, 5, body(2n ** 63n - 1n))
  expect(topics[0]!.partitions[0]).toMatchObject({ errorCode: 0, offset: -1, timestamp: -1n, leaderEpoch: -1 })
})

test('isolation and epoch are passed on', async () => {
  const { ask, replicas } = harness()
  const partitions = [{ partitionIndex: 0, currentLeaderEpoch: 6, timestamp: -1n }]
  await ask(apis.ListOffsets, 5, { replicaId: -1, isolationLevel: 1, topics: [{ name: 'a', partitions }] })
  expect(replicas.listings[0]).toMatchObject({ isolation: 'read-committed', currentLeaderEpoch: 6 })
})

test('an offset that is not available yet has another code before version 5', async () => {
  const { ask, replicas } = harness()
  replicas.listOutcome = () => ({ ok: false, reason: 'offset-not-available' })
  expect((await ask(apis.ListOffsets, 5, body(-1n))).topics[0]!.partitions[0]!.errorCode).toBe(78)
  expect((await ask(apis.ListOffsets, 4, body(-1n))).topics[0]!.partitions[0]!.errorCode).toBe(5)
})

test('a partition that is asked about twice is refused once, the others are answered', async () => {
  const { ask, replicas } = harness()
  const at = (partitionIndex: number) => ({ partitionIndex, timestamp: -1n })
  const topics = [
    { name: 'orders', partitions: [at(0), at(1)] },
    { name: 'orders', partitions: [at(0)] },
    { name: 'empty', partitions: [] },
  ]
  const response = await ask(apis.ListOffsets, 5, { replicaId: -1, topics })
  expect(response.topics).toMatchObject([
    {
      name: 'orders',
      partitions: [
        { partitionIndex: 0, errorCode: 42 },
        { partitionIndex: 1, errorCode: 0 },
      ],
    },
  ])
  expect(replicas.listings).toHaveLength(1)
})
