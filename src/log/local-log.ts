import {
  assert,
  type LeaderEpoch,
  messageOf,
  type Offset,
  type ProducerEpoch,
  type ProducerId,
  RookeryError,
  type Uuid,
} from '../base/index.ts'
import type { TopicConfig } from '../config/index.ts'
import { FileError, isOutOfFiles } from '../platform/index.ts'
import { BatchView, CorruptBatchError } from '../protocol/index.ts'
import { AppendQueue } from './append-queue.ts'
import { checkReplicated, startsWithin, type Validation, validateBatch } from './batch-validator.ts'
import { writeEpochs } from './checkpoint-files.ts'
import { CleaningTurn } from './cleaning-turn.ts'
import type { LogInCleaning } from './compaction.ts'
import type { LogEnvironment, LogHost } from './environment.ts'
import { EpochCache, type EpochEntry } from './epoch-cache.ts'
import { StorageError, storageErrorOf } from './errors.ts'
import { type FlushedLog, Flusher } from './flusher.ts'
import { LogReader, type ReadLog } from './log-reader.ts'
import { Mutex } from './mutex.ts'
import { replayBatch, replayProducers } from './producer-replay.ts'
import { encodeProducerSnapshot } from './producer-snapshot.ts'
import type { ProducerState } from './producer-state.ts'
import { countExpired, type RetainedLog } from './retention.ts'
import { maxRelativeOffset, type Segment } from './segment.ts'
import { SegmentStore } from './segment-store.ts'
import { type LogTail, TailCache } from './tail-cache.ts'
import type {
  ActiveProducer,
  AppendOptions,
  AppendResult,
  LogListener,
  OffsetOutOfRange,
  PartitionLog,
  ReadOptions,
  ReadResult,
  TimestampAndOffset,
} from './types.ts'

/** What loading (and, after a crash, recovering) a partition's folder gave. */
export interface LoadedLog {
  /** Empty: the folder has no segment yet. In offset order, the last takes appends and has its indexes in memory. */
  readonly segments: Segment[]
  readonly logStartOffset: Offset
  readonly epochs: readonly EpochEntry[]
  readonly producers: ProducerState
  /** Offset of the newest stored producer snapshot; -1 when there is none. */
  readonly snapshotOffset: Offset
  /** -1: the last checkpoint said nothing about this partition. */
  readonly highWatermark: Offset
}

/** Where a log moves. */
export interface MoveTarget {
  readonly host: LogHost
  /** The partition's folder in the directory `host`, and how it is called until the copy there is whole. */
  readonly folder: string
  readonly copyFolder: string
  /** What the folder of before is called then, in its own directory. */
  readonly deletedFolder: string
  onSwitched(): void
  /** From here on a start that finds a log in `folder` takes it for the partition's. Durable when it resolves. */
  prepare(): Promise<void>
  /** A log in `folder` is one that moved there, if the log's own directory says so too. Durable when it resolves. */
  noteArrival(): Promise<void>
  /** What `prepare` said is no more so. Durable when it resolves. */
  takeBack(): Promise<void>
  /** Makes it durable that the folder of before is deleted. */
  confirm(): Promise<void>
}

/**
 * `PartitionLog` over segments in a folder: what is appended, where the log begins and ends, what is durable, committed and
 * clean, and who may change files when. The files themselves are `SegmentStore`'s, reading is `LogReader`'s.
 *
 * Everything that moves the end of the log happens in one turn of the event loop: check, roll, write, indexes, LEO. What
 * changes the log elsewhere (sync, truncation, retention, compaction, close) goes through one mutex, so that none sees
 * another half done. Compaction works for long and takes the mutex only to put a segment in place; truncation and the end
 * of the log abort it first.
 *
 * States: online; full when its disk is, which can still be read; offline after any other fault; closed. There is no way back from full and
 * offline: the directory makes a new `LocalLog` when it comes back.
 */
export class LocalLog implements PartitionLog {
  readonly topic: string
  readonly topicId: Uuid
  readonly partition: number
  readonly #environment: LogEnvironment
  #host: LogHost
  readonly #mutex = new Mutex()
  readonly #epochs = new EpochCache()
  readonly #tail: LogTail
  readonly #store: SegmentStore
  readonly #reader: LogReader
  readonly #appendQueue = new AppendQueue()
  readonly #cleaning = new CleaningTurn()
  readonly #flusher: Flusher
  #producers: ProducerState
  #config: TopicConfig
  #listener: LogListener | undefined
  #logStartOffset: Offset
  /** Where the log is to start once that is durable. */
  #nextLogStart: Offset | undefined
  #logEndOffset: Offset
  #highWatermark: Offset
  /** Caps the recovery point while a truncation is under way: -1 for none. */
  #recoveryPointCap: Offset = -1
  #state: 'online' | 'full' | 'offline' | 'closed' = 'online'
  #fault: StorageError | undefined
  #syncFailed = false
  /** Where the last compaction ended, exclusive; -1: there was none. */
  #cleanedOffset: Offset
  /** Random part of `segment.ms`, drawn for each segment. */
  #rollJitterMs: number
  #unstoredEpochs = false
  /** Gets all that is appended, too, in the same turn. */
  #mirror: ((batches: Buffer) => void) | undefined
  #onTruncated: ((endOffset: Offset) => void) | undefined
  /** What is appended here is a copy: neither cached nor counted. */
  readonly #isCopy: boolean

