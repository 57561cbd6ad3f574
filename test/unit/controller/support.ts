import type { BrokerEpoch, BrokerId } from '../../../src/base/index.ts'
import type { ConfigRules, ControllerSettings } from '../../../src/controller/index.ts'
import { clusterStart } from '../../../src/controller/index.ts'
import type { MetadataImage, MetadataRecord, PartitionImage } from '../../../src/metadata/index.ts'
import { imageOf, uuid } from '../metadata/support.ts'

export const settings: ControllerSettings = {
  defaultPartitionCount: 1,
  defaultReplicationFactor: 1,
  topicDeletionEnabled: true,
  defaultMinInSyncReplicas: 1,
  uncleanLeaderElectionEnabled: false,
  nodeId: 1 as BrokerId,
  growingTopics: new Map(),
  fixedTopics: new Set(['__consumer_offsets']),
}

export const anyConfig: ConfigRules = {
  topicFault: () => undefined,
  brokerFault: () => undefined,
  listDefault: (_resourceType, key) => (key === 'cleanup.policy' ? ['delete'] : undefined),
}

/** The features of a new cluster, and a min.insync.replicas for all of its topics. */
export function clusterRecords(minInSyncReplicas = 1): MetadataRecord[] {
  return clusterStart(imageOf(), 'a-cluster', { ...settings, defaultMinInSyncReplicas: minInSyncReplicas })
}

/** One PartitionChange of 'orders', whose id is `uuid(1)`. */
export function ordersChange(partition: number, fields: Partial<PartitionChange>): MetadataRecord {
  return { type: 'PartitionChange', topicId: uuid(1), partition, ...fields }
}

export const fencing = (id: number, fenced: boolean): MetadataRecord => ({
  type: 'BrokerRegistrationChange',
  brokerId: id as BrokerId,
  brokerEpoch: 1 as BrokerEpoch,
  fenced,
})

/** A partition of 'orders' in the image. */
export function orders(image: MetadataImage, partition = 0): PartitionImage {
  return image.topics.byName('orders')!.partitions[partition]!
}

type PartitionChange = Extract<MetadataRecord, { type: 'PartitionChange' }>
