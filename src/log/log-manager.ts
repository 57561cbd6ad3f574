import { partitionName, type Uuid } from '../base/index.ts'
import type { TopicConfig } from '../config/index.ts'
import type { DirectoryLock, Platform, Timer } from '../platform/index.ts'
import type { Logger, Metrics } from '../telemetry/index.ts'
import type { LogEnvironment } from './environment.ts'
import { ClusterIdMismatchError, StorageError, storageErrorOf } from './errors.ts'
import type { FlushScheduler } from './flush-scheduler.ts'
import { HandlePool } from './handle-pool.ts'
import { IndexCache } from './index-cache.ts'
import type { LocalLog } from './local-log.ts'
import { claimDirectory, LogDirectory } from './log-directory.ts'
import { type MetaProperties, writeMetaProperties } from './meta-properties.ts'
import { LogProbe } from './probe.ts'
import { ReadBuffers } from './read-buffers.ts'
import { TailCache } from './tail-cache.ts'
import type { PartitionLog } from './types.ts'

/** Times in milliseconds, sizes in bytes. */
export interface LogManagerSettings {
  /** Memory for the newest batches of all partitions; 0 for none. */
  readonly tailCacheBytes: number
  /** Files that stay open while nobody uses them. */
  readonly maxOpenFiles: number
  /** Memory for the indexes of segments that take no appends. */
  readonly indexCacheBytes: number
  /** Memory of read buffers that is kept for the next read. */
  readonly readBufferBytes: number
  readonly initialTaskDelayMs: number
  readonly retentionCheckIntervalMs: number
  readonly recoveryPointCheckpointIntervalMs: number
  readonly highWatermarkCheckpointIntervalMs: number
  readonly producerIdExpirationMs: number
  readonly producerIdExpirationCheckIntervalMs: number
  /** Between two looks whether a full disk has room again. */
  readonly diskFullProbeIntervalMs: number
}

export const defaultLogManagerSettings: LogManagerSettings = Object.freeze({
  tailCacheBytes: 64 * 1024 * 1024,
  maxOpenFiles: 2048,
  indexCacheBytes: 32 * 1024 * 1024,
  readBufferBytes: 16 * 1024 * 1024,
  initialTaskDelayMs: 30_000,
  retentionCheckIntervalMs: 300_000,
  recoveryPointCheckpointIntervalMs: 60_000,
  highWatermarkCheckpointIntervalMs: 5000,
  producerIdExpirationMs: 86_400_000,
  producerIdExpirationCheckIntervalMs: 600_000,
  diskFullProbeIntervalMs: 5000,
})

export interface LogManagerOptions {
  readonly platform: Platform
  readonly logger: Logger
  readonly metrics: Metrics
  /** One per process. */
  readonly scheduler: FlushScheduler
  /** Absolute paths, at least one. Made when they are missing. */
  readonly directories: readonly string[]
  /** When left out: what the folders say, or a new one. */
  readonly clusterId?: string
  readonly nodeId: number
  /** For partitions that are found, until `updateTopicConfig`. */
  readonly defaultConfig: TopicConfig
  readonly settings?: Partial<LogManagerSettings>
  /** A pool of the caller's, instead of one with `maxOpenFiles`. */
  readonly handles?: HandlePool
}

/** News of whole directories. The logs tell their own listeners first. */
export interface LogManagerListener {
  onDirectoryOffline(path: string, error: StorageError): void
  /** The directory works again. Its logs are new objects: what `get` gave before stays offline. */
  onDirectoryOnline(path: string): void
}

export interface LogDirectoryStatus {
  readonly path: string
  readonly directoryId: Uuid | undefined
  /** Undefined: online. */
  readonly error: StorageError | undefined
  readonly sizeBytes: number
  readonly partitions: readonly PartitionLog[]
}

export interface LogSpec {
  readonly topic: string
  readonly topicId: Uuid
  readonly partition: number
  readonly config: TopicConfig
}

