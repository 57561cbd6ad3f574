import type { BrokerId } from '../base/index.ts'
import type { MetadataImage, PartitionImage, TopicImage } from '../metadata/index.ts'
import { assignmentFault } from './assignment.ts'
import { type ControllerSettings, type Decision, maxRecordsPerRequest } from './decision.ts'
import { knowsSeveralBrokers, type PartitionChange, PartitionRules } from './partition-change.ts'
import { isReassigned, plannedReassignment, type ReplicaState, revertedReassignment } from './reassignment-plan.ts'
import type {
  AlterReassignmentsRequest,
  OngoingReassignment,
  ReassignmentRequest,
  ReassignmentResult,
} from './requests.ts'

type Refusal = Extract<ReassignmentResult, { ok: false }>

/**
 * Starts, changes and cancels reassignments (KIP-455), each partition by itself. A reassignment goes in steps: the new
 * replicas join the old ones; when they all are in the ISR (`alterPartition`), those that are not wanted go. Where nobody
 * is added, all of it happens at once.
 */
export function alterPartitionReassignments(
  image: MetadataImage,
  { requests, allowReplicationFactorChange }: AlterReassignmentsRequest,
  settings: ControllerSettings,
): Decision<readonly ReassignmentResult[]> {
  if (!knowsSeveralBrokers(image)) {
    const refusal = refuse('unsupported-version', 'The cluster is at a metadata.version without reassignments')
    return { records: [], response: requests.map(() => refusal) }
  }
  if (requests.length > maxRecordsPerRequest) {
    const refusal = refuse(
      'invalid-request',
      `The request asks for more than ${maxRecordsPerRequest} partitions at once`,
    )
    return { records: [], response: requests.map(() => refusal) }
  }
  const rules = new PartitionRules(image, settings)
  const counts = new Map<string, number>()
  for (const { topic, partition } of requests) {
    const key = `${topic}-${partition}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  const records: PartitionChange[] = []
  const response = requests.map((request): ReassignmentResult => {
    const key = `${request.topic}-${request.partition}`
    if ((counts.get(key) ?? 0) > 1) return refuse('invalid-request', `Partition ${key} is in the request twice`)
    const topic = image.topics.byName(request.topic)
    const partition = topic?.partitions[request.partition]
    if (topic === undefined || partition === undefined) {
      return refuse('unknown-partition', `There is no partition ${key}`)
    }
    const planned =
      request.replicas === null
        ? cancellation(rules, topic, partition)
        : reassignment(image, rules, topic, partition, request.replicas, allowReplicationFactorChange)
    if ('ok' in planned) return planned
    if (planned.change !== undefined) records.push(planned.change)
    return { ok: true }
  })
  return { records, response }
}

/** Undefined: it is so already. */
type Planned = { readonly change: PartitionChange | undefined } | Refusal

function reassignment(
  image: MetadataImage,
  rules: PartitionRules,
  topic: TopicImage,
  partition: PartitionImage,
  target: NonNullable<ReassignmentRequest['replicas']>,
  allowReplicationFactorChange: boolean,
): Planned {
  const fault = assignmentFault(image, target, undefined)
  if (fault !== undefined) return refuse('invalid-replica-assignment', `Partition ${partition.partition}: ${fault}`)
  const factor = partition.replicas.length - partition.addingReplicas.length
  if (!allowReplicationFactorChange && target.length !== factor) {
    const message = `The replication factor would change from ${factor} to ${target.length}`
    return refuse('invalid-replication-factor', message)
  }
  return { change: rules.change(topic, partition, replanned(partition, target)) }
}

/**
 * From the replicas before any reassignment to `target`. What a running one added and this one doesn't want goes at once,
 * so that to cancel leads back to where it all began; it stays till the end where nobody else is in sync.
 */
function replanned(partition: PartitionImage, target: readonly BrokerId[]): ReplicaState {
  const { isr, replicas, addingReplicas } = partition
  const plan = plannedReassignment(
    replicas.filter((brokerId) => !addingReplicas.includes(brokerId)),
    target,
  )
  const isrWithoutDropped = isr.filter((brokerId) => plan.replicas.includes(brokerId))
  if (isrWithoutDropped.length > 0) return { ...plan, isr: isrWithoutDropped }
  return { ...plannedReassignment(replicas, target), addingReplicas: plan.addingReplicas, isr }
}

function cancellation(rules: PartitionRules, topic: TopicImage, partition: PartitionImage): Planned {
  if (!isReassigned(partition)) {
    return refuse('no-reassignment-in-progress', 'No reassignment of the partition is in progress')
  }
  const reverted = revertedReassignment(partition)
  if (reverted.isr.length > 0) return { change: rules.change(topic, partition, reverted) }
  const eligible = partition.elr.filter((brokerId) => reverted.replicas.includes(brokerId))
  if (eligible.length > 0) return { change: rules.change(topic, partition, { ...reverted, isr: eligible.slice(0, 1) }) }
  const first = reverted.replicas[0]
  if (first === undefined || !rules.uncleanElection(topic.name)) {
    const message =
      'The assignment can only be reverted by an election that may lose records, and the topic forbids those'
    return refuse('invalid-replica-assignment', message)
  }
  const isr: BrokerId[] = [first]
  return { change: rules.change(topic, partition, { ...reverted, isr, leaderRecoveryState: 'recovering' }) }
}

/** Those that run: of all topics when `partitions` is null, which costs a walk over all partitions. */
export function listPartitionReassignments(
  image: MetadataImage,
  partitions: readonly { readonly topic: string; readonly partition: number }[] | null,
): OngoingReassignment[] {
  const found: OngoingReassignment[] = []
  const add = (topic: string, { partition, replicas, addingReplicas, removingReplicas }: PartitionImage) =>
    found.push({ topic, partition, replicas, addingReplicas, removingReplicas })
  if (partitions === null) {
    for (const { name, partitions } of image.topics.all()) {
      for (const partition of partitions) if (isReassigned(partition)) add(name, partition)
    }
    return found
  }
  for (const { topic, partition: index } of partitions) {
    const partition = image.topics.byName(topic)?.partitions[index]
    if (partition !== undefined && isReassigned(partition)) add(topic, partition)
  }
  return found
}

function refuse(reason: Refusal['reason'], message: string): Refusal {
  return { ok: false, reason, message }
}
