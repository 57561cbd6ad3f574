import type { Offset } from '../base/index.ts'
import type { TopicConfig } from '../config/index.ts'
import type { Offload } from '../platform/index.ts'
import {
  BatchView,
  batchHeaderBytes,
  codecById,
  codecId,
  maxRebaseGrowthBytes,
  openRecordBytesOff,
  parseControlRecord,
  RecordCursor,
  readRecords,
} from '../protocol/index.ts'
import type { CleanerPace } from './cleaner-pace.ts'
import type { OffsetMap } from './offset-map.ts'
import type { CommittedBatches } from './producer-state.ts'
import { packRecords } from './repack.ts'

/** Largest size to which a batch is unpacked. The same bound as when batches of a compacted topic are appended. */
export const maxUnpackedBytes = 64 * 1024 * 1024
/** Looking up a key costs about as much as copying so many bytes. */
export const recordUnits = 128
/** Timestamps and deltas up to here are exact when they are added. */
const maxExactTimestamp = 2 ** 50

/** Whose last offset of each key decides: of the dirty part of the log, up to `latestOffset` inclusive. */
export interface DirtyKeys {
  readonly map: OffsetMap
  readonly latestOffset: Offset
}

export interface FilterOptions {
  readonly keys: DirtyKeys
  readonly config: TopicConfig
  /** Of the producers that may still write, by id. */
  readonly producers: ReadonlyMap<number, CommittedBatches>
  /** Where the cleaning ends; exclusive. */
  readonly upTo: Offset
  readonly nowMs: number
  readonly offload: Offload
  readonly pace: CleanerPace
  readonly signal: AbortSignal
}

/**
 * Decides what stays of the batches of a log that is compacted, from its first batch on:
 *
 * - A record goes when a later one has its key, or when it has none.
 * - A record without value (a tombstone) goes, too, once its batch's delete horizon has passed. The first cleaning that
 *   meets it writes the horizon into the batch: `delete.retention.ms` from then on, in which a reader that has seen an
 *   older record of the key can learn that it was deleted (KIP-534).
 * - A transaction's marker is treated like a tombstone once none of the transaction's batches is left. Which transactions
 *   were aborted is not known here, so their records replace none and their tombstones stay; a later record that belongs
 *   to none replaces them.
 * - A batch keeps its offsets, and an empty one stays where the end of what was cleaned is known from it alone, or it is one of
 *   its producer's last five: a follower that copies the log may lead next, and be sent again what was in flight. (Kafka
 *   keeps the last one, and refuses the others then.)
 */
export class BatchFilter {
  readonly #options: FilterOptions
  /** Producers of transactions of which a batch was met, and no marker yet. */
  readonly #openTransactions: Set<number>

  /** `openTransactions`: shared by the filters of one cleaning. */
  constructor(options: FilterOptions, openTransactions: Set<number>) {
    this.#options = options
    this.#openTransactions = openTransactions
  }

  /** What is to be written in place of the batch, valid until the view's bytes change; undefined when nothing is. */
  async filter(view: BatchView): Promise<Buffer | undefined> {
    if (view.isTransactional && !view.isControl) this.#openTransactions.add(view.producerId)
    if (view.recordCount === 0) return this.#mustStay(view) ? view.bytes : undefined
    if (view.isControl) return this.#filterMarker(view)
    const recordBytes = await this.#unpack(view)
    const retained = new Uint8Array(view.recordCount)
    const found = await this.#choose(view, recordBytes, retained)
    if (found.count === 0) return this.#mustStay(view) ? emptied(view) : undefined
    const needsHorizon = found.hasTombstone && !view.hasDeleteHorizon && !view.isTransactional
    const horizonMs = needsHorizon ? this.#horizon(view, found) : undefined
    if (found.count === view.recordCount && horizonMs === undefined) return view.bytes
    return await this.#rewrite(view, recordBytes, retained, found, horizonMs)
  }

  async #unpack(view: BatchView): Promise<Buffer> {
    return codecById(view.codecId) === 'none'
      ? view.recordBytes
      : await openRecordBytesOff(view, maxUnpackedBytes, this.#options.offload)
  }

