import { assert, type LeaderEpoch, messageOf, unreachable } from '../base/index.ts'
import type { Clock, Offload, Time, Timer, Timers } from '../platform/index.ts'
import { buildBatch, type RecordInput } from '../protocol/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { loadShard } from './load.ts'
import { Pacer } from './pacer.ts'
import type { PartitionStore, StoreFailure } from './ports.ts'
import { type PendingWrite, type RuntimeFailure, type RuntimeResult, Shard } from './shard.ts'
import type { News, Now, Outcome, RecordCodec, StateMachine, Ticket, TimerChange } from './state-machine.ts'

export interface CoordinatorRuntimeOptions<M extends StateMachine<R, E>, R, E> {
  /** The internal topic. */
  readonly topic: string
  readonly store: PartitionStore
  readonly clock: Clock
  readonly timers: Timers
  /** What the machines' rules go by (their timers, the time that they are told and that records have); the two above when left out. */
  readonly ruleTime?: Time | undefined
  readonly offload: Offload
  readonly logger: Logger
  readonly codec: RecordCodec<R>
  /** An empty state for one partition. */
  readonly createMachine: (partition: number) => M
  /** A write that isn't committed after this long is answered 'coordinator-not-available'; it may yet be committed. */
  readonly writeTimeoutMs: number
  /** Hears of each outcome's news once, in the turn of its decision. */
  readonly onNews?: (news: News, partition: number) => void
  /** The state of a partition may have changed, or will when what was written is committed. */
  readonly onChange?: (() => void) | undefined
}

/** Wait before a load that failed is tried again: the first, and what the doubled waits end at. */
const firstReloadMs = 500
const lastReloadMs = 30_000

/**
 * The coordinators of one internal topic on this broker: a state machine for each partition that it leads.
 */
export class CoordinatorRuntime<M extends StateMachine<R, E>, R, E> {
  readonly #options: CoordinatorRuntimeOptions<M, R, E>
  readonly #ruleTime: Time
  readonly #pacer: Pacer
  readonly #shards = new Map<number, Shard<M, R, E>>()
  /** Highest leader epoch whose news was acted upon, by partition; news of it or of an older one is late. */
  readonly #epochs = new Map<number, LeaderEpoch>()
  readonly #reloads = new Map<number, Timer>()
  #lastTicket = 0

  constructor(options: CoordinatorRuntimeOptions<M, R, E>) {
    this.#options = options
    this.#ruleTime = options.ruleTime ?? options
    this.#pacer = new Pacer(options.clock, options.timers)
  }

