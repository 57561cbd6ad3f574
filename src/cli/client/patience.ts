import { setTimeout as sleep } from 'node:timers/promises'
import { KafkaClientError } from '../../network/index.ts'
import { NetworkError, type Platform } from '../../platform/index.ts'
import { ErrorCode } from '../../protocol/index.ts'
import { ClusterUnreachableError, connectionFaultText, RequestRefusedError, UnknownTopicError } from './errors.ts'

/** Time between two tries. */
const retryDelayMs = 100
/** Nobody needs to know of what passes sooner: an election, a partition that moves. */
const tellAfterMs = 1000
/**
 * What a broker refuses for the moment, and mostly for good: a topic that was deleted may be made anew, and a partition whose disk
 * failed may have a replica that takes over. Both happen soon, or not at all.
 */
const shortLivedMs = 5000
const shortLivedCodes: ReadonlySet<number> = new Set([
  ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  ErrorCode.KAFKA_STORAGE_ERROR,
])

export interface PatienceOptions {
  readonly clock: Platform['clock']
  /** For all tries together. */
  readonly timeoutMs: number
  /** What was told of and isn't over: however many wait for one thing, it is told once. */
  readonly told: Set<string>
  readonly onWaiting: ((reason: string) => void) | undefined
  /** False: brokers that can't be reached are a failure at once. */
  readonly waits: () => boolean
  /** A topic that isn't there was there before, and may be made anew. */
  readonly topicsWereThere: boolean
}

/** How long one thing is tried again: `wait` after each failure, `reset` when it succeeded and goes on. */
export class Patience {
  readonly #options: PatienceOptions
  /** Of the first failure since the last success. */
  #sinceMs: number | undefined
  /** Of the first of the failures that are short-lived or for good, without another between. */
  #shortSinceMs: number | undefined
  readonly #told = new Set<string>()

  constructor(options: PatienceOptions) {
    this.#options = options
  }

  /** Resolves when it is time for the next try. Throws `error` when there is to be none. */
  async wait(error: unknown): Promise<void> {
    const { clock, timeoutMs, onWaiting, told } = this.#options
    const nowMs = clock.monotonic()
    const kind = this.#kindOf(error)
    if (kind === 'final') throw error
    this.#sinceMs ??= nowMs
    this.#shortSinceMs = kind === 'short' ? (this.#shortSinceMs ?? nowMs) : undefined
    const leftMs = Math.min(
      timeoutMs - (nowMs - this.#sinceMs),
      this.#shortSinceMs === undefined ? Number.POSITIVE_INFINITY : shortLivedMs - (nowMs - this.#shortSinceMs),
    )
    if (leftMs < retryDelayMs) throw error
    const reason = connectionFaultText(error)
    // What is short-lived ends with this very sentence, or is over.
    if (kind === 'passing' && nowMs - this.#sinceMs >= tellAfterMs && !told.has(reason)) {
      told.add(reason)
      this.#told.add(reason)
      onWaiting?.(`${reason}. Trying again for ${Math.round(leftMs / 1000)} s`)
    }
    await sleep(retryDelayMs)
  }

  /** What failed is over: the next failure is a new one. */
  reset(): void {
    this.#sinceMs = undefined
    this.#shortSinceMs = undefined
    for (const reason of this.#told) this.#options.told.delete(reason)
    this.#told.clear()
  }

  #kindOf(error: unknown): 'final' | 'passing' | 'short' {
    if (error instanceof UnknownTopicError) return this.#options.topicsWereThere ? 'short' : 'final'
    if (error instanceof RequestRefusedError) {
      if (!error.retriable) return 'final'
      return shortLivedCodes.has(error.errorCode) ? 'short' : 'passing'
    }
    const isUnreachable = error instanceof ClusterUnreachableError ? error.retriable : isConnectionFault(error)
    return isUnreachable && this.#options.waits() ? 'passing' : 'final'
  }
}

export function isConnectionFault(error: unknown): error is NetworkError | KafkaClientError {
  return error instanceof NetworkError || error instanceof KafkaClientError
}
