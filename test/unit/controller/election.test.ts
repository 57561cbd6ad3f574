import { describe, expect, test } from 'vitest'
import {
  alterConfigs,
  balanceLeaders,
  electLeaders,
  electUncleanLeaders,
  fenceBroker,
  handleHeartbeat,
  registerBroker,
} from '../../../src/controller/index.ts'
import type { MetadataImage, MetadataRecord } from '../../../src/metadata/index.ts'
import { brokerId, brokerIds, imageOf, registration, step, topicRecords, uuid } from '../metadata/support.ts'
import { anyConfig, clusterRecords, fencing, orders, ordersChange, settings } from './support.ts'

const cluster = (...records: MetadataRecord[]) =>
  imageOf(
    ...clusterRecords(2),
    ...[1, 2, 3].map((id) => registration(id)),
    ...topicRecords('orders', uuid(1), [
      [1, 2, 3],
      [2, 3, 1],
      [3, 1, 2],
    ]),
    ...records,
  )
const replayed = (image: MetadataImage, records: readonly MetadataRecord[]) => step(image, records).image
const fenced = (image: MetadataImage, ...ids: number[]) =>
  ids.reduce((head, id) => replayed(head, fenceBroker(head, brokerId(id), settings)), image)

function unfenced(image: MetadataImage, id: number, fields: { appliedIndex?: number } = {}) {
  const { brokerEpoch } = image.cluster.broker(brokerId(id))!
  const beat = { brokerId: brokerId(id), brokerEpoch, appliedIndex: 1000, wantFence: false, wantShutdown: false }
  const context = { settings, othersKnowOfShutdown: false }
  return replayed(image, handleHeartbeat(image, { ...beat, ...fields }, context).records)
}

function restarted(image: MetadataImage, id: number, isClean: boolean) {
  const { brokerEpoch } = image.cluster.broker(brokerId(id))!
  const { endpoints, rack, logDirs } = registration(id)
  const run = { brokerId: brokerId(id), incarnationId: uuid(5000 + image.index), endpoints, rack, logDirs }
  const request = {
    ...run,
    clusterId: 'a-cluster',
    features: clusterFeatures,
    previousBrokerEpoch: isClean ? brokerEpoch : null,
  }
  const context = { settings, nextIndex: image.index + 1, registeredRunIsAlive: false }
  return replayed(image, registerBroker(image, request, context).records)
}
const clusterFeatures = [
  { name: 'metadata.version', minLevel: 1, maxLevel: 2 },
  { name: 'eligible.leader.replicas.version', minLevel: 0, maxLevel: 1 },
]

const setConfig = (key: string, value: string, resourceName = 'orders'): MetadataRecord => ({
  type: 'Config',
  resourceType: resourceName === 'orders' ? 'topic' : 'broker',
  resourceName,
  key,
  value,
})
const unclean = 'unclean.leader.election.enable'

