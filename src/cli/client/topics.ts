import { apis } from '../../protocol/index.ts'
import type { Cluster } from './cluster.ts'
import { type ConfigEntrySource, describeConfigs } from './configs.ts'
import { connectionFaultText, RequestRefusedError, UnknownTopicError } from './errors.ts'
import { earliest, latest, placeName, probeOffsets } from './offsets.ts'

export interface NewTopic {
  readonly name: string
  /** -1: as the broker is set. */
  readonly partitions: number
  /** -1: as the broker is set. */
  readonly replicationFactor: number
  /** Under Kafka's keys. */
  readonly configs: Readonly<Record<string, string>>
}

/** What became of one topic. */
export type TopicOutcome = {
  readonly name: string
  readonly error: RequestRefusedError | UnknownTopicError | undefined
}

export interface CreatedTopic {
  readonly name: string
  /** -1 when the broker doesn't tell. */
  readonly partitions: number
  readonly error: RequestRefusedError | undefined
}

/** One outcome for each topic; those that can be created are, whatever the others come to. */
export async function createTopics(cluster: Cluster, topics: readonly NewTopic[]): Promise<readonly CreatedTopic[]> {
  const connection = await cluster.controller()
  const request = {
    topics: topics.map(({ name, partitions, replicationFactor, configs }) => ({
      name,
      numPartitions: partitions,
      replicationFactor,
      assignments: [],
      configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
    })),
    timeoutMs: cluster.timeoutMs,
  }
  const answer = await connection.call(apis.CreateTopics, request, { timeoutMs: cluster.timeoutMs + 1000 })
  return answer.topics.map(({ name, numPartitions, errorCode, errorMessage }) => ({
    name,
    partitions: numPartitions,
    error: refusal(`Topic ${name}`, errorCode, errorMessage),
  }))
}

export async function deleteTopics(cluster: Cluster, names: readonly string[]): Promise<readonly TopicOutcome[]> {
  const connection = await cluster.controller()
  const request = { topicNames: names, timeoutMs: cluster.timeoutMs }
  const answer = await connection.call(apis.DeleteTopics, request, { timeoutMs: cluster.timeoutMs + 1000 })
  return answer.responses.map(({ name, errorCode, errorMessage }) => ({
    name: name ?? '',
    error: refusal(`Topic ${name}`, errorCode, errorMessage),
  }))
}

/** Gives topics further partitions, up to `total` each; one outcome for each topic. */
export async function createPartitions(
  cluster: Cluster,
  names: readonly string[],
  total: number,
): Promise<readonly TopicOutcome[]> {
  const connection = await cluster.controller()
  const request = {
    topics: names.map((name) => ({ name, count: total, assignments: null })),
    timeoutMs: cluster.timeoutMs,
    validateOnly: false,
  }
  const answer = await connection.call(apis.CreatePartitions, request, { timeoutMs: cluster.timeoutMs + 1000 })
  return answer.results.map(({ name, errorCode, errorMessage }) => ({
    name,
    error: refusal(`Topic ${name}`, errorCode, errorMessage),
  }))
}

/**
 * The topics that names and patterns mean, each once, in their order. A pattern has a `*`, which stands for any text; it matches
 * topics of Kafka's own only where it begins as they do, with `__`. Throws `UnknownTopicError` for a pattern that matches none;
 * whether there is a topic of a plain name isn't asked.
 */
export async function matchingTopics(cluster: Cluster, patterns: readonly string[]): Promise<readonly string[]> {
  if (!patterns.some((pattern) => pattern.includes('*'))) return [...new Set(patterns)]
  const all = await cluster.allTopics()
  const names = new Set<string>()
  for (const pattern of patterns) {
    const expression = new RegExp(`^${pattern.replaceAll(/[^\w*]/g, '\\$&').replaceAll('*', '.*')}$`)
    const found = pattern.includes('*')
      ? all.filter((topic) => expression.test(topic.name) && (!topic.isInternal || pattern.startsWith('__')))
      : [{ name: pattern }]
    if (found.length === 0) throw new UnknownTopicError(pattern, undefined)
    for (const { name } of found) names.add(name)
  }
  return [...names]
}

export interface TopicDescription {
  readonly name: string
  readonly partitions: readonly {
    readonly partition: number
    readonly leader: number
    readonly replicas: readonly number[]
    readonly isr: readonly number[]
    /** First offset that is there; null without a leader that tells it. */
    readonly firstOffset: number | null
    /** Exclusive; null without a leader that tells it. */
    readonly endOffset: number | null
    /** What its leader answers instead; null when it serves the partition, or there is none. */
    readonly error: string | null
  }[]
  /** What the topic sets for itself; with `allConfigs` what brokers and defaults say as well. Sorted by key. */
  readonly configs: Readonly<Record<string, string | null>>
  /** Who says so, by key. */
  readonly configSources: Readonly<Record<string, ConfigEntrySource>>
}

/** Throws `RequestRefusedError`, `ClusterUnreachableError`. */
export async function describeTopic(
  cluster: Cluster,
  name: string,
  options: { readonly allConfigs: boolean },
): Promise<TopicDescription> {
  const { partitions } = await cluster.topic(name)
  const places = partitions.filter(({ leaderId }) => leaderId >= 0).map(({ partition }) => ({ topic: name, partition }))
  const [first, end, configs] = await Promise.all([
    probeOffsets(cluster, places, earliest),
    probeOffsets(cluster, places, latest),
    describeConfigs(cluster, { kind: 'topic', name }),
  ])
  const shown = configs.filter(({ source }) => options.allConfigs || source === 'topic')
  return {
    name,
    partitions: partitions.map(({ partition, leaderId, replicas, isr }) => {
      const firstAnswer = first.get(placeName({ topic: name, partition })) ?? null
      const endAnswer = end.get(placeName({ topic: name, partition })) ?? null
      const failure = [endAnswer, firstAnswer].find((answer) => answer instanceof Error)
      return {
        partition,
        leader: leaderId,
        replicas,
        isr,
        firstOffset: typeof firstAnswer === 'number' ? firstAnswer : null,
        endOffset: typeof endAnswer === 'number' ? endAnswer : null,
        error: failure === undefined ? null : connectionFaultText(failure),
      }
    }),
    configs: Object.fromEntries(shown.map(({ key, value }) => [key, value])),
    configSources: Object.fromEntries(shown.map(({ key, source }) => [key, source])),
  }
}

function refusal(what: string, errorCode: number, message: string | null): RequestRefusedError | undefined {
  return errorCode === 0 ? undefined : new RequestRefusedError(what, errorCode, message)
}
