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
import { inTurns } from './in-turns.ts'
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
    const { timers } = context.services.platform
    const topics = new Map<string, PartitionAnswer[]>()
    const asked = partitionsOf(request)
    const answers = await inTurns(asked, timers, (each) => deleteFrom(each, request.timeoutMs, context))
    for (const [i, { topic }] of asked.entries()) {
      const partitions = topics.get(topic)
      if (partitions === undefined) topics.set(topic, [answers[i]!])
      else partitions.push(answers[i]!)
    }
    return { body: { topics: [...topics].map(([name, partitions]) => ({ name, partitions })) } }
  },
  fault: (request, errorCode) => ({
    topics: request.topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex }) => refused(partitionIndex, errorCode)),
    })),
  }),
})

type PartitionAnswer = MessageInput<typeof DeleteRecordsResponse>['topics'][number]['partitions'][number]

interface AskedPartition {
  readonly topic: string
  readonly partition: number
  beforeOffset: number
}

/** Each once, with the last offset that is asked for it. */
function partitionsOf(request: DeleteRecordsRequest): readonly AskedPartition[] {
  const asked = new Map<string, AskedPartition>()
  for (const { name, partitions } of request.topics) {
    for (const { partitionIndex, offset } of partitions) {
      const key = `${partitionIndex}/${name}`
      const known = asked.get(key)
      if (known !== undefined) known.beforeOffset = offset
      else {
        const fresh = { topic: name, partition: partitionIndex, beforeOffset: offset }
        asked.set(key, fresh)
      }
    }
  }
  return [...asked.values()]
}

function deleteFrom(
  { topic, partition, beforeOffset }: AskedPartition,
  timeoutMs: number,
  context: RequestContext,
): PartitionAnswer | Promise<PartitionAnswer> {
  const { coordination } = context.services
  const found = coordination.image.topics.byName(topic)?.partitions[partition]
  if (found === undefined) return refused(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
  if (isInternalTopic(topic)) return refused(partition, ErrorCode.INVALID_TOPIC_EXCEPTION)
  return deleteFromLog({ topic, partition, beforeOffset, timeoutMs: Math.max(0, timeoutMs) }, context)
}

async function deleteFromLog(
  asked: AskedPartition & { readonly timeoutMs: number },
  { services }: RequestContext,
): Promise<PartitionAnswer> {
  const { topic, partition } = asked
  const outcome = await services.replicas.deleteRecords(asked)
  if (!outcome.ok) return refused(partition, errorCodeOf(outcome.reason))
  const { lowWatermark } = outcome
  services.log.info({ partition: partitionName(topic, partition), lowWatermark }, 'records deleted')
  return { partitionIndex: partition, lowWatermark, errorCode: ErrorCode.NONE }
}

function refused(partitionIndex: number, errorCode: ErrorCode): PartitionAnswer {
  return { partitionIndex, lowWatermark: -1, errorCode }
}
