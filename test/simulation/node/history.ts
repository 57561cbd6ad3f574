import type { Checker } from '../checkers/checker.ts'

/** A topic that clients of the simulation use. */
export interface SimulatedTopic {
  readonly name: string
  readonly topicId: string
  readonly partitionCount: number
  /** `flush.messages` is 1: an acknowledgement promises that a power loss takes nothing away. */
  readonly isDurable: boolean
  /** Retention or DeleteRecords may take records away, so that what was acknowledged may be below the log start. */
  readonly hasRetention: boolean
  /** Records have keys, and only the last of each key has to stay. */
  readonly isCompacted: boolean
}

/** The key of a record of a compacted topic, which follows from its value: many records have one of a few. */
export function keyOf(value: string): string {
  const [, sequence = '0', index = '0'] = /#(\d+):(\d+)\//.exec(value) ?? []
  const place = Number(sequence) * 3 + Number(index)
  return place % 4 === 0 ? `rare${place % 97}` : `key${place % 7}`
}

/** One batch that a producer made; the same object in every event about it. */
export interface SentBatch {
  readonly topic: SimulatedTopic
  readonly partition: number
  /** Values of its records, in order. None is in another batch. */
  readonly values: readonly string[]
  /** Producers' batches of one `order` are in the log in the order in which they were sent. */
  readonly order: string
  /** The place in that order. */
  readonly sequence: number
  readonly isIdempotent: boolean
  readonly acks: 1 | -1
  /** The broker has to refuse it. */
  readonly isBad: boolean
}

export interface SeenRecord {
  readonly offset: number
  readonly leaderEpoch: number
  readonly value: string
}

/** What one partition's part of a fetch answer told. */
export interface Fetched {
  readonly topic: SimulatedTopic
  readonly partition: number
  /** In which the answer was to be given; -1: any. */
  readonly leaderEpoch: number
  /** The offset that was asked for. */
  readonly fetchOffset: number
  /** All records of the answer at or above `fetchOffset`. */
  readonly records: readonly SeenRecord[]
  readonly highWatermark: number
  readonly logStartOffset: number
  /** `History.now` when the request was sent. */
  readonly sentAt: number
}

/** What clients saw and what was done to the node, in the order in which the simulation's observer learned of it. */
export type HistoryEvent =
  | { readonly kind: 'node-started'; readonly node: string; readonly incarnation: number }
  /** `lostPower`: what was not synced may be gone. */
  | { readonly kind: 'node-ended'; readonly node: string; readonly incarnation: number; readonly lostPower: boolean }
  | { readonly kind: 'batch-sent'; readonly batch: SentBatch }
  /** Told once for a batch, at its first acknowledgement. */
  | {
      readonly kind: 'batch-acked'
      readonly batch: SentBatch
      readonly baseOffset: number
      /** `History.now` when the request was sent. */
      readonly sentAt: number
      /** The answer is to a copy of the batch, and came before the answer to the batch. */
      readonly isOvertaking: boolean
    }
  /** The answer says for certain that nothing was or will be appended. */
  | { readonly kind: 'batch-refused'; readonly batch: SentBatch; readonly errorCode: number }
  | { readonly kind: 'fetched'; readonly fetched: Fetched }
  /** A reader asked for an offset that it had read up to, and the log no longer reaches it. */
  | {
      readonly kind: 'fetch-out-of-range'
      readonly topic: SimulatedTopic
      readonly partition: number
      readonly fetchOffset: number
      readonly logStartOffset: number
    }
  /** DeleteRecords was answered: below the offset nothing is left, anywhere that counts. */
  | {
      readonly kind: 'records-deleted'
      readonly topic: SimulatedTopic
      readonly partition: number
      readonly lowWatermark: number
    }
  | { readonly kind: 'topic-created'; readonly name: string; readonly topicId: string }
  | { readonly kind: 'partition-moved' }
  | { readonly kind: 'move-cancelled' }
  | { readonly kind: 'topic-deletion-sent'; readonly topicId: string }
  | { readonly kind: 'topic-deleted'; readonly topicId: string }
  /** A listing of all topics. */
  | {
      readonly kind: 'topics-listed'
      readonly topics: readonly ListedTopic[]
      readonly sentAt: number
      readonly incarnation: number
    }
  | { readonly kind: 'producer-id'; readonly producerId: number; readonly producerEpoch: number }
  | { readonly kind: 'commit-sent'; readonly commit: OffsetCommit }
  | { readonly kind: 'commit-acked'; readonly commit: OffsetCommit }
  /** Committed offsets as they were fetched; offset -1: none. */
  | {
      readonly kind: 'commits-fetched'
      readonly key: string
      readonly offset: number
      readonly metadata: string
      readonly sentAt: number
    }
  /** A member was told what it has, in a generation of its group. */
  | {
      readonly kind: 'assigned'
      readonly group: string
      readonly generation: number
      readonly memberId: string
      readonly partitions: readonly string[]
    }
  /** The whole log of a partition, read after the last fault. */
  | {
      readonly kind: 'final-log'
      readonly topic: SimulatedTopic
      readonly partition: number
      readonly records: readonly SeenRecord[]
      readonly logStartOffset: number
      readonly highWatermark: number
    }

export interface ListedTopic {
  readonly name: string
  readonly topicId: string
  readonly leaderEpochs: readonly number[]
}

/** One commit of one offset; `metadata` is in no other commit. */
export interface OffsetCommit {
  /** Group, topic and partition. */
  readonly key: string
  readonly offset: number
  readonly metadata: string
}

/** Tells every checker what happened, at once. What a checker throws ends the run. */
export class History {
  readonly #checkers: readonly Checker[]
  readonly #counts = new Map<string, number>()
  #now = 0
  #violation: Error | undefined

  constructor(checkers: readonly Checker[]) {
    this.#checkers = checkers
  }

  /** A logical time: events that were added before this call have a lower one, later events a higher one. */
  get now(): number {
    return this.#now
  }

  /** The first violation; clients that catch errors don't hide it. */
  get violation(): Error | undefined {
    return this.#violation
  }

  add(event: HistoryEvent): void {
    this.#now++
    this.#counts.set(event.kind, this.count(event.kind) + 1)
    if (this.#violation !== undefined) return
    try {
      for (const checker of this.#checkers) checker.on(event, this.#now)
    } catch (error) {
      this.#violation = error as Error
    }
  }

  /** Something that no checker sees is wrong. */
  fail(error: Error): void {
    this.#violation ??= error
  }

  /** How many events of a kind there were. */
  count(kind: HistoryEvent['kind']): number {
    return this.#counts.get(kind) ?? 0
  }
}