/** The logs of a node, over all its log directories. */
export interface LogManager {
  readonly clusterId: string
  setListener(listener: LogManagerListener | undefined): void
  /** Undefined when there is none or its folder is damaged. May be offline. */
  get(topic: string, partition: number): PartitionLog | undefined
  /** Why a partition that is on disk can't be used; undefined when it can, or isn't there. */
  faultOf(topic: string, partition: number): StorageError | undefined
  /** Every log that is loaded, also those of topics that nobody knows any more: whoever knows the topics deletes them. */
  logs(): readonly PartitionLog[]
  /**
   * Opens a log, in the directory with the fewest partitions when it is new. One of another topic id under the same name
   * is deleted first. Throws `StorageError`: no directory is online, or the partition's is not, or its folder is damaged.
   */
  getOrCreate(spec: LogSpec): Promise<PartitionLog>
  /** Takes a partition out of use for ever, damaged or not; nothing happens when there is none. Durable when it resolves. */
  delete(topic: string, partition: number): Promise<void>
  updateTopicConfig(topic: string, config: TopicConfig): void
  /** Runs retention on every log now. */
  enforceRetention(): Promise<void>
  directories(): readonly LogDirectoryStatus[]
  /** Clean shutdown. No call on any log may be under way. */
  close(): Promise<void>
}

/**
 * Locks the directories, checks whose they are, and loads every partition; recovers them after a crash. Throws
 * `DirectoryLockedError`, `ClusterIdMismatchError`, or `StorageError` when no directory can be used; when only some can't,
 * they are offline from the start.
 */
export async function openLogManager(options: LogManagerOptions): Promise<LogManager> {
  const { platform, logger, scheduler } = options
  const settings = { ...defaultLogManagerSettings, ...options.settings }
  const environment: LogEnvironment = {
    platform,
    logger,
    scheduler,
    probe: new LogProbe(options.metrics),
    handles: options.handles ?? new HandlePool(platform.files, { maxOpen: settings.maxOpenFiles }),
    buffers: new ReadBuffers({ maxIdleBytes: settings.readBufferBytes }),
    tailCache: new TailCache({ budgetBytes: settings.tailCacheBytes }),
    indexCache: new IndexCache({ maxBytes: settings.indexCacheBytes }),
    producerIdExpirationMs: settings.producerIdExpirationMs,
  }
  const manager = new DirectoryLogManager(environment, settings)
  await manager.open(options)
  return manager
}

class DirectoryLogManager implements LogManager {
  readonly #environment: LogEnvironment
  readonly #settings: LogManagerSettings
  readonly #directories: LogDirectory[] = []
  /** Directories that could not even be opened. */
  readonly #unopened = new Map<string, StorageError>()
  readonly #timers = new Set<Timer>()
  /** Creation and deletion of one partition come one after the other. */
  readonly #changes = new Map<string, Promise<unknown>>()
  #clusterId = ''
  #listener: LogManagerListener | undefined
  #isClosed = false

  constructor(environment: LogEnvironment, settings: LogManagerSettings) {
    this.#environment = environment
    this.#settings = settings
  }

  get clusterId(): string {
    return this.#clusterId
  }

