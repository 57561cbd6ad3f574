/**
 * coordination: how a broker takes part in its cluster. It registers, hears of every change of metadata, and asks the
 * controller for changes. Raft mode is here; what is decided is `controller/`'s, what metadata is `metadata/`'s.
 *
 * Main types, in reading order: `Coordination` and its `Admin` (what the rest of a node uses), `createRaftCoordination` (the broker's
 * part), `MetadataQuorum` (all that it knows of the quorum), `LocalQuorum` (the quorum's member), inside `raft/metadata-loader.ts`
 * (committed entries to images), `raft/active-controller.ts` (requests to decisions), `lifecycle/broker-lifecycle.ts`
 * (registration and heartbeats), `controller-channel.ts` (the way to a controller).
 *
 * Invariants:
 * - Listeners see every image once, in order, and before anyone gets an answer that rests on it.
 * - No image is published before it has this run's own registration: a leadership of a run before is never acted on.
 * - A request is answered when it is committed and this broker's image has it; a client that reads its own write finds it.
 * - No producer id is handed out twice, whatever crashes: a block is used only after its entry is committed.
 * - The cluster's id is in meta.properties of every node's folders, which is checked before anything is opened, and in the
 *   first entry of the metadata log and every snapshot, which catches a log that was put under another node's folder.
 *
 * - The controller is beside Raft: a decision gets the index of its entry in the same turn. A broker is not, and its session is its own
 *   event loop's: `BrokerLifecycle` never runs where `LocalQuorum` is and the broker is not.
 *
 * A `LocalQuorum` and its broker are on one event loop, or on one each, with `node/` between them. An entry is applied, and listeners
 * run, inside Raft's delivery, or inside that of its message: what throws there stops the node. A snapshot is encoded in pieces, with
 * turns of the loop between.
 *
 * | data of a Raft entry ('data') | a payload of `metadata/` |
 * |---|---|
 * | data of a Raft snapshot | chunks: 4 bytes length, big-endian, and a payload of `metadata/` |
 */
export type {
  AlterConfigRequest,
  AlterConfigResult,
  AlterPartitionResult,
  AlterReassignmentsRequest,
  AssignReplicasResult,
  BrokerRegistration,
  ConfigChange,
  ControllerAnswer,
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
  OngoingReassignment,
  ReassignmentRequest,
  ReassignmentResult,
  ReplicaAssignment,
  UnregisterBrokerResult,
  UpdateFeaturesResult,
} from '../controller/index.ts'
export type { ControllerRequestKind, ControllerRequests } from './controller-channel.ts'
export type {
  Admin,
  AdminOptions,
  ChangeVotersResult,
  Coordination,
  CoordinationState,
  MetadataListener,
  QuorumFacts,
  QuorumMember,
  QuorumVoter,
  TimeLimit,
} from './coordination.ts'
export { CoordinationError, type CoordinationFailure } from './coordination-error.ts'
export { AcceptedStreams } from './peers/accepted-streams.ts'
export { BrokerWatch, type BrokerWatchOptions } from './peers/broker-watch.ts'
export { Contacts } from './peers/contacts.ts'
export { answerController, ControllerCalls } from './peers/controller-calls.ts'
export { protocolVersion } from './peers/identity.ts'
export { NodeServer } from './peers/node-server.ts'
export { PeerTransport } from './peers/raft-transport.ts'
export type { PeerContact } from './raft/active-controller.ts'
export { type Formation, formQuorum, type Place } from './raft/formation.ts'
export {
  type CommitListener,
  LocalQuorum,
  type LocalQuorumOptions,
  type RemoteControllers,
} from './raft/local-quorum.ts'
export { MetadataLoader } from './raft/metadata-loader.ts'
export type { MetadataQuorum, QuorumListener, QuorumState } from './raft/metadata-quorum.ts'
export { createRaftCoordination, type RaftCoordinationOptions } from './raft/raft-coordination.ts'
