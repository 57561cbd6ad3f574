/**
 * raft: a log that a quorum of nodes agrees on, and one member of that quorum. It knows nothing of metadata: entries are bytes.
 *
 * Read in this order: `core/types.ts` (entries, messages, `Ready`), `core/raft.ts` (`RaftCore`, the algorithm, pure),
 * `storage/raft-storage.ts` (`RaftStorage`), `raft-node.ts` (`RaftNode`, the loop that joins them). A node alone is a
 * quorum of one through the same code; it has no transport and leads one synced write after its start.
 *
 * Invariants:
 *  - What a message claims is durable before it is sent, and a node's own vote or copy counts only then: a vote or an
 *    acknowledgement that a crash takes back elects two leaders or loses a committed entry.
 *  - Indexes in order: applied <= handed out <= commit <= last. What is committed is never replaced (asserted).
 *  - Committed by counting are only entries of the leader's own term; its first entry, a 'noop', brings the earlier ones along.
 *  - One write at a time; the first that fails stops the node. Damage on disk is refused at start, never cut off.
 *  - Time is ticks: nothing here is correct only if clocks are. A stall counts as one tick, after what came in was read.
 *
 * On disk, in one ordered key-value store (Level) and one file; all values with a CRC and a version (`storage/encoding.ts`):
 *
 *     f                 format version
 *     h                 term, vote, commit index
 *     l<index>          entry, with the CRC of the entry before it
 *     m, s<index><n>    snapshot: manifest (membership inside) and chunks
 *     quorum-state      term, vote, last durable entry: what the store must have, or the node doesn't start
 *
 * Files:
 *
 *     core/raft.ts         the algorithm           storage/raft-storage.ts   what is durable, one write at a time
 *     core/log.ts          durable and unstable    storage/load.ts           every check at start
 *     core/memory-log.ts   the durable log's image storage/encoding.ts       keys and values, golden bytes in the tests
 *     core/progress.ts     flow control            storage/quorum-state.ts   the independent witness
 *     core/quorum.ts       majorities              storage/*-store.ts        Level (loaded when needed), memory
 *     raft-node.ts         the loop                transport.ts              the port to the peers
 *
 * All runs on the event loop. Not built yet: change of membership, leadership transfer, read index, learners.
 * Sources: Ongaro's thesis (pre-vote §9.6, check quorum §6.2), "Raft" §5 for the section numbers in comments, etcd's raft for the
 * shape of `Ready` and of the followers' progress.
 */
export { RaftLog } from './core/log.ts'
export { MemoryLog } from './core/memory-log.ts'
export { type ProposeOutcome, RaftCore, type RaftCoreOptions } from './core/raft.ts'
export {
  defaultRaftConfig,
  type Entry,
  type EntryType,
  type HardState,
  type LogIndex,
  type LogView,
  type Membership,
  type Message,
  type NodeId,
  type Proposal,
  type RaftConfig,
  type Ready,
  type Role,
  type Snapshot,
  type SoftState,
  type Term,
  type Voter,
} from './core/types.ts'
export {
  type Leadership,
  type ProposeNowResult,
  type ProposeRefusal,
  type ProposeResult,
  type RaftLogger,
  RaftNode,
  type RaftNodeOptions,
  type RaftState,
} from './raft-node.ts'
export { RaftStorageError } from './storage/errors.ts'
export type { KeyValueOperation, KeyValueStore } from './storage/key-value-store.ts'
export { MemoryStore } from './storage/memory-store.ts'
export { openDurableStorage, openMemoryStorage } from './storage/open.ts'
export { type QuorumState, type QuorumStateStore, quorumStateFile } from './storage/quorum-state.ts'
export { RaftStorage, type RaftStorageOptions } from './storage/raft-storage.ts'
export type { RaftReceiver, RaftTransport } from './transport.ts'
