/**
 * Lets calls through, one after the other, keeps them while it is held, and drops them for good once it has ended: what a
 * process that is suspended, or dead, does with what happens to it.
 */
export class Turnstile {
  #state: 'open' | 'held' | 'ended' = 'open'
  readonly #kept: (() => void)[] = []

  get isHeld(): boolean {
    return this.#state === 'held'
  }

  get hasEnded(): boolean {
    return this.#state === 'ended'
  }

  /** Runs `call` now, or when it is let go, in the order in which calls came; never once it has ended. */
  pass(call: () => void): void {
    if (this.#state === 'open') call()
    else if (this.#state === 'held') this.#kept.push(call)
  }

  /** Settles as `promise` does, but not while it is held, and never once it has ended. */
  settled<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      promise.then(
        (value) => this.pass(() => resolve(value)),
        (error: unknown) => this.pass(() => reject(error)),
      )
    })
  }

  hold(): void {
    if (this.#state === 'open') this.#state = 'held'
  }

  /** What was kept runs before this returns. */
  letGo(): void {
    if (this.#state !== 'held') return
    this.#state = 'open'
    for (const call of this.#kept.splice(0)) this.pass(call)
  }

  end(): void {
    this.#state = 'ended'
    this.#kept.length = 0
  }
}