describe('eligible leader replicas', () => {
  test('a replica that leaves below min.insync.replicas is eligible, and leads when the ISR is gone', () => {
    const one = fenced(cluster(), 2, 3)
    expect(orders(one)).toMatchObject({ isr: [1], elr: [3], leader: 1 })
    const none = fenced(one, 1)
    expect(orders(none)).toMatchObject({ isr: [1], elr: [3], leader: -1, lastKnownElr: [1] })
    const back = unfenced(none, 3)
    expect(orders(back)).toMatchObject({
      isr: [3],
      elr: [1],
      leader: 3,
      lastKnownElr: [],
      leaderRecoveryState: 'recovered',
    })
    expect(orders(unfenced(none, 2)).leader).toBe(-1)
  })

  test('a replica that crashed is eligible no more; one that stopped in order is', () => {
    const one = fenced(cluster(), 2, 3)
    expect(orders(restarted(one, 3, true)).elr).toEqual([3])
    expect(orders(restarted(one, 3, false)).elr).toEqual([])
  })

  test('the last of an ISR that crashed gives its place to an eligible replica', () => {
    const none = fenced(cluster(), 2, 3, 1)
    const crashed = restarted(none, 1, false)
    expect(orders(crashed)).toMatchObject({ isr: [3], elr: [], leader: -1, leaderRecoveryState: 'recovered' })
    expect(orders(unfenced(crashed, 1)).leader).toBe(-1)
    expect(orders(unfenced(crashed, 3))).toMatchObject({ isr: [3], leader: 3, leaderRecoveryState: 'recovered' })
  })

  test('when nobody is left that can be trusted, the last leader leads, recovering', () => {
    const none = fenced(cluster(), 2, 3, 1)
    const all = restarted(restarted(none, 1, false), 3, false)
    expect(orders(all)).toMatchObject({ isr: [1], elr: [], leader: -1, leaderRecoveryState: 'recovering' })
    expect(orders(unfenced(all, 3)).leader).toBe(-1)
    expect(orders(unfenced(all, 1))).toMatchObject({ leader: 1, leaderRecoveryState: 'recovering', lastKnownElr: [] })
  })

  test('a lower min.insync.replicas makes nobody eligible where it is met, before it is lower', () => {
    const one = fenced(cluster(), 2, 3)
    const changes = new Map([['min.insync.replicas', '1']])
    const request = { resourceType: 'topic', resourceName: 'orders', changes } as const
    const { records } = alterConfigs(one, [request], { settings, configRules: anyConfig, validateOnly: false })
    expect(records.at(-1)?.type).toBe('Config')
    expect(orders(replayed(one, records.slice(0, -1))).elr).toEqual([])
  })

  test('min.insync.replicas is not set for one broker while there may be eligible replicas', () => {
    const changes = new Map([['min.insync.replicas', '1']])
    const alter = (resourceName: string) =>
      alterConfigs(cluster(), [{ resourceType: 'broker', resourceName, changes }], {
        settings,
        configRules: anyConfig,
        validateOnly: false,
      }).response
    expect(alter('1')).toMatchObject([{ ok: false, reason: 'invalid-config' }])
    expect(alter('')).toEqual([{ ok: true }])
  })

  test('without the feature nobody is eligible, and the last of an ISR keeps its place even if it crashed', () => {
    const off = cluster({ type: 'FeatureLevel', name: 'eligible.leader.replicas.version', level: 0 })
    const crashed = restarted(fenced(off, 2, 3, 1), 1, false)
    expect(orders(crashed)).toMatchObject({ isr: [1], elr: [], leader: -1, leaderRecoveryState: 'recovered' })
  })
})

describe('unclean elections', () => {
  const lost = () => fenced(cluster(setConfig('min.insync.replicas', '1')), 2, 3, 1)

  test.each([
    ['the topic', 'orders'],
    ['the broker of the controller', '1'],
    ['the cluster', ''],
  ])('happen when %s allows them, and leave the leader alone and recovering', (_what, resourceName) => {
    const image = replayed(lost(), [setConfig(unclean, 'true', resourceName)])
    expect(orders(unfenced(image, 2))).toMatchObject({
      isr: [2],
      leader: 2,
      elr: [],
      leaderRecoveryState: 'recovering',
      leaderEpoch: 2,
    })
  })

  test('do not happen otherwise, and a topic may forbid what the cluster allows', () => {
    expect(orders(unfenced(lost(), 2)).leader).toBe(-1)
    const forbidden = [setConfig(unclean, 'true', ''), setConfig(unclean, 'false')]
    expect(orders(unfenced(replayed(lost(), forbidden), 2)).leader).toBe(-1)
  })

  test('happen at once when they come to be allowed, and when that is looked for', () => {
    const waiting = unfenced(lost(), 2)
    const request = { resourceType: 'topic', resourceName: 'orders', changes: new Map([[unclean, 'true']]) } as const
    const context = { settings, configRules: anyConfig, validateOnly: false }
    expect(orders(replayed(waiting, alterConfigs(waiting, [request], context).records)).leader).toBe(2)
    expect(electUncleanLeaders(waiting, settings)).toEqual([])
    const allowed = replayed(waiting, [setConfig(unclean, 'true')])
    const elected = replayed(allowed, electUncleanLeaders(allowed, settings))
    expect(orders(elected)).toMatchObject({ leader: 2, leaderRecoveryState: 'recovering' })
    expect(electUncleanLeaders(elected, settings)).toEqual([])
  })

  test('do not happen while a broker that shuts down still has all there is', () => {
    const image = replayed(fenced(cluster(setConfig('min.insync.replicas', '1')), 2, 3), [setConfig(unclean, 'true')])
    const back = unfenced(image, 2)
    const { brokerEpoch } = back.cluster.broker(brokerId(1))!
    const beat = { brokerId: brokerId(1), brokerEpoch, appliedIndex: 1000, wantFence: false, wantShutdown: true }
    const { records } = handleHeartbeat(back, beat, { settings, othersKnowOfShutdown: false })
    expect(orders(replayed(back, records)).leader).toBe(1)
  })
})

