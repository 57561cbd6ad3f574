/** Small, fast and seeded (mulberry32): one stream makes a whole run. */
export class SeededRandom {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0
  }

  float(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }

  /** Uniform in [0, end). */
  int(end: number): number {
    return Math.floor(this.float() * end)
  }

  /** Uniform in [min, max]. */
  between(min: number, max: number): number {
    return min + this.int(max - min + 1)
  }

  chance(probability: number): boolean {
    return this.float() < probability
  }

  pick<T>(values: readonly T[]): T {
    return values[this.int(values.length)]!
  }
}
