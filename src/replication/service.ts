import type { BrokerEpoch, BrokerId, LeaderEpoch, Offset, Uuid } from '../base/index.ts'
import type { ActiveProducer, AppendOrigin, AppendRefusal, PartitionLog } from '../log/index.ts'

/**
 * The replicas on this broker: what clients and coordinators may do with partitions, whatever the role of this replica.
 *
 * One instance per broker. Told of metadata changes by `applyDelta`; opens, deletes and changes the role of partitions
 * accordingly, in the same turn as far as answers to clients are concerned.
 */
export interface ReplicaService {
  /** Appends one partition's records as the leader and answers when `requiredAcks` is met. Never rejects. */
  append(request: AppendRequest): Promise<AppendOutcome>
  /** Long poll over many partitions. Never rejects. Call `release` on the answer once its chunks are written. */
  fetch(request: FetchRequest): Promise<FetchAnswer>
  listOffset(request: ListOffsetRequest): Promise<ListOffsetOutcome>
  /** Removes the records at the start of a partition that this broker leads; durable when it resolves. Never rejects. */
  deleteRecords(request: DeleteRecordsRequest): Promise<DeleteRecordsOutcome>
  endOffsetForEpoch(
    partition: PartitionRef,
    currentLeaderEpoch: LeaderEpoch | -1,
    leaderEpoch: LeaderEpoch,
  ): Promise<EndOffsetOutcome>
  /** What any replica knows; a leader's answer is not waited for. */
  activeProducers(partition: PartitionRef): Promise<ActiveProducersOutcome>
}

/** A partition by topic name. Where a client named a topic by id, the API resolves it first, by the image. */
export interface PartitionRef {
  readonly topic: string
  readonly partition: number
  /** When given: refused unless the replica's topic has this id. */
  readonly topicId?: Uuid
}

export type ReplicaRefusal =
  | 'unknown-topic-or-partition'
  | 'inconsistent-topic-id'
  | 'not-leader-or-follower'
  | 'fenced-leader-epoch'
  | 'unknown-leader-epoch'
  | 'storage-error'
  /** A bug here, which was logged as an error. */
  | 'unknown-server-error'
  | 'offset-out-of-range'
  | 'offset-not-available'
  | 'unsupported-version'

export interface ReplicaRefused {
  readonly ok: false
  readonly reason: ReplicaRefusal
  readonly message?: string
}

export interface AppendRequest extends PartitionRef {
  /** Stamped in place; not kept after the answer. */
  readonly records: Buffer
  /** 0: answer at once; 1: on this disk; -1: on the disk of every in-sync replica. */
  readonly requiredAcks: 0 | 1 | -1
  readonly timeoutMs: number
  readonly origin: AppendOrigin
  readonly produceVersion?: number
  /** When given: refused unless this replica leads the partition in this epoch. */
  readonly leaderEpoch?: LeaderEpoch
}

export type AppendOutcome =
  | {
      readonly ok: true
      readonly baseOffset: Offset
      readonly lastOffset: Offset
      readonly logAppendTimeMs: number
      readonly logStartOffset: Offset
    }
  | {
      readonly ok: false
      readonly reason:
        | AppendRefusal
        | ReplicaRefusal
        | 'not-enough-replicas'
        | 'not-enough-replicas-after-append'
        | 'request-timed-out'
      readonly message?: string
      readonly recordErrors?: readonly { readonly batchIndex: number; readonly message: string }[]
      /** Where the batch was looked at and refused. */
      readonly logStartOffset?: Offset
    }

export interface FetchRequest {
  readonly maxWaitMs: number
  readonly minBytes: number
  /** For the whole answer; the first non-empty partition gives its first batch even above it. */
  readonly maxBytes: number
  /** Asked before each read for memory for at most that many bytes; less may be lent. Given back when the read is over. */
  readonly lend?: (maxBytes: number) => { readonly bytes: number; giveBack(): void }
  readonly isolation: 'read-uncommitted' | 'read-committed'
  /** A follower reads all that the leader has, and what it asks for is what it has. Left out: a consumer. */
  readonly follower?: { readonly replica: BrokerId; readonly brokerEpoch: BrokerEpoch | -1 }
  /** True: a follower here may answer (KIP-392). */
  readonly anyReplica?: boolean
  readonly partitions: readonly FetchPartition[]
  /** Aborted when the client's connection closes: the wait ends at once. */
  readonly signal?: AbortSignal
}

export interface FetchPartition extends PartitionRef {
  readonly fetchOffset: Offset
  readonly maxBytes: number
  /** -1: not checked. */
  readonly currentLeaderEpoch: LeaderEpoch | -1
  /** Epoch of the record before `fetchOffset`; -1 or left out: not checked. */
  readonly lastFetchedEpoch?: LeaderEpoch | -1
  /** Of a follower's log; left out by consumers. */
  readonly logStartOffset?: Offset
}

export interface FetchAnswer {
  /** In the order asked. */
  readonly partitions: readonly FetchedPartition[]
  release(): void
}

export interface FetchedPartition {
  readonly outcome: { readonly ok: true } | ReplicaRefused
  /** -1 with an error. */
  readonly highWatermark: Offset
  readonly lastStableOffset: Offset
  readonly logStartOffset: Offset
  /** Where the reader's log and this one part: the largest epoch up to its own, and where that ends here (KIP-320). No records then. */
  readonly divergingEpoch?: { readonly epoch: LeaderEpoch; readonly endOffset: Offset }
  readonly chunks: readonly Buffer[]
  readonly sizeBytes: number
}

export interface ListOffsetRequest extends PartitionRef {
  /** A follower asks: the end is the end of the log, committed or not. */
  readonly byFollower?: boolean
  readonly currentLeaderEpoch: LeaderEpoch | -1
  readonly isolation: 'read-uncommitted' | 'read-committed'
  /** A time, or what stands for a special one. */
  readonly target: 'latest' | 'earliest' | 'max-timestamp' | { readonly timestampMs: number }
}

/** offset -1, timestamp -1, epoch -1: nothing found, which is no error. */
export type ListOffsetOutcome =
  | { readonly ok: true; readonly offset: Offset; readonly timestampMs: number; readonly leaderEpoch: LeaderEpoch }
  | ReplicaRefused

/** Epoch -1, offset -1: the epoch is newer than all that are known. The end offset is exclusive. */
export type EndOffsetOutcome =
  | { readonly ok: true; readonly leaderEpoch: LeaderEpoch; readonly endOffset: Offset }
  | ReplicaRefused

export type ActiveProducersOutcome =
  | { readonly ok: true; readonly producers: readonly ActiveProducer[] }
  | ReplicaRefused

export interface DeleteRecordsRequest extends PartitionRef {
  /** Every record below it goes: 0 or more, or -1 for the high watermark. */
  readonly beforeOffset: Offset | -1
  readonly timeoutMs: number
}

export type DeleteRecordsOutcome =
  /** `lowWatermark`: the first offset that is left on every replica; may be above what was asked for. */
  | { readonly ok: true; readonly lowWatermark: Offset }
  | {
      readonly ok: false
      /** 'policy-violation': the topic is compacted only. 'request-timed-out': it may still be done. */
      readonly reason: ReplicaRefusal | 'policy-violation' | 'request-timed-out'
      readonly message?: string
    }

/** A partition that this broker leads, for the coordinators: its log up to the high watermark, and news of both. */
export interface LedPartition {
  readonly topic: string
  readonly partition: number
  readonly leaderEpoch: LeaderEpoch
  readonly log: PartitionLog
  readonly highWatermark: Offset
}
