import { join } from 'node:path'
import { assert, type LeaderEpoch, type Offset, type ProducerEpoch, type ProducerId, type Uuid } from '../base/index.ts'
import type { TopicConfig } from '../config/index.ts'
import { FileError } from '../platform/index.ts'
import { BatchView } from '../protocol/index.ts'
import { checkReplicated, type Validation, validateBatch } from './batch-validator.ts'
import { partitionMetadataFile, partitionMetadataText, writeEpochs } from './checkpoint-files.ts'
import type { LogEnvironment, LogHost } from './environment.ts'
import { EpochCache, type EpochEntry } from './epoch-cache.ts'
import { StorageError, storageErrorOf } from './errors.ts'
import { type FlushedLog, Flusher } from './flusher.ts'
import type { PooledFile } from './handle-pool.ts'
import { Mutex } from './mutex.ts'
import { replayBatch, replayProducers, snapshotName } from './producer-replay.ts'
import { encodeProducerSnapshot } from './producer-snapshot.ts'
import type { ProducerState } from './producer-state.ts'
import { maxRelativeOffset, Segment } from './segment.ts'
import type { LogTail } from './tail-cache.ts'
import { findMaxTimestamp, findTimestamp, type SearchedLog } from './timestamp-search.ts'
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

/** Reads so near to the end of the log are from the page cache: reading them on the event loop beats the thread pool. */
const hotBytes = 32 * 1024 * 1024
const maxSyncReadBytes = 1024 * 1024

const nothingRead: ReadResult = Object.freeze({
  chunks: Object.freeze([]) as readonly Buffer[],
  sizeBytes: 0,
  release: () => {},
})

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

/** A segment that was closed, with what must be durable before its records count as flushed. */
interface RolledSegment {
  readonly segment: Segment
  readonly snapshotOffset: Offset
  readonly snapshot: Buffer
}

/**
 * `PartitionLog` over segments in a folder.
 *
 * Everything that moves the end of the log happens in one turn of the event loop: check, roll, write, indexes, LEO. What
 * changes the log elsewhere (sync, truncation, retention, close) goes through one mutex, so that none sees another
 * half done. Files appear with the first append; until then only the empty folder exists.
 *
 * States: online; offline after a fault, for good (the directory makes a new `LocalLog` when it comes back); closed.
 */
export class LocalLog implements PartitionLog {
  readonly topic: string
  readonly topicId: Uuid
  readonly partition: number
  readonly directory: string
  readonly #environment: LogEnvironment
  readonly #host: LogHost
  readonly #mutex = new Mutex()
  readonly #epochs = new EpochCache()
  readonly #tail: LogTail
  readonly #flusher: Flusher
  #producers: ProducerState
  #config: TopicConfig
  #listener: LogListener | undefined
  #segments: Segment[]
  #hasFiles: boolean
  #sizeBytes = 0
  #logStartOffset: Offset
  #logEndOffset: Offset
  #highWatermark: Offset
  /** Caps the recovery point while a truncation is under way: -1 for none. */
  #recoveryPointCap: Offset = -1
  #state: 'online' | 'offline' | 'closed' = 'online'
  #fault: StorageError | undefined
  #syncFailed = false
  /** Counts truncations: a read that began before one is done again. */
  #truncations = 0
  /** Random part of `segment.ms`, drawn for each segment. */
  #rollJitterMs: number
  /** Settles when the appends that wait for unpacking are done; undefined when none waits. */
  #queuedAppends: Promise<unknown> | undefined

  #rolled: RolledSegment[] = []
  #newFiles: PooledFile[] = []
  #changedNames = 0
  #syncedNames = 0
  #mustSyncParent = false
  #unstoredEpochs = false
  #snapshotOffset: Offset

