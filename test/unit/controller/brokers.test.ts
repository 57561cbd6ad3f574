import { describe, expect, test } from 'vitest'
import type { BrokerId } from '../../../src/base/index.ts'
import type { BrokerHeartbeat } from '../../../src/controller/index.ts'
import {
  handleHeartbeat as decideHeartbeat,
  fenceBroker,
  registerBroker,
  unregisterBroker,
} from '../../../src/controller/index.ts'
import type { MetadataImage, MetadataRecord } from '../../../src/metadata/index.ts'
import { brokerEpoch, brokerId, imageOf, registration, step, topicRecords, uuid } from '../metadata/support.ts'
import { settings } from './support.ts'

const noneAlive = { settings, nextIndex: 50, registeredRunIsAlive: false }

function run(id: number, incarnation: number) {
  const { endpoints, rack, logDirs } = registration(id)
  return {
    brokerId: brokerId(id),
    incarnationId: uuid(incarnation),
    clusterId: '',
    endpoints,
    rack,
    logDirs,
    features: [],
    previousBrokerEpoch: null,
  }
}

function heartbeat(
  image: MetadataImage,
  id: number,
  fields: { wantFence?: boolean; wantShutdown?: boolean; appliedIndex?: number } = {},
) {
  const epoch = image.cluster.broker(brokerId(id))?.brokerEpoch ?? brokerEpoch(0)
  return {
    brokerId: brokerId(id),
    brokerEpoch: epoch,
    appliedIndex: 1000,
    wantFence: false,
    wantShutdown: false,
    ...fields,
  }
}

const handleHeartbeat = (image: MetadataImage, beat: BrokerHeartbeat, othersKnowOfShutdown = true) =>
  decideHeartbeat(image, beat, { settings, othersKnowOfShutdown })

/** The partitions of 'orders', short: replicas are in the topic. */
function partitions(image: MetadataImage) {
  return image.topics.byName('orders')?.partitions.map(({ isr, leader, leaderEpoch }) => [leader, isr, leaderEpoch])
}

const replayed = (image: MetadataImage, records: readonly MetadataRecord[], index = 50) =>
  step(image, records, index).image

const threeBrokers = imageOf(
  ...[1, 2, 3].map((id) => registration(id)),
  ...topicRecords('orders', uuid(1), [[1, 2, 3], [2, 3, 1], [1]]),
)

describe('registerBroker()', () => {
  test('a new broker is fenced and its epoch is the index of its entry', () => {
    const { records, response } = registerBroker(imageOf(), run(1, 7), noneAlive)
    expect(response).toEqual({ ok: true, brokerEpoch: 50 })
    expect(replayed(imageOf(), records).cluster.broker(brokerId(1))).toMatchObject({ fenced: true, brokerEpoch: 50 })
  })

  test('the same run again keeps its epoch and changes nothing', () => {
    const again = registerBroker(threeBrokers, run(1, 1001), noneAlive)
    expect(again).toEqual({ records: [], response: { ok: true, brokerEpoch: 1 } })
  })

  test('the same run may move to other endpoints, and stays as it is otherwise', () => {
    const moved = { ...run(1, 1001), endpoints: [] }
    const { records, response } = registerBroker(threeBrokers, moved, noneAlive)
    expect(response).toEqual({ ok: true, brokerEpoch: 1 })
    const image = replayed(threeBrokers, records)
    expect(image.cluster.broker(brokerId(1))).toMatchObject({ endpoints: [], fenced: false, brokerEpoch: 1 })
    expect(partitions(image)).toEqual(partitions(threeBrokers))
  })

  test('another run is refused while the one before is alive, and not when it is fenced', () => {
    const alive = { settings, nextIndex: 50, registeredRunIsAlive: true }
    const refused = registerBroker(threeBrokers, run(1, 8), alive)
    expect(refused.records).toEqual([])
    expect(refused.response).toMatchObject({ ok: false, reason: 'duplicate-registration' })
    const fenced = replayed(threeBrokers, fenceBroker(threeBrokers, brokerId(1), settings))
    expect(registerBroker(fenced, run(1, 8), { ...alive, nextIndex: 60 }).response).toMatchObject({ ok: true })
  })

  test('a new run leads nothing, not even alone, and every leader epoch it had has moved', () => {
    const { records } = registerBroker(threeBrokers, run(1, 8), noneAlive)
    const image = replayed(threeBrokers, records)
    expect(partitions(image)).toEqual([
      [2, [2, 3], 1],
      [2, [2, 3], 0],
      [-1, [1], 1],
    ])
  })

  test('a node alone that comes back leads again, two leader epochs later', () => {
    const alone = imageOf(registration(1), ...topicRecords('orders', uuid(1), [[1], [1]]))
    const registered = replayed(alone, registerBroker(alone, run(1, 8), noneAlive).records)
    expect(partitions(registered)).toEqual([
      [-1, [1], 1],
      [-1, [1], 1],
    ])
    const { records, response } = handleHeartbeat(registered, heartbeat(registered, 1))
    expect(response).toEqual({ ok: true, fenced: false, inControlledShutdown: false, mayStop: false })
    expect(partitions(replayed(registered, records, 51))).toEqual([
      [1, [1], 2],
      [1, [1], 2],
    ])
  })
})

