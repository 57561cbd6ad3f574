import {
  assert,
  type BrokerEpoch,
  type BrokerId,
  Deque,
  type LeaderEpoch,
  messageOf,
  type Offset,
} from '../base/index.ts'
import { type AppendResult, type LogListener, type PartitionLog, StorageError, startsWithin } from '../log/index.ts'
import type { PartitionImage } from '../metadata/index.ts'
import type { Platform, Timer } from '../platform/index.ts'
import { type FollowerFetch, InSyncReplicas, type IsrAnswer, type WantedIsr } from './in-sync-replicas.ts'
import { effectiveMinIsr, highWatermarkAfter } from './partition-state.ts'
import type { AppendOutcome, AppendRequest, DeleteRecordsOutcome, ReplicaRefusal, ReplicaRefused } from './service.ts'

/** Who wants to know when more of a partition can be read. */
export interface PartitionWatcher {
  /** More can be read, or the partition changed its role or went offline: look again. */
  onChanged(): void
}

/** How far a reader may read: consumers what is committed, followers all that the leader has. */
export type ReadLimit = 'committed' | 'appended'

/** An append whose answer waits until `endOffset` (exclusive) is committed, or on this disk for acks=1. */
interface Waiter {
  readonly endOffset: Offset
  readonly deadlineMs: number
  readonly answer: (outcome: WaitOutcome) => void
}

export type WaitOutcome = 'reached' | 'request-timed-out' | 'not-leader-or-follower' | 'storage-error'

export interface PartitionOptions {
  readonly topic: string
  readonly partition: number
  readonly localId: BrokerId
  readonly platform: Platform
  readonly log: PartitionLog
  /** The log was put in place of another, in the same leader epoch: readers may be at offsets, and know epochs, of the one before. */
  readonly wasEmptied: boolean
  /** What was asked for, and not refused, before the log was opened anew: it may be the ISR. Its answer goes to `onIsrAnswer` too. */
  readonly askedIsr?: WantedIsr | undefined
  /** The topic's min.insync.replicas now. */
  readonly minInSyncReplicas: () => number
  /** Whether the broker may join an ISR with the run of which it last fetched. */
  readonly mayJoinIsr: (replica: BrokerId, brokerEpoch: BrokerEpoch | undefined) => boolean
  /** Another ISR is to be asked for; the answer goes to `onIsrAnswer`. */
  readonly onIsrWanted: (partition: Partition, wanted: WantedIsr) => void
  /** Something threw that is no fault of a disk: a bug, which is to be seen. */
  readonly onFault: (error: unknown) => void
}

/**
 * One replica of one partition and its role.
 *
 * States: following (after construction too, when no leader is known), leading in an epoch, failed (its log did).
 * `becomeLeader` and `becomeFollower` move between the first two as the metadata says; the log's failure ends in the third.
 *
 * `logStartOffset <= highWatermark <= counted offset <= LEO`, where the counted offset is the flushed offset when
 * acknowledgements wait for syncs and the LEO otherwise. Every answer that waits is answered exactly once: when its
 * offset is reached, its time is up, or the epoch in which it was appended ends.
 */
export class Partition implements LogListener {
  readonly topic: string
  readonly partition: number
  readonly log: PartitionLog
  readonly wasEmptied: boolean
  /** The topic's settings name this replica in `leader.replication.throttled.replicas`. */
  isThrottledAsLeader: boolean = false
  /** Likewise in `follower.replication.throttled.replicas`. */
  isThrottledAsFollower: boolean = false
  readonly #askedIsr: WantedIsr | undefined
  readonly #localId: BrokerId
  readonly #platform: Platform
  readonly #minInSyncReplicas: () => number
  readonly #mayJoinIsr: PartitionOptions['mayJoinIsr']
  readonly #onIsrWanted: PartitionOptions['onIsrWanted']
  readonly #onFault: (error: unknown) => void