  constructor(options: {
    readonly environment: LogEnvironment
    readonly host: LogHost
    readonly topic: string
    readonly topicId: Uuid
    readonly partition: number
    readonly directory: string
    readonly config: TopicConfig
    readonly loaded: LoadedLog
    readonly cleanedOffset: Offset
    /** It is filled from another log of this broker, in whose place it may come. */
    readonly isCopy?: boolean
  }) {
    const { loaded } = options
    this.#environment = options.environment
    this.#host = options.host
    this.topic = options.topic
    this.topicId = options.topicId
    this.partition = options.partition
    this.#isCopy = options.isCopy === true
    this.#config = options.config
    this.#producers = loaded.producers
    this.#cleanedOffset = options.cleanedOffset
    this.#epochs.load(loaded.epochs)
    this.#logStartOffset = loaded.logStartOffset
    this.#logEndOffset = loaded.segments.at(-1)?.endOffset ?? loaded.logStartOffset
    this.#highWatermark =
      loaded.highWatermark < 0 ? 0 : Math.max(this.#logStartOffset, Math.min(loaded.highWatermark, this.#logEndOffset))
    const { environment, host, directory, topicId } = options
    const { segments, snapshotOffset } = loaded
    this.#store = new SegmentStore({
      ...{ environment, host, directory, topicId, segments, snapshotOffset },
      onSyncWanted: () => this.#flusher.request(),
    })
    this.#tail = (this.#isCopy ? new TailCache({ budgetBytes: 0 }) : environment.tailCache).openTail()
    this.#reader = new LogReader({ log: this.#asRead(), store: this.#store, tail: this.#tail, environment })
    const { platform, scheduler, probe } = environment
    this.#flusher = new Flusher({
      log: this.#asFlushed(),
      scheduler,
      mutex: this.#mutex,
      clock: platform.clock,
      timers: platform.timers,
      timeUs: probe.flushTimeUs,
      flushedOffset: this.#logEndOffset,
    })
    this.#rollJitterMs = this.#drawJitter()
  }

  /** The partition's folder. */
  get directory(): string {
    return this.#store.directory
  }

  get logStartOffset(): Offset {
    return this.#logStartOffset
  }

  /** For the checkpoint. */
  get logStartToStore(): Offset {
    return this.#nextLogStart ?? this.#logStartOffset
  }

  get logEndOffset(): Offset {
    return this.#logEndOffset
  }

  get flushedOffset(): Offset {
    return this.#flusher.flushedOffset
  }

  get highWatermark(): Offset {
    return this.#highWatermark
  }

  get latestEpoch(): LeaderEpoch {
    return this.#epochs.latestEpoch
  }

  get sizeBytes(): number {
    return this.#store.sizeBytes
  }

  get acksWaitForFlush(): boolean {
    return this.#config.flushMessages === 1
  }

  get isOnline(): boolean {
    return this.#state === 'online'
  }

  get isReadable(): boolean {
    return this.#state === 'online' || this.#state === 'full'
  }

  /** There is something on disk that a checkpoint can speak of. */
  get hasFiles(): boolean {
    return this.#store.hasFiles
  }

  /** Its folder is there, or was about to be made when something failed. */
  get hasFolder(): boolean {
    return this.#store.hasFolder
  }

  /** Everything below is on disk and was checked: recovery begins here. */
  get recoveryPoint(): Offset {
    return this.#recoveryPointCap < 0 ? this.flushedOffset : Math.min(this.flushedOffset, this.#recoveryPointCap)
  }

  /** Where the last compaction ended, exclusive; -1: there was none. */
  get cleanedOffset(): Offset {
    return this.#cleanedOffset
  }

  get #firstSegmentOffset(): Offset {
    return this.#store.segments[0]?.baseOffset ?? this.#logStartOffset
  }

  /** A sync failed: what lies above the flushed offset may never reach the disk, whatever is read back. */
  get syncFailed(): boolean {
    return this.#syncFailed
  }

  setListener(listener: LogListener | undefined): void {
    this.#listener = listener
  }

  get config(): TopicConfig {
    return this.#config
  }

  updateConfig(config: TopicConfig): void {
    this.#config = config
    this.#rollJitterMs = this.#drawJitter()
    if (!config.cleanupPolicy.compact) this.#cleaning.abort()
    this.#flushWhenDue()
  }

  // Appending

  appendAsLeader(records: Buffer, options: AppendOptions): AppendResult | Promise<AppendResult> {
    this.#requireOnline()
    // A coordinator replays what it appends and so can't wait: offsets are given only now, to whoever comes first.
    if (!this.#appendQueue.isEmpty && options.origin === 'client') {
      const inTurn = async () => this.#appendWithRoom(await this.#validate(records, options), options)
      return this.#appendQueue.push(this.#appendQueue.drained().then(inTurn))
    }
    const validation = this.#validate(records, options)
    if (validation instanceof Promise) {
      return this.#appendQueue.push(validation.then((settled) => this.#appendWithRoom(settled, options)))
    }
    const result = this.#appendWithRoom(validation, options)
    return result instanceof Promise ? this.#appendQueue.push(result) : result
  }

  /** Waits while the node may not open the files for it. A coordinator can't wait: it has what is left. */
  #appendWithRoom(validation: Validation, options: AppendOptions): AppendResult | Promise<AppendResult> {
    const { handles } = this.#environment
    if (handles.hasRoom || this.#store.isActiveOpen || options.origin !== 'client') {
      return this.#appendValidated(validation, options)
    }
    return handles.whenRoom(() => this.#appendValidated(validation, options))
  }

  #validate(records: Buffer, options: AppendOptions): Validation | Promise<Validation> {
    const { clock, offload } = this.#environment.platform
    return validateBatch(records, options, this.#config, clock.now(), offload)
  }

  #appendValidated(validation: Validation, options: AppendOptions): AppendResult {
    this.#requireOnline()
    if (!validation.ok) return validation
    const { batch } = validation
    const view = new BatchView(batch)
    if (options.leaderEpoch < this.latestEpoch) {
      return {
        ok: false,
        reason: 'fenced-leader-epoch',
        message: `Leader epoch ${options.leaderEpoch} is older than ${this.latestEpoch}, which the log holds`,
      }
    }
    const logAppendTimeMs = this.#config.timestampType === 'LogAppendTime' ? view.maxTimestamp : -1
    const producerId = view.producerId as ProducerId
    if (producerId >= 0 && options.origin === 'client') {
      const producerEpoch = view.producerEpoch as ProducerEpoch
      const verdict = this.#producers.check(producerId, producerEpoch, view.baseSequence, view.recordCount)
      if (verdict.kind === 'duplicate') {
        const { baseOffset, lastOffset, timestamp } = verdict
        const logStartOffset = this.#logStartOffset
        return { ok: true, baseOffset, lastOffset, logAppendTimeMs: timestamp, logStartOffset, duplicate: true }
      }
      if (verdict.kind !== 'append') return { ok: false, reason: verdict.kind, message: verdict.message }
    }
    const baseOffset = this.#logEndOffset
    view.stampBaseOffset(baseOffset)
    view.stampLeaderEpoch(options.leaderEpoch)
    if (this.#mustRoll(view, 0)) this.#rollOrFail(view)
    this.#write(batch)
    this.#noteAppended(view)
    this.#mirror?.(batch)
    this.#flushWhenDue()
    const logStartOffset = this.#logStartOffset
    return { ok: true, baseOffset, lastOffset: view.lastOffset, logAppendTimeMs, logStartOffset, duplicate: false }
  }

  appendAsFollower(records: Buffer): void {
    this.#requireOnline()
    const end = checkReplicated(records, this.#logEndOffset)
    const view = new BatchView(records)
    // Consecutive batches of one segment are one write.
    let start = 0
    let at = 0
    while (at < end) {
      view.moveTo(records, at)
      if (this.#mustRoll(view, at - start)) {
        this.#writeMany(records, start, at)
        this.#rollOrFail(view)
        start = at
      }
      at += view.sizeBytes
    }
    this.#writeMany(records, start, end)
    if (end > 0) this.#flushWhenDue()
  }

  #writeMany(records: Buffer, start: number, end: number): void {
    if (start === end) return
    this.#write(records.subarray(start, end))
    const view = new BatchView(records)
    for (let at = start; at < end; at += view.sizeBytes) this.#noteAppended(view.moveTo(records, at))
    this.#mirror?.(records.subarray(start, end))
  }

  /** Writes whole batches to the active segment. */
  #write(batches: Buffer): void {
    try {
      this.#store.append(batches, this.#logEndOffset, this.#config)
    } catch (error) {
      throw this.#unlessOutOfFiles(error)
    }
    const { probe } = this.#environment
    if (this.#isCopy) probe.movedBytes.value += batches.length
    else probe.appendedBytes.value += batches.length
  }

  /** The batch is in the page cache: moves the LEO over it. */
  #noteAppended(view: BatchView): void {
    const { baseOffset, lastOffset } = view
    const epoch = view.leaderEpoch as LeaderEpoch
    if (epoch > this.latestEpoch) this.#epochs.assign(epoch, baseOffset)
    const first = this.#epochs.entries.at(-1)?.startOffset
    if (first !== undefined && first >= this.#logEndOffset) this.#unstoredEpochs = true
    replayBatch(this.#producers, view)
    this.#tail.append(view.bytes, baseOffset, lastOffset + 1)
    this.#logEndOffset = lastOffset + 1
    this.#flusher.noteAppended(lastOffset - baseOffset + 1)
  }

  #rollOrFail(next: BatchView): void {
    // Behind a hole that compaction left, relative offsets may not reach from the LEO.
    const isFar = next.lastOffset - this.#logEndOffset > maxRelativeOffset
    try {
      this.#roll(isFar ? next.baseOffset : this.#logEndOffset)
    } catch (error) {
      throw this.#unlessOutOfFiles(error)
    }
  }

  /** Whether the batch can't go into the active segment, behind `pendingBytes` that are about to be written. */
  #mustRoll(view: BatchView, pendingBytes: number): boolean {
    const { segmentBytes } = this.#config
    if (!this.#store.hasFiles) return pendingBytes > 0 && pendingBytes + view.sizeBytes > segmentBytes
    const { active } = this.#store
    if (active.isFullFor(view.sizeBytes, pendingBytes, view.lastOffset, segmentBytes, this.#config)) return true
    if (active.sizeBytes === 0) return false
    return (
      active.ageMs(this.#environment.platform.clock.now(), view.maxTimestamp) > this.#segmentMs - this.#rollJitterMs
    )
  }

  /** What isn't closed can't be compacted. */
  get #segmentMs(): number {
    const { cleanupPolicy, segmentMs, maxCompactionLagMs } = this.#config
    return cleanupPolicy.compact ? Math.min(segmentMs, maxCompactionLagMs) : segmentMs
  }

  /** Closes the active segment and begins the next. What that leaves to sync is the next flush's. */
  #roll(baseOffset: Offset): void {
    if (this.#store.active.sizeBytes === 0) return
    this.#store.roll(baseOffset, this.#encodeProducers())
    this.#rollJitterMs = this.#drawJitter()
    this.#flusher.request()
  }

  #encodeProducers(): Buffer {
    return encodeProducerSnapshot(this.#producers.entries())
  }

  #drawJitter(): number {
    const most = Math.min(this.#config.segmentJitterMs, this.#segmentMs, 2 ** 48 - 1)
    return most <= 0 ? 0 : this.#environment.platform.random.int(most + 1)
  }

  // Flushing

  flush(): Promise<void> {
    this.#requireOnline()
    return this.flushedOffset >= this.#logEndOffset ? Promise.resolve() : this.#flusher.wait(this.#logEndOffset)
  }

  #flushWhenDue(): void {
    this.#flusher.requestWhenDue(this.#config.flushMessages, this.#config.flushMs)
  }

  #asFlushed(): FlushedLog {
    const endOffset = () => this.#logEndOffset
    const isOnline = () => this.isOnline
    return {
      get logEndOffset() {
        return endOffset()
      },
      get isOnline() {
        return isOnline()
      },
      syncEverything: () => this.#syncEverything(),
      onFlushed: (offset) => this.#listener?.onFlushed(offset),
      onSyncFailed: (error) => {
        this.#fail(error)
      },
    }
  }

  /** Makes durable all that the log holds when this is called. */
  async #syncEverything(): Promise<void> {
    const epochs = this.#unstoredEpochs && this.#store.hasFiles ? this.#storableEpochs() : undefined
    if (epochs !== undefined) this.#unstoredEpochs = false
    await this.#store.sync(epochs)
  }

  /** Epochs without a record yet are not stored: whoever leads after a restart has a newer one. */
  #storableEpochs(): readonly EpochEntry[] {
    return this.#epochs.entries.filter((entry) => entry.startOffset < this.#logEndOffset)
  }

  // Reading

  read(options: ReadOptions): ReadResult | OffsetOutOfRange | Promise<ReadResult | OffsetOutOfRange> {
    return this.#reader.read(options)
  }

  offsetForTimestamp(timestamp: number, endOffset: Offset): Promise<TimestampAndOffset | undefined> {
    return this.#reader.findTimestamp(timestamp, endOffset)
  }

  offsetOfMaxTimestamp(endOffset: Offset): Promise<TimestampAndOffset | undefined> {
    return this.#reader.findMaxTimestamp(endOffset)
  }

  #asRead(): ReadLog {
    const logStartOffset = () => this.#logStartOffset
    const logEndOffset = () => this.#logEndOffset
    return {
      get logStartOffset() {
        return logStartOffset()
      },
      get logEndOffset() {
        return logEndOffset()
      },
      requireReadable: () => {
        if (!this.isReadable) throw this.#notOnline()
      },
      readFault: (error) => this.#readFault(error),
    }
  }

  // Epochs and producers

  assignEpochStart(leaderEpoch: LeaderEpoch): void {
    if (leaderEpoch > this.latestEpoch) this.#epochs.assign(leaderEpoch, this.#logEndOffset)
  }

  endOffsetForEpoch(leaderEpoch: LeaderEpoch): { readonly leaderEpoch: LeaderEpoch; readonly endOffset: Offset } {
    return this.#epochs.endOffsetFor(leaderEpoch, this.#logEndOffset)
  }

  epochForOffset(offset: Offset): LeaderEpoch {
    return this.#epochs.epochAt(offset)
  }

  activeProducers(): readonly ActiveProducer[] {
    return this.#producers.active()
  }

  /** Forgets idempotent producers that wrote nothing for long. */
  expireProducers(nowMs: number): void {
    this.#producers.expire(nowMs, this.#environment.producerIdExpirationMs)
  }

  // Truncation and deletion

  setHighWatermark(offset: Offset): void {
    this.#highWatermark = offset
  }

  async truncateTo(offset: Offset): Promise<void> {
    this.#requireOnline()
    await this.#appendQueue.drained()
    await this.#exclusiveWithoutCleaning(async () => {
      if (offset >= this.#logEndOffset) {
        // An epoch that began here and has no record: the leader of now need not know it.
        this.#epochs.truncateFromEnd(this.#logEndOffset)
        return
      }
      if (offset < this.#firstSegmentOffset) return await this.#startAfresh(Math.max(offset, 0))
      // One that begins at the offset stays, empty: behind a hole that compaction left, only its name says where the log ends.
      const cut = this.#store.segments.findLast((segment) => segment.baseOffset <= offset)
      assert(cut !== undefined, 'the first segment begins below the offset')
      const end = await cut.endBefore(offset)
      await this.#lowerRecoveryPoint(end.endOffset)
      const logStartBefore = this.#logStartOffset
      this.#beginTruncation()
      await this.#store.truncateTo(cut, end)
      this.#endAt(end.endOffset)
      await this.#rebuildProducers()
      await this.#finishTruncation()
      if (this.#logStartOffset !== logStartBefore) await this.#host.saveLogStarts()
    })
  }

  async truncateFullyAndStartAt(offset: Offset): Promise<void> {
    this.#requireOnline()
    await this.#appendQueue.drained()
    await this.#exclusiveWithoutCleaning(() => this.#startAfresh(offset))
  }

  async startWithin(records: Buffer): Promise<void> {
    this.#requireOnline()
    await this.#appendQueue.drained()
    const { baseOffset } = new BatchView(records)
    checkReplicated(records, baseOffset)
    if (!startsWithin(this, records)) {
      const range = `${this.#logStartOffset} to ${this.#logEndOffset}`
      throw new CorruptBatchError(`Batch at offset ${baseOffset} is not the first one of a log from offset ${range}`)
    }
    await this.#exclusiveWithoutCleaning(async () => {
      if (!startsWithin(this, records)) return // its start was moved meanwhile: it is asked for what comes there
      await this.#startAfresh(baseOffset, this.#logStartOffset)
      this.appendAsFollower(records)
    })
  }

  /**
   * At every moment a crash finds the old log, an early end of it, or an empty one at `logStartOffset`: the log start says where it
   * goes on when no segment does, and segments go from the end. The next append gets `offset`, which may be lower for as long as that takes.
   */
  async #startAfresh(offset: Offset, logStartOffset = offset): Promise<void> {
    if (!this.#store.hasFiles && logStartOffset === 0) return
    await this.#lowerRecoveryPoint(Math.min(offset, this.#firstSegmentOffset))
    this.#beginTruncation()
    this.#logStartOffset = logStartOffset
    await this.#host.saveLogStarts()
    await this.#store.startAfresh(offset)
    this.#endAt(offset)
    this.#logStartOffset = logStartOffset
    this.#epochs.clear()
    this.#producers.clear()
    await this.#finishTruncation()
    await this.#host.saveLogStarts()
    this.#listener?.onLogStartMoved(logStartOffset)
  }

  #beginTruncation(): void {
    this.#mirror = undefined
    this.#store.beginTruncation()
    this.#tail.clear()
  }

  /** Before records go that were said to be on disk, the checkpoint must no longer say so. */
  async #lowerRecoveryPoint(offset: Offset): Promise<void> {
    const before = this.recoveryPoint
    this.#recoveryPointCap = offset
    if (before > offset) await this.#host.saveRecoveryPoints()
  }

  #endAt(endOffset: Offset): void {
    this.#logEndOffset = endOffset
    this.#flusher.truncateTo(endOffset)
    if (this.#highWatermark > endOffset) this.#highWatermark = endOffset
    if (this.#logStartOffset > endOffset) this.#logStartOffset = endOffset
    if (this.#cleanedOffset > endOffset) this.#cleanedOffset = endOffset
    this.#epochs.truncateFromEnd(endOffset)
    this.#onTruncated?.(endOffset)
  }

  async #finishTruncation(): Promise<void> {
    if (this.#cleanedOffset >= 0) await this.#host.saveCleanedOffsets()
    await writeEpochs(this.#environment.platform.files, this.directory, this.#storableEpochs())
    this.#unstoredEpochs = false
    this.#flusher.beginSync()
    await this.#syncEverything()
    this.#recoveryPointCap = -1
    this.#flusher.moveTo(this.#logEndOffset)
    this.#flusher.rejectWaiters(
      new StorageError(`Records of ${this.topic}-${this.partition} were truncated`, this.directory),
    )
  }

  async #rebuildProducers(): Promise<void> {
    const snapshots = await this.#store.removeSnapshotsAbove(this.#logEndOffset)
    const rebuilt = await replayProducers({
      files: this.#environment.platform.files,
      directory: this.directory,
      segments: this.#store.segments,
      upTo: this.#logEndOffset,
      snapshots,
    })
    this.#producers = rebuilt.producers
    this.#store.noteSnapshot(rebuilt.snapshotOffset)
    this.expireProducers(this.#environment.platform.clock.now())
  }

  async deleteRecordsBefore(offset: Offset, limit: Offset): Promise<void> {
    this.#requireOnline()
    assert(offset <= limit && limit <= this.#logEndOffset, 'records are deleted up to the high watermark at most')
    await this.#exclusive(() => this.#moveLogStart(offset))
  }

  /**
   * The checkpoint first: after a crash, files below it are removed rather than missed, and the log starts no lower than anyone was
   * told before.
   */
  async #moveLogStart(offset: Offset): Promise<void> {
    if (offset <= this.#logStartOffset) return
    this.#nextLogStart = offset
    try {
      if (this.#store.hasFiles) await this.#host.saveLogStarts()
    } finally {
      this.#nextLogStart = undefined
    }
    this.#logStartOffset = offset
    if (this.#epochs.truncateFromStart(offset)) this.#unstoredEpochs = true
    this.#listener?.onLogStartMoved(offset)
  }

  /** Drops segments at the start that are too old, too much, or below the log start. */
  async enforceRetention(nowMs: number): Promise<void> {
    const store = this.#store
    // A cleaning needs the segments, and retention follows it.
    if (!store.hasFiles || !this.isOnline || this.#cleaning.isTaken) return
    await this.#exclusiveWithoutCleaning(async () => {
      if (!store.hasFiles) return // it was empty, and has moved meanwhile to where it has no folder yet
      let count = await countExpired(this.#asRetained(), nowMs, this.#environment.platform.files)
      if (count === store.segments.length) {
        // The active one too, unless something was appended meanwhile.
        if (this.#logEndOffset > this.#stableOffset) {
          count--
        } else {
          this.#roll(this.#logEndOffset)
          await this.#environment.scheduler.run('log', () => this.#syncEverything())
        }
      }
      if (count === 0) return
      const next = store.segments[count]
      assert(next !== undefined, 'a segment stays')
      await this.#moveLogStart(next.baseOffset)
      await store.removeFirst(count, this.#config.fileDeleteDelayMs)
    })
  }

  #asRetained(): RetainedLog {
    const { config, sizeBytes, logStartOffset, logEndOffset } = this
    return {
      config,
      sizeBytes,
      logStartOffset,
      logEndOffset,
      segments: this.#store.segments,
      stableOffset: this.#stableOffset,
    }
  }

  /** Committed and on disk; exclusive. */
  get #stableOffset(): Offset {
    return Math.min(this.#highWatermark, this.flushedOffset)
  }

  // Compaction

  /**
   * Runs `work` while the segments that are closed stay as they are. Undefined: it can't be now, or the log needed its
   * segments for something else before the work was done.
   */
  async whileCleaning<T>(work: (log: LogInCleaning) => Promise<T>): Promise<T | undefined> {
    if (!this.isOnline) return undefined
    return await this.#cleaning.take((signal) => work(this.#inCleaning(signal)))
  }

  #inCleaning(signal: AbortSignal): LogInCleaning {
    const { directory, config, logStartOffset, logEndOffset, cleanedOffset } = this
    const closedSegments = this.#store.closed
    return {
      directory,
      config,
      logStartOffset,
      logEndOffset,
      cleanedOffset,
      signal,
      stableOffset: this.#stableOffset,
      closedSegments,
      openOffset: this.#store.segments[closedSegments.length]?.baseOffset ?? logEndOffset,
      committedBatches: () => this.#producers.committedBatches(this.#highWatermark),
      confirmRecoveryPoint: async (offset) => {
        assert(this.recoveryPoint >= offset, 'what is compacted was flushed')
        await this.#host.saveRecoveryPoints()
        signal.throwIfAborted()
      },
      replaceSegments: async (old, cleaned) => {
        await this.#exclusive(async () => {
          if (signal.aborted) return
          const replaced = this.#store.replace(old, cleaned, this.#config.fileDeleteDelayMs)
          this.#tail.dropBelow(cleaned.endOffset)
          await replaced
        })
        signal.throwIfAborted()
      },
    }
  }

  /** Everything below `offset` was compacted. Durable when it resolves. */
  async noteCleaned(offset: Offset): Promise<void> {
    this.#cleanedOffset = offset
    await this.#host.saveCleanedOffsets()
  }

  // Moving to another directory

  /** Counts truncations, from when they begin: what was read across one is read again. */
  get rewrites(): number {
    return this.#store.rewrites
  }

  /**
   * Runs `work` while the log isn't compacted: a copy of its records must not meet half of that. `onTruncated` is told where the
   * log ends after each truncation meanwhile, in the turn in which it does.
   */
  async whileCopied<T>(onTruncated: (endOffset: Offset) => void, work: () => Promise<T>): Promise<T> {
    return await this.#cleaning.without(async () => {
      this.#onTruncated = onTruncated
      try {
        return await work()
      } finally {
        this.#onTruncated = undefined
        this.#mirror = undefined
      }
    })
  }

  /** All that is appended from now on goes to `mirror` as well, until the log is truncated, or is told to stop that. */
  mirrorTo(mirror: ((batches: Buffer) => void) | undefined): void {
    this.#mirror = mirror
  }

  /** Of a copy: its original ends at `offset`, and there is no record between. */
  skipTo(offset: Offset): void {
    this.#requireOnline()
    assert(offset > this.#logEndOffset, 'the copy ends before the offset')
    try {
      this.#store.roll(offset, this.#encodeProducers())
    } catch (error) {
      throw this.#unlessOutOfFiles(error)
    }
    this.#logEndOffset = offset
  }

  /**
   * Goes on in the files of `copy`, which holds the same records and is given all that is appended: nobody who uses this log
   * notices. False, and nothing has changed, when the copy is not the same any more. Throws what the copy's directory, or this
   * one's, fails with; in the first case nothing has changed.
   *
   * No sync, truncation or retention comes between, so that nothing is told durable that only one of the two has: a crash at
   * any step leaves a whole one, or two that both have all that was told durable, and notes by which either is known when it is alone.
   * `move.onSwitched` is called in the turn of the switch; the files of before are those of nobody then, in a folder that is
   * called `move.deletedFolder`.
   */
  async moveInto(copy: LocalLog, move: MoveTarget): Promise<boolean> {
    return await this.#mutex.run(async () => {
      this.#requireOnline()
      if (!this.#isSameAs(copy)) return false
      let isSwitched = false
      try {
        await move.noteArrival()
        await move.prepare()
        isSwitched = await copy.#exclusive(async () => {
          if (!this.#isSameAs(copy)) return false
          await copy.#becomeDurable(move)
          return this.#switchInto(copy, move)
        })
      } finally {
        // The copy may be found under the partition's name, whatever became of it: before anything more is told durable here.
        if (!isSwitched) await move.takeBack()
      }
      if (isSwitched) await this.#confirmSwitch(copy, move)
      return isSwitched
    })
  }

  #isSameAs(copy: LocalLog): boolean {
    return (
      this.#mirror !== undefined &&
      copy.#logEndOffset === this.#logEndOffset &&
      copy.#logStartOffset === this.#logStartOffset
    )
  }

  /** A copy: all on disk, under the name that a start takes for the partition's. */
  async #becomeDurable({ host, folder }: MoveTarget): Promise<void> {
    const { platform, scheduler } = this.#environment
    const target = this.#logEndOffset
    await scheduler.run('log', () => this.#syncEverything())
    this.#flusher.moveTo(target)
    await Promise.all([host.saveRecoveryPoints(), host.saveLogStarts(), host.saveCleanedOffsets()])
    this.#store.rename(folder)
    await platform.files.syncDirectory(host.path)
  }

  /** In one turn. False: this log or the copy has failed meanwhile, and the copy has its old name again. */
  #switchInto(copy: LocalLog, { host, copyFolder, deletedFolder, onSwitched }: MoveTarget): boolean {
    if (!this.isOnline || !copy.isOnline || !this.#isSameAs(copy)) {
      copy.#store.rename(copyFolder)
      return false
    }
    try {
      this.#store.rename(deletedFolder)
    } catch (error) {
      this.#fail(error)
      copy.#store.rename(copyFolder)
      return false
    }
    this.#mirror = undefined
    this.#store.takeOver(copy.#store, host)
    this.#host = host
    this.#unstoredEpochs = true
    this.#cleanedOffset = copy.#cleanedOffset
    copy.#release('closed')
    onSwitched()
    return true
  }

  /** What is told durable from here on is in the new files only: those of before must not come back. */
  async #confirmSwitch(copy: LocalLog, { confirm }: MoveTarget): Promise<void> {
    await confirm()
    // The checkpoint there has the copy's recovery point already: what cuts the log below it must know to lower it first.
    this.#flusher.moveTo(copy.flushedOffset)
    if (this.#logEndOffset > this.flushedOffset) this.#flusher.request()
  }

  /** `#exclusive`, for work on segments that a cleaning may be reading: it is aborted first. */
  async #exclusiveWithoutCleaning(work: () => Promise<void>): Promise<void> {
    await this.#cleaning.without(() => this.#exclusive(work))
  }

  // The end

  /** Everything to disk, indexes and producer state included, so that the next start finds it without looking at records. */
  async close(): Promise<void> {
    await this.#appendQueue.drained()
    if (this.#state !== 'online') return
    await this.#exclusiveWithoutCleaning(async () => {
      if (this.#store.hasFiles) {
        await this.#environment.scheduler.run('log', async () => {
          await this.#store.storeState(this.#logEndOffset, () => this.#encodeProducers())
          await this.#syncEverything()
        })
        this.#flusher.moveTo(this.#logEndOffset)
      }
      this.#release('closed')
    })
  }

  /** The partition is deleted, or its directory is opened anew: no call is under way when it resolves. */
  async abandon(): Promise<void> {
    if (this.isReadable) this.#release('closed')
    await this.#cleaning.ended()
    await this.#mutex.run(async () => {})
    this.#store.discardFiles()
  }

  /** A write or sync failed somewhere in the directory. */
  goOffline(error: StorageError): void {
    if (this.#state !== 'online') return
    this.#fault = error
    this.#release(error.isDiskFull ? 'full' : 'offline')
    this.#listener?.onFailed(error)
  }

  #release(state: 'full' | 'offline' | 'closed'): void {
    this.#state = state
    this.#cleaning.abort()
    this.#flusher.stop(this.#notOnline())
    if (state === 'full') return
    this.#tail.clear()
    this.#store.forgetIndexes()
    if (state === 'closed') this.#store.discardFiles()
  }

  /** Nothing was written when a file could not be opened: that is told, and the next one may do. */
  #unlessOutOfFiles(error: unknown): unknown {
    return isOutOfFiles(error) ? storageErrorOf(error, this.directory) : this.#fail(error)
  }

  /** What a fault of the disk becomes, which takes the whole directory offline; a bug takes this log, and stays what it is. */
  #fail(error: unknown): unknown {
    if (this.#state === 'closed') return this.#notOnline() // its files were taken away while they were used
    if (!(error instanceof RookeryError)) {
      const { topic, partition } = this
      this.#environment.logger.error({ topic, partition, error }, 'log stopped by a fault')
      this.goOffline(
        new StorageError(`Log of ${topic}-${partition} stopped by a fault: ${messageOf(error)}`, this.directory),
      )
      return error
    }
    // A write that failed (indexes before a sync, say) leaves nothing in doubt: what it should have written isn't there.
    if (error instanceof FileError && error.operation === 'sync' && !isOutOfFiles(error)) this.#syncFailed = true
    const failure = storageErrorOf(error, this.directory)
    if (this.#state === 'online') this.#host.fail(failure)
    return failure
  }

  /** A damaged batch is one partition's trouble; a disk that doesn't answer is the directory's. */
  #readFault(error: unknown): unknown {
    return error instanceof StorageError && error.cause === undefined ? error : this.#unlessOutOfFiles(error)
  }

  async #exclusive<T>(work: () => Promise<T>): Promise<T> {
    return await this.#mutex.run(async () => {
      this.#requireOnline()
      try {
        return await work()
      } catch (error) {
        throw this.#fail(error)
      }
    })
  }

  #requireOnline(): void {
    if (this.#state !== 'online') throw this.#notOnline()
  }

  #notOnline(): StorageError {
    return this.#fault ?? new StorageError(`Log of ${this.topic}-${this.partition} is closed`, this.directory)
  }
}