describe('handleHeartbeat()', () => {
  const fenced = imageOf(registration(1, { fenced: true, epoch: 40 }), ...topicRecords('orders', uuid(1), [[1]]))

  test('unfences a broker only once it has its own registration', () => {
    const early = handleHeartbeat(fenced, heartbeat(fenced, 1, { appliedIndex: 39 }))
    expect(early).toEqual({
      records: [],
      response: { ok: true, fenced: true, inControlledShutdown: false, mayStop: false },
    })
    const { response } = handleHeartbeat(fenced, heartbeat(fenced, 1, { appliedIndex: 40 }))
    expect(response).toMatchObject({ fenced: false })
  })

  test('a leadership that a half-stored registration left is taken up in a new leader epoch', () => {
    const { records } = handleHeartbeat(fenced, heartbeat(fenced, 1))
    expect(partitions(replayed(fenced, records))).toEqual([[1, [1], 1]])
  })

  test('a heartbeat of another run, or of no registered broker, is told so', () => {
    const stale = { ...heartbeat(threeBrokers, 1), brokerEpoch: brokerEpoch(99) }
    for (const beat of [stale, { ...stale, brokerId: brokerId(9) }]) {
      expect(handleHeartbeat(threeBrokers, beat)).toEqual({
        records: [],
        response: { ok: false, reason: 'stale-broker-epoch' },
      })
    }
  })

  test('a heartbeat of an active broker changes nothing', () => {
    expect(handleHeartbeat(threeBrokers, heartbeat(threeBrokers, 1)).records).toEqual([])
  })

  test('a broker that wants to be fenced is', () => {
    const { records, response } = handleHeartbeat(threeBrokers, heartbeat(threeBrokers, 2, { wantFence: true }))
    expect(response).toMatchObject({ fenced: true })
    expect(replayed(threeBrokers, records).cluster.broker(brokerId(2))?.fenced).toBe(true)
  })

  test('a broker that shuts down hands over what others can lead, and keeps the rest', () => {
    const { records } = handleHeartbeat(threeBrokers, heartbeat(threeBrokers, 1, { wantShutdown: true }))
    const image = replayed(threeBrokers, records)
    expect(partitions(image)).toEqual([
      [2, [2, 3], 1],
      [2, [2, 3], 0],
      [1, [1], 0],
    ])
    expect(image.cluster.broker(brokerId(1))).toMatchObject({ inControlledShutdown: true, fenced: false })
    const again = handleHeartbeat(image, heartbeat(image, 1, { wantShutdown: true }), false)
    expect(again).toEqual({
      records: [],
      response: { ok: true, fenced: false, inControlledShutdown: true, mayStop: false },
    })
  })
})

describe('controlled shutdown', () => {
  const leave = (image: MetadataImage, othersKnow: boolean) => {
    const { records, response } = handleHeartbeat(image, heartbeat(image, 1, { wantShutdown: true }), othersKnow)
    return { response, after: replayed(image, records, image.index + 1) }
  }

  test('ends when the others know of it: the broker is fenced, and what only it could lead has no leader', () => {
    const going = leave(threeBrokers, true)
    expect(going.response).toMatchObject({ mayStop: false, inControlledShutdown: true })
    const waits = leave(going.after, false)
    expect(waits.response).toMatchObject({ mayStop: false })
    const ends = leave(waits.after, true)
    expect(ends.response).toMatchObject({ mayStop: true, fenced: true })
    expect(partitions(ends.after)).toEqual([
      [2, [2, 3], 1],
      [2, [2, 3], 0],
      [-1, [1], 1],
    ])
    expect(leave(ends.after, true)).toMatchObject({
      response: { mayStop: true },
      after: { index: ends.after.index + 1 },
    })
  })

  test('hands over later what somebody came into sync for', () => {
    const behind = replayed(threeBrokers, [
      { type: 'PartitionChange', topicId: uuid(1), partition: 0, isr: [brokerId(1)] },
    ])
    const going = leave(behind, true)
    expect(partitions(going.after)?.[0]).toEqual([1, [1], 0])
    const joined = replayed(going.after, [
      { type: 'PartitionChange', topicId: uuid(1), partition: 0, isr: [brokerId(1), brokerId(3)] },
    ])
    const later = leave(joined, true)
    expect(later.response).toMatchObject({ mayStop: false })
    expect(partitions(later.after)?.[0]).toEqual([3, [3], 1])
  })

  test('of a broker that is alone ends at once, and it stays the leader till it is gone', () => {
    const alone = imageOf(registration(1), ...topicRecords('orders', uuid(1), [[1]]))
    const { response, after } = leave(alone, false)
    expect(response).toMatchObject({ mayStop: true, fenced: false })
    expect(partitions(after)).toEqual([[1, [1], 0]])
  })
})

