import { type AlterReplicaLogDirsRequest, apis, ErrorCode } from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { byTopic } from './by-topic.ts'

/**
 * AlterReplicaLogDirs, 1 to 2.
 *
 *   2  flexible
 *
 * About this broker's own replicas. A replica that is in the folder already, is told so; to move one is not built and refused with
 * UNSUPPORTED_VERSION. A partition that is named twice goes to the last folder that is named for it, as in Kafka.
 */
export const alterReplicaLogDirs = defineApi({
  api: apis.AlterReplicaLogDirs,
  versions: { min: 1, max: 2 },
  handle(request, context) {
    const folders = foldersOf(context)
    const answers = byTopic(
      askedPartitions(request),
      ({ topic }) => topic,
      (asked) => ({ partitionIndex: asked.partition, errorCode: outcomeOf(asked, folders, context) }),
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

interface Folder {
  readonly isOnline: boolean
  /** `3/orders` */
  readonly partitions: ReadonlySet<string>
}

function foldersOf({ services }: RequestContext): ReadonlyMap<string, Folder> {
  const folders = new Map<string, Folder>()
  for (const { path, error, partitions } of services.logDirectories.all()) {
    const names = partitions.map(({ topic, partition }) => `${partition}/${topic}`)
    folders.set(path, { isOnline: error === undefined, partitions: new Set(names) })
  }
  return folders
}

function outcomeOf(
  { topic, partition, path }: AskedPartition,
  folders: ReadonlyMap<string, Folder>,
  { services }: RequestContext,
): ErrorCode {
  const folder = folders.get(path)
  if (folder === undefined) return ErrorCode.LOG_DIR_NOT_FOUND
  if (!folder.isOnline) return ErrorCode.KAFKA_STORAGE_ERROR
  const name = `${partition}/${topic}`
  if (folder.partitions.has(name)) return ErrorCode.NONE
  const isHere = [...folders.values()].some(({ partitions }) => partitions.has(name))
  if (isHere) return ErrorCode.UNSUPPORTED_VERSION
  const isKnown = services.coordination.image.topics.byName(topic)?.partitions[partition] !== undefined
  return isKnown ? ErrorCode.NOT_LEADER_OR_FOLLOWER : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
}
