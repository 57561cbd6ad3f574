import { crc32 } from 'node:zlib'
import type { LogIndex, PartialSnapshot, SnapshotChunk, SnapshotChunkMessage, SnapshotHeader, Term } from './types.ts'

/**
 * A follower's side of a snapshot that comes in chunks: one snapshot at a time, its bytes in order. What came is kept by the host,
 * apart from the log, so this holds no data; it goes on where it was after a lost message, a restart, or a new leader
 * that sends the same bytes.
 */
export class SnapshotReceiver {
  #header: SnapshotHeader | undefined
  #nextOffset = 0
  /** Of the leader that last sent a chunk of it; undefined for one that was kept over a restart. */
  #leaderTerm: Term | undefined
  #chunks: SnapshotChunk[] = []

  constructor(kept: PartialSnapshot | undefined) {
    // A whole one that was kept and not installed is asked for again: only the leader of now says whether it is wanted.
    if (kept === undefined || kept.nextOffset >= kept.header.totalBytes) return
    this.#header = kept.header
    this.#nextOffset = kept.nextOffset
  }

  /** Takes the chunk if it is the next one. Where to go on; undefined when all is there and the host puts it together. */
  accept({ header, offset, data, crc, term }: SnapshotChunkMessage): number | undefined {
    if (this.#header !== undefined && !isSame(this.#header, header)) {
      // A leader's late chunk must not throw away its newer snapshot. Another leader may well have only an older one.
      if (header.index < this.#header.index && term === this.#leaderTerm) return 0
      this.drop()
    }
    this.#leaderTerm = term
    if (this.#header !== undefined && this.#nextOffset === header.totalBytes && offset > 0) return undefined
    const isNext = offset === this.#nextOffset && offset + data.length <= header.totalBytes
    const isProgress = data.length > 0 || header.totalBytes === 0
    if (!isNext || !isProgress || crc32(data) !== crc) return this.#nextOffset
    this.#header = header
    this.#nextOffset = offset + data.length
    this.#chunks.push({ header, offset, data })
    return this.#nextOffset === header.totalBytes ? undefined : this.#nextOffset
  }

  get hasChunks(): boolean {
    return this.#chunks.length > 0
  }

  takeChunks(): readonly SnapshotChunk[] {
    const chunks = this.#chunks
    this.#chunks = []
    return chunks
  }

  /** Whether `index` is that of the snapshot whose chunks all came. */
  isComplete(index: LogIndex): boolean {
    return this.#header?.index === index && this.#nextOffset === this.#header.totalBytes
  }

  /** Starts over with the next chunk 0: another snapshot came, or the log has no use for this one any more. */
  drop(): void {
    this.#header = undefined
    this.#nextOffset = 0
    this.#chunks = []
  }

  /** Drops a snapshot that brings nothing new. */
  dropUpTo(commitIndex: LogIndex): void {
    if (this.#header !== undefined && this.#header.index <= commitIndex) this.drop()
  }
}

function isSame(a: SnapshotHeader, b: SnapshotHeader): boolean {
  return a.index === b.index && a.term === b.term && a.totalBytes === b.totalBytes && a.dataCrc === b.dataCrc
}
