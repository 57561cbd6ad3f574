/** Replicas that a partition has, or is to have, the preferred leader first. */
export interface Placement {
  readonly topic: string
  readonly partition: number
  readonly replicas: readonly number[]
}

/**
 * Spreads partitions over `brokers`, 1 or more, with `replicationFactor` replicas each (as many as each has when left out; never
 * more than there are brokers): replicas stay where they are as long as no broker gets more than its share, the others go to
 * the brokers that have least, and each partition is to be led by the one of its replicas that is to lead least. Gives the
 * partitions that change.
 */
export function planReassignments(
  placements: readonly Placement[],
  brokers: readonly number[],
  replicationFactor?: number,
): Placement[] {
  const factors = placements.map(({ replicas }) => Math.min(replicationFactor ?? replicas.length, brokers.length))
  const total = factors.reduce((sum, factor) => sum + factor, 0)
  const share = Math.ceil(total / brokers.length)
  const held = new Map(brokers.map((broker) => [broker, 0]))
  const take = (broker: number) => held.set(broker, held.get(broker)! + 1)
  const kept = placements.map(({ replicas }, i) => {
    const stay: number[] = []
    for (const broker of replicas) {
      if (stay.length === factors[i] || (held.get(broker) ?? share) >= share) continue
      take(broker)
      stay.push(broker)
    }
    return stay
  })
  const led = new Map(brokers.map((broker) => [broker, 0]))
  return placements.flatMap(({ topic, partition, replicas }, i) => {
    const planned = kept[i]!
    while (planned.length < factors[i]!) {
      const broker = leastOf(
        brokers.filter((each) => !planned.includes(each)),
        held,
      )
      take(broker)
      planned.push(broker)
    }
    const leader = leastOf(planned, led)
    led.set(leader, led.get(leader)! + 1)
    const ordered = [leader, ...planned.filter((broker) => broker !== leader)]
    return ordered.join() === replicas.join() ? [] : [{ topic, partition, replicas: ordered }]
  })
}

/** The first of those with the smallest count. */
function leastOf(brokers: readonly number[], counts: ReadonlyMap<number, number>): number {
  return brokers.reduce((least, broker) => (counts.get(broker)! < counts.get(least)! ? broker : least))
}
