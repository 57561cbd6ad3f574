/**
 * replication: the replicas on this broker.
 */
export type {
  AppendOutcome,
  AppendRequest,
  FetchAnswer,
  FetchedPartition,
  FetchPartition,
  FetchRequest,
  LedPartition,
  ListOffsetOutcome,
  ListOffsetRequest,
  PartitionRef,
  ReplicaRefusal,
  ReplicaRefused,
  ReplicaService,
} from './replica-manager.ts'
