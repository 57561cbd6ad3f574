import type { BrokerId } from '../base/index.ts'
import { describeTopicConfig } from '../config/index.ts'
import type { CreateTopicRequest, CreateTopicResult } from '../coordination/index.ts'
import {
  apis,
  type CreateTopicsRequest,
  type CreateTopicsResponse,
  ErrorCode,
  type MessageInput,
} from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { errorCodeOf, errorMessageOf } from './errors.ts'
import { metadataTopic } from './topic-names.ts'

/**
 * CreateTopics, 2 to 7.
 *
 *   5  flexible; the answer has partitions, replication factor and every setting of the topic     7  topic id
 *
 * Any broker takes it. -1 partitions or replicas are the broker's default. A name that stands twice in a request is refused,
 * and the other topics are created. The answer comes when this broker knows the topics.
 */
export const createTopics = defineApi({
  api: apis.CreateTopics,
  versions: { min: 2, max: 7 },
  async handle(request, context) {
    const refused = new Map<string, { errorCode: ErrorCode; message: string }>()
    const wanted: CreateTopicRequest[] = []
    const seen = new Set<string>()
    for (const topic of request.topics) {
      if (seen.has(topic.name)) {
        refused.set(topic.name, {
          errorCode: ErrorCode.INVALID_REQUEST,
          message: 'The topic stands twice in the request',
        })
      }
      seen.add(topic.name)
      if (isAssignedTwice(topic)) {
        const message = 'A partition stands twice in the assignment'
        refused.set(topic.name, { errorCode: ErrorCode.INVALID_REPLICA_ASSIGNMENT, message })
      }
      const message = faultOf(topic)
      if (message !== undefined) refused.set(topic.name, { errorCode: ErrorCode.INVALID_REQUEST, message })
    }
    for (const topic of request.topics) if (!refused.has(topic.name)) wanted.push(createRequest(topic))
    const { timeoutMs, validateOnly } = request
    const results =
      wanted.length === 0
        ? []
        : await context.services.coordination.admin.createTopics(wanted, {
            timeoutMs: Math.max(0, timeoutMs),
            validateOnly,
          })
    const topics: TopicAnswer[] = results.map((result, i) => topicAnswer(result, wanted[i]!, context))
    for (const [name, { errorCode, message }] of refused) topics.push(refusedTopic(name, errorCode, message))
    return { body: { throttleTimeMs: 0, topics } }
  },
  fault: (request, errorCode) => ({
    throttleTimeMs: 0,
    topics: request.topics.map(({ name }) => refusedTopic(name, errorCode, errorMessageOf(errorCode))),
  }),
})

type AskedTopic = CreateTopicsRequest['topics'][number]
type TopicAnswer = MessageInput<typeof CreateTopicsResponse>['topics'][number]

function faultOf({ name, assignments, numPartitions, replicationFactor }: AskedTopic): string | undefined {
  if (name === metadataTopic) return `Topic ${metadataTopic} can not be created`
  if (assignments.length > 0 && (numPartitions !== -1 || replicationFactor !== -1)) {
    return 'Partitions and replication factor must be -1 where replicas are assigned'
  }
  return undefined
}

function isAssignedTwice({ assignments }: AskedTopic): boolean {
  return new Set(assignments.map(({ partitionIndex }) => partitionIndex)).size < assignments.length
}

function createRequest({
  name,
  numPartitions,
  replicationFactor,
  assignments,
  configs,
}: AskedTopic): CreateTopicRequest {
  return {
    name,
    partitionCount: numPartitions,
    replicationFactor,
    configs: new Map(configs.map((config) => [config.name, config.value])),
    ...(assignments.length === 0
      ? {}
      : {
          assignments: new Map(
            assignments.map(({ partitionIndex, brokerIds }) => [partitionIndex, brokerIds as readonly BrokerId[]]),
          ),
        }),
  }
}

function topicAnswer(result: CreateTopicResult, asked: CreateTopicRequest, context: RequestContext): TopicAnswer {
  if (!result.ok) return refusedTopic(result.name, errorCodeOf(result.reason), result.message)
  const { name, topicId, partitionCount, replicationFactor } = result
  return {
    name,
    topicId,
    errorCode: ErrorCode.NONE,
    errorMessage: null,
    numPartitions: partitionCount,
    replicationFactor,
    configs: context.apiVersion >= 5 ? settingsOf(asked, context) : [],
  }
}

function settingsOf({ configs }: CreateTopicRequest, context: RequestContext) {
  const overrides = new Map([...configs].filter((entry): entry is [string, string] => entry[1] !== null))
  const { dynamicConfig, coordination } = context.services
  return describeTopicConfig(overrides, dynamicConfig.at(coordination.image.configs)).map((setting) => ({
    name: setting.name,
    value: setting.value,
    readOnly: setting.readOnly,
    configSource: setting.source,
    isSensitive: setting.sensitive,
  }))
}

function refusedTopic(name: string, errorCode: ErrorCode, errorMessage: string | null): TopicAnswer {
  return { name, errorCode, errorMessage }
}
