/** Sizes that are kept; a larger buffer is made for its one use. */
const keptSizes = [16 * 1024, 64 * 1024, 256 * 1024, 1024 * 1024 + 64 * 1024]

/** A buffer on loan. `bytes` is as long as asked for; its content is what the last user left. */
export interface BorrowedBuffer {
  readonly bytes: Buffer
  release(): void
}

/**
 * Buffers for reads from files, used again: a fresh one of 64 KiB or more costs page faults each time.
 */
export class ReadBuffers {
  readonly #maxIdleBytes: number
  readonly #idle: Buffer[][] = keptSizes.map(() => [])
  #idleBytes = 0

  /** `maxIdleBytes`: kept while nobody uses them. */
  constructor(options: { readonly maxIdleBytes: number }) {
    this.#maxIdleBytes = options.maxIdleBytes
  }

  borrow(sizeBytes: number): BorrowedBuffer {
    const kept = keptSizes.findIndex((size) => size >= sizeBytes)
    const idle = this.#idle[kept]
    if (idle === undefined) return { bytes: Buffer.allocUnsafeSlow(sizeBytes), release: () => {} }
    const whole = idle.pop()
    if (whole !== undefined) this.#idleBytes -= whole.length
    return this.#lend(whole ?? Buffer.allocUnsafeSlow(keptSizes[kept]!), idle, sizeBytes)
  }

  #lend(whole: Buffer, idle: Buffer[], sizeBytes: number): BorrowedBuffer {
    let isReleased = false
    return {
      bytes: whole.subarray(0, sizeBytes),
      release: () => {
        if (isReleased) return
        isReleased = true
        if (this.#idleBytes + whole.length > this.#maxIdleBytes) return
        this.#idleBytes += whole.length
        idle.push(whole)
      },
    }
  }
}
