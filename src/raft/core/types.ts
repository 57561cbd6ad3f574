import type { Brand, Uuid } from '../../base/index.ts'

/** Numbers the reigns: at most one leader in each. 0 before the first election; only grows. */
export type Term = Brand<number, 'Term'>
/** An entry's place in the Raft log. The first is 1; 0 is "before the first". A safe integer. */
export type LogIndex = Brand<number, 'LogIndex'>
/** `node.id` of a member of the quorum, 0 to 2^31-1. */
export type NodeId = Brand<number, 'NodeId'>

/**
 * 'noop' opens a leader's term and carries nothing; 'data' belongs to the state machine above; 'config' is a `Membership`
 * (`core/membership.ts` has its bytes), which every log follows from the moment it is appended. More kinds may follow.
 */
export type EntryType = 'noop' | 'data' | 'config'

/** (index, term) names an entry: two logs that agree on it agree on all before it (Raft §5.3). Never changed once made. */
export interface Entry {
  readonly index: LogIndex
  readonly term: Term
  readonly type: EntryType
  /** Opaque to Raft. Whoever proposes it must not change it afterwards. */
  readonly data: Uint8Array
}

/** What a proposer gives: the leader adds index and term. */
export interface Proposal {
  readonly type: 'noop' | 'data'
  readonly data: Uint8Array
}

/** A member that counts. Who has the id and another directory id is somebody else: it follows, and its votes are not counted. */
export interface Voter {
  readonly id: NodeId
  /** Names the disk, so that a wiped one is not taken for the voter it was (KIP-853). */
  readonly directoryId: Uuid
  /** `host:port` where the others reach it; left out where that is known by other means. Not part of the identity. */
  readonly endpoint?: string
}

/**
 * Who votes. Given at bootstrap, then changed by one voter at a time by 'config' entries; travels with snapshots because the
 * entries that made it may be gone. Without voters: of a node that was formatted to follow, and learns it from the log.
 */
export interface Membership {
  readonly voters: readonly Voter[]
}

/** The state machine's state after `index`; replaces the entries up to there. Index 0, with no data, is the bootstrap. */
export interface Snapshot {
  /** Last entry that is in it, inclusive. */
  readonly index: LogIndex
  readonly term: Term
  readonly membership: Membership
  readonly data: Uint8Array
}

/** All of a snapshot but its data. Two with the same header are the same bytes. */
export interface SnapshotHeader {
  readonly index: LogIndex
  readonly term: Term
  readonly membership: Membership
  readonly totalBytes: number
  /** CRC-32 of the whole data. */
  readonly dataCrc: number
}

/** A piece of the leader's snapshot, in order; the last one ends at `totalBytes`. */
export interface SnapshotChunk {
  readonly header: SnapshotHeader
  /** Place of `data` in the whole, in bytes. 0: what was kept of another snapshot is void. */
  readonly offset: number
  readonly data: Uint8Array
}

/** The leader's snapshot as far as it has come: what a node that starts may go on from. */
export interface PartialSnapshot {
  readonly header: SnapshotHeader
  /** Bytes that are there, from the start on. */
  readonly nextOffset: number
}

/** What must survive a crash besides the log. Term and vote are durable before anything that follows from them is sent. */
export interface HardState {
  readonly term: Term
  readonly votedFor: NodeId | null
  /** Of `votedFor`: an id that comes back with another disk is another candidate. Null: not known, or no vote. */
  readonly votedDirectoryId: Uuid | null
  /** Last entry known to be committed, inclusive. A lower bound: it may be written late, or lost, and is learned again. */
  readonly commitIndex: LogIndex
}

export type Role = 'follower' | 'preCandidate' | 'candidate' | 'leader'

/** What others may want to know at once and nobody needs after a crash. */
export interface SoftState {
  readonly role: Role
  readonly leaderId: NodeId | null
}

