/**
 * metadata: the one currency of change. Records say what changes, the image is what they add up to, the delta is what a
 * step changed.
 */
export type { ChangedTopic, MetadataDelta } from './delta.ts'
export type {
  BrokerImage,
  ClusterImage,
  ConfigsImage,
  MetadataImage,
  PartitionImage,
  TopicImage,
  TopicsImage,
} from './image.ts'
export { type Endpoint, type MetadataRecord, noLeader } from './records.ts'
