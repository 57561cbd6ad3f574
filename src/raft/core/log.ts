import { assert } from '../../base/index.ts'
import { decodeMembership } from './membership.ts'
import type { Entry, LogIndex, LogView, Membership, Snapshot, Term } from './types.ts'

/**
 * The log as the algorithm sees it: what is durable, overlaid by what is not yet.
 *
 *     firstIndex ........ stableIndex | unstable ........ lastIndex
 *         applied <= handed out <= commit <= last
 *
 * The overlay hides the durable entries from its first index on, so a tail that was replaced in memory is gone at once,
 * before the disk knows. A snapshot from the leader hides the whole durable log in the same way.
 *
 * Who votes is what the last 'config' entry says, committed or not, and goes back with the log where that entry is replaced.
 */
export class RaftLog {
  readonly #durable: LogView
  /** Entries not known to be durable; the first has index `#unstableFrom`. */
  #unstable: Entry[] = []
  #unstableFrom: LogIndex
  #incomingSnapshot: Snapshot | undefined
  #commitIndex: LogIndex
  #handedOutIndex: LogIndex
  #appliedIndex: LogIndex
  /** Ascending by index, never empty; the first is what the snapshot says, the others come from entries. */
  #memberships: { readonly index: LogIndex; readonly membership: Membership }[]

  /** The state machine starts from the durable snapshot: what was committed after it is handed out again. */
  constructor(durable: LogView, commitIndex: LogIndex) {
    this.#durable = durable
    this.#unstableFrom = (durable.lastIndex + 1) as LogIndex
    const snapshotIndex = durable.snapshot.index
    assert(commitIndex <= durable.lastIndex, 'a committed entry is in the durable log')
    this.#commitIndex = Math.max(commitIndex, snapshotIndex) as LogIndex
    this.#handedOutIndex = snapshotIndex
    this.#appliedIndex = snapshotIndex
    this.#memberships = [{ index: snapshotIndex, membership: durable.snapshot.membership }]
    const firstIndex = Math.max(durable.firstIndex, snapshotIndex + 1)
    for (let index = firstIndex; index <= durable.lastIndex; index++) {
      this.#noteMembership(durable.entry(index as LogIndex))
    }
  }