interface Envelope {
  readonly from: NodeId
  /** The sender's disk: what it says counts for the voter only if the voter has this one. */
  readonly fromDirectoryId: Uuid
  readonly to: NodeId
  /** The sender's term; in a preVote the term it would campaign in, and in a granted preVoteAnswer that term again. */
  readonly term: Term
}

/** Plain data, fit for any encoding. Fields are only ever added, each with a meaning for "absent". */
export type Message =
  | VoteMessage
  | (Envelope & { readonly type: 'preVoteAnswer' | 'voteAnswer'; readonly granted: boolean })
  | AppendMessage
  | AppendAnswerMessage
  | (Envelope & {
      readonly type: 'heartbeat'
      /** An entry that is committed and that the leader believes the receiver has; the term proves it (0, 0: none). */
      readonly commitIndex: LogIndex
      readonly commitTerm: Term
      /** Numbers the rounds that confirm reads; the answer repeats it. 0: none was ever begun. */
      readonly readRound: number
    })
  | (Envelope & { readonly type: 'heartbeatAnswer'; readonly readRound: number })
  | SnapshotChunkMessage
  | SnapshotChunkAnswerMessage
  /** The leader hands over to who has its whole log: campaign at once, without asking whether it may. */
  | (Envelope & { readonly type: 'timeoutNow'; readonly lastIndex: LogIndex; readonly lastTerm: Term })
  /** From one that has no leader and no vote, to all it knows: whoever leads, send me the log. Its term doesn't matter. */
  | (Envelope & { readonly type: 'follow'; readonly lastIndex: LogIndex })
  /** To one who looked for the leader, or for votes that it has no right to: ask this one. The term doesn't matter. */
  | (Envelope & { readonly type: 'leaderHint'; readonly leader: Voter })

export type VoteMessage = Envelope & {
  readonly type: 'preVote' | 'vote'
  readonly lastIndex: LogIndex
  readonly lastTerm: Term
  /** The leader itself asked for this election: being loyal to it is no reason to refuse. Never in a preVote. */
  readonly isTransfer: boolean
}

export type AppendMessage = Envelope & {
  readonly type: 'append'
  /** The entry before `entries`: the receiver takes them only if it has this one. */
  readonly prevIndex: LogIndex
  readonly prevTerm: Term
  readonly entries: readonly Entry[]
  readonly commitIndex: LogIndex
}

export type AppendAnswerMessage = Envelope & {
  readonly type: 'appendAnswer'
  /** Accepted: the receiver's log equals the sender's up to here, durably. Rejected: the `prevIndex` it did not have. */
  readonly index: LogIndex
  /** Where to try next: the logs may agree at `hintIndex`, where the receiver has `hintTerm` (0: it can't tell). */
  readonly rejection: { readonly hintIndex: LogIndex; readonly hintTerm: Term } | null
}

/** One at a time to one receiver. At most `maxSnapshotChunkBytes` of data. */
export type SnapshotChunkMessage = Envelope & {
  readonly type: 'snapshotChunk'
  readonly header: SnapshotHeader
  readonly offset: number
  readonly data: Uint8Array
  /** CRC-32 of `data`. */
  readonly crc: number
}

/** Not for the last chunk: when all is there and durable, an `appendAnswer` says so. */
export type SnapshotChunkAnswerMessage = Envelope & {
  readonly type: 'snapshotChunkAnswer'
  /** Of the snapshot that the chunk was of. */
  readonly index: LogIndex
  /** Where the receiver wants to go on: it has all before. */
  readonly nextOffset: number
}

/** A read that a majority confirmed: what is committed up to `index`, inclusive, must be applied before it is answered. */
export interface ConfirmedRead {
  readonly id: number
  readonly index: LogIndex
}

/**
 * What the host must do, in this order: make `snapshot`, then `entriesToPersist`, then `hardState` durable in one step
 * (synced when `mustSync`); then keep `snapshotChunks` apart from the log (no sync needed); send `messages`; hand `snapshot`, then
 * `committedEntries` to the state machine; call `advance`. When a chunk was the last of its snapshot it then puts the
 * whole together and gives it back by `snapshotAssembled`.
 */
