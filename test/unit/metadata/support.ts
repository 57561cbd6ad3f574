import type { BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, Uuid } from '../../../src/base/index.ts'
import { uuidFromBytes } from '../../../src/base/index.ts'
import {
  emptyImage,
  type MetadataDelta,
  MetadataDeltaBuilder,
  type MetadataImage,
  type MetadataRecord,
} from '../../../src/metadata/index.ts'

/** A UUID that `number` names. */
export function uuid(number: number): Uuid {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(number, 12)
  bytes[6] = 0x40
  return uuidFromBytes(bytes)
}

export const brokerId = (id: number) => id as BrokerId
export const brokerIds = (...ids: number[]) => ids as BrokerId[]
export const brokerEpoch = (epoch: number) => epoch as BrokerEpoch

export function registration(id: number, options: { epoch?: number; fenced?: boolean; rack?: string } = {}) {
  return {
    type: 'RegisterBroker',
    brokerId: brokerId(id),
    incarnationId: uuid(1000 + id),
    brokerEpoch: brokerEpoch(options.epoch ?? 1),
    endpoints: [{ name: 'PLAINTEXT', host: 'localhost', port: 9092 + id, securityProtocol: 'PLAINTEXT' }],
    rack: options.rack ?? null,
    logDirs: [uuid(2000 + id)],
    fenced: options.fenced ?? false,
  } as const satisfies MetadataRecord
}

export function topicRecords(name: string, topicId: Uuid, replicas: readonly (readonly number[])[]): MetadataRecord[] {
  return [
    { type: 'Topic', name, topicId },
    ...replicas.map((ids, partition) => ({
      type: 'Partition' as const,
      topicId,
      partition,
      replicas: ids as BrokerId[],
      isr: ids as BrokerId[],
      leader: (ids[0] ?? -1) as BrokerId,
      leaderEpoch: 0 as LeaderEpoch,
      partitionEpoch: 0 as PartitionEpoch,
    })),
  ]
}

export function step(base: MetadataImage, records: Iterable<MetadataRecord>, index = base.index + 1) {
  const builder = new MetadataDeltaBuilder(base)
  for (const record of records) builder.replay(record)
  return builder.finish(index, 1)
}

export function imageOf(...records: MetadataRecord[]): MetadataImage {
  return step(emptyImage, records).image
}

/** All that an image says, in an order of its own: two images are equal when these are. */
export function describeImage(image: MetadataImage) {
  const topics = [...image.topics.all()].sort((a, b) => (a.name < b.name ? -1 : 1))
  const brokers = [...image.cluster.brokers()]
  const resources = [
    ...topics.map((topic) => ['topic', topic.name] as const),
    ...[-1, ...Array(10).keys()].map((id) => ['broker', id === -1 ? '' : `${id}`] as const),
  ]
  return {
    index: image.index,
    term: image.term,
    clusterId: image.clusterId,
    features: [...image.features].sort(),
    nextProducerId: image.nextProducerId,
    brokers,
    topics,
    byName: topics.map((topic) => image.topics.byName(topic.name)?.topicId),
    byId: topics.map((topic) => image.topics.byId(topic.topicId)?.name),
    colliding: topics.map((topic) => image.topics.collidingWith(topic.name.replace('.', '_').replace('_', '.'))),
    onBrokers: [...Array(10).keys()].map((id) =>
      [...image.topics.onBroker(brokerId(id))].map((topic) => topic.name).sort(),
    ),
    configs: resources.map(([type, name]) => [type, name, [...image.configs.of(type, name)].sort()]),
  }
}

export function describeDelta(delta: MetadataDelta) {
  return {
    isSnapshot: delta.isSnapshot,
    changedTopics: Object.fromEntries(
      [...delta.changedTopics.values()].map(({ topic, partitions }) => [topic.name, [...partitions].sort()]),
    ),
    deletedTopics: [...delta.deletedTopics.values()].map((topic) => topic.name).sort(),
    changedBrokers: [...delta.changedBrokers].sort(),
    changedConfigs: {
      topics: [...delta.changedConfigs.topics].sort(),
      brokers: [...delta.changedConfigs.brokers].sort(),
    },
  }
}
