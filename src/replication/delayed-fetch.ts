import type { LeaderEpoch } from '../base/index.ts'
import type { Platform, Timer } from '../platform/index.ts'
import type { Partition, PartitionWatcher, ReadLimit } from './partition.ts'

/** A partition that a waiting fetch watches, with its count of readable bytes and its role when the fetch last read. */
export interface WatchedPartition {
  readonly partition: Partition
  readonly limit: ReadLimit
  readonly readableBytesAtRead: number
  readonly leaderEpochAtRead: LeaderEpoch
  /** Most that this partition may give, so that a busy one doesn't count for more. */
  readonly maxBytes: number
}

/**
 * The wait of one long poll: ends when the bytes that became readable since its last read, with what that read gave, reach min_bytes,
 * when the time is up, or when a partition changed so that the fetch has to be answered. Counting costs nothing per
 * append: each partition keeps one running count.
 */
export class DelayedFetch implements PartitionWatcher {
  readonly #watched: readonly WatchedPartition[]
  readonly #missingBytes: number
  readonly #end: () => void
  readonly #timer: Timer
  readonly #signal: AbortSignal | undefined
  #ended = false

  /** Calls `onEnd` once. `missingBytes`: what the last read lacked of min_bytes, 1 or more. */
  constructor(
    platform: Platform,
    watched: readonly WatchedPartition[],
    missingBytes: number,
    maxWaitMs: number,
    signal: AbortSignal | undefined,
    onEnd: () => void,
  ) {
    this.#watched = watched
    this.#missingBytes = missingBytes
    this.#signal = signal
    this.#end = () => {
      if (this.#ended) return
      this.#ended = true
      this.#timer.cancel()
      this.#signal?.removeEventListener('abort', this.#end)
      for (const { partition, limit } of this.#watched) partition.unwatch(limit, this)
      onEnd()
    }
    this.#timer = platform.timers.set(maxWaitMs, this.#end)
    signal?.addEventListener('abort', this.#end)
    for (const { partition, limit } of watched) partition.watch(limit, this)
    // What became readable while the last read was still going on counts too.
    this.onChanged()
  }

  onChanged(): void {
    let availableBytes = 0
    for (const { partition, limit, readableBytesAtRead, leaderEpochAtRead, maxBytes } of this.#watched) {
      if (partition.leaderEpoch !== leaderEpochAtRead || partition.isOffline || partition.isRemoved) {
        this.#end()
        return
      }
      availableBytes += Math.min(partition.readableBytes(limit) - readableBytesAtRead, maxBytes)
    }
    if (availableBytes >= this.#missingBytes) this.#end()
  }
}
