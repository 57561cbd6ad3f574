import type { BrokerId, Uuid } from '../base/index.ts'
import type { MetadataImage, MetadataRecord } from '../metadata/index.ts'
import { assignmentFault, partitionRecords } from './assignment.ts'
import { type ConfigRules, type ControllerSettings, type Decision, maxRecordsPerRequest } from './decision.ts'
import { placePartitions } from './placement.ts'
import type { CreateTopicRefusal, CreateTopicRequest, CreateTopicResult } from './requests.ts'
import { topicNameFault } from './topic-name.ts'

export interface CreateTopicsContext {
  readonly settings: ControllerSettings
  readonly configRules: ConfigRules
  /** Check everything, change nothing. */
  readonly validateOnly: boolean
  /** A fresh id for each request, in order. */
  readonly topicIds: readonly Uuid[]
  /** Where in the ring of brokers the first topic's first leader goes; any whole number of 0 or more, best a random one. */
  readonly placementStart: number
}

interface Refusal {
  readonly ok: false
  readonly reason: CreateTopicRefusal
  readonly message: string
}

type Replicas = { readonly ok: true; readonly replicas: readonly (readonly BrokerId[])[] } | Refusal

/**
 * Checks in Kafka's order, so that a request with several faults gets the answer that Kafka gives: duplicates, name, existence,
 * counts or assignment, placement; configs before counts. Each topic is created whole or refused by itself; only a request
 * that is too large as a whole is refused as a whole.
 */
export function createTopics(
  image: MetadataImage,
  requests: readonly CreateTopicRequest[],
  context: CreateTopicsContext,
): Decision<readonly CreateTopicResult[]> {
  if (recordCount(requests, context.settings) > maxRecordsPerRequest) {
    const message = `The request asks for more than ${maxRecordsPerRequest} topics, partitions and configs at once`
    const results = requests.map(({ name }) => ({ ok: false, name, reason: 'policy-violation', message }) as const)
    return { records: [], response: results }
  }
  const names = new Names(image, requests)
  const records: MetadataRecord[] = []
  const response = requests.map((request, i): CreateTopicResult => {
    const { name } = request
    const topicId = context.topicIds[i] as Uuid
    const refusal = names.refusalOf(name) ?? configRefusal(request, context.configRules)
    const placed = refusal ?? replicasOf(image, request, context.settings, context.placementStart + i)
    if (!placed.ok) return { ...placed, name }
    records.push(...topicRecords(image, request, topicId, placed.replicas))
    const replicationFactor = placed.replicas[0]?.length ?? 0
    return { ok: true, name, topicId, partitionCount: placed.replicas.length, replicationFactor }
  })
  return { records: context.validateOnly ? [] : records, response }
}

/** Of what the requests claim, before anything of that size is made. */
function recordCount(requests: readonly CreateTopicRequest[], settings: ControllerSettings): number {
  let count = 0
  for (const { partitionCount, assignments, configs } of requests) {
    const partitions = partitionCount === -1 ? settings.defaultPartitionCount : Math.max(partitionCount, 0)
    count += 1 + configs.size + (assignments === undefined ? partitions : assignments.size)
  }
  return count
}

/** Which names are free. */
class Names {
  readonly #image: MetadataImage
  readonly #counts = new Map<string, number>()

  constructor(image: MetadataImage, requests: readonly CreateTopicRequest[]) {
    this.#image = image
    for (const { name } of requests) this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  refusalOf(name: string): Refusal | undefined {
    if ((this.#counts.get(name) ?? 0) > 1) return refuse('invalid-request', `Topic ${name} is in the request twice`)
    const fault = topicNameFault(name)
    if (fault !== undefined) return refuse('invalid-topic', fault)
    if (this.#image.topics.byName(name) !== undefined) return refuse('topic-exists', `Topic ${name} already exists`)
    // Two new names of one request may collide, as in Kafka: it is only metrics that they share.
    const other = this.#image.topics.collidingWith(name)
    if (other === undefined) return undefined
    return refuse('invalid-topic', `Topic ${name} collides with ${other}: '.' and '_' are the same in metrics`)
  }
}

function configRefusal({ configs }: CreateTopicRequest, rules: ConfigRules): Refusal | undefined {
  const fault = rules.topicFault(configs)
  return fault === undefined ? undefined : refuse('invalid-config', fault.message)
}

function replicasOf(
  image: MetadataImage,
  request: CreateTopicRequest,
  settings: ControllerSettings,
  start: number,
): Replicas {
  const { partitionCount, replicationFactor, assignments } = request
  if (assignments !== undefined && assignments.size > 0) {
    if (replicationFactor !== -1)
      return refuse('invalid-request', 'With an assignment the replication factor must be -1')
    if (partitionCount !== -1)
      return refuse('invalid-request', 'With an assignment the number of partitions must be -1')
    return assignedReplicas(image, assignments)
  }
  if (replicationFactor < -1 || replicationFactor === 0) {
    return refuse('invalid-replication-factor', `Replication factor ${replicationFactor}: allowed is 1 or more, or -1`)
  }
  if (partitionCount < -1 || partitionCount === 0) {
    return refuse('invalid-partitions', `Number of partitions ${partitionCount}: allowed is 1 or more, or -1`)
  }
  const partitions = partitionCount === -1 ? settings.defaultPartitionCount : partitionCount
  const factor = replicationFactor === -1 ? settings.defaultReplicationFactor : replicationFactor
  const placement = placePartitions(image, partitions, factor, start)
  return placement.ok ? placement : refuse('invalid-replication-factor', placement.message)
}

function assignedReplicas(image: MetadataImage, assignments: ReadonlyMap<number, readonly BrokerId[]>): Replicas {
  let factor: number | undefined
  for (const [partition, replicas] of assignments) {
    const fault = assignmentFault(image, replicas, factor)
    if (fault !== undefined) return refuse('invalid-replica-assignment', `Partition ${partition}: ${fault}`)
    factor = replicas.length
  }
  const replicas = []
  for (let partition = 0; partition < assignments.size; partition++) {
    const assigned = assignments.get(partition)
    if (assigned === undefined) {
      return refuse(
        'invalid-replica-assignment',
        `Partitions must be numbered from 0 without gaps; ${partition} is missing`,
      )
    }
    replicas.push(assigned)
  }
  return { ok: true, replicas }
}

function topicRecords(
  image: MetadataImage,
  { name, configs }: CreateTopicRequest,
  topicId: Uuid,
  replicasByPartition: readonly (readonly BrokerId[])[],
): MetadataRecord[] {
  const records: MetadataRecord[] = [{ type: 'Topic', name, topicId }]
  for (const [key, value] of configs) {
    records.push({ type: 'Config', resourceType: 'topic', resourceName: name, key, value })
  }
  records.push(...partitionRecords(image, topicId, 0, replicasByPartition))
  return records
}

function refuse(reason: CreateTopicRefusal, message: string): Refusal {
  return { ok: false, reason, message }
}
