import { Deque } from '../base/index.ts'
import type { Clock, Timers } from '../platform/index.ts'

/** How long jobs may hold the event loop before others get a turn. */
const stretchMs = 3
/** Jobs that have begun and wait for the disk: enough to keep it busy, few enough that what their answers begin stays short. */
const maxUnderWay = 64

/**
 * Opens and removals of partitions, in the order they were asked for: a topic of thousands of partitions comes or goes in
 * one step of the metadata, and would hold the event loop for as long as it takes. A first stretch of them runs at once.
 */
export class BackgroundWork {
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #waiting = new Deque<() => void>()
  #underWay = 0
  /** When the stretch ends in which jobs begin at once. */
  #stretchEndMs = 0
  #isScheduled: boolean = false

  constructor(clock: Clock, timers: Timers) {
    this.#clock = clock
    this.#timers = timers
  }

  /** `job` begins after all that were added before it. Settles as it does. */
  add(job: () => Promise<void>): Promise<void> {
    const isIdle = this.#underWay === 0 && this.#waiting.length === 0
    if (isIdle) this.#stretchEndMs = this.#clock.monotonic() + stretchMs
    return new Promise((resolve, reject) => {
      this.#waiting.pushBack(() => {
        this.#underWay++
        job()
          .finally(() => this.#ended())
          .then(resolve, reject)
      })
      if (!this.#isScheduled) this.#begin()
    })
  }

  #ended(): void {
    this.#underWay--
    if (!this.#isScheduled) this.#begin()
  }

  /** Begins what may begin in this stretch, and the next one in a later turn of the loop. */
  #begin(): void {
    while (this.#waiting.length > 0 && this.#underWay < maxUnderWay) {
      if (this.#clock.monotonic() >= this.#stretchEndMs) {
        this.#schedule()
        return
      }
      this.#waiting.popFront()?.()
    }
  }

  #schedule(): void {
    this.#isScheduled = true
    this.#timers.defer(() => {
      this.#isScheduled = false
      this.#stretchEndMs = this.#clock.monotonic() + stretchMs
      this.#begin()
    })
  }
}
