import type { LogIndex } from './types.ts'

/** Append messages on their way to one follower, oldest first, bounded by count and by bytes. */
export class Inflights {
  readonly #maxCount: number
  readonly #maxBytes: number
  readonly #sent: { readonly lastIndex: LogIndex; readonly bytes: number }[] = []
  #bytes = 0

  constructor(maxCount: number, maxBytes: number) {
    this.#maxCount = maxCount
    this.#maxBytes = maxBytes
  }

  get count(): number {
    return this.#sent.length
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The byte bound may be passed by the last message: it says when to stop, not what fits. */
  get isFull(): boolean {
    return this.#sent.length >= this.#maxCount || this.#bytes >= this.#maxBytes
  }

  add(lastIndex: LogIndex, bytes: number): void {
    this.#sent.push({ lastIndex, bytes })
    this.#bytes += bytes
  }

  /** Forgets every message whose last entry is at or below `index`. */
  freeTo(index: LogIndex): void {
    let count = 0
    for (const sent of this.#sent) {
      if (sent.lastIndex > index) break
      this.#bytes -= sent.bytes
      count++
    }
    if (count > 0) this.#sent.splice(0, count)
  }

  clear(): void {
    this.#sent.length = 0
    this.#bytes = 0
  }
}

/**
 * What the leader knows of one follower. States:
 *
 *  - `probe`: where the logs agree isn't known; one append at a time, then wait for its answer (or a heartbeat's).
 *  - `replicate`: known; appends are sent ahead of their answers, up to the inflight bounds. Left on a rejection.
 *  - `snapshot`: what it needs is compacted; nothing is sent until the snapshot is answered, failed or timed out.
 *
 * Always `matchIndex < nextIndex`.
 */
export class Progress {
  state: 'probe' | 'replicate' | 'snapshot' = 'probe'
  /** Last entry known to be durable there and equal to the leader's, inclusive. Only grows within a term. */
  matchIndex = 0 as LogIndex
  /** First entry to send next. */
  nextIndex: LogIndex
  /** No append until an answer of any kind comes. */
  isPaused: boolean = false
  /** Tick of the last message from it in this term. */
  lastContactTick: number
  pendingSnapshotIndex = 0 as LogIndex
  snapshotSentTick = 0
  readonly inflights: Inflights

  constructor(nextIndex: LogIndex, contactTick: number, inflights: Inflights) {
    this.nextIndex = nextIndex
    this.lastContactTick = contactTick
    this.inflights = inflights
  }

  becomeProbe(): void {
    // After a snapshot, ask for what follows it: when it did arrive, that's right; otherwise the rejection tells.
    const base = this.state === 'snapshot' ? Math.max(this.matchIndex, this.pendingSnapshotIndex) : this.matchIndex
    this.#enter('probe')
    this.nextIndex = (base + 1) as LogIndex
  }

  becomeReplicate(): void {
    this.#enter('replicate')
    this.nextIndex = (this.matchIndex + 1) as LogIndex
  }

  becomeSnapshot(snapshotIndex: LogIndex, tick: number): void {
    this.#enter('snapshot')
    this.pendingSnapshotIndex = snapshotIndex
    this.snapshotSentTick = tick
    this.nextIndex = (snapshotIndex + 1) as LogIndex
  }

  /** Every counter starts anew with the state: nothing of the old one may hold the new one back. */
  #enter(state: Progress['state']): void {
    this.state = state
    this.isPaused = false
    this.pendingSnapshotIndex = 0 as LogIndex
    this.inflights.clear()
  }

  /** An append with `count` entries (0 or more) left. */
  sent(count: number, bytes: number): void {
    if (this.state === 'probe') {
      this.isPaused = true
      return
    }
    if (count > 0) {
      this.nextIndex = (this.nextIndex + count) as LogIndex
      this.inflights.add((this.nextIndex - 1) as LogIndex, bytes)
    }
    this.isPaused = this.inflights.isFull
  }

  /** An answer says that all up to `index` is there. False when that's no news. */
  maybeUpdate(index: LogIndex): boolean {
    if (index <= this.matchIndex) return false
    this.matchIndex = index
    this.nextIndex = Math.max(this.nextIndex, index + 1) as LogIndex
    this.isPaused = false
    return true
  }

  /**
   * An append after `rejectedIndex` was refused; the logs may agree at `hintIndex`. False when the refusal is stale:
   * a copy, or overtaken by an acceptance.
   */
  maybeDecreaseTo(rejectedIndex: LogIndex, hintIndex: LogIndex): boolean {
    if (this.state === 'snapshot') return false
    if (this.state === 'replicate') return rejectedIndex > this.matchIndex
    if (this.nextIndex - 1 !== rejectedIndex) return false
    this.nextIndex = Math.max(Math.min(rejectedIndex, hintIndex + 1), this.matchIndex + 1) as LogIndex
    this.isPaused = false
    return true
  }
}
