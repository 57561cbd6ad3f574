import { EventQueue, type SimulatedEvent } from './event-queue.ts'
import type { Process } from './process.ts'
import { Trace, type Tracing } from './trace.ts'

/** Virtual time: what happens when, in one order. In whole microseconds, so that sums are exact. */
export class Scheduler {
  readonly trace: Trace
  /** Microseconds since the simulation's start. */
  nowUs = 0
  /** The host in whose process the last event ran; undefined: in none, or it can't be said. Code of no other process ran in it. */
  lastHost: string | undefined
  readonly #queue = new EventQueue()
  #sequence = 0

  constructor(tracing: Tracing) {
    this.trace = new Trace(tracing)
  }

  /** Runs `callback` `delayUs` from now (a whole number), unless `owner` is dead then. */
  schedule(delayUs: number, owner: Process | undefined, callback: () => void): SimulatedEvent {
    const event = { timeUs: this.nowUs + delayUs, sequence: this.#sequence++, owner, callback }
    if (owner === undefined || !owner.isDead) this.#queue.push(event)
    return event
  }

  /** Puts an event that was held in the queue again, for now. */
  reschedule(event: SimulatedEvent): void {
    event.timeUs = this.nowUs
    event.sequence = this.#sequence++
    this.#queue.push(event)
  }

  cancel(event: SimulatedEvent): void {
    this.#queue.cancel(event)
  }

  /** Runs the next event that is due until `endUs`, included; false when there is none. */
  step(endUs: number): boolean {
    for (;;) {
      const event = this.#queue.first
      if (event === undefined || event.timeUs > endUs) return false
      this.#queue.pop()
      const { callback, owner } = event
      if (callback === undefined || owner?.isDead === true) continue
      this.nowUs = event.timeUs
      if (owner?.isPaused === true) {
        owner.hold(event)
        continue
      }
      event.callback = undefined
      this.lastHost = owner?.host
      callback()
      return true
    }
  }

  /** When the next event is due; undefined when there is none. */
  get nextUs(): number | undefined {
    return this.#queue.first?.timeUs
  }
}
