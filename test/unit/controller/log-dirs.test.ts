import { describe, expect, test } from 'vitest'
import { zeroUuid } from '../../../src/base/index.ts'
import { assignReplicasToDirs, handleHeartbeat } from '../../../src/controller/index.ts'
import { directoryOf, type MetadataImage, type MetadataRecord } from '../../../src/metadata/index.ts'
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
import { clusterRecords, orders, ordersChange, settings } from './support.ts'

const [good, bad] = [uuid(71), uuid(72)]
/** Broker 1 has two log directories, and partition 0 of 'orders' in the one and 1 in the other. */
const cluster = (...records: MetadataRecord[]) =>
  imageOf(
    ...clusterRecords(),
    { ...registration(1), logDirs: [good, bad] },
    registration(2),
    ...topicRecords('orders', uuid(1), [[1, 2], [1, 2], [1]]),
    ordersChange(0, { directories: [good, zeroUuid] }),
    ordersChange(1, { directories: [bad, zeroUuid] }),
    ...records,
  )

function beat(image: MetadataImage, offlineLogDirs: readonly string[], fields = {}) {
  const heartbeat = { brokerId: brokerId(1), brokerEpoch: brokerEpoch(1), appliedIndex: 1000, ...fields }
  const decided = handleHeartbeat(
    image,
    { wantFence: false, wantShutdown: false, ...heartbeat, offlineLogDirs: offlineLogDirs as [] },
    { settings, othersKnowOfShutdown: false },
  )
  return { ...decided, after: step(image, decided.records).image }
}

describe('a log directory that fails', () => {
  test('takes its replicas out of ISR and leadership, and no others', () => {
    const { after, response } = beat(cluster(), [bad])
    expect(response).toMatchObject({ ok: true, fenced: false })
    expect(orders(after, 0)).toMatchObject({ leader: 1, isr: [1, 2] })
    expect(orders(after, 1)).toMatchObject({ leader: 2, isr: [2], leaderEpoch: 1 })
    expect(after.cluster.broker(brokerId(1))?.logDirs).toEqual([good])
    expect(beat(after, [bad]).records).toEqual([])
  })

  test('is no place to lead from, also when nobody else can', () => {
    const alone = cluster(ordersChange(2, { directories: [bad] }))
    const { after } = beat(alone, [bad])
    expect(orders(after, 2)).toMatchObject({ leader: -1, isr: [1] })
    const fenced = beat(after, [bad], { wantFence: true }).after
    expect(orders(beat(fenced, [bad]).after, 2).leader).toBe(-1)
    expect(orders(beat(fenced, [bad]).after, 0).leader).toBe(2)
  })

  test('fences the broker when it was its last, until it registers with one that works', () => {
    const { after, response } = beat(cluster(), [good, bad])
    expect(response).toMatchObject({ fenced: true })
    expect([0, 1, 2].map((index) => orders(after, index).leader)).toEqual([2, 2, -1])
    expect(after.cluster.broker(brokerId(1))).toMatchObject({ fenced: true, logDirs: [] })
    expect(beat(after, [good, bad]).response).toMatchObject({ fenced: true })
    const again = step(after, [{ ...registration(1, { fenced: true }), logDirs: [good] }]).image
    expect(beat(again, [bad]).response).toMatchObject({ fenced: false })
  })

  test('is unknown in the first metadata.version, and harms nothing else that the heartbeat wants', () => {
    const old = cluster({ type: 'FeatureLevel', name: 'metadata.version', level: 1 })
    expect(beat(old, [bad])).toMatchObject({ records: [], response: { fenced: false } })
  })
})

