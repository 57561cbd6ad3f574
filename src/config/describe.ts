import type { ConfigEntry, ParsedConfig } from './broker-config.ts'
import type { AnyKey, KeyType } from './keys.ts'
import type { TopicOverrides } from './topic-config.ts'
import { brokerSynonymsOf, topicKeys } from './topic-keys.ts'

/** Where a value comes from, as DescribeConfigs numbers it. */
export const configSource = { topic: 1, staticBroker: 4, default: 5 } as const
export type ConfigSource = (typeof configSource)[keyof typeof configSource]

/** The type of a key, as DescribeConfigs numbers it. */
export const configType = {
  BOOLEAN: 1,
  STRING: 2,
  INT: 3,
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
  readonly source: ConfigSource
  readonly type: ConfigType
  readonly readOnly: boolean
  readonly sensitive: boolean
  readonly documentation: string
  /** Every place that gives a value, from the one that counts to the built-in default. */
  readonly synonyms: readonly ConfigSynonym[]
}

export interface ConfigSynonym {
  readonly name: string
  readonly value: string
  readonly source: ConfigSource
}

/** Every setting of a topic with these overrides, sorted by name; `overrides` are valid. */
export function describeTopicConfig(overrides: TopicOverrides, config: ParsedConfig): readonly DescribedConfig[] {
  const described: DescribedConfig[] = []
  for (const key of Object.values<AnyKey>(topicKeys)) {
    if (key.internal && !overrides.has(key.name)) continue
    const own = overrides.get(key.name)
    const value = own === undefined ? (config.topicDefaultTexts.get(key.name) ?? null) : (key.parse(own)?.text ?? own)
    const names = brokerSynonymsOf(key).map((synonym) => synonym.name)
    const inherited = brokerSynonyms(names.flatMap((name) => config.entries.get(name) ?? []))
    const synonyms =
      own === undefined || value === null
        ? inherited
        : [{ name: key.name, value, source: configSource.topic }, ...inherited]
    described.push(describe(key, value, synonyms, false))
  }
  return described
}

/** Every setting of this broker, sorted by name. */
export function describeBrokerConfig(config: ParsedConfig): readonly DescribedConfig[] {
  return [...config.entries.values()]
    .filter((entry) => !entry.key.internal)
    .map((entry) => describe(entry.key, entry.text, brokerSynonyms([entry]), true))
    .sort((left, right) => (left.name < right.name ? -1 : 1))
}

function describe(
  key: AnyKey,
  value: string | null,
  synonyms: readonly ConfigSynonym[],
  readOnly: boolean,
): DescribedConfig {
  return {
    name: key.name,
    value: key.sensitive ? null : value,
    source: synonyms[0]?.source ?? configSource.default,
    type: configType[key.type],
    readOnly,
    sensitive: key.sensitive,
    documentation: key.documentation,
    synonyms: key.sensitive ? [] : synonyms,
  }
}

/** First what was set, then the defaults, each in the order of `entries`: as Kafka lists them. */
function brokerSynonyms(entries: readonly ConfigEntry[]): ConfigSynonym[] {
  const set = entries.flatMap(({ key, text, source }) =>
    source === 'default' || text === null ? [] : [{ name: key.name, value: text, source: configSource.staticBroker }],
  )
  const defaults = entries.flatMap(({ key, defaultText }) =>
    defaultText === null ? [] : [{ name: key.name, value: defaultText, source: configSource.default }],
  )
  return [...set, ...defaults]
}
