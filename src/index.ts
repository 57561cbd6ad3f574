/**
 * Rookery in a program: `startBroker` runs a Kafka-compatible broker in this process, for tests and small tools.
 *
 *     await using broker = await startBroker({ topics: ['orders'] })
 *     const kafka = new Kafka({ brokers: [broker.bootstrapServers] })
 *     const [order] = await broker.waitForRecords('orders', 1)
 *
 * `Broker` has what tests want beside: `reset`, what is in topics and groups (`records`, `waitForRecords`, `waitForGroup`), `faults`,
 * and with the option `clock` a clock that they move. `rookery/vitest` is a broker for a whole run.
 *
 * `startCluster` runs several nodes in this process, each of which can be killed, stopped, paused and cut off.
 *
 * What holds:
 * - The broker serves when `startBroker` resolves: no waiting, no retries, declared topics are there.
 * - As many as wanted run in one process; they share nothing.
 * - With `storage: 'memory'` nothing touches a disk, and neither Level nor gRPC nor pino is loaded.
 * - What looks at the broker from inside opens no connection and doesn't ask again and again: it is woken by what happens.
 * - A clock that is moved moves what Kafka's rules are about (retention, sessions, expirations); sockets, disk, Raft and the timeouts
 *   of clients stay real.
 * - After `stop` nothing of it is left: no socket, no timer, no temporary folder.
 */
import { resolve } from 'node:path'
import type { Faults } from './api/index.ts'
import { ConfigError, type ConfigProblem, nearestOf, parseConfig, type SettingValue } from './config/index.ts'
import {
  type BrokerRecord,
  memoryRaftStorage,
  type NodeTime,
  type ObservedGroup,
  type ResetOptions,
  raftStorageOnDisk,
  startNode,
  type TopicDeclaration,
  topicRequests,
  type WaitForGroupOptions,
  type WaitForRecordsOptions,
} from './node/index.ts'
import { createManualPlatform, createMemoryFiles, createRealPlatform, type Platform } from './platform/index.ts'
import { createLogger, type LogFields, type Logger, silentLogger } from './telemetry/index.ts'

export type { Fault, FaultMatch, Faults, FaultyApi, InjectableError } from './api/index.ts'
export { RookeryError } from './base/index.ts'
export { ConfigError, type ConfigProblem, type SettingValue } from './config/index.ts'
export {
  BrokerRecord,
  ObservationError,
  type ObservedGroup,
  type ObservedMember,
  ResetError,
  type ResetOptions,
  type TopicDeclaration,
  type WaitForGroupOptions,
  type WaitForRecordsOptions,
} from './node/index.ts'
export { DirectoryLockedError, FileError, NetworkError } from './platform/index.ts'

export interface BrokerOptions {
  /** Topics that are to be there: names, or names with partitions and configs. Those that exist stay as they are. */
  readonly topics?: readonly TopicDeclaration[]
  /** Settings under Kafka's keys, as in a server.properties file. */
  readonly config?: Readonly<Record<string, SettingValue>>
  /**
   * Where data is: 'memory' (the default) as long as the broker runs, 'temporary' in a new folder that `stop` removes, else the
   * path of a folder, which is made when it is missing and keeps its data.
   */
  readonly storage?: 'memory' | 'temporary' | (string & {})
  /** Port on localhost; 0, the default, picks a free one. For other addresses set `listeners` in `config`. */
  readonly port?: number
  /** A logger such as pino's; `true` writes to the standard error for people. Nothing is logged by default. */
  readonly logger?: BrokerLogger | true
  /**
   * 'manual': the broker's clock stands still, from now or from `startAt` on, until `broker.clock.advance` moves it. Timestamps that
   * clients give are by their own clocks; how far they may be ahead is then only checked where `config` says so.
   */
  readonly clock?: ManualClockOption
}

/** `startAt`: a moment, as a Date or in milliseconds since 1970. */
export type ManualClockOption = 'manual' | { readonly startAt: Date | number }

