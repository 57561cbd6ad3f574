import type { Clock, Timers } from '../platform/index.ts'

/** Loads that read at a time: enough that one reads while another replays, and each holds a chunk of the log in memory. */
const maxLoads = 4

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
  /** Under way, 0 to `maxLoads`; those in the queue wait for one of them to end. */
  #loads = 0
  readonly #queue: (() => void)[] = []

  constructor(clock: Clock, timers: Timers) {
    this.#clock = clock
    this.#timers = timers
  }

  /**
   * Resolves when the caller may load; it calls `leave` when it has, and also while it waits for something else than its
   * reads. The first to ask are done first: of many that load at once some can be asked early, not all of them late.
   */
  enter(): Promise<void> {
    if (this.#loads < maxLoads) {
      this.#loads++
      return Promise.resolve()
    }
    return new Promise((resolve) => this.#queue.push(resolve))
  }

  leave(): void {
    const next = this.#queue.shift()
    if (next === undefined) this.#loads--
    else next() // takes over the place
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
