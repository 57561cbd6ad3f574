import { type Brand, type LeaderEpoch, type Offset, type Uuid, zeroUuid } from '../base/index.ts'
import type { FetchedPartition, FetchPartition } from './service.ts'

/** 1 to 2^31-1; 0 on the wire is "no session". */
export type FetchSessionId = Brand<number, 'FetchSessionId'>

/** A partition as a client asks for it, before a session remembers it. */
export interface AskedPartition {
  /** Undefined: there is no topic with this `topicId` yet. */
  readonly topic: string | undefined
  /** `zeroUuid` where the client names topics. */
  readonly topicId: Uuid
  readonly partition: number
  readonly fetchOffset: Offset
  readonly maxBytes: number
  /** -1: not checked. */
  readonly currentLeaderEpoch: LeaderEpoch | -1
  /** Of the record before `fetchOffset`; -1: not checked. */
  readonly lastFetchedEpoch: LeaderEpoch | -1
  /** Of a follower's log; 0 from consumers. */
  readonly logStartOffset: Offset
}

/** What a forgotten partition is named by. */
export type PartitionIdentity = Pick<AskedPartition, 'topic' | 'topicId' | 'partition'>

/**
 * A partition that a session remembers: what its client last asked of it and was last told of it. It is what
 * `ReplicaService.fetch` takes, so that an incremental fetch makes no objects for its partitions.
 */
export class SessionPartition implements FetchPartition {
  readonly key: string
  /** '' while no topic has the id that the client gave; a topic keeps its name, so it is looked up once. */
  topic: string
  /** Undefined where the client names topics: whichever topic has the name is meant. */
  readonly topicId?: Uuid
  readonly partition: number
  fetchOffset: Offset
  maxBytes: number
  currentLeaderEpoch: LeaderEpoch | -1
  lastFetchedEpoch: LeaderEpoch | -1
  logStartOffset: Offset
  /** As last told; -1 after an error or another log, so that its end is told too. */
  #highWatermark: Offset = -1
  #logStartOffset: Offset = -1

  constructor(asked: AskedPartition) {
    this.key = keyOf(asked)
    this.topic = asked.topic ?? ''
    if (asked.topicId !== zeroUuid) this.topicId = asked.topicId
    this.partition = asked.partition
    this.fetchOffset = asked.fetchOffset
    this.maxBytes = asked.maxBytes
    this.currentLeaderEpoch = asked.currentLeaderEpoch
    this.lastFetchedEpoch = asked.lastFetchedEpoch
    this.logStartOffset = asked.logStartOffset
  }

  /** Of memory, roughly and not too low. */
  get sizeBytes(): number {
    return objectBytes + 2 * this.key.length
  }

  ask(asked: AskedPartition): void {
    this.fetchOffset = asked.fetchOffset
    this.maxBytes = asked.maxBytes
    this.currentLeaderEpoch = asked.currentLeaderEpoch
    this.lastFetchedEpoch = asked.lastFetchedEpoch
    this.logStartOffset = asked.logStartOffset
  }

  /** Takes note of what the client is told now; true when it has to be: there is data, an error, another log than the client's, or an offset moved. */
  tell({ outcome, highWatermark, logStartOffset, divergingEpoch, sizeBytes }: FetchedPartition): boolean {
    if (!outcome.ok || divergingEpoch !== undefined) {
      this.#highWatermark = -1
      return true
    }
    const isNews = sizeBytes > 0 || highWatermark !== this.#highWatermark || logStartOffset !== this.#logStartOffset
    this.#highWatermark = highWatermark
    this.#logStartOffset = logStartOffset
    return isNews
  }
}

/** The object, its place in the session, and its names. */
const objectBytes = 250

function keyOf({ topic, topicId, partition }: PartitionIdentity): string {
  return topicId === zeroUuid ? `${partition} ${topic ?? ''}` : `${partition} ${topicId}`
}

/** The epoch that follows: 1 to 2^31-1, then 1 again. */
export function nextFetchEpoch(epoch: number): number {
  return epoch === maxFetchEpoch ? 1 : epoch + 1
}

const maxFetchEpoch = 2 ** 31 - 1

/**
 * One client's fetches, remembered so that each says only what changed, both ways (KIP-227).
 *
 * The partitions are read in an order of their own: those that gave records go to the end, so that a partition with much to
 * give doesn't keep the others from the room that an answer has.
 */
export class FetchSession {
  readonly id: FetchSessionId
  /** Whether its client names topics by their ids; it may not change in between. */
  readonly usesTopicIds: boolean
  readonly createdMs: number
  lastUsedMs: number
  /** That the client's next request must have. */
  epoch = 1
  readonly #partitions = new Map<string, SessionPartition>()
  #sizeBytes = 0

  constructor(id: FetchSessionId, usesTopicIds: boolean, nowMs: number) {
    this.id = id
    this.usesTopicIds = usesTopicIds
    this.createdMs = nowMs
    this.lastUsedMs = nowMs
  }

  /** Partitions. */
  get size(): number {
    return this.#partitions.size
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** In the order in which they are to be read. */
  get partitions(): Iterable<SessionPartition> {
    return this.#partitions.values()
  }

  /** Of two that ask for the same partition the later counts. */
  add(asked: AskedPartition): SessionPartition {
    const key = keyOf(asked)
    const present = this.#partitions.get(key)
    if (present !== undefined) {
      present.ask(asked)
      return present
    }
    const added = new SessionPartition(asked)
    this.#partitions.set(key, added)
    this.#sizeBytes += added.sizeBytes
    return added
  }

  forget(partition: PartitionIdentity): void {
    const key = keyOf(partition)
    const present = this.#partitions.get(key)
    if (present === undefined) return
    this.#partitions.delete(key)
    this.#sizeBytes -= present.sizeBytes
  }

  /**
   * Takes note of an answer; whether the client is to be told of this partition. One that gave records is read last the next
   * time. Not called when the session has gone on to another request meanwhile.
   */
  tell(partition: SessionPartition, fetched: FetchedPartition): boolean {
    const isTold = partition.tell(fetched)
    if (fetched.sizeBytes > 0 && this.#partitions.delete(partition.key)) {
      this.#partitions.set(partition.key, partition)
    }
    return isTold
  }
}
