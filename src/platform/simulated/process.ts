import { RookeryError } from '../../base/index.ts'
import type { SimulatedEvent } from './event-queue.ts'
import type { Scheduler } from './scheduler.ts'

/** Code of a crashed process called its platform. Nothing happened. */
export class HostCrashedError extends RookeryError {
  override readonly code = 'HOST_CRASHED'

  constructor(host: string) {
    super(`Host ${host} crashed: this process of it is gone`)
  }
}

/**
 * One life of a host, from its start to its crash. All that the host's platform does goes through it, so that after the crash
 * the old code reaches nothing: its synchronous calls throw `HostCrashedError`, its promises stay pending for ever, its
 * timers don't run.
 *
 *   running -> paused -> running    `pause`, `resume`: events are held, and then happen in their order
 *   running, paused -> dead         `kill`
 */
export class Process {
  readonly host: string
  readonly pid: number
  readonly #scheduler: Scheduler
  readonly #held: SimulatedEvent[] = []
  #state: 'running' | 'paused' | 'dead' = 'running'

  constructor(host: string, pid: number, scheduler: Scheduler) {
    this.host = host
    this.pid = pid
    this.#scheduler = scheduler
  }

  get isDead(): boolean {
    return this.#state === 'dead'
  }

  get isPaused(): boolean {
    return this.#state === 'paused'
  }

  /** Throws when the process is dead: the first line of every synchronous call. */
  checkAlive(): void {
    if (this.#state === 'dead') throw new HostCrashedError(this.host)
  }

  /** Resolves with what `body` returns (or rejects with what it throws), `delayUs` from now. `body` doesn't run after a crash. */
  perform<T>(delayUs: number, body: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#scheduler.schedule(delayUs, this, () => {
        try {
          resolve(body())
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  /** Keeps an event whose time came while the process was paused. */
  hold(event: SimulatedEvent): void {
    this.#held.push(event)
  }

  pause(): void {
    if (this.#state === 'running') this.#state = 'paused'
  }

  resume(): void {
    if (this.#state !== 'paused') return
    this.#state = 'running'
    for (const event of this.#held.splice(0)) this.#scheduler.reschedule(event)
  }

  kill(): void {
    this.#state = 'dead'
    this.#held.length = 0
  }
}
