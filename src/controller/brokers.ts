import type { BrokerEpoch, BrokerId } from '../base/index.ts'
import {
  type BrokerImage,
  type MetadataImage,
  type MetadataRecord,
  noLeader,
  type PartitionImage,
} from '../metadata/index.ts'
import type { ControllerSettings, Decision } from './decision.ts'
import { supportFault } from './features.ts'
import { knowsSeveralBrokers, type PartitionChange, PartitionRules } from './partition-change.ts'
import type {
  BrokerRegistration,
  BrokerRun,
  ControllerRegistration,
  RegisterBrokerRefusal,
  RegisterBrokerResult,
  RegisterControllerResult,
  UnregisterBrokerResult,
} from './requests.ts'

/*
 * Where a decision here needs more than one entry, the record that settles it (fenced, unfenced) is the last: whoever
 * decides after a half of it was stored comes to the rest. A registration is first, because its epoch is its entry's
 * index; what may be left then, a fenced broker that leads, is moved when it is unfenced.
 */

/**
 * Registers a run of a broker, fenced. The same run again keeps its epoch and its fencing. A new run takes no leadership
 * over: it leaves the ISRs that have other members, and where it led another broker leads or none, at a higher leader
 * epoch. What its log lost in a crash may be at a follower under the old epoch, so it never leads in that again. A run that
 * doesn't follow an orderly end of the one before is eligible nowhere either (KIP-966).
 */
export function registerBroker(
  image: MetadataImage,
  registration: BrokerRegistration,
  context: {
    readonly settings: ControllerSettings
    /** Index of the entry that will hold the first record. */
    readonly nextIndex: number
    /** Whether this controller heard from the run that is registered lately: one that starts with its broker did not. */
    readonly registeredRunIsAlive: boolean
  },
): Decision<RegisterBrokerResult> {
  const { brokerId, incarnationId } = registration
  const refusal = registrationRefusal(image, registration)
  if (refusal !== undefined) return { records: [], response: refusal }
  const before = image.cluster.broker(brokerId)
  if (before?.incarnationId === incarnationId) {
    const { brokerEpoch, fenced } = before
    const record = registrationRecord(image, registration, brokerEpoch, fenced)
    const records = sameRegistration(before, record) ? [] : [record]
    return { records, response: { ok: true, brokerEpoch } }
  }
  if (before !== undefined && !before.fenced && context.registeredRunIsAlive) {
    const message = `Broker ${brokerId} is registered by another run that is alive, ${before.incarnationId}`
    return { records: [], response: refuse('duplicate-registration', message) }
  }
  const brokerEpoch = context.nextIndex as BrokerEpoch
  const lost = before !== undefined && registration.previousBrokerEpoch !== before.brokerEpoch
  return {
    records: [
      registrationRecord(image, registration, brokerEpoch, true),
      ...changesWithout(image, brokerId, context.settings, { lost }),
    ],
    response: { ok: true, brokerEpoch },
  }
}

/** Registers a node of the quorum, or changes what is known of it. */
export function registerController(
  image: MetadataImage,
  registration: ControllerRegistration,
): Decision<RegisterControllerResult> {
  const { clusterId, ...fields } = registration
  if (clusterId !== image.clusterId) return { records: [], response: otherCluster(image, clusterId) }
  const fault = supportFault(image, registration.features)
  if (fault !== undefined)
    return { records: [], response: { ok: false, reason: 'unsupported-version', message: fault } }
  const before = [...image.cluster.controllers()].find((each) => each.controllerId === registration.controllerId)
  const { controllerId, incarnationId, endpoints, features } = fields
  const after = { controllerId, incarnationId, endpoints, features }
  const isKnown = JSON.stringify(before) === JSON.stringify(after)
  if (isKnown || !knowsSeveralBrokers(image)) return { records: [], response: { ok: true } }
  return { records: [{ type: 'RegisterController', ...after }], response: { ok: true } }
}

/** Records that fence `brokerId` and move its leaderships; empty when it is fenced already, or unknown. */
export function fenceBroker(image: MetadataImage, brokerId: BrokerId, settings: ControllerSettings): MetadataRecord[] {
  const broker = image.cluster.broker(brokerId)
  if (broker === undefined || broker.fenced) return []
  const { brokerEpoch } = broker
  return [
    ...changesWithout(image, brokerId, settings),
    { type: 'BrokerRegistrationChange', brokerId, brokerEpoch, fenced: true },
  ]
}

/** Unfences, and elects leaders for the partitions that waited for this broker. */
export function unfenceBroker(
  image: MetadataImage,
  { brokerId, brokerEpoch }: BrokerImage,
  settings: ControllerSettings,
): MetadataRecord[] {
  const rules = new PartitionRules(image, settings, { active: brokerId })
  const records: MetadataRecord[] = []
  for (const topic of image.topics.onBroker(brokerId)) {
    for (const partition of topic.partitions) {
      const { leader } = partition
      if (leader !== noLeader && leader !== brokerId) continue
      const change = rules.change(topic, partition, { bumpsLeaderEpoch: leader === brokerId })
      if (change !== undefined) records.push(change)
    }
  }
  records.push({ type: 'BrokerRegistrationChange', brokerId, brokerEpoch, fenced: false })
  return records
}

