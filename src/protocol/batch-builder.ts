import { assert } from '../base/index.ts'
import { BatchView, batchBits, batchHeaderBytes } from './batch-view.ts'
import { type Codec, codecId, compress } from './compression.ts'
import { setInt16, setInt32, setInt64 } from './int64.ts'
import { setVarint, varintSize } from './varint.ts'

export interface RecordInput {
  /** Milliseconds since 1970; -1 for none. */
  readonly timestamp: number
  readonly key?: Uint8Array | null
  readonly value?: Uint8Array | null
  readonly headers?: readonly { readonly key: string; readonly value: Uint8Array | null }[]
}

export interface BatchOptions {
  /** One or more; their offsets follow each other. */
  readonly records: readonly RecordInput[]
  readonly codec?: Codec
  /** Offset of the first record; 0 when left out, as a producer sends it. */
  readonly baseOffset?: number
  readonly leaderEpoch?: number
  readonly producerId?: number
  readonly producerEpoch?: number
  readonly baseSequence?: number
  readonly transactional?: boolean
  readonly control?: boolean
}

/** A whole batch in one fresh buffer, CRC included. */
export function buildBatch(options: BatchOptions): Buffer {
  const { records, codec = 'none' } = options
  const first = records[0]
  assert(first !== undefined, 'a batch holds a record')
  const baseTimestamp = first.timestamp
  const unpacked = encodeRecords(records, baseTimestamp, codec === 'none' ? batchHeaderBytes : 0)
  let batch = unpacked
  if (codec !== 'none') {
    const packed = compress(codec, unpacked)
    batch = Buffer.allocUnsafe(batchHeaderBytes + packed.length)
    batch.set(packed, batchHeaderBytes)
  }
  let maxTimestamp = baseTimestamp
  for (const { timestamp } of records) maxTimestamp = Math.max(maxTimestamp, timestamp)
  let attributes = codecId(codec)
  if (options.transactional === true) attributes |= batchBits.transactional
  if (options.control === true) attributes |= batchBits.control
  setInt64(batch, 0, options.baseOffset ?? 0)
  setInt32(batch, 8, batch.length - 12)
  setInt32(batch, 12, options.leaderEpoch ?? -1)
  batch[16] = 2
  setInt16(batch, 21, attributes)
  setInt32(batch, 23, records.length - 1)
  setInt64(batch, 27, baseTimestamp)
  setInt64(batch, 35, maxTimestamp)
  setInt64(batch, 43, options.producerId ?? -1)
  setInt16(batch, 51, options.producerEpoch ?? -1)
  setInt32(batch, 53, options.baseSequence ?? -1)
  setInt32(batch, 57, records.length)
  setInt32(batch, 17, new BatchView(batch).computeCrc())
  return batch
}

/** The records one after the other, behind `headroom` bytes that are left for the caller. */
function encodeRecords(records: readonly RecordInput[], baseTimestamp: number, headroom: number): Buffer {
  const sizes: number[] = []
  let total = headroom
  for (const [i, record] of records.entries()) {
    const size = recordSize(record, i, baseTimestamp)
    sizes.push(size)
    total += varintSize(size) + size
  }
  const bytes = Buffer.allocUnsafe(total)
  let position = headroom
  for (const [i, record] of records.entries()) {
    position = setVarint(bytes, position, sizes[i]!)
    bytes[position++] = 0
    position = setVarint(bytes, position, record.timestamp - baseTimestamp)
    position = setVarint(bytes, position, i)
    position = setNullableBytes(bytes, position, record.key ?? null)
    position = setNullableBytes(bytes, position, record.value ?? null)
    const headers = record.headers ?? []
    position = setVarint(bytes, position, headers.length)
    for (const { key, value } of headers) {
      position = setVarint(bytes, position, Buffer.byteLength(key))
      position += bytes.write(key, position, 'utf8')
      position = setNullableBytes(bytes, position, value)
    }
  }
  assert(position === total, 'records take the bytes that were counted')
  return bytes
}

/** Without the length in front. */
function recordSize(record: RecordInput, index: number, baseTimestamp: number): number {
  const headers = record.headers ?? []
  let size = 1 + varintSize(record.timestamp - baseTimestamp) + varintSize(index)
  size += nullableSize(record.key ?? null) + nullableSize(record.value ?? null) + varintSize(headers.length)
  for (const { key, value } of headers) {
    const keyBytes = Buffer.byteLength(key)
    size += varintSize(keyBytes) + keyBytes + nullableSize(value)
  }
  return size
}

function nullableSize(value: Uint8Array | null): number {
  return value === null ? 1 : varintSize(value.length) + value.length
}

function setNullableBytes(bytes: Buffer, position: number, value: Uint8Array | null): number {
  if (value === null) return setVarint(bytes, position, -1)
  const start = setVarint(bytes, position, value.length)
  bytes.set(value, start)
  return start + value.length
}
