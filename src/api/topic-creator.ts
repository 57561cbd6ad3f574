import type { ParsedConfig } from '../config/index.ts'
import type { Coordination, CreateTopicRequest, CreateTopicResult } from '../coordination/index.ts'
import type { TopicImage } from '../metadata/index.ts'
import { offsetsTopic } from './topic-names.ts'

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
  async ensure(name: string): Promise<TopicImage | Extract<CreateTopicResult, { ok: false }>> {
    const present = this.#coordination.image.topics.byName(name)
    if (present !== undefined) return present
    let creation = this.#underWay.get(name)
    if (creation === undefined) {
      creation = this.#create(name).finally(() => this.#underWay.delete(name))
      this.#underWay.set(name, creation)
    }
    const result = await creation
    const created = this.#coordination.image.topics.byName(name)
    if (created !== undefined) return created
    if (!result.ok) return result
    // Deleted again before this broker looked.
    return { ok: false, name, reason: 'invalid-request', message: `Topic ${name} was deleted while it was created` }
  }

  async #create(name: string): Promise<CreateTopicResult> {
    const request = name === offsetsTopic ? this.#offsetsTopicRequest() : plainTopic(name)
    const [result] = await this.#coordination.admin.createTopics([request], { timeoutMs: createTimeoutMs })
    return result!
  }

  /** Compacted, so that of each group and offset only the latest state is kept. */
  #offsetsTopicRequest(): CreateTopicRequest {
    const { values } = this.#config
    return {
      name: offsetsTopic,
      partitionCount: values.offsetsTopicNumPartitions,
      replicationFactor: values.offsetsTopicReplicationFactor,
      configs: new Map([
        ['cleanup.policy', 'compact'],
        ['compression.type', 'producer'],
        ['segment.bytes', String(values.offsetsTopicSegmentBytes)],
      ]),
    }
  }
}

function plainTopic(name: string): CreateTopicRequest {
  return { name, partitionCount: -1, replicationFactor: -1, configs: new Map() }
}