  /**
   * This broker leads `partition` from `leaderEpoch` on: its state is loaded, and until then requests are answered
   * 'coordinator-load-in-progress'. Without effect when the partition was in this epoch, or in a later one, already; but
   * where the log had been offline, it begins anew in the same epoch.
   */
  becomeLeader(partition: number, leaderEpoch: LeaderEpoch): void {
    if (leaderEpoch <= (this.#epochs.get(partition) ?? -1)) return
    this.#epochs.set(partition, leaderEpoch)
    this.#close(partition)
    this.#load(partition, leaderEpoch, firstReloadMs)
  }

  /**
   * The partition has another leader, in `leaderEpoch`, or is gone. Its state is dropped, and whoever waits for it is answered
   * 'not-coordinator'. Without effect when this broker leads in a later epoch.
   */
  resign(partition: number, leaderEpoch: LeaderEpoch): void {
    if (leaderEpoch < (this.#epochs.get(partition) ?? -1)) return
    this.#epochs.set(partition, leaderEpoch)
    this.#close(partition)
  }

  /** Drops everything; for the end of the node. */
  stop(): void {
    for (const partition of [...this.#shards.keys()]) this.#close(partition)
  }

  /** The internal topic was deleted, or emptied in the same leader epochs: what the next `becomeLeader` says counts. */
  forget(): void {
    this.stop()
    this.#epochs.clear()
  }

  /** The partitions that this broker coordinates, loaded or not. */
  get partitions(): readonly number[] {
    return [...this.#shards.keys()]
  }

  /**
   * Has the partition's machine decide something, and resolves with what it answers to the ticket: as soon as all that the
   * answer may tell of is committed. `key` is what it is about (a group, a transactional id); null stands for all
   * keys. A decision without records is a read: it sees the newest state, and is answered no earlier than the
   * writes about its key that it may have seen.
   *
   * The machine may keep the ticket and answer with a later outcome; there is no timeout then.
   */
  run<T>(
    partition: number,
    key: string | null,
    decide: (machine: M, now: Now, ticket: Ticket<T>) => Outcome<R, E>,
  ): Promise<RuntimeResult<T>> {
    const shard = this.#shards.get(partition)
    if (shard === undefined) return Promise.resolve({ ok: false, reason: 'not-coordinator' })
    if (shard.phase === 'loading') return Promise.resolve({ ok: false, reason: 'coordinator-load-in-progress' })
    return new Promise((resolve) => {
      const ticket = ++this.#lastTicket
      shard.wait(ticket, resolve as (result: RuntimeResult<unknown>) => void)
      this.#execute(shard, key, decide(shard.machine, this.#now(), ticket))
    })
  }

  #execute(shard: Shard<M, R, E>, key: string | null, outcome: Outcome<R, E>): void {
    for (const news of outcome.news ?? []) this.#options.onNews?.(news, shard.partition.partition)
    const records = outcome.records ?? []
    if (records.length > 0) {
      this.#write(shard, key, records, outcome)
      return
    }
    this.#changeTimers(shard, outcome.timers)
    // Every change of a state without a record comes with a timer or with news; a read has neither.
    if (isChange(outcome)) this.#options.onChange?.()
    const answers = outcome.answers ?? []
    if (answers.length === 0) return
    const seen = key === null ? shard.lastWrite : shard.lastWriteOf.get(key)
    if (seen === undefined) {
      for (const { ticket, response } of answers) shard.settle(ticket, { ok: true, value: response })
      return
    }
    seen.answers.push(...answers)
    seen.deadline ??= this.#writeDeadline(shard, seen)
  }

  #write(shard: Shard<M, R, E>, key: string | null, records: readonly R[], outcome: Outcome<R, E>): void {
    const { store } = this.#options
    const maxBytes = store.maxBatchBytes(shard.partition)
    const encoded = this.#encode(records, maxBytes)
    const batch = encoded === undefined ? undefined : buildBatch({ records: encoded })
    if (batch === undefined || batch.length > maxBytes) {
      this.#refuse(shard, key, outcome, 'record-too-large')
      return
    }
    const appended = store.append(shard.partition, shard.leaderEpoch, batch)
    if (!appended.ok) {
      this.#refuse(shard, key, outcome, appended.reason)
      return
    }
    for (const record of records) shard.machine.replay(record)
    this.#changeTimers(shard, outcome.timers)
    const keys = new Set(records.map((record) => shard.machine.keyOf(record)))
    const write: PendingWrite = { keys, answers: [...(outcome.answers ?? [])], deadline: undefined }
    write.deadline = this.#writeDeadline(shard, write)
    shard.addPending(write)
    this.#options.onChange?.()
    void appended.committed.then((end) => this.#onWriteEnd(shard, write, end))
  }

  /** Undefined as soon as they are known not to fit into a batch: a client may have asked for a hundred thousand. */
  #encode(records: readonly R[], maxBytes: number): RecordInput[] | undefined {
    const { codec } = this.#options
    const timestamp = this.#ruleTime.clock.now()
    const encoded: RecordInput[] = []
    let sizeBytes = 0
    for (const record of records) {
      const { key, value } = codec.encode(record)
      sizeBytes += key.length + (value?.length ?? 0)
      if (sizeBytes > maxBytes) return undefined
      encoded.push({ timestamp, key, value })
    }
    return encoded
  }

  #onWriteEnd(shard: Shard<M, R, E>, write: PendingWrite, end: 'committed' | StoreFailure): void {
    if (shard.phase === 'closed') return
    shard.removePending(write)
    if (end === 'committed') {
      for (const { ticket, response } of write.answers) shard.settle(ticket, { ok: true, value: response })
      return
    }
    // The state holds records that the log will not keep. It is read anew; where leadership went, that finds out.
    const { partition } = shard.partition
    this.#options.logger.warn({ partition, leaderEpoch: shard.leaderEpoch, reason: end }, 'coordinator write lost')
    const failed: RuntimeResult<unknown> = { ok: false, reason: failureOf(end) }
    for (const { ticket } of write.answers) shard.settle(ticket, failed)
    this.#close(partition)
    this.#load(partition, shard.leaderEpoch, firstReloadMs)
  }

  /** Nothing was appended: whoever was to be answered hears why, and the machine takes back what it had changed. */
  #refuse(shard: Shard<M, R, E>, key: string | null, outcome: Outcome<R, E>, reason: StoreFailure): void {
    const failed: RuntimeResult<unknown> = { ok: false, reason: failureOf(reason) }
    for (const { ticket } of outcome.answers ?? []) shard.settle(ticket, failed)
    this.#changeTimers(shard, outcome.timers)
    if (reason === 'not-leader') {
      this.#giveUp(shard)
      return
    }
    const undone = outcome.onRefused?.(reason, this.#now())
    if (undone === undefined) return
    assert((undone.records ?? []).length === 0, 'taking a decision back writes nothing')
    this.#execute(shard, key, undone)
  }

  /** Fails what waits for `write` when it takes too long. The write stays: its records are in the log and in the state. */
  #writeDeadline(shard: Shard<M, R, E>, write: PendingWrite): Timer {
    return this.#options.timers.set(this.#options.writeTimeoutMs, () => {
      write.deadline = undefined
      const { answers } = write
      write.answers = []
      for (const { ticket } of answers) shard.settle(ticket, { ok: false, reason: 'coordinator-not-available' })
    })
  }

  #changeTimers(shard: Shard<M, R, E>, changes: readonly TimerChange<E>[] | undefined): void {
    if (changes === undefined) return
    for (const change of changes) {
      const { key, delayMs } = change
      shard.timers.get(key)?.cancel()
      if (delayMs === undefined) {
        shard.timers.delete(key)
        continue
      }
      const { event } = change
      const timer = this.#ruleTime.timers.set(delayMs, () => {
        shard.timers.delete(key)
        this.#execute(shard, null, shard.machine.onTimer(event, this.#now()))
      })
      shard.timers.set(key, timer)
    }
  }

  #load(partition: number, leaderEpoch: LeaderEpoch, retryMs: number): void {
    const { topic, clock, timers, createMachine } = this.#options
    const shard = new Shard<M, R, E>({ topic, partition }, leaderEpoch, createMachine(partition))
    this.#shards.set(partition, shard)
    const logger = this.#options.logger.child({ partition, leaderEpoch })
    const startedMs = clock.monotonic()
    loadShard(shard, this.#options, this.#pacer).then(
      (loaded) => {
        if (shard.phase === 'closed') return
        if (loaded === 'not-leader') {
          this.#giveUp(shard)
          return
        }
        shard.phase = 'active'
        const fields = { ...loaded, loadMs: Math.round(clock.monotonic() - startedMs) }
        // A node has many of these partitions, and most of them are empty.
        if (loaded.records > 0) logger.info(fields, 'coordinator loaded')
        else logger.debug(fields, 'coordinator loaded')
        this.#execute(shard, null, shard.machine.onLoaded(this.#now()))
      },
      (error: unknown) => {
        if (shard.phase === 'closed') return
        logger.error({ error, reason: messageOf(error), retryMs }, 'coordinator load failed')
        // The shard stays, still loading, until the retry puts a new one in its place.
        const retry = timers.set(retryMs, () => {
          this.#close(partition)
          this.#load(partition, leaderEpoch, Math.min(2 * retryMs, lastReloadMs))
        })
        this.#reloads.set(partition, retry)
      },
    )
  }

  /**
   * The store says that this broker doesn't lead, and nobody has told so: that news is under way, or the partition's log is
   * offline. A log that comes back is led in the same epoch, so that must count as news.
   */
  #giveUp({ partition: { partition }, leaderEpoch }: Shard<M, R, E>): void {
    this.#close(partition)
    this.#epochs.set(partition, (leaderEpoch - 1) as LeaderEpoch)
  }

  #close(partition: number): void {
    this.#reloads.get(partition)?.cancel()
    this.#reloads.delete(partition)
    this.#shards.get(partition)?.close('not-coordinator')
    this.#shards.delete(partition)
  }

  #now(): Now {
    const { clock } = this.#ruleTime
    return { wallMs: clock.now(), monotonicMs: clock.monotonic() }
  }
}

function isChange<R, E>({ timers = [], news = [] }: Outcome<R, E>): boolean {
  return timers.length > 0 || news.length > 0
}

/** What a client hears: Kafka's coordinators tell these apart no further. */
function failureOf(reason: StoreFailure): RuntimeFailure {
  switch (reason) {
    case 'not-leader':
    case 'storage-error':
      return 'not-coordinator'
    case 'not-enough-replicas':
      return 'coordinator-not-available'
    case 'record-too-large':
      return 'record-too-large'
    default:
      return unreachable(reason)
  }
}
