import type { Offset } from '../base/index.ts'
import type { LogEnvironment } from './environment.ts'
import type { SegmentRead } from './segment.ts'
import type { SegmentStore } from './segment-store.ts'
import type { LogTail } from './tail-cache.ts'
import { findMaxTimestamp, findTimestamp, type SearchedLog } from './timestamp-search.ts'
import type { OffsetOutOfRange, ReadOptions, ReadResult, TimestampAndOffset } from './types.ts'

/** Reads so near to the end of the log are from the page cache: reading them on the event loop beats the thread pool. */
const hotBytes = 32 * 1024 * 1024
const maxSyncReadBytes = 1024 * 1024

const nothingRead: ReadResult = Object.freeze({
  chunks: Object.freeze([]) as readonly Buffer[],
  sizeBytes: 0,
  release: () => {},
})

/** What a reader asks of its log. */
export interface ReadLog {
  readonly logStartOffset: Offset
  readonly logEndOffset: Offset
  /** Throws unless the log can be read. */
  requireReadable(): void
  /** What a failed read means; a disk that doesn't answer takes the directory offline. */
  readFault(error: unknown): unknown
}

/**
 * The reading half of a log: from the tail cache, from the page cache on the event loop, or from files through the thread
 * pool. Segments may be truncated, removed or replaced while a file is read: then it is read again, as the log is now.
 */
export class LogReader {
  readonly #log: ReadLog
  readonly #store: SegmentStore
  readonly #tail: LogTail
  readonly #environment: LogEnvironment

  constructor(options: {
    readonly log: ReadLog
    readonly store: SegmentStore
    readonly tail: LogTail
    readonly environment: LogEnvironment
  }) {
    this.#log = options.log
    this.#store = options.store
    this.#tail = options.tail
    this.#environment = options.environment
  }

  /** As `PartitionLog.read`. */
  read(options: ReadOptions): ReadResult | OffsetOutOfRange | Promise<ReadResult | OffsetOutOfRange> {
    this.#log.requireReadable()
    const { fetchOffset, maxBytes, minOneBatch } = options
    const { logStartOffset, logEndOffset } = this.#log
    if (fetchOffset < logStartOffset || fetchOffset > logEndOffset) {
      return { outOfRange: true, logStartOffset, logEndOffset }
    }
    const endOffset = Math.min(options.endOffset, logEndOffset)
    if (fetchOffset >= endOffset) return nothingRead
    const cached = this.#tail.read(fetchOffset, endOffset, maxBytes, minOneBatch)
    if (cached !== undefined) {
      this.#environment.probe.tailReadBytes.value += cached.sizeBytes
      return cached
    }
    const { active } = this.#store
    if (fetchOffset >= active.baseOffset && maxBytes <= maxSyncReadBytes && active.bytesFrom(fetchOffset) <= hotBytes) {
      try {
        const found = active.readSync(fetchOffset, endOffset, maxBytes, minOneBatch)
        if (found !== null) return found === undefined ? nothingRead : this.#result(found)
      } catch (error) {
        throw this.#log.readFault(error)
      }
    }
    return this.#readFiles({ fetchOffset, endOffset, maxBytes, minOneBatch })
  }

  async #readFiles(options: ReadOptions): Promise<ReadResult | OffsetOutOfRange> {
    const store = this.#store
    await store.renamed
    const { rewrites } = store
    const { fetchOffset, endOffset, maxBytes, minOneBatch } = options
    for (let index = store.indexOf(fetchOffset); ; index++) {
      const segment = store.segments[index]
      if (segment === undefined || segment.baseOffset >= endOffset) return nothingRead
      let found: SegmentRead | undefined
      try {
        found = await segment.read(fetchOffset, endOffset, maxBytes, minOneBatch)
      } catch (error) {
        // A truncation, compaction or retention took the file away meanwhile: the answer is what the log says now.
        if (store.rewrites !== rewrites || fetchOffset < this.#log.logStartOffset) return this.read(options)
        throw this.#log.readFault(error)
      }
      if (store.rewrites !== rewrites) {
        found?.release()
        return this.read(options)
      }
      store.touchIndexes(segment)
      // Undefined: the segment's last batches, up to the next segment, were compacted away.
      if (found !== undefined) return this.#result(found)
    }
  }

  #result(found: SegmentRead): ReadResult {
    const sizeBytes = found.bytes.length
    if (sizeBytes === 0) {
      found.release()
      return nothingRead
    }
    this.#environment.probe.fileReadBytes.value += sizeBytes
    return { chunks: [found.bytes], sizeBytes, release: found.release }
  }

  /** The first record whose timestamp is at least `timestamp`, below `endOffset`. */
  findTimestamp(timestamp: number, endOffset: Offset): Promise<TimestampAndOffset | undefined> {
    return this.#search(endOffset, (log) => findTimestamp(log, timestamp))
  }

  /** The first record that has the largest timestamp, below `endOffset`. */
  findMaxTimestamp(endOffset: Offset): Promise<TimestampAndOffset | undefined> {
    return this.#search(endOffset, findMaxTimestamp)
  }

  async #search(
    endOffset: Offset,
    find: (log: SearchedLog) => Promise<TimestampAndOffset | undefined>,
  ): Promise<TimestampAndOffset | undefined> {
    const store = this.#store
    this.#log.requireReadable()
    await store.renamed
    const segments = store.segments.slice()
    const { rewrites } = store
    let found: TimestampAndOffset | undefined
    try {
      found = await find({
        segments,
        logStartOffset: this.#log.logStartOffset,
        endOffset: Math.min(endOffset, this.#log.logEndOffset),
        offload: this.#environment.platform.offload,
      })
    } catch (error) {
      const isSegmentGone = segments.some((segment) => !store.segments.includes(segment))
      if (store.rewrites === rewrites && !isSegmentGone) throw this.#log.readFault(error)
      return await this.#search(endOffset, find)
    } finally {
      for (const segment of segments) store.touchIndexes(segment)
    }
    return store.rewrites === rewrites ? found : await this.#search(endOffset, find)
  }
}
