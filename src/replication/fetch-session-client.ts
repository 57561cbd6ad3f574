import type { LeaderEpoch, Offset, Uuid } from '../base/index.ts'
import { ErrorCode } from '../protocol/index.ts'

/** A partition as a follower asks for it. */
export interface PartitionFetch {
  readonly topicId: Uuid
  readonly partition: number
  readonly currentLeaderEpoch: LeaderEpoch
  readonly fetchOffset: Offset
  /** Epoch of the record before `fetchOffset`; -1 in an empty log. */
  readonly lastFetchedEpoch: LeaderEpoch | -1
  readonly logStartOffset: Offset
  readonly maxBytes: number
}

/** What a request says: in a session only what changed since the one before. */
export interface SessionRequest {
  readonly sessionId: number
  readonly sessionEpoch: number
  readonly partitions: readonly PartitionFetch[]
  readonly forgotten: readonly { readonly topicId: Uuid; readonly partition: number }[]
}

const maxSessionEpoch = 2 ** 31 - 1

/**
 * A follower's end of one fetch session with a leader (KIP-227): what the leader knows already is not said again, so that idle
 * partitions cost nothing. One request at a time; each is followed by `onAnswer` or `reset`.
 */
export class FetchSessionClient {
  #sessionId = 0
  #epoch = 0
  /** What the leader knows once it has the last request. */
  #known = new Map<string, PartitionFetch>()

  /** The request that fetches all of `wanted`, each partition once. */
  next(wanted: readonly PartitionFetch[]): SessionRequest {
    const next = new Map(wanted.map((fetch) => [keyOf(fetch), fetch]))
    const isFull = this.#epoch === 0
    const known = this.#known
    this.#known = next
    if (isFull) return { sessionId: this.#sessionId, sessionEpoch: 0, partitions: wanted, forgotten: [] }
    return {
      sessionId: this.#sessionId,
      sessionEpoch: this.#epoch,
      partitions: wanted.filter((fetch) => !isSame(fetch, known.get(keyOf(fetch)))),
      forgotten: [...known]
        .filter(([key]) => !next.has(key))
        .map(([, { topicId, partition }]) => ({ topicId, partition })),
    }
  }

  /** False: the session is lost, and the next request is a full one. */
  onAnswer(errorCode: number, sessionId: number): boolean {
    if (errorCode !== ErrorCode.NONE) {
      this.reset()
      return false
    }
    // A leader without room for a session gives none: every request is then a full one.
    if (sessionId === 0) {
      this.reset()
      return true
    }
    this.#sessionId = sessionId
    this.#epoch = this.#epoch === maxSessionEpoch ? 1 : this.#epoch + 1
    return true
  }

  /** It isn't known what the leader has heard. */
  reset(): void {
    this.#epoch = 0
    this.#known = new Map()
  }
}

function keyOf({ topicId, partition }: { readonly topicId: Uuid; readonly partition: number }): string {
  return `${partition}/${topicId}`
}

function isSame(a: PartitionFetch, b: PartitionFetch | undefined): boolean {
  return (
    b !== undefined &&
    a.fetchOffset === b.fetchOffset &&
    a.currentLeaderEpoch === b.currentLeaderEpoch &&
    a.lastFetchedEpoch === b.lastFetchedEpoch &&
    a.logStartOffset === b.logStartOffset &&
    a.maxBytes === b.maxBytes
  )
}
