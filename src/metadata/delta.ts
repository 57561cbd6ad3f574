import type { BrokerId, Uuid } from '../base/index.ts'
import type { MetadataImage, TopicImage } from './image.ts'

/** What changed from `base` to the image that follows it, for publishers that react in proportion to the change. */
export interface MetadataDelta {
  readonly base: MetadataImage
  /** True when the new image came from a snapshot: anything may differ from `base`. */
  readonly isSnapshot: boolean
  /** New topics, and topics any of whose partitions changed, with their new state. */
  readonly changedTopics: ReadonlyMap<Uuid, ChangedTopic>
  readonly deletedTopics: ReadonlyMap<Uuid, TopicImage>
  readonly changedBrokers: ReadonlySet<BrokerId>
  /** Names of the topics, and ids of the brokers ('' for the cluster's default), whose configs changed. */
  readonly changedConfigs: { readonly topics: ReadonlySet<string>; readonly brokers: ReadonlySet<string> }
}

export interface ChangedTopic {
  readonly topic: TopicImage
  /** Indexes of the partitions that are new or changed. */
  readonly partitions: ReadonlySet<number>
}
