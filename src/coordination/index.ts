/**
 * coordination: how a broker takes part in its cluster.
 */
export type {
  Admin,
  AdminOptions,
  AlterConfigRequest,
  AlterConfigResult,
  BrokerRegistration,
  Coordination,
  CoordinationState,
  CreateTopicRefusal,
  CreateTopicRequest,
  CreateTopicResult,
  DeleteTopicRequest,
  DeleteTopicResult,
  MetadataListener,
} from './coordination.ts'
