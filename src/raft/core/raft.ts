import { assert, unreachable } from '../../base/index.ts'
import type { Random } from '../../platform/index.ts'
import type { RaftLog } from './log.ts'
import { Inflights, Progress } from './progress.ts'
import { majority, quorumIndex, tally } from './quorum.ts'
import type {
  AppendAnswerMessage,
  AppendMessage,
  Entry,
  HardState,
  LogIndex,
  Membership,
  Message,
  NodeId,
  Proposal,
  RaftConfig,
  Ready,
  Role,
  Snapshot,
  SoftState,
  Term,
} from './types.ts'

export interface RaftCoreOptions {
  readonly id: NodeId
  readonly config: RaftConfig
  /** As read from the disk; the core owns it from here on. */
  readonly log: RaftLog
  readonly hardState: HardState
  readonly random: Pick<Random, 'int'>
}

export type ProposeOutcome =
  /** In the leader's log, not yet durable. The entries take `lastIndex` and the indexes before it. */
  | { readonly ok: true; readonly lastIndex: LogIndex; readonly term: Term }
  /** 'busy': `maxUncommittedBytes` are waiting for their commit already. */
  | { readonly ok: false; readonly reason: 'not-leader' | 'busy' }

/** A message before `send` adds who sends it; `term` is the sender's own unless given. */
type Draft<T = Message> = T extends Message ? Omit<T, 'from' | 'to' | 'term'> & { readonly term?: Term } : never

/** What one `Ready` gave to the host, until `advance` says that it is done. */
interface InProgress {
  readonly hardState: HardState
  readonly lastEntry: Entry | undefined
  readonly snapshotIndex: LogIndex | undefined
  readonly handedOutIndex: LogIndex
}

const noTerm = 0 as Term
const noIndex = 0 as LogIndex

/**
 * One member of one Raft group, as a function of what it is told: no clock, no I/O, no promise. The host loop is
 * `step`/`tick`/`propose`, then `ready`, do what it says, `advance`. Between `ready` and `advance` it may go on to step, tick
 * and propose; what comes of that is in the next `Ready`.
 *
 * States, and what moves a node between them:
 *
 *     follower --election timeout--> preCandidate --majority would vote--> candidate --majority voted--> leader
 *         ^---------- a higher term, a leader of this term, or (a leader) a majority not heard for a timeout ---|
 *
 *  - Pre-vote (thesis §9.6): nobody's term grows before a majority says that it would vote; a node that was cut off can't
 *    disturb when it comes back.
 *  - Stickiness: who heard from its leader within a timeout ignores other candidates; with pre-vote alone a node that
 *    lost only its link to the leader could unseat it for ever.
 *  - Check quorum: a leader that hasn't heard from a majority within a timeout steps down, so the two rules above can't keep a
 *    useless one.
 *  - A node's own vote, and its own copy of an entry, count when `advance` says that they are durable.
 */
export class RaftCore {
  readonly id: NodeId
  readonly #config: RaftConfig
  readonly #log: RaftLog
  readonly #random: Pick<Random, 'int'>

  #term: Term
  #votedFor: NodeId | null
  #role: Role = 'follower'
  #leaderId: NodeId | null = null
  #membership: Membership

  /** Ticks since start: the core's only notion of time. */
  #ticks = 0
  /** Follower: since the leader was heard or a vote given. Candidates: since the campaign began. */
  #electionElapsed = 0
  #electionTimeout = 0
  #heartbeatElapsed = 0
  /** Answers to the present campaign, the own one included. */
  readonly #votes = new Map<NodeId, boolean>()
  /** Leader only: of each voter, this node included. */
  readonly #progress = new Map<NodeId, Progress>()
  /** Leader only: payload in (commitIndex, lastIndex]. */
  #uncommittedBytes = 0
  /** Leader only: followers are to be told of new entries or a new commit index when the next `Ready` is made. */
  #broadcastPending: boolean = false

  #messages: Message[] = []
  #inProgress: InProgress | undefined
  #durable: HardState
  #toldHardState: HardState
  #toldSoftState: SoftState = { role: 'follower', leaderId: null }

