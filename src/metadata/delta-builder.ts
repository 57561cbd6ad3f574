import {
  assert,
  type BrokerEpoch,
  type BrokerId,
  type LeaderEpoch,
  type PartitionEpoch,
  PersistentMap,
  type PersistentMapEdit,
  type ProducerId,
  type Uuid,
  unreachable,
  zeroUuid,
} from '../base/index.ts'
import type { ChangedTopic, MetadataDelta } from './delta.ts'
import {
  type BrokerImage,
  type ControllerImage,
  directoryOf,
  type MetadataImage,
  type PartitionImage,
  type TopicImage,
} from './image.ts'
import {
  hasCollisionCharacters,
  normalizedTopicName,
  PersistentCluster,
  PersistentConfigs,
  PersistentImage,
  PersistentTopics,
  type ReplicaCounts,
  resourceKey,
} from './persistent-image.ts'
import type { MetadataRecord } from './records.ts'

type RecordOf<Type extends MetadataRecord['type']> = Extract<MetadataRecord, { type: Type }>

/**
 * Replays records on an image, and says what they changed. Many records, of one entry or of several, make one step:
 * what was made and removed within it shows in neither the delta nor the new image.
 *
 * The base stays as it was. Cost: in proportion to the records, and to the partition counts of the topics they touch (a
 * touched topic's partition list is copied once). A record that contradicts the image is a bug of the controller that
 * wrote it and fails an assertion; the builder is of no use after that.
 */
export class MetadataDeltaBuilder {
  readonly #base: PersistentImage
  readonly #brokers: PersistentMapEdit<BrokerId, BrokerImage>
  readonly #controllers: PersistentMapEdit<BrokerId, ControllerImage>
  readonly #configs: PersistentMapEdit<string, ReadonlyMap<string, string>>
  readonly #topicsById: PersistentMapEdit<Uuid, TopicImage>
  readonly #idsByName: PersistentMapEdit<string, Uuid>
  readonly #namesByNormalized: PersistentMapEdit<string, readonly string[]>
  /** Topics that this step made or touched; written to `#topicsById` at the end. */
  readonly #touched = new Map<Uuid, TouchedTopic>()
  readonly #deletedTopics = new Map<Uuid, TopicImage>()
  /** By broker, by topic: how many replicas more (or fewer) there are. */
  readonly #replicaChanges = new Map<BrokerId, Map<Uuid, number>>()
  readonly #changedBrokers = new Set<BrokerId>()
  readonly #changedTopicConfigs = new Set<string>()
  readonly #changedBrokerConfigs = new Set<string>()
  #features: Map<string, number> | undefined
  #clusterId: string
  #nextProducerId: ProducerId

  constructor(base: MetadataImage) {
    assert(base instanceof PersistentImage, 'an image is made by a delta builder')
    this.#base = base
    this.#brokers = base.cluster.byId.edit()
    this.#controllers = base.cluster.controllersById.edit()
    this.#configs = base.configs.byResource.edit()
    this.#topicsById = base.topics.topicsById.edit()
    this.#idsByName = base.topics.idsByName.edit()
    this.#namesByNormalized = base.topics.namesByNormalized.edit()
    this.#clusterId = base.clusterId
    this.#nextProducerId = base.nextProducerId
  }

