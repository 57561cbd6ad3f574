import type { BrokerId } from '../base/index.ts'
import type { MetadataImage, MetadataRecord, TopicImage } from '../metadata/index.ts'
import { type ControllerSettings, maxRecordsPerRequest } from './decision.ts'
import { isActive, knowsSeveralBrokers, PartitionRules } from './partition-change.ts'
import { placePartitions } from './placement.ts'
import { isReassigned, plannedReassignment } from './reassignment-plan.ts'

/** So many replicas may lose one and still have this many in sync. */
const minInSyncOfThree = 2

/**
 * Gives topics that a small cluster made with few replicas (`settings.growingTopics`) more of them, as far as there are
 * active brokers now: reassignments that only add. When all of such a topic's partitions have three or more, it also gets a
 * min.insync.replicas of 2, unless it has one of its own or of 2 already. Never takes anything away, nothing while a reassignment of the
 * topic runs, and at most as much as one request may change. To be asked whenever a broker is unfenced or a reassignment
 * ends; asked again, it goes on.
 */
export function growInternalTopics(image: MetadataImage, settings: ControllerSettings): MetadataRecord[] {
  if (!knowsSeveralBrokers(image)) return []
  const activeCount = [...image.cluster.brokers()].filter(({ brokerId }) => isActive(image, brokerId)).length
  const records: MetadataRecord[] = []
  for (const [name, factor] of settings.growingTopics) {
    const topic = image.topics.byName(name)
    if (topic === undefined || topic.partitions.some(isReassigned)) continue
    const more = addedReplicas(image, topic, Math.min(factor, activeCount), settings)
    records.push(...(more.length > 0 ? more : raisedMinInSync(image, topic, settings)))
  }
  return records.slice(0, maxRecordsPerRequest)
}

function addedReplicas(
  image: MetadataImage,
  topic: TopicImage,
  factor: number,
  settings: ControllerSettings,
): MetadataRecord[] {
  if (topic.partitions.every(({ replicas }) => replicas.length >= factor)) return []
  const placement = placePartitions(image, topic.partitions.length, factor, 0)
  if (!placement.ok) return []
  const rules = new PartitionRules(image, settings)
  const records: MetadataRecord[] = []
  for (const partition of topic.partitions) {
    if (partition.replicas.length >= factor) continue
    const target = withAll(placement.replicas[partition.partition] ?? [], partition.replicas)
    const change = rules.change(topic, partition, plannedReassignment(partition.replicas, target))
    if (change !== undefined) records.push(change)
  }
  return records
}

/** `placed` with each of `replicas` in it, in the place of others from the end. The first place is the preferred leader's. */
function withAll(placed: readonly BrokerId[], replicas: readonly BrokerId[]): BrokerId[] {
  const target = [...placed]
  for (const missing of replicas.filter((brokerId) => !placed.includes(brokerId))) {
    target[target.findLastIndex((brokerId) => !replicas.includes(brokerId))] = missing
  }
  return target
}

/** Only ever raised: lowered, it would change who is eligible. */
function raisedMinInSync(
  image: MetadataImage,
  { name, partitions }: TopicImage,
  settings: ControllerSettings,
): MetadataRecord[] {
  const key = 'min.insync.replicas'
  const hasThree = partitions.every(({ replicas, isr }) => replicas.length >= 3 && isr.length >= minInSyncOfThree)
  if (!hasThree || image.configs.of('topic', name).has(key)) return []
  const current = Number(image.configs.of('broker', '').get(key) ?? settings.defaultMinInSyncReplicas)
  if (current >= minInSyncOfThree) return []
  return [{ type: 'Config', resourceType: 'topic', resourceName: name, key, value: `${minInSyncOfThree}` }]
}
