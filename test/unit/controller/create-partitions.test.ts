import { describe, expect, test } from 'vitest'
import type { BrokerId } from '../../../src/base/index.ts'
import {
  type CreatePartitionsContext,
  type CreatePartitionsRequest,
  createPartitions,
} from '../../../src/controller/index.ts'
import { brokerIds, imageOf, registration, step, topicRecords, uuid } from '../metadata/support.ts'
import { settings } from './support.ts'

const image = imageOf(
  registration(1),
  registration(2),
  registration(3, { fenced: true }),
  ...topicRecords('orders', uuid(1), [[1], [2]]),
  ...topicRecords('pairs', uuid(2), [[1, 2]]),
  ...topicRecords('wide', uuid(3), [[1, 2, 3, 4]]),
  ...topicRecords('__consumer_offsets', uuid(4), [[1]]),
)

function create(requests: CreatePartitionsRequest[], fields: Partial<CreatePartitionsContext> = {}) {
  return createPartitions(image, requests, { settings, validateOnly: false, placementStart: 0, ...fields })
}

const assigned = (name: string, totalCount: number, ...assignments: number[][]) => ({
  name,
  totalCount,
  assignments: assignments as BrokerId[][],
})

describe('createPartitions()', () => {
  test('adds what is missing to the count, with as many replicas as the first partition has', () => {
    const requests = [
      { name: 'orders', totalCount: 5 },
      { name: 'pairs', totalCount: 2 },
    ]
    const { records, response } = create(requests)
    expect(response).toEqual([
      { ok: true, name: 'orders' },
      { ok: true, name: 'pairs' },
    ])
    const { image: after, delta } = step(image, records)
    expect(after.topics.byName('orders')?.partitions.map(({ replicas }) => replicas)).toEqual([[1], [2], [1], [2], [1]])
    const [, added] = after.topics.byName('pairs')!.partitions
    expect(added).toMatchObject({ partition: 1, leaderEpoch: 0, partitionEpoch: 0 })
    expect([...added!.isr].sort()).toEqual([1, 2])
    expect(delta.changedTopics.get(uuid(1))?.partitions).toEqual(new Set([2, 3, 4]))
  })

  test('puts replicas where the request says; a fenced broker is none of the ISR', () => {
    const { records } = create([assigned('pairs', 3, [2, 1], [3, 2])])
    const { image: after } = step(image, records)
    expect(after.topics.byName('pairs')?.partitions.slice(1)).toMatchObject([
      { replicas: brokerIds(2, 1), isr: brokerIds(2, 1), leader: 2 },
      { replicas: brokerIds(3, 2), isr: brokerIds(2), leader: 2 },
    ])
  })

  test.each([
    ['unknown-topic', { name: 'missing', totalCount: 3 }],
    ['unknown-topic', { name: '', totalCount: 3 }],
    ['invalid-partitions', { name: 'orders', totalCount: 2 }],
    ['invalid-partitions', { name: 'orders', totalCount: 1 }],
    ['invalid-partitions', { name: 'orders', totalCount: -1 }],
    ['invalid-partitions', { name: '__consumer_offsets', totalCount: 3 }],
    ['invalid-replica-assignment', assigned('orders', 4, [1])],
    ['invalid-replica-assignment', assigned('orders', 3)],
    ['invalid-replica-assignment', assigned('orders', 3, [])],
    ['invalid-replica-assignment', assigned('orders', 3, [1, 2])],
    ['invalid-replica-assignment', assigned('pairs', 2, [1, 1])],
    ['invalid-replica-assignment', assigned('orders', 3, [9])],
    ['invalid-replica-assignment', assigned('orders', 3, [-1])],
    ['invalid-replica-assignment', assigned('orders', 3, [3])],
    ['invalid-replication-factor', { name: 'wide', totalCount: 2 }],
    ['policy-violation', { name: 'orders', totalCount: 2_147_483_647 }],
  ])('refuses with %s: %j', (reason, request) => {
    const { records, response } = create([request])
    expect(records).toEqual([])
    expect(response).toMatchObject([{ ok: false, name: request.name, reason }])
  })

  test('the number of new partitions is limited over all topics of a request', () => {
    const { records, response } = create([
      { name: 'orders', totalCount: 10_001 },
      { name: 'pairs', totalCount: 3 },
    ])
    expect(records).toHaveLength(9_999)
    expect(response).toMatchObject([{ ok: true }, { ok: false, reason: 'policy-violation' }])
  })

  test('a topic that is named twice is refused both times, and validating changes nothing', () => {
    const twice = { name: 'orders', totalCount: 3 }
    expect(create([twice, { name: 'pairs', totalCount: 2 }, twice]).response).toMatchObject([
      { ok: false, reason: 'invalid-request' },
      { ok: true },
      { ok: false, reason: 'invalid-request' },
    ])
    expect(create([twice], { validateOnly: true })).toEqual({ records: [], response: [{ ok: true, name: 'orders' }] })
  })
})
