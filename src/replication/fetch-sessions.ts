import type { Clock, Random } from '../platform/index.ts'
import type { Metrics } from '../telemetry/index.ts'
import {
  type AskedPartition,
  FetchSession,
  type FetchSessionId,
  nextFetchEpoch,
  type PartitionIdentity,
  type SessionPartition,
} from './fetch-session.ts'
import { FetchSessionProbe } from './probe.ts'
import type { FetchedPartition } from './service.ts'

export interface FetchSessionsOptions {
  /** `max.incremental.fetch.session.cache.slots`; 0: no sessions. */
  readonly maxSessions: number
  readonly clock: Pick<Clock, 'monotonic'>
  readonly random: Pick<Random, 'int'>
  readonly metrics: Metrics
  /** Of what all sessions remember; 64 MiB unless given. */
  readonly maxBytes?: number
}

/** What an incremental fetch says. */
export interface ResumeRequest {
  readonly sessionId: number
  readonly epoch: number
  readonly usesTopicIds: boolean
  /** Partitions that are new in the session, or asked for in another way than before. */
  readonly changed: readonly AskedPartition[]
  readonly forgotten: readonly PartitionIdentity[]
}

export type FetchSessionRefusal =
  | 'fetch-session-id-not-found'
  | 'invalid-fetch-session-epoch'
  | 'fetch-session-topic-id-error'

/** A session that goes on, in the epoch that its client's next request must have; or nothing is left of it; or it can't go on. */
export type ResumeOutcome =
  | { readonly ok: true; readonly session: FetchSession; readonly nextEpoch: number }
  | { readonly ok: true; readonly session: undefined }
  | { readonly ok: false; readonly reason: FetchSessionRefusal }

/** A session that was not used for this long makes place for another; one that lasted this long may have to (KIP-227). */
const evictionMs = 120_000
const defaultMaxBytes = 64 * 1024 * 1024

/**
 * The fetch sessions of one broker. A client whose session is not there (any more) is told so and makes another; one that
 * gets none goes on without. So sessions may go at any moment, and their memory has a bound: in their number, and in the
 * bytes of what they remember, as a client may name any number of topics that need not even exist.
 *
 * A session outlives the connection on which it was made: its client comes back to it, or it makes place when it is idle.
 */
export class FetchSessions {
  readonly #maxSessions: number
  readonly #maxBytes: number
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #random: Pick<Random, 'int'>
  readonly #probe: FetchSessionProbe
  /** Least recently used first. */
  readonly #sessions = new Map<number, FetchSession>()
  #sizeBytes = 0

  constructor(options: FetchSessionsOptions) {
    this.#maxSessions = options.maxSessions
    this.#maxBytes = options.maxBytes ?? defaultMaxBytes
    this.#clock = options.clock
    this.#random = options.random
    this.#probe = new FetchSessionProbe(options.metrics)
  }

  /** What a session remembers; nothing when there is none. It counts as no use of it. */
  partitionsOf(sessionId: number): Iterable<SessionPartition> {
    return this.#sessions.get(sessionId)?.partitions ?? []
  }

  /** Ends a session, if there is one. */
  close(sessionId: number): void {
    const session = this.#sessions.get(sessionId)
    if (session !== undefined) this.#remove(session)
  }

  /**
   * Makes a session of a full fetch that is about to be answered with `fetched`, one for each of `asked`. 0: there is no room
   * for it, the client goes on without.
   */
  create(
    usesTopicIds: boolean,
    asked: readonly AskedPartition[],
    fetched: readonly FetchedPartition[],
  ): FetchSessionId | 0 {
    const nowMs = this.#clock.monotonic()
    if (this.#sessions.size >= this.#maxSessions && !this.#makeRoom(asked.length, nowMs)) return 0
    const session = new FetchSession(this.#newId(), usesTopicIds, nowMs)
    for (const [index, partition] of asked.entries()) {
      if (this.#sizeBytes + session.sizeBytes > this.#maxBytes) return 0
      session.tell(session.add(partition), fetched[index]!)
    }
    this.#sessions.set(session.id, session)
    this.#count(session.sizeBytes, session.size)
    return session.id
  }

  /** Goes on with a session: what its client changed counts from here on, and this epoch is used up. */
  resume(request: ResumeRequest): ResumeOutcome {
    const { sessionId, epoch, usesTopicIds, changed, forgotten } = request
    const session = this.#sessions.get(sessionId)
    if (session === undefined) return { ok: false, reason: 'fetch-session-id-not-found' }
    if (session.epoch !== epoch) return { ok: false, reason: 'invalid-fetch-session-epoch' }
    if (session.usesTopicIds !== usesTopicIds) return { ok: false, reason: 'fetch-session-topic-id-error' }
    const { sizeBytes, size } = session
    let isTooLarge = false
    for (const partition of changed) {
      isTooLarge = this.#sizeBytes + session.sizeBytes - sizeBytes > this.#maxBytes
      if (isTooLarge) break
      session.add(partition)
    }
    for (const partition of forgotten) session.forget(partition)
    this.#count(session.sizeBytes - sizeBytes, session.size - size)
    if (isTooLarge) {
      // The client says it all again, and is then told that there is no session for it.
      this.#remove(session)
      this.#probe.evictions.value++
      return { ok: false, reason: 'fetch-session-id-not-found' }
    }
    if (session.size === 0) {
      this.#remove(session)
      return { ok: true, session: undefined }
    }
    session.epoch = nextFetchEpoch(epoch)
    session.lastUsedMs = this.#clock.monotonic()
    this.#sessions.delete(sessionId)
    this.#sessions.set(sessionId, session)
    return { ok: true, session, nextEpoch: session.epoch }
  }

  /**
   * Whether one session went, for a new one of `size` partitions: one that is idle, else the smallest of those that have
   * lasted, if it is smaller. A large session saves more than a small one, and none is to be pushed out before it was of use.
   */
  #makeRoom(size: number, nowMs: number): boolean {
    const [leastUsed] = this.#sessions.values()
    if (leastUsed === undefined) return false
    let victim: FetchSession | undefined
    if (nowMs - leastUsed.lastUsedMs > evictionMs) victim = leastUsed
    else {
      for (const session of this.#sessions.values()) {
        const hasLasted = session.lastUsedMs - session.createdMs > evictionMs
        if (hasLasted && session.size < (victim?.size ?? size)) victim = session
      }
    }
    if (victim === undefined) return false
    this.#remove(victim)
    this.#probe.evictions.value++
    return true
  }

  #remove(session: FetchSession): void {
    this.#sessions.delete(session.id)
    this.#count(-session.sizeBytes, -session.size)
  }

  #count(sizeBytes: number, partitions: number): void {
    this.#sizeBytes += sizeBytes
    this.#probe.sessions.value = this.#sessions.size
    this.#probe.partitions.value += partitions
  }

  #newId(): FetchSessionId {
    for (;;) {
      const id = 1 + this.#random.int(2 ** 31 - 1)
      if (!this.#sessions.has(id)) return id as FetchSessionId
    }
  }
}
