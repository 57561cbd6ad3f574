import type { BrokerId } from '../base/index.ts'
import { type BrokerValues, brokerKeys } from './broker-keys.ts'
import { ConfigError, type ConfigProblem, shortened } from './config-error.ts'
import { isKafkaBrokerKey, kafkaBrokerKeys } from './kafka-keys.ts'
import type { AnyKey } from './keys.ts'
import { type ListenerConfig, type Roles, resolveListeners } from './listeners.ts'
import { nearestOf } from './nearest.ts'
import {
  checkQuorum,
  isAlone,
  parseBootstrapServers,
  parseQuorumVoters,
  type QuorumVoter,
  type ServerAddress,
} from './quorum.ts'
import { type ConfigInput, readSources, type Setting, type SettingSource } from './sources.ts'
import { namesTls, resolveTls, type TlsConfig } from './tls.ts'
import { type TopicDefaults, topicConfigOf } from './topic-config.ts'
import { brokerSynonymsOf, topicKeys } from './topic-keys.ts'

/** All settings of one node: typed, checked against each other, frozen. */
export interface ParsedConfig extends TopicDefaults {
  /** The value of each declared key, as it is after all sources; the fields below say what several of them mean together. */
  readonly values: BrokerValues
  /** `node.id`, or the older `broker.id`. */
  readonly nodeId: BrokerId
  readonly roles: Roles
  /** A quorum of its own, for good: it has no way to other nodes, and needs none. */
  readonly isAlone: boolean
  /** The folders for data, at least one, as written: they may be relative. Of a node that is no broker that of its metadata. */
  readonly logDirs: readonly string[]
  /** The folder of the metadata log; mostly the first of `logDirs`. */
  readonly metadataLogDir: string
  /** Where clients connect; at least one, and none on a node that is no broker. */
  readonly listeners: readonly ListenerConfig[]
  /** Where the metadata quorum is served; empty for a node that is a quorum of its own and was given none, or is no controller. */
  readonly controllerListeners: readonly ListenerConfig[]
  /** How this node and controllers talk to each other; undefined: without TLS, or there is no other node. */
  readonly controllerTls: TlsConfig | undefined
  /** The name of the one of `listeners` that brokers use among themselves; '' without any. */
  readonly interBrokerListenerName: string
  /** Who votes, for good. Empty: `quorumBootstrapServers` say where voters are found. */
  readonly quorumVoters: readonly QuorumVoter[]
  /** Where controllers are, of a quorum whose voters may change. Empty, as the voters: this node is a quorum of its own. */
  readonly quorumBootstrapServers: readonly ServerAddress[]
  /** Bytes of requests, and as many of responses, that the node holds at one time over all connections. */
  readonly requestMemoryBytes: number
  /** What each declared broker key is and where that was said, by name. */
  readonly entries: ReadonlyMap<string, ConfigEntry>
  /** Keys of Kafka that were set and that Rookery does not act on, sorted: to be named in one line at start. */
  readonly unused: readonly string[]
}

export interface ConfigEntry {
  readonly key: AnyKey
  /** The one that counts. Canonical, like the others; null when the key has no value. */
  readonly text: string | null
  /** What the cluster's metadata says for this broker, and for every broker; null when it says nothing. */
  readonly dynamicText: string | null
  readonly clusterDefaultText: string | null
  /** What the caller's `defaults`, file, environment and overrides say; null when they say nothing. */
  readonly staticText: string | null
  /** What it would be if nothing had been set. */
  readonly defaultText: string | null
  /** Of what was said at the start. */
  readonly source: SettingSource
}

/**
 * The settings of a node from all their sources: built-in defaults, `defaults`, the file, `ROOKERY_` variables, overrides;
 * a later one wins. Throws one ConfigError that names every unknown key, bad value and contradiction.
 */
