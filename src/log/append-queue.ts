/** Keeps appends in order behind one that is being unpacked. */
export class AppendQueue {
  /** Settles when all that were queued are done; undefined when none is. */
  #settled: Promise<unknown> | undefined

  get isEmpty(): boolean {
    return this.#settled === undefined
  }

  /** Resolves when those that are queued are done, however they end. */
  async drained(): Promise<void> {
    await this.#settled
  }

  /** `append` under way is the last one from now on. */
  push<T>(append: Promise<T>): Promise<T> {
    const settled = append.then(
      () => {},
      () => {},
    )
    this.#settled = settled
    void settled.then(() => {
      if (this.#settled === settled) this.#settled = undefined
    })
    return append
  }
}
