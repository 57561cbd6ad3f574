import type { BrokerId } from '../base/index.ts'
import type { BrokerImage, MetadataImage } from '../metadata/index.ts'
import { isActive } from './partition-change.ts'

/** Where new partitions go, or why they can't. */
export type Placement =
  | { readonly ok: true; readonly replicas: readonly (readonly BrokerId[])[] }
  | { readonly ok: false; readonly message: string }

/**
 * Spreads partitions as Kafka does (KIP-36): brokers stand in a ring in which neighbours are in different racks; leaders go
 * round it from `start`, and the followers of one partition skip a rack until every rack has a replica. Each round shifts
 * the followers, so that those of one broker's leaderships are spread too.
 *
 * Brokers that are fenced or going down get replicas only where there are too few others, and are never first.
 */
export function placePartitions(
  image: MetadataImage,
  partitionCount: number,
  replicationFactor: number,
  start: number,
): Placement {
  const brokers = [...image.cluster.brokers()]
  const active = brokers.filter((broker) => isActive(image, broker.brokerId))
  if (replicationFactor > brokers.length) {
    const reason = `The target replication factor of ${replicationFactor} cannot be reached because only ${brokers.length} broker(s) are registered`
    return unplaced(replicationFactor, reason)
  }
  if (active.length === 0) {
    return unplaced(replicationFactor, 'All brokers are currently fenced or in controlled shutdown')
  }
  const ring = new Ring(active)
  const fromActive = Math.min(replicationFactor, active.length)
  const spare = brokers.filter((broker) => !active.includes(broker)).map((broker) => broker.brokerId)
  const replicas = []
  for (let partition = 0; partition < partitionCount; partition++) {
    const chosen = ring.choose(fromActive, start + partition, Math.floor(partition / active.length))
    for (let i = 0; chosen.length < replicationFactor; i++) chosen.push(at(spare, start + partition + i))
    replicas.push(chosen)
  }
  return { ok: true, replicas }
}

/** Kafka's words, without their full stop. */
function unplaced(replicationFactor: number, reason: string): Placement {
  return { ok: false, message: `Unable to replicate the partition ${replicationFactor} time(s): ${reason}` }
}

class Ring {
  readonly #brokers: readonly BrokerImage[]
  readonly #rackCount: number

  constructor(brokers: readonly BrokerImage[]) {
    const racks = Map.groupBy(brokers, rackOf)
    const names = [...racks.keys()].sort((a, b) => (a < b ? -1 : 1))
    const ring: BrokerImage[] = []
    for (let round = 0; ring.length < brokers.length; round++) {
      for (const name of names) {
        const broker = racks.get(name)?.[round]
        if (broker !== undefined) ring.push(broker)
      }
    }
    this.#brokers = ring
    this.#rackCount = names.length
  }

  /** `count`, at most the ring's size, different brokers; the leader is `first` steps round the ring. */
  choose(count: number, first: number, round: number): BrokerId[] {
    const leader = at(this.#brokers, first)
    const chosen = [leader.brokerId]
    const racks = new Set([rackOf(leader)])
    const others = this.#brokers.length - 1
    for (let step = 0; chosen.length < count; step++) {
      const broker = at(this.#brokers, first + 1 + ((round * this.#rackCount + step) % others))
      const rackIsDue = racks.size === this.#rackCount || !racks.has(rackOf(broker))
      if (!rackIsDue || chosen.includes(broker.brokerId)) continue
      chosen.push(broker.brokerId)
      racks.add(rackOf(broker))
    }
    return chosen
  }
}

/** Brokers that name no rack are in one. */
function rackOf(broker: BrokerImage): string {
  return broker.rack ?? ''
}

function at<T>(ring: readonly T[], steps: number): T {
  return ring[steps % ring.length] as T
}
