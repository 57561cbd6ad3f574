import type { Brand, Uuid } from '../../base/index.ts'

/** Numbers the reigns: at most one leader in each. 0 before the first election; only grows. */
export type Term = Brand<number, 'Term'>
/** An entry's place in the Raft log. The first is 1; 0 is "before the first". A safe integer. */
export type LogIndex = Brand<number, 'LogIndex'>
/** `node.id` of a member of the quorum, 0 to 2^31-1. */
export type NodeId = Brand<number, 'NodeId'>

/** 'noop' opens a leader's term and carries nothing; 'data' belongs to the state machine above. More kinds may follow. */
export type EntryType = 'noop' | 'data'

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
  readonly type: EntryType
  readonly data: Uint8Array
}

export interface Voter {
  readonly id: NodeId
  /** Names the disk, so that a wiped one is not taken for the voter it was (KIP-853). */
  readonly directoryId: Uuid
}

/** Who votes. Fixed at bootstrap; travels with snapshots because the entries that made it may be gone. */
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

/** What must survive a crash besides the log. `term` and `votedFor` are durable before anything that follows from them is sent. */
export interface HardState {
  readonly term: Term
  readonly votedFor: NodeId | null
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
  readonly to: NodeId
  /** The sender's term; in a preVote the term it would campaign in, and in a granted preVoteAnswer that term again. */
  readonly term: Term
}

/** Plain data, fit for any encoding. Fields are only ever added, each with a meaning for "absent". */
export type Message =
  | (Envelope & {
      readonly type: 'preVote' | 'vote'
      readonly lastIndex: LogIndex
      readonly lastTerm: Term
    })
  | (Envelope & { readonly type: 'preVoteAnswer' | 'voteAnswer'; readonly granted: boolean })
  | AppendMessage
  | AppendAnswerMessage
  | (Envelope & {
      readonly type: 'heartbeat'
      /** An entry that is committed and that the leader believes the receiver has; the term proves it (0, 0: none). */
      readonly commitIndex: LogIndex
      readonly commitTerm: Term
    })
  | (Envelope & { readonly type: 'heartbeatAnswer' })
  | (Envelope & { readonly type: 'snapshot'; readonly snapshot: Snapshot })

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

/**
 * What the host must do, in this order: make `snapshot`, then `entriesToPersist`, then `hardState` durable in one step
 * (synced when `mustSync`); send `messages`; hand `snapshot`, then `committedEntries` to the state machine;
 * call `advance`.
 */
export interface Ready {
  readonly messages: readonly Message[]
  /** Follow on the log, or replace it from the first one's index on. */
  readonly entriesToPersist: readonly Entry[]
  /** Undefined when unchanged. */
  readonly hardState: HardState | undefined
  /** Came from the leader: replaces the whole log. */
  readonly snapshot: Snapshot | undefined
  readonly committedEntries: readonly Entry[]
  /** Undefined when unchanged. */
  readonly softState: SoftState | undefined
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
  /** Ticks after which an unanswered snapshot is taken for lost. */
  readonly snapshotRetryTicks: number
}

/** For ticks of 50 ms: election after 1 to 2 s, heartbeat each 100 ms. */
export const defaultRaftConfig: RaftConfig = {
  electionTicks: 20,
  heartbeatTicks: 2,
  maxBytesPerMessage: 1 << 20,
  maxInflightCount: 64,
  maxInflightBytes: 16 << 20,
  maxUncommittedBytes: 64 << 20,
  maxCommittedBytesPerReady: 4 << 20,
  snapshotRetryTicks: 600,
}
