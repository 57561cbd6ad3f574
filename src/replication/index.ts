/**
 * replication: the replicas on this broker, their roles, and the answers that wait for them.
 *
 * In reading order: `ReplicaService` (what the APIs may ask), `ReplicaManager` (follows the metadata, opens logs, serves
 * fetches), `Partition` (role, high watermark, what waits for it), `partition-state.ts` (the high watermark's rule),
 * `DelayedFetch` (a long poll). Beside them `FetchSessions` (what clients asked for before, so that they needn't say it again).
 *
 * A leader: `InSyncReplicas` (what its followers have, and which ISR follows), `IsrChanges` (the way to the controller). A
 * follower: `Fetchers` (whom to follow), `ReplicaFetcher` (one leader), `FetchSessionClient` (what that leader knows already).
 *
 * Invariants:
 * - Consumers read below the high watermark only, and the high watermark counts flushed offsets only where acknowledgements
 *   wait for syncs: what a consumer has seen survives a crash.
 * - An answer that waits is given exactly once. When the leader epoch in which its records were appended ends first, it is an
 *   error, never a false acknowledgement.
 * - A duplicate waits for its original's offset just as the original does.
 * - The high watermark counts the *maximal* ISR, the committed one and the one that was asked for: either may be true, and whoever
 *   may be elected has every record that is committed. What was asked for outlives a log that fails and is opened anew.
 * - A follower's fetch offset is its acknowledgement: it asks for more only when what it appended is on disk (where
 *   acknowledgements wait for that). Failed and refused fetches say nothing.
 * - What a leader sent counts only while the follower follows it in the epoch in which it asked.
 * - A long poll costs nothing per append but a check of one counter; it leaves no timer and no watcher behind.
 * - Replicas that are throttled (`ReplicationQuotas`, KIP-73) are left out of fetches while above their rate, those in the ISR never.
 *   They come last in an answer, and what they may not have yet ends no wait: others are not slowed by them.
 * - A fetch session may go at any moment, and without one a fetch costs nothing for there being sessions.
 *
 * Everything runs on the event loop. Called by `api/` (requests), by `node/` (metadata changes), by the logs (flushed offsets).
 * Sources: KIP-101, KIP-207, KIP-227, KIP-320, KIP-966.
 */

export { type AskedPartition, FetchSession, type FetchSessionId, type PartitionIdentity } from './fetch-session.ts'
export { type FetchSessionRefusal, FetchSessions } from './fetch-sessions.ts'
export type { IsrAnswer } from './in-sync-replicas.ts'
export type { AskForIsrs, IsrChangeRequest } from './isr-changes.ts'
export { Partition } from './partition.ts'
export {
  type LeadershipListener,
  type ReplicaLogs,
  ReplicaManager,
  type ReplicaManagerOptions,
} from './replica-manager.ts'
export { type QuotaWindows, ReplicationQuota, ReplicationQuotas } from './replication-quota.ts'
export type {
  ActiveProducersOutcome,
  AppendOutcome,
  AppendRequest,
  DeleteRecordsOutcome,
  DeleteRecordsRequest,
  EndOffsetOutcome,
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
} from './service.ts'
