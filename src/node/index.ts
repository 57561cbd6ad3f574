/**
 * node: puts the parts together. Settings go in, a node that serves comes out.
 *
 *   start-node.ts         `startNode`: which part gets what, the order of start and stop
 *   running-node.ts       `NodeOptions`, `RunningNode`
 *   raft-storage.ts       where the Raft log lies, per kind of storage
 *   partition-store.ts    the coordinators' port to the partitions, made of `replication/`
 *   observation.ts        `Observation`: what is in topics and groups, for the program that has the node in itself
 *   reset.ts              a node as new, with its connections kept
 *   topic-declarations.ts topics that are declared up front
 *
 * Start: logs (lock, whose folder, recovery), metadata quorum, replicas and coordinators, listeners (requests wait), registration,
 * declared topics; then requests are answered. Stop is the reverse. A part that fails to start takes down what was
 * started before it, and the caller gets its error.
 *
 * Invariants:
 * - Nothing here decides anything about records, metadata or groups: it only connects. But for what an embedding program asks:
 *   `reset.ts` decides which topics are emptied, by requests that any client could make, and `Observation` only looks.
 * - Requests begin when the gate is open: after the start, and not during a reset.
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
