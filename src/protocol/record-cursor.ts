import type { BatchView } from './batch-view.ts'
import { CorruptBatchError } from './faults.ts'
import { beginRecord, checkCount, endRecord, skipHeaders } from './records.ts'
import { setVarint, VarintReader, varintSize } from './varint.ts'

/** What a record may grow by when its timestamp delta does: nine bytes of it, and two of the length in front. */
export const maxRebaseGrowthBytes = 11

/**
 * Walks the records of a stored batch where they lie, one at a time and without an object for any: for compaction, which
 * looks at keys and copies records. Unlike a producer's, their offset deltas may have gaps.
 */
export class RecordCursor {
  readonly #reader: VarintReader
  readonly #baseOffset: number
  readonly #lastOffsetDelta: number
  readonly #count: number
  #index = 0
  #offsetDelta = -1
  #bodyStart = 0
  /** Of the record's first byte, its length, in the record bytes. */
  start = 0
  /** Exclusive. */
  end = 0
  timestampDelta = 0
  keyStart = 0
  /** -1: the key is null. */
  keyBytes = -1
  hasValue = false

  /** `recordBytes`: as unpacked. The view may be moved on meanwhile. Throws `CorruptBatchError`, as `next` does. */
  constructor(batch: BatchView, recordBytes: Buffer) {
    this.#reader = new VarintReader(recordBytes)
    this.#baseOffset = batch.baseOffset
    this.#lastOffsetDelta = batch.lastOffsetDelta
    this.#count = batch.recordCount
    checkCount(this.#count, recordBytes.length)
  }

  get offset(): number {
    return this.#baseOffset + this.#offsetDelta
  }

  /** The bytes that the records lie in. */
  get bytes(): Buffer {
    return this.#reader.bytes
  }

  /** Moves to the next record; false behind the last one. */
  next(): boolean {
    const reader = this.#reader
    if (this.#index === this.#count) {
      if (reader.position !== reader.end) throw new CorruptBatchError('Bytes are left after the last record')
      return false
    }
    this.start = reader.position
    this.end = beginRecord(reader)
    this.timestampDelta = reader.varlong()
    this.#bodyStart = reader.position
    const offsetDelta = reader.varint()
    if (offsetDelta <= this.#offsetDelta || offsetDelta > this.#lastOffsetDelta) {
      throw new CorruptBatchError(`Record ${this.#index} has offset delta ${offsetDelta} after ${this.#offsetDelta}`)
    }
    this.#offsetDelta = offsetDelta
    this.keyBytes = Math.max(-1, reader.varint())
    this.keyStart = reader.position
    if (this.keyBytes > 0) reader.skip(this.keyBytes)
    const valueBytes = reader.varint()
    this.hasValue = valueBytes >= 0
    if (valueBytes > 0) reader.skip(valueBytes)
    skipHeaders(reader, this.end)
    endRecord(reader, this.end, this.#index)
    this.#index++
    return true
  }

  /**
   * Copies the record to `target`, which has `maxRebaseGrowthBytes` more room than it takes, and answers where the copy
   * ends. `shift` is added to its timestamp delta.
   */
  copyTo(target: Buffer, position: number, shift: number): number {
    const { bytes } = this.#reader
    if (shift === 0) return position + bytes.copy(target, position, this.start, this.end)
    const delta = this.timestampDelta + shift
    let at = setVarint(target, position, 1 + varintSize(delta) + this.end - this.#bodyStart)
    target[at++] = 0
    at = setVarint(target, at, delta)
    return at + bytes.copy(target, at, this.#bodyStart, this.end)
  }
}
