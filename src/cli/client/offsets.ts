import { apis } from '../../protocol/index.ts'
import type { Cluster } from './cluster.ts'
import { expectNoError } from './errors.ts'

export interface Place {
  readonly topic: string
  readonly partition: number
}

/** What ListOffsets takes for a timestamp: the end of the partition, exclusive, and its first offset. */
export const latest = -1n
export const earliest = -2n

/**
 * For each place the offset that `timestamp` means: `latest`, `earliest`, or of the first record at or after that many
 * milliseconds since 1970; -1 when there is none. By `placeName`. Asks each leader once.
 */
export async function listOffsets(
  cluster: Cluster,
  places: readonly Place[],
  timestamp: bigint,
): Promise<ReadonlyMap<string, number>> {
  return await cluster.retrying(async () => {
    const offsets = new Map<string, number>()
    const byLeader = await groupByLeader(cluster, places)
    await Promise.all(
      [...byLeader].map(async ([leaderId, led]) => {
        const connection = await cluster.broker(leaderId)
        const topics = groupByTopic(led).map(([name, partitions]) => ({
          name,
          partitions: partitions.map((partitionIndex) => ({ partitionIndex, timestamp })),
        }))
        const answer = await connection.call(apis.ListOffsets, { replicaId: -1, topics })
        for (const topic of answer.topics) {
          for (const { partitionIndex: partition, errorCode, offset } of topic.partitions) {
            const name = placeName({ topic: topic.name, partition })
            expectNoError(`Offset of ${name}`, errorCode)
            offsets.set(name, offset)
          }
        }
      }),
    )
    return offsets
  })
}

export async function groupByLeader<P extends Place>(
  cluster: Cluster,
  places: readonly P[],
): Promise<ReadonlyMap<number, readonly P[]>> {
  const byLeader = new Map<number, P[]>()
  for (const place of places) {
    const leaderId = await cluster.leaderIdOf(place.topic, place.partition)
    const led = byLeader.get(leaderId)
    if (led === undefined) byLeader.set(leaderId, [place])
    else led.push(place)
  }
  return byLeader
}

export function groupByTopic(places: readonly Place[]): readonly (readonly [string, readonly number[]])[] {
  const byTopic = new Map<string, number[]>()
  for (const { topic, partition } of places) {
    const partitions = byTopic.get(topic)
    if (partitions === undefined) byTopic.set(topic, [partition])
    else partitions.push(partition)
  }
  return [...byTopic]
}

/** `orders-0` */
export function placeName({ topic, partition }: Place): string {
  return `${topic}-${partition}`
}
