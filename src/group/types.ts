import type { Uuid } from '../base/index.ts'

/**
 * Requests and answers of the group coordinator: Kafka's fields without its versions. Facts that depend on a request's
 * version are flags. Byte strings of a request are copied before they are kept; those of an answer must not be changed.
 */

export type GroupState = 'Empty' | 'PreparingRebalance' | 'CompletingRebalance' | 'Stable' | 'Dead'

/** Why the coordinator of the group cannot be asked here and now. Worth a retry. */
export type CoordinatorRefusal = 'not-coordinator' | 'coordinator-load-in-progress' | 'coordinator-not-available'

/** What a member did wrong, or what it must do next. */
export type MemberRefusal =
  | 'unknown-member-id'
  | 'illegal-generation'
  | 'rebalance-in-progress'
  | 'inconsistent-group-protocol'
  | 'fenced-instance-id'

interface Refused<Reason extends string> {
  readonly ok: false
  readonly reason: Reason
}

export interface JoinGroupRequest {
  readonly groupId: string
  /** '' on the first join. */
  readonly memberId: string
  readonly groupInstanceId: string | null
  /** What is past a thousand characters is cut. */
  readonly clientId: string
  /** As Kafka shows it: `/127.0.0.1`. */
  readonly clientHost: string
  readonly sessionTimeoutMs: number
  /** Below 0 (version 0 has none): the session timeout. */
  readonly rebalanceTimeoutMs: number
  readonly protocolType: string
  /** Most wanted first. Of two with one name the first counts. */
  readonly protocols: readonly GroupProtocol[]
  /** Version 4 on: a dynamic member without an id is given one and told to join again with it. */
  readonly requireKnownMemberId: boolean
  /** Version 9 on: a static leader that comes back may be told to leave the assignment as it is. */
  readonly supportsSkippingAssignment: boolean
  /** Version 8 on: why it joins, in the client's words, for the log. */
  readonly reason?: string | null
}

export interface GroupProtocol {
  readonly name: string
  readonly metadata: Buffer
}

export type JoinGroupResponse =
  | {
      readonly ok: true
      readonly memberId: string
      readonly generationId: number
      readonly protocolType: string
      readonly protocolName: string
      readonly leader: string
      readonly skipAssignment: boolean
      /** Empty but for the leader. */
      readonly members: readonly JoinedMember[]
    }
  | (Refused<JoinRefusal> & {
      /** To be sent back: the new id with 'member-id-required', '' where the old one is no longer good. */
      readonly memberId: string
    })

export type JoinRefusal =
  | CoordinatorRefusal
  | MemberRefusal
  | 'invalid-group-id'
  | 'invalid-session-timeout'
  | 'member-id-required'
  | 'group-max-size-reached'
  | 'unknown-server-error'

export interface JoinedMember {
  readonly memberId: string
  readonly groupInstanceId: string | null
  /** What it sent for the protocol that was chosen. */
  readonly metadata: Buffer
}

export interface MemberIdentity {
  readonly memberId: string
  readonly groupInstanceId: string | null
}

export interface SyncGroupRequest extends MemberIdentity {
  readonly groupId: string
  readonly generationId: number
  /** Null (before version 5): not checked. */
  readonly protocolType: string | null
  readonly protocolName: string | null
  /** From the leader: one for each member. */
  readonly assignments: readonly { readonly memberId: string; readonly assignment: Buffer }[]
}

export type SyncGroupResponse =
  | {
      readonly ok: true
      readonly protocolType: string
      readonly protocolName: string
      /** Empty for a member that the leader left out. */
      readonly assignment: Buffer
    }
  | Refused<CoordinatorRefusal | MemberRefusal | 'invalid-group-id' | 'unknown-server-error'>

export interface HeartbeatRequest extends MemberIdentity {
  readonly groupId: string
  readonly generationId: number
}

export type HeartbeatResponse = { readonly ok: true } | Refused<CoordinatorRefusal | MemberRefusal | 'invalid-group-id'>

export interface LeaveGroupRequest {
  readonly groupId: string
  /** A static member may be named by its instance id alone, with an empty member id. */
  readonly members: readonly (MemberIdentity & {
    /** Version 5 on: why it leaves, in the client's words, for the log. */
    readonly reason?: string | null
  })[]
}

