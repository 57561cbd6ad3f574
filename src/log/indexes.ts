import { assert, type Offset } from '../base/index.ts'

/** Bytes of an offset index entry: relative offset int32, position int32. */
export const offsetEntryBytes = 8
/** Bytes of a time index entry: timestamp int64, relative offset int32. */
export const timeEntryBytes = 12

/**
 * Entries of one size in one buffer that doubles as it fills. In memory they look as in the file, so that loading and
 * storing are one read and one write.
 */
class EntryList {
  readonly #entryBytes: number
  #bytes: Buffer
  #view: DataView
  count: number

  constructor(entryBytes: number, stored: Buffer | undefined) {
    this.#entryBytes = entryBytes
    this.#bytes = stored ?? Buffer.alloc(0)
    this.#view = viewOf(this.#bytes)
    this.count = Math.floor(this.#bytes.length / entryBytes)
  }

  get view(): DataView {
    return this.#view
  }

  /** The entries as they are stored; a view, valid until the next change. */
  get stored(): Buffer {
    return this.#bytes.subarray(0, this.count * this.#entryBytes)
  }

  /** Bytes of memory held. */
  get capacityBytes(): number {
    return this.#bytes.length
  }

  /** Makes room for one more entry and answers where it goes. */
  grow(): number {
    const at = this.count * this.#entryBytes
    if (at + this.#entryBytes > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(this.#entryBytes * 16, this.#bytes.length * 2))
      this.#bytes.copy(larger)
      this.#bytes = larger
      this.#view = viewOf(larger)
    }
    this.count++
    return at
  }

  /** Index of the last entry for which `isAtMost` holds, given that it holds for a prefix; -1 when it holds for none. */
  floor(isAtMost: (at: number) => boolean): number {
    let low = -1
    let high = this.count - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (isAtMost(middle * this.#entryBytes)) low = middle
      else high = middle - 1
    }
    return low
  }
}

function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
}

/**
 * `.index`: where in the segment some of its batches begin. An entry holds a batch's *last* offset and its position, as
 * Kafka's does.
 */
export class OffsetIndex {
  readonly baseOffset: Offset
  readonly #entries: EntryList

  /** `stored`: the file's content; it is kept. */
  constructor(baseOffset: Offset, stored?: Buffer) {
    this.baseOffset = baseOffset
    this.#entries = new EntryList(offsetEntryBytes, stored)
  }

  get count(): number {
    return this.#entries.count
  }

  get stored(): Buffer {
    return this.#entries.stored
  }

  get capacityBytes(): number {
    return this.#entries.capacityBytes
  }

  append(lastOffset: Offset, position: number): void {
    const at = this.#entries.grow()
    this.#entries.view.setInt32(at, lastOffset - this.baseOffset)
    this.#entries.view.setInt32(at + 4, position)
  }

  /** A position at or before the batch that holds `offset`, the nearest that is known; 0 when there is none. */
  lookup(offset: Offset): number {
    const { view } = this.#entries
    const relative = offset - this.baseOffset
    const found = this.#entries.floor((at) => view.getInt32(at) <= relative)
    return found < 0 ? 0 : view.getInt32(found * offsetEntryBytes + 4)
  }

  /** Position of the last entry; 0 when there is none. */
  get lastPosition(): number {
    return this.count === 0 ? 0 : this.#entries.view.getInt32((this.count - 1) * offsetEntryBytes + 4)
  }

  /** Offset of the last entry; the base offset when there is none. */
  get lastOffset(): Offset {
    return this.baseOffset + (this.count === 0 ? 0 : this.#entries.view.getInt32((this.count - 1) * offsetEntryBytes))
  }

  /** Drops entries at or above `offset`. */
  truncateTo(offset: Offset): void {
    const { view } = this.#entries
    this.#entries.count = this.#entries.floor((at) => view.getInt32(at) < offset - this.baseOffset) + 1
  }

  /** Both columns grow, and every position lies inside a segment of `sizeBytes`. */
  isSane(sizeBytes: number): boolean {
    const { view } = this.#entries
    let lastRelative = -1
    let lastPosition = -1
    for (let at = 0; at < this.count * offsetEntryBytes; at += offsetEntryBytes) {
      const relative = view.getInt32(at)
      const position = view.getInt32(at + 4)
      if (relative <= lastRelative || position <= lastPosition || position >= sizeBytes) return false
      lastRelative = relative
      lastPosition = position
    }
    return true
  }
}

/** A time index entry: no batch up to `offset` has a larger timestamp. */
export interface TimeIndexEntry {
  readonly timestamp: number
  /** Last offset of the batch that has the timestamp. */
  readonly offset: Offset
}

/** `.timeindex`: the largest timestamp so far, and the batch it came with. Timestamps and offsets both grow. */
export class TimeIndex {
  readonly baseOffset: Offset
  readonly #entries: EntryList

  constructor(baseOffset: Offset, stored?: Buffer) {
    this.baseOffset = baseOffset
    this.#entries = new EntryList(timeEntryBytes, stored)
  }

  get count(): number {
    return this.#entries.count
  }

  get stored(): Buffer {
    return this.#entries.stored
  }

  get capacityBytes(): number {
    return this.#entries.capacityBytes
  }

  /** Nothing happens unless `timestamp` is larger than that of the last entry; -1 is no timestamp. */
  maybeAppend(timestamp: number, offset: Offset): void {
    const last = this.last
    if (timestamp <= (last?.timestamp ?? -1)) return
    assert(last === undefined || offset > last.offset, 'time index offsets grow')
    const at = this.#entries.grow()
    this.#entries.view.setBigInt64(at, BigInt(timestamp))
    this.#entries.view.setInt32(at + 8, offset - this.baseOffset)
  }

  entry(index: number): TimeIndexEntry {
    assert(index >= 0 && index < this.count, 'the entry exists')
    const at = index * timeEntryBytes
    return { timestamp: this.#timestampAt(at), offset: this.baseOffset + this.#entries.view.getInt32(at + 8) }
  }

  get last(): TimeIndexEntry | undefined {
    return this.count === 0 ? undefined : this.entry(this.count - 1)
  }

  /** The last entry whose timestamp is smaller than `timestamp`: no batch up to its offset is as young. */
  lastBefore(timestamp: number): TimeIndexEntry | undefined {
    const found = this.#entries.floor((at) => this.#timestampAt(at) < timestamp)
    return found < 0 ? undefined : this.entry(found)
  }

  /** The last entry whose offset is below `offset`. */
  lastBelow(offset: Offset): TimeIndexEntry | undefined {
    const found = this.#entries.floor((at) => this.#entries.view.getInt32(at + 8) < offset - this.baseOffset)
    return found < 0 ? undefined : this.entry(found)
  }

  /** Drops entries at or above `offset`. */
  truncateTo(offset: Offset): void {
    this.#entries.count =
      this.#entries.floor((at) => this.#entries.view.getInt32(at + 8) < offset - this.baseOffset) + 1
  }

  isSane(): boolean {
    let lastTimestamp = Number.NEGATIVE_INFINITY
    let lastRelative = -1
    for (let at = 0; at < this.count * timeEntryBytes; at += timeEntryBytes) {
      const timestamp = this.#timestampAt(at)
      const relative = this.#entries.view.getInt32(at + 8)
      if (timestamp <= lastTimestamp || relative <= lastRelative) return false
      lastTimestamp = timestamp
      lastRelative = relative
    }
    return true
  }

  #timestampAt(at: number): number {
    return this.#entries.view.getInt32(at) * 0x1_0000_0000 + this.#entries.view.getUint32(at + 4)
  }
}
