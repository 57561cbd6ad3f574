import { apis } from '../../protocol/index.ts'
import { UsageError } from '../exit.ts'
import type { Cluster } from './cluster.ts'
import { expectNoError, RequestRefusedError } from './errors.ts'
import { fetchCommitted } from './groups.ts'
import { earliest, groupByTopic, listOffsets, type Place, placeName } from './offsets.ts'
import { type Froms, missingPartition, startingOffsetsEach } from './starting-offsets.ts'

export interface OffsetReset extends Place {
  /** Null: nothing is committed. */
  readonly committedOffset: number | null
  /** Within the partition: between its first offset and its end. */
  readonly newOffset: number
  /** Records between the new offset and the end. */
  readonly lag: number
}

/**
 * Where a group would go on, for every partition of `topics` that `to` names; without topics, of those that the group has
 * committed. Changes nothing. Throws `UsageError` for a partition that none of them has.
 */
export async function planReset(
  cluster: Cluster,
  groupId: string,
  topics: readonly string[],
  to: Froms,
): Promise<readonly OffsetReset[]> {
  const committed = await fetchCommitted(cluster, groupId)
  const committedBy = new Map(committed.map((each) => [placeName(each), each.committedOffset]))
  const places: Place[] = []
  for (const topic of new Set(topics.length > 0 ? topics : committed.map((each) => each.topic))) {
    const { partitions } = await cluster.topic(topic)
    for (const { partition } of partitions) {
      const isWanted = topics.length > 0 || committedBy.has(placeName({ topic, partition }))
      if (isWanted) places.push({ topic, partition })
    }
  }
  const missing = missingPartition(to, 1 + Math.max(-1, ...places.map(({ partition }) => partition)))
  if (missing !== undefined && places.length > 0) {
    const names = [...new Set(places.map(({ topic }) => topic))].join(', ')
    throw new UsageError(`Partition ${missing}: there is none in ${names}`)
  }
  const firsts = await listOffsets(cluster, places, earliest)
  const ranges = await startingOffsetsEach(cluster, places, to)
  return ranges.map(({ topic, partition, nextOffset, endOffset }) => {
    const name = placeName({ topic, partition })
    const newOffset = Math.min(Math.max(nextOffset, firsts.get(name) ?? 0), endOffset)
    return { topic, partition, committedOffset: committedBy.get(name) ?? null, newOffset, lag: endOffset - newOffset }
  })
}

/** Commits `resets` for a group that has no members. Throws `RequestRefusedError`. */
export async function applyReset(cluster: Cluster, groupId: string, resets: readonly OffsetReset[]): Promise<void> {
  const newOffsets = new Map(resets.map((each) => [placeName(each), each.newOffset]))
  await cluster.retrying(async () => {
    const coordinator = await cluster.coordinatorOf(groupId)
    const answer = await coordinator.call(apis.OffsetCommit, {
      groupId,
      memberId: '',
      topics: groupByTopic(resets).map(([topic, partitions]) => ({
        name: topic,
        partitions: partitions.map((partition) => ({
          partitionIndex: partition,
          committedOffset: newOffsets.get(placeName({ topic, partition }))!,
          committedMetadata: '',
        })),
      })),
    })
    for (const { name: topic, partitions } of answer.topics) {
      for (const { partitionIndex: partition, errorCode } of partitions) {
        if (errorCode === unknownMemberId) {
          throw new RequestRefusedError(`Group ${groupId}`, nonEmptyGroup, 'It has members: stop them first')
        }
        expectNoError(`Offset of group ${groupId} in ${placeName({ topic, partition })}`, errorCode)
      }
    }
  })
}

/** What a broker says to a commit that comes from no member while there are some. */
const unknownMemberId = 25
const nonEmptyGroup = 68
