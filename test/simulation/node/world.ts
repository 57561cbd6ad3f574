import type { Random, Timers } from '../../../src/platform/index.ts'
import type { Simulation } from '../../../src/platform/simulated/index.ts'
import type { History } from './history.ts'
import type { Scenario } from './scenario.ts'
import type { Server } from './server.ts'

/** What everybody in a run shares. */
export interface World {
  readonly simulation: Simulation
  readonly scenario: Scenario
  readonly history: History
  readonly server: Server
  /** Of the one who makes the faults: they come from a machine of its own, which nothing happens to. */
  readonly random: Random
  readonly timers: Timers
  /** True when the faults are over: clients finish what they began, and end. */
  readonly isDraining: boolean
  readonly pace: Pace
}

/** Steps of all clients after the last fault that are taken at full speed. */
const stepsAtFullSpeed = 8

/**
 * How fast clients work: at full speed after each fault, then slower and slower, so that a fault that takes long (a full disk, a
 * pause) costs virtual time and not the time of who waits for the tests.
 */
export class Pace {
  #steps = 0

  /** A fault was made or undone: what follows is worth looking at. */
  refresh(): void {
    this.#steps = 0
  }

  /** One more step of some client; answers by how much its pause is longer. */
  step(): number {
    return Math.max(1, (this.#steps++ / stepsAtFullSpeed) ** 2)
  }
}

export function sleep(timers: Timers, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    timers.set(delayMs, resolve)
  })
}
