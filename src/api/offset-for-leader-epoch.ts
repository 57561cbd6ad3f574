import type { LeaderEpoch } from '../base/index.ts'
import {
  apis,
  ErrorCode,
  type MessageInput,
  type OffsetForLeaderEpochRequest,
  type OffsetForLeaderEpochResponse,
} from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { errorCodeOf } from './errors.ts'
import { inTurns } from './in-turns.ts'

/**
 * OffsetForLeaderEpoch, 2 to 4.
 *
 *   3  replica id     4  flexible
 *
 * Where the largest epoch that is not above the one asked for ends: how a client notices that records which it read are no
 * longer in the log (KIP-320). An epoch that is newer than all known is no error: epoch and offset are -1.
 */
export const offsetForLeaderEpoch = defineApi({
  api: apis.OffsetForLeaderEpoch,
  versions: { min: 2, max: 4 },
  async handle(request, context) {
    const topics = await Promise.all(
      request.topics.map(async ({ topic, partitions }) => ({
        topic,
        partitions: await inTurns(partitions, context.services.platform.timers, (partition) =>
          endOffset(topic, partition, context),
        ),
      })),
    )
    return { body: { topics } }
  },
  fault: (request, errorCode) => ({
    topics: request.topics.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.map(({ partition }) => ({ partition, errorCode })),
    })),
  }),
})

type PartitionAnswer = MessageInput<typeof OffsetForLeaderEpochResponse>['topics'][number]['partitions'][number]

async function endOffset(
  topic: string,
  asked: OffsetForLeaderEpochRequest['topics'][number]['partitions'][number],
  { services }: RequestContext,
): Promise<PartitionAnswer> {
  const { partition, currentLeaderEpoch, leaderEpoch } = asked
  const found = await services.replicas.endOffsetForEpoch(
    { topic, partition },
    currentLeaderEpoch as LeaderEpoch | -1,
    leaderEpoch as LeaderEpoch,
  )
  if (!found.ok) return { partition, errorCode: errorCodeOf(found.reason) }
  return { partition, errorCode: ErrorCode.NONE, leaderEpoch: found.leaderEpoch, endOffset: found.endOffset }
}
