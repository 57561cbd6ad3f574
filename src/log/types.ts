import type { LeaderEpoch, Offset, ProducerEpoch, ProducerId, Uuid } from '../base/index.ts'

/** Who wrote what is appended: a client through the leader, a coordinator on this broker, or a leader's log (a follower's append). */
export type AppendOrigin = 'client' | 'coordinator' | 'replication'

export interface AppendOptions {
  readonly leaderEpoch: LeaderEpoch
  /** 'client': every producer rule is checked. 'coordinator': control batches and internal topics are allowed. */
  readonly origin: AppendOrigin
  /** The version of the Produce request, for rules that depend on it (zstd before 7 is refused). */
  readonly produceVersion?: number
}

/** A batch was appended, or was there already. */
export interface Appended {
  readonly ok: true
  /** Offset of the batch's first record. For a duplicate: that of the original. */
  readonly baseOffset: Offset
  /** Offset of the batch's last record; inclusive. What an acknowledgement has to wait for is `lastOffset + 1`. */
  readonly lastOffset: Offset
  /** Milliseconds; -1 with CreateTime (but a duplicate tells its batch's timestamp, as Kafka does). */
  readonly logAppendTimeMs: number
  readonly logStartOffset: Offset
  /** True: an idempotent producer sent it again and nothing was appended. Acknowledge only when the original is as durable as asked. */
  readonly duplicate: boolean
}

export type AppendRefusal =
  | 'corrupt-message' // CRC, magic or size wrong
  | 'not-one-batch' // none, two, or one of a format before 2
  | 'invalid-record' // control batch, offsets, framing, key missing on a compacted topic
  | 'message-too-large' // above max.message.bytes
  | 'record-list-too-large' // above segment.bytes
  | 'invalid-timestamp'
  | 'unsupported-compression-type'
  | 'unsupported-for-message-format' // a transactional batch while transactions aren't built
  | 'out-of-order-sequence'
  | 'invalid-producer-epoch'
  | 'fenced-leader-epoch' // `leaderEpoch` is older than one the log already holds

export interface Refused {
  readonly ok: false
  readonly reason: AppendRefusal
  /** For people. */
  readonly message: string
  /** Records at fault by their index in the batch, where the rule is about single records. */
  readonly recordErrors?: readonly { readonly batchIndex: number; readonly message: string }[]
}

export type AppendResult = Appended | Refused

export interface ReadOptions {
  /** First offset wanted; the batch that holds it comes whole, from its base offset. */
  readonly fetchOffset: Offset
  /** Batches at or above this offset are not returned (high watermark or last stable offset); exclusive. */
  readonly endOffset: Offset
  readonly maxBytes: number
  /** Return the first batch whole even when it is larger than `maxBytes`. */
  readonly minOneBatch: boolean
}

/** Whole stored batches. The chunks are views of memory that is used again: call `release` once they are written or copied. */
export interface ReadResult {
  readonly chunks: readonly Buffer[]
  readonly sizeBytes: number
  release(): void
}

export type OffsetOutOfRange = {
  readonly outOfRange: true
  readonly logStartOffset: Offset
  readonly logEndOffset: Offset
}

export interface TimestampAndOffset {
  readonly timestamp: number
  readonly offset: Offset
  readonly leaderEpoch: LeaderEpoch
}

/** What a partition's log tells its owner, synchronously, in the turn in which it happened. */
export interface LogListener {
  /** Everything below `flushedOffset` (exclusive) is on disk. */
  onFlushed(flushedOffset: Offset): void
  /** A write or sync failed: the directory is offline, nothing more will be appended or flushed. `isReadable` says whether it can be read. */
  onFailed(error: Error): void
  /** Retention or deleteRecords moved the start of the log. */
  onLogStartMoved(logStartOffset: Offset): void
}

/** Producer state of one idempotent producer, for DescribeProducers and tests. */
export interface ActiveProducer {
  readonly producerId: ProducerId
  readonly producerEpoch: ProducerEpoch
  readonly lastSequence: number
  readonly lastTimestampMs: number
}

