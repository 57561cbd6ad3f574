import { BatchTooLargeError, CorruptBatchError } from './faults.ts'

/**
 * Snappy as Kafka's clients write it. librdkafka writes one raw snappy block. Java writes the stream of the xerial
 * library, snappy-java: a header of 16 bytes (magic, version, lowest compatible version), then blocks, each an int32
 * length and that many bytes of raw snappy.
 */
const xerialMagic = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00])
const xerialHeader = Buffer.concat([xerialMagic, Buffer.from([0, 0, 0, 1, 0, 0, 0, 1])])
/** Bytes a block holds before it is packed; snappy-java's own choice. */
const blockBytes = 32 * 1024

export function packXerial(bytes: Buffer, compressBlock: (block: Buffer) => Buffer): Buffer {
  const chunks: Buffer[] = [xerialHeader]
  for (let start = 0; start < bytes.length; start += blockBytes) {
    const block = compressBlock(bytes.subarray(start, start + blockBytes))
    const length = Buffer.allocUnsafe(4)
    length.writeInt32BE(block.length)
    chunks.push(length, block)
  }
  return Buffer.concat(chunks)
}

/** Reads either form. The sizes that the blocks claim are added up before any block is unpacked. */
export function unpackSnappy(bytes: Buffer, maxBytes: number, unpackBlock: (block: Buffer) => Buffer): Buffer {
  const blocks = bytes.subarray(0, xerialMagic.length).equals(xerialMagic) ? xerialBlocks(bytes) : [bytes]
  let unpackedBytes = 0
  for (const block of blocks) {
    unpackedBytes += claimedSize(block)
    if (unpackedBytes > maxBytes) throw new BatchTooLargeError(maxBytes)
  }
  return blocks.length === 1 ? unpackBlock(blocks[0]!) : Buffer.concat(blocks.map(unpackBlock))
}

function xerialBlocks(bytes: Buffer): Buffer[] {
  const blocks: Buffer[] = []
  if (bytes.length < xerialHeader.length) throw new CorruptBatchError('Snappy stream ends in its header')
  let position = xerialHeader.length
  while (position < bytes.length) {
    if (bytes.length - position < 4) throw new CorruptBatchError('Snappy stream ends early')
    const length = bytes.readInt32BE(position)
    position += 4
    if (length < 0 || length > bytes.length - position) {
      throw new CorruptBatchError(`Snappy block claims ${length} bytes with ${bytes.length - position} left`)
    }
    blocks.push(bytes.subarray(position, position + length))
    position += length
  }
  return blocks
}

/** A raw block begins with its unpacked size as a varint of up to 32 bits. */
function claimedSize(block: Buffer): number {
  let size = 0
  for (let i = 0; i < 5 && i < block.length; i++) {
    const byte = block[i]!
    size += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) return size
  }
  throw new CorruptBatchError('Snappy block has no size')
}
