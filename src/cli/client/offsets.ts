import { setTimeout as sleep } from 'node:timers/promises'
import type { KafkaClientError } from '../../network/index.ts'
import type { NetworkError } from '../../platform/index.ts'
import { apis, ErrorCode } from '../../protocol/index.ts'
import type { Cluster } from './cluster.ts'
import { RequestRefusedError, UnknownTopicError } from './errors.ts'
import { isConnectionFault } from './patience.ts'

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
    for (const [name, answer] of await askLeaders(cluster, await groupByLeader(cluster, places), timestamp)) {
      if (typeof answer !== 'number') throw answer
      offsets.set(name, answer)
    }
    return offsets
  })
}

/** How long a leader that moves may take to be found, where nobody waits for it alone. */
const probeMs = 2000

/**
 * `listOffsets` that gives for each place its offset, or what keeps its leader from telling it: the others' are told all the same.
 * A topic that is deleted meanwhile is left out.
 */
export async function probeOffsets(
  cluster: Cluster,
  places: readonly Place[],
  timestamp: bigint,
): Promise<ReadonlyMap<string, OffsetAnswer>> {
  const { clock } = cluster.platform
  const startMs = clock.monotonic()
  const answers = new Map<string, OffsetAnswer>()
  for (let left = places; left.length > 0; ) {
    const byLeader = new Map<number, Place[]>()
    for (const place of left) {
      try {
        const leaderId = await cluster.leaderIdOf(place.topic, place.partition)
        byLeader.set(leaderId, [...(byLeader.get(leaderId) ?? []), place])
      } catch (error) {
        if (error instanceof RequestRefusedError) answers.set(placeName(place), error)
        else if (!(error instanceof UnknownTopicError)) throw error
      }
    }
    for (const [name, answer] of await askLeaders(cluster, byLeader, timestamp)) answers.set(name, answer)
    left = left.filter((place) => mayHeal(answers.get(placeName(place))))
    if (left.length === 0 || clock.monotonic() - startMs > probeMs) break
    await sleep(100)
    cluster.forgetTopics()
  }
  for (const [name, answer] of answers) if (isGone(answer)) answers.delete(name)
  return answers
}

/** An offset, or why there is none. */
export type OffsetAnswer = number | RequestRefusedError | NetworkError | KafkaClientError

/** A leader that moves is found soon; a disk that failed is not mended. */
function mayHeal(answer: OffsetAnswer | undefined): boolean {
  if (answer === undefined || typeof answer === 'number') return false
  if (!(answer instanceof RequestRefusedError)) return true
  return answer.retriable && answer.errorCode !== ErrorCode.KAFKA_STORAGE_ERROR
}

function isGone(answer: OffsetAnswer): boolean {
  return answer instanceof RequestRefusedError && answer.errorCode === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
}

/** One answer for each place. */
async function askLeaders(
  cluster: Cluster,
  byLeader: ReadonlyMap<number, readonly Place[]>,
  timestamp: bigint,
): Promise<ReadonlyMap<string, OffsetAnswer>> {
  const answers = new Map<string, OffsetAnswer>()
  await Promise.all(
    [...byLeader].map(async ([leaderId, led]) => {
      const topics = groupByTopic(led).map(([name, partitions]) => ({
        name,
        partitions: partitions.map((partitionIndex) => ({ partitionIndex, timestamp })),
      }))
      try {
        const connection = await cluster.broker(leaderId)
        const answer = await connection.call(apis.ListOffsets, { replicaId: -1, topics })
        for (const topic of answer.topics) {
          for (const { partitionIndex: partition, errorCode, offset } of topic.partitions) {
            const name = placeName({ topic: topic.name, partition })
            answers.set(name, errorCode === 0 ? offset : new RequestRefusedError(`Offset of ${name}`, errorCode))
          }
        }
      } catch (error) {
        if (!isConnectionFault(error) && !(error instanceof RequestRefusedError)) throw error
        for (const place of led) answers.set(placeName(place), error)
      }
    }),
  )
  return answers
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
