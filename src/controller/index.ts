/**
 * controller: what decides how metadata changes. Not where the records go, nor who the controller is: Raft mode and
 * ZooKeeper mode give it both.
 *
 * Main types, in reading order: `Decision` (records and an answer), the decisions themselves (`createTopics`,
 * `registerBroker`, `fenceBroker` ...), `electLeader`, `ControllerLoop` (runs decisions on the head image and holds answers)
 * over a `RecordSink`.
 *
 * Invariants:
 * - A decision is a pure function of the head image, the request and a context; it reads no clock and draws nothing at random.
 * - A client's request is one entry (`maxRecordsPerEntry`), so it happens whole or not. What the controller decides itself may
 *   take several, and can be decided again after any of them.
 * - A leader is in the ISR, and active. The last member of an ISR stays in it, whatever happens to it: another replica may lack
 *   what was acknowledged.
 * - A broker that is fenced leads nothing. A new run of a broker never leads in a leader epoch of before.
 * - No answer leaves before what it rests on is stored: not even one that only read.
 *
 * Everything runs on the event loop of the active controller, called by `coordination/`. A decision takes time in proportion
 * to the topics it concerns: to fence a broker, those that have a replica on it.
 *
 * After Kafka's QuorumController, ReplicationControlManager and ClusterControlManager (KIP-500, KIP-631).
 */
export { alterConfigs } from './alter-configs.ts'
export { BrokerSessions } from './broker-sessions.ts'
export { fenceBroker, handleHeartbeat, registerBroker, unregisterBroker } from './brokers.ts'
export { clusterStart } from './cluster-start.ts'
export { type CreatePartitionsContext, createPartitions } from './create-partitions.ts'
export { type CreateTopicsContext, createTopics } from './create-topics.ts'
export type { ConfigRules, ControllerSettings, Decision } from './decision.ts'
export { deleteTopics } from './delete-topics.ts'
export {
  type ControllerAnswer,
  ControllerLoop,
  type ControllerLoopOptions,
  type Decide,
} from './loop/controller-loop.ts'
export type { AppendOutcome, RecordSink } from './loop/record-sink.ts'
export { type Placement, placePartitions } from './placement.ts'
export { allocateProducerIds } from './producer-ids.ts'
export type {
  AlterConfigRequest,
  AlterConfigResult,
  BrokerHeartbeat,
  BrokerHeartbeatResult,
  BrokerRegistration,
  BrokerRun,
  ConfigChange,
  CreatePartitionsRequest,
  CreatePartitionsResult,
  CreateTopicRefusal,
  CreateTopicRequest,
  CreateTopicResult,
  DeleteTopicRequest,
  DeleteTopicResult,
  ProducerIdsResult,
  RegisterBrokerResult,
} from './requests.ts'
export { topicNameFault } from './topic-name.ts'
