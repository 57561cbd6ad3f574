import type {
  AlterConfigRequest,
  AlterConfigResult,
  BrokerHeartbeat,
  BrokerHeartbeatResult,
  BrokerRegistration,
  BrokerRun,
  ControllerAnswer,
  CreatePartitionsRequest,
  CreatePartitionsResult,
  CreateTopicRequest,
  CreateTopicResult,
  DeleteTopicRequest,
  DeleteTopicResult,
  ProducerIdsResult,
  RegisterBrokerResult,
} from '../controller/index.ts'

/** What a broker may ask of the active controller: plain data, fit to be sent. */
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
  readonly allocateProducerIds: { readonly request: BrokerRun; readonly response: ProducerIdsResult }
}

export type ControllerRequestKind = keyof ControllerRequests

/** The way from a broker to a controller. */
export interface ControllerChannel {
  ask<Kind extends ControllerRequestKind>(
    kind: Kind,
    request: ControllerRequests[Kind]['request'],
  ): Promise<ControllerAnswer<ControllerRequests[Kind]['response']>>
}
