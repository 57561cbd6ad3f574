import { BatchTooLargeError, CorruptBatchError } from './faults.ts'

/**
 * LZ4 frame format 1.6, little-endian:
 *
 *     uint32 magic | flags | block size code | [uint64 content size] | [uint32 dictionary] | header checksum
 *     | { uint32 size, high bit: stored as it is | data | [uint32 checksum] }... | uint32 0 | [uint32 checksum]
 */
const magic = 0x184d2204
const blockChecksums = 0x10
const contentSize = 0x08
const contentChecksum = 0x04
const dictionary = 0x01
const storedBit = 0x8000_0000

/**
 * What the first frame of `bytes` unpacks to, found by adding up its sequences, and what it takes packed. Bytes after
 * the frame are ignored, as Kafka does. Throws `BatchTooLargeError` as soon as the sum passes `maxBytes`.
 */
export function measureLz4Frame(
  bytes: Buffer,
  maxBytes: number,
): { readonly frameBytes: number; readonly unpackedBytes: number } {
  if (bytes.length < 7 || bytes.readUInt32LE(0) !== magic) throw new CorruptBatchError('Records are no LZ4 frame')
  const flags = bytes[4]!
  let position = 7 + (flags & contentSize ? 8 : 0) + (flags & dictionary ? 4 : 0)
  let unpackedBytes = 0
  for (;;) {
    if (position + 4 > bytes.length) throw new CorruptBatchError('LZ4 frame ends early')
    const size = bytes.readUInt32LE(position)
    position += 4
    if (size === 0) break
    const stored = size >= storedBit
    const end = position + (stored ? size - storedBit : size)
    if (end > bytes.length) throw new CorruptBatchError('LZ4 frame ends early')
    unpackedBytes += stored ? end - position : measureBlock(bytes, position, end)
    if (unpackedBytes > maxBytes) throw new BatchTooLargeError(maxBytes)
    position = end + (flags & blockChecksums ? 4 : 0)
  }
  return { frameBytes: Math.min(position + (flags & contentChecksum ? 4 : 0), bytes.length), unpackedBytes }
}

/** A block is sequences of literals and a match; the last has literals only. */
function measureBlock(bytes: Buffer, start: number, end: number): number {
  let position = start
  let unpackedBytes = 0
  while (position < end) {
    const token = bytes[position++]!
    let literals = token >> 4
    if (literals === 15) {
      let more: number
      do {
        more = position < end ? bytes[position]! : 0
        position++
        literals += more
      } while (more === 255)
    }
    position += literals
    unpackedBytes += literals
    if (position >= end) break
    position += 2
    let match = (token & 15) + 4
    if (match === 19) {
      let more: number
      do {
        more = position < end ? bytes[position]! : 0
        position++
        match += more
      } while (more === 255)
    }
    unpackedBytes += match
  }
  if (position !== end) throw new CorruptBatchError('LZ4 block ends in the middle of a sequence')
  return unpackedBytes
}
