import type { Cluster } from './cluster.ts'
import { alterConfigs, type ConfigChange, type ConfigResource } from './configs.ts'
import type { Placement } from './reassignment-plan.ts'

const leaderReplicas = 'leader.replication.throttled.replicas'
const followerReplicas = 'follower.replication.throttled.replicas'
const rates = ['leader.replication.throttled.rate', 'follower.replication.throttled.rate'] as const

/** What a throttle sets, as Kafka's own tool does: which replicas give, which take, and how fast each broker may. */
export interface Throttle {
  /** By topic. */
  readonly topics: ReadonlyMap<string, { readonly leaders: readonly string[]; readonly followers: readonly string[] }>
  readonly brokers: readonly number[]
}

/** Of partitions that go from `before` to `after`, in the same order. */
export function throttleOf(before: readonly Placement[], after: readonly Placement[]): Throttle {
  const topics = new Map<string, { leaders: string[]; followers: string[] }>()
  const brokers = new Set<number>()
  for (const [i, { topic, partition, replicas }] of after.entries()) {
    const sources = before[i]?.replicas ?? []
    const added = replicas.filter((broker) => !sources.includes(broker))
    if (added.length === 0) continue
    const lists = topics.get(topic) ?? { leaders: [], followers: [] }
    topics.set(topic, lists)
    lists.leaders.push(...sources.map((broker) => `${partition}:${broker}`))
    lists.followers.push(...added.map((broker) => `${partition}:${broker}`))
    for (const broker of [...sources, ...added]) brokers.add(broker)
  }
  return { topics, brokers: [...brokers].sort((a, b) => a - b) }
}

/** Throws `RequestRefusedError`. */
export async function setThrottle(cluster: Cluster, throttle: Throttle, bytesPerSecond: number): Promise<void> {
  for (const broker of throttle.brokers) {
    const changes = rates.map((key) => ({ operation: 'set', key, value: String(bytesPerSecond) }) as const)
    await alter(cluster, { kind: 'broker', name: String(broker) }, changes)
  }
  for (const [topic, { leaders, followers }] of throttle.topics) {
    await alter(cluster, { kind: 'topic', name: topic }, [
      { operation: 'append', key: leaderReplicas, value: leaders.join() },
      { operation: 'append', key: followerReplicas, value: followers.join() },
    ])
  }
}

/** Takes back what `setThrottle` set. Throws `RequestRefusedError`. */
export async function removeThrottle(cluster: Cluster, throttle: Throttle): Promise<void> {
  for (const [topic, { leaders, followers }] of throttle.topics) {
    await alter(cluster, { kind: 'topic', name: topic }, [
      { operation: 'subtract', key: leaderReplicas, value: leaders.join() },
      { operation: 'subtract', key: followerReplicas, value: followers.join() },
    ])
  }
  for (const broker of throttle.brokers) {
    const changes = rates.map((key) => ({ operation: 'delete', key, value: null }) as const)
    await alter(cluster, { kind: 'broker', name: String(broker) }, changes)
  }
}

async function alter(cluster: Cluster, resource: ConfigResource, changes: readonly ConfigChange[]): Promise<void> {
  const refused = await alterConfigs(cluster, resource, changes, false)
  if (refused !== undefined) throw refused
}
