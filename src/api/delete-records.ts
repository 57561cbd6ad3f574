import { partitionName } from '../base/index.ts'
import {
  apis,
  type DeleteRecordsRequest,
  type DeleteRecordsResponse,
  ErrorCode,
  type MessageInput,
} from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { errorCodeOf } from './errors.ts'
import { isInternalTopic } from './topic-names.ts'

/**
 * DeleteRecords, 0 to 2.
 *
 *   2  flexible
 *
 * Only the leader takes it. Records below an offset go, -1 is the high watermark; the answer tells the first offset that is
 * left, -1 with an error. A partition that is named twice gets one answer, about the later offset. Unlike in Kafka the
 * answer comes when the new start is on disk, so that what was deleted never comes back.
 */
export const deleteRecords = defineApi({
  api: apis.DeleteRecords,
  versions: { min: 0, max: 2 },
  async handle(request, context) {
    const topics = offsetsByPartition(request)
    const answers = [...topics].map(async ([name, offsets]) => ({
      name,
      partitions: await Promise.all(
        [...offsets].map(([partition, offset]) => deleteFrom(name, partition, offset, request.timeoutMs, context)),
      ),
    }))
    return { body: { topics: await Promise.all(answers) } }
  },
  fault: (request, errorCode) => ({
    topics: request.topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex }) => refused(partitionIndex, errorCode)),
    })),
  }),
})

type PartitionAnswer = MessageInput<typeof DeleteRecordsResponse>['topics'][number]['partitions'][number]

function offsetsByPartition(request: DeleteRecordsRequest): ReadonlyMap<string, ReadonlyMap<number, number>> {
  const topics = new Map<string, Map<number, number>>()
  for (const { name, partitions } of request.topics) {
    const offsets = topics.get(name) ?? new Map<number, number>()
    for (const { partitionIndex, offset } of partitions) offsets.set(partitionIndex, offset)
    topics.set(name, offsets)
  }
  return topics
}

async function deleteFrom(
  topic: string,
  partition: number,
  beforeOffset: number,
  timeoutMs: number,
  context: RequestContext,
): Promise<PartitionAnswer> {
  const { coordination, replicas, log } = context.services
  const found = coordination.image.topics.byName(topic)?.partitions[partition]
  if (found === undefined) return refused(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
  if (isInternalTopic(topic)) return refused(partition, ErrorCode.INVALID_TOPIC_EXCEPTION)
  const outcome = await replicas.deleteRecords({
    topic,
    partition,
    beforeOffset,
    timeoutMs: Math.max(0, timeoutMs),
  })
  if (!outcome.ok) return refused(partition, errorCodeOf(outcome.reason))
  const { lowWatermark } = outcome
  log.info({ partition: partitionName(topic, partition), lowWatermark }, 'records deleted')
  return { partitionIndex: partition, lowWatermark, errorCode: ErrorCode.NONE }
}

function refused(partitionIndex: number, errorCode: ErrorCode): PartitionAnswer {
  return { partitionIndex, lowWatermark: -1, errorCode }
}
