import { type FileHandle, open } from 'node:fs/promises'
import { BatchView, batchHeaderBytes, checkBatchShape, crc32c } from '../../protocol/index.ts'

/** A batch where it lies in a segment. */
export interface ScannedBatch {
  /** Of its first byte in the file. */
  readonly position: number
  /** The whole batch where `isWhole`, else its header; valid until the scan goes on. */
  readonly view: BatchView
  /** False for one that is too large to be held in memory: its CRC was taken by parts. */
  readonly isWhole: boolean
  readonly crc: 'ok' | 'wrong'
}

export interface ScanEnd {
  /** Where the last batch ends; what follows can't be read. */
  readonly endPosition: number
  readonly fileBytes: number
  readonly fault: ScanFault | undefined
}

/**
 * - `truncated`: the file ends within a batch
 * - `zeros`: nothing but zero bytes follow: room that was taken in advance, or a torn write
 * - `format`: what follows is in a format before Kafka 0.11, or no batch at all
 * - `length`: a batch that claims to be shorter than its header, or to end before it begins
 */
export type ScanFault = 'truncated' | 'zeros' | 'format' | 'length'

const chunkBytes = 1024 * 1024
/** A larger batch isn't held in memory as a whole; brokers take up to 1 MiB by default. */
const maxHeldBytes = 64 * 1024 * 1024
/** Where the part of a batch begins that its CRC covers. */
const checkedFrom = 21

/**
 * Reads a segment from front to back, batches by chunk. A batch with a wrong CRC is given as such and the scan goes on behind it,
 * since its length leads there; where that can't be known the scan ends.
 */
export async function* scanSegment(
  path: string,
  onRead: (bytes: number) => void = () => undefined,
): AsyncGenerator<readonly ScannedBatch[], ScanEnd, undefined> {
  const file = await open(path, 'r')
  try {
    const fileBytes = (await file.stat()).size
    let buffer = Buffer.allocUnsafeSlow(chunkBytes)
    let position = 0
    for (;;) {
      const wanted = Math.min(buffer.length, fileBytes - position)
      const { bytesRead } = await file.read(buffer, 0, wanted, position)
      onRead(bytesRead)
      const batches: ScannedBatch[] = []
      let at = 0
      let fault: ScanFault | undefined
      let large: ScannedBatch | undefined
      while (at < bytesRead) {
        const rest = fileBytes - position - at
        if (bytesRead - at < batchHeaderBytes) {
          if (rest < batchHeaderBytes) fault = 'truncated'
          break
        }
        const shape = checkBatchShape(buffer, at, at + rest)
        const view = new BatchView(buffer, at)
        if (shape !== 'ok') fault = shape === 'magic' ? 'format' : shape === 'crc' ? 'length' : shape
        else if (view.lastOffsetDelta < 0 || view.baseOffset < 0) fault = 'length'
        if (fault !== undefined) break
        const { sizeBytes } = view
        if (at + sizeBytes > bytesRead) {
          if (sizeBytes <= maxHeldBytes || at > 0) break
          const header = Buffer.from(buffer.subarray(at, at + batchHeaderBytes))
          const crc = await crcOf(file, position + checkedFrom, position + sizeBytes)
          large = { position, view: new BatchView(header), isWhole: false, crc: crc === view.crc ? 'ok' : 'wrong' }
          break
        }
        const crc = view.computeCrc() === view.crc ? 'ok' : 'wrong'
        batches.push({ position: position + at, view, isWhole: true, crc })
        at += sizeBytes
      }
      if (large !== undefined) batches.push(large)
      if (batches.length > 0) yield batches
      position += large?.view.sizeBytes ?? at
      if (fault !== undefined) {
        const isZeros = await isZero(file, position, fileBytes)
        return { endPosition: position, fileBytes, fault: isZeros ? 'zeros' : fault }
      }
      if (position >= fileBytes) return { endPosition: position, fileBytes, fault: undefined }
      // Fewer bytes than the size said: someone cut the file meanwhile.
      if (bytesRead < wanted) return { endPosition: position, fileBytes: position + bytesRead - at, fault: 'truncated' }
      if (batches.length === 0) {
        const needed = new BatchView(buffer, 0).sizeBytes
        buffer = Buffer.allocUnsafeSlow(Math.max(needed, chunkBytes))
      } else if (buffer.length > chunkBytes) {
        buffer = Buffer.allocUnsafeSlow(chunkBytes)
      }
    }
  } finally {
    await file.close()
  }
}

/** `from` inclusive, `to` exclusive. */
async function crcOf(file: FileHandle, from: number, to: number): Promise<number> {
  const buffer = Buffer.allocUnsafeSlow(chunkBytes)
  let crc = 0
  for (let at = from; at < to; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(chunkBytes, to - at), at)
    if (bytesRead === 0) return -1
    crc = crc32c(buffer.subarray(0, bytesRead), crc)
    at += bytesRead
  }
  return crc
}

async function isZero(file: FileHandle, from: number, to: number): Promise<boolean> {
  const buffer = Buffer.allocUnsafeSlow(chunkBytes)
  for (let at = from; at < to; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(chunkBytes, to - at), at)
    if (bytesRead === 0) break
    if (buffer.subarray(0, bytesRead).some((byte) => byte !== 0)) return false
    at += bytesRead
  }
  return true
}
