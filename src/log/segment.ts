import { join } from 'node:path'
import { assert, type Offset } from '../base/index.ts'
import { BatchView, batchHeaderBytes, checkBatchShape } from '../protocol/index.ts'
import { scanBatches } from './batch-scan.ts'
import { StorageError } from './errors.ts'
import type { HandlePool, PooledFile } from './handle-pool.ts'
import { OffsetIndex, offsetEntryBytes, TimeIndex, type TimeIndexEntry, timeEntryBytes } from './indexes.ts'
import type { BorrowedBuffer, ReadBuffers } from './read-buffers.ts'

/** Offsets in an index are int32, relative to the segment's base offset. */
export const maxRelativeOffset = 2 ** 31 - 1
/** Read before the batch that is looked for, in the hope that it lies there: an index entry is at most so far away. */
const lookAheadBytes = 8 * 1024
const maxIndexFileBytes = 64 * 1024 * 1024

/** Of the files that come and go with a segment. */
export const segmentExtensions = ['log', 'index', 'timeindex', 'snapshot'] as const

/** The file name that all files of a segment share: the base offset in 20 digits. */
export function segmentFileName(baseOffset: Offset, extension: string): string {
  return `${String(baseOffset).padStart(20, '0')}.${extension}`
}

export interface SegmentLimits {
  readonly segmentIndexBytes: number
  readonly indexIntervalBytes: number
}

export interface SegmentIndexes {
  readonly offsets: OffsetIndex
  readonly times: TimeIndex
}

/** What the segment's caller shares between all segments. */
export interface SegmentFiles {
  readonly handles: HandlePool
  readonly buffers: ReadBuffers
}

/** A place between two batches. */
export interface SegmentEnd {
  readonly position: number
  /** Exclusive. */
  readonly endOffset: Offset
}

/** Whole batches out of a file; `bytes` is a view of a buffer on loan. */
export interface SegmentRead {
  readonly bytes: Buffer
  release(): void
}

/**
 * A stretch of a partition's log: the `.log` file and its two indexes.
 *
 * The indexes live in memory while the segment takes appends and until they are stored; after that they are loaded when
 * someone looks for something, and dropped by `dropIndexes` when memory is short.
 */
export class Segment {
  readonly baseOffset: Offset
  /** First offset after the last batch; exclusive. */
  endOffset: Offset
  sizeBytes: number
  readonly log: PooledFile
  #directory: string
  readonly #files: SegmentFiles
  /** Its names belong to another segment, or to none: nothing is written under them any more. */
  #isRetired: boolean = false
  #indexes: SegmentIndexes | undefined
  /** The files hold what the memory does. */
  #areIndexesStored: boolean = false
  #bytesSinceEntry = 0
  /** Largest timestamp, with the last offset of its batch; undefined when it isn't known yet. */
  #largest: TimeIndexEntry | undefined
  /** Timestamp of the first batch, from which the segment's age counts; undefined when it isn't known yet. */
  #firstTimestamp: number | undefined
  readonly createdMs: number

