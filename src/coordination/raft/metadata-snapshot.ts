import {
  decodeRecords,
  encodeRecords,
  MetadataFormatError,
  type MetadataImage,
  type MetadataRecord,
  snapshotRecords,
} from '../../metadata/index.ts'

/** About a millisecond of work: between two chunks the event loop gets a turn. */
const recordsPerChunk = 500
const lengthBytes = 4

/**
 * The data of a Raft snapshot: chunks one after the other, each its length in bytes (4, big-endian) and a payload of
 * records. Calls `yieldTurn` between chunks.
 */
export async function encodeSnapshot(image: MetadataImage, yieldTurn: () => Promise<void>): Promise<Buffer> {
  const parts: Buffer[] = []
  let chunk: MetadataRecord[] = []
  const flush = () => {
    const payload = encodeRecords(chunk)
    const length = Buffer.alloc(lengthBytes)
    length.writeUInt32BE(payload.length)
    parts.push(length, payload)
    chunk = []
  }
  for (const record of snapshotRecords(image)) {
    if (chunk.push(record) < recordsPerChunk) continue
    flush()
    await yieldTurn()
  }
  if (chunk.length > 0) flush()
  return Buffer.concat(parts)
}

/** Throws `MetadataFormatError` where the data isn't what `encodeSnapshot` writes. */
export function* decodeSnapshot(data: Uint8Array): Generator<MetadataRecord> {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  for (let position = 0; position < data.length; ) {
    const left = data.length - position - lengthBytes
    if (left < 0) throw new MetadataFormatError(`Metadata snapshot ends inside a chunk's length, at ${position}`)
    const length = view.getUint32(position)
    if (length > left) {
      throw new MetadataFormatError(`Metadata snapshot's chunk at ${position} claims ${length} bytes, ${left} are left`)
    }
    position += lengthBytes
    yield* decodeRecords(data.subarray(position, position + length))
    position += length
  }
}
