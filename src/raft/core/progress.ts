import type { Uuid } from '../../base/index.ts'
import type { LogIndex, Snapshot, SnapshotHeader } from './types.ts'

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

/** A follower's progress, to look at. */
export type ProgressView = Readonly<
  Pick<
    Progress,
    | 'state'
    | 'directoryId'
    | 'matchIndex'
    | 'nextIndex'
    | 'isPaused'
    | 'inflights'
    | 'lastContactTick'
    | 'lastCaughtUpTick'
    | 'transfer'
  >
>

/** A snapshot on its way to one follower, one chunk at a time. The leader goes on with it when it has a newer one by now. */
export interface SnapshotTransfer {
  readonly snapshot: Snapshot
  readonly header: SnapshotHeader
  /** Of the chunk that waits for its answer. */
  offset: number
}

/**
 * What the leader knows of one follower, with a vote or without. States:
 *
 *  - `probe`: where the logs agree isn't known; one append at a time, then wait for its answer (or a heartbeat's).
 *  - `replicate`: known; appends are sent ahead of their answers, up to the inflight bounds. Left on a rejection.
 *  - `snapshot`: what it needs is compacted; the snapshot is sent in chunks, and nothing else until it is there.
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
  /** Names the disk that all of this is known of. One with another disk is another follower, of which nothing is known. */
  readonly directoryId: Uuid
  /** Tick of the last message from it in this term. */
  lastContactTick: number
  /** Tick at which it last had all that the leader had. */
  lastCaughtUpTick = 0
  /** Last round of reads that it answered. */
  readRound = 0
  /** In state `snapshot` only. */
  transfer: SnapshotTransfer | undefined
  chunkSentTick = 0
  readonly inflights: Inflights

  constructor(directoryId: Uuid, nextIndex: LogIndex, contactTick: number, inflights: Inflights) {
    this.directoryId = directoryId
    this.nextIndex = nextIndex
    this.lastContactTick = contactTick
    this.inflights = inflights
  }

  becomeProbe(): void {
    this.#enter('probe')
    this.nextIndex = (this.matchIndex + 1) as LogIndex
  }

  becomeReplicate(): void {
    this.#enter('replicate')
    this.nextIndex = (this.matchIndex + 1) as LogIndex
  }

  becomeSnapshot(transfer: SnapshotTransfer): void {
    this.#enter('snapshot')
    this.transfer = transfer
    this.nextIndex = (transfer.header.index + 1) as LogIndex
  }

  /** Every counter starts anew with the state: nothing of the old one may hold the new one back. */
  #enter(state: Progress['state']): void {
    this.state = state
    this.isPaused = false
    this.transfer = undefined
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
