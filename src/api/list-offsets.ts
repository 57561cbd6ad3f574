import type { LeaderEpoch } from '../base/index.ts'
import {
  apis,
  ErrorCode,
  type ListOffsetsRequest,
  type ListOffsetsResponse,
  type MessageInput,
} from '../protocol/index.ts'
import type { ListOffsetRequest } from '../replication/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { errorCodeOf } from './errors.ts'
import { inTurns } from './in-turns.ts'

/**
 * ListOffsets, 1 to 11.
 *
 *   2  isolation level     4  leader epochs     6  flexible     10  timeout
 *
 * Times below zero stand for places in the log; each is known from one version on (`places`), and before it gets
 * UNSUPPORTED_VERSION for its partition. A partition that is asked for twice gets INVALID_REQUEST each time. Nothing found for a time is no error: offset, timestamp and epoch are -1. There is
 * no tiered storage: its places are as in a broker where it is switched off.
 */
export const listOffsets = defineApi({
  api: apis.ListOffsets,
  versions: { min: 1, max: 11 },
  async handle(request, context) {
    const topicsAsked = byTopic(request.topics)
    const asked = [...topicsAsked].flatMap(([name, partitions]) =>
      [...partitions.values()].map((each) => ({ name, ...each })),
    )
    const answers = await inTurns(asked, context.services.platform.timers, (each) => {
      const { name, partition, isRepeated } = each
      if (isRepeated) return nothingFound(partition.partitionIndex, ErrorCode.INVALID_REQUEST)
      return listOffset(name, partition, request, context)
    })
    let next = 0
    const topics = [...topicsAsked].map(([name, partitions]) => ({
      name,
      partitions: Array.from(partitions, () => answers[next++]!),
    }))
    return { body: { topics } }
  },
  fault: (request, errorCode) => ({
    topics: request.topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex }) => nothingFound(partitionIndex, errorCode)),
    })),
  }),
})

type PartitionAnswer = MessageInput<typeof ListOffsetsResponse>['topics'][number]['partitions'][number]

type AskedPartition = ListOffsetsRequest['topics'][number]['partitions'][number]
type AskedPartitions = Map<number, { readonly partition: AskedPartition; readonly isRepeated: boolean }>

/** Each topic and each of its partitions once; a partition that is asked about twice is refused. */
function byTopic(topics: ListOffsetsRequest['topics']): Map<string, AskedPartitions> {
  const byName = new Map<string, AskedPartitions>()
  for (const { name, partitions } of topics) {
    if (partitions.length === 0) continue
    const known: AskedPartitions = byName.get(name) ?? new Map()
    for (const partition of partitions) {
      known.set(partition.partitionIndex, { partition, isRepeated: known.has(partition.partitionIndex) })
    }
    byName.set(name, known)
  }
  return byName
}

interface Place {
  readonly sinceVersion: number
  /** 'none': there never is such an offset here; the partition is looked for all the same. */
  readonly target: Extract<ListOffsetRequest['target'], string> | 'none'
}

const places: ReadonlyMap<bigint, Place> = new Map([
  [-1n, { sinceVersion: 1, target: 'latest' }],
  [-2n, { sinceVersion: 1, target: 'earliest' }],
  [-3n, { sinceVersion: 7, target: 'max-timestamp' }],
  [-4n, { sinceVersion: 8, target: 'earliest' }], // earliest on the local disk
  [-5n, { sinceVersion: 9, target: 'none' }], // latest in tiered storage
  [-6n, { sinceVersion: 11, target: 'none' }], // earliest that is not in tiered storage yet
])

async function listOffset(
  topic: string,
  asked: ListOffsetsRequest['topics'][number]['partitions'][number],
  { isolationLevel, replicaId }: Pick<ListOffsetsRequest, 'isolationLevel' | 'replicaId'>,
  context: RequestContext,
): Promise<PartitionAnswer> {
  const { partitionIndex, timestamp, currentLeaderEpoch } = asked
  const place = timestamp < 0n ? places.get(timestamp) : undefined
  if (timestamp < 0n && (place === undefined || context.apiVersion < place.sinceVersion)) {
    return nothingFound(partitionIndex, ErrorCode.UNSUPPORTED_VERSION)
  }
  const outcome = await context.services.replicas.listOffset({
    topic,
    partition: partitionIndex,
    currentLeaderEpoch: currentLeaderEpoch as LeaderEpoch | -1,
    isolation: isolationLevel === 1 ? 'read-committed' : 'read-uncommitted',
    ...(replicaId >= 0 ? { byFollower: true } : {}),
    target:
      place === undefined ? { timestampMs: Number(timestamp) } : place.target === 'none' ? 'latest' : place.target,
  })
  if (!outcome.ok) {
    const errorCode = errorCodeOf(outcome.reason)
    const isTooNew = errorCode === ErrorCode.OFFSET_NOT_AVAILABLE && context.apiVersion < 5
    return nothingFound(partitionIndex, isTooNew ? ErrorCode.LEADER_NOT_AVAILABLE : errorCode)
  }
  if (place?.target === 'none') return nothingFound(partitionIndex, ErrorCode.NONE)
  return {
    partitionIndex,
    errorCode: ErrorCode.NONE,
    timestamp: BigInt(outcome.timestampMs),
    offset: outcome.offset,
    ...(context.apiVersion >= 4 ? { leaderEpoch: outcome.leaderEpoch } : {}),
  }
}

function nothingFound(partitionIndex: number, errorCode: ErrorCode): PartitionAnswer {
  return { partitionIndex, errorCode, timestamp: -1n, offset: -1 }
}
