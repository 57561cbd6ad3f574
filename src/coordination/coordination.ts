import type { BrokerEpoch, BrokerId, ControllerEpoch, ProducerId, Uuid } from '../base/index.ts'
import type { Endpoint, MetadataDelta, MetadataImage } from '../metadata/index.ts'

/**
 * How a broker takes part in its cluster: it registers, sees metadata change, and asks the controller for changes. Raft mode
 * and ZooKeeper mode implement it; what decides (`controller/`) is the same in both.
 *
 * Requests for changes may be made on any broker. Each answers once this broker's own image has the change, so that a
 * client that reads its own write from here finds it.
 */
export interface Coordination {
  /** Joins the cluster and registers; resolves once the broker is registered and its image is current. */
  start(registration: BrokerRegistration): Promise<{ readonly brokerEpoch: BrokerEpoch }>
  /** 'controlled' hands leaderships over first; 'immediate' just goes. */
  stop(mode: 'controlled' | 'immediate'): Promise<void>
  /** The latest image that was published to the listeners. */
  readonly image: MetadataImage
  readonly state: CoordinationState
  /** Called in order with each change, after which `image` is `newImage`; `delta.base` is the image before. */
  onMetadata(listener: MetadataListener): void
  /** Quorum or storage is broken beyond repair in this process: the node must stop. */
  onFault(listener: (error: Error) => void): void

  readonly admin: Admin
  /** `count` or fewer ids, never handed out before in this cluster. */
  allocateProducerIds(): Promise<{ readonly firstProducerId: ProducerId; readonly count: number }>
}

export type MetadataListener = (delta: MetadataDelta, newImage: MetadataImage) => void

export interface BrokerRegistration {
  readonly brokerId: BrokerId
  /** Random, new for each run of the process. */
  readonly incarnationId: Uuid
  readonly endpoints: readonly Endpoint[]
  readonly rack: string | null
  readonly logDirs: readonly Uuid[]
}

export interface CoordinationState {
  readonly mode: 'raft' | 'zookeeper'
  /** The active controller, null while none is known. */
  readonly controllerId: BrokerId | null
  readonly controllerEpoch: ControllerEpoch
  /** Index of the last metadata entry that the image holds. */
  readonly appliedIndex: number
}

/** Requests to the controller. Outcomes are values; a fault (no controller within the timeout, quorum lost) rejects with `CoordinationError`. */
export interface Admin {
  createTopics(requests: readonly CreateTopicRequest[], options: AdminOptions): Promise<readonly CreateTopicResult[]>
  deleteTopics(requests: readonly DeleteTopicRequest[], options: AdminOptions): Promise<readonly DeleteTopicResult[]>
  /** Sets (value) or removes (null) single keys of resources. */
  alterConfigs(requests: readonly AlterConfigRequest[], options: AdminOptions): Promise<readonly AlterConfigResult[]>
}

export interface AdminOptions {
  readonly timeoutMs: number
  /** Check everything, change nothing. */
  readonly validateOnly?: boolean
}

export interface CreateTopicRequest {
  readonly name: string
  /** 1 or more, or -1 for `num.partitions`. */
  readonly partitionCount: number
  /** 1 or more, or -1 for `default.replication.factor`. */
  readonly replicationFactor: number
  /** Replicas by partition index, instead of the two counts. */
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

export type CreateTopicResult =
  | {
      readonly ok: true
      readonly name: string
      readonly topicId: Uuid
      readonly partitionCount: number
      readonly replicationFactor: number
    }
  | { readonly ok: false; readonly name: string; readonly reason: CreateTopicRefusal; readonly message: string }

/** By name or by id. */
export type DeleteTopicRequest = { readonly name: string } | { readonly topicId: Uuid }

export type DeleteTopicResult =
  | { readonly ok: true; readonly name: string; readonly topicId: Uuid }
  | {
      readonly ok: false
      readonly reason: 'unknown-topic' | 'unknown-topic-id' | 'topic-deletion-disabled' | 'invalid-topic'
      readonly message: string
    }

export interface AlterConfigRequest {
  readonly resourceType: 'topic' | 'broker'
  readonly resourceName: string
  readonly changes: ReadonlyMap<string, string | null>
}

export type AlterConfigResult =
  | { readonly ok: true }
  | {
      readonly ok: false
      readonly reason: 'unknown-topic' | 'invalid-config' | 'invalid-request'
      readonly message: string
    }
