import { type Uuid, zeroUuid } from '../base/index.ts'
import type { OffsetFetchResponse as FetchedGroup, FetchedOffset } from '../group/index.ts'
import {
  apis,
  ErrorCode,
  type MessageInput,
  type OffsetFetchRequest,
  type OffsetFetchResponse,
} from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { distinct } from './distinct.ts'
import { errorCodeOf } from './errors.ts'

/**
 * OffsetFetch, 1 to 10.
 *
 *   2  null is all topics; an error of the group stands at the top (in 1 at every partition)
 *   5  leader epochs     6  flexible     7  only stable offsets     8  many groups     9  member epochs     10  topics by id
 *
 * Trips clients: nothing committed is no error, but offset -1 with metadata ''. Without transactions every offset is stable.
 * Member epochs belong to the newer group protocol; groups here are classic ones, for which they mean nothing.
 */
export const offsetFetch = defineApi({
  api: apis.OffsetFetch,
  versions: { min: 1, max: 10 },
  async handle(request, context) {
    const asked = groupsOf(request, context)
    const fetched = await context.services.groups.offsetFetch(
      asked.map(({ groupId, topics }) => ({ groupId, topics: known(topics) })),
    )
    const { apiVersion } = context
    if (apiVersion < 8) return { body: singleAnswer(asked[0]!, fetched[0]!, apiVersion) }
    return { body: { groups: asked.map((group, i) => groupAnswer(group, fetched[i]!, context)) } }
  },
  fault(request, errorCode, apiVersion) {
    if (apiVersion < 8) return refusedSingle(request.topics, errorCode, apiVersion)
    return { groups: request.groups.map(({ groupId }) => ({ groupId, topics: [], errorCode })) }
  },
})

type Body = MessageInput<typeof OffsetFetchResponse>

interface AskedTopic {
  /** Undefined: there is no topic with `topicId`. */
  readonly topic: string | undefined
  readonly topicId: Uuid
  readonly partitions: readonly number[]
}

interface AskedGroup {
  readonly groupId: string
  /** Null: all that was committed. */
  readonly topics: readonly AskedTopic[] | null
}

function groupsOf(request: OffsetFetchRequest, { apiVersion, services }: RequestContext): readonly AskedGroup[] {
  const byName = ({ name, partitionIndexes }: { name: string; partitionIndexes: readonly number[] }): AskedTopic => ({
    topic: name,
    topicId: zeroUuid,
    partitions: partitionIndexes,
  })
  if (apiVersion < 8) return [{ groupId: request.groupId, topics: request.topics?.map(byName) ?? null }]
  const { image } = services.coordination
  return distinct(request.groups, ({ groupId }) => groupId).map(({ groupId, topics }) => ({
    groupId,
    topics:
      topics?.map((topic) =>
        apiVersion < 10
          ? byName(topic)
          : {
              topic: image.topics.byId(topic.topicId)?.name,
              topicId: topic.topicId,
              partitions: topic.partitionIndexes,
            },
      ) ?? null,
  }))
}

function known(topics: AskedGroup['topics']): { topic: string; partitions: readonly number[] }[] | null {
  return topics?.flatMap(({ topic, partitions }) => (topic === undefined ? [] : [{ topic, partitions }])) ?? null
}

function singleAnswer({ topics }: AskedGroup, fetched: FetchedGroup, apiVersion: number): Body {
  if (!fetched.ok) {
    const asked = known(topics)?.map(({ topic, partitions }) => ({ name: topic, partitionIndexes: partitions })) ?? null
    return refusedSingle(asked, errorCodeOf(fetched.reason), apiVersion)
  }
  return {
    topics: fetched.topics.map(({ topic, partitions }) => ({
      name: topic,
      partitions: partitions.map((each) => {
        const { committedLeaderEpoch, ...offset } = offsetAnswer(each)
        return apiVersion >= 5 ? { ...offset, committedLeaderEpoch } : offset
      }),
    })),
    errorCode: ErrorCode.NONE,
  }
}

/** Version 1 has no place for an error but the partitions, and later ones don't list them. */
function refusedSingle(topics: OffsetFetchRequest['topics'], errorCode: ErrorCode, apiVersion: number): Body {
  if (apiVersion >= 2) return { topics: [], errorCode }
  return {
    topics: (topics ?? []).map(({ name, partitionIndexes }) => ({
      name,
      partitions: partitionIndexes.map((partitionIndex) => ({
        partitionIndex,
        committedOffset: -1,
        metadata: '',
        errorCode,
      })),
    })),
  }
}

function groupAnswer(
  asked: AskedGroup,
  fetched: FetchedGroup,
  context: RequestContext,
): NonNullable<Body['groups']>[number] {
  const { groupId } = asked
  if (!fetched.ok) return { groupId, topics: [], errorCode: errorCodeOf(fetched.reason) }
  const { apiVersion, services } = context
  const found = fetched.topics.flatMap(({ topic, partitions }) => {
    const topicId = apiVersion < 10 ? zeroUuid : services.coordination.image.topics.byName(topic)?.topicId
    // All that was committed may name topics that are gone: they have no id to be told by.
    return topicId === undefined ? [] : [{ name: topic, topicId, partitions: partitions.map(offsetAnswer) }]
  })
  const unknown = (asked.topics ?? [])
    .filter(({ topic }) => topic === undefined)
    .map(({ topicId, partitions }) => ({
      topicId,
      partitions: partitions.map((partition) => ({
        ...offsetAnswer({ partition, offset: -1, leaderEpoch: -1, metadata: '' }),
        errorCode: ErrorCode.UNKNOWN_TOPIC_ID,
      })),
    }))
  return { groupId, topics: [...found, ...unknown], errorCode: ErrorCode.NONE }
}

function offsetAnswer({ partition, offset, leaderEpoch, metadata }: FetchedOffset) {
  return {
    partitionIndex: partition,
    committedOffset: offset,
    committedLeaderEpoch: leaderEpoch,
    metadata,
    errorCode: ErrorCode.NONE,
  }
}
