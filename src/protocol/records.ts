import type { Offload } from '../platform/index.ts'
import { BatchView } from './batch-view.ts'
import { codecById, decompress, decompressOff } from './compression.ts'
import { CorruptBatchError } from './faults.ts'
import { addTimestamps, VarintReader } from './varint.ts'

/**
 * The records inside a batch, each
 *
 *     varint length | int8 attributes (unused) | varlong timestamp delta | varint offset delta
 *     | varint key length, key | varint value length, value | varint header count, headers
 *
 * where a header is a key of at least no bytes and a value, each behind its length; -1 is null for a record's key and
 * value and for a header's value.
 */
export interface KafkaRecord {
  readonly offset: number
  /** Milliseconds since 1970; -1 when the producer gave none. */
  readonly timestamp: number
  /** Slices of the batch, or of the memory it was unpacked to. */
  readonly key: Buffer | null
  readonly value: Buffer | null
  readonly headers: readonly RecordHeader[]
}

export interface RecordHeader {
  readonly key: string
  readonly value: Buffer | null
}

/** The least a record takes: seven fields of a byte each. */
const minRecordBytes = 7
const minHeaderBytes = 2
const noHeaders: readonly RecordHeader[] = []

/**
 * The records of a batch as they were before the codec packed them. Throws `CorruptBatchError`, or `BatchTooLargeError`
 * when that takes more than `maxBytes`. On the event loop: for small batches; see `openRecordBytesOff`.
 */
export function openRecordBytes(batch: BatchView, maxBytes: number): Buffer {
  const codec = codecOf(batch)
  return codec === 'none' ? batch.recordBytes : decompress(codec, batch.recordBytes, maxBytes)
}

/** `openRecordBytes` off the event loop. The packed bytes are copied before it returns. */
export async function openRecordBytesOff(batch: BatchView, maxBytes: number, offload: Offload): Promise<Buffer> {
  const codec = codecOf(batch)
  return codec === 'none' ? batch.recordBytes : await decompressOff(codec, batch.recordBytes, maxBytes, offload)
}

/**
 * The records, first to last. `recordBytes` is what `openRecordBytes` gave. Throws `CorruptBatchError` when the inside
 * isn't what the header says. The view may be moved on meanwhile.
 */
export function readRecords(batch: BatchView, recordBytes: Buffer): Generator<KafkaRecord, void, undefined> {
  return generateRecords(new BatchView(batch.buffer, batch.position), recordBytes)
}

function* generateRecords(batch: BatchView, recordBytes: Buffer): Generator<KafkaRecord, void, undefined> {
  const { baseOffset, baseTimestamp, lastOffsetDelta, recordCount } = batch
  const appendTime = batch.hasLogAppendTime ? batch.maxTimestamp : undefined
  checkCount(recordCount, recordBytes.length)
  const reader = new VarintReader(recordBytes)
  let previousDelta = -1
  for (let i = 0; i < recordCount; i++) {
    const end = beginRecord(reader)
    const timestampDelta = reader.varlong()
    const offsetDelta = reader.varint()
    if (offsetDelta <= previousDelta || offsetDelta > lastOffsetDelta) {
      throw new CorruptBatchError(`Record ${i} has offset delta ${offsetDelta} after ${previousDelta}`)
    }
    previousDelta = offsetDelta
    const key = reader.nullableBytes()
    const value = reader.nullableBytes()
    const headers = readHeaders(reader, end)
    endRecord(reader, end, i)
    const timestamp = appendTime ?? addTimestamps(baseTimestamp, timestampDelta)
    yield { offset: baseOffset + offsetDelta, timestamp, key, value, headers }
  }
  if (reader.position !== recordBytes.length) throw new CorruptBatchError('Bytes are left after the last record')
}

/** What a walk over the records of a batch found, or the first thing that was wrong. */
export type RecordWalk =
  | {
      readonly ok: true
      /** Index of the first record whose key is null; -1 when every record has a key. */
      readonly firstKeyless: number
      /** Highest timestamp of a record, whatever the header claims. */
      readonly maxTimestamp: number
      /** Lowest timestamp of a record. */
      readonly minTimestamp: number
    }
  | { readonly ok: false; readonly reason: string }

/**
 * Checks the framing of every record of a batch that a producer sent, without making an object for any: lengths and
 * counts within bounds, offset deltas 0, 1, 2 ... up to the header's last, nothing left over. `recordBytes` is what
 * `openRecordBytes` gave.
 */
export function walkRecords(batch: BatchView, recordBytes: Buffer): RecordWalk {
  try {
    return walk(batch, recordBytes)
  } catch (error) {
    if (error instanceof CorruptBatchError) return { ok: false, reason: error.message }
    throw error
  }
}

function walk(batch: BatchView, recordBytes: Buffer): RecordWalk {
  const count = batch.recordCount
  checkCount(count, recordBytes.length)
  if (batch.lastOffsetDelta !== count - 1) {
    throw new CorruptBatchError(`Batch of ${count} records has last offset delta ${batch.lastOffsetDelta}`)
  }
  const reader = new VarintReader(recordBytes)
  const walked: Walked = { keyless: false, timestampDelta: 0 }
  let firstKeyless = -1
  let maxDelta = -Infinity
  let minDelta = Infinity
  for (let i = 0; i < count; i++) {
    if (!walkPlainRecord(reader, i, walked)) walkRecord(reader, i, walked)
    if (walked.keyless && firstKeyless < 0) firstKeyless = i
    if (walked.timestampDelta > maxDelta) maxDelta = walked.timestampDelta
    if (walked.timestampDelta < minDelta) minDelta = walked.timestampDelta
  }
  if (reader.position !== recordBytes.length) throw new CorruptBatchError('Bytes are left after the last record')
  const base = batch.baseTimestamp
  return {
    ok: true,
    firstKeyless,
    maxTimestamp: count === 0 ? -1 : addTimestamps(base, maxDelta),
    minTimestamp: count === 0 ? -1 : addTimestamps(base, minDelta),
  }
}

