import type { TopicImage } from '../metadata/index.ts'
import {
  apis,
  ErrorCode,
  type MessageInput,
  type OffsetCommitRequest,
  type OffsetCommitResponse,
} from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { errorCodeOf } from './errors.ts'

/**
 * OffsetCommit, 2 to 10.
 *
 *   2 to 4  retention of the commit's own     7  static members     9  GROUP_ID_NOT_FOUND for an unknown group
 *   6       leader epochs                     8  flexible           10  topics by id
 *
 * Trips clients: partitions that don't exist are refused one by one, the others are committed. Metadata and leader epoch come
 * back from OffsetFetch as they were. The answer waits until the commit is stored.
 */
export const offsetCommit = defineApi({
  api: apis.OffsetCommit,
  versions: { min: 2, max: 10 },
  brief: true,
  async handle(request, context) {
    const { apiVersion, services } = context
    if (request.topics.reduce((sum, { partitions }) => sum + partitions.length, 0) > maxCommitted) {
      return { body: faultAnswer(request, ErrorCode.INVALID_COMMIT_OFFSET_SIZE) }
    }
    const topics = request.topics.map((asked) => ({ asked, topic: topicOf(asked, context) }))
    const known = topics.flatMap(({ asked, topic }) => {
      const partitions = topic === undefined ? [] : asked.partitions.filter((each) => exists(topic, each))
      return topic === undefined || partitions.length === 0 ? [] : [commitTopic(topic, partitions)]
    })
    if (known.length === 0) return { body: answer(topics, () => ErrorCode.NONE, apiVersion) }
    const { groupId, memberId, groupInstanceId, generationIdOrMemberEpoch, retentionTimeMs } = request
    const committed = await services.groups.offsetCommit({
      groupId,
      memberId,
      groupInstanceId,
      generationId: generationIdOrMemberEpoch,
      retentionTimeMs,
      reportsUnknownGroup: apiVersion >= 9,
      topics: known,
    })
    if (!committed.ok) {
      const errorCode = errorCodeOf(committed.reason)
      return { body: answer(topics, () => errorCode, apiVersion) }
    }
    // In the order asked, without the partitions that were left out here.
    const outcomes = committed.topics.flatMap(({ partitions }) => partitions).values()
    const nextCode = () => {
      const { reason } = outcomes.next().value!
      return reason === null ? ErrorCode.NONE : errorCodeOf(reason)
    }
    return { body: answer(topics, nextCode, apiVersion) }
  },
  fault: faultAnswer,
})

/** All offsets of a commit are one batch, and so many never fit into one. */
const maxCommitted = 100_000

type AskedTopic = OffsetCommitRequest['topics'][number]
type AskedPartition = AskedTopic['partitions'][number]

function topicOf({ name, topicId }: AskedTopic, { apiVersion, services }: RequestContext): TopicImage | undefined {
  const { topics } = services.coordination.image
  return apiVersion >= 10 ? topics.byId(topicId) : topics.byName(name)
}

function exists(topic: TopicImage, { partitionIndex }: AskedPartition): boolean {
  return topic.partitions[partitionIndex] !== undefined
}

function commitTopic({ name, topicId }: TopicImage, partitions: readonly AskedPartition[]) {
  return {
    topic: name,
    topicId,
    partitions: partitions.map(({ partitionIndex, committedOffset, committedLeaderEpoch, committedMetadata }) => ({
      partition: partitionIndex,
      offset: committedOffset,
      leaderEpoch: committedLeaderEpoch,
      metadata: committedMetadata,
    })),
  }
}

/** `codeOfKnown` is called once for each partition that exists, in their order. */
function answer(
  topics: readonly { readonly asked: AskedTopic; readonly topic: TopicImage | undefined }[],
  codeOfKnown: () => ErrorCode,
  apiVersion: number,
): MessageInput<typeof OffsetCommitResponse> {
  const unknownTopic = apiVersion >= 10 ? ErrorCode.UNKNOWN_TOPIC_ID : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
  return {
    topics: topics.map(({ asked, topic }) => ({
      name: asked.name,
      topicId: asked.topicId,
      partitions: asked.partitions.map((partition) => {
        const { partitionIndex } = partition
        if (topic === undefined) return { partitionIndex, errorCode: unknownTopic }
        const isKnown = exists(topic, partition)
        return { partitionIndex, errorCode: isKnown ? codeOfKnown() : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION }
      }),
    })),
  }
}

function faultAnswer(request: OffsetCommitRequest, errorCode: ErrorCode): MessageInput<typeof OffsetCommitResponse> {
  return {
    topics: request.topics.map(({ name, topicId, partitions }) => ({
      name,
      topicId,
      partitions: partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode })),
    })),
  }
}