export type LeaveGroupResponse =
  | {
      readonly ok: true
      /** In the order asked; `reason` null for a member that left. Before version 3 the only one's reason is the answer's. */
      readonly members: readonly (MemberIdentity & {
        readonly reason: 'unknown-member-id' | 'fenced-instance-id' | null
      })[]
    }
  | Refused<CoordinatorRefusal | 'invalid-group-id'>

export interface OffsetCommitRequest extends MemberIdentity {
  readonly groupId: string
  /** Below 0: not as a member. */
  readonly generationId: number
  /** How long to keep the offsets, in milliseconds (versions 2 to 4); below 0: as long as the broker keeps offsets. */
  readonly retentionTimeMs: number
  /** Version 9 on: an unknown group is 'group-id-not-found', before it is 'illegal-generation'. */
  readonly reportsUnknownGroup: boolean
  /** Partitions that exist: who asks has looked them up. */
  readonly topics: readonly {
    readonly topic: string
    /** `zeroUuid` when not known. */
    readonly topicId: Uuid
    readonly partitions: readonly {
      readonly partition: number
      readonly offset: number
      /** -1: none. */
      readonly leaderEpoch: number
      /** Null is kept as ''. */
      readonly metadata: string | null
    }[]
  }[]
}

export type OffsetCommitResponse =
  | {
      readonly ok: true
      /** In the order asked; `reason` null for what was committed. */
      readonly topics: readonly {
        readonly topic: string
        readonly partitions: readonly {
          readonly partition: number
          readonly reason: 'offset-metadata-too-large' | 'offset-out-of-range' | null
        }[]
      }[]
    }
  | Refused<CoordinatorRefusal | MemberRefusal | 'invalid-group-id' | 'group-id-not-found' | 'unknown-server-error'>

export interface OffsetFetchRequest {
  readonly groupId: string
  /** Null: all that the group committed. */
  readonly topics: readonly { readonly topic: string; readonly partitions: readonly number[] }[] | null
}

export type OffsetFetchResponse =
  | {
      readonly ok: true
      readonly groupId: string
      readonly topics: readonly { readonly topic: string; readonly partitions: readonly FetchedOffset[] }[]
    }
  | (Refused<CoordinatorRefusal> & { readonly groupId: string })

export interface FetchedOffset {
  readonly partition: number
  /** -1, with epoch -1 and metadata '': nothing was committed. */
  readonly offset: number
  readonly leaderEpoch: number
  readonly metadata: string
}

export type DescribeGroupResponse =
  | {
      readonly ok: true
      readonly groupId: string
      readonly state: Exclude<GroupState, 'Dead'>
      /** '' for a group that only commits offsets. */
      readonly protocolType: string
      /** The protocol in use; '' when the group is not Stable, as are all the members' bytes. */
      readonly protocolName: string
      readonly members: readonly DescribedMember[]
    }
  | (Refused<CoordinatorRefusal | 'group-id-not-found'> & { readonly groupId: string })

export interface DescribedMember extends MemberIdentity {
  readonly clientId: string
  readonly clientHost: string
  readonly metadata: Buffer
  readonly assignment: Buffer
}

export interface ListGroupsRequest {
  /** In any case of letters; empty: all states. */
  readonly states: readonly string[]
  /** In any case of letters; empty: all types. */
  readonly types: readonly string[]
}

export type ListGroupsResponse =
  | { readonly ok: true; readonly groups: readonly ListedGroup[] }
  | Refused<'coordinator-load-in-progress' | 'coordinator-not-available'>

export interface ListedGroup {
  readonly groupId: string
  readonly protocolType: string
  readonly state: GroupState
  readonly type: 'classic'
}

export interface DeleteGroupResponse {
  readonly groupId: string
  /** Null: deleted. */
  readonly reason: CoordinatorRefusal | 'group-id-not-found' | 'non-empty-group' | 'unknown-server-error' | null
}

export interface OffsetDeleteRequest {
  readonly groupId: string
  readonly topics: readonly { readonly topic: string; readonly partitions: readonly number[] }[]
}

export type OffsetDeleteResponse =
  | {
      readonly ok: true
      /** In the order asked; `reason` null where nothing is committed any more. */
      readonly topics: readonly {
        readonly topic: string
        readonly partitions: readonly {
          readonly partition: number
          readonly reason: 'group-subscribed-to-topic' | null
        }[]
      }[]
    }
  | Refused<CoordinatorRefusal | 'group-id-not-found' | 'non-empty-group' | 'unknown-server-error'>