describe('assignReplicasToDirs()', () => {
  const assign = (image: MetadataImage, assignments: readonly [number, string][], epoch = 1) => {
    const run = { brokerId: brokerId(1), brokerEpoch: brokerEpoch(epoch) }
    const all = assignments.map(([partition, directory]) => ({
      topicId: uuid(1),
      partition,
      directory: directory as never,
    }))
    const decided = assignReplicasToDirs(image, { ...run, assignments: all }, settings)
    return { ...decided, after: step(image, decided.records).image }
  }

  test('notes where replicas are, and nothing twice', () => {
    const { after, response } = assign(cluster(), [
      [0, bad],
      [2, good],
      [7, good],
    ])
    expect(response).toEqual({
      ok: true,
      results: [{ ok: true }, { ok: true }, { ok: false, reason: 'unknown-partition' }],
    })
    expect(directoryOf(orders(after, 0), brokerId(1))).toBe(bad)
    expect(directoryOf(orders(after, 0), brokerId(2))).toBe(zeroUuid)
    expect(orders(after, 0)).toMatchObject({ leader: 1, leaderEpoch: 0 })
    expect(
      assign(after, [
        [0, bad],
        [2, good],
      ]).records,
    ).toEqual([])
  })

  test('a replica in a directory that does not work gives up ISR and leadership', () => {
    const { after } = assign(cluster(), [[0, uuid(99)]])
    expect(orders(after, 0)).toMatchObject({ leader: 2, isr: [2], leaderEpoch: 1 })
    expect(directoryOf(orders(after, 0), brokerId(1))).toBe(uuid(99))
  })

  test('a replica whose directory is no more leads again from another one', () => {
    const lost = cluster(ordersChange(2, { directories: [uuid(99)], leader: brokerId(-1) }))
    const { after, records } = assign(lost, [[2, good]])
    expect(records).toHaveLength(1)
    expect(orders(after, 2)).toMatchObject({ leader: 1, isr: [1], directories: [good], leaderEpoch: 2 })
    const fenced = step(lost, [{ ...registration(1, { fenced: true }), logDirs: [good, bad] }]).image
    const waiting = assign(fenced, [[2, good]]).after
    expect(orders(waiting, 2)).toMatchObject({ leader: -1, directories: [good] })
    expect(orders(beat(waiting, []).after, 2).leader).toBe(1)
    expect(orders(assign(lost, [[2, uuid(98)]]).after, 2).leader).toBe(-1)
  })

  describe('from a directory that its broker has no more: the replica is empty', () => {
    const gone = uuid(99)
    /** Broker 1 was the last in the ISR, and was started again without the directory. Whether broker 2 is up is the test's. */
    const cleanlyRestarted = (fields: Parameters<typeof ordersChange>[1], isUp = false) => {
      const image = imageOf(
        ...clusterRecords(2),
        { ...registration(1), logDirs: [good, bad] },
        registration(2, { fenced: !isUp }),
        ...topicRecords('orders', uuid(1), [[1, 2]]),
        ordersChange(0, { isr: brokerIds(1), leader: brokerId(1), directories: [gone, zeroUuid] }),
        ordersChange(0, { leader: brokerId(-1), lastKnownElr: brokerIds(1), ...fields }),
      )
      expect(orders(image)).toMatchObject({ leader: -1, isr: [1] })
      return image
    }

    test('an eligible one has it all, and is waited for', () => {
      const { after } = assign(cleanlyRestarted({ elr: brokerIds(2) }), [[0, good]])
      expect(orders(after)).toMatchObject({ leader: -1, isr: [2], elr: [], directories: [good, zeroUuid] })
      const back = beat(after, [], { brokerId: brokerId(2) }).after
      expect(orders(back)).toMatchObject({ leader: 2, isr: [2], leaderRecoveryState: 'recovered' })
    })

    test('an eligible one that is up leads', () => {
      const { after } = assign(cleanlyRestarted({ elr: brokerIds(2) }, true), [[0, good]])
      expect(orders(after)).toMatchObject({ leader: 2, isr: [2], elr: [], leaderRecoveryState: 'recovered' })
    })

    test('it is eligible no more', () => {
      const image = step(cleanlyRestarted({}, true), [
        ordersChange(0, { isr: brokerIds(2), elr: brokerIds(1), leader: brokerId(2), lastKnownElr: [] }),
      ]).image
      const { after } = assign(image, [[0, good]])
      expect(orders(after)).toMatchObject({ leader: 2, isr: [2], elr: [], leaderEpoch: orders(image).leaderEpoch })
      // Also where it is put into a directory that does not work, and into one that does then.
      const { after: twice } = assign(image, [
        [0, uuid(98)],
        [0, good],
      ])
      expect(orders(twice)).toMatchObject({ leader: 2, isr: [2], elr: [], directories: [good, zeroUuid] })
    })

    test('where nobody else is eligible it leads, and the partition says that records may be lost', () => {
      const { after } = assign(cleanlyRestarted({}, true), [[0, good]])
      expect(orders(after)).toMatchObject({ leader: 1, isr: [1], leaderRecoveryState: 'recovering' })
    })

    test('a directory that failed and is back has all that it had', () => {
      const image = step(cleanlyRestarted({ elr: brokerIds(2) }), [
        { ...registration(1, { fenced: true }), logDirs: [good, bad, gone] },
      ]).image
      expect(assign(image, [[0, gone]]).records).toEqual([])
      const { after } = assign(image, [[0, good]]) // moved
      expect(orders(after)).toMatchObject({ isr: [1], elr: [2], directories: [good, zeroUuid] })
    })
  })

  test('assignments of one replica follow each other', () => {
    const { after, records } = assign(cluster(), [
      [0, uuid(99)],
      [0, bad],
    ])
    expect(records).toHaveLength(2)
    expect(orders(after, 0)).toMatchObject({ leader: 2, isr: [2], directories: [bad, zeroUuid] })
  })

  test('is refused to a stale run, and to who is no replica', () => {
    expect(assign(cluster(), [[0, bad]], 9).response).toEqual({ ok: false, reason: 'stale-broker-epoch' })
    const elsewhere = cluster(ordersChange(0, { replicas: brokerIds(2), isr: brokerIds(2), leader: brokerId(2) }))
    expect(assign(elsewhere, [[0, bad]]).response).toMatchObject({ results: [{ reason: 'not-a-replica' }] })
    const old = cluster({ type: 'FeatureLevel', name: 'metadata.version', level: 1 })
    expect(assign(old, [[0, bad]]).response).toEqual({ ok: false, reason: 'unsupported-version' })
  })
})

test('replicas that stay keep their directory when others come and go', () => {
  const image = step(cluster(), [ordersChange(0, { replicas: brokerIds(2, 1) })]).image
  expect(orders(image, 0).directories).toEqual([zeroUuid, good])
  const moved = step(image, [ordersChange(0, { replicas: brokerIds(2) })]).image
  expect(orders(moved, 0).directories).toEqual([])
})
