import { deferred } from '../base/index.ts'
import type { Clock, Timers } from '../platform/index.ts'
import { CoordinationError } from './coordination-error.ts'

interface Waiter {
  readonly isDue: () => boolean
  pass(): void
  fail(error: Error): void
}

/** Where requests wait: for a state of affairs, not longer than to a deadline, and not past the end of the node. */
export class Gate {
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #waiters = new Set<Waiter>()
  #closedBy: Error | undefined

  constructor(platform: { readonly clock: Clock; readonly timers: Timers }) {
    this.#clock = platform.clock
    this.#timers = platform.timers
  }

  /**
   * Resolves when `isDue`, which is asked now and at each `notify`. Rejects at `deadlineMs` (monotonic) with a 'timed-out'
   * that says what was waited for, and when the gate is closed with what closed it.
   */
  async until(isDue: () => boolean, deadlineMs: number, what: string): Promise<void> {
    if (this.#closedBy !== undefined) throw this.#closedBy
    if (isDue()) return
    const passed = deferred<void>()
    const waiter: Waiter = { isDue, pass: () => passed.resolve(), fail: (error) => passed.reject(error) }
    const timer = this.#timers.set(Math.max(0, deadlineMs - this.#clock.monotonic()), () => {
      waiter.fail(new CoordinationError('timed-out', `Timed out waiting for ${what}`))
    })
    this.#waiters.add(waiter)
    try {
      await passed.promise
    } finally {
      timer.cancel()
      this.#waiters.delete(waiter)
    }
  }

  /** The value of `promise`, under the same limits; undefined when before there is one it `isInVain` to wait for it. */
  async valueOf<T>(
    promise: Promise<T>,
    deadlineMs: number,
    what: string,
    isInVain: () => boolean = () => false,
  ): Promise<T | undefined> {
    let isSettled = false
    const settle = () => {
      isSettled = true
      this.notify()
    }
    promise.then(settle, settle)
    await this.until(() => isSettled || isInVain(), deadlineMs, what)
    return isSettled ? await promise : undefined
  }

  notify(): void {
    for (const waiter of this.#waiters) if (waiter.isDue()) waiter.pass()
  }

  /** Fails all that wait, and all that will. The first error counts. */
  close(error: Error): void {
    this.#closedBy ??= error
    for (const waiter of this.#waiters) waiter.fail(this.#closedBy)
  }
}
