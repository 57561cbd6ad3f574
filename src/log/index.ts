/**
 * log: partitions on disk, in Kafka's format.
 */
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
