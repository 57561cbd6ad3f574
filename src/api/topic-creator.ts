import type { ParsedConfig } from '../config/index.ts'
import type { Coordination, CreateTopicRequest, CreateTopicResult } from '../coordination/index.ts'
import type { TopicImage } from '../metadata/index.ts'
import { offsetsTopic } from './topic-names.ts'

/** A topic as this broker's image has it, or why there is none. */
type EnsuredTopic = TopicImage | Extract<CreateTopicResult, { ok: false }>

/** How long a client's request waits for a topic that is created on its way. */
const createTimeoutMs = 10_000

/**
 * Creates topics that a request needs: named in Metadata, or the internal one that coordinators keep their state in. However
 * many ask for a topic at a time, it is created once and all get it.
 */
export class TopicCreator {
  readonly #coordination: Coordination
  readonly #config: ParsedConfig
  readonly #underWay = new Map<string, Promise<CreateTopicResult>>()

  constructor(coordination: Coordination, config: ParsedConfig) {
    this.#coordination = coordination
    this.#config = config
  }

  /** The topic as this broker's image has it, or why there is none. Rejects when no controller answers in time. */
  ensure(name: string): Promise<EnsuredTopic> {
    return this.ensureAll([name])[0]!
  }

  /**
   * The same for many, in their order. The controller is asked once for all that nobody asked for yet: what one request may
   * create so has the controller's limit, and a request that names a hundred thousand topics is one refusal.
   */
  ensureAll(names: readonly string[]): readonly Promise<EnsuredTopic>[] {
    const { topics } = this.#coordination.image
    const missing = new Set(names.filter((name) => topics.byName(name) === undefined && !this.#underWay.has(name)))
    if (missing.size > 0) this.#create([...missing])
    return names.map((name) => this.#outcome(name))
  }

  async #outcome(name: string): Promise<EnsuredTopic> {
    const present = this.#coordination.image.topics.byName(name)
    if (present !== undefined) return present
    const result = await this.#underWay.get(name)!
    const created = this.#coordination.image.topics.byName(name)
    if (created !== undefined) return created
    if (!result.ok) return result
    // Deleted again before this broker looked.
    return { ok: false, name, reason: 'invalid-request', message: `Topic ${name} was deleted while it was created` }
  }

  #create(names: readonly string[]): void {
    const requests = names.map((name) => (name === offsetsTopic ? this.#offsetsTopicRequest() : plainTopic(name)))
    const creation = this.#coordination.admin.createTopics(requests, { timeoutMs: createTimeoutMs })
    const ended = creation.finally(() => {
      for (const name of names) this.#underWay.delete(name)
    })
    for (const [i, name] of names.entries())
      this.#underWay.set(
        name,
        ended.then((results) => results[i]!),
      )
  }

  /** Unless it is set: fewer where there are fewer brokers yet. The controller adds the others' when they are there. */
  get #offsetsReplicationFactor(): number {
    const { values, entries } = this.#config
    const factor = values.offsetsTopicReplicationFactor
    if (entries.get('offsets.topic.replication.factor')?.source !== 'default') return factor
    const brokerCount = [...this.#coordination.image.cluster.brokers()].length
    return Math.max(1, Math.min(factor, brokerCount))
  }

  /** Compacted, so that of each group and offset only the latest state is kept. */
  #offsetsTopicRequest(): CreateTopicRequest {
    const { values } = this.#config
    return {
      name: offsetsTopic,
      partitionCount: values.offsetsTopicNumPartitions,
      replicationFactor: this.#offsetsReplicationFactor,
      configs: new Map([
        ['cleanup.policy', 'compact'],
        ['compression.type', 'producer'],
        segmentSize(values.offsetsTopicSegmentBytes),
      ]),
    }
  }
}

/** `segment.bytes` is refused below a mebibyte, which brokers are given in tests to see logs roll. */
function segmentSize(bytes: number): [key: string, value: string] {
  return [bytes < 1024 * 1024 ? 'internal.segment.bytes' : 'segment.bytes', String(bytes)]
}

function plainTopic(name: string): CreateTopicRequest {
  return { name, partitionCount: -1, replicationFactor: -1, configs: new Map() }
}
