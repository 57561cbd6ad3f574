import type { BrokerId } from '../base/index.ts'
import type { ReassignmentRequest, ReassignmentResult } from '../coordination/index.ts'
import {
  type AlterPartitionReassignmentsRequest,
  type AlterPartitionReassignmentsResponse,
  apis,
  ErrorCode,
  type MessageInput,
} from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorCodeOf, errorMessageOf } from './errors.ts'

/**
 * AlterPartitionReassignments, 0 to 1.
 *
 *   1  the client says whether the number of replicas may change
 *
 * Any broker takes it; it answers when the reassignments have begun, not when they are done. Replicas of null cancel the one that
 * runs. What is the assignment already is no error. Followers copy at full speed: `*.replication.throttled.*` is not built.
 */
export const alterPartitionReassignments = defineApi({
  api: apis.AlterPartitionReassignments,
  versions: { min: 0, max: 1 },
  async handle(request, context) {
    if (request.topics.length === 0) {
      return { body: { ...top(request, ErrorCode.NONE, context.apiVersion), errorMessage: '', responses: [] } }
    }
    const requests = request.topics.flatMap(({ name, partitions }) =>
      partitions.map(
        ({ partitionIndex, replicas }): ReassignmentRequest => ({
          topic: name,
          partition: partitionIndex,
          replicas: replicas as readonly BrokerId[] | null,
        }),
      ),
    )
    const { allowReplicationFactorChange } = request
    const options = { timeoutMs: Math.max(0, request.timeoutMs) }
    const { admin } = context.services.coordination
    const results = await admin.alterPartitionReassignments({ requests, allowReplicationFactorChange }, options)
    let next = 0
    return {
      body: {
        ...top(request, ErrorCode.NONE, context.apiVersion),
        responses: request.topics.map(({ name, partitions }) => ({
          name,
          partitions: partitions.map(({ partitionIndex }) => answer(partitionIndex, results[next++]!)),
        })),
      },
    }
  },
  fault: (request, errorCode, apiVersion) => ({
    ...top(request, errorCode, apiVersion),
    responses: request.topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex }) => ({
        partitionIndex,
        errorCode,
        errorMessage: errorMessageOf(errorCode),
      })),
    })),
  }),
})

type Body = MessageInput<typeof AlterPartitionReassignmentsResponse>
type PartitionAnswer = Body['responses'][number]['partitions'][number]

function answer(partitionIndex: number, result: ReassignmentResult): PartitionAnswer {
  if (result.ok) return { partitionIndex, errorCode: ErrorCode.NONE, errorMessage: null }
  return { partitionIndex, errorCode: errorCodeOf(result.reason), errorMessage: result.message }
}

function top(
  { allowReplicationFactorChange }: AlterPartitionReassignmentsRequest,
  errorCode: ErrorCode,
  apiVersion: number,
) {
  const echo = apiVersion >= 1 ? { allowReplicationFactorChange } : {}
  return { ...echo, errorCode, errorMessage: errorMessageOf(errorCode) }
}
