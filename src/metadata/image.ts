import {
  type BrokerEpoch,
  type BrokerId,
  type LeaderEpoch,
  type PartitionEpoch,
  type ProducerId,
  type Uuid,
  zeroUuid,
} from '../base/index.ts'
import type { Endpoint, LeaderRecoveryState, SupportedFeature } from './records.ts'

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
  /** Feature levels by name. Their epoch, for clients, is `index`. */
  readonly features: ReadonlyMap<string, number>
  /** Every producer id below this was handed out. */
  readonly nextProducerId: ProducerId
}

export interface ClusterImage {
  readonly size: number
  broker(brokerId: BrokerId): BrokerImage | undefined
  /** In the order of their ids. */
  brokers(): Iterable<BrokerImage>
  /** The nodes of the quorum that said what they are, in the order of their ids. */
  controllers(): Iterable<ControllerImage>
}

export interface BrokerImage {
  readonly brokerId: BrokerId
  readonly incarnationId: Uuid
  readonly brokerEpoch: BrokerEpoch
  readonly endpoints: readonly Endpoint[]
  readonly rack: string | null
  /** Those of its log directories that work. */
  readonly logDirs: readonly Uuid[]
  readonly fenced: boolean
  readonly inControlledShutdown: boolean
  readonly features: readonly SupportedFeature[]
}

export interface ControllerImage {
  readonly controllerId: BrokerId
  readonly incarnationId: Uuid
  readonly endpoints: readonly Endpoint[]
  readonly features: readonly SupportedFeature[]
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
  /** In order of preference; while a reassignment runs, those that are added and those that are removed too. */
  readonly replicas: readonly BrokerId[]
  /** Never empty. */
  readonly isr: readonly BrokerId[]
  /** `noLeader` (-1) when there is none. */
  readonly leader: BrokerId
  readonly leaderEpoch: LeaderEpoch
  readonly partitionEpoch: PartitionEpoch
  /** Replicas of a running reassignment that were not replicas before it; empty when none runs. */
  readonly addingReplicas: readonly BrokerId[]
  /** Replicas that go when the running reassignment is complete. */
  readonly removingReplicas: readonly BrokerId[]
  /**
   * Eligible leader replicas (KIP-966): they left the ISR while it was below min.insync.replicas, where the high watermark
   * stands still, so they hold all that was acknowledged. None is in the ISR.
   */
  readonly elr: readonly BrokerId[]
  /** The last leader, while there is none; else empty. */
  readonly lastKnownElr: readonly BrokerId[]
  readonly leaderRecoveryState: LeaderRecoveryState
  /** The log directory of each replica, `zeroUuid` where it is not known; empty when none is. See `directoryOf`. */
  readonly directories: readonly Uuid[]
}

/** Where the partition's replica on `brokerId` is; `zeroUuid` when that is not known. */
export function directoryOf({ replicas, directories }: PartitionImage, brokerId: BrokerId): Uuid {
  return directories[replicas.indexOf(brokerId)] ?? zeroUuid
}

export interface ConfigsImage {
  /** Keys set on one resource itself; empty when none are. */
  of(resourceType: 'topic' | 'broker', resourceName: string): ReadonlyMap<string, string>
}
