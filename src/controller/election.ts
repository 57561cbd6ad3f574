import type { BrokerId, Uuid } from '../base/index.ts'
import { type MetadataImage, type MetadataRecord, noLeader, type PartitionImage } from '../metadata/index.ts'

export type PartitionChange = Extract<MetadataRecord, { type: 'PartitionChange' }>

/** May lead, and may join an ISR: registered, not fenced, not shutting down. */
export function isActive(image: MetadataImage, brokerId: BrokerId): boolean {
  const broker = image.cluster.broker(brokerId)
  return broker !== undefined && !broker.fenced && !broker.inControlledShutdown
}

/** In the order of their ids. */
export function activeBrokers(image: MetadataImage): BrokerId[] {
  return [...image.cluster.brokers()].map((broker) => broker.brokerId).filter((brokerId) => isActive(image, brokerId))
}

/**
 * The leader if it may stay, else the first of the replicas, in order of preference, that is in the ISR and active; else
 * `noLeader`: a replica outside the ISR may lack what was acknowledged.
 */
export function electLeader(
  partition: Pick<PartitionImage, 'replicas' | 'isr' | 'leader'>,
  mayLead: (brokerId: BrokerId) => boolean,
): BrokerId {
  const { replicas, isr, leader } = partition
  if (isr.includes(leader) && mayLead(leader)) return leader
  return replicas.find((brokerId) => isr.includes(brokerId) && mayLead(brokerId)) ?? noLeader
}

/**
 * Takes `brokerId` out of the partition's ISR and leadership; undefined when it is in neither. The last member of an ISR
 * stays: only it has everything that was acknowledged. Where it led, the leader epoch moves even if nobody else can lead.
 */
export function changeWithout(
  topicId: Uuid,
  partition: PartitionImage,
  brokerId: BrokerId,
  mayLead: (brokerId: BrokerId) => boolean,
): PartitionChange | undefined {
  const rest = partition.isr.filter((member) => member !== brokerId)
  const isr = rest.length === 0 ? partition.isr : rest
  const shrinks = isr.length < partition.isr.length
  const leads = partition.leader === brokerId
  if (!shrinks && !leads) return undefined
  const leader = leads ? electLeader({ ...partition, isr }, mayLead) : partition.leader
  return {
    type: 'PartitionChange',
    topicId,
    partition: partition.partition,
    ...(shrinks ? { isr } : {}),
    ...(leads ? { leader } : {}),
  }
}
