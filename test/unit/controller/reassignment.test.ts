import { describe, expect, test } from 'vitest'
import type { BrokerId } from '../../../src/base/index.ts'
import {
  alterPartition,
  alterPartitionReassignments,
  createPartitions,
  listPartitionReassignments,
} from '../../../src/controller/index.ts'
import type { MetadataImage, MetadataRecord } from '../../../src/metadata/index.ts'
import { brokerIds, imageOf, registration, step, topicRecords, uuid } from '../metadata/support.ts'
import { clusterRecords, fencing, orders, ordersChange, settings } from './support.ts'

const cluster = (...records: MetadataRecord[]) =>
  imageOf(
    ...clusterRecords(),
    ...[1, 2, 3, 4, 5].map((id) => registration(id)),
    ...topicRecords('orders', uuid(1), [
      [1, 2, 3],
      [2, 3, 1],
    ]),
    ...records,
  )

function reassign(image: MetadataImage, replicas: readonly number[] | null, fields = {}, partition = 0) {
  const requests = [{ topic: 'orders', partition, replicas: replicas as readonly BrokerId[] | null }]
  const decided = alterPartitionReassignments(
    image,
    { requests, allowReplicationFactorChange: true, ...fields },
    settings,
  )
  const [result] = decided.response
  return { ...decided, result: result?.ok ? true : result?.reason, after: step(image, decided.records).image }
}

/** As if the leader had found that these are in sync. */
function inSync(image: MetadataImage, ...isr: number[]): MetadataImage {
  const { leader, leaderEpoch, partitionEpoch } = orders(image)
  const { brokerEpoch } = image.cluster.broker(leader)!
  const members = brokerIds(...isr).map((brokerId) => ({ brokerId, brokerEpoch: null }))
  const change = { topicId: uuid(1), partition: 0, leaderEpoch, partitionEpoch, isr: members }
  const changes = [{ ...change, leaderRecoveryState: 'recovered' as const }]
  return step(image, alterPartition(image, { brokerId: leader, brokerEpoch, changes }, settings).records).image
}

const replicas = (image: MetadataImage) => {
  const { replicas, addingReplicas, removingReplicas, isr, leader } = orders(image)
  return [replicas, addingReplicas, removingReplicas, isr, leader]
}

