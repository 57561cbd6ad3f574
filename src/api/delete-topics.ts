import { type Uuid, zeroUuid } from '../base/index.ts'
import type { DeleteTopicRequest, DeleteTopicResult } from '../coordination/index.ts'
import {
  apis,
  type DeleteTopicsRequest,
  type DeleteTopicsResponse,
  ErrorCode,
  type MessageInput,
} from '../protocol/index.ts'
import { defineApi } from './api.ts'
import { errorCodeOf, errorMessageOf } from './errors.ts'

/**
 * DeleteTopics, 1 to 6.
 *
 *   4  flexible     5  error messages     6  by name or by id
 *
 * Any broker takes it. A topic that is named twice, or both by name and by id, is refused, in one answer,
 * and the others are deleted.
 */
export const deleteTopics = defineApi({
  api: apis.DeleteTopics,
  versions: { min: 1, max: 6 },
  async handle(request, context) {
    const { coordination } = context.services
    const asked = askedTopics(request, context.apiVersion)
    const names = asked.map(({ name, topicId }) => name ?? coordination.image.topics.byId(topicId)?.name ?? topicId)
    const namings = Map.groupBy(asked, (_, i) => names[i]!)
    const isRefused = asked.map(
      ({ name, topicId }, i) => (name === null) === (topicId === zeroUuid) || namings.get(names[i]!)!.length > 1,
    )
    const wanted = asked.filter((_, i) => !isRefused[i]).map(deleteRequest)
    const options = { timeoutMs: Math.max(0, request.timeoutMs) }
    const results = wanted.length === 0 ? [] : await coordination.admin.deleteTopics(wanted, options)
    let next = 0
    const responses = asked.flatMap((topic, i) => {
      if (!isRefused[i]) return topicAnswer(topic, results[next++]!, context.apiVersion)
      const all = namings.get(names[i]!)!
      if (all[0] !== topic) return [] // told at the first
      const name = all.find((each) => each.name !== null)?.name ?? null
      const topicId = all.find((each) => each.topicId !== zeroUuid)?.topicId ?? zeroUuid
      const message = 'A topic is named once, by its name or by its id'
      return refusedTopic({ name, topicId }, ErrorCode.INVALID_REQUEST, message)
    })
    return { body: { responses } }
  },
  fault: (request, errorCode, apiVersion) => ({
    responses: askedTopics(request, apiVersion).map((topic) =>
      refusedTopic(topic, errorCode, errorMessageOf(errorCode)),
    ),
  }),
})

interface AskedTopic {
  readonly name: string | null
  readonly topicId: Uuid
}
type TopicAnswer = MessageInput<typeof DeleteTopicsResponse>['responses'][number]

function askedTopics(request: DeleteTopicsRequest, apiVersion: number): readonly AskedTopic[] {
  return apiVersion >= 6 ? request.topics : request.topicNames.map((name) => ({ name, topicId: zeroUuid }))
}

function deleteRequest({ name, topicId }: AskedTopic): DeleteTopicRequest {
  return name === null ? { topicId } : { name }
}

function topicAnswer(asked: AskedTopic, result: DeleteTopicResult, apiVersion: number): TopicAnswer {
  if (result.ok) return { name: result.name, topicId: result.topicId, errorCode: ErrorCode.NONE }
  const errorCode = errorCodeOf(result.reason)
  // A client of that age doesn't know the code.
  const isTooNew = errorCode === ErrorCode.TOPIC_DELETION_DISABLED && apiVersion < 3
  return refusedTopic(asked, isTooNew ? ErrorCode.INVALID_REQUEST : errorCode, result.message)
}

function refusedTopic({ name, topicId }: AskedTopic, errorCode: ErrorCode, errorMessage: string | null): TopicAnswer {
  return { name, topicId, errorCode, errorMessage }
}
