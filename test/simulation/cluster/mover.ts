import { apis, ErrorCode } from '../../../src/protocol/index.ts'
import { Client } from '../node/client.ts'
import type { ClusterWorld } from './world.ts'
import { nodeIdOf, nodeNames } from './world.ts'

const thinkMs = 1500
/** min.insync.replicas of all topics. */
const fewestReplicas = 2

interface Place {
  readonly topic: string
  readonly partition: number
}

/** Reassigns partitions, now and then on before the last move of one is done, and cancels some of the moves. */
export class Mover {
  readonly #client: Client
  readonly #places: readonly Place[]

  constructor(world: ClusterWorld, name: string, places: readonly Place[]) {
    this.#client = new Client(world, name)
    this.#places = places
  }

  async run(): Promise<void> {
    const client = this.#client
    const { random } = client.platform
    while (!client.world.isDraining) {
      await client.think(thinkMs)
      const place = this.#places[random.int(this.#places.length)]!
      if (await this.#alter(place, this.#draw())) client.world.history.add({ kind: 'partition-moved' })
      if (!client.chance(0.3)) continue
      await client.sleep(random.int(300))
      if (await this.#alter(place, null)) client.world.history.add({ kind: 'move-cancelled' })
    }
  }

  /** So many as there have to be, or more, in any order: the first is preferred as the leader. */
  #draw(): number[] {
    const { random } = this.#client.platform
    const ids = nodeNames.map(nodeIdOf)
    for (let i = ids.length - 1; i > 0; i--) {
      const j = random.int(i + 1)
      ;[ids[i], ids[j]] = [ids[j]!, ids[i]!]
    }
    return ids.slice(0, fewestReplicas + random.int(ids.length - fewestReplicas + 1))
  }

  /** `replicas` null: back to those of before. */
  async #alter({ topic, partition }: Place, replicas: number[] | null): Promise<boolean> {
    const answer = await this.#client.request(apis.AlterPartitionReassignments, 1, {
      timeoutMs: 3000,
      allowReplicationFactorChange: true,
      topics: [{ name: topic, partitions: [{ partitionIndex: partition, replicas }] }],
    })
    return answer?.responses[0]?.partitions[0]?.errorCode === ErrorCode.NONE
  }
}
