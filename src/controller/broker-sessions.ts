import type { BrokerEpoch, BrokerId } from '../base/index.ts'
import type { BrokerRun } from './requests.ts'

interface Session {
  readonly brokerEpoch: BrokerEpoch
  readonly lastHeardMs: number
}

/**
 * Which runs of brokers were heard from within the session timeout. Soft state of the active controller, not in any record:
 * a new controller begins with none, and gives each broker a whole session from when it first asks for it.
 * Times are of the monotonic clock, in ms, and passed in.
 */
export class BrokerSessions {
  readonly #sessionTimeoutMs: number
  readonly #sessions = new Map<BrokerId, Session>()

  constructor(sessionTimeoutMs: number) {
    this.#sessionTimeoutMs = sessionTimeoutMs
  }

  heard({ brokerId, brokerEpoch }: BrokerRun, nowMs: number): void {
    this.#sessions.set(brokerId, { brokerEpoch, lastHeardMs: nowMs })
  }

  isAlive({ brokerId, brokerEpoch }: BrokerRun, nowMs: number): boolean {
    const session = this.#sessions.get(brokerId)
    return session?.brokerEpoch === brokerEpoch && nowMs - session.lastHeardMs < this.#sessionTimeoutMs
  }

  /** Those of `runs` that were not heard from for the session timeout. One that is asked about for the first time starts now. */
  expired<Run extends BrokerRun>(runs: Iterable<Run>, nowMs: number): Run[] {
    return [...runs].filter((run) => {
      if (this.#sessions.get(run.brokerId)?.brokerEpoch !== run.brokerEpoch) this.heard(run, nowMs)
      return !this.isAlive(run, nowMs)
    })
  }
}
