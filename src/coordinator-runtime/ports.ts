import type { LeaderEpoch, Offset, TopicPartition } from '../base/index.ts'

/**
 * What a coordinator needs of the partition that holds its records; `node/` passes in one made of `replication/`.
 * Every method speaks about the replica in the leader epoch given; in any other epoch it answers 'not-leader'.
 */
export interface PartitionStore {
  /**
   * Appends one batch as leader, at once: the offset is known (and the state may be replayed) before it is on any disk.
   * The store stamps base offset and leader epoch into `batch`, which is its own from here on.
   *
   * `committed` resolves 'committed' when the high watermark passes the batch, or with why it never will in this leader
   * epoch. It has no timeout: a batch that waits long is still in the log and may yet be committed. It never rejects,
   * and the batches of one partition resolve in the order in which they were appended.
   */
  append(partition: TopicPartition, leaderEpoch: LeaderEpoch, batch: Buffer): StoreAppendResult
  /**
   * Reads what is committed from `fromOffset` on: whole batches in order, one or more in each buffer; an empty list when
   * nothing more is committed at present. The buffers are copies: they may be kept. Rejects when the log cannot be read.
   */
  read(
    partition: TopicPartition,
    leaderEpoch: LeaderEpoch,
    fromOffset: Offset,
    maxBytes: number,
  ): Promise<readonly Buffer[] | 'not-leader'>
  /** Where the log stands now; undefined when not leading. */
  bounds(partition: TopicPartition, leaderEpoch: LeaderEpoch): StoreBounds | undefined
  /** Largest batch that an append takes. */
  maxBatchBytes(partition: TopicPartition): number
}

/**
 * A coordinator has loaded when it replayed up to the `logEndOffset` of the moment it began, not just to the high
 * watermark: a new leader's high watermark may still be behind what the leader before it acknowledged.
 */
export interface StoreBounds {
  readonly startOffset: Offset
  /** Exclusive. */
  readonly highWatermark: Offset
  /** Exclusive. */
  readonly logEndOffset: Offset
}

export type StoreFailure = 'not-leader' | 'not-enough-replicas' | 'record-too-large' | 'storage-error'

export type StoreAppendResult =
  | { readonly ok: true; readonly baseOffset: Offset; readonly committed: Promise<'committed' | StoreFailure> }
  | { readonly ok: false; readonly reason: StoreFailure }
