import type {
  Entry,
  LogIndex,
  MemoryLog,
  Message,
  NodeId,
  RaftCore,
  RaftLog,
  Ready,
  Term,
} from '../../../src/raft/index.ts'

/** What the checker sees of a node. */
export interface Observed {
  readonly id: NodeId
  readonly log: RaftLog
  readonly core: RaftCore
  readonly disk: Disk
}

export interface Disk {
  readonly log: MemoryLog
  readonly term: Term
}

class InvariantViolation extends Error {
  override readonly name = 'InvariantViolation'
}

/**
 * Raft's safety properties over all nodes, checked after every event, in time that doesn't grow with the log: what holds for an
 * entry that was checked when it came holds for all before it.
 */
export class Checker {
  readonly #voterCount: number
  readonly #disks: readonly Disk[]
  readonly #leaders = new Map<Term, NodeId>()
  /** By `term * 2^32 + index`: what the entry holds and the term before it. */
  readonly #entries = new Map<number, { readonly data: Uint8Array; readonly previousTerm: Term }>()
  /** Term of each committed entry, by index. */
  readonly #committed: Term[] = []
  /** Term of the leader that committed it, by index; it doesn't fall from one to the next. */
  readonly #committedIn: Term[] = []
  /** State of the machine after each index. */
  readonly #states: number[] = []
  readonly #votes = new Map<string, NodeId>()
  readonly #seen = new Map<NodeId, { term: Term; commitIndex: LogIndex; appliedIndex: LogIndex }>()

  /** `disks` of all voters, up or down. */
  constructor(voterCount: number, disks: readonly Disk[]) {
    this.#voterCount = voterCount
    this.#disks = disks
  }

  get lastCommitted(): number {
    return Math.max(0, this.#committed.length - 1)
  }

  /** After each event on `node`. */
  afterEvent(node: Observed): void {
    const { core, log } = node
    const seen = this.#seen.get(node.id)
    const { term, commitIndex, appliedIndex } = core
    if (seen !== undefined) {
      this.#require(term >= seen.term, node, `term went back from ${seen.term} to ${term}`)
      this.#require(commitIndex >= seen.commitIndex, node, `commit index went back to ${commitIndex}`)
      this.#require(appliedIndex >= seen.appliedIndex, node, `applied index went back to ${appliedIndex}`)
    }
    if (seen?.commitIndex !== commitIndex) this.#checkCommitted(node, seen?.commitIndex ?? 0)
    if (core.role === 'leader') this.#checkLeader(node)
    const inOrder = node.disk.log.snapshot.index <= appliedIndex && appliedIndex <= commitIndex
    this.#require(inOrder && commitIndex <= log.lastIndex, node, 'snapshot <= applied <= commit <= last')
    this.#seen.set(node.id, { term, commitIndex, appliedIndex })
  }

  /** A process that starts again may know less of what was committed, but never of terms. */
  afterRestart(node: Observed): void {
    const seen = this.#seen.get(node.id)
    if (seen !== undefined) {
      this.#seen.set(node.id, { term: node.core.term, commitIndex: 0 as LogIndex, appliedIndex: 0 as LogIndex })
    }
    this.afterEvent(node)
  }

  #checkLeader(node: Observed): void {
    const { term } = node.core
    const known = this.#leaders.get(term)
    if (known === node.id) return
    this.#require(known === undefined, node, `leads term ${term}, as node ${known} does`)
    this.#leaders.set(term, node.id)
    // Leader completeness: what was committed in earlier terms; the last of these entries stands for all before it. (A
    // candidate whose votes were slow may win a term that others have left behind: it lacks what they committed since.)
    let index = this.lastCommitted as LogIndex
    while (index > 0 && (this.#committedIn[index] ?? 0) >= term) index = (index - 1) as LogIndex
    this.#require(this.#holds(node.log, index), node, `was elected without committed entry ${index}`)
  }

  /** Whether a log has the committed entry at `index`, or a snapshot of it. */
  #holds(log: { term(index: LogIndex): Term | 'compacted' | 'missing' }, index: LogIndex): boolean {
    if (index === 0) return true
    const term = log.term(index)
    return term === 'compacted' || term === this.#committed[index]
  }

  #checkCommitted(node: Observed, from: number): void {
    for (let index = from + 1; index <= node.core.commitIndex; index++) {
      const term = node.log.term(index as LogIndex)
      if (typeof term !== 'number') continue // in a snapshot, which was checked when it was taken
      const known = this.#committed[index]
      this.#require(
        known === undefined || known === term,
        node,
        `entry ${index} was committed with term ${known}, now ${term}`,
      )
      this.#committed[index] = term
      this.#committedIn[index] ??= node.core.term
    }
    this.checkDurability()
  }

  /** After each change of a disk: the last committed entry is on a majority of them, and so are all before it. */
  checkDurability(): void {
    const index = this.lastCommitted as LogIndex
    let count = 0
    for (const disk of this.#disks) {
      if (this.#holds(disk.log, index)) count++
    }
    if (count > this.#voterCount / 2) return
    throw new InvariantViolation(`Committed entry ${index} is on ${count} of ${this.#voterCount} disks`)
  }

  /** What a node is about to write: log matching, entry by entry. */
  onReady(node: Observed, ready: Ready): void {
    for (const entry of ready.entriesToPersist) {
      const previousTerm = node.log.term((entry.index - 1) as LogIndex)
      const key = entry.term * 2 ** 32 + entry.index
      const known = this.#entries.get(key)
      if (known === undefined) {
        this.#require(typeof previousTerm === 'number', node, `entry ${entry.index} follows nothing`)
        this.#entries.set(key, { data: entry.data, previousTerm: previousTerm as Term })
        continue
      }
      const isSame = known.data === entry.data && (previousTerm === 'compacted' || known.previousTerm === previousTerm)
      this.#require(isSame, node, `entry ${entry.index} of term ${entry.term} differs between two logs`)
    }
  }

  /** What a node says must be on its disk already. */
  onSend(node: Observed, message: Message): void {
    const isPromise = message.type !== 'preVote' && message.type !== 'preVoteAnswer'
    this.#require(!isPromise || message.term <= node.disk.term, node, `sent ${message.type} of a term not on its disk`)
    if (message.type === 'vote') this.#onVote(node.id, message.term, node.id)
    if (message.type === 'voteAnswer' && message.granted) this.#onVote(node.id, message.term, message.to)
  }

  #onVote(voter: NodeId, term: Term, candidate: NodeId): void {
    const key = `${voter}:${term}`
    const known = this.#votes.get(key)
    if (known !== undefined && known !== candidate) {
      throw new InvariantViolation(`Node ${voter} voted for ${known} and for ${candidate} in term ${term}`)
    }
    this.#votes.set(key, candidate)
  }

  /** `state` is what `node`'s machine came to with `entry`. */
  onApply(node: Observed, entry: Entry, state: number): void {
    this.#require(
      this.#committed[entry.index] === entry.term,
      node,
      `applied entry ${entry.index}, which is not committed`,
    )
    this.#onState(node, entry.index, state)
  }

  onInstall(node: Observed, index: LogIndex, state: number): void {
    this.#onState(node, index, state)
  }

  #onState(node: Observed, index: LogIndex, state: number): void {
    const known = this.#states[index]
    this.#require(
      known === undefined || known === state,
      node,
      `state after entry ${index} differs from another node's`,
    )
    this.#states[index] = state
  }

  #require(holds: boolean, node: Observed, what: string): void {
    if (!holds) throw new InvariantViolation(`Node ${node.id}: ${what}`)
  }
}
