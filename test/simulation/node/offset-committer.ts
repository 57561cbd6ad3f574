import { ErrorCode } from '../../../src/protocol/index.ts'
import { Client } from './client.ts'
import type { SimulatedTopic } from './history.ts'
import { commitOffset, fetchCommitted, findCoordinator } from './offsets.ts'
import type { World } from './world.ts'

/** Commits offsets for a group that has no members, one after the other, and looks at what is committed. */
export class OffsetCommitter {
  readonly #client: Client
  readonly #group: string
  readonly #topic: SimulatedTopic
  #committed = 0

  constructor(world: World, name: string, topic: SimulatedTopic) {
    this.#client = new Client(world, name)
    this.#group = `${name}-group`
    this.#topic = topic
  }

  async run(): Promise<void> {
    const { world } = this.#client
    const committer = { group: this.#group, memberId: '', generation: -1 }
    const place = { topic: this.#topic.name, partition: 0 }
    while (!(await findCoordinator(this.#client, this.#group))) await this.#client.think(50)
    while (!world.isDraining) {
      await this.#client.think(15)
      const offset = ++this.#committed
      const code = await commitOffset(this.#client, committer, place, offset, `commit ${offset}`)
      if (code !== ErrorCode.NONE || this.#client.chance(0.2)) await fetchCommitted(this.#client, this.#group, place)
    }
    // What is committed is there when all is quiet.
    while (!(await fetchCommitted(this.#client, this.#group, place))) await this.#client.think(50)
  }
}
