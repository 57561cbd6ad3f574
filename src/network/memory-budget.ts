import { assert } from '../base/index.ts'

/**
 * Bytes held over all connections against one limit. The limit is where taking more stops, not a wall: what was begun
 * may go above it, each user saying by how much at most.
 */
export class MemoryBudget {
  readonly limitBytes: number
  #usedBytes = 0
  readonly #onCrossed: () => void

  /** `onCrossed` runs when use goes above the limit and when it comes back to it. */
  constructor(limitBytes: number, onCrossed: () => void) {
    this.limitBytes = limitBytes
    this.#onCrossed = onCrossed
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
    if (!wasAbove && this.isAbove) this.#onCrossed()
  }

  remove(bytes: number): void {
    const wasAbove = this.isAbove
    this.#usedBytes -= bytes
    assert(this.#usedBytes >= 0, 'no more is given back than was taken')
    if (wasAbove && !this.isAbove) this.#onCrossed()
  }
}
