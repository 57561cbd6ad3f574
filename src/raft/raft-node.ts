import { assert, type Deferred, deferred, messageOf, type Uuid } from '../base/index.ts'
import { type Clock, nextTurn, type Random, type Timer, type Timers } from '../platform/index.ts'
import { RaftLog } from './core/log.ts'
import { hasVoter } from './core/membership.ts'
import type { TransferRefusal } from './core/outcomes.ts'
import type { ProgressView } from './core/progress.ts'
import { RaftCore } from './core/raft.ts'
import {
  type ConfirmedRead,
  defaultRaftConfig,
  type Entry,
  type LogIndex,
  type Membership,
  type Message,
  type NodeId,
  type RaftConfig,
  type Ready,
  type Role,
  type Snapshot,
  type Term,
  type Voter,
} from './core/types.ts'
import { RaftStorageError } from './storage/errors.ts'
import type { RaftStorage } from './storage/raft-storage.ts'
import type { RaftTransport } from './transport.ts'
import { type MembershipResult, VoterChange } from './voter-change.ts'

export interface RaftNodeOptions {
  readonly id: NodeId
  /** Of the folder that holds the Raft log (`meta.properties`); a wiped one gets a new id, and with it no vote (KIP-853). */
  readonly directoryId: Uuid
  /** Open; closed by `stop`. */
  readonly storage: RaftStorage
  /** Undefined only for the one voter of its quorum, which then can't get a second. */
  readonly transport: RaftTransport | undefined
  readonly platform: { readonly clock: Clock; readonly timers: Timers; readonly random: Random }
  readonly logger: RaftLogger
  /** Length of a tick; 50 unless given. */
  readonly tickMs?: number
  readonly config?: Partial<RaftConfig>
  /** Entries kept below a snapshot for followers that are a little behind; unless given 10,000, or 0 where nobody follows. */
  readonly keptEntries?: number
  /** See `setContacts`. */
  readonly contacts?: readonly NodeId[]
}

/** What of pino's logger is used. */
export interface RaftLogger {
  info(fields: object, message: string): void
  error(fields: object, message: string): void
}

export interface RaftState {
  readonly role: Role
  readonly term: Term
  readonly leaderId: NodeId | null
  readonly commitIndex: LogIndex
  /** Last entry handed to the `onCommitted` listeners, or in the snapshot that they got. */
  readonly appliedIndex: LogIndex
  readonly lastIndex: LogIndex
  /** Who votes: the last word of the log, committed or not. */
  readonly membership: Membership
  /** Whether this node, with its disk, is one of them. */
  readonly hasVote: boolean
}

/** One member as the leader sees it. */
export interface MemberState {
  readonly id: NodeId
  readonly directoryId: Uuid
  readonly endpoint?: string
  /** Last entry that it is known to have, durably. */
  readonly matchIndex: LogIndex
  /**
   * How long ago it was heard (counted from the election for one that never was), and had all that the leader had. 0 for the
   * leader itself; null: not in this term.
   */
  readonly lastContactMs: number | null
  readonly lastCaughtUpMs: number | null
}

/** For DescribeQuorum. */
export interface QuorumDescription {
  readonly leaderId: NodeId
  readonly term: Term
  readonly commitIndex: LogIndex
  readonly lastIndex: LogIndex
  readonly voters: readonly MemberState[]
  /** Who follows without a vote: brokers, voters to be, voters with another disk than the one that has the vote. */
  readonly observers: readonly MemberState[]
}

export type ReadResult =
  /** What was committed when the read began, up to `index`, has been delivered. */
  | { readonly ok: true; readonly index: LogIndex }
  /** 'not-ready': elected so lately that it doesn't know yet what is committed. 'busy': too many wait. */
  | { readonly ok: false; readonly reason: 'not-leader' | 'not-ready' | 'busy' | 'leadership-lost' | 'stopped' }

export type TransferResult =
  | { readonly ok: true }
  /**
   * 'no-successor': no other voter is heard. 'timeout': this node leads on, or nobody is known to lead. 'other-leader':
   * another one than was meant leads now.
   */
  | { readonly ok: false; readonly reason: TransferRefusal | 'no-successor' | 'timeout' | 'other-leader' | 'stopped' }

