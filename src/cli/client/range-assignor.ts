import type { Place } from './offsets.ts'

export interface Subscription {
  readonly memberId: string
  readonly topics: readonly string[]
}

/**
 * Kafka's range assignment: of each topic every subscribed member gets a run of neighbouring partitions, in the order of the
 * member ids; the first ones get one more where it doesn't come out even. Every member is in the result.
 */
export function assignRanges(
  subscriptions: readonly Subscription[],
  partitionCounts: ReadonlyMap<string, number>,
): ReadonlyMap<string, readonly Place[]> {
  const assigned = new Map<string, Place[]>(subscriptions.map(({ memberId }) => [memberId, []]))
  for (const [topic, count] of partitionCounts) {
    const members = subscriptions
      .filter(({ topics }) => topics.includes(topic))
      .map(({ memberId }) => memberId)
      .sort()
    let partition = 0
    for (const [i, memberId] of members.entries()) {
      const share = Math.floor(count / members.length) + (i < count % members.length ? 1 : 0)
      for (let taken = 0; taken < share; taken++) assigned.get(memberId)!.push({ topic, partition: partition++ })
    }
  }
  return assigned
}
