import type { BrokerEpoch, BrokerId } from '../base/index.ts'
import { type BrokerImage, type MetadataImage, type MetadataRecord, noLeader } from '../metadata/index.ts'
import type { Decision } from './decision.ts'
import { activeBrokers, changeWithout, electLeader, type PartitionChange } from './election.ts'
import type {
  BrokerHeartbeat,
  BrokerHeartbeatResult,
  BrokerRegistration,
  BrokerRun,
  RegisterBrokerResult,
} from './requests.ts'

/*
 * Where a decision here needs more than one entry, the record that settles it (fenced, unfenced) is the last: whoever
 * decides after a half of it was stored comes to the rest. A registration is first, because its epoch is its entry's
 * index; what may be left then, a fenced broker that leads, is moved when it is unfenced.
 */

/**
 * Registers a run of a broker, fenced. The same run again keeps its epoch and its fencing. A new run takes no leadership
 * over: it leaves the ISRs that have other members, and where it led another broker leads or none, at a higher leader
 * epoch. What its log lost in a crash may be at a follower under the old epoch, so it never leads in that again.
 */
export function registerBroker(
  image: MetadataImage,
  registration: BrokerRegistration,
  context: {
    /** Index of the entry that will hold the first record. */
    readonly nextIndex: number
    /** Whether this controller heard from the run that is registered lately: one that starts with its broker did not. */
    readonly registeredRunIsAlive: boolean
  },
): Decision<RegisterBrokerResult> {
  const { brokerId, incarnationId } = registration
  const before = image.cluster.broker(brokerId)
  if (before?.incarnationId === incarnationId) {
    const { brokerEpoch, fenced } = before
    const record = { type: 'RegisterBroker', ...registration, brokerEpoch, fenced } as const
    return { records: sameRegistration(before, registration) ? [] : [record], response: { ok: true, brokerEpoch } }
  }
  if (before !== undefined && !before.fenced && context.registeredRunIsAlive) {
    const message = `Broker ${brokerId} is registered by another run that is alive, ${before.incarnationId}`
    return { records: [], response: { ok: false, reason: 'duplicate-registration', message } }
  }
  const brokerEpoch = context.nextIndex as BrokerEpoch
  return {
    records: [
      { type: 'RegisterBroker', ...registration, brokerEpoch, fenced: true },
      ...changesWithout(image, brokerId),
    ],
    response: { ok: true, brokerEpoch },
  }
}

/** Fences, unfences and shuts down as the broker wants, once its image is as new as its registration. */
export function handleHeartbeat(image: MetadataImage, heartbeat: BrokerHeartbeat): Decision<BrokerHeartbeatResult> {
  const { brokerId } = heartbeat
  const broker = registeredRun(image, heartbeat)
  if (broker === undefined) return { records: [], response: { ok: false, reason: 'stale-broker-epoch' } }
  const { fenced, inControlledShutdown } = broker
  if (heartbeat.wantShutdown) {
    const records = inControlledShutdown ? [] : shutDownBroker(image, brokerId)
    return { records, response: { ok: true, fenced, inControlledShutdown: true } }
  }
  if (heartbeat.wantFence) {
    return { records: fenceBroker(image, brokerId), response: { ok: true, fenced: true, inControlledShutdown } }
  }
  const unfences = fenced && heartbeat.appliedIndex >= broker.brokerEpoch
  return {
    records: unfences ? unfenceBroker(image, broker) : [],
    response: { ok: true, fenced: fenced && !unfences, inControlledShutdown },
  }
}

/** Records that fence `brokerId` and move its leaderships; empty when it is fenced already, or unknown. */
export function fenceBroker(image: MetadataImage, brokerId: BrokerId): MetadataRecord[] {
  const broker = image.cluster.broker(brokerId)
  if (broker === undefined || broker.fenced) return []
  const { brokerEpoch } = broker
  return [...changesWithout(image, brokerId), { type: 'BrokerRegistrationChange', brokerId, brokerEpoch, fenced: true }]
}

/** Removes the registration; the broker's replicas stay assigned to it. Empty when there is none. */
export function unregisterBroker(image: MetadataImage, brokerId: BrokerId): MetadataRecord[] {
  const broker = image.cluster.broker(brokerId)
  if (broker === undefined) return []
  const { brokerEpoch } = broker
  return [...changesWithout(image, brokerId), { type: 'UnregisterBroker', brokerId, brokerEpoch }]
}

/** The registration, if it is of this very run. */
export function registeredRun(image: MetadataImage, run: BrokerRun): BrokerImage | undefined {
  const broker = image.cluster.broker(run.brokerId)
  return broker?.brokerEpoch === run.brokerEpoch ? broker : undefined
}

function changesWithout(image: MetadataImage, brokerId: BrokerId): PartitionChange[] {
  const changes: PartitionChange[] = []
  const others = new Set(activeBrokers(image))
  others.delete(brokerId)
  const mayLead = (member: BrokerId) => others.has(member)
  for (const topic of image.topics.onBroker(brokerId)) {
    for (const partition of topic.partitions) {
      const change = changeWithout(topic.topicId, partition, brokerId, mayLead)
      if (change !== undefined) changes.push(change)
    }
  }
  return changes
}

/** Unfences, and elects leaders for the partitions that waited for this broker. */
function unfenceBroker(image: MetadataImage, { brokerId, brokerEpoch }: BrokerImage): MetadataRecord[] {
  const records: MetadataRecord[] = []
  const active = new Set(activeBrokers(image)).add(brokerId)
  const mayLead = (member: BrokerId) => active.has(member)
  for (const { topicId, partitions } of image.topics.onBroker(brokerId)) {
    for (const partition of partitions) {
      if (partition.leader !== noLeader && partition.leader !== brokerId) continue
      const leader = electLeader(partition, mayLead)
      if (leader === noLeader) continue
      records.push({ type: 'PartitionChange', topicId, partition: partition.partition, leader })
    }
  }
  records.push({ type: 'BrokerRegistrationChange', brokerId, brokerEpoch, fenced: false })
  return records
}

/**
 * Marks the broker as going, and hands over what others can lead. Partitions that only it can lead stay with it until it
 * is gone: they serve longer, and its next registration moves their leader epoch.
 */
function shutDownBroker(image: MetadataImage, brokerId: BrokerId): MetadataRecord[] {
  const broker = image.cluster.broker(brokerId)
  if (broker === undefined) return []
  const { brokerEpoch } = broker
  return [
    ...changesWithout(image, brokerId).filter((change) => change.leader !== noLeader),
    { type: 'BrokerRegistrationChange', brokerId, brokerEpoch, inControlledShutdown: true },
  ]
}

function sameRegistration(before: BrokerImage, registration: BrokerRegistration): boolean {
  const { endpoints, rack, logDirs } = before
  const { endpoints: newEndpoints, rack: newRack, logDirs: newLogDirs } = registration
  return JSON.stringify([endpoints, rack, logDirs]) === JSON.stringify([newEndpoints, newRack, newLogDirs])
}
