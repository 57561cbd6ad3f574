import { assert, type BrokerEpoch, errorOf, type Uuid } from '../../base/index.ts'
import type { BrokerHeartbeatResult, BrokerRegistration, BrokerRun } from '../../controller/index.ts'
import { type Clock, pause, type Timer, type Timers } from '../../platform/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { ControllerRequestKind, ControllerRequests } from '../controller-channel.ts'
import { CoordinationError } from '../coordination-error.ts'

/** Asks the active controller, wherever it is; resolves when this broker's image has what the response says. */
export type AskController = <Kind extends ControllerRequestKind>(
  kind: Kind,
  request: ControllerRequests[Kind]['request'],
  deadlineMs: number,
) => Promise<ControllerRequests[Kind]['response']>

/** This broker's log directories, as they are now. */
export interface DirectoryStates {
  readonly online: readonly Uuid[]
  readonly offline: readonly Uuid[]
}

export interface BrokerLifecycleOptions {
  readonly ask: AskController
  readonly platform: { readonly clock: Clock; readonly timers: Timers }
  readonly logger: Logger
  readonly registration: BrokerRegistration
  readonly heartbeatIntervalMs: number
  /** A heartbeat that takes longer is given up. */
  readonly heartbeatTimeoutMs: number
  /** Last metadata entry that this broker's image holds. */
  readonly appliedIndex: () => number
  readonly logDirectories: () => DirectoryStates
  /** The broker can't be part of the cluster any more. */
  readonly onFault: (error: Error) => void
}

/** Between two questions of one that waits for an answer: whether it is unfenced, whether it may go. */
const askAgainMs = 50

/**
 * One run of a broker, as the controller sees it. States, and what moves between them:
 *
 *   unregistered --register--> fenced --unfence--> active --shutDown--> shutting down --stop--> stopped
 *
 * From `beginHeartbeats` until `stop` it says every interval that it lives. When the controller says that it knows no such
 * run (somebody removed the registration), it registers again, with the same incarnation. So it does when a log directory
 * that failed works again: the controller took it off the registration.
 */
export class BrokerLifecycle {
  readonly #options: BrokerLifecycleOptions
  #brokerEpoch: BrokerEpoch | undefined
  #timer: Timer | undefined
  #isStopped: boolean = false
  #isBeating = false
  /** Asked for while one was under way, which may not tell what the next one would. */
  #isDueAgain = false
  #wantShutdown: boolean = false
  /** Log directories that the controller was told to be offline. */
  #reportedOffline: readonly Uuid[] = []

  constructor(options: BrokerLifecycleOptions) {
    this.#options = options
  }

  /** Undefined until it is registered. */
  get brokerEpoch(): BrokerEpoch | undefined {
    return this.#brokerEpoch
  }