export function parseConfig(input: ConfigInput = {}): ParsedConfig {
  const problems: ConfigProblem[] = []
  const settings = readSources(input, problems)
  const given: ReadonlyMap<string, Setting> = new Map(settings)
  const unused = takeUnused(settings, problems)
  const { values, entries } = readValues(settings, problems)
  const unreadable = new Set(problems.map(({ key }) => key))
  const isReadable = (...keys: readonly AnyKey[]) => keys.every(({ name }) => !unreadable.has(name))

  // What several keys mean together is looked at wherever these could be read: one start is to tell all that is wrong.
  const contradictions: ConfigProblem[] = []
  const roles = {
    broker: values.processRoles?.includes('broker') === true,
    controller: values.processRoles?.includes('controller') === true,
  }
  if (isReadable(brokerKeys.processRoles) && !roles.broker && !roles.controller) {
    const message = 'process.roles is empty: allowed is broker, controller, or both'
    throw new ConfigError([...problems, { key: 'process.roles', message }])
  }
  const listeners = isReadable(brokerKeys.processRoles, ...listenerKeys)
    ? resolveListeners(values, roles, contradictions)
    : { client: [], controller: [], interBrokerName: '', controllerSecurity: undefined }
  const voters = parseQuorumVoters(values.controllerQuorumVoters ?? [], contradictions)
  const quorumBootstrapServers = parseBootstrapServers(values.controllerQuorumBootstrapServers ?? [], contradictions)
  const nodeId = nodeIdOf(values, entries, contradictions)
  const quorum = { values, nodeId, roles, voters, controllerListenerCount: listeners.controller.length }
  let tls: ReturnType<typeof resolveTls> | undefined
  if (unreadable.size === 0) {
    checkQuorum(quorum, contradictions)
    checkContradictions(values, contradictions)
    const { controllerSecurity } = listeners
    if (controllerSecurity?.protocol === 'SSL' && !isAlone(quorum)) {
      const asked = { listenerName: controllerSecurity.name, listens: roles.controller, given, entries }
      tls = resolveTls(asked, contradictions)
    }
  }
  problems.push(...contradictions.map((problem) => withPlace(problem, given)))
  if (problems.length > 0) throw new ConfigError(problems)

  const configuredDirs = values.logDirs ?? values.logDir
  const metadataLogDir = values.metadataLogDir ?? configuredDirs[0]!
  const topicDefaultTexts = inheritedTopicTexts(entries)
  return Object.freeze({
    values,
    nodeId,
    roles: Object.freeze(roles),
    isAlone: isAlone(quorum),
    logDirs: roles.broker ? configuredDirs : [metadataLogDir],
    metadataLogDir,
    listeners: Object.freeze(listeners.client),
    controllerListeners: Object.freeze(listeners.controller),
    controllerTls: tls?.config,
    interBrokerListenerName: listeners.interBrokerName,
    quorumVoters: voters,
    quorumBootstrapServers,
    requestMemoryBytes: requestMemoryBytesOf(values),
    entries,
    unused: tls === undefined ? withIdleTls(unused, given) : Object.freeze(unused.filter((key) => !tls.used.has(key))),
    topicDefaultTexts,
    topicDefaults: topicConfigOf(new Map(), topicDefaultTexts),
  })
}

/** What `resolveListeners` looks at. */
const listenerKeys: readonly AnyKey[] = [
  brokerKeys.listeners,
  brokerKeys.advertisedListeners,
  brokerKeys.listenerSecurityProtocolMap,
  brokerKeys.controllerListenerNames,
  brokerKeys.interBrokerListenerName,
]

/** With where the key was set, as for a value that can't be read: `listeners=a://b (server.properties line 3): why`. */
function withPlace(problem: ConfigProblem, settings: ReadonlyMap<string, Setting>): ConfigProblem {
  const { key, message } = problem
  const setting = settings.get(key ?? '')
  if (setting === undefined || setting.source === 'default') return problem
  const place = ` (${setting.place})`
  const end = message.search(/: | contradicts | names /) // of `key=value`
  return { key, message: end < 0 ? message + place : message.slice(0, end) + place + message.slice(end) }
}

const declared: ReadonlyMap<string, AnyKey> = new Map(Object.values(brokerKeys).map((key) => [key.name, key]))

/** Takes what isn't declared out of `settings`: Kafka's keys are returned, others are problems. */
function takeUnused(settings: Map<string, Setting>, problems: ConfigProblem[]): readonly string[] {
  const unused: string[] = []
  for (const { key, place } of [...settings.values()]) {
    if (declared.has(key)) continue
    settings.delete(key)
    if (isKafkaBrokerKey(key)) unused.push(key)
    else problems.push({ key, message: unknownKey(key, place) })
  }
  return Object.freeze(unused.sort())
}

/** Where nothing speaks TLS, what was set for it is named with what else has no effect. */
function withIdleTls(unused: readonly string[], given: ReadonlyMap<string, Setting>): readonly string[] {
  const idle = [...given.keys()].filter((key) => declared.has(key) && namesTls(key))
  return Object.freeze([...unused, ...idle].sort())
}