  /** `indexes`: of the segment that takes appends; left out, they are in files. */
  constructor(options: {
    readonly files: SegmentFiles
    readonly directory: string
    readonly baseOffset: Offset
    readonly endOffset: Offset
    readonly sizeBytes: number
    readonly createdMs: number
    readonly indexes?: SegmentIndexes
  }) {
    this.#files = options.files
    this.#directory = options.directory
    this.baseOffset = options.baseOffset
    this.endOffset = options.endOffset
    this.sizeBytes = options.sizeBytes
    this.createdMs = options.createdMs
    this.#indexes = options.indexes
    this.log = options.files.handles.file(this.#path('log'))
    if (options.sizeBytes === 0) this.#largest = { timestamp: -1, offset: options.baseOffset }
  }

  static empty(files: SegmentFiles, directory: string, baseOffset: Offset, createdMs: number): Segment {
    const indexes = { offsets: new OffsetIndex(baseOffset), times: new TimeIndex(baseOffset) }
    return new Segment({ files, directory, baseOffset, endOffset: baseOffset, sizeBytes: 0, createdMs, indexes })
  }

  get directory(): string {
    return this.#directory
  }

  /** Its folder has another name from this turn on. */
  followFolder(directory: string): void {
    this.#directory = directory
    this.log.path = this.#path('log')
  }

  get indexes(): SegmentIndexes | undefined {
    return this.#indexes
  }

  /** True when a batch of `sizeBytes` that ends at `lastOffset` doesn't fit behind `pendingBytes` not yet written. */
  isFullFor(
    sizeBytes: number,
    pendingBytes: number,
    lastOffset: Offset,
    segmentBytes: number,
    limits: SegmentLimits,
  ): boolean {
    const usedBytes = this.sizeBytes + pendingBytes
    if (usedBytes === 0) return false
    if (usedBytes + sizeBytes > segmentBytes) return true
    if (lastOffset - this.baseOffset > maxRelativeOffset) return true
    const { offsets, times } = this.#requireIndexes()
    return (
      offsets.count >= Math.max(1, Math.floor(limits.segmentIndexBytes / offsetEntryBytes)) ||
      // One entry is kept free for the last one, which is added when the segment is closed.
      times.count >= Math.max(1, Math.floor(limits.segmentIndexBytes / timeEntryBytes) - 1)
    )
  }

  /** Age in milliseconds by which `segment.ms` is measured: by timestamps when there are any, else by the clock. */
  ageMs(nowMs: number, nextTimestamp: number): number {
    const first = this.#firstTimestampSync()
    return first >= 0 ? nextTimestamp - first : nowMs - this.createdMs
  }

  /** Writes whole batches that continue the segment, in one write, and notes them in the indexes. */
  append(batches: Buffer, limits: SegmentLimits): void {
    const start = this.sizeBytes
    this.log.writeSync([batches], start)
    this.sizeBytes = start + batches.length
    const view = new BatchView(batches)
    for (let at = 0; at < batches.length; at += view.sizeBytes) {
      view.moveTo(batches, at)
      this.noteBatch(view, start + at, limits)
    }
  }

  /** Notes the batch at `position` in the indexes: it was just appended, or is found there when they are rebuilt. */
  noteBatch(view: BatchView, position: number, limits: SegmentLimits): void {
    const { offsets, times } = this.#requireIndexes()
    const { lastOffset, sizeBytes } = view
    const maxTimestamp = largestTimestampOf(view)
    if (position === 0) this.#firstTimestamp = maxTimestamp
    if (this.#largest === undefined || maxTimestamp > this.#largest.timestamp) {
      this.#largest = { timestamp: maxTimestamp, offset: lastOffset }
    }
    if (this.#bytesSinceEntry > limits.indexIntervalBytes) {
      offsets.append(lastOffset, position)
      times.maybeAppend(this.#largest.timestamp, this.#largest.offset)
      this.#bytesSinceEntry = 0
    }
    this.#bytesSinceEntry += sizeBytes
    this.#areIndexesStored = false
    this.endOffset = lastOffset + 1
  }

  /** The last entry of the time index, which tells the segment's largest timestamp. No batch is noted after it. */
  noteLargestTimestamp(): void {
    const largest = this.#largest
    const { times } = this.#requireIndexes()
    const { count } = times
    if (largest !== undefined && this.sizeBytes > 0) times.maybeAppend(largest.timestamp, largest.offset)
    if (times.count > count) this.#areIndexesStored = false
  }

  /**
   * Writes both index files as they are in memory, and syncs them. The names are not synced. Answers false when the files
   * are like that already.
   */
  async storeIndexes(): Promise<boolean> {
    if (this.#areIndexesStored || this.#isRetired) return false
    const { offsets, times } = this.#requireIndexes()
    this.#areIndexesStored = true
    await this.#storeFile('index', Buffer.from(offsets.stored))
    if (this.#isRetired) return false
    await this.#storeFile('timeindex', Buffer.from(times.stored))
    return true
  }

  /** How far before the end of the segment a read at `offset` begins; infinity when the indexes are not in memory. */
  bytesFrom(offset: Offset): number {
    return this.#indexes === undefined
      ? Number.POSITIVE_INFINITY
      : this.sizeBytes - this.#indexes.offsets.lookup(offset)
  }

  /**
   * Whole batches, as `PartitionLog.read` says, maybe none; undefined when the segment's last batch lies before
   * `fetchOffset`. `null`: the indexes must be loaded first.
   */
  readSync(
    fetchOffset: Offset,
    endOffset: Offset,
    maxBytes: number,
    minOneBatch: boolean,
  ): SegmentRead | undefined | null {
    if (this.#indexes === undefined) return null
    let position = this.#indexes.offsets.lookup(fetchOffset)
    let wanted = firstReadBytes(maxBytes)
    while (position < this.sizeBytes) {
      const buffer = this.#files.buffers.borrow(Math.min(wanted, this.sizeBytes - position))
      const count = this.log.readSync(buffer.bytes, position)
      const cut = this.#cut(buffer, count, position, fetchOffset, endOffset, maxBytes, minOneBatch)
      if (cut.kind === 'found') return cut.read
      buffer.release()
      if (cut.kind === 'none') return undefined
      position = cut.position
      wanted = cut.wantedBytes
    }
    return undefined
  }

  /** As `readSync`, through the thread pool. */
  async read(
    fetchOffset: Offset,
    endOffset: Offset,
    maxBytes: number,
    minOneBatch: boolean,
  ): Promise<SegmentRead | undefined> {
    const { offsets } = await this.loadIndexes()
    let position = offsets.lookup(fetchOffset)
    let wanted = firstReadBytes(maxBytes)
    while (position < this.sizeBytes) {
      const buffer = this.#files.buffers.borrow(Math.min(wanted, this.sizeBytes - position))
      const count = await this.log.read(buffer.bytes, position)
      const cut = this.#cut(buffer, count, position, fetchOffset, endOffset, maxBytes, minOneBatch)
      if (cut.kind === 'found') return cut.read
      buffer.release()
      if (cut.kind === 'none') return undefined
      position = cut.position
      wanted = cut.wantedBytes
    }
    return undefined
  }

  /** Position of the batch that holds `offset` or is the first after it; `sizeBytes` when there is none. */
  async positionOf(offset: Offset): Promise<number> {
    const { offsets } = await this.loadIndexes()
    let found = this.sizeBytes
    await this.scan(offsets.lookup(offset), (view, position) => {
      if (view.lastOffset < offset) return true
      found = position
      return false
    })
    return found
  }

  /** Visits the headers of the batches from `position` on, until `visit` answers false. Damage is a `StorageError`. */
  async scan(position: number, visit: (view: BatchView, position: number) => boolean): Promise<void> {
    const found = await scanBatches({
      file: this.log,
      buffers: this.#files.buffers,
      from: position,
      to: this.sizeBytes,
      verifyCrc: false,
      visit,
    })
    if (found.fault !== undefined) throw this.#damage(found.endPosition, found.fault)
  }

  /** Largest timestamp with its batch; timestamp -1 in an empty segment. */
  async largestTimestamp(): Promise<TimeIndexEntry> {
    if (this.#largest === undefined) {
      const { times } = await this.loadIndexes()
      this.#largest ??= times.last ?? { timestamp: -1, offset: this.baseOffset }
    }
    return this.#largest
  }

  /** Timestamp of the first batch; -1 when it has none, or there is no batch. */
  async firstTimestamp(): Promise<number> {
    if (this.#firstTimestamp === undefined && this.sizeBytes > 0) {
      const header = Buffer.alloc(batchHeaderBytes)
      await this.log.read(header, 0)
      this.#firstTimestamp = new BatchView(header).maxTimestamp
    }
    return this.#firstTimestamp ?? -1
  }

  /** Loads the index files, or rebuilds them from the log when they are missing or wrong. */
  async loadIndexes(): Promise<SegmentIndexes> {
    if (this.#indexes !== undefined) return this.#indexes
    const { files } = this.#files.handles
    const stored = await Promise.all([
      files.readFile(this.#path('index'), maxIndexFileBytes),
      files.readFile(this.#path('timeindex'), maxIndexFileBytes),
    ])
    if (this.#indexes !== undefined) return this.#indexes
    const checked = await this.#checkedIndexes(stored[0], stored[1])
    const loaded = checked ?? (await this.#rebuiltIndexes())
    if (this.#indexes !== undefined) return this.#indexes
    this.#indexes = loaded
    this.#areIndexesStored = checked !== undefined
    // Stored, so that the next one who looks finds them.
    await this.storeIndexes()
    return loaded
  }

  /** Gives their memory back; they are stored. */
  dropIndexes(): void {
    this.#indexes = undefined
  }

  /** Memory of the indexes. */
  get indexBytes(): number {
    return this.#indexes === undefined ? 0 : this.#indexes.offsets.capacityBytes + this.#indexes.times.capacityBytes
  }

  /** Starts the indexes afresh, for `noteBatch` to fill them again from the first batch. */
  resetIndexes(): void {
    this.#indexes = { offsets: new OffsetIndex(this.baseOffset), times: new TimeIndex(this.baseOffset) }
    this.#areIndexesStored = false
    this.#bytesSinceEntry = 0
    this.#largest = { timestamp: -1, offset: this.baseOffset }
    this.#firstTimestamp = undefined
    this.endOffset = this.baseOffset
  }

  /** Names of the index files. */
  get indexNames(): readonly string[] {
    return ['index', 'timeindex'].map((extension) => segmentFileName(this.baseOffset, extension))
  }

  /** The files hold at least what the memory does: they were closed with it. */
  noteIndexesStored(): void {
    this.#areIndexesStored = true
  }

  /** Takes what a scan from the last index entry found: the segment is the one that takes appends from now on. */
  resume(endOffset: Offset, largest: TimeIndexEntry): void {
    this.endOffset = endOffset
    this.#largest = largest
    this.#bytesSinceEntry = this.sizeBytes - this.#requireIndexes().offsets.lastPosition
  }

  /** Where the segment ends once the batch that holds `offset`, and all after it, are dropped. */
  async endBefore(offset: Offset): Promise<SegmentEnd> {
    const { offsets } = await this.loadIndexes()
    // From a batch that stays: the one before the cut tells where the log ends then.
    let position = offsets.lookup(offset - 1)
    let endOffset = this.baseOffset
    await this.scan(position, (view, at) => {
      if (view.lastOffset >= offset) return false
      endOffset = view.lastOffset + 1
      position = at + view.sizeBytes
      return true
    })
    return { position, endOffset }
  }

  /** Drops what lies behind `end`, which `endBefore` gave, and syncs the file. Answers how many bytes went. */
  async truncateTo({ position, endOffset }: SegmentEnd): Promise<number> {
    const { offsets, times } = await this.loadIndexes()
    const before = this.sizeBytes
    await this.log.truncate(position)
    await this.log.sync()
    this.sizeBytes = position
    this.#areIndexesStored = false
    offsets.truncateTo(endOffset)
    times.truncateTo(endOffset)
    let largest = times.last ?? { timestamp: -1, offset: this.baseOffset }
    await this.scan(offsets.lastPosition, (view) => {
      const timestamp = largestTimestampOf(view)
      if (timestamp > largest.timestamp) largest = { timestamp, offset: view.lastOffset }
      return true
    })
    if (position === 0) this.#firstTimestamp = undefined
    this.resume(endOffset, largest)
    return before - position
  }

  /** Syncs the file, whoever wrote to it: after a crash its bytes may be in the page cache only. */
  async syncAll(): Promise<void> {
    await this.log.sync({ always: true })
  }

  /** Removes the files, at once. Reads in flight keep what they have open. */
  async remove(): Promise<void> {
    this.retire()
    const { files } = this.#files.handles
    for (const extension of segmentExtensions) await files.remove(this.#path(extension))
  }

  /** Its files are about to go: from now on it neither opens nor writes one. Reads in flight keep what they have open. */
  retire(): void {
    this.#isRetired = true
    this.log.discard()
  }

  /**
   * Takes the files out of use by renaming them to `.deleted`; answers the paths, to be removed later. `keepsSnapshot`: the
   * producers' state at the base offset stays, which is true whatever becomes of the records.
   */
  async renameToDeleted(options?: { readonly keepsSnapshot: boolean }): Promise<string[]> {
    this.retire()
    const { files } = this.#files.handles
    const renamed: string[] = []
    for (const extension of segmentExtensions) {
      if (extension === 'snapshot' && options?.keepsSnapshot === true) continue
      const path = this.#path(extension)
      if ((await files.stat(path)) === undefined) continue
      await files.rename(path, `${path}.deleted`)
      renamed.push(`${path}.deleted`)
    }
    return renamed
  }

  #path(extension: string): string {
    return join(this.directory, segmentFileName(this.baseOffset, extension))
  }

  #requireIndexes(): SegmentIndexes {
    assert(this.#indexes !== undefined, 'the segment that takes appends has its indexes in memory')
    return this.#indexes
  }

  #damage(position: number, fault: string): StorageError {
    return new StorageError(`Segment ${this.log.path} is damaged at byte ${position}: ${fault}`, this.log.path)
  }

  async #storeFile(extension: string, content: Buffer): Promise<void> {
    const file = this.#files.handles.file(this.#path(extension))
    try {
      await file.write([content], 0)
      await file.truncate(content.length)
      await file.sync()
    } finally {
      file.discard()
    }
  }

  /** The indexes of two files; undefined when one is missing or contradicts the log. */
  async #checkedIndexes(offsetBytes?: Buffer, timeBytes?: Buffer): Promise<SegmentIndexes | undefined> {
    if (offsetBytes === undefined || timeBytes === undefined) return undefined
    if (offsetBytes.length % offsetEntryBytes !== 0 || timeBytes.length % timeEntryBytes !== 0) return undefined
    const offsets = new OffsetIndex(this.baseOffset, offsetBytes)
    const times = new TimeIndex(this.baseOffset, timeBytes)
    if (!offsets.isSane(this.sizeBytes) || !times.isSane()) return undefined
    if (times.last !== undefined && times.last.offset >= this.endOffset) return undefined
    // Each entry of the time index but the last was made together with one of the offset index.
    if (times.count - 1 > offsets.count) return undefined
    if (this.sizeBytes === 0) return { offsets, times }
    const header = Buffer.alloc(batchHeaderBytes)
    const view = new BatchView(header)
    if (times.count === 0) {
      await this.log.read(header, 0)
      if (largestTimestampOf(view) >= 0) return undefined
    }
    if (offsets.count === 0) return { offsets, times }
    await this.log.read(header, offsets.lastPosition)
    return view.magic === 2 && view.lastOffset === offsets.lastOffset ? { offsets, times } : undefined
  }

  async #rebuiltIndexes(): Promise<SegmentIndexes> {
    const rebuilt = new Segment({
      files: this.#files,
      directory: this.directory,
      baseOffset: this.baseOffset,
      endOffset: this.baseOffset,
      sizeBytes: 0,
      createdMs: this.createdMs,
      indexes: { offsets: new OffsetIndex(this.baseOffset), times: new TimeIndex(this.baseOffset) },
    })
    await this.scan(0, (view, position) => {
      rebuilt.noteBatch(view, position, { segmentIndexBytes: maxIndexFileBytes, indexIntervalBytes: 4096 })
      return true
    })
    rebuilt.sizeBytes = this.sizeBytes
    rebuilt.noteLargestTimestamp()
    return rebuilt.#requireIndexes()
  }

  #firstTimestampSync(): number {
    if (this.#firstTimestamp === undefined) {
      if (this.sizeBytes === 0) return -1
      const header = Buffer.alloc(batchHeaderBytes)
      this.log.readSync(header, 0)
      this.#firstTimestamp = new BatchView(header).maxTimestamp
    }
    return this.#firstTimestamp
  }

  /** Finds the batches to give in `buffer`, which holds `count` bytes of the file from `position` on. */
  #cut(
    buffer: BorrowedBuffer,
    count: number,
    position: number,
    fetchOffset: Offset,
    endOffset: Offset,
    maxBytes: number,
    minOneBatch: boolean,
  ): Cut {
    const { bytes } = buffer
    const view = new BatchView(bytes)
    let start = -1
    let end = 0
    let at = 0
    const rest = this.sizeBytes - position
    while (at < rest) {
      const available = count - at
      if (available < batchHeaderBytes) {
        if (start >= 0) break
        if (count < bytes.length || rest - at < batchHeaderBytes) throw this.#damage(position + at, 'truncated')
        return { kind: 'more', position: position + at, wantedBytes: firstReadBytes(maxBytes) }
      }
      const shape = checkBatchShape(bytes, at, rest)
      if (shape !== 'ok') throw this.#damage(position + at, shape)
      view.moveTo(bytes, at)
      const { sizeBytes } = view
      if (view.lastOffset < fetchOffset) {
        at += sizeBytes
        if (at > count) return { kind: 'more', position: position + at, wantedBytes: firstReadBytes(maxBytes) }
        continue
      }
      const isFirst = start < 0
      if (isFirst) {
        start = at
        end = at
      }
      if (view.lastOffset >= endOffset) break
      if (at + sizeBytes - start > maxBytes && !(isFirst && minOneBatch)) break
      if (at + sizeBytes > count) {
        if (!isFirst) break
        return { kind: 'more', position: position + at, wantedBytes: Math.max(sizeBytes, maxBytes) }
      }
      at += sizeBytes
      end = at
    }
    if (start < 0) return { kind: 'none' }
    return { kind: 'found', read: { bytes: bytes.subarray(start, end), release: buffer.release } }
  }
}

/** Of its records: a batch that compaction emptied has none, whatever its header keeps. */
export function largestTimestampOf(view: BatchView): number {
  return view.recordCount === 0 ? -1 : view.maxTimestamp
}

type Cut =
  | { readonly kind: 'found'; readonly read: SegmentRead }
  | { readonly kind: 'none' }
  | { readonly kind: 'more'; readonly position: number; readonly wantedBytes: number }

function firstReadBytes(maxBytes: number): number {
  return Math.max(batchHeaderBytes, maxBytes) + lookAheadBytes
}