export interface Ready {
  readonly messages: readonly Message[]
  /**
   * The messages claim nothing of what is to be persisted, and may leave before it is: those of a leader, whose copy counts only
   * with `advance`. Its write then runs beside those of its followers (thesis §10.2.1).
   */
  readonly sendsFirst: boolean
  /** Follow on the log, or replace it from the first one's index on. */
  readonly entriesToPersist: readonly Entry[]
  /** Undefined when unchanged. */
  readonly hardState: HardState | undefined
  /** Came from the leader: replaces the whole log. Its chunks were kept before. */
  readonly snapshot: Snapshot | undefined
  /** In order; of another snapshot than `snapshot`, whose chunks they may replace. */
  readonly snapshotChunks: readonly SnapshotChunk[]
  readonly committedEntries: readonly Entry[]
  /** Undefined when unchanged. */
  readonly softState: SoftState | undefined
  /** Who votes from now on, committed or not; undefined when unchanged. */
  readonly membership: Membership | undefined
  readonly reads: readonly ConfirmedRead[]
  /** False when only the commit index moved: losing that costs nothing. */
  readonly mustSync: boolean
}

/** The durable log as the core reads it: synchronous, from memory. Changes only between `ready` and `advance`, or by compaction. */
export interface LogView {
  readonly snapshot: Snapshot
  /** First entry kept; at most `snapshot.index + 1`, and `lastIndex + 1` when none is. */
  readonly firstIndex: LogIndex
  /** Last entry, inclusive; `snapshot.index` or more. */
  readonly lastIndex: LogIndex
  /** Known from `firstIndex - 1` on: one before the first, to check what follows it. */
  term(index: LogIndex): Term | 'compacted' | 'missing'
  /** `firstIndex <= index <= lastIndex`. */
  entry(index: LogIndex): Entry
}

export interface RaftConfig {
  /** Ticks without a word from the leader before a follower campaigns: random in [electionTicks, 2 x electionTicks). */
  readonly electionTicks: number
  /** Ticks that a candidate waits for votes before it campaigns anew: random in [campaignTicks, 2 x campaignTicks). */
  readonly campaignTicks: number
  readonly heartbeatTicks: number
  /** Entry payload in one append message; a single larger entry still goes, alone. */
  readonly maxBytesPerMessage: number
  /** Append messages sent to one follower and not answered yet. */
  readonly maxInflightCount: number
  readonly maxInflightBytes: number
  /** Payload proposed and not committed yet; beyond it proposals are refused. One proposal always fits. */
  readonly maxUncommittedBytes: number
  /** Payload handed to the state machine in one `Ready`; at least one entry. */
  readonly maxCommittedBytesPerReady: number
  /** Data in one chunk of a snapshot. */
  readonly maxSnapshotChunkBytes: number
  /** Ticks after which an unanswered chunk is sent again. */
  readonly snapshotRetryTicks: number
  /** Reads that wait for their confirmation; beyond it they are refused. */
  readonly maxPendingReads: number
  /** Nodes without a vote that a leader sends its log to; who comes later isn't heard. */
  readonly maxObservers: number
  /** Ticks for which hints that the leader crashed are not believed, after one of them was wrong. */
  readonly falseHintTicks: number
}

/** For ticks of 50 ms: election after 1 to 2 s, heartbeat each 100 ms. */
export const defaultRaftConfig: RaftConfig = {
  electionTicks: 20,
  campaignTicks: 20,
  heartbeatTicks: 2,
  maxBytesPerMessage: 1 << 20,
  maxInflightCount: 64,
  maxInflightBytes: 16 << 20,
  maxUncommittedBytes: 64 << 20,
  maxCommittedBytesPerReady: 4 << 20,
  maxSnapshotChunkBytes: 256 << 10,
  snapshotRetryTicks: 40,
  maxPendingReads: 10_000,
  maxObservers: 1000,
  falseHintTicks: 1200,
}
