import type { Clock, Platform, Timer, Timers } from '../ports.ts'
import { ByteRandom } from '../random.ts'
import { RealFiles } from './files.ts'
import { RealNetwork } from './network.ts'
import { RealOffload } from './offload.ts'
import { fillWithRandomBytes } from './random-bytes.ts'

/** The operating system through Node. Several in one process share the directory locks and the workers. */
export function createRealPlatform(): Platform {
  return {
    clock: realClock,
    timers: realTimers,
    random: new ByteRandom(fillWithRandomBytes),
    files: new RealFiles(),
    network: new RealNetwork(),
    offload: realOffload,
  }
}

/** One pool: many brokers in the process of a test do not each start threads. */
const realOffload = new RealOffload()

const realClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}

const realTimers: Timers = {
  set: (delayMs, callback, options) => new RealTimer(delayMs, callback, options?.keepsAlive === true),
  defer: (callback) => {
    setImmediate(callback)
  },
}

/** setTimeout's greatest delay; it takes a longer one for 1 ms. */
const maxDelayMs = 2 ** 31 - 1

class RealTimer implements Timer {
  readonly #keepsAlive: boolean
  #timeout: NodeJS.Timeout | undefined

  constructor(delayMs: number, callback: () => void, keepsAlive: boolean) {
    this.#keepsAlive = keepsAlive
    this.#arm(delayMs, callback)
  }

  cancel(): void {
    clearTimeout(this.#timeout)
  }

  #arm(delayMs: number, callback: () => void): void {
    if (delayMs <= maxDelayMs) {
      // Rounded up: setTimeout cuts the fraction off and would then be early.
      this.#timeout = setTimeout(callback, Math.ceil(delayMs))
    } else {
      this.#timeout = setTimeout(() => this.#arm(delayMs - maxDelayMs, callback), maxDelayMs)
    }
    if (!this.#keepsAlive) this.#timeout.unref()
  }
}
