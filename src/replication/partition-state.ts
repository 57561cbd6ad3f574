import type { BrokerId, Offset } from '../base/index.ts'

/** What the high watermark rule looks at. */
export interface HighWatermarkInput {
  readonly current: Offset
  /** This replica's counted offset: its flushed offset where acknowledgements wait for syncs, else its LEO. Exclusive. */
  readonly localOffset: Offset
  readonly localId: BrokerId
  /** The committed ISR with pending additions: the largest set that may be the ISR. */
  readonly maximalIsr: readonly BrokerId[]
  /** Members of the committed ISR alone. */
  readonly committedIsrCount: number
  /** Counted offset of a follower, as its fetches told it; 0 when nothing is known. */
  readonly followerOffset: (replica: BrokerId) => Offset
  readonly minInSyncReplicas: number
  readonly replicaCount: number
}

/**
 * The high watermark after an offset moved: the lowest counted offset over the maximal ISR. It never goes back while one
 * leader lasts, and stays where it is while fewer than min.insync.replicas (or all replicas, when there are fewer) are in
 * the committed ISR (KIP-966): until the controller has more in it, those that are eligible beside it may still be elected, and
 * the leader doesn't count them.
 */
export function highWatermarkAfter(input: HighWatermarkInput): Offset {
  if (input.committedIsrCount < effectiveMinIsr(input.minInSyncReplicas, input.replicaCount)) return input.current
  let lowest = input.localOffset
  for (const replica of input.maximalIsr) {
    if (replica === input.localId) continue
    lowest = Math.min(lowest, input.followerOffset(replica))
  }
  return Math.max(input.current, lowest)
}

/** min.insync.replicas, but never more than there are replicas: a topic of one replica can always be written. */
export function effectiveMinIsr(minInSyncReplicas: number, replicaCount: number): number {
  return Math.min(minInSyncReplicas, replicaCount)
}