export type ProposeRefusal = {
  readonly ok: false
  /**
   * 'not-leader', 'busy' (too much waits for its commit, or leadership is being handed over) and 'stopped' before it was appended: it will not happen.
   * 'leadership-lost', or 'stopped' after it was appended: it may or may not be committed, by the next leader.
   */
  readonly reason: 'not-leader' | 'busy' | 'leadership-lost' | 'stopped'
}

export type ProposeResult = { readonly ok: true; readonly index: LogIndex; readonly term: Term } | ProposeRefusal

export type ProposeNowResult =
  | {
      readonly ok: true
      /** Where the entry is in the leader's log; it is not committed, nor durable, yet. */
      readonly index: LogIndex
      readonly term: Term
      readonly committed: Promise<ProposeResult>
    }
  | ProposeRefusal

export interface Leadership {
  readonly isLeader: boolean
  readonly term: Term
}

/** Entries delivered in one go before the event loop gets a turn. */
const entriesPerTurn = 2000
/** What arrives beyond it while a write is under way is dropped, as the network may. */
const maxInboxMessages = 10_000
const maxInboxBytes = 64 << 20
/** In election timeouts: for a change of voters to be caught up and committed, unless a time is given. */
const changeTimeouts = 30
/** In election timeouts: until somebody must lead after leadership was handed over. */
const handoverTimeouts = 3

/**
 * One Raft member that runs: the core, its storage, a transport and a clock. Everything happens in one loop on the event loop:
 * messages and the tick in, `Ready` out, persisted, sent, delivered. While a write is under way proposals and messages
 * gather; the next write takes them all.
 *
 * Set the listeners before `start`; they are called synchronously, in order, never while another runs.
 * A listener that throws, an assertion and a failed write are faults: the node stops for good.
 */
export class RaftNode {
  readonly #core: RaftCore
  readonly #config: RaftConfig
  readonly #storage: RaftStorage
  readonly #transport: RaftTransport | undefined
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #logger: RaftLogger
  readonly #tickMs: number
  readonly #keptEntries: number | undefined

  readonly #committedListeners: ((entries: readonly Entry[]) => void)[] = []
  readonly #leadershipListeners: ((leadership: Leadership) => void)[] = []
  readonly #snapshotListeners: ((snapshot: Snapshot) => void)[] = []
  readonly #faultListeners: ((error: unknown) => void)[] = []
  readonly #membershipListeners: ((membership: Membership) => void)[] = []
  readonly #leaderListeners: ((leaderId: NodeId | null) => void)[] = []
  readonly #fullDiskListeners: (() => void)[] = []

  /** What came in and waits for the loop: messages, and reports of the transport. */
  #inbox: (() => void)[] = []
  #inboxBytes = 0
  #isTickDue: boolean = false
  #mayWaitForRoom: boolean = false
  #isRunning: boolean = false
  /** The present run of the loop, or the last one. */
  #loop: Promise<void> | undefined
  #lifecycle: 'new' | 'running' | 'stopped' | 'faulted' = 'new'
  #stopped: Promise<void> | undefined
  #appliedIndex: LogIndex
  /** The term in which listeners believe that this node leads. */
  #announcedTerm: Term | null = null
  readonly #waiting = new Map<LogIndex, { readonly term: Term; readonly result: Deferred<ProposeResult> }>()
  /** Not confirmed yet, by the core's id. */
  readonly #reads = new Map<number, Deferred<ReadResult>>()
  /** Confirmed; wait until what they must see is delivered. In order of index. */
  #confirmedReads: { readonly index: LogIndex; readonly result: Deferred<ReadResult> }[] = []
  #voterChange: VoterChange | undefined
  #handover:
    | { readonly to: NodeId; readonly deadlineTick: number; readonly result: Deferred<TransferResult> }
    | undefined

  #tickTimer: Timer | undefined
  #ticksOrigin = 0
  #ticksCounted = 0

