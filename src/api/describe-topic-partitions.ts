import { zeroUuid } from '../base/index.ts'
import type { TopicImage } from '../metadata/index.ts'
import {
  apis,
  type DescribeTopicPartitionsRequest,
  type DescribeTopicPartitionsResponse,
  ErrorCode,
  type MessageInput,
} from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { topicOperations } from './authorized-operations.ts'
import { liveEndpoints } from './endpoints.ts'
import { partitionAnswer } from './partition-answer.ts'
import { isInternalTopic, isLegalTopicName } from './topic-names.ts'

/**
 * DescribeTopicPartitions, 0.
 *
 * Metadata in pieces: topics sorted by name, at most as many partitions as the client and `max.request.partition.size.limit`
 * allow, and a cursor where to go on. No topics asked is all of them; then those that went meanwhile are left out, while one
 * that was named and isn't there is an error. A cursor is at one of the topics that were named.
 *
 * Eligible leader replicas are those that left the ISR with all that was acknowledged; the last known one is the last leader of
 * a partition that has none. An ISR here is never empty, where Kafka's last member moves to them.
 */
export const describeTopicPartitions = defineApi({
  api: apis.DescribeTopicPartitions,
  versions: { min: 0, max: 0 },
  handle(request, context) {
    if (!isCursorValid(request)) return { body: refused(request, ErrorCode.INVALID_REQUEST) }
    return { body: answer(request, context) }
  },
  fault: refused,
})

function isCursorValid({ cursor, topics }: DescribeTopicPartitionsRequest): boolean {
  if (cursor === null) return true
  return cursor.partitionIndex >= 0 && (topics.length === 0 || topics.some(({ name }) => name === cursor.topicName))
}

type Body = MessageInput<typeof DescribeTopicPartitionsResponse>
type TopicAnswer = Body['topics'][number]

function answer(request: DescribeTopicPartitionsRequest, context: RequestContext): Body {
  const { coordination, config } = context.services
  const { cursor } = request
  const reachable = new Set(liveEndpoints(context).map(({ nodeId }) => nodeId))
  const isNamed = request.topics.length > 0
  const topics: TopicAnswer[] = []
  let left = Math.max(1, Math.min(request.responsePartitionLimit, config.values.maxRequestPartitionSizeLimit))
  for (const name of askedNames(request, context)) {
    if (left === 0) return { topics, nextCursor: { topicName: name, partitionIndex: 0 } }
    const topic = coordination.image.topics.byName(name)
    const first = cursor !== null && name === cursor.topicName ? cursor.partitionIndex : 0
    if (topic === undefined) {
      if (isNamed) topics.push(missingTopic(name))
      continue
    }
    const end = Math.min(topic.partitions.length, first + left)
    topics.push({
      ...topicAnswer(topic, ErrorCode.NONE),
      partitions: topic.partitions.slice(first, end).map((partition) => ({
        ...partitionAnswer(partition, reachable, context, true),
        eligibleLeaderReplicas: partition.elr,
        lastKnownElr: partition.lastKnownElr,
      })),
    })
    if (end < topic.partitions.length) return { topics, nextCursor: { topicName: name, partitionIndex: end } }
    left -= Math.max(0, end - first)
  }
  return { topics }
}

/** Sorted, each once, from the cursor's topic on. */
function askedNames({ topics, cursor }: DescribeTopicPartitionsRequest, context: RequestContext): readonly string[] {
  const { image } = context.services.coordination
  const named = topics.length > 0 ? topics : image.topics.all()
  const names = new Set<string>()
  for (const { name } of named) if (cursor === null || name >= cursor.topicName) names.add(name)
  return [...names].sort()
}

function topicAnswer({ name, topicId }: Pick<TopicImage, 'name' | 'topicId'>, errorCode: ErrorCode): TopicAnswer {
  return {
    errorCode,
    name,
    topicId,
    isInternal: isInternalTopic(name),
    partitions: [],
    topicAuthorizedOperations: topicOperations,
  }
}

function missingTopic(name: string): TopicAnswer {
  const errorCode = isLegalTopicName(name) ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION : ErrorCode.INVALID_TOPIC_EXCEPTION
  return topicAnswer({ name, topicId: zeroUuid }, errorCode)
}

function refused(request: DescribeTopicPartitionsRequest, errorCode: ErrorCode): Body {
  return { topics: request.topics.map(({ name }) => ({ errorCode, name, topicId: zeroUuid, partitions: [] })) }
}