  /** This run, as it is registered. */
  get run(): BrokerRun {
    assert(this.#brokerEpoch !== undefined, 'a broker registers before it does anything else')
    return { brokerId: this.#options.registration.brokerId, brokerEpoch: this.#brokerEpoch }
  }

  /** Waits for the session of another run of this broker to end, up to the deadline. */
  async register(deadlineMs: number): Promise<BrokerEpoch> {
    const { ask, registration, platform, heartbeatIntervalMs, logDirectories, logger } = this.#options
    for (;;) {
      const logDirs = logDirectories().online
      const result = await ask('registerBroker', { ...registration, logDirs }, deadlineMs)
      if (result.ok) {
        this.#brokerEpoch = result.brokerEpoch
        this.#reportedOffline = []
        logger.info({ brokerEpoch: result.brokerEpoch }, 'broker registered')
        return result.brokerEpoch
      }
      const { reason } = result
      // Only the session of another run ends by itself.
      if (reason !== 'duplicate-registration') throw new CoordinationError('registration-refused', result.message)
      if (platform.clock.monotonic() + heartbeatIntervalMs >= deadlineMs || this.#isStopped) {
        throw new CoordinationError(reason, result.message)
      }
      logger.warn({ reason }, 'broker registration refused, trying again')
      await pause(platform.timers, heartbeatIntervalMs)
    }
  }

  /**
   * Asks to be unfenced until it is so. A broker stays fenced while none of its log directories works.
   *
   * @throws CoordinationError 'timed-out' when it is fenced at the deadline
   */
  async unfence(deadlineMs: number): Promise<void> {
    for (;;) {
      const result = await this.#heartbeat(deadlineMs)
      if (result.ok && !result.fenced) return
      if (!result.ok || this.#hasDirectoryBack) await this.register(deadlineMs)
      else await this.#waitFenced(deadlineMs)
    }
  }

  beginHeartbeats(): void {
    if (this.#isStopped) return
    const { platform, heartbeatIntervalMs } = this.#options
    this.#timer = platform.timers.set(this.#isDueAgain ? 0 : heartbeatIntervalMs, () => {
      void this.#beat()
    })
  }

  /** Somebody waits for what the next heartbeat tells, such as how far this broker's image is: it isn't put off until the interval is over. */
  beatNow(): void {
    if (this.#timer === undefined || this.#isStopped) return
    if (this.#isBeating) {
      this.#isDueAgain = true
      return
    }
    this.#timer.cancel()
    void this.#beat()
  }

  /** Hands leaderships over, as far as others can take them before the deadline. */
  async shutDown(deadlineMs: number): Promise<void> {
    const { platform } = this.#options
    this.#wantShutdown = true
    while (!this.#isStopped && platform.clock.monotonic() < deadlineMs) {
      const result = await this.#heartbeat(deadlineMs)
      if (!result.ok || result.mayStop) return
      await pause(platform.timers, askAgainMs)
    }
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  async #beat(): Promise<void> {
    const { platform, heartbeatTimeoutMs, logger, onFault } = this.#options
    const deadlineMs = platform.clock.monotonic() + heartbeatTimeoutMs
    this.#isBeating = true
    this.#isDueAgain = false
    try {
      const result = await this.#heartbeat(deadlineMs)
      if (!result.ok || this.#hasDirectoryBack) await this.register(deadlineMs)
    } catch (error) {
      if (this.#isStopped) return
      if (!(error instanceof CoordinationError) || isFinal(error)) {
        onFault(errorOf(error))
        return
      }
      logger.warn({ reason: error.reason }, 'heartbeat failed')
    } finally {
      this.#isBeating = false
    }
    this.beginHeartbeats()
  }

  get #hasDirectoryBack(): boolean {
    const { online } = this.#options.logDirectories()
    return this.#reportedOffline.some((directory) => online.includes(directory))
  }

  async #heartbeat(deadlineMs: number): Promise<BrokerHeartbeatResult> {
    const { ask, appliedIndex, logDirectories } = this.#options
    const wantShutdown = this.#wantShutdown
    const { offline } = logDirectories()
    const reported = offline.length === 0 ? {} : { offlineLogDirs: offline }
    const heartbeat = { ...this.run, appliedIndex: appliedIndex(), wantFence: false, wantShutdown, ...reported }
    const result = await ask('heartbeat', heartbeat, deadlineMs)
    if (result.ok) this.#reportedOffline = [...new Set([...this.#reportedOffline, ...offline])]
    return result
  }

  /** Until the next question, when that comes before the deadline. */
  async #waitFenced(deadlineMs: number): Promise<void> {
    const { platform, logDirectories } = this.#options
    if (platform.clock.monotonic() + askAgainMs >= deadlineMs) {
      const reason = logDirectories().online.length === 0 ? ': none of its log directories works' : ''
      throw new CoordinationError('timed-out', `The broker is still fenced${reason}`)
    }
    await pause(platform.timers, askAgainMs)
  }
}

function isFinal({ reason }: CoordinationError): boolean {
  return reason === 'duplicate-registration' || reason === 'registration-refused'
}
