import type { ConfigEntry, ParsedConfig } from './broker-config.ts'
import type { AnyKey, KeyType } from './keys.ts'
import type { TopicOverrides } from './topic-config.ts'
import { brokerSynonymsOf, equivalentBrokerKeys, topicKeys } from './topic-keys.ts'

/** Where a value comes from, as DescribeConfigs numbers it. */
export const configSource = { topic: 1, dynamicBroker: 2, clusterDefault: 3, staticBroker: 4, default: 5 } as const
export type ConfigSource = (typeof configSource)[keyof typeof configSource]

/** The type of a key, as DescribeConfigs numbers it. */
export const configType = {
  BOOLEAN: 1,
  STRING: 2,
  INT: 3,
  SHORT: 4,
  LONG: 5,
  DOUBLE: 6,
  LIST: 7,
  PASSWORD: 9,
} as const satisfies Record<KeyType, number>
export type ConfigType = (typeof configType)[KeyType]

/** One setting with what it stands on, as DescribeConfigs and CreateTopics answer it. */
export interface DescribedConfig {
  readonly name: string
  /** Null when it has none, or when it must not be shown. */
  readonly value: string | null
  /** Where the value that counts was said. */
  readonly source: ConfigSource
  readonly type: ConfigType
  readonly readOnly: boolean
  readonly sensitive: boolean
  readonly documentation: string
  /**
   * Places that give a value, from the one that counts to the built-in default. As in Kafka, what a broker says under another
   * name (`log.retention.hours`) is listed only behind what it says under the first one (`log.retention.ms`).
   */
  readonly synonyms: readonly ConfigSynonym[]
}

export interface ConfigSynonym {
  readonly name: string
  /** Null when it must not be shown. */
  readonly value: string | null
  readonly source: ConfigSource
}

/** Every setting of a topic with these overrides, sorted by name; `overrides` are valid. */
export function describeTopicConfig(overrides: TopicOverrides, config: ParsedConfig): readonly DescribedConfig[] {
  const described: DescribedConfig[] = []
  for (const key of Object.values<AnyKey>(topicKeys)) {
    if (key.internal && !overrides.has(key.name)) continue
    const own = overrides.get(key.name)
    const value = own === undefined ? (config.topicDefaultTexts.get(key.name) ?? null) : own
    const names = brokerSynonymsOf(key).map((synonym) => synonym.name)
    const inherited = places(names, config)
    const listed = names[0] === undefined ? [] : fromName(names[0], inherited)
    if (own === undefined || value === null) {
      described.push(describe(key, value, inherited[0]?.source, listed, false))
    } else {
      const synonyms = [{ name: key.name, value, source: configSource.topic }, ...listed]
      described.push(describe(key, value, configSource.topic, synonyms, false))
    }
  }
  return described
}

/** Every setting of this broker, sorted by name; internal ones only where the metadata set them. */
export function describeBrokerConfig(config: ParsedConfig): readonly DescribedConfig[] {
  const described: DescribedConfig[] = []
  for (const { key, text, dynamicText, clusterDefaultText } of config.entries.values()) {
    if (key.internal && dynamicText === null && clusterDefaultText === null) continue
    const synonyms = fromName(key.name, places(equivalentBrokerKeys(key.name), config))
    described.push(describe(key, text, synonyms[0]?.source, synonyms, !key.dynamic))
  }
  return described.sort(byName)
}

/** What the cluster's metadata sets for every broker, sorted by name. */
export function describeClusterDefaults(config: ParsedConfig): readonly DescribedConfig[] {
  const described: DescribedConfig[] = []
  for (const { key, clusterDefaultText } of config.entries.values()) {
    if (clusterDefaultText === null) continue
    const source = configSource.clusterDefault
    const synonyms = [{ name: key.name, value: clusterDefaultText, source }]
    described.push(describe(key, clusterDefaultText, source, synonyms, false))
  }
  return described.sort(byName)
}

function describe(
  key: AnyKey,
  value: string | null,
  source: ConfigSource | undefined,
  synonyms: readonly ConfigSynonym[],
  readOnly: boolean,
): DescribedConfig {
  return {
    name: key.name,
    value: key.sensitive ? null : value,
    source: source ?? configSource.default,
    type: configType[key.type],
    readOnly,
    sensitive: key.sensitive,
    documentation: key.documentation,
    synonyms: key.sensitive ? synonyms.map((synonym) => ({ ...synonym, value: null })) : synonyms,
  }
}

const layers: readonly (readonly [ConfigSource, (entry: ConfigEntry) => string | null])[] = [
  [configSource.dynamicBroker, (entry) => entry.dynamicText],
  [configSource.clusterDefault, (entry) => entry.clusterDefaultText],
  [configSource.staticBroker, (entry) => entry.staticText],
  [configSource.default, (entry) => entry.defaultText],
]

/** Every place that says something under one of the broker's `names`: by the rank of the place, then by that of the name. */
function places(names: readonly string[], config: ParsedConfig): ConfigSynonym[] {
  const entries = names.flatMap((name) => config.entries.get(name) ?? [])
  return layers.flatMap(([source, textOf]) =>
    entries.flatMap((entry) => {
      const value = textOf(entry)
      return value === null ? [] : [{ name: entry.key.name, value, source }]
    }),
  )
}

function fromName(name: string, synonyms: readonly ConfigSynonym[]): readonly ConfigSynonym[] {
  const first = synonyms.findIndex((synonym) => synonym.name === name)
  return first < 0 ? [] : synonyms.slice(first)
}

function byName(left: DescribedConfig, right: DescribedConfig): number {
  return left.name < right.name ? -1 : 1
}
