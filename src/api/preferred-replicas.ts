import type { BrokerId } from '../base/index.ts'
import { rackAwareSelector } from '../config/index.ts'
import type { FetchedPartition, FetchPartition } from '../replication/index.ts'
import type { RequestContext } from './api.ts'
import { liveEndpoints } from './endpoints.ts'

/**
 * Sends consumers to a replica in their own rack (KIP-392, `replica.selector.class`). It is asked of the leader only; a replica that
 * is in sync has all that a consumer may read, so which of those in the rack is the same: partitions are spread over them.
 */
export class PreferredReplicas {
  readonly #context: RequestContext
  /** Brokers of the consumer's rack that it reaches, but this one. */
  readonly #inRack: ReadonlySet<BrokerId>

  /** Undefined: all is read from the leader. `rackId` is the consumer's, '' when it doesn't tell. */
  static of(rackId: string, context: RequestContext): PreferredReplicas | undefined {
    const { config, brokerId } = context.services
    const { replicaSelectorClass, brokerRack } = config.values
    if (replicaSelectorClass !== rackAwareSelector || rackId === '' || rackId === brokerRack) return undefined
    const inRack = liveEndpoints(context).filter(({ nodeId, rack }) => rack === rackId && nodeId !== brokerId)
    return inRack.length === 0 ? undefined : new PreferredReplicas(context, new Set(inRack.map(({ nodeId }) => nodeId)))
  }

  private constructor(context: RequestContext, inRack: ReadonlySet<BrokerId>) {
    this.#context = context
    this.#inRack = inRack
  }

  /** Whether any of them would be read elsewhere: then there is nothing to wait for. */
  concern(partitions: readonly FetchPartition[]): boolean {
    return partitions.some(({ topic, partition }) => this.#candidate(topic, partition) !== undefined)
  }

  /** Where to read on; undefined: here. What is wrong with the request is told by the leader. */
  for({ topic, partition, fetchOffset }: FetchPartition, fetched: FetchedPartition): BrokerId | undefined {
    const { outcome, divergingEpoch, highWatermark } = fetched
    if (!outcome.ok || divergingEpoch !== undefined || fetchOffset > highWatermark) return undefined
    return this.#candidate(topic, partition)
  }

  #candidate(topic: string, partition: number): BrokerId | undefined {
    const { coordination, brokerId } = this.#context.services
    const found = coordination.image.topics.byName(topic)?.partitions[partition]
    if (found === undefined || found.leader !== brokerId) return undefined
    const candidates = found.isr.filter((id) => this.#inRack.has(id)).sort((a, b) => a - b)
    return candidates[partition % candidates.length]
  }
}
