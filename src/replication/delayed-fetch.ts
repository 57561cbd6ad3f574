import type { Platform, Timer } from '../platform/index.ts'
import type { CommitWatcher, Partition } from './partition.ts'

/** A partition that a waiting fetch watches, with its count of committed bytes when the fetch last read. */
export interface WatchedPartition {
  readonly partition: Partition
  readonly committedBytesAtRead: number
  /** Most that this partition may give, so that a busy one doesn't count for more. */
  readonly maxBytes: number
}

/**
 * The wait of one long poll: ends when the bytes committed since its last read, with what that read gave, reach min_bytes,
 * when the time is up, or when a partition changed so that the fetch has to be answered. Counting costs nothing per
 * append: each partition keeps one running count.
 */
export class DelayedFetch implements CommitWatcher {
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
      for (const { partition } of this.#watched) partition.unwatch(this)
      onEnd()
    }
    this.#timer = platform.timers.set(maxWaitMs, this.#end)
    signal?.addEventListener('abort', this.#end)
    for (const { partition } of watched) partition.watch(this)
    // What was committed while the last read was still going on counts too.
    this.onCommitted()
  }

  onCommitted(): void {
    let availableBytes = 0
    for (const { partition, committedBytesAtRead, maxBytes } of this.#watched) {
      if (!partition.isLeader) {
        this.#end()
        return
      }
      availableBytes += Math.min(partition.committedBytes - committedBytesAtRead, maxBytes)
    }
    if (availableBytes >= this.#missingBytes) this.#end()
  }
}
