import type { Random, Timers } from '../../../src/platform/index.ts'
import type { Simulation } from '../../../src/platform/simulated/index.ts'
import type { History } from './history.ts'
import type { Scenario } from './scenario.ts'
import type { Server } from './server.ts'

/** What clients share, whether there is one node or are several. */
export interface ClientWorld {
  readonly simulation: Simulation
  readonly history: History
  /** True when the faults are over: clients finish what they began, and end. */
  readonly isDraining: boolean
  readonly pace: Pace
  /** How the clients of one machine find the node that a request is for. */
  readonly routerOf: (host: string) => Router
  /** No fault lasts so long, milliseconds: a request that is not answered in this time never is. */
  readonly longestPatienceMs: number
  /** How long clients wait for an answer, milliseconds, where no plan says otherwise. */
  readonly patienceMs: number
  /** Of the topics that are made. */
  readonly replicationFactor: number
  /** Counts the runs of the node, where there is one. */
  readonly incarnation: number
}

/** What a request is about: any node may answer it, the leader of a partition, or the coordinator of a group. */
export type Subject = 'anything' | { readonly topic: string; readonly partition: number } | { readonly group: string }

export interface Router {
  /** The host name of a node to ask; asks around where it must. */
  nodeFor(subject: Subject): Promise<string>
  /** The node could not be reached, didn't answer, or answered with an error. */
  onRefused(subject: Subject): void
  /** In which the leader of a partition was found; -1 where nobody cares. */
  leaderEpochOf(subject: Subject): number
}

/** What everybody in a run of one node shares. */
export interface World extends ClientWorld {
  readonly scenario: Scenario
  readonly server: Server
  /** Of the one who makes the faults: they come from a machine of its own, which nothing happens to. */
  readonly random: Random
  readonly timers: Timers
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
