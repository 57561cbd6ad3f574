import { apis, ErrorCode } from '../../protocol/index.ts'
import type { Cluster } from './cluster.ts'
import type { BrokerConnection } from './connection.ts'
import { expectNoError, RequestRefusedError, UnknownBrokerError, type UnknownTopicError } from './errors.ts'

/** What has settings. A broker is named by its id; '' is what is set for all brokers. */
export interface ConfigResource {
  readonly kind: 'topic' | 'broker'
  readonly name: string
}

export interface ConfigEntry {
  readonly key: string
  /** Null when it has none, or is secret. */
  readonly value: string | null
  readonly source: ConfigEntrySource
  readonly readOnly: boolean
  readonly sensitive: boolean
  /** Null when the broker tells none. */
  readonly documentation: string | null
  /** Every place that gives a value, from the one that counts. */
  readonly synonyms: readonly {
    readonly key: string
    readonly value: string | null
    readonly source: ConfigEntrySource
  }[]
}

/** Who says so: the topic, this broker or all brokers while they run, what the broker was started with (file, variables, options), or nobody. */
export type ConfigEntrySource = 'topic' | 'broker' | 'all brokers' | 'start' | 'default' | 'other'

export interface ConfigChange {
  readonly operation: 'set' | 'delete' | 'append' | 'subtract'
  readonly key: string
  /** Null to delete. */
  readonly value: string | null
}

/** As the protocol numbers them. */
const resourceTypes = { topic: 2, broker: 4 } as const
const sources: Readonly<Record<number, ConfigEntrySource>> = {
  1: 'topic',
  2: 'broker',
  3: 'all brokers',
  4: 'start',
  5: 'default',
}
const operations = { set: 0, delete: 1, append: 2, subtract: 3 } as const

/** Every setting, sorted by key. Throws `RequestRefusedError`, `UnknownTopicError`, `ClusterUnreachableError`. */
export async function describeConfigs(cluster: Cluster, resource: ConfigResource): Promise<readonly ConfigEntry[]> {
  const connection = await connectionFor(cluster, resource)
  const asked = { ...protocolName(resource), configurationKeys: null }
  const request = { resources: [asked], includeSynonyms: true, includeDocumentation: true }
  const { results } = await connection.call(apis.DescribeConfigs, request)
  const entries: ConfigEntry[] = []
  for (const { errorCode, errorMessage, configs } of results) {
    if (isUnknownTopic(resource, errorCode)) throw await cluster.unknownTopic(resource.name)
    expectNoError(`Settings of ${titleOf(resource)}`, errorCode, errorMessage)
    for (const { name, value, configSource, readOnly, isSensitive, documentation, synonyms } of configs) {
      entries.push({
        key: name,
        value,
        source: sourceOf(configSource),
        readOnly,
        sensitive: isSensitive,
        documentation: documentation ?? null,
        synonyms: synonyms.map((each) => ({ key: each.name, value: each.value, source: sourceOf(each.source) })),
      })
    }
  }
  return entries.sort((left, right) => (left.key < right.key ? -1 : 1))
}

/** All of the changes or none; undefined when they are made. `validateOnly`: they would be. */
export async function alterConfigs(
  cluster: Cluster,
  resource: ConfigResource,
  changes: readonly ConfigChange[],
  validateOnly: boolean,
): Promise<RequestRefusedError | UnknownTopicError | undefined> {
  const connection = await connectionFor(cluster, resource)
  const configs = changes.map(({ operation, key, value }) => ({
    name: key,
    configOperation: operations[operation],
    value,
  }))
  const request = { resources: [{ ...protocolName(resource), configs }], validateOnly }
  const { responses } = await connection.call(apis.IncrementalAlterConfigs, request, { timeoutMs: cluster.timeoutMs })
  const refused = responses.find(({ errorCode }) => errorCode !== 0)
  if (refused === undefined) return undefined
  if (isUnknownTopic(resource, refused.errorCode)) return await cluster.unknownTopic(resource.name)
  return new RequestRefusedError(`Settings of ${titleOf(resource)}`, refused.errorCode, refused.errorMessage)
}

/** `topic orders`, `broker 1`, `all brokers` */
export function titleOf({ kind, name }: ConfigResource): string {
  return kind === 'broker' && name === '' ? 'all brokers' : `${kind} ${name}`
}

/** A broker tells and changes only its own settings. */
async function connectionFor(cluster: Cluster, { kind, name }: ConfigResource): Promise<BrokerConnection> {
  if (kind === 'topic' || name === '') return await cluster.any()
  await cluster.refresh([])
  const id = Number(name)
  if (!cluster.addresses.has(id)) {
    throw new UnknownBrokerError(id, [...cluster.addresses.keys()])
  }
  return await cluster.broker(id)
}

function isUnknownTopic({ kind }: ConfigResource, errorCode: number): boolean {
  return kind === 'topic' && errorCode === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
}

function protocolName({ kind, name }: ConfigResource) {
  return { resourceType: resourceTypes[kind], resourceName: name }
}

function sourceOf(source: number): ConfigEntrySource {
  return sources[source] ?? 'other'
}
