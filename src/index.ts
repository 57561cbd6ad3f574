/**
 * Rookery in a program: `startBroker` runs a Kafka-compatible broker in this process, for tests and small tools.
 *
 *     await using broker = await startBroker({ topics: ['orders'] })
 *     const kafka = new Kafka({ brokers: [broker.bootstrapServers] })
 *
 * What holds:
 * - The broker serves when `startBroker` resolves: no waiting, no retries, declared topics are there.
 * - As many as wanted run in one process; they share nothing.
 * - With `storage: 'memory'` nothing touches a disk, and neither Level nor gRPC nor pino is loaded.
 * - After `stop` nothing of it is left: no socket, no timer, no temporary folder.
 */
import { resolve } from 'node:path'
import { ConfigError, type ConfigProblem, parseConfig, type SettingValue } from './config/index.ts'
import { memoryRaftStorage, raftStorageOnDisk, startNode, type TopicDeclaration, topicRequests } from './node/index.ts'
import { createMemoryFiles, createRealPlatform, type Platform } from './platform/index.ts'
import { createLogger, type LogFields, type Logger, silentLogger } from './telemetry/index.ts'

export { RookeryError } from './base/index.ts'
export { ConfigError, type ConfigProblem, type SettingValue } from './config/index.ts'
export type { TopicDeclaration } from './node/index.ts'
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
}

/** What is needed of a logger: pino's has it. An error is in the field `err`. */
export interface BrokerLogger {
  child(fields: Record<string, unknown>): BrokerLogger
  debug(fields: Record<string, unknown>, message: string): void
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

/** A broker that serves. */
export interface Broker extends AsyncDisposable {
  /** What clients connect to: `localhost:54321`. */
  readonly bootstrapServers: string
  readonly port: number
  readonly clusterId: string
  /** The absolute path of the folder with the data; undefined in memory. */
  readonly dataDirectory: string | undefined
  /** Resolves when every connection is closed and everything is on disk, or gone. Harmless when called again. */
  stop(): Promise<void>
}

/**
 * Starts a broker that is a cluster of its own. Throws `ConfigError` for settings or topics that can't be used, `NetworkError` for a
 * port that is taken, `DirectoryLockedError` for a folder that another broker uses.
 */
export async function startBroker(options: BrokerOptions = {}): Promise<Broker> {
  const { storage = 'memory', topics = [], config = {}, port } = options
  checkOptions(options)
  const realPlatform = createRealPlatform()
  const inMemory = storage === 'memory'
  const platform: Platform = inMemory ? { ...realPlatform, files: createMemoryFiles() } : realPlatform
  const folder = { path: inMemory ? '/memory' : resolve(storage), isTemporary: storage === 'temporary' }
  // Refused before the folder is made: what can't start leaves no trace.
  const settings = (logDir: string) =>
    parseConfig({
      overrides: config,
      defaults: { listeners: `PLAINTEXT://localhost:${port ?? 0}`, 'log.dirs': logDir },
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
    })
    let stopping: Promise<void> | undefined
    const stop = () => (stopping ??= node.stop().finally(removeFolder))
    return {
      bootstrapServers: node.bootstrapServers,
      port: Number(node.bootstrapServers.slice(node.bootstrapServers.lastIndexOf(':') + 1)),
      clusterId: node.clusterId,
      dataDirectory: inMemory ? undefined : folder.path,
      stop,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await removeFolder()
    throw error
  }
}

/** Settings that the other options speak for. */
const ownKeys = ['log.dir', 'log.dirs', 'metadata.log.dir']

function checkOptions({ config = {}, storage, port }: BrokerOptions): void {
  const problems: ConfigProblem[] = []
  for (const key of ownKeys) {
    if (key in config) problems.push({ key, message: `${key}: the folder for data is the option storage` })
  }
  // The folder becomes the value of log.dirs, which is a list.
  if (storage === '' || storage?.includes(',') === true) {
    problems.push({ key: undefined, message: 'storage: allowed is memory, temporary or a path without commas' })
  }
  if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
    problems.push({ key: undefined, message: `port: ${port}: allowed is 0 to 65535` })
  }
  if (port !== undefined && 'listeners' in config) {
    problems.push({ key: 'listeners', message: 'listeners contradicts the option port: set one of the two' })
  }
  if (problems.length > 0) throw new ConfigError(problems)
}

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
