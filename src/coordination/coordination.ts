import type { BrokerEpoch, BrokerId, ControllerEpoch, Offset, ProducerId, Uuid } from '../base/index.ts'
import type {
  AlterConfigRequest,
  AlterConfigResult,
  AlterPartitionResult,
  AlterReassignmentsRequest,
  AssignReplicasResult,
  BrokerRegistration,
  CreatePartitionsRequest,
  CreatePartitionsResult,
  CreateTopicRequest,
  CreateTopicResult,
  DeleteTopicRequest,
  DeleteTopicResult,
  ElectLeaderResult,
  ElectLeadersRequest,
  FeatureUpdate,
  IsrChange,
  ListReassignmentsRequest,
  OngoingReassignment,
  ReassignmentResult,
  ReplicaAssignment,
  UnregisterBrokerResult,
  UpdateFeaturesResult,
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
  /** In place of `start` on a node that is no broker: resolves once a controller is active, this node or another. */
  startWithoutBroker(): Promise<void>
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
  /** In which of its log directories this broker has replicas. Rejects with a `CoordinationError`; may be told again then. */
  assignReplicas(assignments: readonly ReplicaAssignment[]): Promise<AssignReplicasResult>

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

/** The metadata quorum as its leader knows it. */
export interface QuorumFacts {
  readonly leaderId: BrokerId
  readonly term: number
  /** Next offset to be committed; exclusive. */
  readonly highWatermark: Offset
  readonly voters: readonly QuorumMember[]
  /** Who follows without a vote. */
  readonly observers: readonly QuorumMember[]
}

export interface QuorumMember {
  readonly id: BrokerId
  readonly directoryId: Uuid
  /** `host:port` where other nodes reach it; null where that isn't known. */
  readonly endpoint: string | null
  /** Next offset of its log to be written, as far as the leader knows; exclusive. */
  readonly logEndOffset: Offset
  /** How long ago it was heard, and had all that the leader had; null for not in this term. */
  readonly lastContactMs: number | null
  readonly lastCaughtUpMs: number | null
}

/** A node and its metadata folder, which together have a vote. */
export interface QuorumVoter {
  readonly id: BrokerId
  readonly directoryId: Uuid
}

export type ChangeVotersResult =
  | { readonly ok: true }
  | {
      readonly ok: false
      readonly reason:
        | 'busy'
        | 'timeout'
        | 'duplicate-voter'
        | 'voter-not-found'
        | 'last-voter'
        | 'too-many'
        | 'no-transport'
        /** Most of the voters that would be left are away. */
        | 'too-few-heard'
      readonly message: string
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
  electLeaders(request: ElectLeadersRequest, options: TimeLimit): Promise<readonly ElectLeaderResult[]>
  /** One result for each request, in order. */
  alterPartitionReassignments(
    request: AlterReassignmentsRequest,
    options: TimeLimit,
  ): Promise<readonly ReassignmentResult[]>
  /** Those that run; of all topics when `partitions` is null. */
  listPartitionReassignments(
    partitions: ListReassignmentsRequest['partitions'],
    options: TimeLimit,
  ): Promise<readonly OngoingReassignment[]>
  updateFeatures(updates: readonly FeatureUpdate[], options: AdminOptions): Promise<UpdateFeaturesResult>
  unregisterBroker(brokerId: BrokerId, options: TimeLimit): Promise<UnregisterBrokerResult>
  describeQuorum(options: TimeLimit): Promise<QuorumFacts>
  /** `endpoint`: `host:port` where the other nodes reach it. It runs already, as an observer. */
  addVoter(voter: QuorumVoter & { readonly endpoint: string }, options: TimeLimit): Promise<ChangeVotersResult>
  removeVoter(voter: QuorumVoter, options: TimeLimit): Promise<ChangeVotersResult>
}

export interface TimeLimit {
  readonly timeoutMs: number
}

export interface AdminOptions extends TimeLimit {
  /** Check everything, change nothing. */
  readonly validateOnly?: boolean
}
