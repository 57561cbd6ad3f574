/**
 * raft: a log that a quorum of nodes agrees on, and one member of that quorum. It knows nothing of metadata: entries are bytes.
 *
 * Read in this order: `core/types.ts` (entries, messages, `Ready`), `core/raft.ts` (`RaftCore`, the algorithm, pure),
 * `storage/raft-storage.ts` (`RaftStorage`), `raft-node.ts` (`RaftNode`, the loop that joins them). A node alone is a
 * quorum of one through the same code; it has no transport and leads one synced write after its start.
 *
 * Members are voters, named by node id and directory id together, and observers: whoever else asks for the log, brokers without a
 * vote, voters to be, and voters whose disk was wiped. A quorum begins with the voters that its first members were all
 * formatted with, and changes by one voter at a time, as entries of the log.
 *
 * Invariants:
 *  - What a message claims is durable before it is sent, and a node's own vote or copy counts only then: a vote or an
 *    acknowledgement that a crash takes back elects two leaders or loses a committed entry. A leader's appends claim nothing of
 *    its own disk, and leave while it writes.
 *  - Indexes in order: applied <= handed out <= commit <= last. What is committed is never replaced (asserted).
 *  - Committed by counting are only entries of the leader's own term; its first entry, a 'noop', brings the earlier ones along.
 *  - One write at a time; the first that fails stops the node, but for one that finds no room on the disk of a node that leads alone:
 *    that one waits. Damage on disk is refused at start, never cut off.
 *  - Who votes is what the last 'config' entry in the log says, committed or not. A new one is appended only when the one before
 *    is committed, and so is an entry of the leader's own term: otherwise two majorities might not meet.
 *  - A vote, a copy and a confirmed read count by id and directory id: a wiped disk has forgotten what its node promised.
 *  - Time is ticks: nothing here is correct only if clocks are. A stall counts as one tick, after what came in was read.
 *
 * On disk, in one ordered key-value store (Level) and one file; all values with a CRC and a version (`storage/encoding.ts`):
 *
 *     f                 format version
 *     h                 term, vote (with the disk of who got it), commit index
 *     l<index>          entry, with the CRC of the entry before it
 *     m, s<index><n>    snapshot: manifest (membership inside) and chunks
 *     p                 header of a snapshot that is coming; its chunks lie beside the others until it is whole
 *     quorum-state      term, vote, last durable entry: what the store must have, or the node doesn't start
 *
 * Files:
 *
 *     core/raft.ts         the algorithm           storage/raft-storage.ts   what is durable, one write at a time
 *     core/log.ts          durable and unstable    storage/load.ts           every check at start
 *     core/memory-log.ts   the durable log's image storage/encoding.ts       keys and values, golden bytes in the tests
 *     core/progress.ts     flow control            storage/quorum-state.ts   the independent witness
 *     core/quorum.ts       majorities              storage/*-store.ts        Level (loaded when needed), memory
 *     core/membership.ts   who votes               storage/open.ts           on disk, in memory, is there anything
 *     core/read-queue.ts   reads to be confirmed   raft-node.ts              the loop
 *     core/snapshot-receiver.ts  chunks come in    voter-change.ts           a voter is added or removed
 *     storage/full-disk.ts waits for room           transport.ts              the port to the peers
 *
 * All runs on the event loop. Sources: Ongaro's thesis (membership §4, its correction on raft-dev of 2015, transfer §3.10,
 * pre-vote §9.6, check quorum §6.2, reads §6.4), KIP-853 for directory ids, "Raft" §5 for the section numbers in comments, etcd's
 * raft for the shape of `Ready`, of the followers' progress and for forgetting a leader.
 */
export { RaftLog } from './core/log.ts'
export { decodeMembership, encodeMembership } from './core/membership.ts'
export { MemoryLog } from './core/memory-log.ts'
export { RaftCore, type RaftCoreOptions } from './core/raft.ts'
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
  type PartialSnapshot,
  type Proposal,
  type RaftConfig,
  type Ready,
  type Role,
  type Snapshot,
  type SnapshotChunk,
  type SnapshotHeader,
  type SoftState,
  type Term,
  type Voter,
} from './core/types.ts'
export {
  type Leadership,
  type MemberState,
  type ProposeNowResult,
  type ProposeRefusal,
  type ProposeResult,
  type QuorumDescription,
  type RaftLogger,
  RaftNode,
  type RaftNodeOptions,
  type RaftState,
  type ReadResult,
  type TransferResult,
} from './raft-node.ts'
export { RaftStorageError } from './storage/errors.ts'
export type { KeyValueOperation, KeyValueStore } from './storage/key-value-store.ts'
export { MemoryStore } from './storage/memory-store.ts'
export { isDurableStorageEmpty, openDurableStorage, openMemoryStorage } from './storage/open.ts'
export { type QuorumState, type QuorumStateStore, quorumStateFile } from './storage/quorum-state.ts'
export { RaftStorage, type RaftStorageOptions } from './storage/raft-storage.ts'
export type { RaftReceiver, RaftTransport } from './transport.ts'
export type { MembershipResult } from './voter-change.ts'
