import { assert, type BrokerEpoch, type BrokerId, type Uuid } from '../base/index.ts'
import type { ChangedTopic, MetadataDelta } from './delta.ts'
import { MetadataDeltaBuilder } from './delta-builder.ts'
import type { BrokerImage, MetadataImage, PartitionImage, TopicImage } from './image.ts'
import { emptyImage, PersistentImage, resourceOfKey } from './persistent-image.ts'
import { type MetadataRecord, metadataVersion } from './records.ts'

/**
 * Records that make `image` from nothing. Lazy: the image is immutable, so the caller may take them a chunk at a time, in
 * many turns of the event loop. `metadata.version` is first, so that a reader knows at once whether it can go on.
 */
export function* snapshotRecords(image: MetadataImage): Generator<MetadataRecord> {
  assert(image instanceof PersistentImage, 'an image is made by a delta builder')
  const names = [...image.features.keys()].filter((name) => name !== metadataVersion.feature)
  for (const name of image.features.has(metadataVersion.feature) ? [metadataVersion.feature, ...names] : names) {
    yield { type: 'FeatureLevel', name, level: image.features.get(name) ?? 0 }
  }
  if (image.clusterId !== '') yield { type: 'ClusterId', clusterId: image.clusterId }
  for (const broker of image.cluster.brokers()) yield* brokerRecords(broker)
  for (const controller of image.cluster.controllers()) yield { type: 'RegisterController', ...controller }
  for (const topic of image.topics.all()) yield* topicRecords(topic)
  for (const [key, configs] of image.configs.byResource.entries()) {
    const resource = resourceOfKey(key)
    for (const [name, value] of configs) yield { type: 'Config', ...resource, key: name, value }
  }
  if (image.nextProducerId > 0) {
    yield {
      type: 'ProducerIds',
      brokerId: -1 as BrokerId,
      brokerEpoch: -1 as BrokerEpoch,
      nextProducerId: image.nextProducerId,
    }
  }
}

/** The image that a snapshot's records, taken after entry `index` of `term`, add up to. */
export function imageOfSnapshot(records: Iterable<MetadataRecord>, index: number, term: number): MetadataImage {
  const builder = new MetadataDeltaBuilder(emptyImage)
  for (const record of records) builder.replay(record)
  return builder.finish(index, term).image
}

/** What differs between `base` and an image that came from a snapshot. Costs a walk over both. */
export function snapshotDelta(base: MetadataImage, image: MetadataImage): MetadataDelta {
  assert(base instanceof PersistentImage && image instanceof PersistentImage, 'an image is made by a delta builder')
  const changedConfigs = { topics: new Set<string>(), brokers: new Set<string>() }
  for (const configs of [base.configs, image.configs]) {
    for (const key of configs.byResource.keys()) {
      if (sameMap(base.configs.byResource.get(key), image.configs.byResource.get(key))) continue
      const { resourceType, resourceName } = resourceOfKey(key)
      changedConfigs[resourceType === 'topic' ? 'topics' : 'brokers'].add(resourceName)
    }
  }
  const brokers = [...base.cluster.brokers(), ...image.cluster.brokers()].map((broker) => broker.brokerId)
  return {
    base,
    isSnapshot: true,
    changedTopics: changedTopics(base, image),
    deletedTopics: deletedTopics(base, image),
    changedBrokers: new Set(brokers.filter((id) => !sameBroker(base.cluster.broker(id), image.cluster.broker(id)))),
    changedConfigs,
  }
}

function* brokerRecords(broker: BrokerImage): Generator<MetadataRecord> {
  const { features, inControlledShutdown, ...registration } = broker
  const { brokerId, brokerEpoch } = broker
  yield { type: 'RegisterBroker', ...registration, ...(features.length === 0 ? {} : { features }) }
  if (inControlledShutdown) yield { type: 'BrokerRegistrationChange', brokerId, brokerEpoch, inControlledShutdown }
}

function* topicRecords({ name, topicId, partitions }: TopicImage): Generator<MetadataRecord> {
  yield { type: 'Topic', name, topicId }
  for (const partition of partitions) yield partitionRecord(topicId, partition)
}

/** Without what is empty: a partition of one quiet replica takes as few bytes as ever. */
function partitionRecord(topicId: Uuid, partition: PartitionImage): MetadataRecord {
  const { addingReplicas, removingReplicas, elr, lastKnownElr, leaderRecoveryState, directories, ...plain } = partition
  return {
    type: 'Partition',
    topicId,
    ...plain,
    ...(addingReplicas.length === 0 ? {} : { addingReplicas }),
    ...(removingReplicas.length === 0 ? {} : { removingReplicas }),
    ...(elr.length === 0 ? {} : { elr }),
    ...(lastKnownElr.length === 0 ? {} : { lastKnownElr }),
    ...(leaderRecoveryState === 'recovered' ? {} : { leaderRecoveryState }),
    ...(directories.length === 0 ? {} : { directories }),
  }
}

function changedTopics(base: MetadataImage, image: MetadataImage): Map<Uuid, ChangedTopic> {
  const changed = new Map<Uuid, ChangedTopic>()
  for (const topic of image.topics.all()) {
    const before = base.topics.byId(topic.topicId)
    const partitions = new Set<number>()
    for (const { partition, partitionEpoch } of topic.partitions) {
      if (before?.partitions[partition]?.partitionEpoch !== partitionEpoch) partitions.add(partition)
    }
    if (before === undefined || partitions.size > 0) changed.set(topic.topicId, { topic, partitions })
  }
  return changed
}

function deletedTopics(base: MetadataImage, image: MetadataImage): Map<Uuid, TopicImage> {
  const deleted = new Map<Uuid, TopicImage>()
  for (const topic of base.topics.all()) {
    if (image.topics.byId(topic.topicId) === undefined) deleted.set(topic.topicId, topic)
  }
  return deleted
}

/** By their records: a registration is the same when the same records make it. */
function sameBroker(a: BrokerImage | undefined, b: BrokerImage | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return JSON.stringify([...brokerRecords(a)]) === JSON.stringify([...brokerRecords(b)])
}

function sameMap(a: ReadonlyMap<string, string> | undefined, b: ReadonlyMap<string, string> | undefined): boolean {
  if (a === undefined || b === undefined || a.size !== b.size) return a === b
  for (const [key, value] of a) if (b.get(key) !== value) return false
  return true
}
