import { Client } from './client.ts'
import type { SimulatedTopic } from './history.ts'
import { fetchOnce, type Position, resetIfOutOfRange } from './reading.ts'
import type { ClientWorld } from './world.ts'

const largestFetchBytes = 60_000

/**
 * Reads all partitions of its topics, together or (where different nodes lead them) each by itself, from the start, over
 * and over: at their end it begins again, to see whether anything changed.
 */
export class Consumer {
  readonly #client: Client
  readonly #fetches: readonly (readonly Position[])[]

  constructor(world: ClientWorld, name: string, topics: readonly SimulatedTopic[], isTogether: boolean) {
    this.#client = new Client(world, name)
    const positions = topics.flatMap((topic) =>
      Array.from({ length: topic.partitionCount }, (_, partition) => ({ topic, partition, offset: 0 })),
    )
    this.#fetches = isTogether ? [positions] : positions.map((position) => [position])
  }

  async run(): Promise<void> {
    await Promise.all(this.#fetches.map((positions) => this.#read(positions)))
  }

  async #read(positions: readonly Position[]): Promise<void> {
    const { random } = this.#client.platform
    while (!this.#client.world.isDraining) {
      await this.#client.think(20)
      const read = await fetchOnce(this.#client, positions, {
        maxWaitMs: random.int(300),
        maxBytes: 1000 + random.int(largestFetchBytes),
      })
      for (const part of read ?? []) {
        await resetIfOutOfRange(this.#client, part)
        const { position, records, highWatermark, logStartOffset } = part
        const isAtEnd = records.length === 0 && position.offset === highWatermark
        if (isAtEnd && this.#client.chance(0.05)) position.offset = Math.max(0, logStartOffset)
      }
    }
  }
}
