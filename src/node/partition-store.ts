import { assert, type LeaderEpoch, type Offset, type TopicPartition } from '../base/index.ts'
import type { PartitionStore, StoreAppendResult, StoreBounds, StoreFailure } from '../coordinator-runtime/index.ts'
import type { AppendRefusal } from '../log/index.ts'
import type { Partition, ReplicaManager } from '../replication/index.ts'

/** The coordinators' view of the partitions that this broker leads. */
export class LedPartitionStore implements PartitionStore {
  readonly #replicas: ReplicaManager
  readonly #maxBatchBytes: (topic: string) => number

  constructor(replicas: ReplicaManager, maxBatchBytes: (topic: string) => number) {
    this.#replicas = replicas
    this.#maxBatchBytes = maxBatchBytes
  }

  append(target: TopicPartition, leaderEpoch: LeaderEpoch, batch: Buffer): StoreAppendResult {
    const partition = this.#replicas.led(target.topic, target.partition, leaderEpoch)
    if (partition === undefined) return { ok: false, reason: 'not-leader' }
    if (!partition.hasEnoughInSync) return { ok: false, reason: 'not-enough-replicas' }
    try {
      const result = partition.appendNow(batch)
      if (!result.ok) return { ok: false, reason: failureOf(result.reason) }
      return { ok: true, baseOffset: result.baseOffset, committed: this.#committed(partition, result.lastOffset + 1) }
    } catch (error) {
      // Told by its log, or told here. Either way nothing of it is in the log, and the coordinator takes its decision back.
      partition.refusalOf(error)
      return { ok: false, reason: 'storage-error' }
    }
  }

  async #committed(partition: Partition, endOffset: Offset): Promise<'committed' | StoreFailure> {
    const outcome = await partition.waitCommitted(endOffset, Number.POSITIVE_INFINITY)
    if (outcome === 'reached') return 'committed'
    assert(outcome !== 'request-timed-out', 'what waits without a deadline never times out')
    return outcome === 'not-leader-or-follower' ? 'not-leader' : outcome
  }

  async read(
    target: TopicPartition,
    leaderEpoch: LeaderEpoch,
    fromOffset: Offset,
    maxBytes: number,
  ): Promise<readonly Buffer[] | 'not-leader'> {
    const partition = this.#replicas.led(target.topic, target.partition, leaderEpoch)
    if (partition === undefined) return 'not-leader'
    const endOffset = partition.highWatermark
    if (fromOffset >= endOffset) return []
    const fetchOffset = Math.max(fromOffset, partition.log.logStartOffset)
    const read = await partition.log.read({ fetchOffset, endOffset, maxBytes, minOneBatch: true })
    if ('outOfRange' in read) return [] // truncated or deleted meanwhile: the epoch has ended, the next call says so
    const copies = read.chunks.map((chunk) => Buffer.from(chunk))
    read.release()
    return copies
  }

  bounds(target: TopicPartition, leaderEpoch: LeaderEpoch): StoreBounds | undefined {
    const partition = this.#replicas.led(target.topic, target.partition, leaderEpoch)
    if (partition === undefined) return undefined
    const { highWatermark, log } = partition
    return { startOffset: log.logStartOffset, highWatermark, logEndOffset: log.logEndOffset }
  }

  maxBatchBytes(target: TopicPartition): number {
    return this.#maxBatchBytes(target.topic)
  }
}

function failureOf(reason: AppendRefusal): StoreFailure {
  return reason === 'message-too-large' || reason === 'record-list-too-large' ? 'record-too-large' : 'storage-error'
}
