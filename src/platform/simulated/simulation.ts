import { assert, RookeryError } from '../../base/index.ts'
import { SimulatedHost } from './host.ts'
import { SimulatedNetwork } from './network.ts'
import { Prng } from './prng.ts'
import { Scheduler } from './scheduler.ts'
import type { Trace, Tracing } from './trace.ts'

export interface SimulationOptions {
  /** All that happens follows from it. */
  readonly seed: number
  /** `hash` when left out; `lines` to find where two runs part; `none` where nobody compares, which costs less. */
  readonly tracing?: Tracing
}

export interface RunOptions {
  /** Virtual milliseconds until the run is given up; 60,000 when left out. */
  readonly maxVirtualMs?: number
}

/** `host`: in whose process the event ran, and in no other; undefined where that can't be said. */
export type AfterEvent = (host: string | undefined) => void

/** What a run waited for did not happen. */
export class SimulationStuckError extends RookeryError {
  override readonly code = 'SIMULATION_STUCK'
}

const defaultMaxVirtualMs = 60_000
/** After so many events the real event loop gets a turn, so that timeouts of a test runner work. */
const eventsPerRealTurn = 1024
/** Its reactions are microtasks, cheaper ones than those of `queueMicrotask`. */
const settled = Promise.resolve()

/** Hosts that share virtual time and a network. Nothing happens but within `run`, `runUntil` and `runFor`. */
export function createSimulation(options: SimulationOptions): Simulation {
  return new Simulation(options)
}

export class Simulation {
  readonly seed: number
  readonly network: SimulatedNetwork
  readonly #scheduler: Scheduler
  readonly #hosts = new Map<string, SimulatedHost>()
  readonly #checks: AfterEvent[] = []
  #eventCount = 0
  #isRunning: boolean = false

  constructor(options: SimulationOptions) {
    this.seed = options.seed
    this.#scheduler = new Scheduler(options.tracing ?? 'hash')
    this.network = new SimulatedNetwork(this.#scheduler, new Prng(options.seed, 'network'))
  }

  /** Virtual milliseconds since the start. */
  get nowMs(): number {
    return this.#scheduler.nowUs / 1000
  }

  get eventCount(): number {
    return this.#eventCount
  }

  /** The host of that name, running; made at the first call. */
  host(name: string): SimulatedHost {
    const present = this.#hosts.get(name)
    if (present !== undefined) return present
    const host = new SimulatedHost(name, `10.0.0.${this.#hosts.size + 1}`, this.seed, this.#scheduler, this.network)
    this.#hosts.set(name, host)
    this.network.addHost(host)
    return host
  }

  /** 64 bits over all platform calls so far, their bytes and times: the same in each run of one seed. Empty with `tracing: 'none'`. */
  traceHash(): string {
    return this.#scheduler.trace.hash()
  }

  /** Empty without `tracing: 'lines'`. */
  get traceLines(): Trace['lines'] {
    return this.#scheduler.trace.lines
  }

  /** Calls `check` after each event and all that followed from it; what it throws ends the run. */
  checkAfterEachEvent(check: AfterEvent): void {
    this.#checks.push(check)
  }

  /** Runs until `work` is settled; its result or its error. */
  async run<T>(work: Promise<T>, options?: RunOptions): Promise<T> {
    let isSettled = false
    const settle = (): void => {
      isSettled = true
    }
    work.then(settle, settle)
    await this.runUntil(() => isSettled, options)
    return work
  }

  /** Runs until `condition` holds. It is asked before the first event and after each one. */
  async runUntil(condition: () => boolean, options?: RunOptions): Promise<void> {
    const maxVirtualMs = options?.maxVirtualMs ?? defaultMaxVirtualMs
    const endUs = this.#scheduler.nowUs + Math.round(maxVirtualMs * 1000)
    if (await this.#pump(endUs, condition)) return
    const next = this.#scheduler.nextUs
    throw new SimulationStuckError(
      next === undefined
        ? `Nothing is left to happen at ${this.nowMs} virtual ms, and what was waited for did not (seed ${this.seed}). A promise of the real world, such as a first import(), must be settled before the run`
        : `What was waited for did not happen in ${maxVirtualMs} virtual ms (seed ${this.seed})`,
    )
  }

  /** Runs all that happens in the next `virtualMs`. */
  async runFor(virtualMs: number): Promise<void> {
    const endUs = this.#scheduler.nowUs + Math.round(virtualMs * 1000)
    await this.#pump(endUs, () => false)
    this.#scheduler.nowUs = endUs
  }

  /**
   * Runs events until `isDone` (true) or until none is due up to `endUs` (false).
   *
   * Between two events all promises settle that can, however many `await`s deep: a microtask that asks for a tick is enough for
   * that, since Node begins the tick only when its microtask queue is empty. It costs a third of a turn of the event
   * loop by setImmediate.
   */
  #pump(endUs: number, isDone: () => boolean): Promise<boolean> {
    assert(!this.#isRunning, 'a simulation is run by one caller at a time')
    this.#isRunning = true
    return new Promise<boolean>((resolve, reject) => {
      const step = (): void => {
        try {
          for (const check of this.#checks) check(this.#scheduler.lastHost)
          if (isDone()) {
            this.#isRunning = false
            resolve(true)
            return
          }
          if (!this.#scheduler.step(endUs)) {
            this.#isRunning = false
            resolve(false)
            return
          }
        } catch (error) {
          this.#isRunning = false
          reject(error)
          return
        }
        this.#eventCount++
        if (this.#eventCount % eventsPerRealTurn === 0) setImmediate(step)
        else void settled.then(hop)
      }
      const hop = (): void => {
        process.nextTick(step)
      }
      // What the caller did before the run settles first.
      void settled.then(hop)
    })
  }
}