/**
 * Marks the broker as going, and hands over what others can lead without loss. Partitions that only it can lead stay with
 * it until it is gone: they serve longer, and are moved when it is fenced, or registers again.
 */
export function shutDownBroker(
  image: MetadataImage,
  { brokerId, brokerEpoch }: BrokerImage,
  settings: ControllerSettings,
): MetadataRecord[] {
  return [
    ...changesWithout(image, brokerId, settings, { election: 'online' }).filter((change) => change.leader !== noLeader),
    { type: 'BrokerRegistrationChange', brokerId, brokerEpoch, inControlledShutdown: true },
  ]
}

/**
 * Removes the registration, whether or not the broker lives: one that does registers again, as new. Its replicas stay
 * assigned to it, and count as lost.
 */
export function unregisterBroker(
  image: MetadataImage,
  brokerId: BrokerId,
  settings: ControllerSettings,
): Decision<UnregisterBrokerResult> {
  const broker = image.cluster.broker(brokerId)
  if (broker === undefined) {
    const message = `Broker ${brokerId} is not registered`
    return { records: [], response: { ok: false, reason: 'broker-not-registered', message } }
  }
  const { brokerEpoch } = broker
  return {
    records: [
      ...changesWithout(image, brokerId, settings, { lost: true }),
      { type: 'UnregisterBroker', brokerId, brokerEpoch },
    ],
    response: { ok: true },
  }
}

/** The registration, if it is of this very run. */
export function registeredRun(image: MetadataImage, run: BrokerRun): BrokerImage | undefined {
  const broker = image.cluster.broker(run.brokerId)
  return broker?.brokerEpoch === run.brokerEpoch ? broker : undefined
}

/** Takes the broker out of the ISRs that have other members, and out of its leaderships. */
export function changesWithout(
  image: MetadataImage,
  brokerId: BrokerId,
  settings: ControllerSettings,
  options: {
    /** Its logs may lack what it acknowledged. */
    readonly lost?: boolean
    readonly election?: 'online'
    /** All of its replicas when absent. */
    readonly concerns?: (partition: PartitionImage) => boolean
  } = {},
): PartitionChange[] {
  const { lost = false, election, concerns } = options
  const rules = new PartitionRules(image, settings, { gone: brokerId })
  const changes: PartitionChange[] = []
  for (const topic of image.topics.onBroker(brokerId)) {
    for (const partition of topic.partitions) {
      const { isr, leader, elr } = partition
      if (!isr.includes(brokerId) && leader !== brokerId && !(lost && elr.includes(brokerId))) continue
      if (concerns !== undefined && !concerns(partition)) continue
      const change = rules.change(topic, partition, {
        isr: isr.filter((member) => member !== brokerId),
        ...(lost ? { lost: brokerId } : {}),
        ...(election === undefined ? {} : { election }),
      })
      if (change !== undefined) changes.push(change)
    }
  }
  return changes
}

function registrationRefusal(
  image: MetadataImage,
  { clusterId, endpoints, logDirs, features, brokerId }: BrokerRegistration,
): Extract<RegisterBrokerResult, { ok: false }> | undefined {
  if (clusterId !== image.clusterId) return otherCluster(image, clusterId)
  const fault = supportFault(image, features)
  if (fault !== undefined) return refuse('unsupported-version', fault)
  const names = endpoints.map(({ name }) => name)
  if (new Set(names).size < names.length) return refuse('invalid-registration', 'A listener is registered twice')
  if (new Set(logDirs).size < logDirs.length) {
    return refuse('invalid-registration', 'Two log directories have the same directory id')
  }
  for (const other of image.cluster.brokers()) {
    const shared = other.brokerId === brokerId ? undefined : logDirs.find((id) => other.logDirs.includes(id))
    if (shared === undefined) continue
    return refuse('invalid-registration', `Log directory ${shared} is registered by broker ${other.brokerId}`)
  }
  return undefined
}

function otherCluster(image: MetadataImage, clusterId: string) {
  const message = `This is cluster ${image.clusterId}, and the node is of cluster ${clusterId}`
  return { ok: false, reason: 'inconsistent-cluster-id', message } as const
}

type RegistrationRecord = Extract<MetadataRecord, { type: 'RegisterBroker' }>

function registrationRecord(
  image: MetadataImage,
  { brokerId, incarnationId, endpoints, rack, logDirs, features }: BrokerRegistration,
  brokerEpoch: BrokerEpoch,
  fenced: boolean,
): RegistrationRecord {
  const known = knowsSeveralBrokers(image) ? { features } : {}
  return { type: 'RegisterBroker', brokerId, incarnationId, brokerEpoch, endpoints, rack, logDirs, fenced, ...known }
}

function sameRegistration(before: BrokerImage, record: RegistrationRecord): boolean {
  const { endpoints, rack, logDirs, features } = before
  const after = [record.endpoints, record.rack, record.logDirs, record.features ?? []]
  return JSON.stringify([endpoints, rack, logDirs, features]) === JSON.stringify(after)
}

function refuse(reason: RegisterBrokerRefusal, message: string): Extract<RegisterBrokerResult, { ok: false }> {
  return { ok: false, reason, message }
}
