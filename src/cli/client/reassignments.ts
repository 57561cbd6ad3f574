import { apis } from '../../protocol/index.ts'
import type { Cluster } from './cluster.ts'
import { expectNoError, RequestRefusedError } from './errors.ts'

export interface PartitionName {
  readonly topic: string
  readonly partition: number
}

export interface ReassignmentChange extends PartitionName {
  /** Null cancels the one that runs. */
  readonly replicas: readonly number[] | null
}

/** What became of one partition. */
export interface PartitionOutcome extends PartitionName {
  readonly error: RequestRefusedError | undefined
}

/** A reassignment that runs. */
export interface OngoingReassignment extends PartitionName {
  readonly replicas: readonly number[]
  readonly adding: readonly number[]
  readonly removing: readonly number[]
}

/** Begins or cancels each by itself. Throws `RequestRefusedError` when none was looked at. */
export async function alterReassignments(
  cluster: Cluster,
  changes: readonly ReassignmentChange[],
): Promise<readonly PartitionOutcome[]> {
  const connection = await cluster.controller()
  const topics = [...grouped(changes)].map(([name, partitions]) => ({
    name,
    partitions: partitions.map(({ partition, replicas }) => ({ partitionIndex: partition, replicas })),
  }))
  const request = { topics, timeoutMs: cluster.timeoutMs }
  const answer = await connection.call(apis.AlterPartitionReassignments, request, patience(cluster))
  expectNoError('Reassignments', answer.errorCode, answer.errorMessage)
  return answer.responses.flatMap(({ name, partitions }) =>
    partitions.map(({ partitionIndex, errorCode, errorMessage }) =>
      outcome({ topic: name, partition: partitionIndex }, errorCode, errorMessage),
    ),
  )
}

/** Those that run; of all topics when none are named. */
export async function listReassignments(cluster: Cluster): Promise<readonly OngoingReassignment[]> {
  const connection = await cluster.controller()
  const request = { topics: null, timeoutMs: cluster.timeoutMs }
  const answer = await connection.call(apis.ListPartitionReassignments, request, patience(cluster))
  expectNoError('Reassignments', answer.errorCode, answer.errorMessage)
  return answer.topics.flatMap(({ name, partitions }) =>
    partitions.map(({ partitionIndex, replicas, addingReplicas, removingReplicas }) => ({
      topic: name,
      partition: partitionIndex,
      replicas,
      adding: addingReplicas,
      removing: removingReplicas,
    })),
  )
}

/** Elects leaders of `partitions`; null is all that need it, and only those are in the outcome. */
export async function electLeaders(
  cluster: Cluster,
  electionType: 'preferred' | 'unclean',
  partitions: readonly PartitionName[] | null,
): Promise<readonly PartitionOutcome[]> {
  const connection = await cluster.controller()
  const topicPartitions =
    partitions === null
      ? null
      : [...grouped(partitions)].map(([topic, named]) => ({
          topic,
          partitions: named.map(({ partition }) => partition),
        }))
  const request = { electionType: electionType === 'preferred' ? 0 : 1, topicPartitions, timeoutMs: cluster.timeoutMs }
  const answer = await connection.call(apis.ElectLeaders, request, patience(cluster))
  expectNoError('Election', answer.errorCode)
  return answer.replicaElectionResults.flatMap(({ topic, partitionResult }) =>
    partitionResult.map(({ partitionId, errorCode, errorMessage }) =>
      outcome({ topic, partition: partitionId }, errorCode, errorMessage),
    ),
  )
}

function grouped<Named extends PartitionName>(partitions: readonly Named[]): Map<string, Named[]> {
  const topics = new Map<string, Named[]>()
  for (const each of partitions) {
    const known = topics.get(each.topic)
    if (known === undefined) topics.set(each.topic, [each])
    else known.push(each)
  }
  return topics
}

function outcome(name: PartitionName, errorCode: number, message: string | null): PartitionOutcome {
  const what = `Partition ${name.topic}-${name.partition}`
  return { ...name, error: errorCode === 0 ? undefined : new RequestRefusedError(what, errorCode, message) }
}

/** The broker gives up before this does. */
function patience({ timeoutMs }: Cluster) {
  return { timeoutMs: timeoutMs + 1000 }
}