  constructor(options: {
    readonly environment: LogEnvironment
    readonly host: LogHost
    readonly topic: string
    readonly topicId: Uuid
    readonly partition: number
    readonly directory: string
    readonly config: TopicConfig
    readonly loaded: LoadedLog
  }) {
    const { loaded } = options
    this.#environment = options.environment
    this.#host = options.host
    this.topic = options.topic
    this.topicId = options.topicId
    this.partition = options.partition
    this.directory = options.directory
    this.#config = options.config
    this.#segments = loaded.segments
    this.#hasFiles = loaded.segments.length > 0
    this.#producers = loaded.producers
    this.#snapshotOffset = loaded.snapshotOffset
    this.#epochs.load(loaded.epochs)
    for (const segment of loaded.segments) this.#sizeBytes += segment.sizeBytes
    this.#logStartOffset = loaded.logStartOffset
    this.#logEndOffset = loaded.segments.at(-1)?.endOffset ?? loaded.logStartOffset
    this.#highWatermark =
      loaded.highWatermark < 0 ? 0 : Math.max(this.#logStartOffset, Math.min(loaded.highWatermark, this.#logEndOffset))
    this.#tail = options.environment.tailCache.openTail()
    const { platform, scheduler, probe } = options.environment
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

  get logStartOffset(): Offset {
    return this.#logStartOffset
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
    return this.#sizeBytes
  }

  get acksWaitForFlush(): boolean {
    return this.#config.flushMessages === 1
  }

  get isOnline(): boolean {
    return this.#state === 'online'
  }

  /** There is something on disk that a checkpoint can speak of. */
  get hasFiles(): boolean {
    return this.#hasFiles
  }

  /** Everything below is on disk and was checked: recovery begins here. */
  get recoveryPoint(): Offset {
    return this.#recoveryPointCap < 0 ? this.flushedOffset : Math.min(this.flushedOffset, this.#recoveryPointCap)
  }

  get #firstSegmentOffset(): Offset {
    return this.#segments[0]?.baseOffset ?? this.#logStartOffset
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
    this.#flushWhenDue()
  }

  // Appending

  appendAsLeader(records: Buffer, options: AppendOptions): AppendResult | Promise<AppendResult> {
    this.#requireOnline()
    if (this.#queuedAppends !== undefined) return this.#queueAppend(this.#queuedAppends, records, options)
    const validation = this.#validate(records, options)
    if (!(validation instanceof Promise)) return this.#appendValidated(validation, options)
    return this.#trackQueue(validation.then((settled) => this.#appendValidated(settled, options)))
  }

  #validate(records: Buffer, options: AppendOptions): Validation | Promise<Validation> {
    const { clock, offload } = this.#environment.platform
    return validateBatch(records, options, this.#config, clock.now(), offload)
  }

  #queueAppend(previous: Promise<unknown>, records: Buffer, options: AppendOptions): Promise<AppendResult> {
    return this.#trackQueue(
      previous.then(async () => this.#appendValidated(await this.#validate(records, options), options)),
    )
  }

  #trackQueue(result: Promise<AppendResult>): Promise<AppendResult> {
    const settled = result.then(
      () => {},
      () => {},
    )
    this.#queuedAppends = settled
    void settled.then(() => {
      if (this.#queuedAppends === settled) this.#queuedAppends = undefined
    })
    return result
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
  }

  /** Writes whole batches to the active segment. */
  #write(batches: Buffer): void {
    try {
      if (!this.#hasFiles) this.#createFiles()
      this.#active.append(batches, this.#config)
    } catch (error) {
      throw this.#fail(error)
    }
    this.#sizeBytes += batches.length
    this.#environment.probe.appendedBytes.value += batches.length
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

  get #active(): Segment {
    const active = this.#segments.at(-1)
    assert(active !== undefined, 'a log with files has a segment')
    return active
  }

  /** The first files of a folder: whose it is, and the first segment. The next flush makes them durable. */
  #createFiles(): void {
    const { handles, platform } = this.#environment
    const metadata = handles.file(join(this.directory, partitionMetadataFile))
    metadata.writeSync([partitionMetadataText(this.topicId)], 0)
    this.#newFiles.push(metadata)
    const segment = Segment.empty(this.#environment, this.directory, this.#logEndOffset, platform.clock.now())
    segment.log.createSync()
    this.#segments = [segment]
    this.#hasFiles = true
    this.#changedNames++
    this.#mustSyncParent = true
  }

  #rollOrFail(next: BatchView): void {
    // Behind a hole that compaction left, relative offsets may not reach from the LEO.
    const isFar = next.lastOffset - this.#logEndOffset > maxRelativeOffset
    try {
      this.#roll(isFar ? next.baseOffset : this.#logEndOffset)
    } catch (error) {
      throw this.#fail(error)
    }
  }

