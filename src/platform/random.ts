import { type Uuid, uuidFromBytes, zeroUuid } from '../base/index.ts'
import type { Random } from './ports.ts'

const poolBytes = 4096
const two32 = 2 ** 32
const two48 = 2 ** 48

/** The whole of `Random` over a source of random bytes, which is asked for 4 KiB at a time. */
export class ByteRandom implements Random {
  readonly #fill: (target: Uint8Array) => void
  readonly #pool = new Uint8Array(poolBytes)
  readonly #view = new DataView(this.#pool.buffer)
  /** Bytes of the pool that were handed out; none is handed out twice. */
  #used = poolBytes

  /** `fill` overwrites all of its argument with uniform bytes. */
  constructor(fill: (target: Uint8Array) => void) {
    this.#fill = fill
  }

  float(): number {
    const at = this.#take(8)
    const high = this.#view.getUint32(at) >>> 5
    const low = this.#view.getUint32(at + 4) >>> 6
    return (high * 2 ** 26 + low) / 2 ** 53
  }

  int(end: number): number {
    // Values of the incomplete last run of `end` would make small results likelier: draw again.
    const limit = two48 - (two48 % end)
    for (;;) {
      const at = this.#take(6)
      const value = this.#view.getUint16(at) * two32 + this.#view.getUint32(at + 2)
      if (value < limit) return value % end
    }
  }

  uuid(): Uuid {
    for (;;) {
      const at = this.#take(16)
      const bytes = this.#pool.subarray(at, at + 16)
      bytes[6] = (bytes[6]! & 0x0f) | 0x40
      bytes[8] = (bytes[8]! & 0x3f) | 0x80
      const uuid = uuidFromBytes(bytes)
      // A leading '-' reads like an option on a command line; Kafka draws again too.
      if (!uuid.startsWith('-') && uuid !== zeroUuid) return uuid
    }
  }

  bytes(length: number): Buffer {
    const result = Buffer.allocUnsafeSlow(length)
    if (length > poolBytes) {
      this.#fill(result)
    } else {
      const at = this.#take(length)
      result.set(this.#pool.subarray(at, at + length))
    }
    return result
  }

  #take(length: number): number {
    if (this.#used + length > poolBytes) {
      this.#fill(this.#pool)
      this.#used = 0
    }
    const at = this.#used
    this.#used += length
    return at
  }
}
