/**
 * group: consumer groups in the classic protocol, and the offsets that groups commit.
 *
 * `GroupCoordinator` is what `api/` calls, with the requests and answers of `types.ts`; `partitionFor` says which partition of
 * `__consumer_offsets` holds a group. Behind it each partition is a pure `GroupMachine`: `ClassicGroups` has the rules of
 * membership, `OffsetRules` those of offsets, `ClassicGroup` is one group's state and lists the states.
 *
 * What holds:
 * - The rules read no clock, draw no randomness, set no timer and know no promise: they return an `Effects` that
 *   `coordinator-runtime/` carries out. A request that waits is a ticket in the group.
 * - A generation is stored when its leader has assigned, before any member sees its assignment. What came before it (joins,
 *   who waits for what) is in memory only: after a move of the coordinator, members of a Stable group go on with a
 *   fresh session, and others find out by their next request that they must join again.
 * - A generation's number never goes back while the coordinator lives; after a move it is the last stored one.
 * - Of any two runs of one static member at most one is in the group; the other is fenced.
 * - Each rebalance is two lines of the log: why it began, on whose account, and which generation it ended in.
 * - No cost of a request depends on the number of groups; a heartbeat is a look-up and a number.
 *
 * In `__consumer_offsets` are Kafka's records, so that its tools read them and its directories can be taken over:
 *
 *     group    GroupMetadataKey -> GroupMetadataValue version 3, or a tombstone
 *     offset   OffsetCommitKey  -> OffsetCommitValue version 4 (1 where the commit had its own retention), or a tombstone
 *
 * Where it differs from Kafka: a group gets its first record with its first assignment, not at its creation; static members that
 * are away are dropped when their session ends, never for not having synced; of protocols with as many votes the leader's
 * favourite wins; requests that a newer one of the same member replaces are answered.
 *
 * Sources: Kafka's protocol guide, KIP-62, KIP-134, KIP-345, KIP-394, KIP-429, KIP-814, KIP-211.
 */
export type { GroupConfig } from './config.ts'
export { GroupCoordinator, type GroupCoordinatorOptions, groupTopic } from './group-coordinator.ts'
export type { DeletedTopic } from './offset-rules.ts'
export { partitionFor } from './partition-for.ts'
export { type GroupRecord, groupRecordCodec } from './records.ts'
export type {
  CoordinatorRefusal,
  DeleteGroupResponse,
  DescribedMember,
  DescribeGroupResponse,
  FetchedOffset,
  GroupProtocol,
  GroupState,
  HeartbeatRequest,
  HeartbeatResponse,
  JoinedMember,
  JoinGroupRequest,
  JoinGroupResponse,
  JoinRefusal,
  LeaveGroupRequest,
  LeaveGroupResponse,
  ListedGroup,
  ListGroupsRequest,
  ListGroupsResponse,
  MemberIdentity,
  MemberRefusal,
  OffsetCommitRequest,
  OffsetCommitResponse,
  OffsetDeleteRequest,
  OffsetDeleteResponse,
  OffsetFetchRequest,
  OffsetFetchResponse,
  SyncGroupRequest,
  SyncGroupResponse,
} from './types.ts'
