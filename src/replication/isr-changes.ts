import type { BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, Uuid } from '../base/index.ts'
import type { Timer, Timers } from '../platform/index.ts'
import type { Logger } from '../telemetry/index.ts'
import type { IsrAnswer } from './in-sync-replicas.ts'

/** One partition's change, as the controller is asked for it. */
export interface IsrChangeRequest {
  readonly topicId: Uuid
  readonly partition: number
  readonly leaderEpoch: LeaderEpoch
  readonly partitionEpoch: PartitionEpoch
  /** With the run of each broker that was seen to be in sync; null where it doesn't matter. */
  readonly isr: readonly { readonly brokerId: BrokerId; readonly brokerEpoch: BrokerEpoch | null }[]
}

/**
 * Asks the active controller for all of `changes` in one request. Rejects when it can't be told what became of them. 'retry':
 * nothing was decided.
 */
export type AskForIsrs = (changes: readonly IsrChangeRequest[]) => Promise<readonly (IsrAnswer | 'retry')[]>

/** Changes in one request. */
const maxChangesPerRequest = 10_000
/** Between a request that failed and the next. */
const retryMs = 50

interface PendingChange {
  readonly request: IsrChangeRequest
  readonly onAnswer: (answer: IsrAnswer) => void
}

/**
 * ISR changes on their way to the controller: one request at a time for the whole broker, with all that came up while the one
 * before was under way; at most one change for each partition. A request that fails is made again: the same change twice is
 * answered the same (KIP-497).
 */
export class IsrChanges {
  readonly #ask: AskForIsrs
  readonly #timers: Timers
  readonly #logger: Logger
  readonly #pending = new Map<string, PendingChange>()
  #isAsking = false
  #timer: Timer | undefined
  #isStopped = false

  constructor(ask: AskForIsrs, timers: Timers, logger: Logger) {
    this.#ask = ask
    this.#timers = timers
    this.#logger = logger
  }

  /** Replaces what was asked for the same partition before: only its latest change can still be made. */
  request(request: IsrChangeRequest, onAnswer: (answer: IsrAnswer) => void): void {
    this.#pending.set(`${request.topicId}-${request.partition}`, { request, onAnswer })
    this.#schedule(0)
  }

  /** The partition's leadership here in `leaderEpoch` has ended. What is asked for in a later one stays: it may come before this. */
  forget(topicId: Uuid, partition: number, leaderEpoch: LeaderEpoch): void {
    const key = `${topicId}-${partition}`
    const change = this.#pending.get(key)
    if (change !== undefined && change.request.leaderEpoch <= leaderEpoch) this.#pending.delete(key)
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
    this.#pending.clear()
  }

  /** What this turn of the event loop brings goes together. */
  #schedule(delayMs: number): void {
    if (this.#isAsking || this.#timer !== undefined || this.#pending.size === 0 || this.#isStopped) return
    this.#timer = this.#timers.set(delayMs, () => {
      this.#timer = undefined
      void this.#askForAll()
    })
  }

  async #askForAll(): Promise<void> {
    if (this.#pending.size === 0) return // all were forgotten meanwhile
    this.#isAsking = true
    const asked = [...this.#pending].slice(0, maxChangesPerRequest)
    let delayMs = 0
    try {
      const answers = await this.#ask(asked.map(([, { request }]) => request))
      for (const [i, [key, change]] of asked.entries()) {
        const answer = answers[i]!
        if (answer === 'retry') delayMs = retryMs
        else this.#settle(key, change, answer)
      }
    } catch (error) {
      this.#logger.warn(
        { error, partitions: asked.length },
        'in-sync replicas not told to the controller, trying again',
      )
      delayMs = retryMs
    } finally {
      this.#isAsking = false
    }
    this.#schedule(delayMs)
  }

  #settle(key: string, change: PendingChange, answer: IsrAnswer): void {
    if (this.#pending.get(key) === change) this.#pending.delete(key)
    if (!this.#isStopped) change.onAnswer(answer)
  }
}