  constructor({ id, config, log, hardState, random }: RaftCoreOptions) {
    assert(config.electionTicks > config.heartbeatTicks, 'several heartbeats fit in an election timeout')
    this.id = id
    this.#config = config
    this.#log = log
    this.#random = random
    this.#term = hardState.term
    this.#votedFor = hardState.votedFor
    this.#durable = hardState
    this.#toldHardState = hardState
    this.#membership = log.snapshot.membership
    this.#resetElectionTimer()
  }

  get role(): Role {
    return this.#role
  }

  get term(): Term {
    return this.#term
  }

  get leaderId(): NodeId | null {
    return this.#leaderId
  }

  get votedFor(): NodeId | null {
    return this.#votedFor
  }

  get membership(): Membership {
    return this.#membership
  }

  get commitIndex(): LogIndex {
    return this.#log.commitIndex
  }

  get appliedIndex(): LogIndex {
    return this.#log.appliedIndex
  }

  get lastIndex(): LogIndex {
    return this.#log.lastIndex
  }

  get uncommittedBytes(): number {
    return this.#uncommittedBytes
  }

  /** What a leader knows of `voter`; undefined in other roles. To look at, not to change. */
  progressOf(voter: NodeId): Readonly<Progress> | undefined {
    return this.#progress.get(voter)
  }

  // ---- time and elections ----

