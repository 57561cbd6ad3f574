import type { Uuid } from '../../../src/base/index.ts'
import {
  decodeMembership,
  type Entry,
  type LogIndex,
  type Membership,
  type MemoryLog,
  type Message,
  type NodeId,
  type RaftCore,
  type RaftLog,
  type Ready,
  type Term,
} from '../../../src/raft/index.ts'

/** What the checker sees of a node. */
export interface Observed {
  readonly id: NodeId
  readonly log: RaftLog
  readonly core: RaftCore
  readonly disk: Disk
}

export interface Disk {
  readonly directoryId: Uuid
  readonly log: MemoryLog
  readonly term: Term
}

export class InvariantViolation extends Error {
  override readonly name = 'InvariantViolation'
}

/**
 * Raft's safety properties over all nodes, checked after every event, in time that doesn't grow with the log: what holds for an
 * entry that was checked when it came holds for all before it.
 */
export class Checker {
  /** By what is committed. */
  #membership: Membership
  /** Indexes of committed 'config' entries. */
  readonly #membershipIndexes = new Set<LogIndex>()
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
  readonly #memberships = new Map<NodeId, { membership: Membership; index: LogIndex; term: Term }>()
  readonly #seen = new Map<NodeId, { term: Term; commitIndex: LogIndex; appliedIndex: LogIndex }>()

  /** `disks` of all nodes, up or down, by id. */
  constructor(membership: Membership, disks: readonly Disk[]) {
    this.#membership = membership
    this.#disks = disks
  }

  get membershipsCommitted(): number {
    return this.#membershipIndexes.size
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
    this.#checkMembership(node)
    if (core.role === 'leader') this.#checkLeader(node)
    const inOrder = node.disk.log.snapshot.index <= appliedIndex && appliedIndex <= commitIndex
    this.#require(inOrder && commitIndex <= log.lastIndex, node, 'snapshot <= applied <= commit <= last')
    this.#seen.set(node.id, { term, commitIndex, appliedIndex })
  }

  /** Who votes is what the last 'config' entry in the log says, committed or not. */
  #checkMembership(node: Observed): void {
    const { log, core } = node
    const { membership } = core
    const known = this.#memberships.get(node.id)
    const index = log.lastIndex
    // Only a change of the log's end, or of what is believed, can make it false.
    if (known?.membership === membership && known.index === index && known.term === log.term(index)) return
    this.#memberships.set(node.id, { membership, index, term: log.term(index) as Term })
    let expected = log.snapshot.membership
    for (let at = index; at > log.snapshot.index; at = (at - 1) as LogIndex) {
      const { type, data } = log.entries(at, at, 0)[0]!
      if (type !== 'config') continue
      expected = decodeMembership(data)
      break
    }
    this.#require(textOf(expected) === textOf(membership), node, 'goes by another membership than its log says')
  }

  /** A disk that is new knows nothing. */
  afterWipe(id: NodeId): void {
    this.#seen.delete(id)
    this.checkDurability()
  }

  /** A process that starts again may know less of what was committed, but never of terms. */
  afterRestart(node: Observed): void {
    this.#memberships.delete(node.id)
    const seen = this.#seen.get(node.id)
    if (seen !== undefined) {
      this.#seen.set(node.id, { term: node.core.term, commitIndex: 0 as LogIndex, appliedIndex: 0 as LogIndex })
    }
    this.afterEvent(node)
  }

  #checkLeader(node: Observed): void {
    const { term } = node.core
    const known = this.#leaders.get(term)
    if (known === node.id) {
      this.#checkOneChange(node)
      return
    }
    const isBeingRemoved = node.log.membershipIndex > node.core.commitIndex
    this.#require(node.core.hasVote || isBeingRemoved, node, `leads term ${term} without a vote`)
    this.#require(known === undefined, node, `leads term ${term}, as node ${known} does`)
    this.#leaders.set(term, node.id)
    // Leader completeness: what was committed in earlier terms; the last of these entries stands for all before it. (A
    // candidate whose votes were slow may win a term that others have left behind: it lacks what they committed since.)
    let index = this.lastCommitted as LogIndex
    while (index > 0 && (this.#committedIn[index] ?? 0) >= term) index = (index - 1) as LogIndex
    this.#require(this.#holds(node.log, index), node, `was elected without committed entry ${index}`)
  }

  /** At most one change of voters is not committed: with two, majorities might not meet. */
  #checkOneChange({ id, log }: Observed): void {
    if (log.membershipIndex <= this.lastCommitted) return
    const from = Math.max(this.lastCommitted + 1, log.firstIndex) as LogIndex
    const open = log.entries(from, log.lastIndex, Number.POSITIVE_INFINITY).filter(({ type }) => type === 'config')
    if (open.length > 1)
      throw new InvariantViolation(`Node ${id}: leads with ${open.length} changes of voters under way`)
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
      if (known === undefined) this.#noteCommitted(node.log.entries(index as LogIndex, index as LogIndex, 0)[0]!)
    }
    this.checkDurability()
  }

  #noteCommitted({ index, type, data }: Entry): void {
    if (type !== 'config') return
    this.#membership = decodeMembership(data)
    this.#membershipIndexes.add(index)
  }

  /**
   * After each change of a disk: no majority of the voters can be made of those that lack the last committed entry, and so none
   * that lacks one before it. A voter whose disk was wiped can't be part of any.
   */
  checkDurability(): void {
    const index = this.lastCommitted as LogIndex
    const { voters } = this.#membership
    const lacking = voters.filter(({ id, directoryId }) => {
      const disk = this.#disks[id]!
      return disk.directoryId === directoryId && !this.#holds(disk.log, index)
    })
    if (lacking.length <= voters.length / 2) return
    throw new InvariantViolation(`Committed entry ${index} is missing on ${lacking.length} of ${voters.length} disks`)
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
    const isPromise = !['preVote', 'preVoteAnswer', 'follow', 'leaderHint'].includes(message.type)
    this.#require(!isPromise || message.term <= node.disk.term, node, `sent ${message.type} of a term not on its disk`)
    const { directoryId } = node.core
    if (message.type === 'vote') this.#onVote(directoryId, message.term, node.id)
    if (message.type === 'voteAnswer' && message.granted) this.#onVote(directoryId, message.term, message.to)
  }

  /** `node` may answer a read that began when all up to `committed` was committed, once it applied `index`. */
  onRead(node: Observed, committed: number, index: LogIndex): void {
    this.#require(index >= committed, node, `answers a read as of entry ${index} that began after ${committed}`)
  }

  #onVote(voter: Uuid, term: Term, candidate: NodeId): void {
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

function textOf({ voters }: Membership): string {
  return voters.map(({ id, directoryId }) => `${id}@${directoryId}`).join(' ')
}