  /** Of the epoch in which this replica leads; undefined while it doesn't. */
  #inSync: InSyncReplicas | undefined
  #leaderEpoch = -1 as LeaderEpoch
  #leaderId = -1 as BrokerId
  #replicaCount = 1
  #highWatermark: Offset
  #failure: Error | undefined
  /**
   * Its disk was full while it led: what it holds is read until the epoch ends. In another one, or as a follower, the high watermark
   * might be lower than what was told of it, and stands still.
   */
  #isReadOnly: boolean = false
  #isRemoved = false

  /** Appends above the high watermark, oldest first: where each ends and how many bytes it holds. */
  readonly #uncommitted = new Deque<{ readonly endOffset: Offset; readonly sizeBytes: number }>()
  #committedBytes = 0
  #appendedBytes = 0
  readonly #commitWaiters = new OffsetWaiters()
  readonly #flushWaiters = new OffsetWaiters()
  readonly #watchers: Readonly<Record<ReadLimit, Set<PartitionWatcher>>> = { committed: new Set(), appended: new Set() }
  /** Answers that wait for the low watermark (DeleteRecords). */
  readonly #lowWatermarkWaiters = new Set<() => void>()
  #expiry: Timer | undefined

  constructor(options: PartitionOptions) {
    this.topic = options.topic
    this.partition = options.partition
    this.log = options.log
    this.wasEmptied = options.wasEmptied
    this.#askedIsr = options.askedIsr
    this.#localId = options.localId
    this.#platform = options.platform
    this.#minInSyncReplicas = options.minInSyncReplicas
    this.#mayJoinIsr = options.mayJoinIsr
    this.#onIsrWanted = options.onIsrWanted
    this.#onFault = options.onFault
    this.#highWatermark = Math.min(
      Math.max(options.log.highWatermark, options.log.logStartOffset),
      options.log.logEndOffset,
    )
    options.log.setListener(this)
    options.log.setHighWatermark(this.#highWatermark)
  }

  get isLeader(): boolean {
    return this.#inSync !== undefined && this.#failure === undefined
  }

  get leaderEpoch(): LeaderEpoch {
    return this.#leaderEpoch
  }

  get leaderId(): BrokerId {
    return this.#leaderId
  }

  /** Its log failed, and comes back, if at all, as another one. */
  get hasFailed(): boolean {
    return this.#failure !== undefined || !this.log.isOnline
  }

  /** It failed, and can't even be read. */
  get isOffline(): boolean {
    return this.#failure !== undefined && !this.#isReadOnly
  }

  /** The topic is gone, or its replica here. */
  get isRemoved(): boolean {
    return this.#isRemoved
  }

  /** First offset not yet on disk at every in-sync replica; consumers read below it. Exclusive. Only grows while one leader lasts. */
  get highWatermark(): Offset {
    return this.#highWatermark
  }

  /** First offset of the earliest open transaction, else the high watermark: without transactions always the latter. */
  get lastStableOffset(): Offset {
    return this.#highWatermark
  }

