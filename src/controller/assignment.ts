import type { BrokerId, LeaderEpoch, PartitionEpoch, Uuid } from '../base/index.ts'
import { type MetadataImage, type MetadataRecord, noLeader } from '../metadata/index.ts'
import { isActive } from './partition-change.ts'

/**
 * Why the replicas that a client chose for a partition can't be; undefined when they can. `factor`: how many replicas it
 * must have, undefined for any number.
 */
export function assignmentFault(
  image: MetadataImage,
  replicas: readonly BrokerId[],
  factor: number | undefined,
): string | undefined {
  if (replicas.length === 0) return 'the assignment has no replicas'
  const negative = replicas.find((brokerId) => brokerId < 0)
  if (negative !== undefined) return `broker id ${negative} is invalid`
  const seen = new Set<BrokerId>()
  const twice = replicas.find((brokerId) => seen.size === seen.add(brokerId).size)
  if (twice !== undefined) return `broker ${twice} is in the assignment twice`
  const unknown = replicas.find((brokerId) => image.cluster.broker(brokerId) === undefined)
  if (unknown !== undefined) return `broker ${unknown} is not registered`
  if (factor !== undefined && replicas.length !== factor) {
    return `the assignment has ${replicas.length} replicas where those before have ${factor}`
  }
  if (!replicas.some((brokerId) => isActive(image, brokerId))) return 'all its brokers are fenced or shutting down'
  return undefined
}

/** New partitions of a topic, the first of them with the index `firstPartition`; each has an active replica. */
export function partitionRecords(
  image: MetadataImage,
  topicId: Uuid,
  firstPartition: number,
  replicasByPartition: readonly (readonly BrokerId[])[],
): MetadataRecord[] {
  return replicasByPartition.map((replicas, i) => {
    const isr = replicas.filter((brokerId) => isActive(image, brokerId))
    const leader = isr[0] ?? noLeader
    return {
      type: 'Partition',
      topicId,
      partition: firstPartition + i,
      replicas,
      isr,
      leader,
      leaderEpoch: 0 as LeaderEpoch,
      partitionEpoch: 0 as PartitionEpoch,
    }
  })
}
