/**
 * One cleaning of a log at a time, and none while the log needs its segments for itself: what changes or closes them
 * aborts the cleaning first and waits until it has let go.
 */
export class CleaningTurn {
  #current: { readonly controller: AbortController; readonly done: Promise<unknown> } | undefined
  #pauses = 0

  get isTaken(): boolean {
    return this.#current !== undefined
  }

  /** Undefined: it can't be now, or was aborted. `work` rejects soon after its signal is. */
  async take<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    if (this.#pauses > 0 || this.#current !== undefined) return undefined
    const controller = new AbortController()
    const { signal } = controller
    const result = work(signal)
    this.#current = { controller, done: result.catch(() => {}) }
    try {
      return await result
    } catch (error) {
      if (signal.aborted) return undefined
      throw error
    } finally {
      this.#current = undefined
    }
  }

  abort(): void {
    this.#current?.controller.abort()
  }

  /** Resolves when no cleaning is under way. */
  async ended(): Promise<void> {
    await this.#current?.done
  }

  /** Runs `work` while there is no cleaning. */
  async without<T>(work: () => Promise<T>): Promise<T> {
    this.#pauses++
    try {
      this.abort()
      await this.ended()
      return await work()
    } finally {
      this.#pauses--
    }
  }
}
