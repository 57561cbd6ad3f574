import { describe, expect, test } from 'vitest'
import type { BrokerEpoch, LeaderEpoch, PartitionEpoch } from '../../../src/base/index.ts'
import { alterPartition, type IsrChange } from '../../../src/controller/index.ts'
import type { MetadataImage } from '../../../src/metadata/index.ts'
import {
  brokerEpoch,
  brokerId,
  brokerIds,
  imageOf,
  registration,
  step,
  topicRecords,
  uuid,
} from '../metadata/support.ts'
import { clusterRecords, fencing, orders, ordersChange, settings } from './support.ts'

/** Led by 1 in leader epoch 0, partition epoch 1, with an ISR of 1 and 2; 3 and 4 are replicas, 4 is fenced. */
const image = imageOf(
  ...clusterRecords(2),
  ...[1, 2, 3].map((id) => registration(id)),
  registration(4, { fenced: true }),
  ...topicRecords('orders', uuid(1), [[1, 2, 3, 4]]),
  ordersChange(0, { isr: brokerIds(1, 2) }),
)

const member = (id: number, epoch: number | null = 1) => ({
  brokerId: brokerId(id),
  brokerEpoch: epoch as BrokerEpoch | null,
})

function change(isr: readonly number[], fields: Partial<IsrChange> = {}): IsrChange {
  return {
    topicId: uuid(1),
    partition: 0,
    leaderEpoch: 0 as LeaderEpoch,
    partitionEpoch: 1 as PartitionEpoch,
    isr: isr.map((id) => member(id)),
    leaderRecoveryState: 'recovered',
    ...fields,
  }
}

function alter(changes: readonly IsrChange[], from: MetadataImage = image, asker = 1) {
  const { records, response } = alterPartition(
    from,
    { brokerId: brokerId(asker), brokerEpoch: brokerEpoch(1), changes },
    settings,
  )
  return { records, results: response.ok ? response.results : [], response, after: step(from, records).image }
}

const reason = (changed: IsrChange, from = image, asker = 1) => {
  const { records, results } = alter([changed], from, asker)
  if (results[0]?.ok === false) expect(records).toEqual([])
  return results[0]?.ok === false ? results[0].reason : results[0]?.ok
}

