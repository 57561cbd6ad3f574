import type { Uuid } from '../base/index.ts'
import {
  type BrokerImage,
  directoryOf,
  type MetadataImage,
  type MetadataRecord,
  type PartitionImage,
} from '../metadata/index.ts'
import { changesWithout, fenceBroker, registeredRun, shutDownBroker, unfenceBroker } from './brokers.ts'
import type { ControllerSettings, Decision } from './decision.ts'
import { isActive, knowsSeveralBrokers } from './partition-change.ts'
import type { BrokerHeartbeat, BrokerHeartbeatResult } from './requests.ts'

export interface HeartbeatContext {
  readonly settings: ControllerSettings
  /**
   * Whether every other active broker knows that this one is going: its image holds the entry that said so. See
   * `BrokerSessions.othersHave`.
   */
  readonly othersKnowOfShutdown: boolean
}

/**
 * What the broker is, and is to be:
 *
 *   fenced ──appliedIndex ≥ its registration──> active ──wantShutdown──> shutting down ──may stop──> fenced
 *      ^──────────────── wantFence ───────────────┘
 *
 * One that shuts down may stop when it leads nothing that another could lead, and the others know that. Then it is fenced,
 * unless no other broker is active: nobody is left to be told. Failed log directories count at once, in whatever state.
 */
export function handleHeartbeat(
  image: MetadataImage,
  heartbeat: BrokerHeartbeat,
  context: HeartbeatContext,
): Decision<BrokerHeartbeatResult> {
  const broker = registeredRun(image, heartbeat)
  if (broker === undefined) return { records: [], response: { ok: false, reason: 'stale-broker-epoch' } }
  const { settings } = context
  const { fenced, inControlledShutdown } = broker
  const reported = heartbeat.offlineLogDirs ?? []
  const offline = knowsSeveralBrokers(image) ? broker.logDirs.filter((directory) => reported.includes(directory)) : []
  if (offline.length > 0 && !inControlledShutdown && !heartbeat.wantShutdown) {
    // What else this heartbeat wants is decided on the next one: it rests on what changes here.
    return failDirectories(image, broker, offline, settings)
  }
  if (heartbeat.wantShutdown) return leave(image, broker, context)
  if (heartbeat.wantFence) {
    const records = fenceBroker(image, broker.brokerId, settings)
    return { records, response: { ok: true, fenced: true, inControlledShutdown, mayStop: false } }
  }
  const hasDirectory = broker.logDirs.length > 0 || reported.length === 0
  const unfences = fenced && hasDirectory && heartbeat.appliedIndex >= broker.brokerEpoch
  return {
    records: unfences ? unfenceBroker(image, broker, settings) : [],
    response: { ok: true, fenced: fenced && !unfences, inControlledShutdown, mayStop: false },
  }
}

function leave(image: MetadataImage, broker: BrokerImage, context: HeartbeatContext): Decision<BrokerHeartbeatResult> {
  const { brokerId, fenced, inControlledShutdown } = broker
  const { settings } = context
  if (fenced) return { records: [], response: { ok: true, fenced, inControlledShutdown, mayStop: true } }
  const isAlone = ![...image.cluster.brokers()].some(
    (other) => other.brokerId !== brokerId && isActive(image, other.brokerId),
  )
  if (!inControlledShutdown) {
    const records = shutDownBroker(image, broker, settings)
    return { records, response: { ok: true, fenced, inControlledShutdown: true, mayStop: isAlone } }
  }
  if (isAlone) return { records: [], response: { ok: true, fenced, inControlledShutdown, mayStop: true } }
  // Others may have come into an ISR since: then there is somebody to hand over to.
  const handedOver = shutDownBroker(image, broker, settings).slice(0, -1)
  if (handedOver.length > 0 || !context.othersKnowOfShutdown) {
    return { records: handedOver, response: { ok: true, fenced, inControlledShutdown, mayStop: false } }
  }
  const records = fenceBroker(image, brokerId, settings)
  return { records, response: { ok: true, fenced: true, inControlledShutdown, mayStop: true } }
}

/**
 * Takes the broker's replicas in `offline` out of ISRs and leaderships, and then the directories off its registration. A
 * broker that has none left is fenced, until it registers again with one that works.
 */
function failDirectories(
  image: MetadataImage,
  { brokerId, brokerEpoch, logDirs, fenced, inControlledShutdown }: BrokerImage,
  offline: readonly Uuid[],
  settings: ControllerSettings,
): Decision<BrokerHeartbeatResult> {
  const online = logDirs.filter((directory) => !offline.includes(directory))
  const fences = online.length === 0 && !fenced
  const concerns = (partition: PartitionImage) => fences || offline.includes(directoryOf(partition, brokerId))
  const records: MetadataRecord[] = [
    ...changesWithout(image, brokerId, settings, { concerns }),
    { type: 'BrokerRegistrationChange', brokerId, brokerEpoch, ...(fences ? { fenced: true } : {}), logDirs: online },
  ]
  return { records, response: { ok: true, fenced: fenced || fences, inControlledShutdown, mayStop: false } }
}
