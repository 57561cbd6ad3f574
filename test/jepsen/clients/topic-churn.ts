import type { KafkaClient } from '../../../src/network/index.ts'
import { apis, ErrorCode } from '../../../src/protocol/index.ts'
import type { TopicChange } from '../judge/history.ts'
import { pause, Session, type World } from './session.ts'

const churnPrefix = 'churn-'
const timeoutMs = 5000
/** More would only take memory: each change is one entry of the metadata log, whatever there is. */
const maxTopics = 30

/** Creates topics and deletes them, through any broker, and looks there at what is listed. */
export class TopicChurn {
  readonly name: string
  readonly #session: Session
  readonly #present: string[] = []
  #count = 0
  #acknowledgedCount = 0

  constructor(world: World, name: string) {
    this.name = name
    this.#session = new Session(world)
  }

  get progress(): number {
    return this.#acknowledgedCount
  }

  async run(): Promise<void> {
    const { world } = this.#session
    while (!world.isDraining) {
      const ids = [...world.addresses.keys()]
      const id = ids[Math.floor(world.random() * ids.length)]!
      const client = await this.#session.connection(id).catch(() => undefined)
      if (client !== undefined) await this.#change(client, id)
      await pause(100 * world.random())
    }
    this.#session.close()
  }

  async #change(client: KafkaClient, node: number): Promise<void> {
    const { world } = this.#session
    const isDeletion = this.#present.length > 0 && world.random() < this.#present.length / maxTopics
    const name = isDeletion ? this.#present.shift()! : `${churnPrefix}${this.name}-${this.#count++}`
    const change: TopicChange = {
      kind: 'topic-change',
      process: this.name,
      node,
      name,
      isDeletion,
      invokedMs: world.recording.now(),
      completedMs: Number.POSITIVE_INFINITY,
      outcome: 'unknown',
    }
    world.recording.topicChanges.push(change)
    // Whether it is there may be unknown: then it may be deleted as well.
    if (!isDeletion) this.#present.push(name)
    try {
      const errorCode = isDeletion ? await deleteTopic(client, name) : await createTopic(client, name)
      change.note = `error ${errorCode}`
      if (errorCode !== ErrorCode.NONE) return
      change.completedMs = world.recording.now()
      change.outcome = 'ok'
      this.#acknowledgedCount++
      await listTopics(world, client, this.name, node, false)
    } catch (error) {
      change.note = (error as Error).message
    }
  }
}

/** Records the topics of such clients that a broker knows. Throws when it doesn't answer. */
export async function listTopics(
  world: World,
  client: KafkaClient,
  process: string,
  node: number,
  isFinal: boolean,
): Promise<void> {
  const invokedMs = world.recording.now()
  const { topics } = await client.request(apis.Metadata, 12, { topics: null })
  world.recording.topicListings.push({
    kind: 'topic-listing',
    process,
    node,
    isFinal,
    names: topics.map(({ name }) => name ?? '').filter((name) => name.startsWith(churnPrefix)),
    invokedMs,
    completedMs: world.recording.now(),
    outcome: 'ok',
  })
}

async function createTopic(client: KafkaClient, name: string): Promise<number> {
  const topic = { name, numPartitions: 1, replicationFactor: 3, assignments: [], configs: [] }
  const { topics } = await client.request(apis.CreateTopics, 7, { topics: [topic], timeoutMs })
  return topics[0]!.errorCode
}

async function deleteTopic(client: KafkaClient, name: string): Promise<number> {
  const { responses } = await client.request(apis.DeleteTopics, 5, { topicNames: [name], timeoutMs })
  return responses[0]!.errorCode
}
