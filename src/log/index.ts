/**
 * log: partitions on disk, in Kafka's format. It knows batches and offsets, and when they are durable; who leads, what is
 * committed and who may read is decided above.
 *
 * In reading order: `PartitionLog` (`types.ts`) is the contract; `LocalLog` (`local-log.ts`) the whole algorithm over the
 * `Segment`s of a `SegmentStore`, `LogReader` its reading half; `partition-loader.ts` what a start does, above all after a
 * crash; `LogCleaner` compacts (`compaction.ts` is one pass over one log), `LogMoves` takes logs to other directories (`LogMove` is
 * one of them); `LogDirectory` and `LogManager` hold the logs of one folder and of the node. `FlushScheduler`, `HandlePool` and `TailCache` are shared by all logs of a process.
 *
 * A partition's folder, `<topic>-<partition>/`:
 *
 * | file                        | holds                                                                       |
 * |-----------------------------|-----------------------------------------------------------------------------|
 * | `partition.metadata`        | topic id                                                                    |
 * | `<base offset>.log`         | record batches as clients sent them, base offset and leader epoch stamped   |
 * | `<base offset>.index`       | int32 relative last offset, int32 position; one for each `index.interval.bytes` |
 * | `<base offset>.timeindex`   | int64 largest timestamp so far, int32 relative last offset of its batch     |
 * | `<offset>.snapshot`         | idempotent producers' state at that offset                                  |
 * | `leader-epoch-checkpoint`   | where each leader epoch begins                                              |
 *
 * What holds:
 * - LEO moves when a write to the page cache returns, the flushed offset only when a sync that began after it has: content
 *   first, then names, then the parent's names. One sync of a log runs at a time and covers all that was appended before.
 * - A failed write or sync takes its directory offline in the same turn. Where there was no room, what is there can still
 *   be read. No sync is tried again and then believed; a handle with unsynced bytes or I/O in flight is never closed, since its error
 *   would be lost.
 * - Index files of the segment that takes appends are written when it is closed. Until then they are in memory; after a
 *   crash they are rebuilt, with the producer state, from the recovery point's segment on.
 * - The recovery point is never above what is on disk: lowered durably before a truncation, raised after syncs. So damage
 *   below it is a disk's lie or decay, told as a `StorageError`, never cut away; damage above it is a torn tail.
 * - The log start offset is durable before segments below it go, so that a crash in between leaves no hole.
 * - Compaction looks only at closed segments that are flushed and committed. What it writes is `<base offset>.log.cleaned`
 *   until it is synced, then `.log.swap`; from there on a start puts it in place. Holes it leaves between segments lie below
 *   a durable recovery point, so recovery doesn't take them for lost ends.
 * - A log moves as a copy, `<topic>-<partition>.<id>-future/`, that gets its place in one turn, between two syncs: a crash finds
 *   one of the two, or both with all that was told durable.
 * - While a directory can't be opened, no empty log is made for a partition that may be in it: it would count as the newer one.
 * - A folder appears with the partition, its files with the first append. A folder without files is nothing.
 *
 * Everything runs on the event loop, in pieces of about a millisecond; blocking calls only into the page cache. Syncs,
 * cold reads and loading use the thread pool; unpacking and packing of batches is offloaded.
 *
 * Sources: Kafka's log format (KIP-98), leader epochs (KIP-101, KIP-279), log directory failure (KIP-112), compaction with
 * delete horizons (KIP-58, KIP-354, KIP-534), moves between directories (KIP-113).
 */
export { startsWithin } from './batch-validator.ts'
export {
  highWatermarkFile,
  logStartFile,
  readEpochs,
  readOffsets,
  readPartitionMetadata,
  recoveryPointFile,
} from './checkpoint-files.ts'
export type { EpochEntry } from './epoch-cache.ts'
export { ClusterIdMismatchError, StorageError } from './errors.ts'
export { type FlushLane, FlushScheduler } from './flush-scheduler.ts'
export { HandlePool, type PooledFile } from './handle-pool.ts'
export { offsetEntryBytes, timeEntryBytes } from './indexes.ts'
export {
  type LogDirectoryStatus,
  type LogManager,
  type LogManagerListener,
  type LogManagerOptions,
  type LogManagerSettings,
  type LogSpec,
  openLogManager,
  type PartitionCopy,
} from './log-manager.ts'
export type { MoveAnswer } from './log-moves.ts'
export { readMetaProperties } from './meta-properties.ts'
export { decodeProducerSnapshot } from './producer-snapshot.ts'
export type {
  ActiveProducer,
  Appended,
  AppendOptions,
  AppendOrigin,
  AppendRefusal,
  AppendResult,
  LogListener,
  OffsetOutOfRange,
  PartitionLog,
  ReadOptions,
  ReadResult,
  Refused,
  TimestampAndOffset,
} from './types.ts'
