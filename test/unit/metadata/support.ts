import fc from 'fast-check'
import type { BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, ProducerId, Uuid } from '../../../src/base/index.ts'
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
    controllers: [...image.cluster.controllers()],
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

/** Raw material of a random record. */
export interface Draw {
  readonly kind: number
  readonly a: number
  readonly b: number
  readonly flag: boolean
}

/** The record that `draw` stands for in `image`: always one that may follow there. */
function recordFor(image: MetadataImage, { kind, a, b, flag }: Draw): MetadataRecord {
  const brokers = [...image.cluster.brokers()]
  const topics = [...image.topics.all()].sort((x, y) => (x.topicId < y.topicId ? -1 : 1))
  const topic = topics[a % Math.max(topics.length, 1)]
  const broker = brokers[a % Math.max(brokers.length, 1)]
  const replicas = brokerIds(b % 5, (b + 1) % 5, (b + 2) % 5).slice(0, 1 + (a % 3))
  switch (kind % 12) {
    case 0:
      return { type: 'FeatureLevel', name: `feature-${a % 3}`, level: b % 3 }
    case 1:
      return image.clusterId === '' ? { type: 'ClusterId', clusterId: `cluster-${a}` } : { type: 'NoOp' }
    case 2: {
      const before = image.cluster.broker(brokerId(a % 5))
      const epoch = before === undefined ? image.index + 1 : before.brokerEpoch + (flag ? 0 : 1)
      const features = flag ? { features: [{ name: `feature-${b % 3}`, minLevel: 0, maxLevel: b }] } : {}
      return { ...registration(a % 5, { epoch, fenced: b % 2 === 0, rack: `r${b % 3}` }), ...features }
    }
    case 3:
      return broker === undefined ? { type: 'NoOp' } : { type: 'UnregisterBroker', ...run(broker) }
    case 4:
      if (broker === undefined) return { type: 'NoOp' }
      return {
        type: 'BrokerRegistrationChange',
        ...run(broker),
        ...(flag ? { fenced: b % 2 === 0 } : { inControlledShutdown: b % 2 === 0 }),
        ...(b % 3 === 0 ? { logDirs: [uuid(b)] } : {}),
      }
    case 5: {
      const name = ['a.b', 'a_b', 'plain', 'x.y_z', 'x_y.z', 'x_y_z', 'other'][a % 7] as string
      const exists = image.topics.byName(name) !== undefined
      return exists ? { type: 'NoOp' } : { type: 'Topic', name, topicId: uuid(image.index + 1) }
    }
    case 6:
      if (topic === undefined) return { type: 'NoOp' }
      return {
        type: 'Partition',
        topicId: topic.topicId,
        partition: topic.partitions.length,
        replicas,
        isr: replicas,
        leader: replicas[0] as BrokerId,
        leaderEpoch: (b % 4) as LeaderEpoch,
        partitionEpoch: (b % 6) as PartitionEpoch,
        ...replicaFields(replicas, a, b, flag),
      }
    case 7:
      if (topic === undefined || topic.partitions.length === 0) return { type: 'NoOp' }
      return {
        type: 'PartitionChange',
        topicId: topic.topicId,
        partition: b % topic.partitions.length,
        ...(flag ? { replicas, isr: replicas } : {}),
        ...(b % 2 === 0 ? { leader: brokerId((a % 6) - 1) } : {}),
        ...replicaFields(flag ? replicas : brokerIds(1, 2), a, b, b % 5 === 0),
      }
    case 8:
      return topic === undefined ? { type: 'NoOp' } : { type: 'RemoveTopic', topicId: topic.topicId }
    case 9: {
      const resourceName = flag ? topic?.name : ['', '1', '2'][a % 3]
      if (resourceName === undefined) return { type: 'NoOp' }
      const value = b % 3 === 0 ? null : `v${b}`
      return { type: 'Config', resourceType: flag ? 'topic' : 'broker', resourceName, key: `k${b % 4}`, value }
    }
    case 10:
      return {
        type: 'RegisterController',
        controllerId: brokerId(a % 4),
        incarnationId: uuid(b),
        endpoints: registration(a % 4).endpoints,
        features: [{ name: 'metadata.version', minLevel: 1, maxLevel: 1 + (b % 2) }],
      }
    default:
      return {
        type: 'ProducerIds',
        brokerId: brokerId(1),
        brokerEpoch: brokerEpoch(1),
        nextProducerId: (image.nextProducerId + b) as ProducerId,
      }
  }
}

/** Some of what only reassigned, recovering or assigned replicas have, also when it is empty again. */
function replicaFields(replicas: readonly BrokerId[], a: number, b: number, flag: boolean) {
  return {
    ...(flag ? { addingReplicas: replicas.slice(0, a % 3), removingReplicas: replicas.slice(0, b % 2) } : {}),
    ...(b % 4 === 1 ? { elr: replicas.slice(0, a % 2), lastKnownElr: replicas.slice(0, b % 3) } : {}),
    ...(a % 4 === 1 ? { leaderRecoveryState: flag ? ('recovering' as const) : ('recovered' as const) } : {}),
    ...(a % 5 === 1 ? { directories: replicas.map((id) => uuid(2000 + id)) } : {}),
  }
}

function run({ brokerId, brokerEpoch }: { brokerId: BrokerId; brokerEpoch: BrokerEpoch }) {
  return { brokerId, brokerEpoch }
}

export const draws = fc.array(fc.record({ kind: fc.nat(11), a: fc.nat(50), b: fc.nat(50), flag: fc.boolean() }), {
  maxLength: 120,
})

/** The records of `list`, and the images after each. */
export function replayDraws(list: readonly Draw[]): { records: MetadataRecord[]; images: MetadataImage[] } {
  const images: MetadataImage[] = [emptyImage]
  const records = list.map((draw) => {
    const record = recordFor(images.at(-1) as MetadataImage, draw)
    images.push(step(images.at(-1) as MetadataImage, [record]).image)
    return record
  })
  return { records, images }
}
