import { apis, ErrorCode } from '../../../src/protocol/index.ts'
import { Client } from '../node/client.ts'
import type { SimulatedTopic } from '../node/history.ts'
import type { ClusterWorld } from './world.ts'

const thinkMs = 800
const highWatermark = -1n
const mostAtOnce = 40

/** Deletes records from the start of partitions, some up to the high watermark. */
export class RecordsDeleter {
  readonly #client: Client
  readonly #topics: readonly SimulatedTopic[]

  constructor(world: ClusterWorld, name: string, topics: readonly SimulatedTopic[]) {
    this.#client = new Client(world, name)
    this.#topics = topics
  }

  async run(): Promise<void> {
    const client = this.#client
    const { random } = client.platform
    const starts = new Map<SimulatedTopic, number>()
    while (!client.world.isDraining) {
      await client.think(thinkMs)
      const topic = this.#topics[random.int(this.#topics.length)]!
      const partition = random.int(topic.partitionCount)
      const subject = { topic: topic.name, partition }
      const offset = client.chance(0.15) ? highWatermark : BigInt((starts.get(topic) ?? 0) + random.int(mostAtOnce))
      const answer = await client.request(
        apis.DeleteRecords,
        2,
        {
          timeoutMs: 2000,
          topics: [{ name: topic.name, partitions: [{ partitionIndex: partition, offset: Number(offset) }] }],
        },
        subject,
      )
      const found = answer?.topics[0]?.partitions[0]
      if (found?.errorCode !== ErrorCode.NONE) {
        if (found?.errorCode !== ErrorCode.OFFSET_OUT_OF_RANGE) client.onRefused(subject)
        continue
      }
      starts.set(topic, Math.max(starts.get(topic) ?? 0, found.lowWatermark))
      client.world.history.add({ kind: 'records-deleted', topic, partition, lowWatermark: found.lowWatermark })
    }
  }
}
