import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { messageOf } from '../../base/index.ts'
import { ConfigError, type ConfigProblem, type ParsedConfig, parseConfig } from '../../config/index.ts'
import { CoordinationError } from '../../coordination/index.ts'
import {
  type NodeOptions,
  parseTopicList,
  parseTopicsFile,
  type RunningNode,
  raftStorageOnDisk,
  startNode,
} from '../../node/index.ts'
import { createRealPlatform, createRealThreads, type Platform } from '../../platform/index.ts'
import { createLogger, type Logger, type LogLevel } from '../../telemetry/index.ts'
import { exitCodes } from '../exit.ts'
import { reportOf } from '../fault-report.ts'
import { hasColors, note } from '../output.ts'

export interface StartOptions {
  readonly config?: string
  readonly override?: readonly string[]
  readonly topic?: readonly string[]
  readonly topicsFile?: string
  readonly logLevel: LogLevel | 'silent'
  readonly logFormat?: 'human' | 'json'
  readonly version: string
}

/**
 * V8 takes half of a large machine's memory for its own: what was let go lies for minutes, and a node that clients keep busy grew to
 * more than a gigabyte of which 100 MB were in use. With these the old generation is collected (beside the event loop, as
 * always) when it has grown by half, and by a twentieth of what V8 would allow at first. A V8 without one of them
 * says so on the standard error, and goes on.
 */
const collectionFlags = ['--heap-growing-percent=50', '--incremental-marking-soft-trigger=10']

/**
 * Runs a broker until a signal or a fault ends it. Resolves when it has stopped cleanly, with the exit code set. Throws
 * `ConfigError` with everything that is wrong with settings and topics, or the fault that kept it from starting.
 */
export async function start(options: StartOptions): Promise<void> {
  for (const flag of collectionFlags) setFlagsFromString(flag)
  const { config, topics } = await readSettings(options)
  // A reader of the log that goes away (`npm start | head`) is no reason to stop.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  const platform = createRealPlatform()
  const format = options.logFormat ?? (process.stdout.isTTY ? 'human' : 'json')
  const logger = createLogger({
    level: options.logLevel,
    format,
    destination: process.stdout,
    name: 'rookery',
    clock: platform.clock,
    colors: hasColors(process.stdout),
  })
  logSettings(config, logger, format)
  const node = await startUnlessSignalled({
    config,
    platform,
    logger,
    topics,
    poolThreads: poolThreads(process.env.UV_THREADPOOL_SIZE),
    openRaftStorage: raftStorageOnDisk,
    threads: createRealThreads(),
  })
  if (node === undefined) return
  if (format === 'human') process.stdout.write(banner(config, node, options.version))
  else if (config.roles.broker) {
    logger.info({ bootstrapServers: node.bootstrapServers, folders: foldersOf(config) }, 'serving')
  }
  try {
    await node.ended
  } catch (error) {
    // Its end is a fault: what is still in order is closed, then the process says so.
    await node.stop().catch(() => undefined)
    throw error
  }
}

interface Settings {
  readonly config: ParsedConfig
  readonly topics: NonNullable<NodeOptions['topics']>
}

/** Everything that can be wrong is looked at before any of it is reported. */
async function readSettings(options: StartOptions): Promise<Settings> {
  const problems: ConfigProblem[] = []
  const collect = async <T>(read: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await read()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.problems)
      return undefined
    }
  }
  const { config: fileName, override: overrides, topicsFile, topic: topicTexts = [] } = options
  const config = await collect(async () => {
    const file = fileName === undefined ? undefined : await readText(fileName)
    return parseConfig({ file, fileName, env: process.env, overrides })
  })
  const topics = [
    ...((await collect(async () => topicsFile && parseTopicsFile(await readText(topicsFile), topicsFile))) || []),
    ...((await collect(() => parseTopicList(process.env.ROOKERY_TOPICS ?? '', 'ROOKERY_TOPICS'))) ?? []),
    ...((await collect(() => topicTexts.flatMap((text) => parseTopicList(text, '--topic')))) ?? []),
  ]
  if (config?.roles.broker === false && topics.length > 0) {
    const message = 'Topics are declared on brokers: process.roles=controller keeps none'
    problems.push({ key: 'process.roles', message })
  }
  if (config === undefined || problems.length > 0) throw new ConfigError(problems)
  // The last that declares a topic wins, as with settings.
  return { config, topics: [...new Map(topics.map((topic) => [topic.name, topic])).values()] }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const message = isMissing ? `There is no file ${path}` : `Cannot read ${path}: ${messageOf(error)}`
    throw new ConfigError([{ key: undefined, message }], { cause: error })
  }
}

