import { type Uuid, uuidFromBytes, zeroUuid } from '../base/index.ts'
import { MalformedRequestError } from './faults.ts'
import { int16At, int32At, int64At } from './int64.ts'

/** Strings are at most this many bytes on the wire, in either encoding. */
export const maxStringBytes = 32767

/** Objects a message may hold whatever its size, and bytes that buy one more. */
const freeObjects = 65_536
const bytesPerObject = 8

/**
 * Elements that all arrays of one message may hold together: more than any request in earnest has. A message is read,
 * answered and written in a turn of the event loop, and its answer may take many times its memory; 100 MB of partition
 * numbers would be 25 million answers.
 */
const maxElements = 250_000

/**
 * Reads Kafka's primitive types from one buffer, front to back. Nothing is read past the end and nothing is allocated
 * for a claimed length before that many bytes are known to be there: every fault is a `MalformedRequestError`.
 *
 * `bytes` come out as slices of the buffer: they live as long as it does, and pin it.
 */
export class Reader {
  readonly #buffer: Buffer
  readonly #end: number
  #position: number
  #objectsLeft: number
  #elementsLeft = maxElements

  /** Reads `buffer` from `position` up to `end`, exclusive. */
  constructor(buffer: Buffer, position = 0, end = buffer.length) {
    this.#buffer = buffer
    this.#position = position
    this.#end = end
    this.#objectsLeft = freeObjects + Math.floor((end - position) / bytesPerObject)
  }

  /** Of the next byte to be read, in the buffer. */
  get position(): number {
    return this.#position
  }

  get remaining(): number {
    return this.#end - this.#position
  }

  int8(): number {
    const position = this.#take(1)
    return (this.#buffer[position]! << 24) >> 24
  }

  int16(): number {
    return int16At(this.#buffer, this.#take(2))
  }

  uint16(): number {
    return int16At(this.#buffer, this.#take(2)) & 0xffff
  }

  int32(): number {
    return int32At(this.#buffer, this.#take(4))
  }

  /** Exact within 2^53; `tooHighInt64` or `tooLowInt64` beyond. */
  int64(): number {
    return int64At(this.#buffer, this.#take(8))
  }

  /** Every bit of it. */
  int64Wide(): bigint {
    return this.#buffer.readBigInt64BE(this.#take(8))
  }

  float64(): number {
    return this.#buffer.readDoubleBE(this.#take(8))
  }

  /** Any byte but zero is true, as in Kafka. */
  boolean(): boolean {
    return this.#buffer[this.#take(1)] !== 0
  }

  uuid(): Uuid {
    const position = this.#take(16)
    const buffer = this.#buffer
    if (int32At(buffer, position) === 0 && int32At(buffer, position + 4) === 0) {
      if (int32At(buffer, position + 8) === 0 && int32At(buffer, position + 12) === 0) return zeroUuid
    }
    return uuidFromBytes(buffer.subarray(position, position + 16))
  }

  /** A varint without sign, 0 to 2^32 - 1. */
  uvarint(): number {
    const first = this.#buffer[this.#take(1)]!
    if (first < 0x80) return first
    let value = first & 0x7f
    for (let shift = 7; shift < 28; shift += 7) {
      const byte = this.#buffer[this.#take(1)]!
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    const last = this.#buffer[this.#take(1)]!
    if (last > 0x0f) throw new MalformedRequestError('Varint has more than 32 bits')
    return (value | (last << 28)) >>> 0
  }

  string(): string {
    return this.#text(this.int16()) ?? this.#unexpectedNull('string')
  }

  nullableString(): string | null {
    return this.#text(this.int16())
  }

  compactString(): string {
    return this.#text(this.uvarint() - 1) ?? this.#unexpectedNull('string')
  }

  compactNullableString(): string | null {
    return this.#text(this.uvarint() - 1)
  }

  bytes(): Buffer {
    return this.#slice(this.int32()) ?? this.#unexpectedNull('bytes')
  }

  nullableBytes(): Buffer | null {
    return this.#slice(this.int32())
  }

  compactBytes(): Buffer {
    return this.#slice(this.uvarint() - 1) ?? this.#unexpectedNull('bytes')
  }

  compactNullableBytes(): Buffer | null {
    return this.#slice(this.uvarint() - 1)
  }

  /** Elements of the array that follows; -1 for null. `minElementBytes`, 1 or more: the least one element takes. */
  arrayLength(minElementBytes: number): number {
    return this.#elements(this.int32(), minElementBytes)
  }

  compactArrayLength(minElementBytes: number): number {
    return this.#elements(this.uvarint() - 1, minElementBytes)
  }

  /**
   * Charges `count` objects or strings that are about to be made. A request of two-byte elements would otherwise take
   * fifty times its size in memory; numbers are not charged, they take about what they took on the wire.
   */
  chargeObjects(count: number): void {
    this.#objectsLeft -= count
    if (this.#objectsLeft < 0) throw new MalformedRequestError('Message holds more elements than its size allows')
  }

  /** Whether a nullable struct follows. */
  structPresent(): boolean {
    return this.int8() >= 0
  }

  /** Tagged fields that follow, each at least a tag and a size. */
  tagCount(): number {
    return this.#count(this.uvarint(), 2)
  }

  /** Size of one tagged field's value, checked to be there. */
  tagSize(): number {
    return this.#count(this.uvarint(), 1)
  }

  /** After a tagged field was read: it must end where its size said. */
  expectPosition(position: number): void {
    if (this.#position !== position) throw new MalformedRequestError('Tagged field is not as long as it claims')
  }

  skip(bytes: number): void {
    this.#take(bytes)
  }

  /** Passes over tagged fields of which none is known. */
  skipTags(): void {
    for (let count = this.tagCount(); count > 0; count--) {
      this.uvarint()
      this.skip(this.tagSize())
    }
  }

  unexpectedNullArray(): never {
    return this.#unexpectedNull('array')
  }

  #take(bytes: number): number {
    const position = this.#position
    if (bytes > this.#end - position) {
      throw new MalformedRequestError(`Message ends ${this.remaining} bytes into a value of ${bytes} bytes`)
    }
    this.#position = position + bytes
    return position
  }

  #text(length: number): string | null {
    if (length < 0) return length === -1 ? null : this.#badLength('String', length)
    if (length === 0) return ''
    if (length > maxStringBytes) this.#badLength('String', length)
    const position = this.#take(length)
    return this.#buffer.toString('utf8', position, position + length)
  }

  #slice(length: number): Buffer | null {
    if (length < 0) return length === -1 ? null : this.#badLength('Byte string', length)
    const position = this.#take(length)
    return this.#buffer.subarray(position, position + length)
  }

  #elements(count: number, minElementBytes: number): number {
    this.#count(count, minElementBytes)
    this.#elementsLeft -= Math.max(count, 0)
    if (this.#elementsLeft < 0) throw new MalformedRequestError(`Message holds more than ${maxElements} elements`)
    return count
  }

  #count(count: number, minElementBytes: number): number {
    if (count >= -1 && count * minElementBytes <= this.#end - this.#position) return count
    throw new MalformedRequestError(`Array claims ${count} elements with ${this.remaining} bytes left`)
  }

  #badLength(what: string, length: number): never {
    throw new MalformedRequestError(`${what} claims ${length} bytes`)
  }

  #unexpectedNull(what: string): never {
    throw new MalformedRequestError(`Null where a ${what} is required`)
  }
}