  /** Whether an append with acks=-1 is taken: the ISR has min.insync.replicas, or every replica there is. */
  get hasEnoughInSync(): boolean {
    const isr = this.#inSync?.committed ?? []
    return isr.length >= effectiveMinIsr(this.#minInSyncReplicas(), this.#replicaCount)
  }

  /** The largest set that may be the ISR; empty where this replica doesn't lead. */
  get maximalIsr(): readonly BrokerId[] {
    return this.#inSync?.maximal ?? []
  }

  /** Bytes that can be read, counted since this object was made: what a waiting fetch counts with. */
  readableBytes(limit: ReadLimit): number {
    return limit === 'committed' ? this.#committedBytes : this.#appendedBytes
  }

  /** Takes the role that the metadata gives this replica; harmless when nothing changed. */
  applyImage(image: PartitionImage): void {
    this.#replicaCount = image.replicas.length
    this.#leaderId = image.leader
    if (image.leader === this.#localId) this.#becomeLeader(image)
    else this.#becomeFollower(image)
  }

  #becomeLeader(image: PartitionImage): void {
    if (this.#inSync !== undefined && image.leaderEpoch === this.#leaderEpoch) {
      this.#inSync.applyImage(image)
      if (this.#inSync.recover()) this.#wantIsr(this.#inSync)
      this.#maybeAdvanceHighWatermark()
      this.#lookAtLowWatermark()
      return
    }
    assert(image.leaderEpoch > this.#leaderEpoch, 'a leader epoch never goes back')
    this.#endEpoch()
    this.#leaderEpoch = image.leaderEpoch
    this.log.assignEpochStart(image.leaderEpoch)
    const nowMs = this.#platform.clock.monotonic()
    this.#inSync = new InSyncReplicas(image, this.#localId, this.log.logEndOffset, nowMs, this.#askedIsr)
    if (this.#inSync.recover()) this.#wantIsr(this.#inSync)
    this.#maybeAdvanceHighWatermark()
  }

  #becomeFollower(image: PartitionImage): void {
    if (this.#inSync === undefined && image.leaderEpoch === this.#leaderEpoch) return
    this.#inSync = undefined
    this.#leaderEpoch = image.leaderEpoch
    this.#endEpoch()
  }

  /** The topic is gone: waiting appends and fetches are answered, and nothing more is served. */
  remove(): void {
    this.#isRemoved = true
    this.#inSync = undefined
    this.#endEpoch()
    this.log.setListener(undefined)
  }

  /** Whether a request that knows `currentLeaderEpoch` (-1: it doesn't say) may be served as by the leader (KIP-320). */
  checkLeader(currentLeaderEpoch: LeaderEpoch | -1): ReplicaRefused | undefined {
    const refused = this.checkReplica(currentLeaderEpoch)
    if (refused !== undefined) return refused
    return this.#inSync === undefined ? { ok: false, reason: 'not-leader-or-follower' } : undefined
  }

  /** Whether a request that any replica may answer can be served here. */
  checkReplica(currentLeaderEpoch: LeaderEpoch | -1): ReplicaRefused | undefined {
    if (this.#isRemoved) return { ok: false, reason: 'unknown-topic-or-partition' }
    if (this.isOffline) return this.#storageRefusal
    if (currentLeaderEpoch !== -1 && currentLeaderEpoch !== this.#leaderEpoch) {
      const reason: ReplicaRefusal =
        currentLeaderEpoch < this.#leaderEpoch ? 'fenced-leader-epoch' : 'unknown-leader-epoch'
      return { ok: false, reason }
    }
    return undefined
  }

  /** As `checkLeader`, for what changes the log. */
  #checkWriter(currentLeaderEpoch: LeaderEpoch | -1): ReplicaRefused | undefined {
    return this.checkLeader(currentLeaderEpoch) ?? this.#storageRefusal
  }

  /** Undefined unless its log failed. */
  get #storageRefusal(): ReplicaRefused | undefined {
    if (this.#failure === undefined) return undefined
    return { ok: false, reason: 'storage-error', message: messageOf(this.#failure) }
  }

  /** Appends and answers as `requiredAcks` asks. Never rejects. */
  append(request: AppendRequest): Promise<AppendOutcome> {
    const refused = this.#checkWriter(request.leaderEpoch ?? -1)
    if (refused !== undefined) return Promise.resolve(refused)
    if (request.requiredAcks === -1 && !this.hasEnoughInSync) {
      return Promise.resolve({ ok: false, reason: 'not-enough-replicas' })
    }
    let result: AppendResult | Promise<AppendResult>
    try {
      result = this.#append(request)
    } catch (error) {
      return Promise.resolve(this.refusalOf(error))
    }
    if (!(result instanceof Promise)) return this.#answer(request, result)
    return result.then(
      (appended) => this.#answer(request, appended),
      (error: unknown) => this.refusalOf(error),
    )
  }

  /** What a client is told of what the log threw: a fault of the disk, or a bug here, which must not pass as one. */
  refusalOf(error: unknown): ReplicaRefused {
    if (error instanceof StorageError) return { ok: false, reason: 'storage-error', message: error.message }
    this.#onFault(error)
    return { ok: false, reason: 'unknown-server-error' }
  }

  /**
   * Moves the log start up to `beforeOffset`, or to the high watermark for -1; nothing happens when it is there already.
   * Durable here when it resolves, and every follower that `isAlive` or may come to lead has done the same. Nobody waits for them
   * any more once it is `overdue`: then it never resolves. Never rejects.
   */
  async deleteRecords(
    beforeOffset: Offset | -1,
    isAlive: (replica: BrokerId) => boolean = () => true,
    overdue?: AbortSignal,
  ): Promise<DeleteRecordsOutcome> {
    const refused = this.#checkWriter(-1)
    if (refused !== undefined) return refused
    const offset = beforeOffset === -1 ? this.#highWatermark : beforeOffset
    if (offset < 0 || offset > this.#highWatermark) return { ok: false, reason: 'offset-out-of-range' }
    try {
      await this.log.deleteRecordsBefore(offset, this.#highWatermark)
    } catch (error) {
      return this.refusalOf(error)
    }
    return await this.#waitLowWatermark(offset, isAlive, overdue)
  }

  #waitLowWatermark(
    offset: Offset,
    isAlive: (replica: BrokerId) => boolean,
    overdue: AbortSignal | undefined,
  ): Promise<DeleteRecordsOutcome> {
    return new Promise((resolve) => {
      const look = (): void => {
        const refused = this.#checkWriter(-1)
        const lowWatermark = this.#inSync?.lowWatermark(this.log.logStartOffset, isAlive) ?? -1
        if (refused === undefined && lowWatermark < offset) return
        this.#lowWatermarkWaiters.delete(look)
        resolve(refused ?? { ok: true, lowWatermark })
      }
      if (overdue?.aborted !== true) this.#lowWatermarkWaiters.add(look)
      overdue?.addEventListener('abort', () => this.#lowWatermarkWaiters.delete(look), { once: true })
      look()
    })
  }

  /**
   * Appends a coordinator's batch at once, ahead of client appends that wait for decompression; the caller has checked
   * that this replica leads. Throws `StorageError`.
   */
  appendNow(records: Buffer): AppendResult {
    const result = this.#append({ records, origin: 'coordinator' })
    assert(!(result instanceof Promise), "a coordinator's batch needs no decompression")
    return result
  }

  /** Appends to the log and counts the bytes. Throws `StorageError`. */
  #append(request: Pick<AppendRequest, 'records' | 'origin' | 'produceVersion'>): AppendResult | Promise<AppendResult> {
    const sizeBytes = request.records.length
    const result = this.log.appendAsLeader(request.records, {
      leaderEpoch: this.#leaderEpoch,
      origin: request.origin,
      ...(request.produceVersion === undefined ? {} : { produceVersion: request.produceVersion }),
    })
    if (result instanceof Promise) {
      return result.then((appended) => {
        this.#onAppended(appended, sizeBytes)
        return appended
      })
    }
    this.#onAppended(result, sizeBytes)
    return result
  }

  #onAppended(result: AppendResult, sizeBytes: number): void {
    if (!result.ok || result.duplicate) return
    this.#uncommitted.pushBack({ endOffset: result.lastOffset + 1, sizeBytes })
    this.#appendedBytes += sizeBytes
    this.#wake('appended')
    this.#maybeAdvanceHighWatermark()
  }

  async #answer(request: AppendRequest, result: AppendResult): Promise<AppendOutcome> {
    if (!result.ok) return { ...result, logStartOffset: this.log.logStartOffset }
    if (request.requiredAcks === 0) return result
    const deadlineMs = this.#platform.clock.monotonic() + request.timeoutMs
    const reached =
      request.requiredAcks === -1
        ? await this.waitCommitted(result.lastOffset + 1, deadlineMs)
        : await this.#waitFlushed(result.lastOffset + 1, deadlineMs)
    if (reached !== 'reached') return { ok: false, reason: reached }
    if (request.requiredAcks === -1 && !this.hasEnoughInSync) {
      return { ok: false, reason: 'not-enough-replicas-after-append' }
    }
    return result
  }

  /** Resolves when the high watermark reaches `endOffset` (exclusive) in the leader epoch of now, or with why it didn't. No deadline: infinity. */
  waitCommitted(endOffset: Offset, deadlineMs: number): WaitOutcome | Promise<WaitOutcome> {
    if (endOffset <= this.#highWatermark) return 'reached'
    return this.#wait(this.#commitWaiters, endOffset, deadlineMs)
  }

  #waitFlushed(endOffset: Offset, deadlineMs: number): WaitOutcome | Promise<WaitOutcome> {
    if (endOffset <= this.#countedOffset()) return 'reached'
    return this.#wait(this.#flushWaiters, endOffset, deadlineMs)
  }

  #wait(waiters: OffsetWaiters, endOffset: Offset, deadlineMs: number): WaitOutcome | Promise<WaitOutcome> {
    if (this.#failure !== undefined) return 'storage-error'
    if (this.#inSync === undefined) return 'not-leader-or-follower'
    return new Promise((answer) => {
      waiters.add({ endOffset, deadlineMs, answer })
      this.#scheduleExpiry(deadlineMs)
    })
  }

  /** One timer for all that waits here, set when the first begins to wait and kept while any does. */
  #scheduleExpiry(deadlineMs: number): void {
    if (this.#expiry !== undefined || deadlineMs === Number.POSITIVE_INFINITY) return
    const { clock, timers } = this.#platform
    this.#expiry = timers.set(Math.max(1, deadlineMs - clock.monotonic()), () => {
      this.#expiry = undefined
      const now = clock.monotonic()
      const next = Math.min(this.#commitWaiters.expire(now), this.#flushWaiters.expire(now))
      if (next !== Number.POSITIVE_INFINITY) this.#scheduleExpiry(next)
    })
  }

  // ---- as a leader: its followers ----

  /** A follower fetches: what it has counts, and may bring it into the ISR. The caller has checked that this replica leads. */
  onFollowerFetch(fetch: FollowerFetch): void {
    const inSync = this.#inSync
    if (inSync === undefined || this.#failure !== undefined) return
    inSync.onFetch(fetch, this.log.logEndOffset, this.#platform.clock.monotonic())
    const mayJoin = (replica: BrokerId) => this.#mayJoinIsr(replica, inSync.brokerEpochOf(replica))
    if (inSync.expand(fetch.replica, this.#highWatermark, mayJoin)) this.#wantIsr(inSync)
    this.#maybeAdvanceHighWatermark()
    this.#lookAtLowWatermark()
  }

  /** Takes followers that lag out of the ISR; called now and then. */
  shrinkIsr(maxLagMs: number): void {
    const inSync = this.#inSync
    if (inSync === undefined || this.#failure !== undefined) return
    if (inSync.shrink(this.log.logEndOffset, this.#platform.clock.monotonic(), maxLagMs)) this.#wantIsr(inSync)
  }

  /** The controller's answer to `wanted`. */
  onIsrAnswer(wanted: WantedIsr, answer: IsrAnswer): void {
    this.#inSync?.onAnswer(wanted, answer)
    this.#maybeAdvanceHighWatermark()
  }

  /** The run of the broker whose fetches showed that it is in sync. */
  brokerEpochOf(replica: BrokerId): BrokerEpoch | undefined {
    return this.#inSync?.brokerEpochOf(replica)
  }

  /** In the ISR that the controller knows, while this replica leads. */
  isInSync(replica: BrokerId): boolean {
    return this.#inSync?.committed.includes(replica) ?? false
  }

  /** Another broker that has a replica, while this one leads. */
  mayFollow(replica: BrokerId): boolean {
    return this.#inSync?.mayFollow(replica) ?? false
  }

  #wantIsr({ wanted }: InSyncReplicas): void {
    assert(wanted !== undefined, 'an ISR is wanted')
    this.#onIsrWanted(this, wanted)
  }

  #lookAtLowWatermark(): void {
    for (const look of [...this.#lowWatermarkWaiters]) look()
  }

  // ---- as a follower: what the leader sends ----

  /**
   * Appends what was fetched from the leader of `leaderEpoch` and takes over its marks; false, and nothing is done, when this
   * replica follows another epoch by now. Throws `StorageError` and `CorruptBatchError`.
   */
  appendFetched(leaderEpoch: LeaderEpoch, records: Buffer | null, highWatermark: Offset): boolean {
    if (!this.#follows(leaderEpoch)) return false
    if (records !== null && records.length > 0) {
      this.log.appendAsFollower(records)
      this.#uncommitted.pushBack({ endOffset: this.log.logEndOffset, sizeBytes: records.length })
    }
    const committed = Math.min(highWatermark, this.log.logEndOffset)
    if (committed > this.#highWatermark) this.#moveHighWatermark(committed)
    return true
  }

  /** This replica is empty, and starts within the first batch of what was fetched: so the leader's log starts, too. */
  startsWithin(records: Buffer | null): records is Buffer {
    return records !== null && startsWithin(this.log, records)
  }

  /** `appendFetched` for what this replica `startsWithin`. */
  async appendFirst(leaderEpoch: LeaderEpoch, records: Buffer, highWatermark: Offset): Promise<void> {
    if (!this.#follows(leaderEpoch)) return
    await this.#truncate(() => this.log.startWithin(records))
    this.#uncommitted.pushBack({ endOffset: this.log.logEndOffset, sizeBytes: records.length })
    this.appendFetched(leaderEpoch, null, highWatermark)
  }

  /** The leader deleted what is below `logStartOffset`. */
  async followLogStart(leaderEpoch: LeaderEpoch, logStartOffset: Offset): Promise<void> {
    if (!this.#follows(leaderEpoch) || logStartOffset <= this.log.logStartOffset) return
    await this.log.deleteRecordsBefore(Math.min(logStartOffset, this.#highWatermark), this.#highWatermark)
  }

  /**
   * Drops what the leader of `leaderEpoch` does not have: the logs agree up to where `diverging.epoch` ends in both. The
   * high watermark goes back with the end of the log: what is committed is never cut, but this replica may have heard
   * of a commit in an epoch that an unclean election ended.
   */
  async truncateToLeader(
    leaderEpoch: LeaderEpoch,
    diverging: { readonly epoch: LeaderEpoch; readonly endOffset: Offset },
  ): Promise<void> {
    if (!this.#follows(leaderEpoch)) return
    const own = this.log.endOffsetForEpoch(diverging.epoch)
    const ownEndOffset = own.leaderEpoch < 0 ? this.log.logStartOffset : own.endOffset
    await this.#truncate(() =>
      this.log.truncateTo(Math.max(Math.min(ownEndOffset, diverging.endOffset), this.log.logStartOffset)),
    )
  }

  /** The leader's log begins after, or ends before, all that is here: starts anew at `offset`, or is cut there. */
  async restartAt(leaderEpoch: LeaderEpoch, leaderStartOffset: Offset, leaderEndOffset: Offset): Promise<void> {
    if (!this.#follows(leaderEpoch)) return
    const { logStartOffset, logEndOffset } = this.log
    const isApart = leaderStartOffset > logEndOffset || leaderEndOffset < logStartOffset
    await this.#truncate(() =>
      isApart
        ? this.log.truncateFullyAndStartAt(leaderStartOffset)
        : this.log.truncateTo(Math.min(logEndOffset, leaderEndOffset)),
    )
  }

  async #truncate(work: () => Promise<void>): Promise<void> {
    await work()
    const { logStartOffset, logEndOffset } = this.log
    this.#uncommitted.clear()
    this.#highWatermark = Math.max(Math.min(this.#highWatermark, logEndOffset), logStartOffset)
    this.log.setHighWatermark(this.#highWatermark)
  }

  #follows(leaderEpoch: LeaderEpoch): boolean {
    return (
      this.#inSync === undefined && this.#leaderEpoch === leaderEpoch && this.#failure === undefined && !this.#isRemoved
    )
  }

  // ---- what is readable ----

  watch(limit: ReadLimit, watcher: PartitionWatcher): void {
    this.#watchers[limit].add(watcher)
  }

  unwatch(limit: ReadLimit, watcher: PartitionWatcher): void {
    this.#watchers[limit].delete(watcher)
  }

  onFlushed(): void {
    this.#flushWaiters.reach(this.#countedOffset())
    this.#maybeAdvanceHighWatermark()
  }

  onFailed(error: Error): void {
    this.#failure = error
    this.#isReadOnly = this.#inSync !== undefined && this.log.isReadable
    this.#answerAll('storage-error')
  }

  onLogStartMoved(logStartOffset: Offset): void {
    if (logStartOffset > this.#highWatermark) this.#moveHighWatermark(logStartOffset)
  }

  #countedOffset(): Offset {
    return this.log.acksWaitForFlush ? this.log.flushedOffset : this.log.logEndOffset
  }

  #maybeAdvanceHighWatermark(): void {
    const inSync = this.#inSync
    if (inSync === undefined || this.#failure !== undefined) return
    const offset = highWatermarkAfter({
      current: this.#highWatermark,
      localOffset: this.#countedOffset(),
      localId: this.#localId,
      maximalIsr: inSync.maximal,
      committedIsrCount: inSync.committed.length,
      followerOffset: (replica) => inSync.offsetOf(replica),
      minInSyncReplicas: this.#minInSyncReplicas(),
      replicaCount: this.#replicaCount,
    })
    if (offset > this.#highWatermark) this.#moveHighWatermark(offset)
  }

  #moveHighWatermark(offset: Offset): void {
    this.#highWatermark = offset
    this.log.setHighWatermark(offset)
    for (let first = this.#uncommitted.front(); first !== undefined && first.endOffset <= offset; ) {
      this.#committedBytes += first.sizeBytes
      this.#uncommitted.popFront()
      first = this.#uncommitted.front()
    }
    this.#commitWaiters.reach(offset)
    this.#wake('committed')
  }

  /** Whatever was appended in the epoch that ends here and isn't committed yet is not acknowledged, now or later. */
  #endEpoch(): void {
    this.#isReadOnly = false
    this.#answerAll('not-leader-or-follower')
    this.#uncommitted.clear()
  }

  #answerAll(outcome: WaitOutcome): void {
    this.#commitWaiters.answerAll(outcome)
    this.#flushWaiters.answerAll(outcome)
    this.#expiry?.cancel()
    this.#expiry = undefined
    this.#wake('committed')
    this.#wake('appended')
    this.#lookAtLowWatermark()
  }

  #wake(limit: ReadLimit): void {
    const watchers = this.#watchers[limit]
    if (watchers.size === 0) return
    for (const watcher of [...watchers]) watcher.onChanged()
  }
}

/** Waiters in the order of their offsets. Appends come in that order; a duplicate's earlier offset is the exception. */
class OffsetWaiters {
  #waiters: Waiter[] = []
  /** Waiters before this place were answered. */
  #first = 0

  add(waiter: Waiter): void {
    let place = this.#waiters.length
    while (place > this.#first && this.#waiters[place - 1]!.endOffset > waiter.endOffset) place--
    if (place === this.#waiters.length) this.#waiters.push(waiter)
    else this.#waiters.splice(place, 0, waiter)
  }

  reach(offset: Offset): void {
    while (this.#first < this.#waiters.length && this.#waiters[this.#first]!.endOffset <= offset) {
      this.#waiters[this.#first++]!.answer('reached')
    }
    this.#compact()
  }

  /** Answers those whose deadline has passed; returns the earliest deadline of the rest, infinity when none is left. */
  expire(now: number): number {
    let earliest = Number.POSITIVE_INFINITY
    const rest: Waiter[] = []
    for (const waiter of this.#waiters.slice(this.#first)) {
      if (waiter.deadlineMs <= now) {
        waiter.answer('request-timed-out')
      } else {
        rest.push(waiter)
        earliest = Math.min(earliest, waiter.deadlineMs)
      }
    }
    this.#waiters = rest
    this.#first = 0
    return earliest
  }

  answerAll(outcome: WaitOutcome): void {
    const waiting = this.#waiters.slice(this.#first)
    this.#waiters = []
    this.#first = 0
    for (const waiter of waiting) waiter.answer(outcome)
  }

  #compact(): void {
    if (this.#first === this.#waiters.length) {
      this.#waiters.length = 0
      this.#first = 0
    } else if (this.#first > 1024) {
      this.#waiters.splice(0, this.#first)
      this.#first = 0
    }
  }
}
