import { assert } from '../base/index.ts'

/**
 * Bytes held over all connections against one limit. The limit is where taking more stops, not a wall: what was begun
 * may go above it, each user saying by how much at most.
 */
export class MemoryBudget {
  readonly limitBytes: number
  #usedBytes = 0
  readonly #onPressure: () => void

  /** `onPressure` runs when use goes above the limit, and then at each return of memory until it is no longer above. */
  constructor(limitBytes: number, onPressure: () => void) {
    this.limitBytes = limitBytes
    this.#onPressure = onPressure
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  get isAbove(): boolean {
    return this.#usedBytes > this.limitBytes
  }

  add(bytes: number): void {
    const wasAbove = this.isAbove
    this.#usedBytes += bytes
    if (!wasAbove && this.isAbove) this.#onPressure()
  }

  remove(bytes: number): void {
    const wasAbove = this.isAbove
    this.#usedBytes -= bytes
    assert(this.#usedBytes >= 0, 'no more is given back than was taken')
    if (wasAbove) this.#onPressure()
  }
}
