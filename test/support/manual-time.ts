import type { Clock, Timer, Timers } from '../../src/platform/index.ts'

/** A clock and timers that move only when the test says so. */
export class ManualTime implements Clock, Timers {
  #nowMs = 1_000_000
  #pending: { atMs: number; callback: () => void }[] = []

  now(): number {
    return Math.floor(this.#nowMs)
  }

  monotonic(): number {
    return this.#nowMs
  }

  get pendingCount(): number {
    return this.#pending.length
  }

  set(delayMs: number, callback: () => void): Timer {
    const entry = { atMs: this.#nowMs + delayMs, callback }
    this.#pending.push(entry)
    return {
      cancel: () => {
        this.#pending = this.#pending.filter((pending) => pending !== entry)
      },
    }
  }

  defer(callback: () => void): void {
    this.set(0, callback)
  }

  /** Moves time on and runs what is due, earliest first. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms
    for (;;) {
      const due = this.#pending.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0]
      if (due === undefined) break
      this.#pending = this.#pending.filter((pending) => pending !== due)
      this.#nowMs = Math.max(this.#nowMs, due.atMs)
      due.callback()
    }
    this.#nowMs = endMs
  }
}
