import type { BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, ProducerId, Uuid } from '../base/index.ts'
import type { Endpoint, LeaderRecoveryState, SupportedFeature } from '../metadata/index.ts'

export interface CreateTopicRequest {
  readonly name: string
  /** 1 or more, or -1 for `num.partitions`. */
  readonly partitionCount: number
  /** 1 or more, or -1 for `default.replication.factor`. */
  readonly replicationFactor: number
  /** Replicas by partition index, instead of the two counts, which are then -1. */
  readonly assignments?: ReadonlyMap<number, readonly BrokerId[]>
  readonly configs: ReadonlyMap<string, string | null>
}

export type CreateTopicRefusal =
  | 'topic-exists'
  | 'invalid-topic'
  | 'invalid-partitions'
  | 'invalid-replication-factor'
  | 'invalid-replica-assignment'
  | 'invalid-config'
  | 'invalid-request'
  /** The request as a whole asks for more than one entry of the metadata log may hold. */
  | 'policy-violation'

export type CreateTopicResult =
  | {
      readonly ok: true
      readonly name: string
      readonly topicId: Uuid
      readonly partitionCount: number
      readonly replicationFactor: number
    }
  | { readonly ok: false; readonly name: string; readonly reason: CreateTopicRefusal; readonly message: string }

export interface CreatePartitionsRequest {
  readonly name: string
  /** How many partitions the topic has afterwards. */
  readonly totalCount: number
  /** Replicas of each new partition, in the order of their indexes; the controller places them when left out. */
  readonly assignments?: readonly (readonly BrokerId[])[]
}

export type CreatePartitionsResult =
  | { readonly ok: true; readonly name: string }
  | {
      readonly ok: false
      readonly name: string
      readonly reason:
        | 'unknown-topic'
        | 'invalid-partitions'
        | 'invalid-replica-assignment'
        | 'invalid-replication-factor'
        | 'invalid-request'
        | 'policy-violation'
      readonly message: string
    }

/** By name or by id. */
export type DeleteTopicRequest = { readonly name: string } | { readonly topicId: Uuid }

export type DeleteTopicResult =
  | { readonly ok: true; readonly name: string; readonly topicId: Uuid }
  | {
      readonly ok: false
      readonly reason: 'unknown-topic' | 'unknown-topic-id' | 'topic-deletion-disabled' | 'invalid-request'
      readonly message: string
    }

export interface AlterConfigRequest {
  readonly resourceType: 'topic' | 'broker'
  readonly resourceName: string
  /** By key. */
  readonly changes: ReadonlyMap<string, ConfigChange>
  /** True: keys that are set and not among the changes are removed. */
  readonly replaces?: boolean
}

/** Sets a key, removes it (null), or adds elements to a LIST or takes some out: texts with commas between the elements. */
export type ConfigChange = string | null | { readonly append: string } | { readonly subtract: string }

export type AlterConfigResult =
  | { readonly ok: true }
  | {
      readonly ok: false
      readonly reason: 'unknown-topic' | 'invalid-topic' | 'invalid-config' | 'invalid-request'
      readonly message: string
    }

export interface BrokerRegistration {
  readonly brokerId: BrokerId
  /** Random, new for each run of the process. */
  readonly incarnationId: Uuid
  /** Of its meta.properties. */
  readonly clusterId: string
  readonly endpoints: readonly Endpoint[]
  readonly rack: string | null
  /** Those of its log directories that work. */
  readonly logDirs: readonly Uuid[]
  readonly features: readonly SupportedFeature[]
  /**
   * The broker epoch of the run before, if that one left everything it acknowledged in its logs: it was stopped in order,
   * or synced whatever it acknowledged. Null when that isn't known. KIP-966.
   */
  readonly previousBrokerEpoch: BrokerEpoch | null
}

export type RegisterBrokerRefusal =
  /** Another run of the same broker is alive. */
  | 'duplicate-registration'
  | 'inconsistent-cluster-id'
  /** The cluster uses a feature at a level that the broker doesn't support. */
  | 'unsupported-version'
  | 'invalid-registration'

export type RegisterBrokerResult =
  | { readonly ok: true; readonly brokerEpoch: BrokerEpoch }
  | { readonly ok: false; readonly reason: RegisterBrokerRefusal; readonly message: string }

/** A node of the quorum, whether or not it is a broker too. */
export interface ControllerRegistration {
  readonly controllerId: BrokerId
  readonly incarnationId: Uuid
  readonly clusterId: string
  readonly endpoints: readonly Endpoint[]
  readonly features: readonly SupportedFeature[]
}

export type RegisterControllerResult =
  | { readonly ok: true }
  | {
      readonly ok: false
      readonly reason: 'inconsistent-cluster-id' | 'unsupported-version'
      readonly message: string
    }

export type UnregisterBrokerResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'broker-not-registered'; readonly message: string }

/** Names one run of a broker. */
export interface BrokerRun {
  readonly brokerId: BrokerId
  readonly brokerEpoch: BrokerEpoch
}

export interface BrokerHeartbeat extends BrokerRun {
  /** Last metadata entry that the broker's own image holds. */
  readonly appliedIndex: number
  /** Stay fenced, or become so. */
  readonly wantFence: boolean
  /** Hand leaderships over: the broker is going. */
  readonly wantShutdown: boolean
  /** Log directories that failed since the broker started; none when absent. */
  readonly offlineLogDirs?: readonly Uuid[]
}

