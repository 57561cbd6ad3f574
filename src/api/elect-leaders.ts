import type { ElectLeaderResult } from '../coordination/index.ts'
import {
  apis,
  type ElectLeadersRequest,
  type ElectLeadersResponse,
  ErrorCode,
  type MessageInput,
} from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { byTopic } from './by-topic.ts'
import { errorCodeOf, errorMessageOf } from './errors.ts'

/**
 * ElectLeaders, 0 to 2.
 *
 *   1  the kind of election, an error of the whole     2  flexible
 *
 * Any broker takes it. Each partition is elected by itself. Null is all partitions: those that have the right leader already are
 * then left out of the answer, and when they are named they are ELECTION_NOT_NEEDED.
 */
export const electLeaders = defineApi({
  api: apis.ElectLeaders,
  versions: { min: 0, max: 2 },
  async handle(request, context) {
    const { electionType, topicPartitions } = request
    if (topicPartitions?.length === 0) {
      return { body: { ...top(ErrorCode.NONE, context.apiVersion), replicaElectionResults: [] } }
    }
    // Version 0 has preferred ones only, which read as 0.
    const type = electionTypes[electionType]
    if (type === undefined) {
      return {
        body: refused(request, ErrorCode.INVALID_REQUEST, context.apiVersion, `Unknown election type ${electionType}`),
      }
    }
    const partitions =
      topicPartitions?.flatMap(({ topic, partitions }) => partitions.map((partition) => ({ topic, partition }))) ?? null
    const options = { timeoutMs: Math.max(0, request.timeoutMs) }
    const results = await context.services.coordination.admin.electLeaders({ electionType: type, partitions }, options)
    return { body: { ...top(ErrorCode.NONE, context.apiVersion), replicaElectionResults: answersTo(request, results) } }
  },
  fault: (request, errorCode, apiVersion) => refused(request, errorCode, apiVersion, errorMessageOf(errorCode)),
})

const electionTypes: Readonly<Record<number, 'preferred' | 'unclean'>> = { 0: 'preferred', 1: 'unclean' }

type Body = MessageInput<typeof ElectLeadersResponse>
type PartitionAnswer = Body['replicaElectionResults'][number]['partitionResult'][number]

/** A topic that was named is in the answer, also with no partitions. */
function answersTo({ topicPartitions }: ElectLeadersRequest, results: readonly ElectLeaderResult[]) {
  const answers = byTopic(results, ({ topic }) => topic, answer)
  for (const { topic } of topicPartitions ?? []) if (!answers.has(topic)) answers.set(topic, [])
  return [...answers].map(([topic, partitionResult]) => ({ topic, partitionResult }))
}

function answer(result: ElectLeaderResult): PartitionAnswer {
  const partitionId = result.partition
  if (result.ok) return { partitionId, errorCode: ErrorCode.NONE, errorMessage: null }
  return { partitionId, errorCode: errorCodeOf(result.reason), errorMessage: result.message }
}

function refused(
  { topicPartitions }: ElectLeadersRequest,
  errorCode: ErrorCode,
  apiVersion: number,
  errorMessage: string | null,
): Body {
  const replicaElectionResults = (topicPartitions ?? []).map(({ topic, partitions }) => ({
    topic,
    partitionResult: partitions.map((partitionId) => ({ partitionId, errorCode, errorMessage })),
  }))
  return { ...top(errorCode, apiVersion), replicaElectionResults }
}

function top(errorCode: ErrorCode, apiVersion: number) {
  return apiVersion >= 1 ? { errorCode } : {}
}
