import type { BrokerId } from '../base/index.ts'
import type { MetadataImage, MetadataRecord, TopicImage } from '../metadata/index.ts'
import { assignmentFault, partitionRecords } from './assignment.ts'
import { type ControllerSettings, type Decision, maxRecordsPerRequest } from './decision.ts'
import { placePartitions } from './placement.ts'
import type { CreatePartitionsRequest, CreatePartitionsResult } from './requests.ts'

export interface CreatePartitionsContext {
  readonly settings: ControllerSettings
  /** Check everything, change nothing. */
  readonly validateOnly: boolean
  /** Where in the ring of brokers the first new leader goes; any whole number of 0 or more, best a random one. */
  readonly placementStart: number
}

type Refusal = Extract<CreatePartitionsResult, { ok: false }>
type Replicas = { readonly ok: true; readonly replicas: readonly (readonly BrokerId[])[] } | Refusal

/**
 * Gives topics further partitions, with as many replicas as their first one has. Checks in Kafka's order: topic, count,
 * assignment. Each topic by itself; one that is named twice is refused both times.
 */
export function createPartitions(
  image: MetadataImage,
  requests: readonly CreatePartitionsRequest[],
  context: CreatePartitionsContext,
): Decision<readonly CreatePartitionsResult[]> {
  const counts = new Map<string, number>()
  for (const { name } of requests) counts.set(name, (counts.get(name) ?? 0) + 1)
  const records: MetadataRecord[] = []
  const response = requests.map((request): CreatePartitionsResult => {
    const { name } = request
    if (counts.get(name) !== 1) return refuse(name, 'invalid-request', `Topic ${name} is in the request twice`)
    const topic = image.topics.byName(name)
    if (topic === undefined) return refuse(name, 'unknown-topic', `Topic ${JSON.stringify(name)} does not exist`)
    const refusal = countRefusal(topic, request, context.settings)
    if (refusal !== undefined) return refusal
    const additional = request.totalCount - topic.partitions.length
    if (additional > maxRecordsPerRequest - records.length) {
      const message = `The request asks for more than ${maxRecordsPerRequest} new partitions at once`
      return refuse(name, 'policy-violation', message)
    }
    const placed = replicasOf(image, topic, request, context.placementStart + records.length)
    if (!placed.ok) return placed
    records.push(...partitionRecords(image, topic.topicId, topic.partitions.length, placed.replicas))
    return { ok: true, name }
  })
  return { records: context.validateOnly ? [] : records, response }
}

function countRefusal(
  { partitions }: TopicImage,
  { name, totalCount, assignments }: CreatePartitionsRequest,
  settings: ControllerSettings,
): Refusal | undefined {
  const present = partitions.length
  if (totalCount === present) return refuse(name, 'invalid-partitions', `Topic already has ${present} partition(s)`)
  if (totalCount < present) {
    const message = `Topic ${name} has ${present} partition(s); ${totalCount} would not be an increase`
    return refuse(name, 'invalid-partitions', message)
  }
  const additional = totalCount - present
  if (assignments !== undefined && assignments.length !== additional) {
    const message = `Replicas are assigned for ${assignments.length} partition(s), where ${additional} would be added`
    return refuse(name, 'invalid-replica-assignment', message)
  }
  if (!settings.fixedTopics.has(name)) return undefined
  const message = `Topic ${name} keeps its ${present} partitions: where state lies in it is computed from their number`
  return refuse(name, 'invalid-partitions', message)
}

function replicasOf(
  image: MetadataImage,
  { partitions }: TopicImage,
  { name, totalCount, assignments }: CreatePartitionsRequest,
  start: number,
): Replicas {
  const factor = partitions[0]!.replicas.length - partitions[0]!.removingReplicas.length
  if (assignments === undefined) {
    const placement = placePartitions(image, totalCount - partitions.length, factor, start)
    return placement.ok ? placement : refuse(name, 'invalid-replication-factor', placement.message)
  }
  for (const [i, replicas] of assignments.entries()) {
    const fault = assignmentFault(image, replicas, factor)
    if (fault === undefined) continue
    return refuse(name, 'invalid-replica-assignment', `Partition ${partitions.length + i}: ${fault}`)
  }
  return { ok: true, replicas: assignments }
}

function refuse(name: string, reason: Refusal['reason'], message: string): Refusal {
  return { ok: false, name, reason, message }
}