describe('electLeaders()', () => {
  const elect = (image: MetadataImage, electionType: 'preferred' | 'unclean', indexes: readonly number[] | null) =>
    electLeaders(
      image,
      { electionType, partitions: indexes?.map((partition) => ({ topic: 'orders', partition })) ?? null },
      settings,
    )
  const moved = cluster(ordersChange(0, { leader: brokerId(2) }))

  test('gives the leadership back to the first replica', () => {
    const { records, response } = elect(moved, 'preferred', [0, 1, 9])
    expect(response).toMatchObject([
      { topic: 'orders', partition: 0, ok: true },
      { partition: 1, ok: false, reason: 'election-not-needed' },
      { partition: 9, ok: false, reason: 'unknown-partition' },
    ])
    expect(orders(replayed(moved, records))).toMatchObject({ leader: 1, leaderEpoch: 2 })
  })

  test('asked for all, it leaves out what needs no election', () => {
    expect(elect(moved, 'preferred', null).response).toEqual([{ topic: 'orders', partition: 0, ok: true }])
    expect(elect(moved, 'unclean', null)).toEqual({ records: [], response: [] })
  })

  test('a partition that is named twice is elected once', () => {
    const { records, response } = elect(moved, 'preferred', [0, 0])
    expect(records).toHaveLength(1)
    expect(response.map(({ ok }) => ok)).toEqual([true, true])
  })

  test('a first replica that is fenced or not in sync does not lead', () => {
    const away = fenced(cluster(), 1)
    expect(elect(away, 'preferred', [0]).response).toMatchObject([{ reason: 'preferred-leader-not-available' }])
    const behind = unfenced(away, 1)
    expect(elect(behind, 'preferred', [0])).toMatchObject({
      records: [],
      response: [{ reason: 'preferred-leader-not-available' }],
    })
  })

  test('an unclean election is for partitions without a leader, and needs a broker that lives', () => {
    expect(elect(cluster(), 'unclean', [0]).response).toMatchObject([{ reason: 'election-not-needed' }])
    const none = fenced(cluster(), 1, 2, 3)
    expect(elect(none, 'unclean', [0]).response).toMatchObject([{ reason: 'eligible-leaders-not-available' }])
    const one = replayed(none, [fencing(1, false)])
    const { records } = elect(one, 'unclean', [0])
    expect(orders(replayed(one, records))).toMatchObject({ leader: 1, isr: [1], leaderRecoveryState: 'recovering' })
  })
})

describe('balanceLeaders()', () => {
  /** As many partitions as `led`, all of which prefer broker 1 and are led as it says. */
  const led = (leaders: readonly number[]) =>
    imageOf(
      ...clusterRecords(),
      ...[1, 2].map((id) => registration(id)),
      ...topicRecords(
        'orders',
        uuid(1),
        leaders.map(() => [1, 2]),
      ),
      ...leaders.flatMap((leader, i) => (leader === 1 ? [] : [ordersChange(i, { leader: brokerId(leader) })])),
    )

  test('moves leaderships back where more than the limit are elsewhere, and none where fewer are', () => {
    const ofTen = led([2, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    expect(balanceLeaders(ofTen, { maxImbalancePercentage: 10 }, settings).records).toEqual([])
    const image = led([2, 2, 1, 1])
    const { records, response } = balanceLeaders(image, { maxImbalancePercentage: 10 }, settings)
    expect(response).toEqual({ isUnfinished: false })
    const after = replayed(image, records)
    expect([0, 1, 2, 3].map((index) => orders(after, index).leader)).toEqual([1, 1, 1, 1])
    expect(balanceLeaders(after, { maxImbalancePercentage: 0 }, settings).records).toEqual([])
  })

  test('leaves alone what a fenced broker or one that is not in sync would lead', () => {
    const away = fenced(led([2, 2]), 1)
    expect(balanceLeaders(away, { maxImbalancePercentage: 0 }, settings).records).toEqual([])
    expect(balanceLeaders(unfenced(away, 1), { maxImbalancePercentage: 0 }, settings).records).toEqual([])
  })

  test('changes as much at a time as a request may, and says that more is left', () => {
    const image = led(Array(10_001).fill(2))
    const { records, response } = balanceLeaders(image, { maxImbalancePercentage: 10 }, settings)
    expect(records).toHaveLength(10_000)
    expect(response).toEqual({ isUnfinished: true })
  })
})

test('an ISR that shrinks moves no leader epoch where the leader stays', () => {
  const image = fenced(cluster(), 3)
  expect(orders(image)).toMatchObject({ isr: brokerIds(1, 2), leader: 1, leaderEpoch: 0, partitionEpoch: 1 })
  expect(orders(image, 2)).toMatchObject({ leader: 1, leaderEpoch: 1 })
})
