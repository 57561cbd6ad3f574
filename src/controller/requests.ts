import type { BrokerEpoch, BrokerId, ProducerId, Uuid } from '../base/index.ts'
import type { Endpoint } from '../metadata/index.ts'

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
  readonly endpoints: readonly Endpoint[]
  readonly rack: string | null
  readonly logDirs: readonly Uuid[]
}

export type RegisterBrokerResult =
  | { readonly ok: true; readonly brokerEpoch: BrokerEpoch }
  /** Another run of the same broker is alive. */
  | { readonly ok: false; readonly reason: 'duplicate-registration'; readonly message: string }

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
}

export type BrokerHeartbeatResult =
  | { readonly ok: true; readonly fenced: boolean; readonly inControlledShutdown: boolean }
  /** The controller knows no such run: the broker must register again. */
  | { readonly ok: false; readonly reason: 'stale-broker-epoch' }

export type ProducerIdsResult =
  | { readonly ok: true; readonly firstProducerId: ProducerId; readonly count: number }
  | { readonly ok: false; readonly reason: 'stale-broker-epoch' }