describe('registration is refused', () => {
  const image = imageOf(
    { type: 'ClusterId', clusterId: 'a-cluster' },
    { type: 'FeatureLevel', name: 'metadata.version', level: 2 },
    registration(2),
  )
  const request = {
    ...run(1, 7),
    clusterId: 'a-cluster',
    features: [{ name: 'metadata.version', minLevel: 1, maxLevel: 2 }],
  }

  test.each([
    ['inconsistent-cluster-id', { clusterId: 'another' }],
    ['unsupported-version', { features: [] }],
    ['unsupported-version', { features: [{ name: 'metadata.version', minLevel: 1, maxLevel: 1 }] }],
    ['unsupported-version', { features: [{ name: 'metadata.version', minLevel: 3, maxLevel: 4 }] }],
    ['invalid-registration', { endpoints: [...run(1, 7).endpoints, ...run(1, 7).endpoints] }],
    ['invalid-registration', { logDirs: [uuid(1), uuid(1)] }],
    ['invalid-registration', { logDirs: registration(2).logDirs }],
  ])('with %s: %j', (reason, fields) => {
    const { records, response } = registerBroker(image, { ...request, ...fields }, noneAlive)
    expect({ records, response }).toMatchObject({ records: [], response: { ok: false, reason } })
  })

  test('and otherwise not: the record says what the broker supports', () => {
    const { records } = registerBroker(image, request, noneAlive)
    expect(records).toMatchObject([{ type: 'RegisterBroker', features: request.features, brokerEpoch: 50 }])
  })
})

describe('fenceBroker()', () => {
  test('moves leaderships, shrinks ISRs and keeps the last member of an ISR', () => {
    const image = replayed(threeBrokers, fenceBroker(threeBrokers, brokerId(1), settings))
    expect(partitions(image)).toEqual([
      [2, [2, 3], 1],
      [2, [2, 3], 0],
      [-1, [1], 1],
    ])
    expect(image.cluster.broker(brokerId(1))?.fenced).toBe(true)
    expect(image.topics.ledBy(brokerId(1))).toEqual([])
  })

  test('is settled by its last record: after any part of it, it can be decided again to the same end', () => {
    const records = fenceBroker(threeBrokers, brokerId(1), settings)
    const whole = partitions(replayed(threeBrokers, records))
    for (let stored = 0; stored < records.length; stored++) {
      const part = replayed(threeBrokers, records.slice(0, stored))
      const rest = fenceBroker(part, brokerId(1), settings)
      expect(partitions(replayed(part, rest, 51))).toEqual(whole)
    }
  })

  test('of one that is fenced, or unknown, is nothing', () => {
    const image = replayed(threeBrokers, fenceBroker(threeBrokers, brokerId(1), settings))
    expect(fenceBroker(image, brokerId(1), settings)).toEqual([])
    expect(fenceBroker(image, brokerId(9), settings)).toEqual([])
  })

  test('all brokers, one after the other, leaves the last of each ISR, without a leader', () => {
    let image = threeBrokers
    for (const id of [1, 2, 3]) image = replayed(image, fenceBroker(image, brokerId(id), settings), 50 + id)
    expect(partitions(image)?.map(([leader, isr]) => [leader, isr])).toEqual([
      [-1, [3]],
      [-1, [3]],
      [-1, [1]],
    ])
    const back = replayed(image, handleHeartbeat(image, heartbeat(image, 3)).records, 60)
    expect(partitions(back)?.map(([leader, isr]) => [leader, isr])).toEqual([
      [3, [3]],
      [3, [3]],
      [-1, [1]],
    ])
  })
})

test('unregisterBroker() removes the registration and moves what the broker led', () => {
  const image = replayed(threeBrokers, unregisterBroker(threeBrokers, 2 as BrokerId, settings).records)
  expect(image.cluster.broker(brokerId(2))).toBeUndefined()
  expect(partitions(image)).toEqual([
    [1, [1, 3], 0],
    [3, [3, 1], 1],
    [1, [1], 0],
  ])
  expect(unregisterBroker(image, 2 as BrokerId, settings)).toMatchObject({ records: [], response: { ok: false } })
})
