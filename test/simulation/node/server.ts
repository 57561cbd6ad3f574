import { deferred } from '../../../src/base/index.ts'
import { type ParsedConfig, parseConfig } from '../../../src/config/index.ts'
import { CoordinationError } from '../../../src/coordination/index.ts'
import { type LogManager, type LogManagerOptions, openLogManager } from '../../../src/log/index.ts'
import { type NodeOptions, type RunningNode, startNode } from '../../../src/node/index.ts'
import type { Files, Platform, Timers } from '../../../src/platform/index.ts'
import type { SimulatedHost, Simulation } from '../../../src/platform/simulated/index.ts'
import { openDurableStorage } from '../../../src/raft/index.ts'
import type { Logger } from '../../../src/telemetry/index.ts'
import { openSimulatedStore } from '../../support/simulated-kv.ts'
import { PropertyViolation } from '../checkers/checker.ts'
import type { History } from './history.ts'
import { overriding } from './overriding.ts'
import { sleep } from './world.ts'

export const serverName = 'broker'
export const serverPort = 9092
/** How long a service manager waits until it starts a node again that ended by itself. */
const restartDelayMs = 100
/** A healthy disk given, a node is up within this time. */
const maxStartMs = 20_000

/** What a service manager needs of its world. */
interface ServerWorld {
  readonly simulation: Simulation
  readonly history: History
  /** Of a machine that nothing happens to. */
  readonly timers: Timers
}

/** What a test does to the node under test. */
export interface ServerOptions {
  readonly logger: Logger
  /** Settings of the node, `key=value`. */
  readonly settings: readonly string[]
  /** What else a node is started with: one of several needs more. `platform` is that of the run. */
  readonly moreOptions?: (platform: Platform) => Partial<NodeOptions>
  /** It may fail to start because others are not there: it is started again then. */
  readonly mayFailToStart?: boolean
  /** Puts something between the node and its platform. */
  readonly wrapPlatform?: (platform: Platform) => Platform
  /** Puts something between the node and its logs. */
  readonly openLogs?: (options: LogManagerOptions) => Promise<LogManager>
}

/** The node under test on its machine, and the service manager that starts it again. */
export class Server {
  readonly host: SimulatedHost
  readonly #world: () => ServerWorld
  readonly #options: ServerOptions
  /** Calls of the files' port, by name, which may end the node: set while a trigger waits for one. */
  onFileCall: ((name: string) => void) | undefined
  /** A disk fault is armed, or was in this run of the node: it may end or fail to start. */
  isExcused = false
  /** A sync failed, or may have: what it should have covered is not to be believed, so the machine loses power with the node. */
  mustLosePower = false
  /** Frozen, and the same for each run of the node. */
  readonly #config: ParsedConfig
  #node: RunningNode | undefined
  #incarnation = 0
  #onEnd: () => void = () => undefined

  constructor(host: SimulatedHost, world: () => ServerWorld, options: ServerOptions) {
    this.host = host
    this.#world = world
    this.#options = options
    this.#config = parseConfig({ overrides: ['log.dirs=/data/kafka', ...options.settings] })
  }

  /** Counts the runs of the node, from 1. */
  get incarnation(): number {
    return this.#incarnation
  }

  get isUp(): boolean {
    return this.#node !== undefined
  }

  /** Starts the node; the machine is down or was just made. */
  start(): void {
    const world = this.#world()
    const platform = this.host.isUp ? this.host.platform : this.host.restart()
    const incarnation = ++this.#incarnation
    const isCurrent = () => this.#incarnation === incarnation && this.host.isUp
    startNode(this.#nodeOptions(platform)).then(
      (node) => {
        if (!isCurrent()) return
        this.#node = node
        node.ended.catch((error: unknown) => {
          if (isCurrent()) this.#onFault(error)
        })
        world.history.add({ kind: 'node-started', node: this.host.name, incarnation })
      },
      (error: unknown) => {
        if (!isCurrent()) return
        if (this.#options.mayFailToStart === true && error instanceof CoordinationError) void this.#startAgain()
        else this.#onFault(error)
      },
    )
  }

  /** The node ended by itself. Without a disk fault it must not. */
  #onFault(error: unknown): void {
    const world = this.#world()
    if (!this.isExcused) {
      const detail = error instanceof Error ? (error.stack ?? error.message) : String(error)
      world.history.fail(new PropertyViolation('the node runs unless its disk fails', detail))
      return
    }
    void this.#startAgain()
  }

  /** In events of its own: what the node still does in the turn of its fault is done then. */
  async #startAgain(): Promise<void> {
    const { timers } = this.#world()
    const incarnation = this.#incarnation
    await sleep(timers, 0)
    if (this.#incarnation !== incarnation) return
    this.end(this.mustLosePower)
    await sleep(timers, restartDelayMs)
    if (!this.host.isUp) this.start()
  }

  /** Kills the node, or takes the power from its machine. It is down then, and starts no more by itself. */
  end(lostPower: boolean): void {
    if (!this.host.isUp) return
    if (lostPower) this.host.crash()
    else this.host.kill()
    this.#node = undefined
    this.#onEnd()
    if (lostPower) this.mustLosePower = false
    this.#world().history.add({ kind: 'node-ended', node: this.host.name, incarnation: this.#incarnation, lostPower })
  }

  /** Stops the node in order, and ends its process. */
  async stop(): Promise<void> {
    const node = this.#node
    if (node === undefined) return
    const incarnation = this.#incarnation
    this.#node = undefined
    const stopped = node.stop().catch((error: unknown) => {
      if (!this.isExcused) this.#world().history.fail(error as Error)
    })
    const ended = deferred<void>()
    this.#onEnd = () => ended.resolve()
    await Promise.race([stopped, ended.promise]) // a process that is gone resolves nothing
    await sleep(this.#world().timers, 0)
    if (this.#incarnation === incarnation) this.end(false)
  }

  /** Resolves when the node serves. */
  async whenUp(): Promise<void> {
    const { timers, history, simulation } = this.#world()
    const startedMs = simulation.nowMs
    while (!this.isUp && history.violation === undefined) {
      await sleep(timers, 5)
      if (simulation.nowMs - startedMs > maxStartMs && !this.isExcused) {
        history.fail(new PropertyViolation('the node comes back', `It does not serve ${maxStartMs} ms after its start`))
      }
    }
  }

  #nodeOptions(real: Platform): Parameters<typeof startNode>[0] {
    const counted = { ...real, files: this.#countCalls(real.files) }
    const platform = this.#options.wrapPlatform?.(counted) ?? counted
    return {
      config: this.#config,
      platform,
      logger: this.#options.logger,
      openLogs: this.#options.openLogs ?? openLogManager,
      openRaftStorage: ({ directory, platform: { files, timers }, bootstrap, scheduleSync }) =>
        openDurableStorage({
          files,
          timers,
          directory,
          bootstrap,
          scheduleSync,
          openStore: (path) => openSimulatedStore(files, path),
        }),
      ...this.#options.moreOptions?.(platform),
    }
  }

  /** The calls after which power losses are most telling. */
  #countCalls(files: Files): Files {
    return overriding(files, {
      rename: (from, to) => {
        this.onFileCall?.('rename')
        return files.rename(from, to)
      },
      syncDirectory: (path) => {
        this.onFileCall?.('syncDirectory')
        return files.syncDirectory(path)
      },
      remove: (path) => {
        this.onFileCall?.('remove')
        return files.remove(path)
      },
      openSync: (path, mode) => {
        if (mode === 'create') this.onFileCall?.('openSync')
        return files.openSync(path, mode)
      },
    })
  }
}
