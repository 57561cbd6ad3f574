import { crc32c } from './crc32c.ts'
import { int16At, int32At, int64At, setInt16, setInt32, setInt64 } from './int64.ts'

/**
 * Record batch, format 2. Byte offsets from its first byte; big-endian.
 *
 *      0 int64  base offset            not under the CRC: the broker sets it
 *      8 int32  length                 bytes after this field
 *     12 int32  partition leader epoch not under the CRC: the broker sets it
 *     16 int8   magic                  2
 *     17 uint32 CRC-32C                of everything from byte 21 on
 *     21 int16  attributes             bits 0-2 codec, 3 log append time, 4 transactional, 5 control, 6 delete horizon
 *     23 int32  last offset delta
 *     27 int64  base timestamp         the delete horizon when bit 6 is set
 *     35 int64  max timestamp
 *     43 int64  producer id            -1: not idempotent
 *     51 int16  producer epoch
 *     53 int32  base sequence
 *     57 int32  record count
 *     61        records, packed by the codec
 */
export const batchHeaderBytes = 61
/** Bytes before those that the length field counts. */
const lengthOverhead = 12
/** What must be there to know a batch's size and format. */
export const batchPrefixBytes = 17
const magicAt = 16
const crcAt = 17
const attributesAt = 21
const maxTimestampAt = 35

const codecMask = 0x07
const logAppendTimeBit = 0x08
const transactionalBit = 0x10
const controlBit = 0x20
const deleteHorizonBit = 0x40

/** Written as a batch's attributes, and read by `BatchView`. */
export const batchBits = {
  logAppendTime: logAppendTimeBit,
  transactional: transactionalBit,
  control: controlBit,
} as const

/**
 * The header of the batch at `position` of `buffer`, read and stamped where it lies. One view can be moved over many
 * batches. It checks nothing: `checkBatch` comes first for bytes that aren't known to be good.
 *
 * Timestamps are numbers: one beyond 2^53 reads as `tooHighInt64`; the bytes keep what was sent.
 */
export class BatchView {
  #buffer: Buffer
  #position: number

  constructor(buffer: Buffer, position = 0) {
    this.#buffer = buffer
    this.#position = position
  }

  /** The view, now of the batch at `position`. */
  moveTo(buffer: Buffer, position: number): this {
    this.#buffer = buffer
    this.#position = position
    return this
  }

  get buffer(): Buffer {
    return this.#buffer
  }

  get position(): number {
    return this.#position
  }

