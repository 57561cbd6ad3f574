import { assert, type Deferred, deferred, messageOf } from '../base/index.ts'
import type { Clock, Random, Timer, Timers } from '../platform/index.ts'
import { RaftLog } from './core/log.ts'
import { RaftCore } from './core/raft.ts'
import {
  defaultRaftConfig,
  type Entry,
  type LogIndex,
  type Membership,
  type NodeId,
  type RaftConfig,
  type Ready,
  type Role,
  type Snapshot,
  type Term,
} from './core/types.ts'
import type { RaftStorage } from './storage/raft-storage.ts'
import type { RaftTransport } from './transport.ts'

export interface RaftNodeOptions {
  readonly id: NodeId
  /** Open; closed by `stop`. */
  readonly storage: RaftStorage
  /** Undefined only for the one voter of its quorum. */
  readonly transport: RaftTransport | undefined
  readonly platform: { readonly clock: Clock; readonly timers: Timers; readonly random: Random }
  readonly logger: RaftLogger
  /** Length of a tick; 50 unless given. */
  readonly tickMs?: number
  readonly config?: Partial<RaftConfig>
  /** Entries kept below a snapshot for followers that are a little behind; unless given 10,000, or 0 for the only voter. */
  readonly keptEntries?: number
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
  readonly membership: Membership
}

export type ProposeRefusal = {
  readonly ok: false
  /**
   * 'not-leader', 'busy' (too much waits for its commit) and 'stopped' before it was appended: it will not happen.
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
  readonly #storage: RaftStorage
  readonly #transport: RaftTransport | undefined
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #logger: RaftLogger
  readonly #tickMs: number
  readonly #keptEntries: number

  readonly #committedListeners: ((entries: readonly Entry[]) => void)[] = []
  readonly #leadershipListeners: ((leadership: Leadership) => void)[] = []
  readonly #snapshotListeners: ((snapshot: Snapshot) => void)[] = []
  readonly #faultListeners: ((error: unknown) => void)[] = []

  /** What came in and waits for the loop: messages, and reports of the transport. */
  #inbox: (() => void)[] = []
  #isTickDue: boolean = false
  #isRunning: boolean = false
  /** The present run of the loop, or the last one. */
  #loop: Promise<void> | undefined
  #lifecycle: 'new' | 'running' | 'stopped' | 'faulted' = 'new'
  #stopped: Promise<void> | undefined
  #appliedIndex: LogIndex
  /** The term in which listeners believe that this node leads. */
  #announcedTerm: Term | null = null
  readonly #waiting = new Map<LogIndex, { readonly term: Term; readonly result: Deferred<ProposeResult> }>()

  #tickTimer: Timer | undefined
  #ticksOrigin = 0
  #ticksCounted = 0

  constructor(options: RaftNodeOptions) {
    const { id, storage, transport, platform, tickMs = 50 } = options
    this.#storage = storage
    this.#transport = transport
    this.#clock = platform.clock
    this.#timers = platform.timers
    this.#logger = options.logger
    this.#tickMs = tickMs
    const { log, hardState } = storage
    this.#core = new RaftCore({
      id,
      config: { ...defaultRaftConfig, ...options.config },
      log: new RaftLog(log, hardState.commitIndex),
      hardState,
      random: platform.random,
    })
    this.#appliedIndex = log.snapshot.index
    this.#keptEntries = options.keptEntries ?? (this.#isOnlyVoter ? 0 : 10_000)
    storage.onFailure((error) => this.#fault(error))
    assert(transport !== undefined || this.#isOnlyVoter, 'a node with peers has a transport')
  }

  get #isOnlyVoter(): boolean {
    const { voters } = this.#core.membership
    return voters.length === 1 && voters[0]!.id === this.#core.id
  }

  get state(): RaftState {
    const { role, term, leaderId, commitIndex, lastIndex, membership } = this.#core
    const isUp = this.#lifecycle === 'running'
    return {
      role: isUp ? role : 'follower',
      term,
      leaderId: isUp ? leaderId : null,
      commitIndex,
      appliedIndex: this.#appliedIndex,
      lastIndex,
      membership,
    }
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

  /** Replaces all that was delivered before: at start, and when the leader sends one. Not called for the bootstrap's empty one. */
  onSnapshot(listener: (snapshot: Snapshot) => void): void {
    this.#snapshotListeners.push(listener)
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
        onMessage: (message) => this.#enqueue(() => this.#core.step(message)),
        onUnreachable: (node) => this.#enqueue(() => this.#core.reportUnreachable(node)),
        onSnapshotFailed: (node) => this.#enqueue(() => this.#core.reportSnapshotFailed(node)),
      })
      this.#ticksOrigin = this.#clock.monotonic()
      this.#scheduleTick()
      if (this.#isOnlyVoter) this.#core.campaign() // nobody to wait for
    })
    this.#wake()
    await this.#loop
    if (fault !== undefined) throw fault
  }

  /** Resolves when nothing runs any more and the storage is closed. Proposals that wait end in 'stopped'. Once more: no effect. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    if (this.#lifecycle !== 'faulted') this.#end('stopped')
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
      await this.#storage.saveSnapshot(index, data, this.#keptEntries)
    } catch (error) {
      this.#fault(error)
      throw error
    }
    this.#logger.info({ index, bytes: data.length }, 'raft snapshot taken')
  }

  /** The leader is known, by other means than silence, to be dead: other candidates are not refused for its sake any more. */
  forgetLeader(): void {
    this.#enqueue(() => this.#core.forgetLeader())
  }

  // ---- the loop ----

  #enqueue(work: () => void): void {
    if (this.#lifecycle !== 'running') return
    this.#inbox.push(work)
    this.#wake()
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
        const ready = this.#core.ready()
        if (ready === undefined) return
        if (ready.mustSync) await this.#storage.persist(ready)
        else if (ready.hardState !== undefined) this.#storage.noteCommit(ready.hardState)
        // A write that outlived stop() is done, but nobody may hear of it.
        if (this.#lifecycle === 'running') this.#finish(ready)
        delivered = ready.mustSync ? 0 : delivered + ready.committedEntries.length
        if (delivered >= entriesPerTurn) {
          await new Promise<void>((resolve) => this.#timers.defer(resolve))
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
    for (const work of inbox) work()
    if (this.#isTickDue) {
      this.#isTickDue = false
      this.#core.tick()
    }
  }

  /** What follows once a `Ready` is durable. */
  #finish(ready: Ready): void {
    for (const message of ready.messages) this.#transport?.send(message)
    if (ready.softState !== undefined) {
      const { term } = this.#core
      this.#logger.info({ term, ...ready.softState }, 'raft role changed')
    }
    const { role, term } = this.#core
    if (this.#announcedTerm !== null && (role !== 'leader' || term !== this.#announcedTerm)) this.#endLeadership()
    if (role !== 'leader') this.#settleAll('leadership-lost')
    if (ready.snapshot !== undefined) {
      this.#appliedIndex = ready.snapshot.index
      this.#tell(this.#snapshotListeners, ready.snapshot)
    }
    if (ready.committedEntries.length > 0) this.#deliver(ready.committedEntries)
    this.#core.advance()
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
    this.#transport?.stop()
    this.#inbox = []
    this.#isTickDue = false
    this.#settleAll('stopped')
    try {
      this.#endLeadership()
    } catch (error) {
      this.#logger.error({ reason: messageOf(error) }, 'raft leadership listener failed at the end')
    }
  }
}
