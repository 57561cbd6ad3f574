import { assert, messageOf } from '../../base/index.ts'
import { OffloadError } from '../errors.ts'
import type { Clock, Offload, Platform, Random, Timers } from '../ports.ts'
import { ByteRandom } from '../random.ts'
import { SimulatedDisk } from './disk.ts'
import { SimulatedFiles } from './files.ts'
import type { NetworkHost, SimulatedNetwork } from './network.ts'
import { Prng } from './prng.ts'
import { Process } from './process.ts'
import type { Scheduler } from './scheduler.ts'

/** The wall clock of every host at the start: 2025-01-01. */
const startMs = Date.UTC(2025, 0, 1)
const firstPid = 1000
/** Event loops take a turn each: code that defers for ever doesn't stop time. */
const deferUs = 1

/**
 * A machine of the simulation: a disk and a wall clock that outlive its crashes, and one process at a time.
 *
 *   up -> down    `crash`: power is lost; `kill`: the process is killed
 *   down -> up    `restart`: a new process, over what the disk kept
 */
export class SimulatedHost implements NetworkHost {
  readonly name: string
  readonly address: string
  readonly disk: SimulatedDisk
  readonly #scheduler: Scheduler
  readonly #network: SimulatedNetwork
  /** One for all processes of the host: a restarted one must not draw the same ids again. */
  readonly #random: Random
  readonly #latencies: Prng
  #clockOffsetMs = 0
  #processCount = 0
  #process: Process | undefined
  #platform: Platform | undefined

  constructor(name: string, address: string, seed: number, scheduler: Scheduler, network: SimulatedNetwork) {
    this.name = name
    this.address = address
    this.#scheduler = scheduler
    this.#network = network
    this.disk = new SimulatedDisk(new Prng(seed, `disk/${name}`))
    this.#latencies = new Prng(seed, `latency/${name}`)
    const bytes = new Prng(seed, `random/${name}`)
    this.#random = new ByteRandom((target) => bytes.fill(target))
    this.restart()
  }

  get process(): Process | undefined {
    return this.#process
  }

  /** The platform of the process that runs now. */
  get platform(): Platform {
    assert(this.#platform !== undefined, `host ${this.name} is up`)
    return this.#platform
  }

  get isUp(): boolean {
    return this.#process !== undefined
  }

  /**
   * Power is lost. The process is dead: its synchronous calls throw `HostCrashedError`, its promises stay pending. Peers see
   * their connections reset. The disk keeps what was synced, and of the rest what the seed says.
   */
  crash(): void {
    this.#end('crash')
    this.disk.crash()
  }

  /** The process is killed (SIGKILL): as in a crash, but the system lives, and with it the page cache. */
  kill(): void {
    this.#end('kill')
  }

  /** Starts a new process; its platform. */
  restart(): Platform {
    assert(this.#process === undefined, `host ${this.name} is down`)
    const process = new Process(this.name, firstPid + this.#processCount++, this.#scheduler)
    this.#process = process
    this.#platform = this.#platformOf(process)
    this.#record('start')
    return this.#platform
  }

  /** Holds all that would happen in the process (SIGSTOP). Its system still accepts connections, and data up to the window. */
  pause(): void {
    this.#process?.pause()
  }

  /** What was held happens now, in its order (SIGCONT). */
  resume(): void {
    this.#process?.resume()
  }

  /** Moves the wall clock, forward or back. */
  jumpClock(ms: number): void {
    this.#clockOffsetMs += ms
  }

  #platformOf(process: Process): Platform {
    const scheduler = this.#scheduler
    const clock: Clock = {
      now: () => Math.floor(startMs + this.#clockOffsetMs + scheduler.nowUs / 1000),
      monotonic: () => scheduler.nowUs / 1000,
    }
    const files = new SimulatedFiles({
      process,
      scheduler,
      disk: this.disk,
      random: this.#latencies,
      now: clock.now,
    })
    return {
      clock,
      timers: timersOf(process, scheduler),
      random: tracedRandom(this.#random, process, scheduler),
      files,
      network: this.#network.portOf(this, process),
      offload: offloadOf(process, scheduler, this.#latencies),
    }
  }

  #end(operation: string): void {
    if (this.#process === undefined) return
    this.#record(operation)
    this.#process.kill()
    this.#network.dropProcess(this.#process)
    this.#process = undefined
    this.#platform = undefined
  }

  #record(operation: string): void {
    this.#scheduler.trace.record(this.#scheduler.nowUs, this.name, operation, '', 0, 0)
  }
}

function timersOf(process: Process, scheduler: Scheduler): Timers {
  return {
    set: (delayMs, callback) => {
      const delayUs = Math.ceil(Math.max(0, delayMs) * 1000)
      const event = scheduler.schedule(delayUs, process, () => {
        scheduler.trace.record(scheduler.nowUs, process.host, 'timer', '', delayUs, 0)
        callback()
      })
      return { cancel: () => scheduler.cancel(event) }
    },
    defer: (callback) => {
      scheduler.schedule(deferUs, process, callback)
    },
  }
}

/** A draw too many or too few shows in the trace where it happens, not where its effect does. */
function tracedRandom(random: Random, process: Process, scheduler: Scheduler): Random {
  const record = (operation: string, size: number): void =>
    scheduler.trace.record(scheduler.nowUs, process.host, operation, '', size, 0)
  const begin = (operation: string, size: number): Random => {
    process.checkAlive()
    record(operation, size)
    return random
  }
  return {
    float: () => begin('random float', 0).float(),
    int: (end) => begin('random int', end).int(end),
    uuid: () => begin('random uuid', 0).uuid(),
    bytes: (length) => begin('random bytes', length).bytes(length),
  }
}

/** Runs the task on the spot, some time later, with copies as a worker would have them. */
function offloadOf(process: Process, scheduler: Scheduler, latencies: Prng): Offload {
  return {
    run: (task, input) =>
      process.perform(latencies.between(50, 2000), () => {
        scheduler.trace.record(scheduler.nowUs, process.host, 'offload', task.name, 0, 0)
        try {
          return structuredClone(task.run(structuredClone(input)))
        } catch (error) {
          throw new OffloadError(messageOf(error))
        }
      }),
  }
}
