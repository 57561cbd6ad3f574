import type { LeaderEpoch, Offset } from '../base/index.ts'

export interface EpochEntry {
  readonly epoch: LeaderEpoch
  /** Offset of the epoch's first record; inclusive. */
  readonly startOffset: Offset
}

const unknown = { leaderEpoch: -1 as LeaderEpoch, endOffset: -1 } as const

/**
 * Where each leader epoch of a log begins. Epochs and offsets both grow along the list, so a follower that asks where its
 * last epoch ended finds the offset from which the two logs differ (KIP-101, KIP-279).
 */
export class EpochCache {
  #entries: EpochEntry[] = []

  get entries(): readonly EpochEntry[] {
    return this.#entries
  }

  /** -1: there is none. */
  get latestEpoch(): LeaderEpoch {
    return this.#entries.at(-1)?.epoch ?? (-1 as LeaderEpoch)
  }

  /** Takes what a checkpoint held; entries that break the order are left out. */
  load(entries: readonly EpochEntry[]): void {
    this.#entries = []
    for (const entry of entries) this.assign(entry.epoch, entry.startOffset)
  }

  /** `epoch` begins at `startOffset`. Entries that contradict it go. True when something changed. */
  assign(epoch: LeaderEpoch, startOffset: Offset): boolean {
    const last = this.#entries.at(-1)
    if (last?.epoch === epoch && last.startOffset <= startOffset) return false
    const kept = this.#entries.findLastIndex((entry) => entry.epoch < epoch && entry.startOffset < startOffset)
    this.#entries.splice(kept + 1, Number.POSITIVE_INFINITY, { epoch, startOffset })
    return true
  }

  /**
   * The largest epoch that is at most `epoch`, with the offset at which it ends (exclusive). An epoch older than all that
   * are known ends where the first of them begins; one newer than all is unknown.
   */
  endOffsetFor(epoch: LeaderEpoch, logEndOffset: Offset): { leaderEpoch: LeaderEpoch; endOffset: Offset } {
    if (epoch < 0 || epoch > this.latestEpoch) return unknown
    if (epoch === this.latestEpoch) return { leaderEpoch: epoch, endOffset: logEndOffset }
    const next = this.#entries.findIndex((entry) => entry.epoch > epoch)
    const floor = this.#entries[next - 1]
    return { leaderEpoch: floor?.epoch ?? epoch, endOffset: this.#entries[next]!.startOffset }
  }

  /** The epoch of the record at `offset`; -1 when it isn't known. */
  epochAt(offset: Offset): LeaderEpoch {
    return this.#entries.findLast((entry) => entry.startOffset <= offset)?.epoch ?? (-1 as LeaderEpoch)
  }

  /** Forgets epochs that begin at `endOffset` or later. True when something changed. */
  truncateFromEnd(endOffset: Offset): boolean {
    const before = this.#entries.length
    this.#entries = this.#entries.filter((entry) => entry.startOffset < endOffset)
    return this.#entries.length !== before
  }

  /** Forgets epochs that end at or before `startOffset`; the one that holds it begins there now. */
  truncateFromStart(startOffset: Offset): boolean {
    const floor = this.#entries.findLastIndex((entry) => entry.startOffset <= startOffset)
    if (floor < 0) return false
    const kept = this.#entries[floor]!
    if (floor === 0 && kept.startOffset === startOffset) return false
    this.#entries.splice(0, floor + 1, { epoch: kept.epoch, startOffset })
    return true
  }

  clear(): void {
    this.#entries = []
  }
}
