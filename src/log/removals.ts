import { Deque } from '../base/index.ts'
import type { Platform, Timer } from '../platform/index.ts'
import type { Logger } from '../telemetry/index.ts'

/** Removals that run at a time, and no others begin: who deletes thousands of partitions deletes as many folders a minute later. */
const maxConcurrent = 4

/** Files and folders that are out of use and go after a while, a few at a time. What is left of them goes at the next start. */
export class Removals {
  readonly #platform: Pick<Platform, 'timers'>
  readonly #logger: Logger
  readonly #timers = new Set<Timer>()
  readonly #due = new Deque<() => Promise<void>>()
  #running = 0

  constructor(platform: Pick<Platform, 'timers'>, logger: Logger) {
    this.#platform = platform
    this.#logger = logger
  }

  add(delayMs: number, remove: () => Promise<void>): void {
    const timer = this.#platform.timers.set(Math.min(delayMs, 2 ** 31 - 1), () => {
      this.#timers.delete(timer)
      this.#due.pushBack(remove)
      if (this.#running < maxConcurrent) void this.#run()
    })
    this.#timers.add(timer)
  }

  /** Nothing more begins. */
  cancel(): void {
    for (const timer of this.#timers) timer.cancel()
    this.#due.clear()
  }

  async #run(): Promise<void> {
    this.#running++
    for (let remove = this.#due.popFront(); remove !== undefined; remove = this.#due.popFront()) {
      await remove().catch((error: unknown) => this.#logger.warn({ error }, 'deleted files cannot be removed'))
    }
    this.#running--
  }
}
