import { type ConfigEntry, inheritedTopicTexts, type ParsedConfig } from './broker-config.ts'
import { type BrokerValues, brokerKeys } from './broker-keys.ts'
import { shortened } from './config-error.ts'
import { isKafkaBrokerKey } from './kafka-keys.ts'
import type { AnyKey } from './keys.ts'
import { nearestOf } from './nearest.ts'
import { topicConfigOf } from './topic-config.ts'
import { topicKeys } from './topic-keys.ts'

/** What the cluster's metadata sets for brokers, by broker id; '' is the default of the cluster. The maps never change. */
export interface BrokerConfigTexts {
  of(resourceType: 'broker', resourceName: string): ReadonlyMap<string, string>
}

/**
 * The settings of a node from its start on: those of the start, under what the cluster's metadata has set since, for all
 * brokers and for this one.
 */
export class DynamicConfig {
  readonly #initial: ParsedConfig
  #current: ParsedConfig
  #own: ReadonlyMap<string, string> | undefined
  #clusterDefault: ReadonlyMap<string, string> | undefined

  constructor(initial: ParsedConfig) {
    this.#initial = initial
    this.#current = initial
  }

  /** As of that metadata: the same object as before as long as the metadata sets the same. */
  at(configs: BrokerConfigTexts): ParsedConfig {
    const own = configs.of('broker', String(this.#initial.nodeId))
    const clusterDefault = configs.of('broker', '')
    if (own === this.#own && clusterDefault === this.#clusterDefault) return this.#current
    this.#own = own
    this.#clusterDefault = clusterDefault
    this.#current = withDynamicTexts(this.#initial, own, clusterDefault)
    return this.#current
  }
}

const declared: ReadonlyMap<string, AnyKey> = new Map(Object.values(brokerKeys).map((key) => [key.name, key]))
const dynamicKeys = Object.entries<AnyKey>(brokerKeys).filter(([, key]) => key.dynamic)

/** Texts that can't be read, which a later version may have stored, are left out. */
function withDynamicTexts(
  config: ParsedConfig,
  own: ReadonlyMap<string, string>,
  clusterDefault: ReadonlyMap<string, string>,
): ParsedConfig {
  const values: Record<string, unknown> = { ...config.values }
  const entries = new Map<string, ConfigEntry>(config.entries)
  for (const [property, key] of dynamicKeys) {
    const ofBroker = parsedText(key, own)
    const ofCluster = parsedText(key, clusterDefault)
    const winner = ofBroker ?? ofCluster
    if (winner === undefined) continue
    values[property] = winner.value
    entries.set(key.name, {
      ...entries.get(key.name)!,
      text: winner.text,
      dynamicText: ofBroker?.text ?? null,
      clusterDefaultText: ofCluster?.text ?? null,
    })
  }
  const topicDefaultTexts = inheritedTopicTexts(entries)
  return Object.freeze({
    ...config,
    values: Object.freeze(values) as BrokerValues,
    entries,
    topicDefaultTexts,
    topicDefaults: topicConfigOf(new Map(), topicDefaultTexts),
  })
}

function parsedText(key: AnyKey, texts: ReadonlyMap<string, string>) {
  const text = texts.get(key.name)
  return text === undefined ? undefined : key.parse(text)
}

/** Why these can't be the dynamic settings of a broker, or of the cluster; undefined when they can. */
export function validateDynamicConfig(texts: ReadonlyMap<string, string>): { readonly message: string } | undefined {
  for (const [name, text] of texts) {
    const message = faultOf(name, text)
    if (message !== undefined) return { message }
  }
  return undefined
}

function faultOf(name: string, text: string): string | undefined {
  const key = declared.get(name)
  if (key === undefined) {
    if (isKafkaBrokerKey(name)) return `Rookery does not act on ${name}: it can't be set while the broker runs`
    const nearest = nearestOf(name, declared.keys())
    return `Unknown broker config ${shortened(name)}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`
  }
  if (!key.dynamic) return `Cannot update ${name} dynamically: it is read when the broker starts`
  if (key.parse(text) !== undefined) return undefined
  return `${name}=${key.sensitive ? '(hidden)' : shortened(text)}: allowed is ${key.allowed}`
}

/** The elements that a LIST key has where it isn't set; undefined for a key that is no list, or unknown. */
export function listDefaultOf(resourceType: 'topic' | 'broker', name: string): readonly string[] | undefined {
  const key = resourceType === 'broker' ? declared.get(name) : topicKeyByName.get(name)
  if (key?.type !== 'LIST') return undefined
  return (key.defaultText ?? '').split(',').filter((element) => element !== '')
}

const topicKeyByName: ReadonlyMap<string, AnyKey> = new Map(
  Object.values<AnyKey>(topicKeys).map((key) => [key.name, key]),
)