  get firstIndex(): LogIndex {
    if (this.#incomingSnapshot !== undefined) return (this.#incomingSnapshot.index + 1) as LogIndex
    return this.#durable.firstIndex
  }

  get lastIndex(): LogIndex {
    return (this.#unstableFrom + this.#unstable.length - 1) as LogIndex
  }

  get lastTerm(): Term {
    const term = this.term(this.lastIndex)
    assert(typeof term === 'number', 'the last term is known')
    return term
  }

  /** Last entry of this log that is on disk, inclusive. */
  get stableIndex(): LogIndex {
    return (this.#unstableFrom - 1) as LogIndex
  }

  get commitIndex(): LogIndex {
    return this.#commitIndex
  }

  get appliedIndex(): LogIndex {
    return this.#appliedIndex
  }

  get snapshot(): Snapshot {
    return this.#incomingSnapshot ?? this.#durable.snapshot
  }

  /** Who votes. */
  get membership(): Membership {
    return this.#memberships.at(-1)!.membership
  }

  /** Of the entry (or the snapshot) that `membership` comes from. Above the commit index: it may still be taken back. */
  get membershipIndex(): LogIndex {
    return this.#memberships.at(-1)!.index
  }

  /** Who votes if what isn't known to be committed is taken back. */
  get committedMembership(): Membership {
    const known = this.#memberships.findLast(({ index }) => index <= this.#commitIndex)
    return (known ?? this.#memberships[0]!).membership
  }

  /** Whether who reads the log from an early entry on learns from it who votes. */
  get tellsMembership(): boolean {
    return this.#memberships.length > 1
  }

  #noteMembership({ index, type, data }: Entry): void {
    if (type === 'config') this.#memberships.push({ index, membership: decodeMembership(data) })
  }

  /** A compacted term is not "term 0": the two once compared equal and made a false match. */
  term(index: LogIndex): Term | 'compacted' | 'missing' {
    if (index >= this.#unstableFrom) return this.#unstable[index - this.#unstableFrom]?.term ?? 'missing'
    const incoming = this.#incomingSnapshot
    if (incoming !== undefined) return index === incoming.index ? incoming.term : 'compacted'
    return this.#durable.term(index)
  }

  has(index: LogIndex, term: Term): boolean {
    return this.term(index) === term
  }

  /** Whether a log that ends with (lastIndex, lastTerm) may lead this one: terms decide, then length (Raft §5.4.1). */
  isUpToDate(lastIndex: LogIndex, lastTerm: Term): boolean {
    const ownTerm = this.lastTerm
    return lastTerm > ownTerm || (lastTerm === ownTerm && lastIndex >= this.lastIndex)
  }

  /** Entries from `fromIndex` (at least `firstIndex`) on, up to `toIndex` inclusive or `maxBytes` of payload, at least one. */
  entries(fromIndex: LogIndex, toIndex: LogIndex, maxBytes: number): Entry[] {
    const found: Entry[] = []
    let bytes = 0
    for (let index = fromIndex; index <= toIndex; index++) {
      const entry = this.#entry(index)
      bytes += entry.data.length
      if (bytes > maxBytes && found.length > 0) break
      found.push(entry)
    }
    return found
  }

  #entry(index: LogIndex): Entry {
    if (index >= this.#unstableFrom) return this.#unstable[index - this.#unstableFrom]!
    assert(this.#incomingSnapshot === undefined, 'nothing is read from below an incoming snapshot')
    return this.#durable.entry(index)
  }

  /**
   * A leader's entries after (prevIndex, prevTerm). False when this log lacks that entry. Only from the first
   * entry that differs on is anything replaced: an old message repeated must not cut off what came after it.
   */
  maybeAppend(prevIndex: LogIndex, prevTerm: Term, entries: readonly Entry[]): boolean {
    const last = entries.at(-1)
    assert(last === undefined || last.index === prevIndex + entries.length, 'entries follow each other')
    if (!this.has(prevIndex, prevTerm)) return false
    const firstNew = entries.findIndex((entry) => !this.has(entry.index, entry.term))
    if (firstNew !== -1) this.append(firstNew === 0 ? entries : entries.slice(firstNew))
    return true
  }

  /** `entries` (one or more) follow on the log or replace its end. */
  append(entries: readonly Entry[]): void {
    const from = entries[0]!.index
    assert(from > this.#commitIndex, 'a committed entry is never replaced')
    assert(from <= this.lastIndex + 1, 'entries continue the log')
    while (this.#memberships.at(-1)!.index >= from) this.#memberships.pop()
    for (const entry of entries) this.#noteMembership(entry)
    if (from <= this.#unstableFrom) {
      this.#unstable = [...entries]
      this.#unstableFrom = from
      return
    }
    this.#unstable.length = from - this.#unstableFrom
    for (const entry of entries) this.#unstable.push(entry)
  }

  /**
   * The last place at or below `index` where this log's term is at most `term`, and that term (0: not known any more). A log
   * whose entry at `index` has `term` can agree with this one nowhere after it, so a whole term is skipped at once.
   */
  findConflictByTerm(index: LogIndex, term: Term): { readonly index: LogIndex; readonly term: Term } {
    for (let at = index; at > 0; at--) {
      const ownTerm = this.term(at)
      if (typeof ownTerm !== 'number') return { index: at, term: 0 as Term }
      if (ownTerm <= term) return { index: at, term: ownTerm }
    }
    return { index: 0 as LogIndex, term: 0 as Term }
  }

  /** Raises the commit index; lower values are old news. */
  commitTo(index: LogIndex): void {
    if (index <= this.#commitIndex) return
    assert(index <= this.lastIndex, 'a committed entry is in the log')
    this.#commitIndex = index
  }

  /**
   * A quorum has `index`: committed if the entry is of `term`, the leader's own. One of an earlier term is committed only by
   * what follows it, as it could still be replaced (Raft §5.4.2, figure 8).
   */
  maybeCommit(index: LogIndex, term: Term): boolean {
    if (index <= this.#commitIndex || !this.has(index, term)) return false
    this.commitTo(index)
    return true
  }

  /** Marks as handed out, and returns, committed entries up to `maxBytes`; none until an incoming snapshot is durable. */
  takeCommitted(maxBytes: number): Entry[] {
    if (this.#incomingSnapshot !== undefined || this.#handedOutIndex >= this.#commitIndex) return []
    const taken = this.entries((this.#handedOutIndex + 1) as LogIndex, this.#commitIndex, maxBytes)
    this.#handedOutIndex = (this.#handedOutIndex + taken.length) as LogIndex
    return taken
  }

  get hasCommittedToTake(): boolean {
    return this.#incomingSnapshot === undefined && this.#handedOutIndex < this.#commitIndex
  }

  get handedOutIndex(): LogIndex {
    return this.#handedOutIndex
  }

  appliedTo(index: LogIndex): void {
    assert(index >= this.#appliedIndex && index <= this.#commitIndex, 'applied only grows, up to the commit index')
    this.#appliedIndex = index
  }

  get unstableEntries(): readonly Entry[] {
    return this.#unstable
  }

  get incomingSnapshot(): Snapshot | undefined {
    return this.#incomingSnapshot
  }

  /** The disk has all up to (index, term). No effect when that tail was replaced meanwhile: what replaced it isn't there. */
  stableTo(index: LogIndex, term: Term): void {
    const count = index - this.#unstableFrom + 1
    if (count <= 0 || this.#unstable[count - 1]?.term !== term) return
    this.#unstable = this.#unstable.slice(count)
    this.#unstableFrom = (index + 1) as LogIndex
  }

  /** Takes the leader's snapshot in place of the whole log; it is ahead of all that is committed here. */
  restore(snapshot: Snapshot): void {
    assert(snapshot.index > this.#commitIndex, 'a snapshot moves the commit index forward')
    this.#incomingSnapshot = snapshot
    this.#unstable = []
    this.#unstableFrom = (snapshot.index + 1) as LogIndex
    this.#commitIndex = snapshot.index
    this.#memberships = [{ index: snapshot.index, membership: snapshot.membership }]
  }

  /** The snapshot up to `index` is durable and the state machine has it. A newer one may have come meanwhile. */
  snapshotStable(index: LogIndex): void {
    if (this.#incomingSnapshot?.index === index) this.#incomingSnapshot = undefined
    this.#handedOutIndex = Math.max(this.#handedOutIndex, index) as LogIndex
    this.appliedTo(Math.max(this.#appliedIndex, index) as LogIndex)
  }
}
