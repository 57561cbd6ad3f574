import { assert, type Uuid, unreachable } from '../../base/index.ts'
import type { Random } from '../../platform/index.ts'
import { type Draft, Followers } from './followers.ts'
import type { RaftLog } from './log.ts'
import { encodeMembership, hasVoter, votersChanged } from './membership.ts'
import type { MembershipOutcome, MembershipRefusal, ProposeOutcome, ReadOutcome, TransferRefusal } from './outcomes.ts'
import type { Progress, ProgressView } from './progress.ts'
import { reachedByMajority, tally } from './quorum.ts'
import { ReadQueue } from './read-queue.ts'
import { SnapshotReceiver } from './snapshot-receiver.ts'
import type {
  AppendAnswerMessage,
  AppendMessage,
  Entry,
  HardState,
  LogIndex,
  Membership,
  Message,
  NodeId,
  PartialSnapshot,
  Proposal,
  RaftConfig,
  Ready,
  Role,
  Snapshot,
  SnapshotChunkAnswerMessage,
  SnapshotChunkMessage,
  SoftState,
  Term,
  VoteMessage,
} from './types.ts'

export interface RaftCoreOptions {
  readonly id: NodeId
  /** Of this node's disk. It has a vote only where the membership names both. */
  readonly directoryId: Uuid
  readonly config: RaftConfig
  /** As read from the disk; the core owns it from here on. */
  readonly log: RaftLog
  readonly hardState: HardState
  /** The leader's snapshot, as far as it had come before a restart. */
  readonly partialSnapshot?: PartialSnapshot | undefined
  readonly random: Pick<Random, 'int'>
}

/** What one `Ready` gave to the host, until `advance` says that it is done. */
interface InProgress {
  readonly hardState: HardState
  readonly lastEntry: Entry | undefined
  readonly snapshotIndex: LogIndex | undefined
  readonly handedOutIndex: LogIndex
}

const noTerm = 0 as Term
const noIndex = 0 as LogIndex

/** How often one that knows that its leader crashed campaigns in quick succession before it waits its full time again. */
const quickCampaigns = 5
/** In ticks, as a random number is added below it again: spread enough that two who know it at once rarely collide. */
const quickCampaignTicks = 3
/** The votes need a round trip and two synced writes. */
const quickVoteTicks = 4
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
 *  - Who has a vote is what the last 'config' entry of a log says (thesis §4), by id and directory id. Everyone else who asks
 *    is sent the log, is never counted and never campaigns; but it votes when it is asked, since it may have a vote and not
 *    know it yet. A leader that isn't in its own membership goes on until the entry that removed it is committed.
 */
export class RaftCore {
  readonly id: NodeId
  readonly directoryId: Uuid
  readonly #config: RaftConfig
  readonly #log: RaftLog
  readonly #random: Pick<Random, 'int'>

  #term: Term
  #votedFor: NodeId | null
  #votedDirectoryId: Uuid | null
  #role: Role = 'follower'
  #leaderId: NodeId | null = null
  /** Whom to ask for the log besides the voters that are known. */
  #contacts: readonly NodeId[] = []

  /** Ticks since start: the core's only notion of time. */
  #ticks = 0
  /** Follower: since the leader was heard or a vote given. Candidates: since the campaign began. */
  #electionElapsed = 0
  #electionTimeout = 0
  #heartbeatElapsed = 0
  #observersHeartbeatTick = 0
  /** Who is known to have crashed while it led that term; undefined when a leader was heard since. */
  #forgotten: { readonly leader: NodeId; readonly term: Term } | undefined
  #quickCampaignsLeft = 0
  #hintsBelievedFromTick = 0
  /** Answers to the present campaign, the own one included. */
  readonly #votes = new Map<NodeId, boolean>()
  readonly #followers: Followers
  /** Leader only: to whom leadership is being handed. */
  #transfer: { readonly to: NodeId; readonly deadlineTick: number; isAsked: boolean } | undefined
  /** Leader only. */
  readonly #reads = new ReadQueue()
  #lastReadId = 0
  readonly #snapshotReceiver: SnapshotReceiver
  /** Leader only: payload in (commitIndex, lastIndex]. */
  #uncommittedBytes = 0
  /** Leader only: followers are to be told of new entries or a new commit index when the next `Ready` is made. */
  #broadcastPending: boolean = false