  replay(record: MetadataRecord): void {
    switch (record.type) {
      case 'FeatureLevel':
        this.#replayFeatureLevel(record)
        break
      case 'ClusterId':
        assert(this.#clusterId === '', 'a cluster gets its id once')
        this.#clusterId = record.clusterId
        break
      case 'RegisterBroker':
        this.#replayRegisterBroker(record)
        break
      case 'RegisterController': {
        const { type: _type, ...controller } = record
        this.#controllers.set(record.controllerId, controller)
        break
      }
      case 'UnregisterBroker':
        this.#registered(record.brokerId, record.brokerEpoch)
        this.#brokers.delete(record.brokerId)
        this.#changedBrokers.add(record.brokerId)
        break
      case 'BrokerRegistrationChange':
        this.#replayBrokerRegistrationChange(record)
        break
      case 'Topic':
        this.#replayTopic(record)
        break
      case 'Partition':
        this.#replayPartition(record)
        break
      case 'PartitionChange':
        this.#replayPartitionChange(record)
        break
      case 'RemoveTopic':
        this.#replayRemoveTopic(record)
        break
      case 'Config':
        this.#replayConfig(record)
        break
      case 'ProducerIds':
        assert(record.nextProducerId >= this.#nextProducerId, 'producer ids never go back')
        this.#nextProducerId = record.nextProducerId
        break
      case 'NoOp':
        break
      default:
        unreachable(record)
    }
  }

  /** The image after entry `index` of `term`, and what changed. Ends the builder. */
  finish(index: number, term: number): { readonly delta: MetadataDelta; readonly image: MetadataImage } {
    for (const topic of this.#touched.values()) {
      this.#topicsById.set(topic.topicId, {
        name: topic.name,
        topicId: topic.topicId,
        partitions: topic.partitions,
      })
    }
    const image = new PersistentImage({
      index,
      term,
      clusterId: this.#clusterId,
      cluster: this.#finishCluster(),
      topics: this.#finishTopics(),
      configs: this.#finishConfigs(),
      features: this.#features ?? this.#base.features,
      nextProducerId: this.#nextProducerId,
    })
    return { image, delta: this.#finishDelta(image) }
  }

  #replayFeatureLevel(record: RecordOf<'FeatureLevel'>): void {
    this.#features ??= new Map(this.#base.features)
    if (record.level === 0) this.#features.delete(record.name)
    else this.#features.set(record.name, record.level)
  }

