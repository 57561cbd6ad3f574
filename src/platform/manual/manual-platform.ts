import type { Clock, FileHandle, Platform, Timer, Timers } from '../ports.ts'

/** A time: what it is, and how to wait for another. */
export type Time = Pick<Platform, 'clock' | 'timers'>

/** A platform of which the world is real and a part of the time stands still until it is moved. */
export interface ManualPlatform {
  /** Real, its time included; calls to files and workers are counted, so that `advance` can wait for them. */
  readonly platform: Platform
  /** Stands still. Its `defer` runs in real turns of the loop. */
  readonly still: Time
  /** Goes on by itself, and jumps when the other is moved: for waits of clients, which have clocks of their own. */
  readonly running: Time
  /**
   * Moves both on by `ms`, 0 or more: timers that come due run one moment after the other, those of one moment in the order in which
   * they were set. After each moment it waits until the calls to files and workers that were begun are over, and what they led to
   * has run. Calls are carried out one after the other. Rejects with what a timer throws.
   */
  advance(ms: number): Promise<void>
}

/** `startMs`: wall time at which the still clock begins, milliseconds since 1970. */
export function createManualPlatform(real: Platform, startMs: number): ManualPlatform {
  const calls = new CallCount()
  const platform: Platform = { ...real, files: calls.counted(real.files), offload: calls.counted(real.offload) }
  const time = new ManualTime(real, startMs, calls)
  return { platform, still: time.still, running: time.running, advance: (ms) => time.advance(ms) }
}

/** Calls that were begun and are not over. */
class CallCount {
  #pending = 0
  #onNone: (() => void) | undefined

  /** The same object, with the promises of its methods counted, and those of handles that they give. */
  counted<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_target, property) => {
        const member: unknown = Reflect.get(target, property, target)
        if (typeof member !== 'function') return member
        return (...args: unknown[]): unknown => this.#count(Reflect.apply(member, target, args))
      },
    })
  }

  #count(result: unknown): unknown {
    if (isHandle(result)) return this.counted(result)
    if (!(result instanceof Promise)) return result
    this.begin()
    return result.then((value: unknown) => (isHandle(value) ? this.counted(value) : value)).finally(() => this.end())
  }

  begin(): void {
    this.#pending++
  }

  end(): void {
    this.#pending--
    if (this.#pending === 0) this.#onNone?.()
  }

  /** Resolves when none has been under way for two turns of the loop: one for what the last led to, one for what that led to. */
  async settled(): Promise<void> {
    for (let quietTurns = 0; quietTurns < 2; ) {
      await new Promise<void>((resolve) => setImmediate(resolve))
      if (this.#pending === 0) {
        quietTurns++
        continue
      }
      quietTurns = 0
      await new Promise<void>((resolve) => {
        this.#onNone = resolve
      })
      this.#onNone = undefined
    }
  }
}

function isHandle(value: unknown): value is FileHandle {
  return typeof value === 'object' && value !== null && 'sizeSync' in value
}

interface Waiting {
  /** In the time of its clock. */
  readonly dueMs: number
  readonly clock: Clock
  readonly callback: () => void
  /** What also ends the wait; none for the still clock. */
  readonly real: Timer | undefined
}

class ManualTime {
  readonly still: Time
  readonly running: Time
  readonly #calls: CallCount
  /** In the order in which they were set. */
  readonly #waiting = new Set<Waiting>()
  /** How far both clocks were moved. */
  #movedMs = 0
  #lastAdvance: Promise<void> = Promise.resolve()

  constructor(real: Platform, startMs: number, calls: CallCount) {
    this.#calls = calls
    this.still = this.#time({ now: () => Math.floor(startMs + this.#movedMs), monotonic: () => this.#movedMs })
    this.running = this.#time(
      {
        now: () => Math.floor(real.clock.now() + this.#movedMs),
        monotonic: () => real.clock.monotonic() + this.#movedMs,
      },
      real.timers,
    )
  }

  advance(ms: number): Promise<void> {
    const advanced = this.#lastAdvance.then(() => this.#advance(ms))
    this.#lastAdvance = advanced.catch(() => undefined)
    return advanced
  }

  async #advance(ms: number): Promise<void> {
    await this.#calls.settled()
    const endMs = this.#movedMs + ms
    for (;;) {
      const nextMs = this.#nextMoment()
      if (nextMs > endMs) break
      this.#movedMs = Math.max(this.#movedMs, nextMs)
      this.#runDue()
      await this.#calls.settled()
    }
    this.#movedMs = endMs
    await this.#calls.settled()
  }

  /** How far the clocks have to be moved until the next timer is due; infinity when there is none. */
  #nextMoment(): number {
    let leftMs = Number.POSITIVE_INFINITY
    for (const { dueMs, clock } of this.#waiting) leftMs = Math.min(leftMs, dueMs - clock.monotonic())
    return this.#movedMs + Math.max(0, leftMs)
  }

  /** Those that are due now; what they set has its turn later, even if it is due at once. */
  #runDue(): void {
    // Sums of fractions: what is due within a thousandth of a millisecond is due.
    const due = [...this.#waiting].filter(({ dueMs, clock }) => dueMs <= clock.monotonic() + 0.001)
    for (const each of due) {
      // A timer of the same moment may have cancelled it.
      if (this.#waiting.has(each)) this.#run(each)
    }
  }

  #run(waiting: Waiting): void {
    this.#waiting.delete(waiting)
    waiting.real?.cancel()
    waiting.callback()
  }

  /** `real`: timers that end a wait by themselves, for a clock that goes by itself. */
  #time(clock: Clock, real?: Timers): Time {
    return {
      clock,
      timers: {
        set: (delayMs, callback) => {
          const dueMs = clock.monotonic() + delayMs
          const waiting: Waiting = { dueMs, clock, callback, real: real?.set(delayMs, () => this.#run(waiting)) }
          this.#waiting.add(waiting)
          return {
            cancel: () => {
              this.#waiting.delete(waiting)
              waiting.real?.cancel()
            },
          }
        },
        defer: (callback) => {
          this.#calls.begin()
          setImmediate(() => {
            this.#calls.end()
            callback()
          })
        },
      },
    }
  }
}