  #messages: Message[] = []
  #inProgress: InProgress | undefined
  #durable: HardState
  #toldHardState: HardState
  #toldSoftState: SoftState = { role: 'follower', leaderId: null }
  #toldMembership: Membership

  constructor({ id, directoryId, config, log, hardState, partialSnapshot, random }: RaftCoreOptions) {
    assert(config.electionTicks > config.heartbeatTicks, 'several heartbeats fit in an election timeout')
    this.id = id
    this.directoryId = directoryId
    this.#config = config
    this.#log = log
    this.#random = random
    this.#term = hardState.term
    this.#votedFor = hardState.votedFor
    this.#votedDirectoryId = hardState.votedDirectoryId
    this.#durable = hardState
    this.#toldHardState = hardState
    this.#toldMembership = log.membership
    this.#snapshotReceiver = new SnapshotReceiver(partialSnapshot)
    this.#followers = new Followers({
      id,
      directoryId,
      config,
      log,
      ticks: () => this.#ticks,
      readRound: () => this.#reads.lastRound,
      send: (to, draft) => this.#send(to, draft),
    })
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

  /** Who votes: the last word of the log, committed or not. */
  get membership(): Membership {
    return this.#log.membership
  }

  get hasVote(): boolean {
    return hasVoter(this.#log.membership, this.id, this.directoryId)
  }

  /**
   * One that was removed by an entry that isn't committed must still be able to lead, and to bring it to its end: it may be the
   * only one whose log is long enough (thesis §4.2.2). Its own vote isn't counted.
   */
  get #mayCampaign(): boolean {
    return this.hasVote || hasVoter(this.#log.committedMembership, this.id, this.directoryId)
  }

  /** To whom leadership is being handed; null when it isn't. */
  get transferTarget(): NodeId | null {
    return this.#transfer?.to ?? null
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

  /** Ticks since start. */
  get ticks(): number {
    return this.#ticks
  }

  /** What a leader knows of `node`; undefined in other roles, and of who doesn't follow. To look at, not to change. */
  progressOf(node: NodeId): ProgressView | undefined {
    return this.#followers.get(node)
  }

  /** All of whom a leader knows something, itself included; empty in other roles. */
  get followers(): ReadonlyMap<NodeId, ProgressView> {
    return this.#followers.all
  }

  // ---- time and elections ----

  /** One unit of time passed. */
  tick(): void {
    this.#ticks++
    if (this.#role === 'leader') this.#tickLeader()
    else if (!this.#mayCampaign) this.#tickObserver()
    else if (++this.#electionElapsed >= this.#electionTimeout) this.campaign()
  }

  #tickLeader(): void {
    if (!this.#followers.hasQuorumContact) {
      this.#becomeFollower(this.#term, null)
      return
    }
    if (this.#transfer !== undefined && this.#ticks >= this.#transfer.deadlineTick) this.#transfer = undefined
    this.#followers.sendOverdueChunks()
    if (++this.#heartbeatElapsed < this.#config.heartbeatTicks) return
    this.#heartbeatElapsed = 0
    this.#reads.beginRound(this.#log.commitIndex)
    this.#followers.sendHeartbeats()
    this.#maybeConfirmReads()
    if (this.#ticks - this.#observersHeartbeatTick < this.#config.electionTicks >> 1) return
    this.#observersHeartbeatTick = this.#ticks
    this.#followers.sendObserversHeartbeats()
  }

  /** Without a vote: no campaign, but whoever leads is asked for the log. */
  #tickObserver(): void {
    if (this.#role !== 'follower') this.#becomeFollower(this.#term, null)
    if (++this.#electionElapsed >= this.#electionTimeout) {
      this.#leaderId = null
      this.#resetElectionTimer()
    }
    if (this.#leaderId !== null || this.#ticks % (2 * this.#config.heartbeatTicks) !== 0) return
    const asked = new Set(this.#contacts)
    for (const { id } of this.membership.voters) asked.add(id)
    asked.delete(this.id)
    for (const id of asked) this.#send(id, { type: 'follow', lastIndex: this.#log.lastIndex })
  }

  /** Nodes that a node without a vote asks for the log, besides the voters that it knows of. */
  setContacts(contacts: readonly NodeId[]): void {
    this.#contacts = contacts
  }

  #isVoterId(id: NodeId): boolean {
    return this.membership.voters.some((voter) => voter.id === id)
  }

  /**
   * Starts an election now, as if the timeout had passed. A quorum of one is its own majority: it asks nobody and leads as
   * soon as its vote is durable. No effect on a leader or on who has no vote, nor had one by what is committed.
   */
  campaign(): void {
    if (this.#role === 'leader' || !this.#mayCampaign) return
    this.#role = 'preCandidate'
    this.#leaderId = null
    if (this.#quickCampaignsLeft > 0) this.#quickCampaignsLeft--
    this.#resetElectionTimer()
    this.#votes.clear()
    this.#sendToOthers(this.#preVote())
    this.#countVote(this.id, this.directoryId, true)
  }

  /**
   * `leader` is known to be dead by other means than silence: stop refusing other candidates for its sake, and campaign
   * within a few ticks. No effect when it isn't this node's leader, or when such a hint was wrong lately. It takes a majority
   * that knows the same to unseat one that lives.
   */
  forgetLeader(leader: NodeId): void {
    if (this.#role === 'leader' || this.#leaderId !== leader || this.#ticks < this.#hintsBelievedFromTick) return
    this.#leaderId = null
    this.#forgotten = { leader, term: this.#term }
    this.#quickCampaignsLeft = quickCampaigns
    this.#resetElectionTimer()
  }

  #becomeFollower(term: Term, leaderId: NodeId | null): void {
    assert(term >= this.#term, 'a term never goes back')
    if (term > this.#term) {
      this.#votedFor = null // one vote in a term: Raft §5.2
      this.#votedDirectoryId = null
    }
    this.#term = term
    this.#role = 'follower'
    this.#leaderId = leaderId
    this.#followers.clear()
    this.#votes.clear()
    this.#reads.clear()
    this.#transfer = undefined
    this.#uncommittedBytes = 0
    this.#broadcastPending = false
    this.#resetElectionTimer()
  }

  #becomeCandidate(isTransfer: boolean): void {
    this.#term = (this.#term + 1) as Term
    this.#votedFor = this.id
    this.#votedDirectoryId = this.directoryId
    this.#role = 'candidate'
    this.#leaderId = null
    this.#votes.clear()
    this.#resetElectionTimer()
    this.#sendToOthers(this.#vote(isTransfer))
    // The own vote is counted in `advance`: a crash before the write could otherwise vote twice in this term.
  }

  #preVote(): Draft {
    const { lastIndex, lastTerm } = this.#log
    return { type: 'preVote', term: (this.#term + 1) as Term, lastIndex, lastTerm, isTransfer: false }
  }

  #vote(isTransfer: boolean): Draft {
    const { lastIndex, lastTerm } = this.#log
    return { type: 'vote', lastIndex, lastTerm, isTransfer }
  }

  #becomeLeader(): void {
    assert(this.#role === 'candidate', 'only a candidate is elected')
    this.#role = 'leader'
    this.#leaderId = this.id
    this.#votes.clear()
    this.#forgotten = undefined
    this.#quickCampaignsLeft = 0
    this.#heartbeatElapsed = 0
    this.#observersHeartbeatTick = this.#ticks
    const nextIndex = (this.#log.lastIndex + 1) as LogIndex
    for (const voter of this.membership.voters) {
      this.#followers.add(voter.id, voter.directoryId, nextIndex)
    }
    this.#followers.get(this.id)?.maybeUpdate(this.#log.stableIndex)
    this.#uncommittedBytes = 0
    for (let index = this.#log.commitIndex + 1; index < nextIndex; index++) {
      this.#uncommittedBytes += this.#log.entries(index as LogIndex, index as LogIndex, 0)[0]!.data.length
    }
    // Entries of earlier terms are committed only with one of this term after them.
    this.#appendOwn([{ type: 'noop', data: new Uint8Array(0) }])
  }

  #resetElectionTimer(): void {
    this.#electionElapsed = 0
    const random = this.#random
    if (this.#quickCampaignsLeft === 0) {
      const { electionTicks, campaignTicks } = this.#config
      const ticks = this.#role === 'follower' ? electionTicks : campaignTicks
      this.#electionTimeout = ticks + random.int(ticks)
    } else if (this.#role === 'candidate') {
      this.#electionTimeout = quickVoteTicks + random.int(quickVoteTicks)
    } else {
      this.#electionTimeout = 1 + random.int(quickCampaignTicks)
    }
  }

  #countVote(voter: NodeId, directoryId: Uuid, granted: boolean): void {
    if (!hasVoter(this.membership, voter, directoryId)) return
    if (!this.#votes.has(voter)) this.#votes.set(voter, granted)
    const result = tally(this.#votes.values(), this.membership.voters.length)
    if (result === 'lost') this.#becomeFollower(this.#term, null)
    else if (result === 'won' && this.#role === 'preCandidate') this.#becomeCandidate(false)
    else if (result === 'won' && this.#role === 'candidate') this.#becomeLeader()
  }

  // ---- messages ----

  /** A message from a peer (or a copy, however late). */
  step(message: Message): void {
    if (message.to !== this.id) return // an address that changed hands: another's vote must not be counted here
    if (message.type === 'follow') {
      if (this.#role === 'leader') this.#handleFollow(message.from, message.fromDirectoryId, message.lastIndex)
      else this.#sendLeaderHint(message.from)
      return
    }
    if (message.type === 'leaderHint') {
      if (this.#leaderId === null) this.#send(message.leader.id, { type: 'follow', lastIndex: this.#log.lastIndex })
      return
    }
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
          this.#countVote(message.from, message.fromDirectoryId, message.granted)
        }
        break
      case 'voteAnswer':
        if (this.#role === 'candidate') this.#countVote(message.from, message.fromDirectoryId, message.granted)
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
          this.#snapshotReceiver.dropUpTo(this.#log.commitIndex)
        }
        this.#send(message.from, { type: 'heartbeatAnswer', readRound: message.readRound })
        break
      case 'snapshotChunk':
        this.#heardFromLeader(message.from)
        this.#handleSnapshotChunk(message)
        break
      case 'timeoutNow':
        // One that was removed, or lacks entries (a copy that came late), would only disturb.
        if (this.#role !== 'leader' && this.hasVote && this.#log.has(message.lastIndex, message.lastTerm)) {
          this.#becomeCandidate(true)
        }
        break
      case 'appendAnswer':
        this.#handleAppendAnswer(message)
        break
      case 'heartbeatAnswer':
        this.#handleHeartbeatAnswer(message)
        break
      case 'snapshotChunkAnswer':
        this.#handleSnapshotChunkAnswer(message)
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
        if (this.#isLoyalAgainst(message)) return false
        if (message.type === 'vote') this.#becomeFollower(message.term, null)
        return true
      case 'preVoteAnswer':
        // The term in a grant is the one asked about, which nobody is in yet.
        if (!message.granted) this.#becomeFollower(message.term, null)
        return true
      case 'append':
      case 'heartbeat':
      case 'snapshotChunk':
      case 'timeoutNow':
        this.#becomeFollower(message.term, message.from)
        return true
      default:
        this.#becomeFollower(message.term, null)
        return true
    }
  }

  /** Stickiness. What the leader itself asks, or asked for, is no attack on it. */
  #isLoyalAgainst({ from, fromDirectoryId, isTransfer }: VoteMessage): boolean {
    if (this.#leaderId === null || this.#leaderId === from || isTransfer) return false
    const isLoyal = this.#role === 'leader' || this.#electionElapsed < this.#config.electionTicks
    // One that was removed while it was away, or has a vote by an old log only: from the leader's it learns what it is. Its own
    // may not even name the one who leads by now.
    if (isLoyal && !hasVoter(this.membership, from, fromDirectoryId)) {
      if (this.#role === 'leader') this.#handleFollow(from, fromDirectoryId, undefined)
      else this.#sendLeaderHint(from)
    }
    return isLoyal
  }

  #sendLeaderHint(to: NodeId): void {
    const leader = this.membership.voters.find(({ id }) => id === this.#leaderId)
    if (leader !== undefined && leader.id !== to) this.#send(to, { type: 'leaderHint', leader })
  }

  #answerLowerTerm(message: Message): void {
    if (message.type === 'append' || message.type === 'heartbeat' || message.type === 'snapshotChunk') {
      // Without this a node with a higher term, whose votes the others ignore, would never be let in again: the
      // leader learns the term, steps down, and is elected above it. If it leads that term by now, this says nothing.
      this.#send(message.from, { type: 'heartbeatAnswer', readRound: 0 })
    } else if (message.type === 'preVote') {
      // The reason must be told: a candidate with a longer log but an old term would ask for ever.
      this.#send(message.from, { type: 'preVoteAnswer', granted: false })
    }
  }

  #handleVoteRequest(message: VoteMessage): void {
    const { from, fromDirectoryId } = message
    const isPreVote = message.type === 'preVote'
    const isSameDisk = this.#votedDirectoryId === null || this.#votedDirectoryId === fromDirectoryId
    const mayVote =
      (this.#votedFor === from && isSameDisk) ||
      (this.#votedFor === null && this.#leaderId === null) ||
      (isPreVote && message.term > this.#term)
    const granted = mayVote && this.#log.isUpToDate(message.lastIndex, message.lastTerm)
    if (granted && !isPreVote) {
      this.#electionElapsed = 0 // not for a pre-vote: it would let one node keep all others from campaigning
      this.#votedFor = from
      this.#votedDirectoryId = fromDirectoryId
      // The candidate gets the time that an election takes, also from one that would campaign at once.
      if (this.#quickCampaignsLeft > 0) this.#electionTimeout += 2 * quickVoteTicks
    }
    const term = granted ? message.term : this.#term
    this.#send(from, { type: isPreVote ? 'preVoteAnswer' : 'voteAnswer', term, granted })
  }

  #heardFromLeader(leader: NodeId): void {
    assert(this.#role !== 'leader', 'a term has one leader')
    if (this.#forgotten !== undefined) {
      const wasAlive = this.#forgotten.leader === leader && this.#forgotten.term === this.#term
      if (wasAlive) this.#hintsBelievedFromTick = this.#ticks + this.#config.falseHintTicks
      this.#forgotten = undefined
      this.#quickCampaignsLeft = 0
      this.#resetElectionTimer()
    }
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
      this.#snapshotReceiver.dropUpTo(this.#log.commitIndex)
      this.#send(from, { type: 'appendAnswer', index: verifiedIndex, rejection: null })
      return
    }
    const hint = this.#log.findConflictByTerm(Math.min(prevIndex, this.#log.lastIndex) as LogIndex, prevTerm)
    const rejection = { hintIndex: hint.index, hintTerm: hint.term }
    this.#send(from, { type: 'appendAnswer', index: prevIndex, rejection })
  }

  #handleSnapshotChunk(message: SnapshotChunkMessage): void {
    const { from, header } = message
    const isHere = header.index > this.#log.commitIndex && this.#log.has(header.index, header.term)
    if (isHere) this.#log.commitTo(header.index) // the entries themselves are here: keep them
    if (header.index <= this.#log.commitIndex) {
      this.#snapshotReceiver.dropUpTo(this.#log.commitIndex)
      this.#send(from, { type: 'appendAnswer', index: this.#log.commitIndex, rejection: null })
      return
    }
    const nextOffset = this.#snapshotReceiver.accept(message)
    if (nextOffset !== undefined) {
      this.#send(from, { type: 'snapshotChunkAnswer', index: header.index, nextOffset })
    }
  }

  /**
   * The host put together the chunks of the snapshot at `index`; undefined when they don't make what its header says, and it
   * is asked for anew. No effect when it isn't wanted any more: another came, or the entries did.
   */
  snapshotAssembled(index: LogIndex, snapshot: Snapshot | undefined): void {
    if (!this.#snapshotReceiver.isComplete(index)) return
    this.#snapshotReceiver.drop()
    if (snapshot === undefined || index <= this.#log.commitIndex) return
    if (this.#log.has(index, snapshot.term)) this.#log.commitTo(index)
    else this.#log.restore(snapshot)
    if (this.#role === 'follower' && this.#leaderId !== null) {
      this.#send(this.#leaderId, { type: 'appendAnswer', index, rejection: null })
    }
  }

  // ---- leader ----

  /** Appends to the leader's log. The entries' bytes belong to the log from here on. */
  propose(proposals: readonly Proposal[]): ProposeOutcome {
    if (this.#role !== 'leader') return { ok: false, reason: 'not-leader' }
    if (this.#transfer !== undefined) return { ok: false, reason: 'busy' }
    let bytes = 0
    for (const { data } of proposals) bytes += data.length
    if (this.#uncommittedBytes > 0 && this.#uncommittedBytes + bytes > this.#config.maxUncommittedBytes) {
      return { ok: false, reason: 'busy' }
    }
    this.#appendOwn(proposals)
    return { ok: true, lastIndex: this.#log.lastIndex, term: this.#term }
  }

  #appendOwn(proposals: readonly Pick<Entry, 'type' | 'data'>[]): void {
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
    if (!this.#log.maybeCommit(reachedByMajority(this.#followers.matchIndexes), this.#term)) return
    for (let index = before + 1; index <= this.#log.commitIndex; index++) {
      this.#uncommittedBytes -= this.#log.entries(index as LogIndex, index as LogIndex, 0)[0]!.data.length
    }
    this.#broadcastPending = true
  }

  get #hasCommittedInTerm(): boolean {
    return this.#log.has(this.#log.commitIndex, this.#term)
  }

  // ---- membership ----

  /**
   * Makes `next`, which differs by one voter at most, who votes from now on. It counts as soon as it is in the log, here and
   * wherever the entry comes, and is taken back where the entry is; `index` says when it is committed.
   */
  changeMembership(next: Membership): MembershipOutcome {
    const refusal = this.#whyNotChangeTo(next)
    if (refusal !== undefined) return { ok: false, reason: refusal }
    this.#appendMembership(next)
    return { ok: true, index: this.#log.lastIndex, term: this.#term }
  }

  #whyNotChangeTo(next: Membership): MembershipRefusal | undefined {
    if (this.#role !== 'leader') return 'not-leader'
    if (next.voters.length === 0) return 'last-voter'
    if (new Set(next.voters.map(({ id }) => id)).size < next.voters.length) return 'duplicate-voter'
    if (votersChanged(this.membership, next) > 1) return 'too-many'
    if (this.#transfer !== undefined) return 'transferring'
    // Single-server changes are safe only from here on: Ongaro's correction of 2015 to thesis §4.1.
    if (!this.#hasCommittedInTerm) return 'not-ready'
    if (this.#log.membershipIndex > this.#log.commitIndex) return 'in-flight'
    for (const voter of next.voters) {
      if (hasVoter(this.membership, voter.id, voter.directoryId)) continue
      if (!this.#followers.isSelf(voter) && !this.#canHelp(this.#followers.ofVoter(voter))) return 'not-caught-up'
    }
    return undefined
  }

  /** Whether it can take part in the next commit, rather than hold it up. */
  #canHelp(progress: Progress | undefined): boolean {
    return progress !== undefined && progress.state === 'replicate' && this.#followers.isHeard(progress)
  }

  #appendMembership(membership: Membership): void {
    this.#appendOwn([{ type: 'config', data: encodeMembership(membership) }])
    for (const voter of membership.voters) {
      if (this.#followers.ofVoter(voter) !== undefined) continue
      this.#followers.add(voter.id, voter.directoryId, (this.#log.lastIndex + 1) as LogIndex)
    }
    this.#maybeCommit() // fewer voters may need fewer copies of what is there already
  }

  /** From now on `id` is sent the log; this is how a voter to be is brought up to date. No effect when it is already, or on a follower. */
  admit(id: NodeId, directoryId: Uuid): void {
    if (this.#role === 'leader') this.#admit(id, directoryId)
  }

  /** Someone who speaks as `id` with that disk. With another disk than before it is somebody new. */
  #admit(id: NodeId, directoryId: Uuid): Progress | undefined {
    const known = this.#followers.get(id)
    if (known?.directoryId === directoryId) return known
    if (id === this.id) return undefined
    const observerCount = this.#followers.all.size - this.membership.voters.length
    if (known === undefined && observerCount >= this.#config.maxObservers) return undefined
    const progress = this.#followers.add(id, directoryId, (this.#log.lastIndex + 1) as LogIndex)
    // One that reads the log from its start must find in it who votes; the first voters were agreed on outside of it.
    const isSettled = this.#log.membershipIndex <= this.#log.commitIndex && this.#transfer === undefined
    if (!this.#log.tellsMembership && isSettled) this.#appendMembership(this.membership)
    return progress
  }

  #handleFollow(from: NodeId, fromDirectoryId: Uuid, lastIndex: LogIndex | undefined): void {
    const isNew = this.#followers.get(from)?.directoryId !== fromDirectoryId
    const progress = this.#admit(from, fromDirectoryId)
    if (progress === undefined) return
    progress.lastContactTick = this.#ticks
    if (isNew && lastIndex !== undefined && lastIndex < progress.nextIndex - 1) {
      progress.nextIndex = (lastIndex + 1) as LogIndex
    }
    this.#followers.sendHeartbeat(from, progress) // it learns who leads; its answer begins the copying
  }

  // ---- leadership transfer ----

  /**
   * Hands leadership to the voter `to` as soon as it has the whole log, which proposals are refused for; given up after
   * an election timeout. `undefined`: it is under way, and this node isn't leader any more when it succeeds.
   */
  transferLeadership(to: NodeId): TransferRefusal | undefined {
    if (this.#role !== 'leader') return 'not-leader'
    const voter = this.membership.voters.find(({ id }) => id === to)
    if (voter === undefined || to === this.id) return 'not-voter'
    const progress = this.#followers.ofVoter(voter)
    if (progress === undefined || !this.#followers.isHeard(progress) || progress.state === 'snapshot') return 'lagging'
    if (this.#transfer !== undefined) return this.#transfer.to === to ? undefined : 'busy'
    this.#transfer = { to, deadlineTick: this.#ticks + this.#config.electionTicks, isAsked: false }
    this.#maybeAskToTakeOver(progress)
    return undefined
  }

  #maybeAskToTakeOver(progress: Progress): void {
    const transfer = this.#transfer
    if (transfer === undefined || transfer.isAsked || progress.matchIndex < this.#log.lastIndex) return
    transfer.isAsked = true
    const { lastIndex, lastTerm } = this.#log
    this.#send(transfer.to, { type: 'timeoutNow', lastIndex, lastTerm })
  }

  /** The voter to hand over to: heard, and with most of the log. Undefined when there is none, or no leadership. */
  get bestSuccessor(): NodeId | undefined {
    return this.#role === 'leader' ? this.#followers.bestSuccessor : undefined
  }

  /**
   * What a leader that stops tells its best successor, so that nobody waits for a timeout; undefined when there is none. To be
   * sent whatever state the node is in: it claims nothing.
   */
  farewell(): Message | undefined {
    const to = this.bestSuccessor
    const lastIndex = to === undefined ? noIndex : this.#followers.get(to)!.matchIndex
    const lastTerm = this.#log.term(lastIndex)
    if (to === undefined || typeof lastTerm !== 'number') return undefined
    const { id: from, directoryId: fromDirectoryId } = this
    return { type: 'timeoutNow', from, fromDirectoryId, to, term: this.#term, lastIndex, lastTerm }
  }

  /** Removed, and all may know: the last thing it does as leader is to say so and name who should follow. */
  #stepAside(): void {
    this.#followers.sendHeartbeatToAll()
    const farewell = this.farewell()
    if (farewell !== undefined) this.#messages.push(farewell)
    this.#becomeFollower(this.#term, null)
  }

  // ---- reads ----

  /** Asks what must be applied before a read that begins now is answered; a round of heartbeats, no write. */
  readIndex(): ReadOutcome {
    if (this.#role !== 'leader') return { ok: false, reason: 'not-leader' }
    if (!this.#hasCommittedInTerm) return { ok: false, reason: 'not-ready' }
    if (this.#reads.length >= this.#config.maxPendingReads) return { ok: false, reason: 'busy' }
    const id = ++this.#lastReadId
    this.#reads.add(id)
    return { ok: true, id }
  }

  #maybeBeginReadRound(): void {
    if (!this.#reads.isWaiting || this.#reads.isRoundUnderWay) return
    this.#reads.beginRound(this.#log.commitIndex)
    this.#followers.sendHeartbeats()
    this.#maybeConfirmReads()
  }

  #maybeConfirmReads(): void {
    if (!this.#reads.isRoundUnderWay) return
    const rounds = this.membership.voters.map((voter) => {
      return this.#followers.isSelf(voter) ? this.#reads.lastRound : (this.#followers.ofVoter(voter)?.readRound ?? 0)
    })
    this.#reads.confirm(reachedByMajority(rounds))
  }

  // ---- followers' answers ----

  #handleAppendAnswer(message: AppendAnswerMessage): void {
    const progress = this.#progressOfSender(message)
    if (progress === undefined) return
    if (message.rejection !== null) {
      this.#followers.onRejected(message, progress)
      return
    }
    if (!this.#followers.onAccepted(message, progress)) return
    this.#maybeCommit()
    this.#followers.sendAppends(message.from, progress)
    if (this.#transfer?.to === message.from) this.#maybeAskToTakeOver(progress)
  }

  /** Undefined when this node doesn't lead, or doesn't know the sender. Notes that it was heard. */
  #progressOfSender({ from, fromDirectoryId }: Message): Progress | undefined {
    if (!this.#followers.all.has(from) || from === this.id) return undefined
    const progress = this.#admit(from, fromDirectoryId)
    if (progress !== undefined) progress.lastContactTick = this.#ticks
    return progress
  }

  #handleHeartbeatAnswer(message: Message & { type: 'heartbeatAnswer' }): void {
    const progress = this.#progressOfSender(message)
    if (progress === undefined) return
    progress.isPaused = false
    if (message.readRound > progress.readRound) {
      progress.readRound = message.readRound
      this.#maybeConfirmReads()
    }
    this.#followers.onHeartbeatAnswered(message.from, progress)
  }

  #handleSnapshotChunkAnswer(message: SnapshotChunkAnswerMessage): void {
    const progress = this.#progressOfSender(message)
    if (progress !== undefined) this.#followers.onChunkAnswered(message, progress)
  }

  /** The transport knows that what was sent to `follower` did not arrive. */
  reportUnreachable(follower: NodeId): void {
    this.#followers.reportUnreachable(follower)
  }

  /**
   * The transport has a way to `voter` that it lacked. What a candidate asked it is lost, and is asked again: where most were away the
   * first that comes back decides the election at once, not with the next campaign.
   */
  reportReachable(voter: NodeId): void {
    if (this.#votes.has(voter) || !this.#isVoterId(voter)) return
    if (this.#role === 'preCandidate') this.#send(voter, this.#preVote())
    else if (this.#role === 'candidate') this.#send(voter, this.#vote(false))
  }

  /** The transport knows that a chunk of a snapshot for `follower` did not arrive. */
  reportSnapshotFailed(follower: NodeId): void {
    this.#followers.reportSnapshotFailed(follower)
  }

  // ---- output ----

  #send(to: NodeId, draft: Draft): void {
    const { id: from, directoryId: fromDirectoryId } = this
    this.#messages.push({ term: this.#term, ...draft, from, fromDirectoryId, to } as Message)
  }

  #sendToOthers(draft: Draft): void {
    for (const { id } of this.membership.voters) {
      if (id !== this.id) this.#send(id, draft)
    }
  }

  /** What is to be done now; undefined when nothing. One at a time: `advance` comes before the next. */
  ready(): Ready | undefined {
    assert(this.#inProgress === undefined, 'advance() follows each ready()')
    if (this.#broadcastPending) {
      // Not at each proposal: those of one turn leave in one message.
      this.#broadcastPending = false
      this.#followers.broadcast()
    }
    this.#maybeBeginReadRound()
    const log = this.#log
    const hardState: HardState = {
      term: this.#term,
      votedFor: this.#votedFor,
      votedDirectoryId: this.#votedDirectoryId,
      commitIndex: log.commitIndex,
    }
    const told = this.#toldHardState
    const isVoteChanged = hardState.term !== told.term || hardState.votedFor !== told.votedFor
    const isHardStateChanged = isVoteChanged || hardState.commitIndex !== told.commitIndex
    const isSoftStateChanged =
      this.#role !== this.#toldSoftState.role || this.#leaderId !== this.#toldSoftState.leaderId
    const isMembershipChanged = log.membership !== this.#toldMembership
    const snapshot = log.incomingSnapshot
    const entriesToPersist = log.unstableEntries
    if (
      this.#messages.length === 0 &&
      entriesToPersist.length === 0 &&
      !isHardStateChanged &&
      !isSoftStateChanged &&
      !isMembershipChanged &&
      snapshot === undefined &&
      !this.#snapshotReceiver.hasChunks &&
      !this.#reads.hasConfirmed &&
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
    this.#toldMembership = log.membership
    const messages = this.#messages
    this.#messages = []
    return {
      messages,
      // A leader's term and vote were durable before it was elected.
      sendsFirst: this.#role === 'leader' && !isVoteChanged && snapshot === undefined,
      entriesToPersist: entriesToPersist.slice(),
      hardState: isHardStateChanged ? hardState : undefined,
      snapshot,
      snapshotChunks: this.#snapshotReceiver.takeChunks(),
      committedEntries,
      softState: isSoftStateChanged ? softState : undefined,
      membership: isMembershipChanged ? log.membership : undefined,
      reads: this.#reads.takeConfirmed(),
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
      if (this.#followers.get(this.id)?.maybeUpdate(this.#log.stableIndex)) this.#maybeCommit()
      // Not before it is applied too, so that whoever waits for the change hears of it.
      if (!this.hasVote && this.#log.appliedIndex >= this.#log.membershipIndex) this.#stepAside()
    } else if (this.#role === 'candidate' && this.#durable.term === this.#term) {
      this.#countVote(this.id, this.directoryId, true)
    }
  }
}