  #replayRegisterBroker(record: RecordOf<'RegisterBroker'>): void {
    const before = this.#brokers.get(record.brokerId)
    const sameRun = before !== undefined && before.brokerEpoch === record.brokerEpoch
    assert(before === undefined || sameRun || record.brokerEpoch > before.brokerEpoch, 'a broker epoch never goes back')
    this.#setBroker({
      brokerId: record.brokerId,
      incarnationId: record.incarnationId,
      brokerEpoch: record.brokerEpoch,
      endpoints: record.endpoints,
      rack: record.rack,
      logDirs: record.logDirs,
      fenced: record.fenced,
      inControlledShutdown: sameRun && before.inControlledShutdown,
      features: record.features ?? [],
    })
  }

  #replayBrokerRegistrationChange(record: RecordOf<'BrokerRegistrationChange'>): void {
    const before = this.#registered(record.brokerId, record.brokerEpoch)
    this.#setBroker({
      ...before,
      fenced: record.fenced ?? before.fenced,
      inControlledShutdown: record.inControlledShutdown ?? before.inControlledShutdown,
      logDirs: record.logDirs ?? before.logDirs,
    })
  }

  #registered(brokerId: BrokerId, brokerEpoch: BrokerEpoch): BrokerImage {
    const broker = this.#brokers.get(brokerId)
    assert(broker?.brokerEpoch === brokerEpoch, 'a change to a registration names the broker epoch it has')
    return broker
  }

  #setBroker(broker: BrokerImage): void {
    this.#brokers.set(broker.brokerId, broker)
    this.#changedBrokers.add(broker.brokerId)
  }

  #replayTopic(record: RecordOf<'Topic'>): void {
    const { name, topicId } = record
    assert(this.#topic(topicId) === undefined, 'a topic id is used once')
    assert(this.#idsByName.get(name) === undefined, 'a topic name is used once')
    this.#touched.set(topicId, new TouchedTopic(name, topicId, undefined))
    this.#idsByName.set(name, topicId)
    if (hasCollisionCharacters(name)) {
      const normalized = normalizedTopicName(name)
      const names = [...(this.#namesByNormalized.get(normalized) ?? []), name]
      names.sort((a, b) => (a < b ? -1 : 1))
      this.#namesByNormalized.set(normalized, names)
    }
  }

  #replayPartition(record: RecordOf<'Partition'>): void {
    const topic = this.#touch(record.topicId)
    assert(record.partition === topic.partitions.length, 'partitions are added in order')
    topic.set({
      partition: record.partition,
      replicas: record.replicas,
      isr: record.isr,
      leader: record.leader,
      leaderEpoch: record.leaderEpoch,
      partitionEpoch: record.partitionEpoch,
      addingReplicas: record.addingReplicas ?? noBrokers,
      removingReplicas: record.removingReplicas ?? noBrokers,
      elr: record.elr ?? noBrokers,
      lastKnownElr: record.lastKnownElr ?? noBrokers,
      leaderRecoveryState: record.leaderRecoveryState ?? 'recovered',
      directories: record.directories ?? noDirectories,
    })
    this.#countReplicas(record.topicId, record.replicas, 1)
  }

  #replayPartitionChange(record: RecordOf<'PartitionChange'>): void {
    const topic = this.#touch(record.topicId)
    const before = topic.partitions[record.partition]
    assert(before !== undefined, 'a partition that changes exists')
    topic.set({
      partition: record.partition,
      replicas: record.replicas ?? before.replicas,
      isr: record.isr ?? before.isr,
      leader: record.leader ?? before.leader,
      leaderEpoch: (record.leader === undefined ? before.leaderEpoch : before.leaderEpoch + 1) as LeaderEpoch,
      partitionEpoch: (before.partitionEpoch + 1) as PartitionEpoch,
      addingReplicas: record.addingReplicas ?? before.addingReplicas,
      removingReplicas: record.removingReplicas ?? before.removingReplicas,
      elr: record.elr ?? before.elr,
      lastKnownElr: record.lastKnownElr ?? before.lastKnownElr,
      leaderRecoveryState: record.leaderRecoveryState ?? before.leaderRecoveryState,
      directories: record.directories ?? keptDirectories(before, record.replicas),
    })
    if (record.replicas !== undefined) {
      this.#countReplicas(record.topicId, before.replicas, -1)
      this.#countReplicas(record.topicId, record.replicas, 1)
    }
  }

  #replayRemoveTopic(record: RecordOf<'RemoveTopic'>): void {
    const { topicId } = record
    const topic = this.#topic(topicId)
    assert(topic !== undefined, 'a topic that is removed exists')
    for (const { replicas } of topic.partitions) this.#countReplicas(topicId, replicas, -1)
    const inBase = this.#base.topics.byId(topicId)
    if (inBase !== undefined) this.#deletedTopics.set(topicId, inBase)
    this.#touched.delete(topicId)
    this.#topicsById.delete(topicId)
    this.#idsByName.delete(topic.name)
    this.#forgetCollisions(topic.name)
    const configs = resourceKey('topic', topic.name)
    if (this.#configs.get(configs) !== undefined) {
      this.#configs.delete(configs)
      this.#changedTopicConfigs.add(topic.name)
    }
  }

  #forgetCollisions(name: string): void {
    const normalized = normalizedTopicName(name)
    const names = this.#namesByNormalized.get(normalized)?.filter((other) => other !== name)
    if (names === undefined) return
    if (names.length === 0) this.#namesByNormalized.delete(normalized)
    else this.#namesByNormalized.set(normalized, names)
  }

  #replayConfig(record: RecordOf<'Config'>): void {
    const key = resourceKey(record.resourceType, record.resourceName)
    const configs = new Map(this.#configs.get(key))
    if (record.value === null) configs.delete(record.key)
    else configs.set(record.key, record.value)
    if (configs.size === 0) this.#configs.delete(key)
    else this.#configs.set(key, configs)
    const changed = record.resourceType === 'topic' ? this.#changedTopicConfigs : this.#changedBrokerConfigs
    changed.add(record.resourceName)
  }

  #topic(topicId: Uuid): TouchedTopic | TopicImage | undefined {
    return this.#touched.get(topicId) ?? this.#topicsById.get(topicId)
  }

  #touch(topicId: Uuid): TouchedTopic {
    const before = this.#topic(topicId)
    assert(before !== undefined, 'a topic that changes exists')
    if (before instanceof TouchedTopic) return before
    const touched = new TouchedTopic(before.name, topicId, before.partitions)
    this.#touched.set(topicId, touched)
    return touched
  }

  #countReplicas(topicId: Uuid, replicas: readonly BrokerId[], change: 1 | -1): void {
    for (const brokerId of replicas) {
      let changes = this.#replicaChanges.get(brokerId)
      if (changes === undefined) {
        changes = new Map()
        this.#replicaChanges.set(brokerId, changes)
      }
      changes.set(topicId, (changes.get(topicId) ?? 0) + change)
    }
  }

  #finishCluster(): PersistentCluster {
    const byId = this.#brokers.finish()
    const controllersById = this.#controllers.finish()
    const { cluster } = this.#base
    if (byId === cluster.byId && controllersById === cluster.controllersById) return cluster
    return new PersistentCluster(byId, controllersById)
  }

  #finishConfigs(): PersistentConfigs {
    const byResource = this.#configs.finish()
    return byResource === this.#base.configs.byResource ? this.#base.configs : new PersistentConfigs(byResource)
  }

  #finishTopics(): PersistentTopics {
    const topicsById = this.#topicsById.finish()
    if (topicsById === this.#base.topics.topicsById) return this.#base.topics
    const replicasByBroker = this.#base.topics.replicasByBroker.edit()
    for (const [brokerId, changes] of this.#replicaChanges) {
      const counts = addCounts(replicasByBroker.get(brokerId), changes)
      if (counts.size === 0) replicasByBroker.delete(brokerId)
      else replicasByBroker.set(brokerId, counts)
    }
    return new PersistentTopics({
      topicsById,
      idsByName: this.#idsByName.finish(),
      namesByNormalized: this.#namesByNormalized.finish(),
      replicasByBroker: replicasByBroker.finish(),
    })
  }

  #finishDelta(image: PersistentImage): MetadataDelta {
    const changedTopics = new Map<Uuid, ChangedTopic>()
    for (const { topicId, changed } of this.#touched.values()) {
      const topic = image.topics.byId(topicId)
      assert(topic !== undefined, 'a touched topic exists')
      changedTopics.set(topicId, { topic, partitions: changed })
    }
    return {
      base: this.#base,
      isSnapshot: false,
      changedTopics,
      deletedTopics: this.#deletedTopics,
      changedBrokers: this.#changedBrokers,
      changedConfigs: { topics: this.#changedTopicConfigs, brokers: this.#changedBrokerConfigs },
    }
  }
}

