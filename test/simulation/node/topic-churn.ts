import { createTopic, deleteTopic, listTopics } from './admin.ts'
import { Client } from './client.ts'
import type { SimulatedTopic } from './history.ts'
import { Producer } from './producer.ts'
import { fetchOnce } from './reading.ts'
import type { TopicPlan } from './scenario.ts'
import type { ClientWorld } from './world.ts'

const plan: TopicPlan = {
  name: 'short-lived',
  partitionCount: 2,
  isDurable: true,
  hasRetention: false,
  isCompacted: false,
  configs: { 'internal.segment.bytes': '20000' },
}

/**
 * Creates a topic, writes to it, reads it, deletes it, and again under the same name: each begins empty. Where it is to leave one
 * behind, it ends with one that it doesn't delete.
 */
export class TopicChurn {
  readonly #client: Client
  readonly #onLeft: ((topic: SimulatedTopic) => void) | undefined
  #cycles = 0

  /** `onLeft`: is told of the topic that is left behind; none is when it is left out. */
  constructor(world: ClientWorld, name: string, onLeft?: (topic: SimulatedTopic) => void) {
    this.#client = new Client(world, name)
    this.#onLeft = onLeft
  }

  async run(): Promise<void> {
    while (!this.#client.world.isDraining) {
      await this.#client.think(100)
      const topic = await createTopic(this.#client, plan)
      await this.#use(topic)
      await listTopics(this.#client)
      await deleteTopic(this.#client, topic.topicId)
      await listTopics(this.#client)
    }
    if (this.#onLeft === undefined) return
    const last = await createTopic(this.#client, plan)
    await this.#use(last)
    this.#onLeft(last)
  }

  /** A few batches, each sent once; what is read must be of this topic only, which the checkers know by its id. */
  async #use(topic: SimulatedTopic): Promise<void> {
    const producer = new Producer(
      this.#client.world,
      `${this.#client.name}-${this.#cycles++}`,
      {
        isIdempotent: false,
        acks: -1,
        codec: 'none',
        window: 3,
        thinkMs: 5,
        maxRecords: 3,
        maxRecordBytes: 100,
        patienceMs: 60_000,
        mischief: 0,
      },
      [topic],
    )
    await producer.sendOnce()
    const positions = [0, 1].map((partition) => ({ topic, partition, offset: 0 }))
    await fetchOnce(this.#client, positions, { maxWaitMs: 0, maxBytes: 100_000 })
  }
}
