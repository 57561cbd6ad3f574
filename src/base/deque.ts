/** A first-in-first-out queue on a ring that doubles when full: constant time at both ends at any length. */
export class Deque<T> {
  #ring: (T | undefined)[] = new Array(8)
  #head = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  pushBack(value: T): void {
    if (this.#length === this.#ring.length) this.#grow()
    this.#ring[(this.#head + this.#length) & (this.#ring.length - 1)] = value
    this.#length++
  }

  /** The oldest value; undefined when empty. */
  front(): T | undefined {
    return this.#length === 0 ? undefined : this.#ring[this.#head]
  }

  popFront(): T | undefined {
    if (this.#length === 0) return undefined
    const value = this.#ring[this.#head]
    this.#ring[this.#head] = undefined
    this.#head = (this.#head + 1) & (this.#ring.length - 1)
    this.#length--
    return value
  }

  clear(): void {
    this.#ring = new Array(8)
    this.#head = 0
    this.#length = 0
  }

  #grow(): void {
    const bigger: (T | undefined)[] = new Array(this.#ring.length * 2)
    for (let i = 0; i < this.#length; i++) bigger[i] = this.#ring[(this.#head + i) & (this.#ring.length - 1)]
    this.#ring = bigger
    this.#head = 0
  }
}