/** A topic while records change it. */
class TouchedTopic {
  readonly name: string
  readonly topicId: Uuid
  /** Indexes that are new or changed. */
  readonly changed = new Set<number>()
  readonly partitions: PartitionImage[]

  constructor(name: string, topicId: Uuid, partitions: readonly PartitionImage[] | undefined) {
    this.name = name
    this.topicId = topicId
    this.partitions = partitions?.slice() ?? []
  }

  set(partition: PartitionImage): void {
    this.partitions[partition.partition] = partition
    this.changed.add(partition.partition)
  }
}

const noBrokers: readonly BrokerId[] = []
const noDirectories: readonly Uuid[] = []

function keptDirectories(before: PartitionImage, replicas: readonly BrokerId[] | undefined): readonly Uuid[] {
  if (replicas === undefined || before.directories.length === 0) return before.directories
  const directories = replicas.map((brokerId) => directoryOf(before, brokerId))
  return directories.every((directory) => directory === zeroUuid) ? noDirectories : directories
}

function addCounts(base: ReplicaCounts | undefined, changes: ReadonlyMap<Uuid, number>): ReplicaCounts {
  const counts = (base ?? PersistentMap.empty<Uuid, number>()).edit()
  for (const [topicId, change] of changes) {
    const count = (counts.get(topicId) ?? 0) + change
    assert(count >= 0, 'no broker has fewer than no replicas')
    if (count === 0) counts.delete(topicId)
    else counts.set(topicId, count)
  }
  return counts.finish()
}