/**
 * The log of one replica of one partition.
 *
 * `logStartOffset <= flushedOffset <= logEndOffset`. LEO moves when bytes are handed to the page cache, the flushed offset
 * when the `fdatasync` that covers them returned. At `flush.messages` = 1 every append asks for a sync at once (one at a
 * time per log; all that was appended while it ran shares the next one); otherwise syncs happen in the background.
 */
export interface PartitionLog {
  readonly topic: string
  readonly topicId: Uuid
  readonly partition: number
  /** First offset that can be read; inclusive. */
  readonly logStartOffset: Offset
  /** LEO: the next offset to be written; exclusive. */
  readonly logEndOffset: Offset
  /** First offset that is not known to be on disk; exclusive. */
  readonly flushedOffset: Offset
  /** The high watermark that was last set, or that the checkpoint held when the log was opened; 0 when neither. Exclusive. */
  readonly highWatermark: Offset
  /** Leader epoch of the last batch, -1 when there never was one. */
  readonly latestEpoch: LeaderEpoch
  readonly sizeBytes: number
  /** True when acknowledgements wait for the sync (`flush.messages` is 1). */
  readonly acksWaitForFlush: boolean
  readonly isOnline: boolean
  /** It is online, or its disk is full: what it holds can be read. */
  readonly isReadable: boolean
  /** At most one listener: the partition that owns the log. */
  setListener(listener: LogListener | undefined): void

  /**
   * Checks and appends one record set as a leader does: exactly one v2 batch for a client. Stamps base offset and leader
   * epoch into `records` in place. `records` is not kept. Answers at once unless a rule needs the records decompressed;
   * appends of clients keep their order. A coordinator's batch is uncompressed, stays so, and is always appended at once,
   * ahead of appends that wait. Throws `StorageError` when the disk fails.
   */
  appendAsLeader(records: Buffer, options: AppendOptions): AppendResult | Promise<AppendResult>
  /**
   * Appends batches as the leader stored them, offsets and epochs kept. Throws `CorruptBatchError` when one is damaged or
   * doesn't continue the log, and `StorageError` when this disk fails.
   */
  appendAsFollower(records: Buffer): void
  /** Asks for a sync of what is appended so far; resolves when `flushedOffset` covers it. Throws `StorageError`. */
  flush(): Promise<void>

  read(options: ReadOptions): ReadResult | OffsetOutOfRange | Promise<ReadResult | OffsetOutOfRange>
  /** First record whose timestamp is at least `timestamp`, below `endOffset`; undefined when there is none. */
  offsetForTimestamp(timestamp: number, endOffset: Offset): Promise<TimestampAndOffset | undefined>
  /** The record with the largest timestamp (the first of them), below `endOffset`; undefined in an empty log. */
  offsetOfMaxTimestamp(endOffset: Offset): Promise<TimestampAndOffset | undefined>

  /** A new leader's epoch begins at the current LEO: remembered at once, before its first append. */
  assignEpochStart(leaderEpoch: LeaderEpoch): void
  /** The largest epoch that is at most `leaderEpoch`, with the offset at which it ends (exclusive); -1/-1 when unknown. */
  endOffsetForEpoch(leaderEpoch: LeaderEpoch): { readonly leaderEpoch: LeaderEpoch; readonly endOffset: Offset }
  /** The leader epoch in which the record at `offset` was written (or would be, at the LEO); -1 when unknown. */
  epochForOffset(offset: Offset): LeaderEpoch
  /** Nothing is appended until it resolves. Keeps the batches below `offset`; drops the others with their producer state and epochs, also an epoch without batches. */
  truncateTo(offset: Offset): Promise<void>
  /** Empties the log; the next append gets `offset`. */
  truncateFullyAndStartAt(offset: Offset): Promise<void>
  /**
   * Takes the first batches of a leader whose log starts within the first of them, as DeleteRecords leaves it: this log is empty
   * and starts there, too, and so it does afterwards. Nothing is appended until it resolves. Rejects with `CorruptBatchError`.
   */
  startWithin(records: Buffer): Promise<void>
  /** Moves the log start up (DeleteRecords): at most to `limit`, the high watermark. */
  deleteRecordsBefore(offset: Offset, limit: Offset): Promise<void>
  /** Retention doesn't delete segments at or above the high watermark, and the checkpoint remembers it. */
  setHighWatermark(offset: Offset): void

  activeProducers(): readonly ActiveProducer[]
}
