import { assert, type BrokerId, PersistentMap, type ProducerId, type Uuid } from '../base/index.ts'
import type {
  BrokerImage,
  ClusterImage,
  ConfigsImage,
  ControllerImage,
  MetadataImage,
  PartitionImage,
  TopicImage,
  TopicsImage,
} from './image.ts'

/** How many replicas of the topic's partitions are on one broker, by topic id; never 0. */
export type ReplicaCounts = PersistentMap<Uuid, number>

/** The image, on persistent maps. Only `MetadataDeltaBuilder` makes new ones. */
export class PersistentImage implements MetadataImage {
  readonly index: number
  readonly term: number
  readonly clusterId: string
  readonly cluster: PersistentCluster
  readonly topics: PersistentTopics
  readonly configs: PersistentConfigs
  /** A handful of names: copied when one changes. */
  readonly features: ReadonlyMap<string, number>
  readonly nextProducerId: ProducerId

  constructor(parts: Omit<PersistentImage, never>) {
    this.index = parts.index
    this.term = parts.term
    this.clusterId = parts.clusterId
    this.cluster = parts.cluster
    this.topics = parts.topics
    this.configs = parts.configs
    this.features = parts.features
    this.nextProducerId = parts.nextProducerId
  }
}

export class PersistentCluster implements ClusterImage {
  readonly byId: PersistentMap<BrokerId, BrokerImage>
  readonly controllersById: PersistentMap<BrokerId, ControllerImage>
  #sorted: readonly BrokerImage[] | undefined

  constructor(byId: PersistentMap<BrokerId, BrokerImage>, controllersById: PersistentMap<BrokerId, ControllerImage>) {
    this.byId = byId
    this.controllersById = controllersById
  }

  get size(): number {
    return this.byId.size
  }

  broker(brokerId: BrokerId): BrokerImage | undefined {
    return this.byId.get(brokerId)
  }

  /** Sorted once for each image that has other brokers: a cluster has few, and they rarely change. */
  brokers(): readonly BrokerImage[] {
    this.#sorted ??= [...this.byId.values()].sort((a, b) => a.brokerId - b.brokerId)
    return this.#sorted
  }

  controllers(): readonly ControllerImage[] {
    return [...this.controllersById.values()].sort((a, b) => a.controllerId - b.controllerId)
  }
}

export class PersistentTopics implements TopicsImage {
  readonly topicsById: PersistentMap<Uuid, TopicImage>
  readonly idsByName: PersistentMap<string, Uuid>
  /** Names that hold '.' or '_', by `normalizedTopicName`; sorted: the order must not tell how the image came to be. */
  readonly namesByNormalized: PersistentMap<string, readonly string[]>
  readonly replicasByBroker: PersistentMap<BrokerId, ReplicaCounts>

  constructor(parts: Pick<PersistentTopics, 'topicsById' | 'idsByName' | 'namesByNormalized' | 'replicasByBroker'>) {
    this.topicsById = parts.topicsById
    this.idsByName = parts.idsByName
    this.namesByNormalized = parts.namesByNormalized
    this.replicasByBroker = parts.replicasByBroker
  }

  get size(): number {
    return this.topicsById.size
  }

  byName(name: string): TopicImage | undefined {
    const topicId = this.idsByName.get(name)
    return topicId === undefined ? undefined : this.topicsById.get(topicId)
  }

  byId(topicId: Uuid): TopicImage | undefined {
    return this.topicsById.get(topicId)
  }

  all(): Iterable<TopicImage> {
    return this.topicsById.values()
  }

  *onBroker(brokerId: BrokerId): Generator<TopicImage> {
    for (const topicId of this.replicasByBroker.get(brokerId)?.keys() ?? []) {
      const topic = this.topicsById.get(topicId)
      assert(topic !== undefined, 'a broker has replicas of topics that exist')
      yield topic
    }
  }

  ledBy(brokerId: BrokerId): { topic: TopicImage; partition: PartitionImage }[] {
    const led = []
    for (const topic of this.onBroker(brokerId)) {
      for (const partition of topic.partitions) if (partition.leader === brokerId) led.push({ topic, partition })
    }
    return led
  }

  collidingWith(name: string): string | undefined {
    if (!hasCollisionCharacters(name)) return undefined
    return this.namesByNormalized.get(normalizedTopicName(name))?.find((other) => other !== name)
  }
}

export class PersistentConfigs implements ConfigsImage {
  /** By `resourceKey`; never an empty map. */
  readonly byResource: PersistentMap<string, ReadonlyMap<string, string>>

  constructor(byResource: PersistentMap<string, ReadonlyMap<string, string>>) {
    this.byResource = byResource
  }

  of(resourceType: 'topic' | 'broker', resourceName: string): ReadonlyMap<string, string> {
    return this.byResource.get(resourceKey(resourceType, resourceName)) ?? noConfigs
  }
}

const noConfigs: ReadonlyMap<string, string> = new Map()

export function resourceKey(resourceType: 'topic' | 'broker', resourceName: string): string {
  return `${resourceType}:${resourceName}`
}

export function resourceOfKey(key: string): { resourceType: 'topic' | 'broker'; resourceName: string } {
  const colon = key.indexOf(':')
  return { resourceType: key.slice(0, colon) === 'topic' ? 'topic' : 'broker', resourceName: key.slice(colon + 1) }
}

export function hasCollisionCharacters(name: string): boolean {
  return name.includes('.') || name.includes('_')
}

export function normalizedTopicName(name: string): string {
  return name.replaceAll('.', '_')
}

/** Before the first entry. */
export const emptyImage: PersistentImage = new PersistentImage({
  index: 0,
  term: 0,
  clusterId: '',
  cluster: new PersistentCluster(PersistentMap.empty(), PersistentMap.empty()),
  topics: new PersistentTopics({
    topicsById: PersistentMap.empty(),
    idsByName: PersistentMap.empty(),
    namesByNormalized: PersistentMap.empty(),
    replicasByBroker: PersistentMap.empty(),
  }),
  configs: new PersistentConfigs(PersistentMap.empty()),
  features: new Map(),
  nextProducerId: 0 as ProducerId,
})
