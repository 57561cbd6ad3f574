import {
  apis,
  type DescribeLogDirsRequest,
  type DescribeLogDirsResponse,
  ErrorCode,
  type MessageInput,
} from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import type { LogDirectoryFacts } from './services.ts'

/**
 * DescribeLogDirs, 1 to 5.
 *
 *   2  flexible     3  top-level error     4  size of the disk     5  cordoned folders, of which there are none
 *
 * This broker's folders for data, each with its partitions and their bytes. No topics asked (null) is all; a partition that
 * isn't here is left out. A folder that is out of use is KAFKA_STORAGE_ERROR, with nothing in it. What moves into a folder is in it
 * as future, with what it lacks.
 */
export const describeLogDirs = defineApi({
  api: apis.DescribeLogDirs,
  versions: { min: 1, max: 5 },
  async handle({ topics }, context) {
    const wanted = topics === null ? undefined : wantedPartitions(topics)
    const directories = context.services.logDirectories.all()
    return { body: { results: await Promise.all(directories.map((each) => describe(each, wanted, context))) } }
  },
  fault: (_request, errorCode, apiVersion) =>
    apiVersion >= 3 ? { errorCode, results: [] } : { results: [{ errorCode, logDir: '', topics: [] }] },
})

type DirectoryAnswer = MessageInput<typeof DescribeLogDirsResponse>['results'][number]
type TopicAnswer = DirectoryAnswer['topics'][number]
/** Partitions by topic. */
type Wanted = ReadonlyMap<string, ReadonlySet<number>>

function wantedPartitions(topics: NonNullable<DescribeLogDirsRequest['topics']>): Wanted {
  const wanted = new Map<string, Set<number>>()
  for (const { topic, partitions } of topics) {
    const known = wanted.get(topic) ?? new Set()
    for (const partition of partitions) known.add(partition)
    wanted.set(topic, known)
  }
  return wanted
}

async function describe(
  facts: LogDirectoryFacts,
  wanted: Wanted | undefined,
  { services }: RequestContext,
): Promise<DirectoryAnswer> {
  const { path, error } = facts
  const offline = { errorCode: ErrorCode.KAFKA_STORAGE_ERROR, logDir: path, topics: [] }
  if (error !== undefined) return offline
  try {
    const { totalBytes, freeBytes } = await services.logDirectories.space(path)
    return {
      errorCode: ErrorCode.NONE,
      logDir: path,
      topics: topicAnswers(facts, wanted),
      totalBytes,
      usableBytes: freeBytes,
    }
  } catch (fault) {
    services.log.warn({ directory: path, error: fault }, 'disk does not tell its size')
    return offline
  }
}

function topicAnswers({ partitions, copies }: LogDirectoryFacts, wanted: Wanted | undefined): TopicAnswer[] {
  const byTopic = new Map<string, TopicAnswer['partitions'][number][]>()
  const add = (
    topic: string,
    partitionIndex: number,
    partitionSize: number,
    offsetLag: number,
    isFutureKey: boolean,
  ) => {
    if (wanted !== undefined && wanted.get(topic)?.has(partitionIndex) !== true) return
    const answers = byTopic.get(topic) ?? []
    answers.push({ partitionIndex, partitionSize, offsetLag, isFutureKey })
    byTopic.set(topic, answers)
  }
  for (const { topic, partition, sizeBytes, highWatermark, logEndOffset } of partitions) {
    add(topic, partition, sizeBytes, Math.max(0, highWatermark - logEndOffset), false)
  }
  for (const { topic, partition, sizeBytes, offsetLag } of copies) add(topic, partition, sizeBytes, offsetLag, true)
  return [...byTopic].map(([name, answers]) => ({ name, partitions: answers }))
}