  async open(options: LogManagerOptions): Promise<void> {
    const claimed: { path: string; lock: DirectoryLock; meta: MetaProperties | undefined }[] = []
    try {
      for (const path of options.directories) {
        try {
          claimed.push({ path, ...(await claimDirectory(this.#environment, path)) })
        } catch (error) {
          this.#leaveOut(path, error, options.directories.length)
        }
      }
      this.#clusterId =
        options.clusterId ??
        claimed.find(({ meta }) => meta !== undefined)?.meta?.clusterId ??
        this.#environment.platform.random.uuid()
      for (const { path, meta } of claimed) checkOwner(path, meta, this.#clusterId, options.nodeId)
      for (const { path, lock, meta } of claimed) await this.#openDirectory(path, lock, meta, options)
    } catch (error) {
      for (const { lock } of claimed) await lock.release()
      throw error
    }
    this.#environment.probe.offlineDirectories.value = this.#unopened.size + this.#offlineCount()
    const settings = this.#settings
    this.#every(settings.retentionCheckIntervalMs, settings.initialTaskDelayMs, () => this.enforceRetention())
    this.#every(settings.recoveryPointCheckpointIntervalMs, settings.initialTaskDelayMs, () =>
      this.#onEachOnline((directory) => directory.saveChangedRecoveryPoints()),
    )
    this.#every(settings.highWatermarkCheckpointIntervalMs, settings.highWatermarkCheckpointIntervalMs, () =>
      this.#onEachOnline((directory) => directory.saveChangedHighWatermarks()),
    )
    this.#every(
      settings.producerIdExpirationCheckIntervalMs,
      settings.producerIdExpirationCheckIntervalMs,
      async () => {
        for (const log of this.#allLogs()) log.expireProducers(this.#environment.platform.clock.now())
      },
    )
    this.#every(settings.diskFullProbeIntervalMs, settings.diskFullProbeIntervalMs, () => this.#reopenFullDisks())
  }

  async #openDirectory(
    path: string,
    lock: DirectoryLock,
    meta: MetaProperties | undefined,
    options: LogManagerOptions,
  ): Promise<void> {
    const { platform } = this.#environment
    const owner = meta ?? { clusterId: this.#clusterId, nodeId: options.nodeId, directoryId: platform.random.uuid() }
    const directory = new LogDirectory({
      environment: this.#environment,
      events: { onOffline: (failed, error) => this.#onOffline(failed, error) },
      path,
      directoryId: owner.directoryId,
      lock,
    })
    try {
      if (meta === undefined) await writeMetaProperties(platform.files, path, owner)
      await directory.load(options.defaultConfig)
      this.#directories.push(directory)
    } catch (error) {
      this.#leaveOut(path, error, options.directories.length)
      directory.fail(storageErrorOf(error, path))
      await directory.close()
    }
  }

  /** One directory of several can't be used: the node does without. The only one, or a mistake in the settings, ends the start. */
  #leaveOut(path: string, error: unknown, count: number): void {
    const isDiskFault = error instanceof StorageError || (error as { code?: unknown }).code === 'FILE_FAILED'
    if (!isDiskFault || this.#unopened.size + 1 >= count) throw isDiskFault ? storageErrorOf(error, path) : error
    const failure = storageErrorOf(error, path)
    this.#unopened.set(path, failure)
    this.#environment.logger.error({ directory: path, error: failure }, 'log directory cannot be opened')
  }

  setListener(listener: LogManagerListener | undefined): void {
    this.#listener = listener
  }

  get(topic: string, partition: number): PartitionLog | undefined {
    const name = partitionName(topic, partition)
    return this.#holderOf(name)?.logs.get(name)
  }

  faultOf(topic: string, partition: number): StorageError | undefined {
    const name = partitionName(topic, partition)
    const holder = this.#holderOf(name)
    return holder?.faults.get(name) ?? holder?.error
  }

  logs(): readonly PartitionLog[] {
    return this.#allLogs()
  }

  getOrCreate(spec: LogSpec): Promise<PartitionLog> {
    const name = partitionName(spec.topic, spec.partition)
    return this.#inTurn(name, async () => {
      const holder = this.#holderOf(name)
      const fault = holder?.faults.get(name) ?? holder?.error
      if (fault !== undefined) throw fault
      const present = holder?.logs.get(name)
      if (present?.topicId === spec.topicId) {
        present.updateConfig(spec.config)
        return present
      }
      if (holder !== undefined && present !== undefined) {
        const { topic, topicId } = present
        this.#environment.logger.info({ topic, topicId, newTopicId: spec.topicId }, 'log of a deleted topic discarded')
        await holder.delete(name, present.config.fileDeleteDelayMs)
      }
      return await this.#emptiest().create(spec.topic, spec.topicId, spec.partition, spec.config)
    })
  }

  #emptiest(): LogDirectory {
    let emptiest: LogDirectory | undefined
    for (const directory of this.#directories) {
      if (!directory.isOnline) continue
      if (emptiest === undefined || directory.logs.size < emptiest.logs.size) emptiest = directory
    }
    if (emptiest !== undefined) return emptiest
    throw this.#directories.find((directory) => directory.error !== undefined)?.error ?? noDirectory()
  }

  delete(topic: string, partition: number): Promise<void> {
    const name = partitionName(topic, partition)
    return this.#inTurn(name, async () => {
      const holder = this.#holderOf(name)
      await holder?.delete(name, holder.logs.get(name)?.config.fileDeleteDelayMs ?? 0)
    })
  }

  updateTopicConfig(topic: string, config: TopicConfig): void {
    for (const log of this.#allLogs()) if (log.topic === topic) log.updateConfig(config)
  }

  async enforceRetention(): Promise<void> {
    for (const log of this.#allLogs()) {
      if (log.isOnline) await log.enforceRetention(this.#environment.platform.clock.now())
    }
  }

  directories(): readonly LogDirectoryStatus[] {
    const opened = this.#directories.map(({ path, directoryId, error, sizeBytes, logs }) => ({
      path,
      directoryId,
      error,
      sizeBytes,
      partitions: [...logs.values()],
    }))
    const unopened = [...this.#unopened].map(([path, error]) => ({
      path,
      directoryId: undefined,
      error,
      sizeBytes: 0,
      partitions: [],
    }))
    return [...opened, ...unopened]
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const timer of this.#timers) timer.cancel()
    await Promise.all(this.#changes.values())
    for (const directory of this.#directories) await directory.close()
    await this.#environment.handles.drained()
  }

  #allLogs(): LocalLog[] {
    return this.#directories.flatMap((directory) => [...directory.logs.values()])
  }

  #holderOf(name: string): LogDirectory | undefined {
    return this.#directories.find((directory) => directory.logs.has(name) || directory.faults.has(name))
  }

  #onOffline(directory: LogDirectory, error: StorageError): void {
    this.#environment.probe.offlineDirectories.value = this.#unopened.size + this.#offlineCount()
    this.#listener?.onDirectoryOffline(directory.path, error)
  }

  #offlineCount(): number {
    return this.#directories.filter((directory) => !directory.isOnline).length
  }

  /** Any other fault needs a person, and a restart. */
  async #reopenFullDisks(): Promise<void> {
    for (const directory of this.#directories) {
      if (directory.error?.isDiskFull !== true || !(await directory.hasRoom())) continue
      await directory.reopen()
      this.#environment.probe.offlineDirectories.value = this.#unopened.size + this.#offlineCount()
      this.#listener?.onDirectoryOnline(directory.path)
    }
  }

  async #onEachOnline(work: (directory: LogDirectory) => Promise<void>): Promise<void> {
    for (const directory of this.#directories) if (directory.isOnline) await work(directory)
  }

  /** Runs `work` again and again, each time `intervalMs` after it was done. A disk's fault was told where it came up. */
  #every(intervalMs: number, delayMs: number, work: () => Promise<void>): void {
    const timer = this.#environment.platform.timers.set(Math.min(delayMs, 2 ** 31 - 1), () => {
      this.#timers.delete(timer)
      work()
        .catch((error: unknown) => this.#environment.logger.warn({ error }, 'periodic task of the logs failed'))
        .finally(() => {
          if (!this.#isClosed) this.#every(intervalMs, intervalMs, work)
        })
    })
    this.#timers.add(timer)
  }

  #inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    const result = (this.#changes.get(name) ?? Promise.resolve()).then(work)
    const settled = result.then(
      () => {},
      () => {},
    )
    this.#changes.set(name, settled)
    void settled.then(() => {
      if (this.#changes.get(name) === settled) this.#changes.delete(name)
    })
    return result
  }
}

function checkOwner(path: string, meta: MetaProperties | undefined, clusterId: string, nodeId: number): void {
  if (meta === undefined) return
  if (meta.clusterId !== clusterId) throw new ClusterIdMismatchError('cluster.id', path, meta.clusterId, clusterId)
  if (meta.nodeId !== nodeId) throw new ClusterIdMismatchError('node.id', path, String(meta.nodeId), String(nodeId))
}

function noDirectory(): StorageError {
  return new StorageError('No log directory is online', '')
}
