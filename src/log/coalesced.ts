/**
 * Repeatable work of which one run at a time makes sense: whoever calls while one is under way waits for the next, which
 * all of them share.
 */
export class Coalesced {
  readonly #work: () => Promise<void>
  #running: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined

  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  /** Resolves when a run that began after this call is done. */
  run(): Promise<void> {
    if (this.#next === undefined) {
      const next = this.#running.then(() => {
        this.#next = undefined
        return this.#work()
      })
      this.#next = next
      this.#running = next.catch(() => {})
    }
    return this.#next
  }
}