  async #choose(view: BatchView, recordBytes: Buffer, retained: Uint8Array): Promise<Retained> {
    const { keys, nowMs, pace } = this.#options
    const { map, latestOffset } = keys
    const keepsTombstones = !view.hasDeleteHorizon || nowMs < view.baseTimestamp
    const cursor = new RecordCursor(view, recordBytes)
    const found: Retained = { count: 0, sizeBytes: 0, hasTombstone: false, maxDelta: -Infinity, minDelta: Infinity }
    for (let i = 0; cursor.next(); i++) {
      const size = cursor.end - cursor.start
      const turn = pace.spend(recordUnits + size)
      if (turn !== undefined) await this.#resume(turn)
      if (cursor.offset <= latestOffset) {
        if (cursor.keyBytes < 0) continue
        if (map.get(cursor.bytes, cursor.keyStart, cursor.keyBytes) > cursor.offset) continue
        if (!cursor.hasValue && !keepsTombstones) continue
      }
      retained[i] = 1
      found.count++
      found.sizeBytes += size
      if (!cursor.hasValue) found.hasTombstone = true
      found.maxDelta = Math.max(found.maxDelta, cursor.timestampDelta)
      found.minDelta = Math.min(found.minDelta, cursor.timestampDelta)
    }
    return found
  }

  #horizon(view: BatchView, { minDelta, maxDelta }: Retained): number | undefined {
    const horizonMs = this.#options.nowMs + this.#options.config.deleteRetentionMs
    const largest = Math.max(horizonMs, Math.abs(view.baseTimestamp), Math.abs(minDelta), Math.abs(maxDelta))
    // Without one the tombstones stay: better than a timestamp that is no longer what the producer gave.
    return largest <= maxExactTimestamp ? horizonMs : undefined
  }

  /** A new batch of those records that are retained. */
  async #rewrite(
    view: BatchView,
    recordBytes: Buffer,
    retained: Uint8Array,
    found: Retained,
    horizonMs: number | undefined,
  ): Promise<Buffer> {
    const { config, offload, pace } = this.#options
    const baseTimestamp = horizonMs ?? view.baseTimestamp
    // Deltas count from the base; of records whose time is when they were appended nobody reads them.
    const shift = view.hasLogAppendTime ? 0 : view.baseTimestamp - baseTimestamp
    const growth = shift === 0 ? 0 : found.count * maxRebaseGrowthBytes
    const kept = Buffer.allocUnsafeSlow(found.sizeBytes + growth)
    const cursor = new RecordCursor(view, recordBytes)
    let end = 0
    for (let i = 0; cursor.next(); i++) {
      if (retained[i] === 0) continue
      const turn = pace.spend(cursor.end - cursor.start)
      if (turn !== undefined) await this.#resume(turn)
      end = cursor.copyTo(kept, end, shift)
    }
    const codec = codecById(view.codecId) ?? 'none'
    const packed = await packRecords(codec, kept.subarray(0, end), config, offload)
    const batch = headed(view, packed)
    new BatchView(batch).stampFiltered({
      sizeBytes: batch.length,
      codecId: codecId(codec),
      recordCount: found.count,
      baseTimestamp,
      maxTimestamp: view.hasLogAppendTime ? view.maxTimestamp : view.baseTimestamp + found.maxDelta,
      hasDeleteHorizon: horizonMs !== undefined || view.hasDeleteHorizon,
    })
    return batch
  }

  async #filterMarker(view: BatchView): Promise<Buffer | undefined> {
    const recordBytes = await this.#unpack(view)
    const [record] = readRecords(view, recordBytes)
    if (record === undefined || parseControlRecord(record) === undefined) return view.bytes
    if (this.#openTransactions.delete(view.producerId)) return view.bytes
    if (view.hasDeleteHorizon) {
      if (this.#options.nowMs < view.baseTimestamp) return view.bytes
      return this.#mustStay(view) ? emptied(view) : undefined
    }
    const delta = record.timestamp - view.baseTimestamp
    const count = view.recordCount
    const all = { count, sizeBytes: recordBytes.length, hasTombstone: false, maxDelta: delta, minDelta: delta }
    const horizonMs = this.#horizon(view, all)
    if (horizonMs === undefined) return view.bytes
    return await this.#rewrite(view, recordBytes, new Uint8Array(count).fill(1), all, horizonMs)
  }

  #mustStay(view: BatchView): boolean {
    if (view.lastOffset + 1 === this.#options.upTo) return true
    if (view.producerId < 0) return false
    const producer = this.#options.producers.get(view.producerId)
    if (producer === undefined) return false
    const { producerEpoch, lastOffsets } = producer
    if (lastOffsets === undefined) return !view.isControl
    if (lastOffsets.length === 0) return view.isControl && view.producerEpoch === producerEpoch
    // With an earlier one of a transaction its marker would have to stay.
    return view.isTransactional ? view.lastOffset === lastOffsets.at(-1) : lastOffsets.includes(view.lastOffset)
  }

  async #resume(turn: Promise<void>): Promise<void> {
    await turn
    this.#options.signal.throwIfAborted()
  }
}

/** What stays of a batch. */
interface Retained {
  count: number
  sizeBytes: number
  hasTombstone: boolean
  maxDelta: number
  minDelta: number
}

/** A new batch with the header of `view`, to be stamped. */
function headed(view: BatchView, packed: Uint8Array): Buffer {
  const batch = Buffer.allocUnsafeSlow(batchHeaderBytes + packed.length)
  view.buffer.copy(batch, 0, view.position, view.position + batchHeaderBytes)
  batch.set(packed, batchHeaderBytes)
  return batch
}

/** The batch without its records. */
function emptied(view: BatchView): Buffer {
  const batch = headed(view, new Uint8Array())
  new BatchView(batch).stampFiltered({
    sizeBytes: batch.length,
    codecId: codecId('none'),
    recordCount: 0,
    baseTimestamp: -1,
    maxTimestamp: view.maxTimestamp,
    hasDeleteHorizon: false,
  })
  return batch
}