  /** One unit of time passed. */
  tick(): void {
    this.#ticks++
    if (this.#role === 'leader') this.#tickLeader()
    else if (++this.#electionElapsed >= this.#electionTimeout) this.campaign()
  }

  #tickLeader(): void {
    if (!this.#hasQuorumContact()) {
      this.#becomeFollower(this.#term, null)
      return
    }
    for (const progress of this.#progress.values()) {
      const isOverdue = this.#ticks - progress.snapshotSentTick >= this.#config.snapshotRetryTicks
      if (progress.state === 'snapshot' && isOverdue) progress.becomeProbe()
    }
    if (++this.#heartbeatElapsed < this.#config.heartbeatTicks) return
    this.#heartbeatElapsed = 0
    for (const [voter, progress] of this.#progress) {
      if (voter !== this.id) this.#sendHeartbeat(voter, progress)
    }
  }

  #hasQuorumContact(): boolean {
    let heard = 0
    for (const [voter, progress] of this.#progress) {
      if (voter === this.id || this.#ticks - progress.lastContactTick < this.#config.electionTicks) heard++
    }
    return heard >= majority(this.#progress.size)
  }

  /**
   * Starts an election now, as if the timeout had passed. A quorum of one is its own majority: it asks nobody and leads as
   * soon as its vote is durable. No effect on a leader or on who has no vote.
   */
  campaign(): void {
    if (this.#role === 'leader' || !this.#isVoter(this.id)) return
    this.#role = 'preCandidate'
    this.#leaderId = null
    this.#resetElectionTimer()
    this.#votes.clear()
    const nextTerm = (this.#term + 1) as Term
    this.#sendToOthers({
      type: 'preVote',
      term: nextTerm,
      lastIndex: this.#log.lastIndex,
      lastTerm: this.#log.lastTerm,
    })
    this.#countVote(this.id, true)
  }

  /**
   * The leader is known to be dead by other means: stop refusing other candidates for its sake. No effect on a leader. It
   * takes a majority that knows the same to unseat one that lives.
   */
  forgetLeader(): void {
    if (this.#role === 'follower') this.#leaderId = null
  }

  #becomeFollower(term: Term, leaderId: NodeId | null): void {
    assert(term >= this.#term, 'a term never goes back')
    if (term > this.#term) this.#votedFor = null // one vote in a term: Raft §5.2
    this.#term = term
    this.#role = 'follower'
    this.#leaderId = leaderId
    this.#progress.clear()
    this.#votes.clear()
    this.#uncommittedBytes = 0
    this.#broadcastPending = false
    this.#resetElectionTimer()
  }

  #becomeCandidate(): void {
    this.#term = (this.#term + 1) as Term
    this.#votedFor = this.id
    this.#role = 'candidate'
    this.#leaderId = null
    this.#votes.clear()
    this.#resetElectionTimer()
    this.#sendToOthers({ type: 'vote', lastIndex: this.#log.lastIndex, lastTerm: this.#log.lastTerm })
    // The own vote is counted in `advance`: a crash before the write could otherwise vote twice in this term.
  }

  #becomeLeader(): void {
    assert(this.#role === 'candidate', 'only a candidate is elected')
    this.#role = 'leader'
    this.#leaderId = this.id
    this.#votes.clear()
    this.#heartbeatElapsed = 0
    const { maxInflightCount, maxInflightBytes } = this.#config
    const nextIndex = (this.#log.lastIndex + 1) as LogIndex
    for (const { id } of this.#membership.voters) {
      this.#progress.set(id, new Progress(nextIndex, this.#ticks, new Inflights(maxInflightCount, maxInflightBytes)))
    }
    this.#progress.get(this.id)?.maybeUpdate(this.#log.stableIndex)
    this.#uncommittedBytes = 0
    for (let index = this.#log.commitIndex + 1; index < nextIndex; index++) {
      this.#uncommittedBytes += this.#log.entries(index as LogIndex, index as LogIndex, 0)[0]!.data.length
    }
    // Entries of earlier terms are committed only with one of this term after them.
    this.#appendOwn([{ type: 'noop', data: new Uint8Array(0) }])
  }

  #resetElectionTimer(): void {
    this.#electionElapsed = 0
    this.#electionTimeout = this.#config.electionTicks + this.#random.int(this.#config.electionTicks)
  }

  #isVoter(id: NodeId): boolean {
    return this.#membership.voters.some((voter) => voter.id === id)
  }

  #countVote(voter: NodeId, granted: boolean): void {
    if (!this.#isVoter(voter)) return
    if (!this.#votes.has(voter)) this.#votes.set(voter, granted)
    const result = tally(this.#votes.values(), this.#membership.voters.length)
    if (result === 'lost') this.#becomeFollower(this.#term, null)
    else if (result === 'won' && this.#role === 'preCandidate') this.#becomeCandidate()
    else if (result === 'won' && this.#role === 'candidate') this.#becomeLeader()
  }

  // ---- messages ----

  /** A message from a peer (or a copy, however late). */
  step(message: Message): void {
    if (message.to !== this.id) return // an address that changed hands: another's vote must not be counted here
    if (message.term > this.#term) {
      if (!this.#enterHigherTerm(message)) return
    } else if (message.term < this.#term) {
      this.#answerLowerTerm(message)
      return
    }
    switch (message.type) {
      case 'preVote':
      case 'vote':
        this.#handleVoteRequest(message)
        break
      case 'preVoteAnswer':
        // A grant names the term of the campaign; one for an earlier campaign must not count.
        if (this.#role === 'preCandidate' && (!message.granted || message.term === this.#term + 1)) {
          this.#countVote(message.from, message.granted)
        }
        break
      case 'voteAnswer':
        if (this.#role === 'candidate') this.#countVote(message.from, message.granted)
        break
      case 'append':
        this.#heardFromLeader(message.from)
        this.#handleAppend(message)
        break
      case 'heartbeat':
        this.#heardFromLeader(message.from)
        // The leader's belief about this log is checked: only an entry that is here, with that term, is known to be its.
        if (message.commitTerm !== noTerm && this.#log.has(message.commitIndex, message.commitTerm)) {
          this.#log.commitTo(message.commitIndex)
        }
        this.#send(message.from, { type: 'heartbeatAnswer' })
        break
      case 'snapshot':
        this.#heardFromLeader(message.from)
        this.#handleSnapshot(message.from, message.snapshot)
        break
      case 'appendAnswer':
        this.#handleAppendAnswer(message)
        break
      case 'heartbeatAnswer':
        this.#handleHeartbeatAnswer(message.from)
        break
      default:
        unreachable(message)
    }
  }

  /** False when the message is to be ignored. */
  #enterHigherTerm(message: Message): boolean {
    switch (message.type) {
      case 'preVote':
      case 'vote':
        if (this.#isLoyalAgainst(message.from)) return false
        if (message.type === 'vote') this.#becomeFollower(message.term, null)
        return true
      case 'preVoteAnswer':
        // The term in a grant is the one asked about, which nobody is in yet.
        if (!message.granted) this.#becomeFollower(message.term, null)
        return true
      case 'append':
      case 'heartbeat':
      case 'snapshot':
        this.#becomeFollower(message.term, message.from)
        return true
      default:
        this.#becomeFollower(message.term, null)
        return true
    }
  }

  /** Stickiness. What the leader itself asks is no attack on it: it has stepped down. */
  #isLoyalAgainst(candidate: NodeId): boolean {
    if (this.#leaderId === null || this.#leaderId === candidate) return false
    return this.#role === 'leader' || this.#electionElapsed < this.#config.electionTicks
  }

  #answerLowerTerm(message: Message): void {
    if (message.type === 'append' || message.type === 'heartbeat' || message.type === 'snapshot') {
      // Without this a node with a higher term, whose votes the others ignore, would never be let in again: the
      // leader learns the term, steps down, and is elected above it. If it leads that term by now, this says nothing.
      this.#send(message.from, { type: 'heartbeatAnswer' })
    } else if (message.type === 'preVote') {
      // The reason must be told: a candidate with a longer log but an old term would ask for ever.
      this.#send(message.from, { type: 'preVoteAnswer', granted: false })
    }
  }

  #handleVoteRequest(message: Message & { type: 'preVote' | 'vote' }): void {
    const isPreVote = message.type === 'preVote'
    const mayVote =
      this.#votedFor === message.from ||
      (this.#votedFor === null && this.#leaderId === null) ||
      (isPreVote && message.term > this.#term)
    const granted = mayVote && this.#log.isUpToDate(message.lastIndex, message.lastTerm)
    if (granted && !isPreVote) {
      this.#electionElapsed = 0 // not for a pre-vote: it would let one node keep all others from campaigning
      this.#votedFor = message.from
    }
    const term = granted ? message.term : this.#term
    this.#send(message.from, { type: isPreVote ? 'preVoteAnswer' : 'voteAnswer', term, granted })
  }

  #heardFromLeader(leader: NodeId): void {
    assert(this.#role !== 'leader', 'a term has one leader')
    if (this.#role !== 'follower' || this.#leaderId !== leader) this.#becomeFollower(this.#term, leader)
    this.#electionElapsed = 0
  }

  // ---- follower ----

  #handleAppend(message: AppendMessage): void {
    const { from, prevIndex, prevTerm, entries } = message
    if (prevIndex < this.#log.commitIndex) {
      // An old message: what is committed equals the leader's without looking.
      this.#send(from, { type: 'appendAnswer', index: this.#log.commitIndex, rejection: null })
      return
    }
    if (this.#log.maybeAppend(prevIndex, prevTerm, entries)) {
      // Not beyond what this message verified: the tail after it may still differ from the leader's.
      const verifiedIndex = (prevIndex + entries.length) as LogIndex
      this.#log.commitTo(Math.min(message.commitIndex, verifiedIndex) as LogIndex)
      this.#send(from, { type: 'appendAnswer', index: verifiedIndex, rejection: null })
      return
    }
    const hint = this.#log.findConflictByTerm(Math.min(prevIndex, this.#log.lastIndex) as LogIndex, prevTerm)
    const rejection = { hintIndex: hint.index, hintTerm: hint.term }
    this.#send(from, { type: 'appendAnswer', index: prevIndex, rejection })
  }

  #handleSnapshot(from: NodeId, snapshot: Snapshot): void {
    if (snapshot.index > this.#log.commitIndex) {
      if (this.#log.has(snapshot.index, snapshot.term)) {
        this.#log.commitTo(snapshot.index) // the entries themselves are here: keep them
      } else {
        this.#log.restore(snapshot)
        this.#membership = snapshot.membership
      }
    }
    this.#send(from, { type: 'appendAnswer', index: this.#log.commitIndex, rejection: null })
  }

  // ---- leader ----

  /** Appends to the leader's log. The entries' bytes belong to the log from here on. */
  propose(proposals: readonly Proposal[]): ProposeOutcome {
    if (this.#role !== 'leader') return { ok: false, reason: 'not-leader' }
    let bytes = 0
    for (const { data } of proposals) bytes += data.length
    if (this.#uncommittedBytes > 0 && this.#uncommittedBytes + bytes > this.#config.maxUncommittedBytes) {
      return { ok: false, reason: 'busy' }
    }
    this.#appendOwn(proposals)
    return { ok: true, lastIndex: this.#log.lastIndex, term: this.#term }
  }

  #appendOwn(proposals: readonly Proposal[]): void {
    if (proposals.length === 0) return
    const firstIndex = this.#log.lastIndex + 1
    const entries = proposals.map(({ type, data }, i): Entry => {
      return { index: (firstIndex + i) as LogIndex, term: this.#term, type, data }
    })
    for (const { data } of entries) this.#uncommittedBytes += data.length
    this.#log.append(entries)
    this.#broadcastPending = true
  }

  #maybeCommit(): void {
    const before = this.#log.commitIndex
    const matchIndexes = Array.from(this.#progress.values(), (progress) => progress.matchIndex)
    if (!this.#log.maybeCommit(quorumIndex(matchIndexes), this.#term)) return
    for (let index = before + 1; index <= this.#log.commitIndex; index++) {
      this.#uncommittedBytes -= this.#log.entries(index as LogIndex, index as LogIndex, 0)[0]!.data.length
    }
    this.#broadcastPending = true
  }

  #handleAppendAnswer(message: AppendAnswerMessage): void {
    const progress = this.#progress.get(message.from)
    if (progress === undefined) return
    progress.lastContactTick = this.#ticks
    if (message.rejection !== null) {
      let { hintIndex } = message.rejection
      const { hintTerm } = message.rejection
      if (hintTerm !== noTerm) hintIndex = this.#log.findConflictByTerm(hintIndex, hintTerm).index
      if (!progress.maybeDecreaseTo(message.index, hintIndex)) return
      if (progress.state === 'replicate') progress.becomeProbe()
      // It lacks what it once said it has. Asking again at once would go on for ever; its heartbeats' answers will ask.
      else if (progress.nextIndex > message.index) return
      this.#maybeSendAppend(message.from, progress, true)
      return
    }
    assert(message.index <= this.#log.lastIndex, 'a follower accepts only what the leader has')
    const isNews = progress.maybeUpdate(message.index)
    if (!isNews && !(progress.state === 'probe' && progress.matchIndex === message.index)) return
    if (progress.state === 'probe') progress.becomeReplicate()
    else if (progress.state === 'replicate') progress.inflights.freeTo(message.index)
    else if (progress.matchIndex + 1 >= this.#log.firstIndex) progress.becomeReplicate()
    this.#maybeCommit()
    this.#sendAppends(message.from, progress)
  }

  #handleHeartbeatAnswer(from: NodeId): void {
    const progress = this.#progress.get(from)
    if (progress === undefined) return
    progress.lastContactTick = this.#ticks
    progress.isPaused = false
    // Also with nothing to send: when every message in flight was lost, the empty one is refused, and that repairs it.
    if (progress.matchIndex < this.#log.lastIndex || progress.state === 'probe') {
      this.#maybeSendAppend(from, progress, true)
    }
  }

  /** The transport knows that what was sent to `follower` did not arrive. */
  reportUnreachable(follower: NodeId): void {
    const progress = this.#progress.get(follower)
    if (progress?.state === 'replicate') progress.becomeProbe()
  }

  /** The transport knows that a snapshot for `follower` did not arrive. */
  reportSnapshotFailed(follower: NodeId): void {
    const progress = this.#progress.get(follower)
    if (progress?.state !== 'snapshot') return
    progress.pendingSnapshotIndex = noIndex
    progress.becomeProbe()
    progress.isPaused = true // until the follower answers a heartbeat
  }

  #sendAppends(to: NodeId, progress: Progress): void {
    while (this.#maybeSendAppend(to, progress, false)) {}
  }

  /** One append (or the snapshot, when what must be sent is gone). False when nothing was sent. */
  #maybeSendAppend(to: NodeId, progress: Progress, evenIfEmpty: boolean): boolean {
    if (progress.isPaused || progress.state === 'snapshot') return false
    const prevIndex = (progress.nextIndex - 1) as LogIndex
    const prevTerm = this.#log.term(prevIndex)
    if (typeof prevTerm !== 'number') {
      assert(prevTerm === 'compacted', 'a leader sends from within its log')
      return this.#sendSnapshot(to, progress)
    }
    const isThrottled = progress.state === 'replicate' && progress.inflights.isFull
    const entries = isThrottled
      ? []
      : this.#log.entries(progress.nextIndex, this.#log.lastIndex, this.#config.maxBytesPerMessage)
    if (entries.length === 0 && !evenIfEmpty) return false
    let bytes = 0
    for (const { data } of entries) bytes += data.length
    progress.sent(entries.length, bytes)
    this.#send(to, { type: 'append', prevIndex, prevTerm, entries, commitIndex: this.#log.commitIndex })
    return true
  }

  #sendSnapshot(to: NodeId, progress: Progress): boolean {
    // To one that doesn't answer it would only be lost; its next heartbeat answer brings us back here.
    if (this.#ticks - progress.lastContactTick >= this.#config.electionTicks) return false
    const { snapshot } = this.#log
    assert(snapshot.index > 0, 'what is compacted is in a snapshot')
    progress.becomeSnapshot(snapshot.index, this.#ticks)
    this.#send(to, { type: 'snapshot', snapshot })
    return true
  }

  #sendHeartbeat(to: NodeId, progress: Progress): void {
    const commitIndex = Math.min(progress.matchIndex, this.#log.commitIndex) as LogIndex
    const commitTerm = this.#log.term(commitIndex)
    if (typeof commitTerm === 'number') this.#send(to, { type: 'heartbeat', commitIndex, commitTerm })
    else this.#send(to, { type: 'heartbeat', commitIndex: noIndex, commitTerm: noTerm })
  }

  // ---- output ----

  #send(to: NodeId, draft: Draft): void {
    this.#messages.push({ term: this.#term, ...draft, from: this.id, to } as Message)
  }

  #sendToOthers(draft: Draft): void {
    for (const { id } of this.#membership.voters) {
      if (id !== this.id) this.#send(id, draft)
    }
  }

  /** What is to be done now; undefined when nothing. One at a time: `advance` comes before the next. */
  ready(): Ready | undefined {
    assert(this.#inProgress === undefined, 'advance() follows each ready()')
    if (this.#broadcastPending) {
      // Not at each proposal: those of one turn leave in one message.
      this.#broadcastPending = false
      for (const [voter, progress] of this.#progress) {
        if (voter === this.id) continue
        this.#maybeSendAppend(voter, progress, true)
        this.#sendAppends(voter, progress)
      }
    }
    const log = this.#log
    const hardState: HardState = { term: this.#term, votedFor: this.#votedFor, commitIndex: log.commitIndex }
    const told = this.#toldHardState
    const isVoteChanged = hardState.term !== told.term || hardState.votedFor !== told.votedFor
    const isHardStateChanged = isVoteChanged || hardState.commitIndex !== told.commitIndex
    const isSoftStateChanged =
      this.#role !== this.#toldSoftState.role || this.#leaderId !== this.#toldSoftState.leaderId
    const snapshot = log.incomingSnapshot
    const entriesToPersist = log.unstableEntries
    if (
      this.#messages.length === 0 &&
      entriesToPersist.length === 0 &&
      !isHardStateChanged &&
      !isSoftStateChanged &&
      snapshot === undefined &&
      !log.hasCommittedToTake
    ) {
      return undefined
    }
    const committedEntries = log.takeCommitted(this.#config.maxCommittedBytesPerReady)
    const softState: SoftState = { role: this.#role, leaderId: this.#leaderId }
    this.#inProgress = {
      hardState,
      lastEntry: entriesToPersist.at(-1),
      snapshotIndex: snapshot?.index,
      handedOutIndex: log.handedOutIndex,
    }
    this.#toldHardState = hardState
    this.#toldSoftState = softState
    const messages = this.#messages
    this.#messages = []
    return {
      messages,
      entriesToPersist: entriesToPersist.slice(),
      hardState: isHardStateChanged ? hardState : undefined,
      snapshot,
      committedEntries,
      softState: isSoftStateChanged ? softState : undefined,
      mustSync: isVoteChanged || entriesToPersist.length > 0 || snapshot !== undefined,
    }
  }

  /** Everything the last `Ready` asked for is done, and durable. */
  advance(): void {
    const done = this.#inProgress
    assert(done !== undefined, 'advance() follows ready()')
    this.#inProgress = undefined
    this.#durable = done.hardState
    if (done.snapshotIndex !== undefined) this.#log.snapshotStable(done.snapshotIndex)
    if (done.lastEntry !== undefined) this.#log.stableTo(done.lastEntry.index, done.lastEntry.term)
    if (done.handedOutIndex > this.#log.appliedIndex) this.#log.appliedTo(done.handedOutIndex)
    if (this.#role === 'leader') {
      if (this.#progress.get(this.id)?.maybeUpdate(this.#log.stableIndex)) this.#maybeCommit()
    } else if (this.#role === 'candidate' && this.#durable.term === this.#term) {
      this.#countVote(this.id, true)
    }
  }
}
