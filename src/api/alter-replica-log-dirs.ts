import type { MoveAnswer } from '../log/index.ts'
import { type AlterReplicaLogDirsRequest, apis, ErrorCode } from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { byTopic } from './by-topic.ts'

/**
 * AlterReplicaLogDirs, 1 to 2.
 *
 *   2  flexible
 *
 * About this broker's own replicas, each of which begins to move and goes on in the background: DescribeLogDirs tells how far it
 * is. Asked for the folder that it is in, it stays, and a move to another ends. A replica that is not here yet will be made in
 * the folder, which REPLICA_NOT_AVAILABLE says: Kafka's tool asks again until it is there. A partition that is named twice goes to
 * the last folder that is named for it, as in Kafka.
 */
export const alterReplicaLogDirs = defineApi({
  api: apis.AlterReplicaLogDirs,
  versions: { min: 1, max: 2 },
  async handle(request, context) {
    const asked = [...askedPartitions(request)]
    const errorCodes = new Map<AskedPartition, ErrorCode>()
    for (const each of asked) errorCodes.set(each, await outcomeOf(each, context))
    const answers = byTopic(
      asked,
      ({ topic }) => topic,
      (each) => ({ partitionIndex: each.partition, errorCode: errorCodes.get(each)! }),
    )
    return { body: { results: [...answers].map(([topicName, partitions]) => ({ topicName, partitions })) } }
  },
  fault(request, errorCode) {
    const answers = byTopic(
      askedPartitions(request),
      ({ topic }) => topic,
      ({ partition }) => ({ partitionIndex: partition, errorCode }),
    )
    return { results: [...answers].map(([topicName, partitions]) => ({ topicName, partitions })) }
  },
})

interface AskedPartition {
  readonly topic: string
  readonly partition: number
  /** The folder that it is to be in. */
  readonly path: string
}

function askedPartitions({ dirs }: AlterReplicaLogDirsRequest): Iterable<AskedPartition> {
  const asked = new Map<string, AskedPartition>()
  for (const { path, topics } of dirs) {
    for (const { name, partitions } of topics) {
      for (const partition of partitions) asked.set(`${partition}/${name}`, { topic: name, partition, path })
    }
  }
  return asked.values()
}

const codes: Readonly<Record<MoveAnswer, ErrorCode>> = {
  moving: ErrorCode.NONE,
  there: ErrorCode.NONE,
  'not-here': ErrorCode.REPLICA_NOT_AVAILABLE,
  'directory-not-found': ErrorCode.LOG_DIR_NOT_FOUND,
  'directory-offline': ErrorCode.KAFKA_STORAGE_ERROR,
  'partition-offline': ErrorCode.KAFKA_STORAGE_ERROR,
  'name-too-long': ErrorCode.INVALID_TOPIC_EXCEPTION,
}

async function outcomeOf(
  { topic, partition, path }: AskedPartition,
  { services: { coordination, logDirectories, log } }: RequestContext,
): Promise<ErrorCode> {
  if (coordination.image.topics.byName(topic)?.partitions[partition] === undefined) {
    const folder = logDirectories.all().find((each) => each.path === path)
    if (folder === undefined) return ErrorCode.LOG_DIR_NOT_FOUND
    return folder.error === undefined ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION : ErrorCode.KAFKA_STORAGE_ERROR
  }
  try {
    return codes[await logDirectories.move(topic, partition, path)]
  } catch (error) {
    log.warn({ topic, partition, path, error }, 'replica cannot be moved')
    return ErrorCode.KAFKA_STORAGE_ERROR
  }
}
