import { apis, type DescribeProducersResponse, ErrorCode, type MessageInput } from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { distinct } from './distinct.ts'
import { errorCodeOf, errorMessageOf } from './errors.ts'
import { inTurns } from './in-turns.ts'
import { isLegalTopicName } from './topic-names.ts'

/**
 * DescribeProducers, 0.
 *
 * The idempotent producers that a partition's log remembers, as any replica of it knows them. Without transactions there is
 * neither a coordinator's epoch nor an open transaction: both are -1.
 */
export const describeProducers = defineApi({
  api: apis.DescribeProducers,
  versions: { min: 0, max: 0 },
  async handle(request, context) {
    const topics = await Promise.all(
      distinct(request.topics, ({ name }) => name).map(async ({ name, partitionIndexes }) => ({
        name,
        partitions: await inTurns([...new Set(partitionIndexes)], context.services.platform.timers, (partition) =>
          describe(name, partition, context),
        ),
      })),
    )
    return { body: { topics } }
  },
  fault: (request, errorCode) => ({
    topics: request.topics.map(({ name, partitionIndexes }) => ({
      name,
      partitions: partitionIndexes.map((partition) => refused(partition, errorCode)),
    })),
  }),
})

type PartitionAnswer = MessageInput<typeof DescribeProducersResponse>['topics'][number]['partitions'][number]

async function describe(topic: string, partition: number, { services }: RequestContext): Promise<PartitionAnswer> {
  if (!isLegalTopicName(topic)) return refused(partition, ErrorCode.INVALID_TOPIC_EXCEPTION)
  const found = await services.replicas.activeProducers({ topic, partition })
  if (!found.ok) {
    const answer = refused(partition, errorCodeOf(found.reason))
    // As in Kafka: only what is wrong with a topic is explained.
    return services.coordination.image.topics.byName(topic) === undefined ? answer : { ...answer, errorMessage: null }
  }
  return {
    partitionIndex: partition,
    errorCode: ErrorCode.NONE,
    activeProducers: found.producers.map(({ producerId, producerEpoch, lastSequence, lastTimestampMs }) => ({
      producerId,
      producerEpoch,
      lastSequence,
      lastTimestamp: lastTimestampMs,
      coordinatorEpoch: -1,
    })),
  }
}

function refused(partitionIndex: number, errorCode: ErrorCode): PartitionAnswer {
  return { partitionIndex, errorCode, errorMessage: errorMessageOf(errorCode), activeProducers: [] }
}
