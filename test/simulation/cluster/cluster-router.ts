import { apis, ErrorCode } from '../../../src/protocol/index.ts'
import { getOrMake } from '../checkers/checker.ts'
import { Client } from '../node/client.ts'
import type { ClientWorld, Router, Subject } from '../node/world.ts'
import { nodeName, nodeNames } from './world.ts'

/** How long a client waits for an answer before it asks another node. */
const patienceMs = 1000
const retryMs = 40

interface Leader {
  readonly node: string
  readonly topicId: string
  readonly leaderEpoch: number
}

/**
 * Finds nodes as real clients do: leaders through Metadata, whose older leader epochs are ignored, and coordinators through
 * FindCoordinator, asked of whichever node answers. What was found is kept until it is refused.
 */
class ClusterRouter implements Router {
  readonly #client: Client
  readonly #anybody: Anybody
  readonly #leaders = new Map<string, Leader>()
  readonly #coordinators = new Map<string, string>()
  /** What was found and is refused by now. */
  readonly #doubted = new Set<string>()

  constructor(world: ClientWorld, host: string) {
    const anybody = new Anybody((end) => this.#client.platform.random.int(end))
    this.#anybody = anybody
    this.#client = new Client({ ...world, routerOf: () => anybody }, `${host}-routes`, patienceMs, host)
  }

  async nodeFor(subject: Subject): Promise<string> {
    if (subject === 'anything') return this.#anybody.nodeFor()
    if ('group' in subject) {
      const known = this.#coordinators.get(subject.group)
      return known ?? (await this.#findCoordinator(subject.group))
    }
    const key = keyOf(subject)
    const known = this.#leaders.get(key)
    if (known !== undefined && !this.#doubted.has(key)) return known.node
    return await this.#findLeader(subject.topic, subject.partition)
  }

  onRefused(subject: Subject): void {
    if (subject === 'anything') this.#anybody.onRefused()
    else if ('group' in subject) this.#coordinators.delete(subject.group)
    else this.#doubted.add(keyOf(subject))
  }

  leaderEpochOf(subject: Subject): number {
    return typeof subject === 'object' && 'topic' in subject
      ? (this.#leaders.get(keyOf(subject))?.leaderEpoch ?? -1)
      : -1
  }

  async #findLeader(topic: string, partition: number): Promise<string> {
    const key = keyOf({ topic, partition })
    for (;;) {
      const answer = await this.#client.request(apis.Metadata, 12, { topics: [{ name: topic }] })
      const topicId = answer?.topics[0]?.topicId ?? ''
      const found = answer?.topics[0]?.partitions.find(({ partitionIndex }) => partitionIndex === partition)
      const known = this.#leaders.get(key)
      // A topic that took the name of another begins with its epochs anew.
      const leastEpoch = known?.topicId === topicId ? known.leaderEpoch : -1
      if (found !== undefined && found.leaderId >= 0 && found.leaderEpoch >= leastEpoch) {
        const node = nodeName(found.leaderId)
        this.#leaders.set(key, { node, topicId, leaderEpoch: found.leaderEpoch })
        this.#doubted.delete(key)
        return node
      }
      this.#anybody.onRefused()
      await this.#client.sleep(retryMs)
    }
  }

  async #findCoordinator(group: string): Promise<string> {
    for (;;) {
      const answer = await this.#client.request(apis.FindCoordinator, 3, { key: group, keyType: 0 })
      if (answer?.errorCode === ErrorCode.NONE) {
        const node = nodeName(answer.nodeId)
        this.#coordinators.set(group, node)
        return node
      }
      this.#anybody.onRefused()
      await this.#client.sleep(retryMs)
    }
  }
}

/** Sticks to a node until it is refused there. */
class Anybody implements Router {
  readonly #draw: (end: number) => number
  #node: string | undefined

  constructor(draw: (end: number) => number) {
    this.#draw = draw
  }

  nodeFor(): Promise<string> {
    this.#node ??= nodeNames[this.#draw(nodeNames.length)]!
    return Promise.resolve(this.#node)
  }

  onRefused(): void {
    this.#node = undefined
  }

  leaderEpochOf(): number {
    return -1
  }
}

/** One router for each machine. */
export function routersOf(world: () => ClientWorld): (host: string) => Router {
  const routers = new Map<string, Router>()
  return (host) => getOrMake(routers, host, () => new ClusterRouter(world(), host))
}

function keyOf({ topic, partition }: { readonly topic: string; readonly partition: number }): string {
  return `${topic}-${partition}`
}
