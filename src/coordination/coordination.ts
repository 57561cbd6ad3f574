import type { BrokerEpoch, BrokerId, ControllerEpoch, Offset, ProducerId, Uuid } from '../base/index.ts'
import type {
  AlterConfigRequest,
  AlterConfigResult,
  AlterPartitionResult,
  BrokerRegistration,
  CreatePartitionsRequest,
  CreatePartitionsResult,
  CreateTopicRequest,
  CreateTopicResult,
  DeleteTopicRequest,
  DeleteTopicResult,
  IsrChange,
} from '../controller/index.ts'
import type { MetadataDelta, MetadataImage } from '../metadata/index.ts'

/**
 * How a broker takes part in its cluster: it registers, sees metadata change, and asks the controller for changes. Raft mode
 * and ZooKeeper mode implement it; what decides (`controller/`) is the same in both.
 *
 * Requests for changes may be made on any broker. Each answers once this broker's own image has the change, so that a
 * client that reads its own write from here finds it.
 */
export interface Coordination {
  /**
   * Joins the cluster and registers; resolves once the broker is unfenced in its own image. The first image that listeners
   * see already has this run's registration: no leadership that a run before it held is ever published.
   */
  start(registration: BrokerRegistration): Promise<{ readonly brokerEpoch: BrokerEpoch }>
  /**
   * Hands this broker's leaderships to others and resolves when they have them, or after a few seconds: clients and followers are
   * served meanwhile. Never rejects.
   */
  handOver(): Promise<void>
  /** Ends what waits for the cluster, a start above all: it rejects with a 'stopped'. To be followed by `stop`. */
  giveUp(): void
  stop(): Promise<void>
  /** The latest image that was published to the listeners; an empty one before the first. */
  readonly image: MetadataImage
  readonly state: CoordinationState
  /** The metadata quorum as this node knows it; undefined in ZooKeeper mode. */
  quorum(): QuorumFacts | undefined
  /**
   * Called in order with each change; `image` is `newImage` by then, and `delta.base` the image before. Listeners are added
   * before `start`. One that throws is a fault.
   */
  onMetadata(listener: MetadataListener): void
  /** Quorum or storage is broken beyond repair in this process: the node must stop. */
  onFault(listener: (error: Error) => void): void

  /** Of this run; undefined until it is registered. */
  readonly brokerEpoch: BrokerEpoch | undefined
  /**
   * ISRs as this broker, their leader, wants them. May be asked again, with the same answer, when it rejects with a
   * `CoordinationError`.
   */
  alterPartitions(changes: readonly IsrChange[]): Promise<AlterPartitionResult>

  readonly admin: Admin
  /**
   * A block of `count`, 1 or more, ids in a row, never handed out before in this cluster. Costs an entry of the metadata log:
   * the caller hands them out one by one.
   */
  allocateProducerIds(): Promise<{ readonly firstProducerId: ProducerId; readonly count: number }>
}

export type MetadataListener = (delta: MetadataDelta, newImage: MetadataImage) => void

export interface CoordinationState {
  readonly mode: 'raft' | 'zookeeper'
  /** The active controller; null while none is known. */
  readonly controllerId: BrokerId | null
  readonly controllerEpoch: ControllerEpoch
  /** Index of the last metadata entry that the image holds. */
  readonly appliedIndex: number
}

export interface QuorumFacts {
  /** Null while none is known. */
  readonly leaderId: BrokerId | null
  readonly term: number
  readonly voters: readonly QuorumMemberFacts[]
  /** Who follows without a vote, as the leader knows; empty elsewhere. */
  readonly observers: readonly QuorumMemberFacts[]
  /** Next offset to be committed, and of this node's log to be written; exclusive. */
  readonly highWatermark: Offset
  readonly logEndOffset: Offset
}

/** What only the leader of the quorum knows is undefined on other nodes. */
export interface QuorumMemberFacts {
  readonly id: BrokerId
  readonly directoryId: Uuid
  /** Exclusive: the first offset that it is not known to have on its disk. */
  readonly logEndOffset: Offset | undefined
  /** How long ago it was heard, and had all that the leader had; undefined also for: not yet. */
  readonly lastContactMs: number | undefined
  readonly lastCaughtUpMs: number | undefined
}

/** Requests to the controller. Outcomes are values; a fault (no controller within the timeout, quorum lost) rejects with `CoordinationError`. */
export interface Admin {
  createTopics(requests: readonly CreateTopicRequest[], options: AdminOptions): Promise<readonly CreateTopicResult[]>
  deleteTopics(requests: readonly DeleteTopicRequest[], options: AdminOptions): Promise<readonly DeleteTopicResult[]>
  createPartitions(
    requests: readonly CreatePartitionsRequest[],
    options: AdminOptions,
  ): Promise<readonly CreatePartitionsResult[]>
  /** Changes keys of topics and brokers: single ones, or all of a resource. */
  alterConfigs(requests: readonly AlterConfigRequest[], options: AdminOptions): Promise<readonly AlterConfigResult[]>
}

export interface AdminOptions {
  readonly timeoutMs: number
  /** Check everything, change nothing. */
  readonly validateOnly?: boolean
}