/** What is needed of a logger: pino's has it. An error is in the field `err`. */
export interface BrokerLogger {
  child(fields: Record<string, unknown>): BrokerLogger
  debug(fields: Record<string, unknown>, message: string): void
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

/** The names of a group's states; Dead is that of one that isn't there. */
export type GroupStateName = ObservedGroup['state']

/** A clock that stands still until it is moved. */
export interface BrokerClock {
  /** The broker's time: whole milliseconds since 1970. */
  now(): number
  /**
   * Moves the clock on by `ms`, 0 or more. Retention, sessions, rebalances, expirations of offsets and producers that come due are
   * carried out one moment after the other, and long polls are answered. Resolves when all of it has been, and what it began in files
   * is done; clients may yet have to answer. Calls are carried out one after the other.
   */
  advance(ms: number): Promise<void>
}

/** A broker whose clock the test moves. */
export interface BrokerWithClock extends Broker {
  readonly clock: BrokerClock
}

/** A broker that serves. */
export interface Broker extends AsyncDisposable {
  /** What clients connect to: `localhost:54321`. */
  readonly bootstrapServers: string
  readonly port: number
  readonly clusterId: string
  /** The absolute path of the folder with the data; undefined in memory. */
  readonly dataDirectory: string | undefined
  /** Faults that the broker makes when a test asks for them. */
  readonly faults: Faults
  /** Resolves when it was stopped; rejects with the fault when it has to end by itself, which it then does. Nobody has to listen. */
  readonly ended: Promise<void>
  /**
   * The broker as it was at its start, in milliseconds: the declared topics, empty, and no others (unless `topics: 'keep'`), no groups, nothing
   * known of producers, settings as they were, no faults. Connections are kept: clients that are under way go on, after errors that they try
   * again after. Requests that come meanwhile wait. Throws `ResetError`.
   */
  reset(options?: ResetOptions): Promise<void>
  /** All committed records of a topic, by partition and offset. Throws `ObservationError`. */
  records(topic: string): Promise<BrokerRecord[]>
  /** The records of a topic as soon as there are `count` or more. Throws `ObservationError`, which says what was there instead. */
  waitForRecords(topic: string, count: number, options?: WaitForRecordsOptions): Promise<BrokerRecord[]>
  /** A group as soon as it is in this state. Throws `ObservationError`, which says what it was instead. */
  waitForGroup(groupId: string, state: GroupStateName, options?: WaitForGroupOptions): Promise<ObservedGroup>
  /** Resolves when every connection is closed and everything is on disk, or gone. Harmless when called again. */
  stop(): Promise<void>
}

/**
 * Starts a broker that is a cluster of its own. Throws `ConfigError` for settings or topics that can't be used, `NetworkError` for a
 * port that is taken, `DirectoryLockedError` for a folder that another broker uses.
 */
export async function startBroker(
  options: BrokerOptions & { readonly clock: ManualClockOption },
): Promise<BrokerWithClock>
export async function startBroker(options?: BrokerOptions): Promise<Broker>
export async function startBroker(options: BrokerOptions = {}): Promise<Broker | BrokerWithClock> {
  checkOptions(options)
  const { storage = 'memory', topics = [], config = {}, port } = options
  const inMemory = storage === 'memory'
  const { platform, time, clock } = timeOf(options.clock, platformOf(inMemory))
  const folder = { path: inMemory ? '/memory' : resolve(storage), isTemporary: storage === 'temporary' }
  // Refused before the folder is made: what can't start leaves no trace.
  const settings = (logDir: string) =>
    parseConfig({
      overrides: config,
      defaults: {
        listeners: `PLAINTEXT://localhost:${port ?? 0}`,
        'log.dirs': logDir,
        ...(clock === undefined ? {} : { 'log.message.timestamp.after.max.ms': anyDistance }),
      },
    })
  settings(folder.path)
  const requests = topicRequests(topics, 'topics')
  if (folder.isTemporary) folder.path = await platform.files.makeTemporaryDirectory('rookery-')
  const removeFolder = async () => {
    if (folder.isTemporary) await platform.files.removeTree(folder.path)
  }
  try {
    const node = await startNode({
      config: settings(folder.path),
      platform,
      logger: loggerOf(options.logger, platform),
      topics: requests,
      openRaftStorage: inMemory ? memoryRaftStorage : raftStorageOnDisk,
      ...(time === undefined ? {} : { time }),
    })
    let stopping: Promise<void> | undefined
    const stop = () => (stopping ??= node.stop().finally(removeFolder))
    // A node that can't go on is closed, so that its clients notice.
    node.ended.catch(() => stop().catch(() => undefined))
    const { observation } = node
    return {
      bootstrapServers: node.bootstrapServers,
      port: Number(node.bootstrapServers.slice(node.bootstrapServers.lastIndexOf(':') + 1)),
      clusterId: node.clusterId,
      dataDirectory: inMemory ? undefined : folder.path,
      faults: node.faults,
      ended: node.ended,
      ...(clock === undefined ? {} : { clock }),
      reset: (resetOptions) => node.reset(resetOptions),
      records: (topic) => observation.records(topic),
      waitForRecords: (topic, count, waitOptions = {}) => observation.waitForRecords(topic, count, waitOptions),
      waitForGroup: (groupId, state, waitOptions = {}) => observation.waitForGroup(groupId, state, waitOptions),
      stop,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await removeFolder()
    throw error
  }
}

export interface ClusterOptions {
  /** How many nodes, each broker and controller; 3 when left out, at most 9. Their ids are 1, 2, 3, ... */
  readonly nodes?: number
  /** In place of `nodes`: so many that are brokers only, with the ids from 1 on; with `controllers`. */
  readonly brokers?: number
  /** So many that are controllers only, with the ids after those of the brokers. */
  readonly controllers?: number
  /** Topics that are to be there, each with as many replicas as there are brokers, at most 3, unless it says another number. */
  readonly topics?: readonly TopicDeclaration[]
  /** Settings of all nodes under Kafka's keys. */
  readonly config?: Readonly<Record<string, SettingValue>>
  /** Where data is until the cluster is stopped: 'memory' (the default), or 'temporary' in a new folder. */
  readonly storage?: 'memory' | 'temporary'
  /** As for `startBroker`; lines have the node's id in `node`. */
  readonly logger?: BrokerLogger | true
}

/** One node of a cluster, and what may happen to it. Its data, and its port, outlive its runs. */
export interface ClusterNode {
  readonly id: number
  readonly roles: readonly ('broker' | 'controller')[]
  /** On localhost, for clients; 0 of a node that is no broker. */
  readonly port: number
  readonly state: 'stopped' | 'starting' | 'running' | 'paused'
  /** As `kill -9`: connections break, nothing is handed over, nothing is written any more. */
  kill(): Promise<void>
  /** As SIGTERM: hands over what it leads, and closes in order. */
  stop(): Promise<void>
  /** Resolves when it serves again. */
  start(): Promise<void>
  /** As SIGSTOP: its connections stay, and nothing of it runs, until `resume`. */
  pause(): void
  resume(): void
}

/** A cluster that serves. */
export interface Cluster extends AsyncDisposable {
  /** What clients connect to: all brokers, with commas between. */
  readonly bootstrapServers: string
  readonly clusterId: string
  readonly nodes: readonly ClusterNode[]
  /** Throws for an id that no node has. */
  node(id: number): ClusterNode
  /** The id of the active controller, as the node with the newest metadata knows it; undefined: there is none now. */
  readonly controllerId: number | undefined
  /** The id of the node that leads the partition; undefined: none does now. */
  leaderOf(topic: string, partition: number): number | undefined
  /** The node that leads the partition, as soon as one that runs does. Throws `ObservationError`. */
  waitForLeader(topic: string, partition: number, options?: { readonly timeoutMs?: number }): Promise<ClusterNode>
  /** Resolves when every partition has a leader and all its replicas in sync, and every broker that runs knows it. Throws `ObservationError`. */
  waitForInSync(options?: { readonly timeoutMs?: number }): Promise<void>
  /** Nothing passes between the two nodes, either way, until it is healed: what they send waits. */
  cutLink(one: number, other: number): void
  healLink(one: number, other: number): void
  /** Cuts all links of a node to others: clients still reach it. */
  isolate(id: number): void
  healLinks(): void
  /** Ends all nodes at once; nothing of them is left. Harmless when called again. */
  stop(): Promise<void>
}

/** Starts a cluster in this process. Throws `ConfigError` for settings or topics that can't be used. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  checkClusterOptions(options)
  const { nodes = 3, brokers, controllers = 0, topics = [], config = {}, storage = 'memory', logger } = options
  const counts = { brokerCount: brokers ?? nodes, controllerCount: controllers }
  const { clusterNodeConfig, LocalCluster } = await import('./node/cluster/index.ts')
  clusterNodeConfig({ ...counts, config }, 1, '/memory', 0) // refused before anything is made
  const cluster = await LocalCluster.start({
    ...counts,
    config,
    topics: topicRequests(topics, 'topics'),
    storage,
    logger: (node, platform) => loggerOf(logger, platform).child({ node }),
  })
  const node = (id: number): ClusterNode => {
    const found = cluster.nodes.find((each) => each.id === id)
    if (found !== undefined) return found
    throw new ConfigError([{ key: undefined, message: `node: ${id}: allowed is 1 to ${cluster.nodes.length}` }])
  }
  const others = (id: number) => cluster.nodes.filter((each) => each.id !== node(id).id)
  const { clusterId } = cluster.newestNode()
  let stopping: Promise<void> | undefined
  const stop = () => {
    stopping ??= cluster.end()
    return stopping
  }
  return {
    bootstrapServers: cluster.nodes
      .filter(({ roles }) => roles.includes('broker'))
      .map(({ port }) => `localhost:${port}`)
      .join(','),
    clusterId,
    nodes: cluster.nodes,
    node,
    get controllerId() {
      return cluster.newestNode().controllerId ?? undefined
    },
    leaderOf: (topic, partition) => cluster.newestNode().observation.leaderOf(topic, partition),
    waitForLeader: async (topic, partition, waitOptions = {}) =>
      node(
        await cluster.newestNode().observation.waitForLeader(topic, partition, waitOptions, (id) => cluster.runs(id)),
      ),
    waitForInSync: (waitOptions = {}) => cluster.waitForInSync(waitOptions),
    cutLink: (one, other) => cluster.cutLink(node(one).id, node(other).id),
    healLink: (one, other) => cluster.healLink(node(one).id, node(other).id),
    isolate: (id) => {
      for (const other of others(id)) cluster.cutLink(id, other.id)
    },
    healLinks: () => cluster.healLinks(),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

const maxClusterNodes = 9
/** Settings that say who the nodes of a cluster are, and where. */
const clusterOwnKeys = [
  'node.id',
  'broker.id',
  'process.roles',
  'listeners',
  'controller.listener.names',
  'controller.quorum.voters',
  'controller.quorum.bootstrap.servers',
]

const clusterOptionNames: ReadonlySet<string> = new Set([
  'nodes',
  'brokers',
  'controllers',
  'topics',
  'config',
  'storage',
  'logger',
])

function checkClusterOptions(options: ClusterOptions): void {
  const problems = namingProblems('startCluster', options, clusterOptionNames)
  const { nodes, brokers, controllers, config = {}, storage } = options
  for (const key of ownKeys) {
    if (key in config) problems.push({ key, message: `${key}: the folder for data is the option storage` })
  }
  for (const key of clusterOwnKeys) {
    if (key in config) problems.push({ key, message: `${key}: a cluster in one process sets it for each of its nodes` })
  }
  if (nodes !== undefined && !(Number.isInteger(nodes) && nodes >= 2 && nodes <= maxClusterNodes)) {
    problems.push({ key: undefined, message: `nodes: ${nodes}: allowed is 2 to ${maxClusterNodes}` })
  }
  if (nodes !== undefined && (brokers !== undefined || controllers !== undefined)) {
    problems.push({
      key: undefined,
      message: 'nodes: each is broker and controller; allowed are nodes alone, or brokers with controllers',
    })
  } else if ((brokers === undefined) !== (controllers === undefined)) {
    const [given, missing] = brokers === undefined ? ['controllers', 'brokers'] : ['brokers', 'controllers']
    problems.push({ key: undefined, message: `${given}: of each role there must be one; ${missing} says how many` })
  }
  for (const [name, count] of Object.entries({ brokers, controllers })) {
    if (count === undefined || (Number.isInteger(count) && count >= 1 && count <= maxClusterNodes)) continue
    problems.push({ key: undefined, message: `${name}: ${count}: allowed is 1 to ${maxClusterNodes}` })
  }
  if (storage !== undefined && storage !== 'memory' && storage !== 'temporary') {
    problems.push({ key: undefined, message: `storage: ${storage}: allowed is memory or temporary` })
  }
  if (problems.length > 0) throw new ConfigError(problems)
}

function platformOf(inMemory: boolean): Platform {
  const real = createRealPlatform()
  return inMemory ? { ...real, files: createMemoryFiles() } : real
}

/** `log.message.timestamp.after.max.ms` that lets every timestamp pass. */
const anyDistance = String(2n ** 63n - 1n)

/** The platform that a node is to have, and what of its time stands still. */
function timeOf(
  option: ManualClockOption | undefined,
  real: Platform,
): {
  readonly platform: Platform
  readonly time?: NodeTime
  readonly clock?: BrokerClock
} {
  if (option === undefined) return { platform: real }
  const startMs = option === 'manual' ? real.clock.now() : Number(option.startAt)
  const { platform, still, running, advance } = createManualPlatform(real, startMs)
  const clock: BrokerClock = {
    now: () => still.clock.now(),
    advance: async (ms) => {
      if (Number.isFinite(ms) && ms >= 0) return await advance(ms)
      throw new ConfigError([{ key: undefined, message: `advance: ${ms} ms: allowed is 0 or more` }])
    },
  }
  return { platform, time: { rules: still, waits: running }, clock }
}

/** Settings that the other options speak for. */
const ownKeys = ['log.dir', 'log.dirs', 'metadata.log.dir']

const optionNames: ReadonlySet<string> = new Set(['topics', 'config', 'storage', 'port', 'logger', 'clock'])

/** Options that nobody would read. Throws `ConfigError` for what holds no options at all, as JavaScript may pass it. */
function namingProblems(
  called: string,
  options: BrokerOptions | ClusterOptions,
  names: ReadonlySet<string>,
): ConfigProblem[] {
  const problems: ConfigProblem[] = []
  const report = (message: string) => problems.push({ key: undefined, message })
  if (!isRecord(options)) {
    throw new ConfigError([
      { key: undefined, message: `${called}: allowed is an object with ${[...names].join(', ')}` },
    ])
  }
  for (const name of Object.keys(options)) {
    if (names.has(name)) continue
    const nearest = nearestOf(name, names)
    const help = nearest === undefined ? `allowed are ${[...names].join(', ')}` : `did you mean ${nearest}?`
    const isSetting = name.includes('.')
    report(`${name} is no option of ${called}: ${isSetting ? 'settings of Kafka are in the option config' : help}`)
  }
  const { config = {}, topics = [] } = options
  if (!Array.isArray(topics)) report('topics: allowed is a list of names, or of { name, partitions, configs }')
  if (!isRecord(config)) {
    report("config: allowed is an object with settings under Kafka's keys")
    throw new ConfigError(problems)
  }
  return problems
}

function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function checkOptions(options: BrokerOptions): void {
  const problems = namingProblems('startBroker', options, optionNames)
  const { config = {}, storage, port, clock } = options
  for (const key of ownKeys) {
    if (key in config) problems.push({ key, message: `${key}: the folder for data is the option storage` })
  }
  // The folder becomes the value of log.dirs, which is a list.
  const isFolder = typeof storage === 'string' && storage !== '' && !storage.includes(',')
  if (storage !== undefined && !isFolder) {
    problems.push({ key: undefined, message: 'storage: allowed is memory, temporary or a path without commas' })
  }
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
    problems.push({ key: undefined, message: `port: ${port}: allowed is 0 to 65535` })
  }
  if (port !== undefined && 'listeners' in config) {
    problems.push({ key: 'listeners', message: 'listeners contradicts the option port: set one of the two' })
  }
  if (clock !== undefined && clock !== 'manual') {
    const startMs = Number((clock as { readonly startAt: Date | number } | null)?.startAt)
    if (!(startMs >= 0 && startMs <= latestMs)) {
      problems.push({ key: undefined, message: 'clock: allowed is manual or { startAt }, a moment from 1970 on' })
    }
  }
  if (problems.length > 0) throw new ConfigError(problems)
}

/** The last moment that a Date can be. */
const latestMs = 8.64e15

function loggerOf(logger: BrokerOptions['logger'], { clock }: Platform): Logger {
  if (logger === undefined) return silentLogger
  if (logger !== true) return adapted(logger)
  return createLogger({ level: 'info', format: 'human', destination: process.stderr, name: 'rookery', clock })
}

/** Errors under the field name for which pino and its like have a serializer. */
function adapted(logger: BrokerLogger): Logger {
  const renamed = ({ error, ...fields }: LogFields) => (error === undefined ? fields : { ...fields, err: error })
  return {
    child: (fields) => adapted(logger.child({ ...fields })),
    debug: (fields, message) => logger.debug(renamed(fields), message),
    info: (fields, message) => logger.info(renamed(fields), message),
    warn: (fields, message) => logger.warn(renamed(fields), message),
    error: (fields, message) => logger.error(renamed(fields), message),
  }
}
