import { ErrorCode } from '../../../src/protocol/index.ts'
import { Client } from './client.ts'
import type { SimulatedTopic } from './history.ts'
import { commitOffset, fetchCommitted, findCoordinator } from './offsets.ts'
import type { ClientWorld } from './world.ts'

/**
 * Commits offsets for groups that have no members, one after the other, and looks at what is committed. With many groups most
 * commits are the last ones of theirs.
 */
export class OffsetCommitter {
  readonly #client: Client
  readonly #groups: readonly string[]
  readonly #topic: SimulatedTopic
  #committed = 0

  constructor(world: ClientWorld, name: string, topic: SimulatedTopic, groupCount = 1) {
    this.#client = new Client(world, name)
    this.#groups = Array.from({ length: groupCount }, (_, i) => `${name}-group${i}`)
    this.#topic = topic
  }

  async run(): Promise<void> {
    const { world } = this.#client
    const place = { topic: this.#topic.name, partition: 0 }
    while (!(await findCoordinator(this.#client, this.#groups[0]!))) await this.#client.think(50)
    while (!world.isDraining) {
      await this.#client.think(15)
      const offset = ++this.#committed
      const group = this.#groups[this.#client.platform.random.int(this.#groups.length)]!
      const committer = { group, memberId: '', generation: -1 }
      const code = await commitOffset(this.#client, committer, place, offset, `commit ${offset}`)
      if (code !== ErrorCode.NONE || this.#client.chance(0.2)) await fetchCommitted(this.#client, group, place)
    }
    // What is committed is there when all is quiet.
    await this.verify()
  }

  async verify(): Promise<void> {
    const place = { topic: this.#topic.name, partition: 0 }
    for (const group of this.#groups) {
      while (!(await fetchCommitted(this.#client, group, place))) await this.#client.think(50)
    }
  }
}
