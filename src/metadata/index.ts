/**
 * metadata: the one currency of change. Records say what changes, the image is what they add up to, the delta is what a
 * step changed. In Raft mode an entry of the quorum's log holds records; in ZooKeeper mode the same records become znodes.
 *
 * Main types, in reading order: `MetadataRecord` (what changes), `MetadataImage` (what is), `MetadataDeltaBuilder` (replays
 * records on an image) and the `MetadataDelta` it ends in (what changed), `encodeRecords`/`decodeRecords` (the payload of
 * an entry), `snapshotRecords`/`imageOfSnapshot` (an image as records and back).
 *
 * Invariants:
 * - An image never changes. What decides, publishes, answers or writes a snapshot may hold one as long as it likes.
 * - A new image shares what stayed the same, so that a change costs in proportion to the change and not to the cluster.
 * - The same records in the same order make the same image, on every node and after every restart.
 * - image = imageOfSnapshot(snapshotRecords(image)).
 * - A node that doesn't know a record refuses it (`MetadataFormatError`): to skip it would make its image differ.
 *
 * All of it is synchronous and pure: who calls it, where the bytes live and who hears of a delta is `coordination/`'s.
 *
 * | payload of an entry | |
 * |---|---|
 * | 1 byte | format: 1 |
 * | msgpack | array of records, each an array `[type, version, ...fields]` |
 *
 * Type numbers are those of Kafka's metadata records (KIP-500, KIP-631) where Kafka has the record, 1000 and up where not.
 */
export type { ChangedTopic, MetadataDelta } from './delta.ts'
export { MetadataDeltaBuilder } from './delta-builder.ts'
export type {
  BrokerImage,
  ClusterImage,
  ConfigsImage,
  ControllerImage,
  MetadataImage,
  PartitionImage,
  TopicImage,
  TopicsImage,
} from './image.ts'
export { directoryOf } from './image.ts'
export { emptyImage } from './persistent-image.ts'
export { decodeRecords, encodeRecords, MetadataFormatError } from './record-codec.ts'
export {
  type Endpoint,
  eligibleLeaderReplicas,
  type LeaderRecoveryState,
  type MetadataRecord,
  metadataVersion,
  noLeader,
  type SupportedFeature,
  supportedFeatures,
} from './records.ts'
export { imageOfSnapshot, snapshotDelta, snapshotRecords } from './snapshot.ts'