  /** Whether the batch can't go into the active segment, behind `pendingBytes` that are about to be written. */
  #mustRoll(view: BatchView, pendingBytes: number): boolean {
    if (!this.#hasFiles) return false
    const active = this.#active
    const { segmentBytes, segmentMs } = this.#config
    if (active.isFullFor(view.sizeBytes, pendingBytes, view.lastOffset, segmentBytes, this.#config)) return true
    if (active.sizeBytes === 0) return false
    return active.ageMs(this.#environment.platform.clock.now(), view.maxTimestamp) > segmentMs - this.#rollJitterMs
  }

  /** Closes the active segment and begins the next. What that leaves to sync is the next flush's. */
  #roll(baseOffset: Offset): void {
    const old = this.#active
    if (old.sizeBytes === 0) return
    old.noteLargestTimestamp()
    const snapshot = encodeProducerSnapshot(this.#producers.entries())
    this.#rolled.push({ segment: old, snapshotOffset: this.#logEndOffset, snapshot })
    const next = Segment.empty(this.#environment, this.directory, baseOffset, this.#environment.platform.clock.now())
    next.log.createSync()
    this.#segments.push(next)
    this.#changedNames++
    this.#rollJitterMs = this.#drawJitter()
    this.#flusher.request()
  }

  #drawJitter(): number {
    const { segmentJitterMs, segmentMs } = this.#config
    const most = Math.min(segmentJitterMs, segmentMs, 2 ** 48 - 1)
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

  /** Makes durable all that the log holds when this is called: contents first, then the names that lead to them. */
  async #syncEverything(): Promise<void> {
    const active = this.#segments.at(-1)
    if (active === undefined) return
    const rolled = this.#rolled
    const newFiles = this.#newFiles
    const changedNames = this.#changedNames
    const mustSyncParent = this.#mustSyncParent
    const mustStoreEpochs = this.#unstoredEpochs
    this.#rolled = []
    this.#newFiles = []
    this.#mustSyncParent = false
    this.#unstoredEpochs = false
    for (const file of newFiles) {
      await file.sync()
      file.discard()
    }
    for (const { segment, snapshotOffset, snapshot } of rolled) {
      await segment.log.sync()
      await segment.storeIndexes()
      await this.#storeSnapshot(snapshotOffset, snapshot)
      this.#environment.indexCache.touch(segment)
    }
    if (mustStoreEpochs) await writeEpochs(this.#environment.platform.files, this.directory, this.#storableEpochs())
    await active.log.sync()
    if (this.#syncedNames < changedNames) {
      await this.#environment.platform.files.syncDirectory(this.directory)
      this.#syncedNames = changedNames
    }
    if (mustSyncParent) await this.#environment.platform.files.syncDirectory(this.#host.path)
  }

  /** Epochs without a record yet are not stored: whoever leads after a restart has a newer one. */
  #storableEpochs(): readonly EpochEntry[] {
    return this.#epochs.entries.filter((entry) => entry.startOffset < this.#logEndOffset)
  }

  async #storeSnapshot(offset: Offset, content: Buffer): Promise<void> {
    const file = this.#environment.handles.file(join(this.directory, snapshotName(offset)))
    try {
      await file.write([content], 0)
      await file.truncate(content.length)
      await file.sync()
    } finally {
      file.discard()
    }
    this.#snapshotOffset = offset
  }

  // Reading

  read(options: ReadOptions): ReadResult | OffsetOutOfRange | Promise<ReadResult | OffsetOutOfRange> {
    this.#requireOnline()
    const { fetchOffset, maxBytes, minOneBatch } = options
    if (fetchOffset < this.#logStartOffset || fetchOffset > this.#logEndOffset) {
      return { outOfRange: true, logStartOffset: this.#logStartOffset, logEndOffset: this.#logEndOffset }
    }
    const endOffset = Math.min(options.endOffset, this.#logEndOffset)
    if (fetchOffset >= endOffset) return nothingRead
    const cached = this.#tail.read(fetchOffset, endOffset, maxBytes, minOneBatch)
    if (cached !== undefined) {
      this.#environment.probe.tailReadBytes.value += cached.sizeBytes
      return cached
    }
    const active = this.#active
    if (fetchOffset >= active.baseOffset && maxBytes <= maxSyncReadBytes && active.bytesFrom(fetchOffset) <= hotBytes) {
      try {
        const found = active.readSync(fetchOffset, endOffset, maxBytes, minOneBatch)
        if (found !== null) return found === undefined ? nothingRead : this.#readResult(found)
      } catch (error) {
        throw this.#readFault(error)
      }
    }
    return this.#readFiles({ fetchOffset, endOffset, maxBytes, minOneBatch })
  }

  async #readFiles(options: ReadOptions): Promise<ReadResult | OffsetOutOfRange> {
    const truncations = this.#truncations
    const { fetchOffset, endOffset, maxBytes, minOneBatch } = options
    for (let index = this.#segmentIndexOf(fetchOffset); ; index++) {
      const segment = this.#segments[index]
      if (segment === undefined || segment.baseOffset >= endOffset) return nothingRead
      let found: { bytes: Buffer; release(): void } | undefined
      try {
        found = await segment.read(fetchOffset, endOffset, maxBytes, minOneBatch)
      } catch (error) {
        // A truncation or retention took the file away meanwhile: the answer is what the log says now.
        if (this.#truncations !== truncations || fetchOffset < this.#logStartOffset) return this.read(options)
        throw this.#readFault(error)
      }
      if (this.#truncations !== truncations) {
        found?.release()
        return this.read(options)
      }
      if (segment !== this.#active && this.#segments.includes(segment)) this.#touchIndexes(segment)
      // Undefined: the segment's last batches, up to the next segment, were compacted away.
      if (found !== undefined) return this.#readResult(found)
    }
  }

  #readResult(found: { bytes: Buffer; release(): void }): ReadResult {
    const sizeBytes = found.bytes.length
    if (sizeBytes === 0) {
      found.release()
      return nothingRead
    }
    this.#environment.probe.fileReadBytes.value += sizeBytes
    return { chunks: [found.bytes], sizeBytes, release: found.release }
  }

  /** Index of the segment that holds `offset`. */
  #segmentIndexOf(offset: Offset): number {
    const segments = this.#segments
    let low = 0
    let high = segments.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (segments[middle]!.baseOffset <= offset) low = middle
      else high = middle - 1
    }
    return low
  }

  #touchIndexes(segment: Segment): void {
    if (segment.indexes !== undefined && !this.#rolled.some((rolled) => rolled.segment === segment)) {
      this.#environment.indexCache.touch(segment)
    }
  }

  offsetForTimestamp(timestamp: number, endOffset: Offset): Promise<TimestampAndOffset | undefined> {
    return this.#search(endOffset, (log) => findTimestamp(log, timestamp))
  }

  offsetOfMaxTimestamp(endOffset: Offset): Promise<TimestampAndOffset | undefined> {
    return this.#search(endOffset, findMaxTimestamp)
  }

  async #search(
    endOffset: Offset,
    find: (log: SearchedLog) => Promise<{ timestamp: number; offset: Offset } | undefined>,
  ): Promise<TimestampAndOffset | undefined> {
    this.#requireOnline()
    const segments = this.#segments.slice()
    try {
      const found = await find({
        segments,
        logStartOffset: this.#logStartOffset,
        endOffset: Math.min(endOffset, this.#logEndOffset),
        offload: this.#environment.platform.offload,
      })
      return found === undefined ? undefined : { ...found, leaderEpoch: this.#epochs.epochAt(found.offset) }
    } catch (error) {
      // A segment went meanwhile: the answer is what the log says now.
      if (segments.some((segment) => !this.#segments.includes(segment))) return await this.#search(endOffset, find)
      throw this.#readFault(error)
    } finally {
      for (const segment of segments) {
        if (segment !== this.#active && this.#segments.includes(segment)) this.#touchIndexes(segment)
      }
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
    await this.#queuedAppends
    await this.#exclusive(async () => {
      if (offset >= this.#logEndOffset) {
        // An epoch that began here and has no record: the leader of now need not know it.
        this.#epochs.truncateFromEnd(this.#logEndOffset)
        return
      }
      if (offset <= this.#firstSegmentOffset) return await this.#startAfresh(Math.max(offset, 0))
      const cut = this.#segments.findLast((segment) => segment.baseOffset < offset)
      assert(cut !== undefined, 'the first segment begins below the offset')
      const end = await cut.endBefore(offset)
      await this.#lowerRecoveryPoint(end.endOffset)
      const logStartBefore = this.#logStartOffset
      this.#truncations++
      this.#tail.clear()
      while (this.#active !== cut) await this.#removeLastSegment()
      this.#rolled = this.#rolled.filter(({ segment }) => segment !== cut && this.#segments.includes(segment))
      this.#environment.indexCache.forget(cut)
      this.#sizeBytes -= await cut.truncateTo(end)
      this.#endAt(end.endOffset)
      await this.#rebuildProducers()
      await this.#finishTruncation()
      if (this.#logStartOffset !== logStartBefore) await this.#host.saveLogStarts()
    })
  }

  async truncateFullyAndStartAt(offset: Offset): Promise<void> {
    this.#requireOnline()
    await this.#queuedAppends
    await this.#exclusive(() => this.#startAfresh(offset))
  }

  /**
   * At every moment a crash finds the old log, an early end of it, or an empty one at `offset`: the log start says where it
   * goes on when no segment does, and segments go from the end.
   */
  async #startAfresh(offset: Offset): Promise<void> {
    if (!this.#hasFiles && offset === 0) return
    await this.#lowerRecoveryPoint(Math.min(offset, this.#firstSegmentOffset))
    this.#truncations++
    this.#tail.clear()
    this.#logStartOffset = offset
    await this.#host.saveLogStarts()
    while (this.#segments.length > 0) await this.#removeLastSegment()
    this.#rolled = []
    this.#sizeBytes = 0
    this.#endAt(offset)
    this.#epochs.clear()
    this.#producers.clear()
    await this.#removeSnapshotsAbove(-1)
    if (this.#hasFiles) {
      const segment = Segment.empty(this.#environment, this.directory, offset, this.#environment.platform.clock.now())
      segment.log.createSync()
      this.#segments = [segment]
    } else {
      this.#createFiles()
    }
    await this.#finishTruncation()
    await this.#host.saveLogStarts()
    this.#listener?.onLogStartMoved(offset)
  }

  /** Before records go that were said to be on disk, the checkpoint must no longer say so. */
  async #lowerRecoveryPoint(offset: Offset): Promise<void> {
    const before = this.recoveryPoint
    this.#recoveryPointCap = offset
    if (before > offset) await this.#host.saveRecoveryPoints()
  }

  async #removeLastSegment(): Promise<void> {
    const segment = this.#segments.pop()
    assert(segment !== undefined, 'there is a segment to remove')
    this.#sizeBytes -= segment.sizeBytes
    this.#environment.indexCache.forget(segment)
    await segment.remove()
  }

  #endAt(endOffset: Offset): void {
    this.#logEndOffset = endOffset
    this.#flusher.truncateTo(endOffset)
    if (this.#highWatermark > endOffset) this.#highWatermark = endOffset
    if (this.#logStartOffset > endOffset) this.#logStartOffset = endOffset
    this.#epochs.truncateFromEnd(endOffset)
  }

  async #finishTruncation(): Promise<void> {
    await writeEpochs(this.#environment.platform.files, this.directory, this.#storableEpochs())
    this.#unstoredEpochs = false
    this.#changedNames++
    this.#flusher.beginSync()
    await this.#syncEverything()
    this.#recoveryPointCap = -1
    this.#flusher.moveTo(this.#logEndOffset)
    this.#flusher.rejectWaiters(
      new StorageError(`Records of ${this.topic}-${this.partition} were truncated`, this.directory),
    )
  }

  async #rebuildProducers(): Promise<void> {
    await this.#removeSnapshotsAbove(this.#logEndOffset)
    const rebuilt = await replayProducers({
      files: this.#environment.platform.files,
      directory: this.directory,
      segments: this.#segments,
      logStartOffset: this.#logStartOffset,
      upTo: this.#logEndOffset,
    })
    this.#producers = rebuilt.producers
    this.#snapshotOffset = rebuilt.snapshotOffset
    this.expireProducers(this.#environment.platform.clock.now())
  }

  async #removeSnapshotsAbove(offset: Offset): Promise<void> {
    const { files } = this.#environment.platform
    for (const { name } of (await files.list(this.directory)) ?? []) {
      if (!name.endsWith('.snapshot') || Number.parseInt(name, 10) <= offset) continue
      await files.remove(join(this.directory, name))
    }
    if (this.#snapshotOffset > offset) this.#snapshotOffset = -1
  }

  async deleteRecordsBefore(offset: Offset, limit: Offset): Promise<void> {
    this.#requireOnline()
    assert(offset <= limit && limit <= this.#logEndOffset, 'records are deleted up to the high watermark at most')
    await this.#exclusive(() => this.#moveLogStart(offset))
  }

  /** The checkpoint first: after a crash, files below it are removed rather than missed. */
  async #moveLogStart(offset: Offset): Promise<void> {
    if (offset <= this.#logStartOffset) return
    this.#logStartOffset = offset
    if (this.#epochs.truncateFromStart(offset)) this.#unstoredEpochs = true
    if (this.#hasFiles) await this.#host.saveLogStarts()
    this.#listener?.onLogStartMoved(offset)
  }

  /** Drops segments at the start that are too old, too much, or below the log start. */
  async enforceRetention(nowMs: number): Promise<void> {
    if (!this.#hasFiles || this.#state !== 'online') return
    await this.#exclusive(async () => {
      let count = await this.#countExpired(nowMs)
      if (count === this.#segments.length) {
        // The active one too, unless something was appended meanwhile.
        if (this.#logEndOffset > Math.min(this.#highWatermark, this.flushedOffset)) {
          count--
        } else {
          this.#roll(this.#logEndOffset)
          await this.#environment.scheduler.run('log', () => this.#syncEverything())
        }
      }
      if (count === 0) return
      const next = this.#segments[count]
      assert(next !== undefined, 'a segment stays')
      await this.#moveLogStart(next.baseOffset)
      const renamed: string[] = []
      for (const segment of this.#segments.splice(0, count)) {
        this.#sizeBytes -= segment.sizeBytes
        this.#environment.indexCache.forget(segment)
        renamed.push(...(await segment.renameToDeleted()))
      }
      this.#changedNames++
      this.#host.removeLater(renamed, this.#config.fileDeleteDelayMs)
    })
  }

  /** How many segments from the start on may go: none that holds records at or above the high watermark, or unsynced. */
  async #countExpired(nowMs: number): Promise<number> {
    const { cleanupPolicy, retentionMs, retentionBytes } = this.#config
    let excessBytes = this.#sizeBytes - retentionBytes
    let count = 0
    for (const segment of this.#segments) {
      const endOffset = this.#segments[count + 1]?.baseOffset ?? this.#logEndOffset
      if (segment.sizeBytes === 0 || endOffset > this.#highWatermark || endOffset > this.flushedOffset) break
      const isBelowStart = endOffset <= this.#logStartOffset && segment !== this.#active
      const isExcess = cleanupPolicy.delete && excessBytes >= segment.sizeBytes
      if (!isBelowStart && !isExcess) {
        if (!cleanupPolicy.delete || retentionMs === Number.POSITIVE_INFINITY) break
        const { timestamp } = await segment.largestTimestamp()
        const writtenMs = timestamp >= 0 ? timestamp : await this.#modifiedMs(segment)
        if (nowMs - writtenMs <= retentionMs) break
      }
      excessBytes -= segment.sizeBytes
      count++
    }
    return count
  }

  async #modifiedMs(segment: Segment): Promise<number> {
    const stat = await this.#environment.platform.files.stat(segment.log.path)
    return stat?.modifiedMs ?? segment.createdMs
  }

  // The end

  /** Everything to disk, indexes and producer state included, so that the next start finds it without looking at records. */
  async close(): Promise<void> {
    await this.#queuedAppends
    if (this.#state !== 'online') return
    await this.#exclusive(async () => {
      if (this.#hasFiles) {
        await this.#environment.scheduler.run('log', async () => {
          const active = this.#active
          active.noteLargestTimestamp()
          if (await active.storeIndexes()) this.#changedNames++
          if (this.#snapshotOffset !== this.#logEndOffset) {
            await this.#storeSnapshot(this.#logEndOffset, encodeProducerSnapshot(this.#producers.entries()))
            this.#changedNames++
          }
          await this.#syncEverything()
        })
        this.#flusher.moveTo(this.#logEndOffset)
      }
      this.#release('closed')
    })
  }

  /** The partition is deleted, or its directory is opened anew: no call is under way when it resolves. */
  async abandon(): Promise<void> {
    if (this.#state === 'online') this.#release('closed')
    await this.#mutex.run(async () => {})
    for (const segment of this.#segments) segment.log.discard()
  }

  /** A write or sync failed somewhere in the directory. */
  goOffline(error: StorageError): void {
    if (this.#state !== 'online') return
    this.#fault = error
    this.#release('offline')
    this.#listener?.onFailed(error)
  }

  #release(state: 'offline' | 'closed'): void {
    this.#state = state
    this.#tail.clear()
    for (const segment of this.#segments) this.#environment.indexCache.forget(segment)
    if (state === 'closed') for (const segment of this.#segments) segment.log.discard()
    this.#flusher.stop(this.#notOnline())
  }

  /** Takes the whole directory offline, this log with it. */
  #fail(error: unknown): StorageError {
    // A write that failed (indexes before a sync, say) leaves nothing in doubt: what it should have written isn't there.
    if (error instanceof FileError && error.operation === 'sync') this.#syncFailed = true
    const failure = storageErrorOf(error, this.directory)
    if (this.#state === 'online') this.#host.fail(failure)
    return failure
  }

  /** A damaged batch is one partition's trouble; a disk that doesn't answer is the directory's. */
  #readFault(error: unknown): StorageError {
    return error instanceof StorageError && error.cause === undefined ? error : this.#fail(error)
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
