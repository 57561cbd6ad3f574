import { type Clock, nextTurn, type Timers } from '../platform/index.ts'

/** Units of work until others get the event loop: about half a millisecond of it. */
const turnUnits = 64 * 1024
/** Shorter waits are left out, and made up for by the next. */
const minWaitMs = 5
const maxWaitMs = 1000

/**
 * Keeps compaction from holding up others: it gives the event loop back after every piece of work, and stays below so many
 * bytes of I/O in a second. Units of work are bytes, and some more for each record.
 */
export class CleanerPace {
  readonly #clock: Clock
  readonly #timers: Timers
  #unitsLeft = turnUnits
  #maxBytesPerSecond: number
  /** Moment, on the monotonic clock, from which on more I/O is allowed. */
  #paidUntilMs = 0

  constructor(options: { readonly clock: Clock; readonly timers: Timers; readonly maxBytesPerSecond: number }) {
    this.#clock = options.clock
    this.#timers = options.timers
    this.#maxBytesPerSecond = options.maxBytesPerSecond
  }

  set maxBytesPerSecond(bytes: number) {
    this.#maxBytesPerSecond = bytes
  }

  /** Counts work that is about to be done; what it answers is to be awaited first. */
  spend(units: number): Promise<void> | undefined {
    this.#unitsLeft -= units
    if (this.#unitsLeft > 0) return undefined
    this.#unitsLeft = turnUnits
    return nextTurn(this.#timers)
  }

  /** After a read or write of `bytes`: waits as long as the limit asks for, or until `signal` is aborted. */
  async io(bytes: number, signal: AbortSignal): Promise<void> {
    const nowMs = this.#clock.monotonic()
    this.#paidUntilMs = Math.max(this.#paidUntilMs, nowMs) + (bytes * 1000) / Math.max(1, this.#maxBytesPerSecond)
    for (;;) {
      signal.throwIfAborted()
      const waitMs = this.#paidUntilMs - this.#clock.monotonic()
      if (waitMs < minWaitMs) return
      await this.#wait(Math.min(waitMs, maxWaitMs), signal)
    }
  }

  #wait(waitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        timer.cancel()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = this.#timers.set(waitMs, done)
      signal.addEventListener('abort', done)
    })
  }
}
