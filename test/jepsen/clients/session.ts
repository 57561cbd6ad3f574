import type { KafkaClient } from '../../../src/network/index.ts'
import { apis, ErrorCode } from '../../../src/protocol/index.ts'
import { connect } from '../../support/kafka-connection.ts'
import type {
  Append,
  Assignment,
  Commit,
  Committed,
  History,
  Read,
  TopicChange,
  TopicListing,
} from '../judge/history.ts'

/** How long a node may take to answer before another one is asked. */
export const requestTimeoutMs = 3000

/** What all clients of a run share. */
export interface World {
  /** Where each node takes clients, whether it runs or not. */
  readonly addresses: ReadonlyMap<number, string>
  readonly topic: string
  readonly partitionCount: number
  readonly recording: Recording
  /** What producers ask for. Judged as if it were -1, always: to see the judges find what is lost. */
  readonly acks: -1 | 1
  /** Uniform in [0, 1). */
  readonly random: () => number
  /** Nothing new is begun. */
  isDraining: boolean
  /** Everything ends. */
  isOver: boolean
}

/** A history while it grows. */
export class Recording implements Omit<History, 'logs'> {
  readonly appends: Append[] = []
  readonly reads: Read[] = []
  readonly commits: Commit[] = []
  readonly committed: Committed[] = []
  readonly assignments: Assignment[] = []
  readonly topicChanges: TopicChange[] = []
  readonly topicListings: TopicListing[] = []
  /** What no client should be told, for people. */
  readonly refusals: string[] = []

  now(): number {
    return performance.now()
  }
}

export interface Leader {
  readonly id: number
  readonly leaderEpoch: number
}

/** A client's connections and what it knows of the cluster. It asks any node, and keeps the newest leader epoch that it heard of. */
export class Session {
  readonly world: World
  readonly #timeoutMs: number
  readonly #connections = new Map<number, KafkaClient>()
  readonly #leaders = new Map<number, Leader>()
  readonly #newestEpochs = new Map<number, number>()

  /** `timeoutMs`: how long a node may take to answer before another one is asked. */
  constructor(world: World, timeoutMs = requestTimeoutMs) {
    this.world = world
    this.#timeoutMs = timeoutMs
  }

  /** Throws when the node can't be reached. */
  async connection(id: number): Promise<KafkaClient> {
    const present = this.#connections.get(id)
    if (present?.isOpen) return present
    const made = await connect(this.world.addresses.get(id)!, this.#timeoutMs)
    this.#connections.set(id, made)
    return made
  }

  /** Undefined when nobody knows of one now. */
  async leader(partition: number): Promise<Leader | undefined> {
    const known = this.#leaders.get(partition)
    if (known !== undefined) return known
    const { topic } = this.world
    const newest = this.#newestEpochs.get(partition) ?? -1
    const found = await this.#askAny(async (client) => {
      const timeoutMs = this.#timeoutMs / 3
      const { topics } = await client.request(apis.Metadata, 12, { topics: [{ name: topic }] }, { timeoutMs })
      const of = topics[0]?.partitions.find(({ partitionIndex }) => partitionIndex === partition)
      if (of === undefined || of.leaderId < 0 || of.leaderEpoch < newest) return undefined
      return { id: of.leaderId, leaderEpoch: of.leaderEpoch }
    })
    if (found === undefined) return undefined
    this.#newestEpochs.set(partition, found.leaderEpoch)
    this.#leaders.set(partition, found)
    return found
  }

  /** What was seen is of this epoch: an older leader may not have it. */
  atLeastEpoch(partition: number, leaderEpoch: number): void {
    if (leaderEpoch <= (this.#newestEpochs.get(partition) ?? -1)) return
    this.#newestEpochs.set(partition, leaderEpoch)
    const known = this.#leaders.get(partition)
    if (known !== undefined && known.leaderEpoch < leaderEpoch) this.forgetLeader(partition)
  }

  /** The leader that was known isn't it, or doesn't answer. */
  forgetLeader(partition: number): void {
    this.#leaders.delete(partition)
  }

  /** The node that coordinates the group; undefined when nobody knows of one now. */
  coordinator(group: string): Promise<number | undefined> {
    return this.#askAny(async (client) => {
      const asked = { keyType: 0, coordinatorKeys: [group] }
      const { coordinators } = await client.request(apis.FindCoordinator, 4, asked)
      const [found] = coordinators
      return found?.errorCode === ErrorCode.NONE && found.nodeId > 0 ? found.nodeId : undefined
    })
  }

  close(): void {
    for (const client of this.#connections.values()) client.close()
    this.#connections.clear()
  }

  async #askAny<T>(question: (client: KafkaClient) => Promise<T | undefined>): Promise<T | undefined> {
    const ids = [...this.world.addresses.keys()]
    const start = Math.floor(this.world.random() * ids.length)
    for (const id of [...ids.slice(start), ...ids.slice(0, start)]) {
      if (this.world.isOver) return undefined
      const answer = await this.connection(id)
        .then(question)
        .catch(() => undefined)
      if (answer !== undefined) return answer
    }
    return undefined
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
