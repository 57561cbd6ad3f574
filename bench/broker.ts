import { createWriteStream } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Coordination } from '../src/coordination/index.ts'
import type { RunningNode } from '../src/node/index.ts'
import type { Logger } from '../src/telemetry/index.ts'
import type { MemberSettings } from './raft-member.ts'

/**
 * A broker in a process of its own, as `rookery start` runs it but without a log, that tells its parent what it used. The parent sends the settings
 * first, then any number of `begin` and `end`; what lies between is measured. It ends with its parent.
 */
export interface BrokerSettings {
  readonly overrides: Readonly<Record<string, string | number>>
  /** Gets what the node logs; standard error, and warnings only, when left out. */
  readonly logFile?: string
  /** Raft members that run in this process beside the node, each with files, ports and peers of its own. */
  readonly members?: readonly (MemberSettings & { readonly where: 'inline' | 'worker' })[]
  /** The node's part in the metadata quorum is on its event loop, not in a thread of its own. */
  readonly inline?: boolean
  /** Measures what Raft is to this node: see `RaftUsage`; its heartbeats only where it is on the event loop. */
  readonly watchesRaft?: boolean
}

/** What a broker used between `begin` and `end`; before the first `begin`, since its process began. */
export interface Usage {
  /** Of all its threads, user and system. */
  readonly cpuSeconds: number
  /** How much later than it should a timer of the event loop ran; undefined where it isn't known. */
  readonly loopDelayP99Ms: number | undefined
  readonly loopDelayMaxMs: number | undefined
  readonly rssBytes: number
  /** Highest since the process began. */
  readonly peakRssBytes: number
  /** The node's own, and that of each of its `members`; where that was asked for. */
  readonly raft?: readonly RaftUsage[]
}

/** What became of Raft between `begin` and `end`, as one member saw it. Times are in milliseconds. */
export interface RaftUsage {
  readonly where: 'node' | 'inline' | 'worker'
  readonly isLeader: boolean
  readonly term: number
  /** From a heartbeat that this member sent to its answer. */
  readonly heartbeats: readonly number[]
  /** From a proposal of this member to its commit. */
  readonly commits: readonly number[]
  /** The same, as the event loop of the broker sees a member in a worker: with the messages there and back. */
  readonly commitsAcross: readonly number[]
}

export type BrokerMessage =
  | { readonly type: 'serving'; readonly port: number }
  | { readonly type: 'began' }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'failed'; readonly message: string }
  /** A time that `clockMs` of `cluster.ts` gives too. */
  | { readonly type: 'moment'; readonly what: Moment; readonly atMs: number; readonly nodeId: number }

/**
 * 'evidence': the controller on this node has heard that the process of `nodeId` is gone, and fences it. 'published': all
 * listeners of this node have an image in which `nodeId` is fenced.
 */
export type Moment = 'evidence' | 'published'

/** A timer's own period is part of the delay that is recorded. */
const loopDelayResolutionMs = 1
/** Between two changes of the metadata that a broker makes to see how long they take. */
const changeIntervalMs = 50

process.once('message', (settings: BrokerSettings) => {
  serve(settings).catch((error: Error) => {
    report({ type: 'failed', message: error.stack ?? error.message })
    process.exitCode = 1
    process.disconnect()
  })
})