  /** The whole batch, header included. */
  get sizeBytes(): number {
    return int32At(this.#buffer, this.#position + 8) + lengthOverhead
  }

  get baseOffset(): number {
    return int64At(this.#buffer, this.#position)
  }

  /** Inclusive. */
  get lastOffset(): number {
    return this.baseOffset + this.lastOffsetDelta
  }

  get leaderEpoch(): number {
    return int32At(this.#buffer, this.#position + 12)
  }

  get magic(): number {
    return this.#buffer[this.#position + magicAt]!
  }

  /** 0 to 2^32 - 1. */
  get crc(): number {
    return int32At(this.#buffer, this.#position + crcAt) >>> 0
  }

  get attributes(): number {
    return int16At(this.#buffer, this.#position + attributesAt)
  }

  /** 0 to 7; `codecById` knows which of them are codecs. */
  get codecId(): number {
    return this.attributes & codecMask
  }

  /** Every record's timestamp is `maxTimestamp`: when the broker appended it. */
  get hasLogAppendTime(): boolean {
    return (this.attributes & logAppendTimeBit) !== 0
  }

  get isTransactional(): boolean {
    return (this.attributes & transactionalBit) !== 0
  }

  /** Holds a transaction marker instead of an application's records. */
  get isControl(): boolean {
    return (this.attributes & controlBit) !== 0
  }

  get hasDeleteHorizon(): boolean {
    return (this.attributes & deleteHorizonBit) !== 0
  }

  /** From the base offset to the last record's, 0 or more; after compaction more than the record count says. */
  get lastOffsetDelta(): number {
    return int32At(this.#buffer, this.#position + 23)
  }

  get baseTimestamp(): number {
    return int64At(this.#buffer, this.#position + 27)
  }

  get maxTimestamp(): number {
    return int64At(this.#buffer, this.#position + maxTimestampAt)
  }

  /** -1: the producer is not idempotent. */
  get producerId(): number {
    return int64At(this.#buffer, this.#position + 43)
  }

  get producerEpoch(): number {
    return int16At(this.#buffer, this.#position + 51)
  }

  get baseSequence(): number {
    return int32At(this.#buffer, this.#position + 53)
  }

  /** Inclusive; 2^31 - 1 is followed by 0. */
  get lastSequence(): number {
    return (this.baseSequence + this.lastOffsetDelta) & 0x7fff_ffff
  }

  get recordCount(): number {
    return int32At(this.#buffer, this.#position + 57)
  }

  /** A slice of the buffer. */
  get bytes(): Buffer {
    return this.#buffer.subarray(this.#position, this.#position + this.sizeBytes)
  }

  /** The records as they are stored, packed by the codec: a slice of the buffer. */
  get recordBytes(): Buffer {
    return this.#buffer.subarray(this.#position + batchHeaderBytes, this.#position + this.sizeBytes)
  }

  computeCrc(): number {
    return crc32c(this.#buffer.subarray(this.#position + attributesAt, this.#position + this.sizeBytes))
  }

  stampBaseOffset(baseOffset: number): void {
    setInt64(this.#buffer, this.#position, baseOffset)
  }

  stampLeaderEpoch(leaderEpoch: number): void {
    setInt32(this.#buffer, this.#position + 12, leaderEpoch)
  }

  /** The largest timestamp of its records, for a producer that claimed another one. Rewrites the CRC. */
  stampMaxTimestamp(timestampMs: number): void {
    setInt64(this.#buffer, this.#position + maxTimestampAt, timestampMs)
    setInt32(this.#buffer, this.#position + crcAt, this.computeCrc())
  }

  /** The records behind the header were packed anew: the batch takes `sizeBytes` now. Rewrites the CRC. */
  stampPacked(codecId: number, sizeBytes: number): void {
    setInt32(this.#buffer, this.#position + 8, sizeBytes - lengthOverhead)
    setInt16(this.#buffer, this.#position + attributesAt, (this.attributes & ~codecMask) | codecId)
    setInt32(this.#buffer, this.#position + crcAt, this.computeCrc())
  }

  /**
   * Some of the records were left out, and those behind the header are packed by the codec it names: the batch takes
   * `sizeBytes` now, its offsets stay. `baseTimestamp` is what timestamp deltas count from, and the delete horizon when
   * `hasDeleteHorizon`. Rewrites the CRC.
   */
  stampFiltered(options: {
    readonly sizeBytes: number
    readonly codecId: number
    readonly recordCount: number
    readonly baseTimestamp: number
    readonly maxTimestamp: number
    readonly hasDeleteHorizon: boolean
  }): void {
    const attributes = (this.attributes & ~(codecMask | deleteHorizonBit)) | options.codecId
    setInt32(this.#buffer, this.#position + 8, options.sizeBytes - lengthOverhead)
    setInt16(
      this.#buffer,
      this.#position + attributesAt,
      options.hasDeleteHorizon ? attributes | deleteHorizonBit : attributes,
    )
    setInt64(this.#buffer, this.#position + 27, options.baseTimestamp)
    setInt64(this.#buffer, this.#position + maxTimestampAt, options.maxTimestamp)
    setInt32(this.#buffer, this.#position + 57, options.recordCount)
    setInt32(this.#buffer, this.#position + crcAt, this.computeCrc())
  }

  /** The records keep the timestamps that they have. Rewrites the CRC. */
  stampCreateTime(): void {
    setInt16(this.#buffer, this.#position + attributesAt, this.attributes & ~logAppendTimeBit)
    setInt32(this.#buffer, this.#position + crcAt, this.computeCrc())
  }

  /** `timestampMs` becomes every record's timestamp. Rewrites the CRC, as what it changes is under it. */
  stampLogAppendTime(timestampMs: number): void {
    setInt16(this.#buffer, this.#position + attributesAt, this.attributes | logAppendTimeBit)
    setInt64(this.#buffer, this.#position + maxTimestampAt, timestampMs)
    setInt32(this.#buffer, this.#position + crcAt, this.computeCrc())
  }
}

/**
 * What is wrong with a batch; `ok` is nothing.
 * - `truncated`: fewer bytes are there than the header, or the batch by its length field, takes
 * - `magic`: another format
 * - `length`: shorter than its own header
 * - `crc`: the bytes are not those that were written
 */
export type BatchCheck = 'ok' | 'truncated' | 'magic' | 'length' | 'crc'

/** Looks at the batch at `position`, of which nothing at or after `end` is part. The records are not looked into. */
export function checkBatch(buffer: Buffer, position: number, end: number): BatchCheck {
  const shape = checkBatchShape(buffer, position, end)
  if (shape !== 'ok') return shape
  const sizeBytes = int32At(buffer, position + 8) + lengthOverhead
  const crc = crc32c(buffer.subarray(position + attributesAt, position + sizeBytes))
  return crc === int32At(buffer, position + crcAt) >>> 0 ? 'ok' : 'crc'
}

/** `checkBatch` without the CRC. */
export function checkBatchShape(buffer: Buffer, position: number, end: number): BatchCheck {
  const available = end - position
  if (available < batchPrefixBytes) return 'truncated'
  if (buffer[position + magicAt] !== 2) return 'magic'
  const sizeBytes = int32At(buffer, position + 8) + lengthOverhead
  if (sizeBytes < batchHeaderBytes) return 'length'
  return sizeBytes > available ? 'truncated' : 'ok'
}
