import { assert } from '../../base/index.ts'
import { decodeMembership } from './membership.ts'
import type { Entry, LogIndex, LogView, Membership, Snapshot, Term } from './types.ts'

/** The durable log, mirrored in memory for the core. Its owner changes it only after the disk has the change. */
export class MemoryLog implements LogView {
  #snapshot: Snapshot
  /** The entry before the first kept one. */
  #baseIndex: LogIndex
  #baseTerm: Term
  #entries: Entry[]

  /**
   * `entries` are contiguous. They start at `snapshot.index + 1` or, being kept for slow followers, earlier; in the second
   * case the term before the first is not known and asking for it answers 'compacted'.
   */
  constructor(snapshot: Snapshot, entries: Entry[] = []) {
    this.#snapshot = snapshot
    this.#entries = entries
    const first = entries[0]
    if (first === undefined || first.index === snapshot.index + 1) {
      this.#baseIndex = snapshot.index
      this.#baseTerm = snapshot.term
    } else {
      // The first kept entry itself becomes the base: its term is known, its content is in the snapshot anyway.
      assert(first.index <= snapshot.index, 'the log starts at or below the end of its snapshot')
      this.#baseIndex = first.index
      this.#baseTerm = first.term
      this.#entries = entries.slice(1)
    }
    assert(this.lastIndex >= snapshot.index, 'the log reaches its snapshot')
  }

  get snapshot(): Snapshot {
    return this.#snapshot
  }

  get firstIndex(): LogIndex {
    return (this.#baseIndex + 1) as LogIndex
  }

  get lastIndex(): LogIndex {
    return (this.#baseIndex + this.#entries.length) as LogIndex
  }

  term(index: LogIndex): Term | 'compacted' | 'missing' {
    if (index < this.#baseIndex) return 'compacted'
    if (index === this.#baseIndex) return this.#baseTerm
    return this.#entries[index - this.#baseIndex - 1]?.term ?? 'missing'
  }

  entry(index: LogIndex): Entry {
    const entry = this.#entries[index - this.#baseIndex - 1]
    assert(entry !== undefined, 'an entry is read within the log')
    return entry
  }

  /** Who votes by what the log says up to `index`: from the snapshot's on, within the log. */
  membershipAt(index: LogIndex): Membership {
    for (let at = index; at > this.#snapshot.index; at--) {
      const { type, data } = this.entry(at)
      if (type === 'config') return decodeMembership(data)
    }
    return this.#snapshot.membership
  }

  /** `entries` follow on the log or replace its end, from the first one's index on. */
  append(entries: readonly Entry[]): void {
    const first = entries[0]
    if (first === undefined) return
    const keep = first.index - this.#baseIndex - 1
    assert(keep >= 0 && keep <= this.#entries.length, 'entries continue the log')
    this.#entries.length = keep
    for (const entry of entries) this.#entries.push(entry)
  }

  /** A snapshot from the leader takes the place of the whole log. */
  install(snapshot: Snapshot): void {
    this.#snapshot = snapshot
    this.#baseIndex = snapshot.index
    this.#baseTerm = snapshot.term
    this.#entries = []
  }

  /** A snapshot of this node's own state. The entries stay until `compact`. */
  replaceSnapshot(snapshot: Snapshot): void {
    assert(this.term(snapshot.index) === snapshot.term, 'a snapshot is of an entry in the log')
    this.#snapshot = snapshot
  }

  /** Drops the entries up to `index`, inclusive; at most `snapshot.index`. */
  compact(index: LogIndex): void {
    assert(index <= this.#snapshot.index, 'only what is in the snapshot is compacted')
    if (index <= this.#baseIndex) return
    const term = this.term(index)
    assert(typeof term === 'number', 'the log is compacted within its entries')
    this.#entries = this.#entries.slice(index - this.#baseIndex)
    this.#baseIndex = index
    this.#baseTerm = term
  }
}
