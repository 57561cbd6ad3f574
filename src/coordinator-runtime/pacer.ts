import type { Clock, Timers } from '../platform/index.ts'

/** How long one stretch of replaying may hold the event loop. */
const stretchMs = 4

/**
 * Shares the event loop between many loads: one of them works in any turn of the loop, for `stretchMs`, whoever waits
 * longest first. Without it fifty partitions that load at start would each take their stretch of the same turn.
 */
export class Pacer {
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #waiting: (() => void)[] = []

  constructor(clock: Clock, timers: Timers) {
    this.#clock = clock
    this.#timers = timers
  }

  /** Resolves with the time (monotonic) until which the caller may work before it asks again. */
  turn(): Promise<number> {
    return new Promise((resolve) => {
      this.#waiting.push(() => resolve(this.#clock.monotonic() + stretchMs))
      if (this.#waiting.length === 1) this.#wakeNext()
    })
  }

  #wakeNext(): void {
    this.#timers.defer(() => {
      this.#waiting.shift()?.()
      if (this.#waiting.length > 0) this.#wakeNext()
    })
  }
}
