import type { BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, ProducerId, Uuid } from '../base/index.ts'
import type { Endpoint } from './records.ts'

/**
 * All metadata as of one entry of the metadata log. Immutable: a change makes a new image that shares what stayed the same,
 * at a cost in proportion to the change.
 */
export interface MetadataImage {
  /** Index of the last log entry that is in it; 0 when empty. */
  readonly index: number
  /** Term of that entry. */
  readonly term: number
  /** '' until the first entry of the cluster's log names it. */
  readonly clusterId: string
  readonly cluster: ClusterImage
  readonly topics: TopicsImage
  readonly configs: ConfigsImage
  /** Feature levels by name. */
  readonly features: ReadonlyMap<string, number>
  /** Every producer id below this was handed out. */
  readonly nextProducerId: ProducerId
}

export interface ClusterImage {
  readonly size: number
  broker(brokerId: BrokerId): BrokerImage | undefined
  /** In the order of their ids. */
  brokers(): Iterable<BrokerImage>
}

export interface BrokerImage {
  readonly brokerId: BrokerId
  readonly incarnationId: Uuid
  readonly brokerEpoch: BrokerEpoch
  readonly endpoints: readonly Endpoint[]
  readonly rack: string | null
  readonly logDirs: readonly Uuid[]
  readonly fenced: boolean
  readonly inControlledShutdown: boolean
}

export interface TopicsImage {
  readonly size: number
  byName(name: string): TopicImage | undefined
  byId(topicId: Uuid): TopicImage | undefined
  /** In no particular order. Lazy: it may be walked a piece in each turn of the event loop. */
  all(): Iterable<TopicImage>
  /** Topics of which a replica of any partition is on the broker. Costs what it yields. */
  onBroker(brokerId: BrokerId): Iterable<TopicImage>
  /** Partitions that the broker leads; costs the partitions of the topics on it. */
  ledBy(brokerId: BrokerId): readonly { readonly topic: TopicImage; readonly partition: PartitionImage }[]
  /** Another topic whose name is the same once '.' and '_' are not told apart, as in Kafka's names of metrics. */
  collidingWith(name: string): string | undefined
}

export interface TopicImage {
  readonly name: string
  readonly topicId: Uuid
  /** By partition index, dense from 0. */
  readonly partitions: readonly PartitionImage[]
}

export interface PartitionImage {
  readonly partition: number
  readonly replicas: readonly BrokerId[]
  readonly isr: readonly BrokerId[]
  /** `noLeader` (-1) when there is none. */
  readonly leader: BrokerId
  readonly leaderEpoch: LeaderEpoch
  readonly partitionEpoch: PartitionEpoch
}

export interface ConfigsImage {
  /** Keys set on one resource itself; empty when none are. */
  of(resourceType: 'topic' | 'broker', resourceName: string): ReadonlyMap<string, string>
}