  /** Throws `RaftStorageError` when there is no transport, and this node isn't the only voter. */
  constructor(options: RaftNodeOptions) {
    const { id, storage, transport, platform, tickMs = 50 } = options
    this.#storage = storage
    this.#transport = transport
    this.#clock = platform.clock
    this.#timers = platform.timers
    this.#logger = options.logger
    this.#tickMs = tickMs
    const { log, hardState, partialSnapshot } = storage
    this.#config = { ...defaultRaftConfig, ...options.config }
    this.#core = new RaftCore({
      id,
      directoryId: options.directoryId,
      config: this.#config,
      log: new RaftLog(log, hardState.commitIndex),
      hardState,
      partialSnapshot,
      random: platform.random,
    })
    this.#core.setContacts(options.contacts ?? [])
    this.#appliedIndex = log.snapshot.index
    this.#keptEntries = options.keptEntries
    storage.onFailure((error) => this.#fault(error))
    storage.setFullDiskPolicy({
      mayWait: () => this.#lifecycle === 'running' && this.#mayWaitForRoom && this.#isOnlyVoter,
      onFull: (error) => {
        this.#logger.error({ reason: messageOf(error) }, 'disk of the metadata log is full, waiting for room')
        this.#tell(this.#fullDiskListeners, undefined)
      },
      onRoom: () => this.#logger.info({}, 'disk of the metadata log has room again'),
    })
    if (transport === undefined && !this.#isOnlyVoter) throw notAlone(id, options.directoryId, this.#core.membership)
  }

  get #isOnlyVoter(): boolean {
    return this.#core.membership.voters.length === 1 && this.#core.hasVote
  }

  get state(): RaftState {
    const { role, term, leaderId, commitIndex, lastIndex, membership, hasVote } = this.#core
    const isUp = this.#lifecycle === 'running'
    return {
      role: isUp ? role : 'follower',
      term,
      leaderId: isUp ? leaderId : null,
      commitIndex,
      appliedIndex: this.#appliedIndex,
      lastIndex,
      membership,
      hasVote,
    }
  }

  /** What the leader knows of every member; undefined on another node. */
  describe(): QuorumDescription | undefined {
    const { role, term, commitIndex, lastIndex, membership, followers, id } = this.#core
    if (this.#lifecycle !== 'running' || role !== 'leader') return undefined
    const stateOf = (id: NodeId, progress: ProgressView | undefined, voter?: Voter): MemberState => {
      const { endpoint, directoryId } = voter ?? { directoryId: progress!.directoryId, endpoint: undefined }
      const state = {
        id,
        directoryId,
        matchIndex: progress?.matchIndex ?? (0 as LogIndex),
        lastContactMs: this.#msSince(progress?.lastContactTick),
        lastCaughtUpMs: this.#msSince(progress?.lastCaughtUpTick),
      }
      const known = endpoint === undefined ? state : { ...state, endpoint }
      return id === this.#core.id ? { ...known, lastContactMs: 0, lastCaughtUpMs: 0 } : known
    }
    const voters = membership.voters.map((voter) => {
      const progress = followers.get(voter.id)
      return stateOf(voter.id, progress?.directoryId === voter.directoryId ? progress : undefined, voter)
    })
    const observers = [...followers]
      .filter(([follower, { directoryId }]) => !hasVoter(membership, follower, directoryId))
      .map(([follower, progress]) => stateOf(follower, progress))
    return { leaderId: id, term, commitIndex, lastIndex, voters, observers }
  }

  #msSince(tick: number | undefined): number | null {
    return tick === undefined || tick === 0 ? null : (this.#core.ticks - tick) * this.#tickMs
  }

  /**
   * Committed entries, in order, each once between `start` and `stop`; after a restart again from the snapshot on. Entries
   * of type 'noop' are among them. Their data must not be changed.
   */
  onCommitted(listener: (entries: readonly Entry[]) => void): void {
    this.#committedListeners.push(listener)
  }

  /**
   * `isLeader: true` comes after every entry of earlier terms was delivered: what the listener knows is then complete and it
   * may decide. `isLeader: false` follows each, before another `true`.
   */
  onLeadership(listener: (leadership: Leadership) => void): void {
    this.#leadershipListeners.push(listener)
  }

  /** Another node leads, as far as this one knows; null: it knows of none. */
  onLeaderChange(listener: (leaderId: NodeId | null) => void): void {
    this.#leaderListeners.push(listener)
  }

  /** Replaces all that was delivered before: at start, and when the leader sends one. Not called for the bootstrap's empty one. */
  onSnapshot(listener: (snapshot: Snapshot) => void): void {
    this.#snapshotListeners.push(listener)
  }

  /** Who votes has changed, in the log; see `RaftState.membership`. Called at `start` too. */
  onMembership(listener: (membership: Membership) => void): void {
    this.#membershipListeners.push(listener)
  }

  /** From now on a full disk is waited for, where this node leads alone. Until then, as while it starts, that is a fault. */
  waitForRoom(): void {
    this.#mayWaitForRoom = true
  }

  /**
   * The disk is full, and this node waits for room: proposals and reads are answered when there is some. Only a node that leads alone
   * waits. Any other ends, as by any fault: while it stands still as a leader nobody decides, and as a follower it knows
   * less and less while its broker serves.
   */
  onFullDisk(listener: () => void): void {
    this.#fullDiskListeners.push(listener)
  }

  get waitsForRoom(): boolean {
    return this.#storage.waitsForRoom
  }

  /** The node can't go on, and what it promised stands only if its process ends now. Called once, last. */
  onFault(listener: (error: unknown) => void): void {
    this.#faultListeners.push(listener)
  }

  /**
   * Resolves when what is known to be committed was delivered; the only voter of its quorum leads by then. Throws when the node
   * faulted meanwhile.
   */
  async start(): Promise<void> {
    assert(this.#lifecycle === 'new', 'a Raft node is started once')
    this.#lifecycle = 'running'
    const { snapshot } = this.#storage.log
    let fault: unknown
    this.onFault((error) => {
      fault = error
    })
    this.#guard(() => {
      if (snapshot.index > 0) this.#tell(this.#snapshotListeners, snapshot)
      this.#transport?.start({
        onMessage: (message) => this.#enqueueMessage(message),
        onUnreachable: (node) => this.#enqueue(() => this.#core.reportUnreachable(node)),
        onReachable: (node) => this.#enqueue(() => this.#core.reportReachable(node)),
        onSnapshotFailed: (node) => this.#enqueue(() => this.#core.reportSnapshotFailed(node)),
        onCrashed: (node) => this.forgetLeader(node),
      })
      this.#onMembershipChange(this.#core.membership)
      this.#ticksOrigin = this.#clock.monotonic()
      this.#scheduleTick()
      if (this.#isOnlyVoter) this.#core.campaign() // nobody to wait for
    })
    this.#wake()
    await this.#loop
    if (fault !== undefined) throw fault
  }

  /**
   * Resolves when nothing runs any more and the storage is closed. Proposals that wait end in 'stopped', snapshots that wait for room
   * fail. Once more: no effect.
   */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    if (this.#lifecycle !== 'faulted') this.#end('stopped')
    this.#storage.stopWaiting()
    await this.#loop
    await this.#storage.close()
  }

  /** Resolves when `data`, not to be changed any more, is committed, or when it is known that this node can't tell. */
  async propose(data: Uint8Array): Promise<ProposeResult> {
    const proposed = this.proposeNow(data)
    return proposed.ok ? await proposed.committed : proposed
  }

  /** Appends at once to the leader's log; for who decides on top of what it proposed. */
  proposeNow(data: Uint8Array): ProposeNowResult {
    if (this.#lifecycle !== 'running') return { ok: false, reason: 'stopped' }
    const outcome = this.#core.propose([{ type: 'data', data }])
    if (!outcome.ok) return outcome
    const { lastIndex: index, term } = outcome
    const result = deferred<ProposeResult>()
    this.#waiting.set(index, { term, result })
    this.#wake()
    return { ok: true, index, term, committed: result.promise }
  }

  /**
   * `data` is the state after the entry at `index`, which was delivered; the log drops what is in it but for the last entries.
   * Resolves when it is durable. `data` must not change afterwards.
   */
  async takeSnapshot(index: LogIndex, data: Uint8Array): Promise<void> {
    assert(index <= this.#appliedIndex, 'a snapshot is of what was delivered')
    try {
      const isFollowed = !this.#isOnlyVoter || this.#core.followers.size > 1
      await this.#storage.saveSnapshot(index, data, this.#keptEntries ?? (isFollowed ? 10_000 : 0))
    } catch (error) {
      this.#fault(error)
      throw error
    }
    this.#logger.info({ index, bytes: data.length }, 'raft snapshot taken')
  }

  /**
   * The process of `leader` is known, by other means than silence, to be dead. When it leads, this node campaigns within
   * some ticks and doesn't refuse others for its sake. See `RaftReceiver.onCrashed`, which does the same.
   */
  forgetLeader(leader: NodeId): void {
    this.#enqueue(() => {
      this.#core.reportUnreachable(leader)
      this.#core.forgetLeader(leader)
    })
  }

  /** Stands for election now, for who knows that there is no leader. No effect while it leads, or has no vote. */
  campaign(): void {
    this.#enqueue(() => this.#core.campaign())
  }

  /** Nodes to ask for the log as long as this one has no vote and hears no leader, besides the voters that it knows of. */
  setContacts(contacts: readonly NodeId[]): void {
    this.#core.setContacts(contacts)
  }

  /**
   * Resolves when all that was committed when it was called (by any leader) has been delivered here, and a majority has
   * confirmed that no other leader could have committed more: what is read then is not old. Costs a round trip, no write;
   * reads of one moment share it. Only on the leader.
   */
  async readIndex(): Promise<ReadResult> {
    if (this.#lifecycle !== 'running') return { ok: false, reason: 'stopped' }
    const outcome = this.#core.readIndex()
    if (!outcome.ok) return outcome
    const result = deferred<ReadResult>()
    this.#reads.set(outcome.id, result)
    this.#wake()
    return await result.promise
  }

  /**
   * Hands leadership to the voter `to`, or to the one that is best prepared. Until that is done, or given up after an election
   * timeout, proposals are refused as 'busy'. Resolves when `to` is known to lead, or it is known that it didn't work.
   */
  async transferLeadership(to?: NodeId): Promise<TransferResult> {
    if (this.#lifecycle !== 'running') return { ok: false, reason: 'stopped' }
    if (this.#core.role !== 'leader') return { ok: false, reason: 'not-leader' }
    const target = to ?? this.#core.bestSuccessor
    if (target === undefined) return { ok: false, reason: 'no-successor' }
    const refusal = this.#core.transferLeadership(target)
    if (refusal !== undefined) return { ok: false, reason: refusal }
    const deadlineTick = this.#core.ticks + handoverTimeouts * this.#config.electionTicks
    if (this.#handover?.to !== target) {
      this.#handover?.result.resolve({ ok: false, reason: 'timeout' }) // it was given up in this turn
      this.#handover = { to: target, deadlineTick, result: deferred<TransferResult>() }
    }
    this.#wake()
    return await this.#handover.result.promise
  }

  /**
   * Makes `voter` one of those who vote: brings it up to date first (it runs already, with that directory id, formatted to
   * follow or as an observer), then changes the membership, which is committed when this resolves. One change of voters at
   * a time. `timeoutMs` is in steps of a tick; after it nothing is done if nothing was appended.
   */
  addVoter(voter: Voter, options: { readonly timeoutMs?: number } = {}): Promise<MembershipResult> {
    return this.#changeVoters(
      options,
      (membership) => {
        if (membership.voters.some(({ id }) => id === voter.id)) return 'duplicate-voter'
        return { voters: [...membership.voters, voter] }
      },
      voter,
    )
  }

  /**
   * Takes the vote of (`id`, `directoryId`), which may follow on without. A leader that removes itself steps down when that is
   * committed, and names a successor.
   */
  removeVoter(
    { id, directoryId }: Pick<Voter, 'id' | 'directoryId'>,
    options: { readonly timeoutMs?: number } = {},
  ): Promise<MembershipResult> {
    return this.#changeVoters(options, (membership) => {
      if (!hasVoter(membership, id, directoryId)) return 'voter-not-found'
      return { voters: membership.voters.filter((voter) => voter.id !== id) }
    })
  }

  /** Changes the endpoint of a voter. */
  updateVoter(voter: Voter, options: { readonly timeoutMs?: number } = {}): Promise<MembershipResult> {
    return this.#changeVoters(options, (membership) => {
      if (!hasVoter(membership, voter.id, voter.directoryId)) return 'voter-not-found'
      return { voters: membership.voters.map((known) => (known.id === voter.id ? voter : known)) }
    })
  }

  async #changeVoters(
    { timeoutMs = changeTimeouts * this.#config.electionTicks * this.#tickMs }: { readonly timeoutMs?: number },
    next: (membership: Membership) => Membership | 'duplicate-voter' | 'voter-not-found',
    joining?: Voter,
  ): Promise<MembershipResult> {
    if (this.#lifecycle !== 'running') return { ok: false, reason: 'stopped' }
    if (this.#core.role !== 'leader') return { ok: false, reason: 'not-leader' }
    if (this.#voterChange !== undefined) return { ok: false, reason: 'busy' }
    if (this.#transport === undefined) return { ok: false, reason: 'no-transport' }
    const deadlineTick = this.#core.ticks + Math.ceil(timeoutMs / this.#tickMs)
    const change = new VoterChange(this.#core, this.#config.electionTicks, deadlineTick, next, joining)
    this.#voterChange = change
    this.#wake()
    return await change.result
  }

  // ---- the loop ----

  #enqueue(work: () => void): void {
    if (this.#lifecycle !== 'running') return
    this.#inbox.push(work)
    this.#wake()
  }

  #enqueueMessage(message: Message): void {
    const bytes = payloadOf(message)
    if (this.#inbox.length >= maxInboxMessages || this.#inboxBytes + bytes > maxInboxBytes) return
    this.#inboxBytes += bytes
    if (message.type === 'leaderHint') this.#transport?.learn(message.leader)
    this.#enqueue(() => this.#core.step(message))
  }

  #wake(): void {
    if (this.#lifecycle !== 'running' || this.#isRunning) return
    this.#isRunning = true
    this.#loop = this.#run()
  }

  async #run(): Promise<void> {
    await undefined // what this turn of the event loop brings goes in together
    let delivered = 0
    try {
      while (this.#lifecycle === 'running') {
        this.#takeInput()
        this.#driveVoterChange()
        const ready = this.#core.ready()
        if (ready === undefined) {
          this.#driveHandover()
          return
        }
        if (ready.sendsFirst) this.#send(ready)
        if (ready.mustSync || ready.snapshotChunks.length > 0) await this.#storage.persist(ready)
        else if (ready.hardState !== undefined) this.#storage.noteCommit(ready.hardState)
        // A write that outlived stop() is done, but nobody may hear of it.
        if (this.#lifecycle === 'running') this.#finish(ready)
        await this.#maybeAssembleSnapshot(ready)
        delivered = ready.mustSync ? 0 : delivered + ready.committedEntries.length
        if (delivered >= entriesPerTurn) {
          await nextTurn(this.#timers)
          delivered = 0
        }
      }
    } catch (error) {
      this.#fault(error)
    } finally {
      this.#isRunning = false // at once, not when the promise is seen to be done: a wake-up in between would be lost
    }
  }

  /** Messages before time: after a stall the heartbeats that waited must count before the tick that finds them missing. */
  #takeInput(): void {
    const inbox = this.#inbox
    this.#inbox = []
    this.#inboxBytes = 0
    for (const work of inbox) work()
    if (this.#isTickDue) {
      this.#isTickDue = false
      this.#core.tick()
    }
  }

  /** All chunks of a snapshot from the leader are there. */
  async #maybeAssembleSnapshot({ snapshotChunks }: Ready): Promise<void> {
    const last = snapshotChunks.at(-1)
    if (last === undefined || last.offset + last.data.length < last.header.totalBytes) return
    const { index } = last.header
    const snapshot = await this.#storage.assembleSnapshot(index)
    if (this.#lifecycle === 'running') this.#core.snapshotAssembled(index, snapshot)
  }

  /** What follows once a `Ready` is durable. */
  #finish(ready: Ready): void {
    if (ready.membership !== undefined) this.#onMembershipChange(ready.membership)
    if (!ready.sendsFirst) this.#send(ready)
    if (ready.softState !== undefined) {
      const { term } = this.#core
      this.#logger.info({ term, ...ready.softState }, 'raft role changed')
      this.#tell(this.#leaderListeners, ready.softState.leaderId)
    }
    const { role, term } = this.#core
    if (this.#announcedTerm !== null && (role !== 'leader' || term !== this.#announcedTerm)) this.#endLeadership()
    if (role !== 'leader') {
      this.#settleAll('leadership-lost')
      this.#settleReads('leadership-lost')
    }
    if (ready.snapshot !== undefined) {
      this.#appliedIndex = ready.snapshot.index
      this.#tell(this.#snapshotListeners, ready.snapshot)
    }
    if (ready.committedEntries.length > 0) this.#deliver(ready.committedEntries)
    this.#finishReads(ready.reads)
    this.#core.advance()
  }

  #send({ messages }: Ready): void {
    for (const message of messages) this.#transport?.send(message)
  }

  #onMembershipChange(membership: Membership): void {
    this.#transport?.setMembership(membership)
    this.#tell(this.#membershipListeners, membership)
  }

  #finishReads(confirmed: readonly ConfirmedRead[]): void {
    for (const { id, index } of confirmed) {
      const result = this.#reads.get(id)
      this.#reads.delete(id)
      if (result !== undefined) this.#confirmedReads.push({ index, result })
    }
    let count = 0
    for (const { index, result } of this.#confirmedReads) {
      if (index > this.#appliedIndex) break
      result.resolve({ ok: true, index })
      count++
    }
    if (count > 0) this.#confirmedReads = this.#confirmedReads.slice(count)
  }

  #driveVoterChange(): void {
    const change = this.#voterChange
    if (change === undefined) return
    const appended = change.drive()
    if (appended !== undefined) {
      const result = deferred<ProposeResult>()
      this.#waiting.set(appended.index, { term: appended.term, result })
      void result.promise.then((committed) => change.finish(committed))
    }
    if (change.isDone) this.#voterChange = undefined
  }

  #driveHandover(): void {
    const handover = this.#handover
    if (handover === undefined) return
    const { role, leaderId, ticks, transferTarget } = this.#core
    let outcome: TransferResult | undefined
    if (role === 'leader') {
      if (transferTarget === null) outcome = { ok: false, reason: 'timeout' }
    } else if (leaderId !== null) {
      outcome = leaderId === handover.to ? { ok: true } : { ok: false, reason: 'other-leader' }
    } else if (ticks >= handover.deadlineTick) {
      outcome = { ok: false, reason: 'timeout' }
    }
    if (outcome === undefined) return
    this.#handover = undefined
    handover.result.resolve(outcome)
  }

  #deliver(entries: readonly Entry[]): void {
    this.#appliedIndex = entries.at(-1)!.index
    this.#tell(this.#committedListeners, entries)
    const { role, term } = this.#core
    for (const entry of entries) {
      const waiting = this.#waiting.get(entry.index)
      if (waiting === undefined) continue
      this.#waiting.delete(entry.index)
      const isOwn = waiting.term === entry.term
      waiting.result.resolve(
        isOwn ? { ok: true, index: entry.index, term: entry.term } : { ok: false, reason: 'leadership-lost' },
      )
    }
    if (role === 'leader' && this.#announcedTerm === null && entries.at(-1)!.term === term) {
      this.#announcedTerm = term
      this.#tell(this.#leadershipListeners, { isLeader: true, term })
    }
  }

  #endLeadership(): void {
    const term = this.#announcedTerm
    this.#announcedTerm = null
    if (term !== null) this.#tell(this.#leadershipListeners, { isLeader: false, term })
  }

  #settleAll(reason: ProposeRefusal['reason']): void {
    for (const { result } of this.#waiting.values()) result.resolve({ ok: false, reason })
    this.#waiting.clear()
  }

  /** Those that are confirmed still hold: they only wait for their entries. */
  #settleReads(reason: 'leadership-lost' | 'stopped'): void {
    for (const result of this.#reads.values()) result.resolve({ ok: false, reason })
    this.#reads.clear()
  }

  #tell<T>(listeners: readonly ((value: T) => void)[], value: T): void {
    for (const listener of listeners) listener(value)
  }

  // ---- time ----

  get #nextTickMs(): number {
    return this.#ticksOrigin + (this.#ticksCounted + 1) * this.#tickMs
  }

  /** Ticks fall on multiples of `tickMs` from the start, so that delays don't add up and nodes don't fall into step. */
  #scheduleTick(): void {
    const delayMs = Math.ceil(this.#nextTickMs - this.#clock.monotonic())
    this.#tickTimer = this.#timers.set(Math.max(0, delayMs), () => this.#onTickTimer())
  }

  #onTickTimer(): void {
    if (this.#lifecycle !== 'running') return
    const nowMs = this.#clock.monotonic()
    let passed = Math.floor((nowMs - this.#ticksOrigin) / this.#tickMs) - this.#ticksCounted
    // Rounding may say "not yet" at the very moment; a timer set again for now would never let time move on.
    if (passed < 1) passed = nowMs >= this.#nextTickMs ? 1 : 0
    this.#ticksCounted += passed
    this.#scheduleTick()
    if (passed === 1) this.#noteTick()
    // The event loop stood still: time for which nobody could be heard doesn't count, and what came in is read first.
    else if (passed > 1) this.#timers.defer(() => this.#noteTick())
  }

  #noteTick(): void {
    this.#isTickDue = true
    this.#wake()
  }

  // ---- the end ----

  #guard(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#fault(error)
    }
  }

  #fault(error: unknown): void {
    if (this.#lifecycle !== 'running') return
    this.#logger.error({ err: error }, 'raft node stopped by a fault')
    this.#end('faulted')
    this.#tell(this.#faultListeners, error)
  }

  #end(lifecycle: 'stopped' | 'faulted'): void {
    this.#lifecycle = lifecycle
    this.#tickTimer?.cancel()
    this.#sayFarewell()
    this.#transport?.stop()
    this.#inbox = []
    this.#isTickDue = false
    this.#settleAll('stopped')
    this.#settleReads('stopped')
    for (const { result } of this.#confirmedReads) result.resolve({ ok: false, reason: 'stopped' })
    this.#confirmedReads = []
    this.#voterChange?.finish({ ok: false, reason: 'stopped' })
    this.#voterChange = undefined
    this.#handover?.result.resolve({ ok: false, reason: 'stopped' })
    this.#handover = undefined
    try {
      this.#endLeadership()
    } catch (error) {
      this.#logger.error({ reason: messageOf(error) }, 'raft leadership listener failed at the end')
    }
  }

  /** A leader that ends lets another one follow at once, rather than after a timeout. */
  #sayFarewell(): void {
    try {
      const farewell = this.#core.farewell()
      if (farewell !== undefined) this.#transport?.send(farewell)
    } catch (error) {
      // A core that faulted may be in any state; the others then wait for their timeout.
      this.#logger.error({ reason: messageOf(error) }, 'raft leader could not name a successor')
    }
  }
}

function notAlone(id: NodeId, directoryId: Uuid, { voters }: Membership): RaftStorageError {
  const known = voters.map((voter) => `${voter.id} (directory ${voter.directoryId})`).join(', ') || 'none'
  return new RaftStorageError(
    `The Raft log names as voters ${known}, not node ${id} (directory ${directoryId}) alone, and no way to others is given. ` +
      'When the file meta.properties of this folder was replaced, restore it; its directory.id names the voter',
  )
}

/** Bytes of entries or of a snapshot in `message`. */
function payloadOf(message: Message): number {
  if (message.type === 'snapshotChunk') return message.data.length
  if (message.type !== 'append') return 0
  let bytes = 0
  for (const { data } of message.entries) bytes += data.length
  return bytes
}