function logSettings(config: ParsedConfig, logger: Logger, format: 'human' | 'json'): void {
  const { unused, controllerListeners, isAlone } = config
  if (unused.length > 0 && format === 'json') logger.warn({ keys: unused }, 'settings of kafka that have no effect')
  if (controllerListeners.length > 0 && isAlone) {
    const listeners = controllerListeners.map(({ name }) => name)
    logger.info(
      { listeners },
      'controller listener not opened: no controller.quorum.bootstrap.servers, nor voters, are set',
    )
  }
}

/** What a person wants to know first. */
function banner(
  config: ParsedConfig,
  node: Pick<RunningNode, 'bootstrapServers' | 'clusterId'>,
  version: string,
): string {
  const { roles } = config
  const lines = [
    roles.broker
      ? `Rookery ${version} serves Kafka clients on ${node.bootstrapServers}`
      : `Rookery ${version} is a controller of the metadata quorum, and serves no clients`,
    `  Data     ${foldersOf(config).join(', ')} (cluster ${node.clusterId})`,
    ...quorumLines(config),
    ...(config.unused.length === 0
      ? []
      : [`  Ignored  ${config.unused.join(', ')}: Kafka has these settings, Rookery does not use them`]),
    '  Stop     Ctrl-C',
  ]
  return `\n${lines.join('\n')}\n\n`
}

function quorumLines({ quorumVoters, quorumBootstrapServers, nodeId, roles, isAlone }: ParsedConfig): string[] {
  if (isAlone) return []
  const voters = quorumVoters.map(({ nodeId: id, host, port }) => `${id}@${host}:${port}`)
  const places = voters.length > 0 ? voters : quorumBootstrapServers.map(({ host, port }) => `${host}:${port}`)
  return [`  Quorum   ${roles.controller ? `node ${nodeId} of` : `broker ${nodeId}, led by`} ${places.join(', ')}`]
}

/** How many threads libuv makes of the variable, 2 at least: one syncs, one does everything else. */
function poolThreads(variable: string | undefined): number {
  const threads = Number.parseInt(variable ?? '', 10)
  return Number.isNaN(threads) ? 4 : Math.min(Math.max(threads, 2), 1024)
}

function foldersOf(config: ParsedConfig): string[] {
  return config.logDirs.map((folder) => resolve(folder))
}

const signals = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

/**
 * Starts the node with the signals in place from the first moment: the first stops it, even while it starts or waits for others
 * (then the result is undefined), the second ends the process at once.
 */
async function startUnlessSignalled(
  options: NodeOptions & { readonly platform: Platform },
): Promise<RunningNode | undefined> {
  let node: RunningNode | undefined
  let isStopping = false
  const starting = new AbortController()
  const stop = async (running: RunningNode) => {
    try {
      await running.stop()
    } catch (error) {
      note(`rookery: ${reportOf(error).text}`)
      process.exitCode = exitCodes.fault
    }
  }
  const onSignal = (signal: NodeJS.Signals) => {
    if (isStopping) process.exit(128 + signals[signal as keyof typeof signals])
    isStopping = true
    options.logger.info({ signal }, 'stopping')
    starting.abort()
    if (node !== undefined) void stop(node)
  }
  for (const signal of Object.keys(signals)) process.on(signal, onSignal)
  // A broker that waits for its controllers listens nowhere yet: nothing else would keep the process.
  const stay = setInterval(() => undefined, 60_000)
  try {
    node = await startNode({ ...options, signal: starting.signal })
  } catch (error) {
    if (isStopping && error instanceof CoordinationError && error.reason === 'stopped') return undefined
    throw error
  } finally {
    clearInterval(stay)
  }
  if (!isStopping) return node
  await stop(node)
  return undefined
}