/** What the walk keeps of one record; one such object serves all records of a batch. */
interface Walked {
  keyless: boolean
  timestampDelta: number
}

/** Passes over one record and throws for the first thing that is wrong with it. */
function walkRecord(reader: VarintReader, index: number, walked: Walked): void {
  const end = beginRecord(reader)
  walked.timestampDelta = reader.varlong()
  const offsetDelta = reader.varint()
  if (offsetDelta !== index) throw new CorruptBatchError(`Record ${index} has offset delta ${offsetDelta}`)
  const keyLength = reader.varint()
  walked.keyless = keyLength < 0
  if (keyLength > 0) reader.skip(keyLength)
  const valueLength = reader.varint()
  if (valueLength > 0) reader.skip(valueLength)
  skipHeaders(reader, end)
  endRecord(reader, end, index)
}

/**
 * `walkRecord` for nearly all records there are, three times as fast: no headers, and no varint of more than two bytes.
 * False, with the reader where it was, for any other record and for anything that looks wrong. Past the last byte a read
 * gives undefined; the header count is read last, so when that is a byte all others were.
 */
function walkPlainRecord(reader: VarintReader, index: number, walked: Walked): boolean {
  const bytes = reader.bytes
  let p = reader.position
  let length = bytes[p++]!
  if (length > 0x7f) length = (length & 0x7f) | (bytes[p++]! << 7)
  const end = p + (length >>> 1)
  p++ // attributes
  let timestamp = bytes[p++]!
  if (timestamp > 0x7f) timestamp = (timestamp & 0x7f) | (bytes[p++]! << 7)
  let offset = bytes[p++]!
  if (offset > 0x7f) offset = (offset & 0x7f) | (bytes[p++]! << 7)
  let key = bytes[p++]!
  if (key > 0x7f) key = (key & 0x7f) | (bytes[p++]! << 7)
  if ((key & 1) === 0) p += key >>> 1
  let value = bytes[p++]!
  if (value > 0x7f) value = (value & 0x7f) | (bytes[p++]! << 7)
  if ((value & 1) === 0) p += value >>> 1
  const headerCount = bytes[p++]
  // A third byte of a varint shows as a bit above the 14 that two bytes hold.
  const tooLong = (length | timestamp | offset | key | value) > 0x3fff
  if (tooLong || headerCount !== 0 || offset !== index * 2 || (length & 1) !== 0 || p !== end) return false
  reader.position = end
  walked.keyless = (key & 1) !== 0
  walked.timestampDelta = (timestamp >>> 1) ^ -(timestamp & 1)
  return true
}

function codecOf(batch: BatchView) {
  const codec = codecById(batch.codecId)
  if (codec === undefined) throw new CorruptBatchError(`Batch names codec ${batch.codecId}, which does not exist`)
  return codec
}

export function checkCount(count: number, bytes: number): void {
  if (count < 0 || count * minRecordBytes > bytes) {
    throw new CorruptBatchError(`Batch claims ${count} records in ${bytes} bytes`)
  }
}

/** @internal Reads the length and the attributes; returns where the record ends. */
export function beginRecord(reader: VarintReader): number {
  const length = reader.varint()
  const end = reader.position + length
  if (length < minRecordBytes - 1 || end > reader.end) {
    throw new CorruptBatchError(`Record claims ${length} bytes with ${reader.end - reader.position} left`)
  }
  reader.skip(1)
  return end
}

export function endRecord(reader: VarintReader, end: number, index: number): void {
  if (reader.position !== end) throw new CorruptBatchError(`Record ${index} is not as long as it claims`)
}

function headerCount(reader: VarintReader, end: number): number {
  const count = reader.varint()
  if (count < 0 || count * minHeaderBytes > end - reader.position) {
    throw new CorruptBatchError(`Record claims ${count} headers with ${end - reader.position} bytes left`)
  }
  return count
}

export function skipHeaders(reader: VarintReader, end: number): void {
  for (let count = headerCount(reader, end); count > 0; count--) {
    reader.skip(headerKeyLength(reader))
    const valueLength = reader.varint()
    if (valueLength > 0) reader.skip(valueLength)
  }
}

function readHeaders(reader: VarintReader, end: number): readonly RecordHeader[] {
  const count = headerCount(reader, end)
  if (count === 0) return noHeaders
  const headers: RecordHeader[] = []
  for (let i = 0; i < count; i++) {
    const length = headerKeyLength(reader)
    const start = reader.position
    reader.skip(length)
    const key = reader.bytes.toString('utf8', start, start + length)
    headers.push({ key, value: reader.nullableBytes() })
  }
  return headers
}

function headerKeyLength(reader: VarintReader): number {
  const length = reader.varint()
  if (length < 0) throw new CorruptBatchError('Header has no key')
  return length
}
