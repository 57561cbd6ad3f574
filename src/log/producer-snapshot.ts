import type { ProducerEpoch, ProducerId } from '../base/index.ts'
import { crc32c } from '../protocol/index.ts'
import type { ProducerEntry } from './producer-state.ts'

/** version int16, crc uint32, count int32. */
const headerBytes = 10
const entryBytes = 46
/** The CRC covers what follows it. */
const checkedFrom = 6

/**
 * `.snapshot`, in Kafka's format: version int16 = 1, crc uint32 (CRC-32C of the rest), then an array of entries: producer
 * id int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64, coordinator epoch
 * int32, first offset of the open transaction int64 (-1: none). A producer has an entry for each batch that is remembered of
 * it, the newest last: of several, Kafka's reader keeps the last.
 */
export function encodeProducerSnapshot(entries: readonly ProducerEntry[]): Buffer {
  const bytes = Buffer.alloc(headerBytes + entries.length * entryBytes)
  bytes.writeInt16BE(1, 0)
  bytes.writeInt32BE(entries.length, checkedFrom)
  let at = headerBytes
  for (const entry of entries) {
    bytes.writeBigInt64BE(BigInt(entry.producerId), at)
    bytes.writeInt16BE(entry.producerEpoch, at + 8)
    bytes.writeInt32BE(entry.lastSequence, at + 10)
    bytes.writeBigInt64BE(BigInt(entry.lastOffset), at + 14)
    bytes.writeInt32BE(entry.offsetDelta, at + 22)
    bytes.writeBigInt64BE(BigInt(entry.timestamp), at + 26)
    bytes.writeInt32BE(entry.coordinatorEpoch, at + 34)
    bytes.writeBigInt64BE(BigInt(entry.currentTxnFirstOffset), at + 38)
    at += entryBytes
  }
  bytes.writeUInt32BE(crc32c(bytes.subarray(checkedFrom)), 2)
  return bytes
}

/** Undefined when the bytes are no whole snapshot: it is then as if the file were not there. */
export function decodeProducerSnapshot(bytes: Buffer): ProducerEntry[] | undefined {
  if (bytes.length < headerBytes || bytes.readInt16BE(0) !== 1) return undefined
  const count = bytes.readInt32BE(checkedFrom)
  if (count < 0 || bytes.length !== headerBytes + count * entryBytes) return undefined
  if (bytes.readUInt32BE(2) !== crc32c(bytes.subarray(checkedFrom))) return undefined
  const entries: ProducerEntry[] = []
  for (let at = headerBytes; at < bytes.length; at += entryBytes) {
    entries.push({
      producerId: Number(bytes.readBigInt64BE(at)) as ProducerId,
      producerEpoch: bytes.readInt16BE(at + 8) as ProducerEpoch,
      lastSequence: bytes.readInt32BE(at + 10),
      lastOffset: Number(bytes.readBigInt64BE(at + 14)),
      offsetDelta: bytes.readInt32BE(at + 22),
      timestamp: Number(bytes.readBigInt64BE(at + 26)),
      coordinatorEpoch: bytes.readInt32BE(at + 34),
      currentTxnFirstOffset: Number(bytes.readBigInt64BE(at + 38)),
    })
  }
  return entries
}
