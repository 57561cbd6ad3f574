/** Words of 32 bits in a hash. */
export const hashWords = 4

/**
 * A keyed hash of 128 bits for record keys: HalfSipHash-2-4 with 64 bits of output, twice, each with a key of its own. With
 * a random key nobody can make two record keys that are taken for one another, and among billions none are by accident.
 * Several times as fast as a digest of node:crypto, whose calls cost more than short keys do.
 *
 * Source: Aumasson and Bernstein, SipHash; HalfSipHash in its reference implementation.
 */
export class KeyHash {
  /** The last hash. */
  readonly words = new Int32Array(hashWords)
  readonly #keys: readonly [number, number, number, number]

  /** `seed`: 16 random bytes. */
  constructor(seed: Buffer) {
    this.#keys = [seed.readInt32LE(0), seed.readInt32LE(4), seed.readInt32LE(8), seed.readInt32LE(12)]
  }

  /** Leaves the hash of `count` bytes from `start` on in `words`. */
  update(bytes: Buffer, start: number, count: number): void {
    const [k0, k1, k2, k3] = this.#keys
    this.#half(bytes, start, count, k0, k1, 0)
    this.#half(bytes, start, count, k2, k3, 2)
  }

  #half(bytes: Buffer, start: number, count: number, k0: number, k1: number, target: number): void {
    let v0 = k0
    let v1 = k1 ^ 0xee
    let v2 = k0 ^ 0x6c796765
    let v3 = k1 ^ 0x74656462
    const wholeEnd = start + (count & ~3)
    // The words of the key, one that holds its rest and its length, and four rounds more for each half of the output.
    for (let at = start, word = 0; ; at += 4) {
      const isLast = at >= wholeEnd
      if (isLast) {
        word = count << 24
        const rest = count & 3
        if (rest > 2) word |= bytes[at + 2]! << 16
        if (rest > 1) word |= bytes[at + 1]! << 8
        if (rest > 0) word |= bytes[at]!
      } else {
        word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
      }
      v3 ^= word
      for (let round = 0; round < 2; round++) {
        v0 = (v0 + v1) | 0
        v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
        v0 = (v0 << 16) | (v0 >>> 16)
        v2 = (v2 + v3) | 0
        v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
        v0 = (v0 + v3) | 0
        v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
        v2 = (v2 + v1) | 0
        v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
        v2 = (v2 << 16) | (v2 >>> 16)
      }
      v0 ^= word
      if (isLast) break
    }
    v2 ^= 0xee
    for (let round = 0; round < 8; round++) {
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
      if (round === 3) {
        this.words[target] = v1 ^ v3
        v1 ^= 0xdd
      }
    }
    this.words[target + 1] = v1 ^ v3
  }
}