function unknownKey(name: string, place: string): string {
  const shown = shortened(name)
  const topicKey = Object.values(topicKeys).find((key) => key.name === name)
  const [synonym] = topicKey === undefined ? [] : brokerSynonymsOf(topicKey)
  if (synonym !== undefined) return `${shown} (${place}) is a key of topics; the broker's is ${synonym.name}`
  const nearest = nearestOf(name, new Set([...declared.keys(), ...kafkaBrokerKeys]))
  const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`
  return `${shown} (${place}) is no key of Kafka or Rookery${hint}`
}

function readValues(
  settings: ReadonlyMap<string, Setting>,
  problems: ConfigProblem[],
): { values: BrokerValues; entries: ReadonlyMap<string, ConfigEntry> } {
  const single = isSingleNode(settings)
  const values: Record<string, unknown> = {}
  const entries = new Map<string, ConfigEntry>()
  for (const [property, key] of Object.entries<AnyKey>(brokerKeys)) {
    const setting = settings.get(key.name)
    const defaultText = single ? (key.singleNodeDefaultText ?? key.defaultText) : key.defaultText
    const text = setting?.text ?? defaultText
    const parsed = text === null ? null : key.parse(text)
    if (parsed === undefined) problems.push({ key: key.name, message: badValue(key, text, setting) })
    values[property] = parsed?.value ?? null
    const source = setting?.source ?? 'default'
    const parsedText = parsed?.text ?? null
    const staticText = setting === undefined ? null : parsedText
    const dynamic = { dynamicText: null, clusterDefaultText: null }
    entries.set(key.name, { key, text: parsedText, ...dynamic, staticText, defaultText, source })
  }
  return { values: Object.freeze(values) as BrokerValues, entries }
}

/** Broker and controller in one, and a quorum of one voter, as far as the settings say; decides some defaults. */
function isSingleNode(settings: ReadonlyMap<string, Setting>): boolean {
  const roles = settings.get(brokerKeys.processRoles.name)?.text
  if (roles !== undefined && !roles.includes(',')) return false
  const names = [brokerKeys.controllerQuorumVoters.name, brokerKeys.controllerQuorumBootstrapServers.name]
  return names.every((name) => !(settings.get(name)?.text ?? '').includes(','))
}

function badValue(key: AnyKey, text: string | null, setting: Setting | undefined): string {
  const shown = key.sensitive ? '(hidden)' : shortened(text ?? '')
  return `${key.name}=${shown} (${setting?.place ?? 'the default'}): allowed is ${key.allowed}`
}

function nodeIdOf(
  values: BrokerValues,
  entries: ReadonlyMap<string, ConfigEntry>,
  problems: ConfigProblem[],
): BrokerId {
  const { nodeId, brokerId } = values
  if (brokerId === -1) return nodeId as BrokerId
  const nodeIdIsSet = entries.get(brokerKeys.nodeId.name)?.source !== 'default'
  if (nodeIdIsSet && nodeId !== brokerId) {
    problems.push({
      key: 'broker.id',
      message: `broker.id=${brokerId} contradicts node.id=${nodeId}: set one, or both to the same`,
    })
  }
  return brokerId as BrokerId
}

function checkContradictions(values: BrokerValues, problems: ConfigProblem[]): void {
  const atMost = (key: AnyKey, value: number, limitKey: AnyKey, limit: number) => {
    if (value <= limit) return
    const message = `${key.name}=${value}: allowed is at most ${limitKey.name}, which is ${limit}`
    problems.push({ key: key.name, message })
  }
  const keys = brokerKeys
  const { groupMinSessionTimeoutMs, groupMaxSessionTimeoutMs } = values
  atMost(
    keys.groupMinSessionTimeoutMs,
    groupMinSessionTimeoutMs,
    keys.groupMaxSessionTimeoutMs,
    groupMaxSessionTimeoutMs,
  )
  const { logCleanerMinCompactionLagMs, logCleanerMaxCompactionLagMs } = values
  atMost(
    keys.logCleanerMinCompactionLagMs,
    logCleanerMinCompactionLagMs,
    keys.logCleanerMaxCompactionLagMs,
    logCleanerMaxCompactionLagMs,
  )
  const { brokerHeartbeatIntervalMs, brokerSessionTimeoutMs } = values
  atMost(keys.brokerHeartbeatIntervalMs, brokerHeartbeatIntervalMs, keys.brokerSessionTimeoutMs, brokerSessionTimeoutMs)
  if (values.queuedMaxRequestBytes >= 0) {
    const { socketRequestMaxBytes, queuedMaxRequestBytes } = values
    atMost(keys.socketRequestMaxBytes, socketRequestMaxBytes, keys.queuedMaxRequestBytes, queuedMaxRequestBytes)
  }
  if (values.clusterId !== null && !/^[A-Za-z0-9_-]{22}$/.test(values.clusterId)) {
    problems.push({
      key: 'cluster.id',
      message: `cluster.id=${shortened(values.clusterId)}: allowed are 22 characters of base64url, such as MkU3OEVBNTcwNTJENDM2Qg`,
    })
  }
  if ((values.logDirs ?? values.logDir).length === 0) {
    problems.push({ key: 'log.dirs', message: 'log.dirs is empty: allowed is at least one folder' })
  }
}

const requestMemoryDefaultBytes = 134_217_728

function requestMemoryBytesOf(values: BrokerValues): number {
  const { queuedMaxRequestBytes, socketRequestMaxBytes } = values
  return queuedMaxRequestBytes > 0 ? queuedMaxRequestBytes : Math.max(requestMemoryDefaultBytes, socketRequestMaxBytes)
}

/** For each topic key the text of the broker's first synonym that has one, or else the topic key's own default. */
export function inheritedTopicTexts(entries: ReadonlyMap<string, ConfigEntry>): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  for (const key of Object.values<AnyKey>(topicKeys)) {
    const synonym = brokerSynonymsOf(key).find(({ name }) => (entries.get(name)?.text ?? null) !== null)
    const brokerText = synonym === undefined ? null : entries.get(synonym.name)!.text
    const text = brokerText === null ? key.defaultText : scaled(brokerText, synonym!.factor)
    if (text !== null) texts.set(key.name, text)
  }
  return texts
}

/** `text` times `factor`; anything below zero, "no limit" in hours and minutes too, is -1. */
function scaled(text: string, factor: number): string {
  if (factor === 1) return text
  const product = BigInt(text) * BigInt(factor)
  return product < 0n ? '-1' : product.toString()
}
