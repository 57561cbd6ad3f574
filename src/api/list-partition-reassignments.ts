import { apis, ErrorCode } from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { byTopic } from './by-topic.ts'
import { errorMessageOf } from './errors.ts'

/**
 * ListPartitionReassignments, 0.
 *
 * Those that run: of all topics for null. A partition that is named and not reassigned, or not there, is left out. Any broker
 * takes it and asks the controller: what one broker was told to begin, another knows of.
 */
export const listPartitionReassignments = defineApi({
  api: apis.ListPartitionReassignments,
  versions: { min: 0, max: 0 },
  async handle({ topics, timeoutMs }, context) {
    const asked =
      topics?.flatMap(({ name, partitionIndexes }) =>
        [...new Set(partitionIndexes)].map((partition) => ({ topic: name, partition })),
      ) ?? null
    const options = { timeoutMs: Math.max(0, timeoutMs) }
    const ongoing = await context.services.coordination.admin.listPartitionReassignments(asked, options)
    const answers = byTopic(
      ongoing,
      ({ topic }) => topic,
      ({ partition, replicas, addingReplicas, removingReplicas }) => ({
        partitionIndex: partition,
        replicas,
        addingReplicas,
        removingReplicas,
      }),
    )
    const topicAnswers = [...answers].map(([name, partitions]) => ({ name, partitions }))
    return { body: { errorCode: ErrorCode.NONE, errorMessage: null, topics: topicAnswers } }
  },
  fault: (_request, errorCode) => ({ errorCode, errorMessage: errorMessageOf(errorCode), topics: [] }),
})