export type BrokerHeartbeatResult =
  | {
      readonly ok: true
      readonly fenced: boolean
      readonly inControlledShutdown: boolean
      /** The broker asked to go, and nothing more is gained by waiting: what others can lead they lead, and know it. */
      readonly mayStop: boolean
    }
  /** The controller knows no such run: the broker must register again. */
  | { readonly ok: false; readonly reason: 'stale-broker-epoch' }

export type ProducerIdsResult =
  | { readonly ok: true; readonly firstProducerId: ProducerId; readonly count: number }
  | { readonly ok: false; readonly reason: 'stale-broker-epoch' }

/** What a leader asks of the controller for its partitions: other ISRs, or that it has recovered. */
export interface AlterPartitionRequest extends BrokerRun {
  readonly changes: readonly IsrChange[]
}

export interface IsrChange {
  readonly topicId: Uuid
  readonly partition: number
  readonly leaderEpoch: LeaderEpoch
  /** Of the state that the change was made from. */
  readonly partitionEpoch: PartitionEpoch
  readonly isr: readonly IsrMember[]
  readonly leaderRecoveryState: LeaderRecoveryState
}

export interface IsrMember {
  readonly brokerId: BrokerId
  /** Of the run whose fetches showed that it is in sync (KIP-903); null: whichever is registered. */
  readonly brokerEpoch: BrokerEpoch | null
}

export type AlterPartitionResult =
  /** One for each change, in order. */
  | { readonly ok: true; readonly results: readonly IsrChangeResult[] }
  | { readonly ok: false; readonly reason: 'stale-broker-epoch' }

export type IsrChangeRefusal =
  | 'unknown-topic-id'
  | 'unknown-partition'
  /** The leader has seen later epochs than this controller: it is no longer the controller. */
  | 'not-controller'
  | 'fenced-leader-epoch'
  /** Not the leader, or an ISR that can't be. */
  | 'invalid-request'
  /** The partition has changed since. */
  | 'invalid-update-version'
  /** A member of the ISR is fenced, going, or another run than the one that was in sync. */
  | 'ineligible-replica'
  /** Done, and it completed a reassignment that took the leadership away. */
  | 'new-leader-elected'

export type IsrChangeResult =
  | {
      readonly ok: true
      readonly leader: BrokerId
      readonly leaderEpoch: LeaderEpoch
      readonly isr: readonly BrokerId[]
      readonly leaderRecoveryState: LeaderRecoveryState
      readonly partitionEpoch: PartitionEpoch
    }
  | { readonly ok: false; readonly reason: IsrChangeRefusal; readonly message: string }

export interface ElectLeadersRequest {
  /** The first replica, or any that lives, though it may lack what was acknowledged. */
  readonly electionType: 'preferred' | 'unclean'
  /** Null for every partition that needs it. */
  readonly partitions: readonly { readonly topic: string; readonly partition: number }[] | null
}

export type ElectLeaderResult = { readonly topic: string; readonly partition: number } & (
  | { readonly ok: true }
  | {
      readonly ok: false
      readonly reason:
        | 'unknown-partition'
        | 'election-not-needed'
        | 'preferred-leader-not-available'
        | 'eligible-leaders-not-available'
      readonly message: string
    }
)

export interface ReassignmentRequest {
  readonly topic: string
  readonly partition: number
  /** In order of preference; null cancels the reassignment that runs. */
  readonly replicas: readonly BrokerId[] | null
}

export interface AlterReassignmentsRequest {
  readonly requests: readonly ReassignmentRequest[]
  readonly allowReplicationFactorChange: boolean
}

export type ReassignmentResult =
  | { readonly ok: true }
  | {
      readonly ok: false
      readonly reason:
        | 'unknown-partition'
        | 'no-reassignment-in-progress'
        | 'invalid-replica-assignment'
        | 'invalid-replication-factor'
        | 'invalid-request'
        | 'unsupported-version'
      readonly message: string
    }

export interface ListReassignmentsRequest {
  /** Null for those of all topics. */
  readonly partitions: readonly { readonly topic: string; readonly partition: number }[] | null
}

/** A reassignment that runs. */
export interface OngoingReassignment {
  readonly topic: string
  readonly partition: number
  readonly replicas: readonly BrokerId[]
  readonly addingReplicas: readonly BrokerId[]
  readonly removingReplicas: readonly BrokerId[]
}

/** A replica is in this log directory of its broker. */
export interface ReplicaAssignment {
  readonly topicId: Uuid
  readonly partition: number
  readonly directory: Uuid
}

/** A broker says in which of its log directories replicas are. KIP-858. */
export interface AssignReplicasRequest extends BrokerRun {
  readonly assignments: readonly ReplicaAssignment[]
}

export type AssignReplicasResult =
  /** One for each assignment, in order. */
  | { readonly ok: true; readonly results: readonly AssignReplicaResult[] }
  | { readonly ok: false; readonly reason: 'stale-broker-epoch' | 'unsupported-version' }

export type AssignReplicaResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: 'unknown-topic-id' | 'unknown-partition' | 'not-a-replica' }

export interface FeatureUpdate {
  readonly feature: string
  /** 0 removes the feature. */
  readonly level: number
  /** A safe downgrade loses nothing; an unsafe one may. */
  readonly upgradeType: 'upgrade' | 'safe-downgrade' | 'unsafe-downgrade'
}

/** All of them, or none. */
export type UpdateFeaturesResult =
  | { readonly ok: true }
  | {
      readonly ok: false
      /** The first that can't be. */
      readonly feature: string
      readonly reason: 'invalid-update-version' | 'invalid-request'
      readonly message: string
    }
