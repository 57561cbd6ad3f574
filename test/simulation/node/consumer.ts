import { Client } from './client.ts'
import type { SimulatedTopic } from './history.ts'
import { fetchOnce, type Position, resetIfOutOfRange } from './reading.ts'
import type { World } from './world.ts'

const largestFetchBytes = 60_000

/** Reads all partitions of its topics from the start, over and over: at their end it begins again, to see whether anything changed. */
export class Consumer {
  readonly #client: Client
  readonly #positions: Position[]

  constructor(world: World, name: string, topics: readonly SimulatedTopic[]) {
    this.#client = new Client(world, name)
    this.#positions = topics.flatMap((topic) =>
      Array.from({ length: topic.partitionCount }, (_, partition) => ({ topic, partition, offset: 0 })),
    )
  }

  async run(): Promise<void> {
    const { random } = this.#client.platform
    while (!this.#client.world.isDraining) {
      await this.#client.think(20)
      const read = await fetchOnce(this.#client, this.#positions, {
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
