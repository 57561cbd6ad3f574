import { CorruptBatchError } from './faults.ts'
import { clampInt64, joinInt64 } from './int64.ts'

/**
 * Reads the parts of records, whose integers are zigzag varints. Bounds-checked: past `end` it throws
 * `CorruptBatchError`.
 */
export class VarintReader {
  readonly bytes: Buffer
  readonly end: number
  /** Of the next byte. */
  position: number

  constructor(bytes: Buffer, position = 0, end = bytes.length) {
    this.bytes = bytes
    this.position = position
    this.end = end
  }

  int8(): number {
    if (this.position >= this.end) this.#endsEarly()
    return (this.bytes[this.position++]! << 24) >> 24
  }

  /** Signed, 32 bits. */
  varint(): number {
    if (this.position >= this.end) this.#endsEarly()
    const first = this.bytes[this.position++]!
    if (first < 0x80) return (first >>> 1) ^ -(first & 1)
    let value = first & 0x7f
    for (let shift = 7; ; shift += 7) {
      if (this.position >= this.end) this.#endsEarly()
      const byte = this.bytes[this.position++]!
      value |= (byte & 0x7f) << shift
      if (byte < 0x80) {
        if (shift === 28 && byte > 0x0f) throw new CorruptBatchError('Varint has more than 32 bits')
        return (value >>> 1) ^ -(value & 1)
      }
      if (shift === 28) throw new CorruptBatchError('Varint has more than 32 bits')
    }
  }

  /** Signed, 64 bits; clamped like every int64. */
  varlong(): number {
    let low = 0
    let high = 0
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.position >= this.end) this.#endsEarly()
      const byte = this.bytes[this.position++]!
      const bits = byte & 0x7f
      if (shift < 28) low |= bits << shift
      else if (shift === 28) {
        low |= bits << 28
        high = bits >>> 4
      } else high |= bits << (shift - 32)
      if (byte < 0x80) {
        const sign = -(low & 1)
        return joinInt64((high >>> 1) ^ sign, (((low >>> 1) | (high << 31)) ^ sign) >>> 0)
      }
    }
    throw new CorruptBatchError('Varint has more than 64 bits')
  }

  /** The bytes that follow, by their length; null for -1. A slice. */
  nullableBytes(): Buffer | null {
    const length = this.varint()
    if (length < 0) return null
    const start = this.position
    this.skip(length)
    return this.bytes.subarray(start, start + length)
  }

  skip(count: number): void {
    if (count > this.end - this.position) this.#endsEarly()
    this.position += count
  }

  #endsEarly(): never {
    throw new CorruptBatchError('Record ends in the middle of a value')
  }
}

export function varintSize(value: number): number {
  let rest = zigzag(value)
  let bytes = 1
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes++
  return bytes
}

/** Writes `value`, from -(2^52) to 2^52, as a zigzag varint and returns the position behind it. */
export function setVarint(bytes: Uint8Array, position: number, value: number): number {
  let rest = zigzag(value)
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes[position++] = (rest % 0x80) | 0x80
  bytes[position++] = rest
  return position
}

/** A timestamp of a record: its batch's base and its own delta, both clamped already. */
export function addTimestamps(base: number, delta: number): number {
  return clampInt64(base + delta)
}

function zigzag(value: number): number {
  return value >= 0 ? value * 2 : -value * 2 - 1
}