async function serve(settings: BrokerSettings): Promise<void> {
  const { overrides, logFile, members = [], watchesRaft = false, inline = false } = settings
  const { parseConfig } = await import('../src/config/index.ts')
  const { raftStorageOnDisk, startNode } = await import('../src/node/index.ts')
  const { createRealPlatform, createRealThreads } = await import('../src/platform/index.ts')
  const { createLogger } = await import('../src/telemetry/index.ts')
  const platform = createRealPlatform()
  const { clock } = platform
  const destination = logFile === undefined ? process.stderr : createWriteStream(logFile, { flags: 'a' })
  const level = logFile === undefined ? 'warn' : 'info'
  const logger = watched(createLogger({ level, format: 'json', destination, name: 'bench', clock }))
  const { Heartbeats, startMember, timedServices } = await import('./raft-member.ts')
  const heartbeats = new Heartbeats()
  let coordination: Coordination | undefined
  const node = await startNode({
    config: parseConfig({ overrides }),
    platform,
    logger,
    openRaftStorage: raftStorageOnDisk,
    poolThreads: Number(process.env.UV_THREADPOOL_SIZE) - members.length, // each has syncs of its own
    ...(inline ? {} : { threads: createRealThreads() }),
    ...(watchesRaft ? { loadPeerServices: () => timedServices(heartbeats) } : {}),
    onAssembled: (parts) => {
      coordination = parts.coordination
      reportPublished(parts.coordination)
    },
  })
  const beside = await Promise.all(members.map((member) => startMember(member, member.where)))
  const changes = new Changes(node)
  const delays = monitorEventLoopDelay({ resolution: loopDelayResolutionMs })
  delays.enable()
  let cpuBefore = { user: 0, system: 0 }
  const begin = async (): Promise<void> => {
    for (const member of beside) await member.begin()
    delays.reset()
    cpuBefore = process.cpuUsage()
    heartbeats.begin()
    if (watchesRaft) changes.begin()
    report({ type: 'began' })
  }
  const end = async (): Promise<void> => {
    const { user, system } = process.cpuUsage(cpuBefore)
    const usage = {
      cpuSeconds: (user + system) / 1e6,
      loopDelayP99Ms: Math.max(0, delays.percentile(99) / 1e6 - loopDelayResolutionMs),
      loopDelayMaxMs: Math.max(0, delays.max / 1e6 - loopDelayResolutionMs),
      rssBytes: process.memoryUsage.rss(),
      peakRssBytes: process.resourceUsage().maxRSS * 1024,
    }
    const term = coordination?.state.controllerEpoch ?? 0
    const measured = { term, heartbeats: heartbeats.timesMs, ...changes.end() }
    const own = watchesRaft ? [{ where: 'node' as const, ...measured }] : []
    const raft = [...own, ...(await Promise.all(beside.map((member) => member.end())))]
    report({ type: 'usage', usage: { ...usage, raft } })
  }
  const stop = async (): Promise<void> => {
    delays.disable()
    await node.stop()
    await Promise.all(beside.map((member) => member.stop()))
    if (process.connected) process.disconnect()
  }
  process.on('message', (message: 'begin' | 'end' | 'stop') => {
    if (message === 'begin') void begin()
    else if (message === 'end') void end()
    else void stop()
  })
  process.once('SIGTERM', () => void stop().then(() => process.exit()))
  process.once('disconnect', () => process.exit())
  report({ type: 'serving', port: Number(node.bootstrapServers.split(':').at(-1)) })
}

/** One change of the metadata after the other, from where the controller is. */
class Changes {
  readonly #node: RunningNode
  #commits: number[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(node: RunningNode) {
    this.#node = node
  }

  begin(): void {
    this.#commits = []
    this.#timer = setInterval(() => void this.#change(), changeIntervalMs)
  }

  end(): Pick<RaftUsage, 'isLeader' | 'commits' | 'commitsAcross'> {
    clearInterval(this.#timer)
    return { isLeader: this.#isController, commits: this.#commits, commitsAcross: [] }
  }

  get #isController(): boolean {
    return this.#node.controllerId === this.#node.brokerId
  }

  async #change(): Promise<void> {
    if (!this.#isController) return
    const sentMs = performance.now()
    const changes = new Map([['max.connections.per.ip', String(1e6 + this.#commits.length)]])
    await this.#node.admin.alterConfigs([{ resourceType: 'broker', resourceName: '', changes }], { timeoutMs: 10_000 })
    this.#commits.push(performance.now() - sentMs)
  }
}

/** `logger`, and tells when its node hears of a crash as the controller. */
function watched(logger: Logger): Logger {
  return {
    child: (fields) => watched(logger.child(fields)),
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => {
      if (message === 'broker gone, fencing it') moment('evidence', Number(fields.brokerId))
      logger.warn(fields, message)
    },
    error: (fields, message) => logger.error(fields, message),
  }
}

/** Tells when this node has published what came of a crash. */
function reportPublished(coordination: Coordination): void {
  const fenced = new Set<number>()
  // The first listener: what it puts off to the end of the turn comes after all others.
  coordination.onMetadata((_delta, image) => {
    for (const { brokerId, fenced: isFenced } of image.cluster.brokers()) {
      if (!isFenced) fenced.delete(brokerId)
      else if (!fenced.has(brokerId)) {
        fenced.add(brokerId)
        queueMicrotask(() => moment('published', brokerId))
      }
    }
  })
}

function moment(what: Moment, nodeId: number): void {
  report({ type: 'moment', what, atMs: clockMs(), nodeId })
}

/** The same in all processes of the machine, in ms. */
function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

function report(message: BrokerMessage): void {
  if (process.connected) process.send!(message)
}
