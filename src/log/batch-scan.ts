import { BatchView, batchHeaderBytes, checkBatchShape, crc32c } from '../protocol/index.ts'
import type { PooledFile } from './handle-pool.ts'
import type { ReadBuffers } from './read-buffers.ts'

const chunkBytes = 1024 * 1024
/** Where the part of a batch begins that its CRC covers. */
const checkedFrom = 21

export interface Scan {
  readonly file: PooledFile
  readonly buffers: ReadBuffers
  /** Position of the first batch. */
  readonly from: number
  /** Exclusive: what lies behind is not looked at. */
  readonly to: number
  readonly verifyCrc: boolean
  /** Gets the header only, valid during the call. False ends the scan after this batch. */
  visit(view: BatchView, position: number): boolean
}

export interface ScanEnd {
  /** Where the last good batch ends; with a fault, where the first bad one begins. */
  readonly endPosition: number
  /** What is wrong there. */
  readonly fault?: string
}

/**
 * Walks the batches of a file by their headers, in chunks through the thread pool: at most about a millisecond of the
 * event loop at a time. What a damaged length claims is never allocated; the CRC of a large batch is taken by chunks.
 */
export async function scanBatches(scan: Scan): Promise<ScanEnd> {
  const { file, to } = scan
  const buffer = scan.buffers.borrow(chunkBytes)
  const { bytes } = buffer
  const view = new BatchView(bytes)
  try {
    let position = scan.from
    while (position < to) {
      const count = await file.read(bytes.subarray(0, Math.min(bytes.length, to - position)), position)
      let at = 0
      while (position + at < to) {
        const rest = to - position - at
        if (rest < batchHeaderBytes) return { endPosition: position + at, fault: 'truncated' }
        if (count - at < batchHeaderBytes) break
        const shape = checkBatchShape(bytes, at, at + rest)
        if (shape !== 'ok') return { endPosition: position + at, fault: shape }
        view.moveTo(bytes, at)
        const { sizeBytes } = view
        if (view.lastOffsetDelta < 0) return { endPosition: position + at, fault: 'offset delta' }
        if (at + sizeBytes <= count) {
          if (scan.verifyCrc && view.computeCrc() !== view.crc) return { endPosition: position + at, fault: 'crc' }
          if (!scan.visit(view, position + at)) return { endPosition: position + at + sizeBytes }
          at += sizeBytes
          continue
        }
        if (sizeBytes <= bytes.length) break
        if (scan.verifyCrc && (await crcOfLarge(scan, position + at, sizeBytes)) !== view.crc) {
          return { endPosition: position + at, fault: 'crc' }
        }
        if (!scan.visit(view, position + at)) return { endPosition: position + at + sizeBytes }
        at += sizeBytes
        break
      }
      if (at === 0) return { endPosition: position, fault: 'truncated' }
      position += at
    }
    return { endPosition: position }
  } finally {
    buffer.release()
  }
}

async function crcOfLarge(scan: Scan, position: number, sizeBytes: number): Promise<number> {
  const buffer = scan.buffers.borrow(chunkBytes)
  try {
    let crc = 0
    let at = position + checkedFrom
    const end = position + sizeBytes
    while (at < end) {
      const count = await scan.file.read(buffer.bytes.subarray(0, Math.min(chunkBytes, end - at)), at)
      if (count === 0) return -1
      crc = crc32c(buffer.bytes.subarray(0, count), crc)
      at += count
    }
    return crc
  } finally {
    buffer.release()
  }
}
