import type { LeaderEpoch, Offset, TopicPartition } from '../base/index.ts'

/**
 * What a coordinator needs of the partition that holds its records; `node/` passes in one made of `replication/`.
 * Every method speaks about the replica in the leader epoch given; in any other epoch it answers 'not-leader'.
 */
export interface PartitionStore {
  /**
   * Appends one batch as leader, at once: the offset is known (and the state may be replayed) before it is on any disk.
   * `committed` resolves 'committed' when the high watermark passes the batch, or with why it never will.
   */
  append(partition: TopicPartition, leaderEpoch: LeaderEpoch, batch: Buffer): StoreAppendResult
  /** Reads what is committed from `fromOffset` on; an empty list at the end. Batches are copies: they may be kept. */
  read(
    partition: TopicPartition,
    leaderEpoch: LeaderEpoch,
    fromOffset: Offset,
    maxBytes: number,
  ): Promise<readonly Buffer[] | 'not-leader'>
  /** First and end offset (exclusive, high watermark) of what can be read; undefined when not leading. */
  bounds(partition: TopicPartition, leaderEpoch: LeaderEpoch): { startOffset: Offset; endOffset: Offset } | undefined
  /** Largest batch that an append takes. */
  maxBatchBytes(partition: TopicPartition): number
}

export type StoreFailure = 'not-leader' | 'not-enough-replicas' | 'record-too-large' | 'storage-error' | 'timed-out'

export type StoreAppendResult =
  | { readonly ok: true; readonly baseOffset: Offset; readonly committed: Promise<'committed' | StoreFailure> }
  | { readonly ok: false; readonly reason: StoreFailure }