describe('a reassignment', () => {
  test('adds the new replicas, and when they are in sync takes the old ones away', () => {
    const started = reassign(cluster(), [4, 5, 3])
    expect(started.result).toBe(true)
    expect(replicas(started.after)).toEqual([[4, 5, 3, 1, 2], [4, 5], [1, 2], [1, 2, 3], 1])
    expect(orders(started.after).leaderEpoch).toBe(0)
    const half = inSync(started.after, 1, 2, 3, 4)
    expect(replicas(half)).toEqual([[4, 5, 3, 1, 2], [4, 5], [1, 2], [1, 2, 3, 4], 1])
    const done = inSync(half, 1, 2, 3, 4, 5)
    expect(replicas(done)).toEqual([[4, 5, 3], [], [], [3, 4, 5], 4])
    expect(orders(done).leaderEpoch).toBe(1)
    expect(listPartitionReassignments(done, null)).toEqual([])
  })

  test('that only takes away or changes the order is done at once', () => {
    expect(replicas(reassign(cluster(), [3, 2, 1]).after)).toEqual([[3, 2, 1], [], [], [1, 2, 3], 1])
    expect(replicas(reassign(cluster(), [2, 3]).after)).toEqual([[2, 3], [], [], [2, 3], 2])
    const kept = reassign(cluster(), [1, 2]).after
    expect(replicas(kept)).toEqual([[1, 2], [], [], [1, 2], 1])
    expect(orders(kept).leaderEpoch).toBe(1)
  })

  test('to what is so already succeeds and changes nothing', () => {
    expect(reassign(cluster(), [1, 2, 3])).toMatchObject({ records: [], result: true })
  })

  test('that takes away all that is in sync waits until one that stays is', () => {
    const behind = cluster(ordersChange(0, { isr: brokerIds(1) }))
    const started = reassign(behind, [2, 3]).after
    expect(replicas(started)).toEqual([[2, 3, 1], [], [1], [1], 1])
    expect(replicas(inSync(started, 1, 2, 3))).toEqual([[2, 3], [], [], [2, 3], 2])
  })

  test('may be replaced: what the first one added and the second does not want goes at once', () => {
    const first = inSync(reassign(cluster(), [1, 2, 4]).after, 1, 2, 3)
    const second = reassign(first, [1, 2, 5]).after
    expect(replicas(second)).toEqual([[1, 2, 5, 3], [5], [3], [1, 2, 3], 1])
    const kept = reassign(second, [5, 1, 2]).after
    expect(replicas(kept)).toEqual([[5, 1, 2, 3], [5], [3], [1, 2, 3], 1])
    expect(replicas(reassign(second, null).after).slice(0, 3)).toEqual([[1, 2, 3], [], []])
  })

  test('is cancelled: the added replicas go, also one that leads', () => {
    const started = inSync(reassign(cluster(), [4, 5, 3]).after, 1, 2, 3, 4)
    const led = step(started, [ordersChange(0, { leader: brokerIds(4)[0]! })]).image
    const cancelled = reassign(led, null)
    expect(cancelled.result).toBe(true)
    expect(replicas(cancelled.after)).toEqual([[3, 1, 2], [], [], [1, 2, 3], 3])
  })

  test('cannot be cancelled where only added replicas are in sync, unless the topic may lose records', () => {
    const started = reassign(cluster(), [4]).after
    const only = step(started, [ordersChange(0, { isr: brokerIds(4), leader: brokerIds(4)[0]! })]).image
    expect(reassign(only, null)).toMatchObject({ records: [], result: 'invalid-replica-assignment' })
    const key = 'unclean.leader.election.enable'
    const allowed = step(only, [
      { type: 'Config', resourceType: 'topic', resourceName: 'orders', key, value: 'true' },
    ]).image
    const { after } = reassign(allowed, null)
    expect(orders(after)).toMatchObject({
      replicas: [1, 2, 3],
      isr: [1],
      leader: 1,
      leaderRecoveryState: 'recovering',
    })
  })

  test.each<[string, readonly number[] | null, object, number]>([
    ['unknown-partition', [1], {}, 7],
    ['no-reassignment-in-progress', null, {}, 0],
    ['invalid-replica-assignment', [], {}, 0],
    ['invalid-replica-assignment', [1, 1], {}, 0],
    ['invalid-replica-assignment', [1, 9], {}, 0],
    ['invalid-replica-assignment', [-1], {}, 0],
    ['invalid-replication-factor', [1, 2], { allowReplicationFactorChange: false }, 0],
  ])('is refused with %s: %j', (reason, target, fields, partition) => {
    expect(reassign(cluster(), target, fields, partition)).toMatchObject({ records: [], result: reason })
  })

  test('keeps the replication factor of before it where another runs', () => {
    const first = reassign(cluster(), [1, 2, 4]).after
    expect(reassign(first, [1, 2, 5], { allowReplicationFactorChange: false }).result).toBe(true)
    expect(reassign(first, [1, 2, 3, 4], { allowReplicationFactorChange: false }).result).toBe(
      'invalid-replication-factor',
    )
  })

  test('of a partition that is named twice is refused both times', () => {
    const request = { topic: 'orders', partition: 0, replicas: brokerIds(1) }
    const requests = [request, request]
    const decided = alterPartitionReassignments(cluster(), { requests, allowReplicationFactorChange: true }, settings)
    expect(decided).toMatchObject({
      records: [],
      response: [{ reason: 'invalid-request' }, { reason: 'invalid-request' }],
    })
  })

  test('needs a metadata.version that knows of it', () => {
    const old = cluster({ type: 'FeatureLevel', name: 'metadata.version', level: 1 })
    expect(reassign(old, [4])).toMatchObject({ records: [], result: 'unsupported-version' })
  })

  test('to brokers of which one is fenced waits for it', () => {
    const image = cluster(fencing(4, true))
    expect(reassign(image, [4]).result).toBe('invalid-replica-assignment')
    expect(replicas(reassign(image, [1, 4]).after)).toEqual([[1, 4, 2, 3], [4], [2, 3], [1, 2, 3], 1])
  })
})

test('listPartitionReassignments() tells those that run, of all topics or of some partitions', () => {
  const image = reassign(cluster(), [4, 2, 3]).after
  const running = [
    { topic: 'orders', partition: 0, replicas: [4, 2, 3, 1], addingReplicas: [4], removingReplicas: [1] },
  ]
  expect(listPartitionReassignments(image, null)).toEqual(running)
  const asked = [0, 1, 9].map((partition) => ({ topic: 'orders', partition }))
  expect(listPartitionReassignments(image, [...asked, { topic: 'no', partition: 0 }])).toEqual(running)
})

test('new partitions of a topic that is reassigned have as many replicas as it will have', () => {
  const image = reassign(cluster(), [4, 5]).after
  const context = { settings, validateOnly: false, placementStart: 0 }
  const { records } = createPartitions(image, [{ name: 'orders', totalCount: 3 }], context)
  expect(records).toMatchObject([{ type: 'Partition', partition: 2 }])
  expect(orders(step(image, records).image, 2).replicas).toHaveLength(2)
})
