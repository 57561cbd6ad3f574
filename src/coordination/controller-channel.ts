import type { BrokerId, Uuid } from '../base/index.ts'
import type {
  AlterConfigRequest,
  AlterConfigResult,
  AlterPartitionRequest,
  AlterPartitionResult,
  AlterReassignmentsRequest,
  AssignReplicasRequest,
  AssignReplicasResult,
  BrokerHeartbeat,
  BrokerHeartbeatResult,
  BrokerRegistration,
  BrokerRun,
  ControllerAnswer,
  ControllerRegistration,
  CreatePartitionsRequest,
  CreatePartitionsResult,
  CreateTopicRequest,
  CreateTopicResult,
  DeleteTopicRequest,
  DeleteTopicResult,
  ElectLeaderResult,
  ElectLeadersRequest,
  FeatureUpdate,
  ListReassignmentsRequest,
  OngoingReassignment,
  ProducerIdsResult,
  ReassignmentResult,
  RegisterBrokerResult,
  RegisterControllerResult,
  UnregisterBrokerResult,
  UpdateFeaturesResult,
} from '../controller/index.ts'
import type { ChangeVotersResult, QuorumFacts } from './coordination.ts'

/** What a broker may ask of the active controller, or of the quorum's leader, which it is: plain data, fit to be sent. */
export interface ControllerRequests {
  readonly createTopics: {
    readonly request: { readonly requests: readonly CreateTopicRequest[]; readonly validateOnly: boolean }
    readonly response: readonly CreateTopicResult[]
  }
  readonly deleteTopics: {
    readonly request: { readonly requests: readonly DeleteTopicRequest[]; readonly validateOnly: boolean }
    readonly response: readonly DeleteTopicResult[]
  }
  readonly createPartitions: {
    readonly request: { readonly requests: readonly CreatePartitionsRequest[]; readonly validateOnly: boolean }
    readonly response: readonly CreatePartitionsResult[]
  }
  readonly alterConfigs: {
    readonly request: { readonly requests: readonly AlterConfigRequest[]; readonly validateOnly: boolean }
    readonly response: readonly AlterConfigResult[]
  }
  readonly registerBroker: { readonly request: BrokerRegistration; readonly response: RegisterBrokerResult }
  readonly heartbeat: { readonly request: BrokerHeartbeat; readonly response: BrokerHeartbeatResult }
  readonly unregisterBroker: {
    readonly request: { readonly brokerId: BrokerId }
    readonly response: UnregisterBrokerResult
  }
  readonly registerController: { readonly request: ControllerRegistration; readonly response: RegisterControllerResult }
  readonly alterPartition: { readonly request: AlterPartitionRequest; readonly response: AlterPartitionResult }
  readonly electLeaders: { readonly request: ElectLeadersRequest; readonly response: readonly ElectLeaderResult[] }
  readonly alterPartitionReassignments: {
    readonly request: AlterReassignmentsRequest
    readonly response: readonly ReassignmentResult[]
  }
  readonly listPartitionReassignments: {
    readonly request: ListReassignmentsRequest
    readonly response: readonly OngoingReassignment[]
  }
  readonly assignReplicasToDirs: { readonly request: AssignReplicasRequest; readonly response: AssignReplicasResult }
  readonly updateFeatures: {
    readonly request: { readonly updates: readonly FeatureUpdate[]; readonly validateOnly: boolean }
    readonly response: UpdateFeaturesResult
  }
  readonly allocateProducerIds: { readonly request: BrokerRun; readonly response: ProducerIdsResult }
  readonly describeQuorum: { readonly request: Readonly<Record<never, never>>; readonly response: QuorumFacts }
  readonly addVoter: { readonly request: VoterAtEndpoint; readonly response: ChangeVotersResult }
  /** A voter is elsewhere than the membership says. */
  readonly updateVoter: { readonly request: VoterAtEndpoint; readonly response: ChangeVotersResult }
  readonly removeVoter: {
    readonly request: { readonly id: BrokerId; readonly directoryId: Uuid; readonly timeoutMs: number }
    readonly response: ChangeVotersResult
  }
}

interface VoterAtEndpoint {
  readonly id: BrokerId
  readonly directoryId: Uuid
  /** `host:port` where the other nodes reach it. */
  readonly endpoint: string
  readonly timeoutMs: number
}

export type ControllerRequestKind = keyof ControllerRequests

/** The way from a broker to a controller. */
export interface ControllerChannel {
  ask<Kind extends ControllerRequestKind>(
    kind: Kind,
    request: ControllerRequests[Kind]['request'],
  ): Promise<ControllerAnswer<ControllerRequests[Kind]['response']>>
}