describe('alterPartition()', () => {
  test('grows and shrinks an ISR in one partition epoch each, and not the leader epoch', () => {
    const grown = alter([change([1, 2, 3])])
    expect(grown.results).toEqual([
      { ok: true, leader: 1, leaderEpoch: 0, isr: [1, 2, 3], leaderRecoveryState: 'recovered', partitionEpoch: 2 },
    ])
    expect(orders(grown.after)).toMatchObject({ isr: [1, 2, 3], leaderEpoch: 0, partitionEpoch: 2 })
    const shrunk = alter([change([1])])
    expect(orders(shrunk.after)).toMatchObject({ isr: [1], elr: [2], leaderEpoch: 0, partitionEpoch: 2 })
  })

  test('is refused as a whole when it comes from another run of the broker', () => {
    const request = { brokerId: brokerId(1), brokerEpoch: brokerEpoch(9), changes: [change([1])] }
    const { records, response } = alterPartition(image, request, settings)
    expect({ records, response }).toEqual({ records: [], response: { ok: false, reason: 'stale-broker-epoch' } })
  })

  test.each<[string, IsrChange, number?]>([
    ['unknown-topic-id', change([1], { topicId: uuid(9) })],
    ['unknown-partition', change([1], { partition: 1 })],
    ['unknown-partition', change([1], { partition: -1 })],
    ['not-controller', change([1], { leaderEpoch: 1 as LeaderEpoch })],
    ['not-controller', change([1], { partitionEpoch: 2 as PartitionEpoch })],
    ['invalid-request', change([1, 2]), 2],
    ['invalid-update-version', change([1, 2, 3], { partitionEpoch: 0 as PartitionEpoch })],
    ['invalid-request', change([])],
    ['invalid-request', change([1, 2, 2])],
    ['invalid-request', change([1, 9])],
    ['invalid-request', change([2, 3])],
    ['invalid-request', change([1, 2], { leaderRecoveryState: 'recovering' })],
    ['invalid-request', change([1], { leaderRecoveryState: 'recovering' })],
    ['ineligible-replica', change([1, 2, 4])],
    ['ineligible-replica', change([], { isr: [member(1), member(3, 0)] })],
  ])('refuses with %s: %j', (expected, changed, asker = 1) => {
    expect(reason(changed, image, asker)).toBe(expected)
  })

  test('checks epochs before the leader, and the leader before the partition epoch', () => {
    const led = step(image, [ordersChange(0, { leader: brokerId(2) })]).image
    expect(reason(change([1]), led)).toBe('fenced-leader-epoch')
    expect(reason(change([1], { leaderEpoch: 1 as LeaderEpoch, partitionEpoch: 0 as PartitionEpoch }), led)).toBe(
      'invalid-request',
    )
  })

  test('refuses a member that shuts down, or is not registered, or is another run than was in sync', () => {
    const going = step(image, [
      {
        type: 'BrokerRegistrationChange',
        brokerId: brokerId(3),
        brokerEpoch: brokerEpoch(1),
        inControlledShutdown: true,
      },
    ]).image
    expect(reason(change([1, 2, 3]), going)).toBe('ineligible-replica')
    const gone = step(image, [{ type: 'UnregisterBroker', brokerId: brokerId(3), brokerEpoch: brokerEpoch(1) }]).image
    expect(reason(change([1, 2, 3]), gone)).toBe('ineligible-replica')
    const again = step(image, [registration(3, { epoch: 7 })]).image
    expect(reason(change([1, 2, 3]), again)).toBe('ineligible-replica')
    expect(reason(change([], { isr: [member(1), member(3, null)] }), again)).toBe(true)
  })

  test('a change that is repeated because its answer was lost is answered again', () => {
    const { after, results } = alter([change([1, 2, 3])])
    const repeated = alter([change([1, 2, 3])], after)
    expect(repeated.records).toEqual([])
    expect(repeated.results).toEqual(results)
    expect(reason(change([1, 2]), after)).toBe('invalid-update-version')
  })

  test('a change to what is so already is answered without a record', () => {
    expect(alter([change([2, 1])])).toMatchObject({ records: [], results: [{ ok: true, partitionEpoch: 1 }] })
  })

  test('changes of one request are decided one after the other, each by itself', () => {
    const { results, after } = alter([change([1, 2, 3]), change([1, 2]), change([1, 9])])
    expect(results.map((result) => (result.ok ? result.isr : result.reason))).toEqual([
      brokerIds(1, 2, 3),
      'invalid-update-version',
      'invalid-update-version',
    ])
    expect(orders(after)).toMatchObject({ isr: [1, 2, 3], partitionEpoch: 2 })
  })

  test('an ISR with all that a reassignment waits for completes it, and a leader that goes is told so', () => {
    const adding = step(image, [
      ordersChange(0, {
        replicas: brokerIds(3, 2, 1, 4),
        addingReplicas: brokerIds(3),
        removingReplicas: brokerIds(1, 4),
      }),
    ]).image
    const epochs = { partitionEpoch: 2 as PartitionEpoch }
    const { results, after } = alter([change([1, 2, 3], epochs)], adding)
    expect(results).toMatchObject([{ ok: false, reason: 'new-leader-elected' }])
    expect(orders(after)).toMatchObject({
      replicas: [3, 2],
      isr: [2, 3],
      leader: 3,
      leaderEpoch: 1,
      addingReplicas: [],
      removingReplicas: [],
    })
    const half = alter([change([1, 2], epochs)], adding)
    expect(half.results).toMatchObject([{ ok: true }])
    expect(orders(half.after)).toMatchObject({ removingReplicas: [1, 4], leader: 1 })
  })

  test('a leader that recovered says so, and only then others may join', () => {
    const recovering = step(image, [ordersChange(0, { isr: brokerIds(1), leaderRecoveryState: 'recovering' })]).image
    const epochs = { partitionEpoch: 2 as PartitionEpoch }
    expect(reason(change([1, 2], { ...epochs, leaderRecoveryState: 'recovering' }), recovering)).toBe('invalid-request')
    const { after } = alter([change([1, 2], epochs)], recovering)
    expect(orders(after)).toMatchObject({ isr: [1, 2], leaderRecoveryState: 'recovered' })
  })

  test('a replica that leaves stays eligible below min.insync.replicas, until there are enough again', () => {
    const below = alter([change([1])]).after
    expect(orders(below).elr).toEqual([2])
    const enough = alter([change([1, 3], { partitionEpoch: 2 as PartitionEpoch })], below).after
    expect(orders(enough)).toMatchObject({ isr: [1, 3], elr: [] })
  })

  test('a leader that was fenced since leads no more, whatever it asks for', () => {
    const fenced = step(image, [fencing(1, true)]).image
    expect(reason(change([1, 2, 3]), fenced)).toBe('ineligible-replica')
  })
})
