/**
 * node: puts the parts together. Settings go in, a node that serves comes out.
 *
 *   start-node.ts         `startNode`: which part gets what, the order of start and stop
 *   running-node.ts       `NodeOptions`, `RunningNode`
 *   control-plane.ts      the node's part in the metadata quorum: peers, formation, Raft, controller
 *   control-thread.ts     the same in a thread of its own; control-program.ts is what runs there
 *   node-peers.ts         the node among others
 *   raft-storage.ts       where the Raft log lies, per kind of storage
 *   partition-store.ts    the coordinators' port to the partitions, made of `replication/`
 *   observation.ts        `Observation`: what is in topics and groups, for the program that has the node in itself
 *   reset.ts              a node as new, with its connections kept
 *   topic-declarations.ts topics that are declared up front
 *
 * Start: who this node is among others, logs (lock, whose folder, recovery), metadata quorum, replicas and coordinators, listeners (requests wait), registration,
 * declared topics; then requests are answered. Stop is the reverse. A part that fails to start takes down what was
 * started before it, and the caller gets its error.
 *
 * Invariants:
 * - Nothing here decides anything about records, metadata or groups: it only connects. But for what an embedding program asks:
 *   `reset.ts` decides which topics are emptied, by requests that any client could make, and `Observation` only looks.
 * - Requests begin when the gate is open: after the start, and not during a reset.
 * - A control plane is used only through `ControlPlane` and `MetadataQuorum`, never at once: it may be in another thread. The broker's
 *   heartbeats are not its: a node whose event loop hangs is to be fenced, while its quorum goes on.
 * - Stop: leaderships are handed over while everything serves, then the data plane ends, then the quorum's member and its log, then the
 *   folders' locks, then the thread.
 * - Two neighbours in one layer know each other only through what is passed in here.
 */
export {
  BrokerRecord,
  ObservationError,
  type ObservedGroup,
  type ObservedMember,
  type WaitForGroupOptions,
  type WaitForRecordsOptions,
} from './observation.ts'
export { memoryRaftStorage, raftStorageOnDisk } from './raft-storage.ts'
export { ResetError, type ResetOptions } from './reset.ts'
export type { NodeOptions, NodeParts, NodeTime, RaftStorageRequest, RunningNode } from './running-node.ts'
export { startNode } from './start-node.ts'
export { parseTopicList, parseTopicsFile, type TopicDeclaration, topicRequests } from './topic-declarations.ts'
