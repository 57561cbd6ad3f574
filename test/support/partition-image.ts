import type { ProducerId } from '../../src/base/index.ts'
import type { MetadataDelta, MetadataImage, PartitionImage, TopicImage } from '../../src/metadata/index.ts'

/** The part of a partition that nothing happens to: no reassignment, no replica outside the ISR that may lead. */
export const settledReplicas: Pick<
  PartitionImage,
  'addingReplicas' | 'removingReplicas' | 'elr' | 'lastKnownElr' | 'leaderRecoveryState' | 'directories'
> = {
  addingReplicas: [],
  removingReplicas: [],
  elr: [],
  lastKnownElr: [],
  leaderRecoveryState: 'recovered',
  directories: [],
}

/** An image of these topics, and of nothing else. */
export function imageOfTopics(topics: readonly TopicImage[]): MetadataImage {
  return {
    index: 1,
    term: 1,
    cluster: { size: 0, broker: () => undefined, brokers: () => [], controllers: () => [] },
    topics: {
      size: topics.length,
      byName: (name) => topics.find((topic) => topic.name === name),
      byId: (id) => topics.find((topic) => topic.topicId === id),
      all: () => topics,
      onBroker: () => [],
      ledBy: () => [],
      collidingWith: () => undefined,
    },
    configs: { of: () => new Map() },
    clusterId: '',
    features: new Map(),
    nextProducerId: 0 as ProducerId,
  }
}

/** A step from `base` in which nothing changes but `changes`. */
export function deltaOn(base: MetadataImage, changes: Partial<MetadataDelta>): MetadataDelta {
  return {
    base,
    isSnapshot: false,
    changedTopics: new Map(),
    deletedTopics: new Map(),
    changedBrokers: new Set(),
    changedConfigs: { topics: new Set(), brokers: new Set() },
    ...changes,
  }
}
