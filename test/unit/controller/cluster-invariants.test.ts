import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeRecords,
  encodeRecords,
  imageOfSnapshot,
  type MetadataImage,
  noLeader,
  type PartitionImage,
  snapshotRecords,
} from '../../../src/metadata/index.ts'
import { describeImage, step } from '../metadata/support.ts'
import {
  AcknowledgedRecords,
  allPartitions,
  draws,
  type Happening,
  minInSyncReplicas,
  RandomCluster,
} from './random-cluster.ts'

const clusters = fc.record({ minInSyncReplicas: fc.integer({ min: 1, max: 3 }), keepsElr: fc.boolean() })

/** Why the partition can't be; undefined when it can. */
function shapeFault(image: MetadataImage, partition: PartitionImage): string | undefined {
  const { replicas, isr, leader, elr, lastKnownElr, addingReplicas, removingReplicas, leaderRecoveryState } = partition
  if (isr.length === 0) return 'the ISR is empty'
  for (const list of [replicas, isr, elr, addingReplicas, removingReplicas]) {
    if (new Set(list).size < list.length) return 'a broker is twice in a list'
    if (!list.every((id) => replicas.includes(id))) return 'a list has a broker that is no replica'
  }
  if (elr.some((id) => isr.includes(id))) return 'a broker is in ISR and ELR'
  if (addingReplicas.some((id) => removingReplicas.includes(id))) return 'a broker is added and removed'
  if (leaderRecoveryState === 'recovering' && isr.length > 1) return 'others are in the ISR of a leader that recovers'
  if (leader === noLeader) return undefined
  if (!isr.includes(leader)) return 'the leader is not in the ISR'
  if (image.cluster.broker(leader)?.fenced !== false) return 'the leader is fenced'
  if (lastKnownElr.length > 0) return 'a last leader is remembered though there is a leader'
  return undefined
}

/** Why `partition` can't follow `was`; undefined when it can. */
function stepFault(what: string, was: PartitionImage, partition: PartitionImage): string | undefined {
  if (partition === was) return undefined
  const { leader, leaderEpoch, partitionEpoch, isr, leaderRecoveryState } = partition
  if (partitionEpoch <= was.partitionEpoch) return 'it changed in one partition epoch'
  const drops = was.replicas.some((id) => !partition.replicas.includes(id))
  const changesLeader = leader !== was.leader
  if (leaderEpoch < was.leaderEpoch) return 'the leader epoch went back'
  if ((changesLeader || drops) && leaderEpoch === was.leaderEpoch) return 'the leader epoch stayed'
  if (leader === noLeader || !changesLeader || leaderRecoveryState === 'recovering') return undefined
  const eligible = what === 'alters' ? isr : [...was.isr, ...was.elr]
  return eligible.includes(leader) ? undefined : 'the election was unclean'
}

/** What is wrong with the partitions, each with what led to it; empty when nothing is. */
function faults({ what, before, after }: Happening): string[] {
  const found: string[] = []
  for (const { topic, partition } of allPartitions(after)) {
    const was = before.topics.byId(topic.topicId)?.partitions[partition.partition]
    const fault = shapeFault(after, partition) ?? (was === undefined ? undefined : stepFault(what, was, partition))
    if (fault !== undefined) found.push(`${what}: ${fault}: ${JSON.stringify(was)} -> ${JSON.stringify(partition)}`)
  }
  return found
}

describe('whatever happens to a cluster', () => {
  test('partitions stay well-formed, epochs only grow, and a clean election takes from ISR and ELR only', () => {
    fc.assert(
      fc.property(clusters, draws, (options, list) => {
        const cluster = new RandomCluster(options)
        for (const draw of list) {
          expect(faults(cluster.happen(draw))).toEqual([])
        }
      }),
      { numRuns: 150 },
    )
  })

  test('who is in ISR or ELR has all that was acknowledged, unless the partition says that it recovers', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3 }), draws, (minInSync, list) => {
        const cluster = new RandomCluster({ minInSyncReplicas: minInSync, keepsElr: true })
        const acknowledged = new AcknowledgedRecords()
        for (const draw of list) {
          const happening = cluster.happen(draw)
          acknowledged.follow(happening, draw.a % 2 === 0)
          for (const { topic, partition, key } of allPartitions(happening.after)) {
            if (partition.leaderRecoveryState === 'recovering') continue
            const context = `${happening.what}: ${JSON.stringify(partition)}`
            const holders = acknowledged.holders(key)
            expect(
              [...partition.isr, ...partition.elr].filter(
                (id) => cluster.hasDirectory(partition, id) && !holders.has(id), // or it can't be elected
              ),
              context,
            ).toEqual([])
            const isBelow = partition.isr.length < minInSyncReplicas(happening.after, topic, partition)
            if (!isBelow) expect(partition.elr, context).toEqual([])
          }
        }
      }),
      { numRuns: 150 },
    )
  })

  test('what the controller decides comes to the same when it is decided again after any part of it', () => {
    fc.assert(
      fc.property(clusters, draws, fc.nat(100), (options, list, cut) => {
        const cluster = new RandomCluster(options)
        for (const draw of list) {
          const { before, after, records, decideAgain, what } = cluster.happen(draw)
          if (decideAgain === undefined || records.length === 0) continue
          const part = step(before, records.slice(0, cut % records.length)).image
          const again = step(part, decideAgain(part)).image
          expect(settledState(again), what).toEqual(settledState(after))
        }
      }),
      { numRuns: 80 },
    )
  })

  test('the image is the one that its snapshot makes', () => {
    fc.assert(
      fc.property(clusters, draws, (options, list) => {
        const cluster = new RandomCluster(options)
        for (const draw of list) cluster.happen(draw)
        const { image } = cluster
        const bytes = encodeRecords([...snapshotRecords(image)])
        expect(describeImage(imageOfSnapshot(decodeRecords(bytes), image.index, image.term))).toEqual(
          describeImage(image),
        )
      }),
      { numRuns: 60 },
    )
  })
})

/** All but the epochs, which may move more often. */
function settledState(image: Happening['after']) {
  return [
    [...image.cluster.brokers()],
    allPartitions(image).map(({ key, partition }) => ({ ...partition, key, leaderEpoch: 0, partitionEpoch: 0 })),
  ]
}
