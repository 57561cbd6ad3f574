import type { BrokerEpoch, BrokerId } from '../base/index.ts'
import type { BrokerRun } from './requests.ts'

/**
 * What is known of a broker's life: it is heard from; it may be dead, because its stream closed or it is silent for half of
 * the session timeout; it counts as dead, because it is silent for all of it or its process was seen to be gone.
 */
export type Evidence = 'alive' | 'suspected' | 'dead'

interface Session {
  readonly brokerEpoch: BrokerEpoch
  /** From when its silence counts. */
  lastHeardMs: number
  /** Its stream closed, and it wasn't heard from since. */
  isDisconnected: boolean
  /** Its process was seen to be gone, and it wasn't heard from since. */
  isGone: boolean
  /** Until then nobody's word counts that it is gone: it was said before, and was wrong. */
  hintsSuspendedUntilMs: number
  /** Last metadata entry that its image is known to hold; -1 when it did not say. */
  appliedIndex: number
  /** The others know of its controlled shutdown when they have this entry. Set once: it must not run away from them. */
  shutdownIndex: number | undefined
}

/** How long a run that was wrongly said to be gone is only judged by its silence. */
const hintSuspensionMs = 60_000

/**
 * Which runs of brokers live. Soft state of the active controller, not in any record: a new controller seeds it with what
 * its node knows (`seed`), and gives a broker that it knows nothing of a whole session from when it first asks for it.
 * To be wrong costs a leader move and never data, since all that follows is fenced by epochs. Times are of the monotonic
 * clock, in ms, and passed in.
 */
export class BrokerSessions {
  readonly #sessionTimeoutMs: number
  readonly #sessions = new Map<BrokerId, Session>()

  constructor(sessionTimeoutMs: number) {
    this.#sessionTimeoutMs = sessionTimeoutMs
  }

  /** A heartbeat came, or whatever else only this very run can send. */
  heard(run: BrokerRun & { readonly appliedIndex?: number }, nowMs: number): void {
    const session = this.#sessionOf(run, nowMs)
    if (session.isGone) session.hintsSuspendedUntilMs = nowMs + hintSuspensionMs
    session.lastHeardMs = nowMs
    session.isDisconnected = false
    session.isGone = false
    session.appliedIndex = Math.max(session.appliedIndex, run.appliedIndex ?? -1)
  }

  /**
   * What a new controller's node knows of a run from before: it was heard from at `lastHeardMs` (through Raft, say), or its
   * stream closed then. Its silence counts from then on, not from now.
   */
  seed(run: BrokerRun, lastHeardMs: number, isConnected: boolean): void {
    const session = this.#sessionOf(run, lastHeardMs)
    session.lastHeardMs = lastHeardMs
    session.isDisconnected = !isConnected
  }

  /** The stream to the broker closed: it was alive until now, and is suspected from now on. */
  disconnected(run: BrokerRun, nowMs: number): void {
    const session = this.#sessionOf(run, nowMs)
    if (!session.isDisconnected) session.lastHeardMs = Math.max(session.lastHeardMs, nowMs)
    session.isDisconnected = true
  }

  /**
   * The process of the broker is gone: its stream closed, and its host refused to connect again, twice. False when that
   * doesn't count, because the same was said of this run within the last minute and it lived.
   */
  gone(run: BrokerRun, nowMs: number): boolean {
    const session = this.#sessionOf(run, nowMs)
    if (nowMs < session.hintsSuspendedUntilMs) return false
    session.isGone = true
    return true
  }

  evidence(run: BrokerRun, nowMs: number): Evidence {
    const session = this.#sessions.get(run.brokerId)
    if (session?.brokerEpoch !== run.brokerEpoch || session.isGone) return 'dead'
    const silentMs = nowMs - session.lastHeardMs
    if (silentMs >= this.#sessionTimeoutMs) return 'dead'
    return session.isDisconnected || silentMs >= this.#sessionTimeoutMs / 2 ? 'suspected' : 'alive'
  }

  /** Not dead. */
  isAlive(run: BrokerRun, nowMs: number): boolean {
    return this.evidence(run, nowMs) !== 'dead'
  }

  /** Those of `runs` that are dead. One that is asked about for the first time starts a session now. */
  expired<Run extends BrokerRun>(runs: Iterable<Run>, nowMs: number): Run[] {
    return [...runs].filter((run) => {
      this.#sessionOf(run, nowMs)
      return !this.isAlive(run, nowMs)
    })
  }

  /**
   * Whether the image of each of `others` holds the entry `headIndex`, or the head of when this was first asked for `run`:
   * that is at or after the one that said that it shuts down.
   */
  othersHave(run: BrokerRun, others: Iterable<BrokerRun>, headIndex: number, nowMs: number): boolean {
    const session = this.#sessionOf(run, nowMs)
    session.shutdownIndex ??= headIndex
    const { shutdownIndex } = session
    return [...others].every((other) => this.#sessionOf(other, nowMs).appliedIndex >= shutdownIndex)
  }

  #sessionOf({ brokerId, brokerEpoch }: BrokerRun, nowMs: number): Session {
    const known = this.#sessions.get(brokerId)
    if (known?.brokerEpoch === brokerEpoch) return known
    const session: Session = {
      brokerEpoch,
      lastHeardMs: nowMs,
      isDisconnected: false,
      isGone: false,
      hintsSuspendedUntilMs: 0,
      appliedIndex: -1,
      shutdownIndex: undefined,
    }
    // What an earlier run still says, or is said of it, changes nothing of the later one.
    if (known === undefined || known.brokerEpoch < brokerEpoch) this.#sessions.set(brokerId, session)
    return session
  }
}
