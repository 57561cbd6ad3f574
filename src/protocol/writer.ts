import { AssertionError, assert, type Uuid, uuidToBytes, zeroUuid } from '../base/index.ts'
import { setInt16, setInt32, setInt64, tooHighInt64, tooLowInt64 } from './int64.ts'
import { maxStringBytes } from './reader.ts'

/** Longest string that is tried as ASCII, byte by byte, before Buffer's own encoder is asked. */
const shortString = 48

/**
 * Writes Kafka's primitive types. Small values go to one growing buffer; record data is put between them as the slices
 * it came in and never copied, so the result is a list of chunks. A number out of its type's range is a bug and throws.
 */
export class Writer {
  #buffer: Buffer
  #position = 0
  /** Chunks to put in, and where: before the byte of `#buffer` at the same index of `#insertAt`. */
  readonly #inserted: Buffer[] = []
  readonly #insertAt: number[] = []
  #insertedBytes = 0

  /** `sizeHint`: bytes expected, without record data. */
  constructor(sizeHint = 256) {
    this.#buffer = Buffer.allocUnsafe(sizeHint)
  }

  /** Bytes written so far, record data included. */
  get size(): number {
    return this.#position + this.#insertedBytes
  }

  /** What was written, in order. The writer must not be used afterwards: the chunks are its memory. */
  finish(): Buffer[] {
    const chunks: Buffer[] = []
    let from = 0
    for (let i = 0; i < this.#inserted.length; i++) {
      const to = this.#insertAt[i]!
      if (to > from) chunks.push(this.#buffer.subarray(from, to))
      chunks.push(this.#inserted[i]!)
      from = to
    }
    if (this.#position > from) chunks.push(this.#buffer.subarray(from, this.#position))
    return chunks
  }

  /** Leaves room for the frame's length. First call on a writer, when `finishFrame` will be the last. */
  startFrame(): void {
    assert(this.size === 0, 'a frame begins with its length')
    this.int32(0)
  }

  /** `finish`, with the length of all that follows in the first four bytes. */
  finishFrame(): Buffer[] {
    setInt32(this.#buffer, 0, this.size - 4)
    return this.finish()
  }

  int8(value: number): void {
    if ((value << 24) >> 24 !== value) this.#outOfRange('int8', value)
    const position = this.#room(1)
    this.#buffer[position] = value
  }

  int16(value: number): void {
    if ((value << 16) >> 16 !== value) this.#outOfRange('int16', value)
    const position = this.#room(2)
    setInt16(this.#buffer, position, value)
  }

  uint16(value: number): void {
    if ((value & 0xffff) !== value) this.#outOfRange('uint16', value)
    const position = this.#room(2)
    setInt16(this.#buffer, position, value)
  }

  int32(value: number): void {
    if ((value | 0) !== value) this.#outOfRange('int32', value)
    const position = this.#room(4)
    setInt32(this.#buffer, position, value)
  }

  /** `value`: from `tooLowInt64` to `tooHighInt64`. */
  int64(value: number): void {
    if (!Number.isInteger(value) || value > tooHighInt64 || value < tooLowInt64) this.#outOfRange('int64', value)
    const position = this.#room(8)
    setInt64(this.#buffer, position, value)
  }

  int64Wide(value: bigint): void {
    const position = this.#room(8)
    this.#buffer.writeBigInt64BE(value, position)
  }

  float64(value: number): void {
    const position = this.#room(8)
    this.#buffer.writeDoubleBE(value, position)
  }

  boolean(value: boolean): void {
    const position = this.#room(1)
    this.#buffer[position] = value ? 1 : 0
  }

  uuid(value: Uuid): void {
    const position = this.#room(16)
    if (value === zeroUuid) {
      this.#buffer.fill(0, position, position + 16)
      return
    }
    const bytes = uuidToBytes(value)
    assert(bytes !== undefined, `'${value}' is no UUID`)
    this.#buffer.set(bytes, position)
  }

  /** `value`: 0 to 2^32 - 1. */
  uvarint(value: number): void {
    let position = this.#room(5)
    while (value > 0x7f) {
      this.#buffer[position++] = (value & 0x7f) | 0x80
      value >>>= 7
    }
    this.#buffer[position++] = value
    this.#position = position
  }

  string(value: string): void {
    const at = this.#room(2)
    const bytes = this.#text(value)
    setInt16(this.#buffer, at, bytes)
  }

  nullableString(value: string | null): void {
    if (value === null) this.int16(-1)
    else this.string(value)
  }

  compactString(value: string): void {
    // Nearly every string is below 127 bytes: its length takes one byte, which is put in afterwards.
    if (value.length <= shortString / 3) {
      const at = this.#room(1)
      const bytes = this.#text(value)
      this.#buffer[at] = bytes + 1
      return
    }
    this.uvarint(Buffer.byteLength(value) + 1)
    this.#text(value)
  }

  compactNullableString(value: string | null): void {
    if (value === null) this.uvarint(0)
    else this.compactString(value)
  }

  /** Copied. */
  bytes(value: Uint8Array): void {
    this.int32(value.length)
    const position = this.#room(value.length)
    this.#buffer.set(value, position)
  }

  nullableBytes(value: Uint8Array | null): void {
    if (value === null) this.int32(-1)
    else this.bytes(value)
  }

  compactBytes(value: Uint8Array): void {
    this.uvarint(value.length + 1)
    const position = this.#room(value.length)
    this.#buffer.set(value, position)
  }

  compactNullableBytes(value: Uint8Array | null): void {
    if (value === null) this.uvarint(0)
    else this.compactBytes(value)
  }

  /** Not copied: the chunks must stay as they are until the message is on its way. */
  records(value: Buffer | readonly Buffer[] | null): void {
    if (value === null) this.int32(-1)
    else {
      this.int32(sizeOf(value))
      this.#insert(value)
    }
  }

  compactRecords(value: Buffer | readonly Buffer[] | null): void {
    if (value === null) this.uvarint(0)
    else {
      this.uvarint(sizeOf(value) + 1)
      this.#insert(value)
    }
  }

  /** Begins a tagged field; the result goes to `endTag`. Record data has no place inside. */
  beginTag(tag: number): number {
    this.uvarint(tag)
    return this.#room(1)
  }

  /** Puts the size of what was written since in front of it. */
  endTag(sizeAt: number): void {
    const bytes = this.#position - sizeAt - 1
    if (bytes <= 0x7f) {
      this.#buffer[sizeAt] = bytes
      return
    }
    const sizeBytes = bytes < 0x4000 ? 2 : bytes < 0x20_0000 ? 3 : bytes < 0x1000_0000 ? 4 : 5
    this.#room(sizeBytes - 1)
    this.#buffer.copyWithin(sizeAt + sizeBytes, sizeAt + 1, sizeAt + 1 + bytes)
    this.#position = sizeAt
    this.uvarint(bytes)
    this.#position = sizeAt + sizeBytes + bytes
  }

  /**
   * Position of `bytes` free bytes, which count as written from here on. May replace `#buffer`, so it is called in a
   * statement of its own: in `this.#buffer[this.#room(1)] = x` the old buffer would be written to.
   */
  #room(bytes: number): number {
    const position = this.#position
    if (position + bytes > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(position + bytes, this.#buffer.length * 2))
      larger.set(this.#buffer.subarray(0, position))
      this.#buffer = larger
    }
    this.#position = position + bytes
    return position
  }

  /** Appends `value` as UTF-8 and returns how many bytes that took. */
  #text(value: string): number {
    const length = value.length
    const start = this.#position
    if (length <= shortString) {
      this.#room(length)
      let i = 0
      for (; i < length; i++) {
        const unit = value.charCodeAt(i)
        if (unit > 0x7f) break
        this.#buffer[start + i] = unit
      }
      if (i === length) return length
      this.#position = start
    }
    const bytes = Buffer.byteLength(value)
    if (bytes > maxStringBytes) throw new AssertionError(`A string of ${bytes} bytes, at most ${maxStringBytes} fit`)
    const position = this.#room(bytes)
    this.#buffer.write(value, position, 'utf8')
    return bytes
  }

  #insert(value: Buffer | readonly Buffer[]): void {
    if (Buffer.isBuffer(value)) this.#insertChunk(value)
    else for (const chunk of value) this.#insertChunk(chunk)
  }

  #insertChunk(chunk: Buffer): void {
    if (chunk.length === 0) return
    this.#inserted.push(chunk)
    this.#insertAt.push(this.#position)
    this.#insertedBytes += chunk.length
  }

  #outOfRange(type: string, value: number): never {
    throw new AssertionError(`${value} is no ${type}`)
  }
}

function sizeOf(value: Buffer | readonly Buffer[]): number {
  if (Buffer.isBuffer(value)) return value.length
  let bytes = 0
  for (const chunk of value) bytes += chunk.length
  return bytes
}
