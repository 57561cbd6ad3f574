/**
 * controller: what decides how metadata changes. Not where the records go, nor who the controller is: Raft mode and
 * ZooKeeper mode give it both.
 *
 * Main types, in reading order: `Decision` (records and an answer), the decisions themselves (`createTopics`,
 * `registerBroker`, `fenceBroker`, `alterPartition` ...), `PartitionRules` (what follows from a change of a partition: its
 * leader, its eligible replicas, its epochs), `BrokerSessions` (who lives), `ControllerLoop` (runs decisions on the head image
 * and holds answers) over a `RecordSink`.
 *
 * Invariants:
 * - A decision is a pure function of the head image, the request and a context; it reads no clock and draws nothing at random.
 * - A client's request is one entry (`maxRecordsPerRequest`), so it happens whole or not; elections, each of which stands for
 *   itself, may take several. What the controller decides itself is one entry up to `maxRecordsPerEntry`, and can be decided
 *   again after any of its entries.
 * - A leader is in the ISR, and active. An ISR is never empty: its last member stays in it, whatever happens to it, unless an
 *   eligible replica can take its place: another may lack what was acknowledged.
 * - Who is in the ELR holds all that was acknowledged: it left the ISR below min.insync.replicas, where the high watermark
 *   stands still, and it is out as soon as that ends or its log may have lost something.
 * - An election that may lose records leaves the partition 'recovering', with the leader alone in the ISR.
 * - A broker that is fenced leads nothing. A new run of a broker never leads in a leader epoch of before.
 * - No answer leaves before what it rests on is stored: not even one that only read.
 *
 * Everything runs on the event loop of the active controller, called by `coordination/`. A decision takes time in proportion
 * to the topics it concerns: to fence a broker, those that have a replica on it.
 *
 * After Kafka's QuorumController, ReplicationControlManager, PartitionChangeBuilder, ClusterControlManager,
 * BrokerHeartbeatManager and FeatureControlManager (KIP-500, 631, 497, 455, 584, 841, 858, 903, 966).
 */
export { alterConfigs } from './alter-configs.ts'
export { alterPartition } from './alter-partition.ts'
export { BrokerSessions, type Evidence } from './broker-sessions.ts'
export { fenceBroker, registerBroker, registerController, unregisterBroker } from './brokers.ts'
export { clusterStart } from './cluster-start.ts'
export { type CreatePartitionsContext, createPartitions } from './create-partitions.ts'
export { type CreateTopicsContext, createTopics } from './create-topics.ts'
export type { ConfigRules, ControllerSettings, Decision } from './decision.ts'
export { deleteTopics } from './delete-topics.ts'
export { type BalanceContext, balanceLeaders, electLeaders, electUncleanLeaders } from './election.ts'
export { updateFeatures } from './features.ts'
export { type HeartbeatContext, handleHeartbeat } from './heartbeat.ts'
export { growInternalTopics } from './internal-topics.ts'
export { assignReplicasToDirs } from './log-dirs.ts'
export {
  type ControllerAnswer,
  ControllerLoop,
  type ControllerLoopOptions,
  type Decide,
} from './loop/controller-loop.ts'
export type { AppendOutcome, RecordSink } from './loop/record-sink.ts'
export { isActive } from './partition-change.ts'
export { type Placement, placePartitions } from './placement.ts'
export { allocateProducerIds } from './producer-ids.ts'
export { alterPartitionReassignments, listPartitionReassignments } from './reassignment.ts'
export type {
  AlterConfigRequest,
  AlterConfigResult,
  AlterPartitionRequest,
  AlterPartitionResult,
  AlterReassignmentsRequest,
  AssignReplicaResult,
  AssignReplicasRequest,
  AssignReplicasResult,
  BrokerHeartbeat,
  BrokerHeartbeatResult,
  BrokerRegistration,
  BrokerRun,
  ConfigChange,
  ControllerRegistration,
  CreatePartitionsRequest,
  CreatePartitionsResult,
  CreateTopicRefusal,
  CreateTopicRequest,
  CreateTopicResult,
  DeleteTopicRequest,
  DeleteTopicResult,
  ElectLeaderResult,
  ElectLeadersRequest,
  FeatureUpdate,
  IsrChange,
  IsrChangeRefusal,
  IsrChangeResult,
  IsrMember,
  ListReassignmentsRequest,
  OngoingReassignment,
  ProducerIdsResult,
  ReassignmentRequest,
  ReassignmentResult,
  RegisterBrokerRefusal,
  RegisterBrokerResult,
  RegisterControllerResult,
  ReplicaAssignment,
  UnregisterBrokerResult,
  UpdateFeaturesResult,
} from './requests.ts'
export { topicNameFault } from './topic-name.ts'
