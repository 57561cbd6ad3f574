import { resolve } from 'node:path'
import { assert, type BrokerEpoch, partitionName, type TopicPartition, type Uuid, zeroUuid } from '../base/index.ts'
import type { ParsedConfig, TopicConfig } from '../config/index.ts'
import { type DirectoryLock, FileError, type Platform, type Timer, type Timers } from '../platform/index.ts'
import type { Logger, Metrics } from '../telemetry/index.ts'
import type { LogEnvironment } from './environment.ts'
import { ClusterIdMismatchError, StorageError, storageErrorOf } from './errors.ts'
import { FlushScheduler } from './flush-scheduler.ts'
import { HandlePool } from './handle-pool.ts'
import { IndexCache } from './index-cache.ts'
import type { LocalLog } from './local-log.ts'
import { LogCleaner } from './log-cleaner.ts'
import { canHaveCopy, claimDirectory, configOfCopy, LogDirectory, parsePartitionName } from './log-directory.ts'
import { LogMoves, type MoveAnswer } from './log-moves.ts'
import { type MetaProperties, writeMetaProperties } from './meta-properties.ts'
import { LogProbe } from './probe.ts'
import { ReadBuffers } from './read-buffers.ts'
import { TailCache } from './tail-cache.ts'
import type { PartitionLog } from './types.ts'

/** What Kafka has no key for. Sizes in bytes. */
export interface LogManagerSettings {
  /** Memory for the newest batches of all partitions; 0 for none. */
  readonly tailCacheBytes: number
  /** Files that stay open while nobody uses them. */
  readonly maxOpenFiles: number
  /** Memory for the indexes of segments that take no appends. */
  readonly indexCacheBytes: number
  /** Memory of read buffers that is kept for the next read. */
  readonly readBufferBytes: number
  /** Milliseconds between two looks whether a full disk has room again. */
  readonly diskFullProbeIntervalMs: number
}

const defaultSettings: LogManagerSettings = {
  tailCacheBytes: 64 * 1024 * 1024,
  maxOpenFiles: 2048,
  indexCacheBytes: 32 * 1024 * 1024,
  readBufferBytes: 16 * 1024 * 1024,
  diskFullProbeIntervalMs: 5000,
}
/** Partitions that aren't here, of which is remembered where they are to be made. */
const maxPreferred = 10_000
/** One less than libuv's pool has threads, unless the program set it. */
const defaultConcurrentSyncs = 3

export interface LogManagerOptions {
  readonly platform: Platform
  /** What retention and the expiration of producers are run by; the platform's when left out. Ages are by its clock. */
  readonly retentionTimers?: Timers | undefined
  readonly logger: Logger
  readonly metrics: Metrics
  /** Folders, node id, cluster id, intervals; and the settings of topics, for partitions that are found, until `updateTopicConfigs`. */
  readonly config: ParsedConfig
  /** What a metadata directory that was never used gets; without it the configured or a new cluster id, and a new directory id. */
  readonly identity?: { readonly clusterId: string; readonly metadataDirectoryId: Uuid }
  /** The process's, when others sync too; one of its own when left out. */
  readonly scheduler?: FlushScheduler
  readonly settings?: Partial<LogManagerSettings>
  /** A pool of the caller's, instead of one with `maxOpenFiles`. */
  readonly handles?: HandlePool
}

/** News of whole directories. The logs tell their own listeners first. */
export interface LogManagerListener {
  onDirectoryOffline(path: string, error: StorageError): void
  /** The directory works again. Its logs are new objects: what `get` gave before stays offline. */
  onDirectoryOnline(path: string): void
  /** A log was opened in this directory, or has moved into it; then it is the same object as before. */
  onPlaced(log: PartitionLog, directoryId: Uuid): void
}

export interface LogDirectoryStatus {
  readonly path: string
  readonly directoryId: Uuid | undefined
  /** Undefined: online. */
  readonly error: StorageError | undefined
  readonly sizeBytes: number
  readonly partitions: readonly PartitionLog[]
  /** Partitions that move here, as far as they are. */
  readonly copies: readonly PartitionCopy[]
}

/** What there is of a partition in the directory to which it moves. */
export interface PartitionCopy {
  readonly topic: string
  readonly partition: number
  readonly sizeBytes: number
  /** Offsets that it lacks. */
  readonly offsetLag: number
}

export interface LogSpec {
  readonly topic: string
  readonly topicId: Uuid
  readonly partition: number
  readonly config: TopicConfig
  /** It came to this node after the start: nothing of it can be in a directory that is missing. No, when left out. */
  readonly isNew?: boolean
  /** The directory that it is in as far as the metadata knows; `zeroUuid`, or left out, when it doesn't. */
  readonly directoryId?: Uuid
}

/** The logs of a node, over all its log directories. */
export interface LogManager {
  /** As configured, or what the folders say, or a new one. */
  readonly clusterId: string
  /** Ids of the log directories that could be opened. */
  readonly directoryIds: readonly Uuid[]
  /** Absolute; where the metadata log belongs, locked and labelled like the others. */
  readonly metadataDirectory: string
  readonly metadataDirectoryId: Uuid
  /** No partition was found at the start, not even a damaged one. */
  readonly isEmpty: boolean
  setListener(listener: LogManagerListener | undefined): void
  /** Undefined when there is none or its folder is damaged. May be offline. */
  get(topic: string, partition: number): PartitionLog | undefined
  /** Why a partition that is on disk can't be used; undefined when it can, or isn't there. */
  faultOf(topic: string, partition: number): StorageError | undefined
  /**
   * Every partition of which there is anything, be it damaged or an unfinished copy, also of topics that nobody knows any more:
   * whoever knows the topics deletes them.
   */
  partitions(): readonly TopicPartition[]
  /**
   * Opens a log, or makes an empty one: where `move` said, else in `directoryId`, else where the fewest are. One of another topic id under
   * the same name, in whichever directory, damaged or not, is deleted first. Throws `StorageError`: no directory is online, or the partition's is not, or
   * its folder is damaged, or it may be in a directory that could not be opened.
   */
  getOrCreate(spec: LogSpec): Promise<PartitionLog>
  /**
   * Moves a partition into the directory `path`, in the background, through restarts; ends a move to another one. One that isn't
   * here yet will be made there.
   */
  move(topic: string, partition: number, path: string): Promise<MoveAnswer>
  /**
   * Takes a partition out of use for ever, damaged or not; nothing happens when there is none. Durable when it resolves. Rejects when
   * a directory fails; from the others it is gone all the same.
   */
  delete(topic: string, partition: number): Promise<void>
  /** By topic, from now on; others keep theirs. Costs a look at every log. */
  updateTopicConfigs(configs: ReadonlyMap<string, TopicConfig>): void
  /** Those of the broker's settings that may change while it runs count from now on. */
  updateBrokerConfig(values: ParsedConfig['values']): void
  /** Runs retention on every log now. */
  enforceRetention(): Promise<void>
  /** Compacts every log that is due, now. */
  clean(): Promise<void>
  directories(): readonly LogDirectoryStatus[]
  /** Of the run before, if every directory was left in order by it; null otherwise (KIP-966). */
  readonly cleanBrokerEpoch: BrokerEpoch | null
  /** Clean shutdown, of the run that has `brokerEpoch`. No call on any log may be under way. */
  close(brokerEpoch?: BrokerEpoch): Promise<void>
}

/**
 * Locks the directories, checks whose they are, and loads every partition; recovers them after a crash. Throws
 * `DirectoryLockedError`, `ClusterIdMismatchError`, or `StorageError` when no directory can be used; when only some can't,
 * they are offline from the start.
 */
export async function openLogManager(options: LogManagerOptions): Promise<LogManager> {
  const { platform, logger, config } = options
  const settings = { ...defaultSettings, ...options.settings }
  const environment: LogEnvironment = {
    platform,
    logger,
    scheduler: options.scheduler ?? new FlushScheduler({ maxConcurrent: defaultConcurrentSyncs }),
    probe: new LogProbe(options.metrics),
    handles: options.handles ?? new HandlePool(platform.files, { maxOpen: settings.maxOpenFiles }),
    buffers: new ReadBuffers({ maxIdleBytes: settings.readBufferBytes }),
    tailCache: new TailCache({ budgetBytes: settings.tailCacheBytes }),
    indexCache: new IndexCache({ maxBytes: settings.indexCacheBytes }),
    producerIdExpirationMs: config.values.producerIdExpirationMs,
  }
  const manager = new DirectoryLogManager(environment, config, options)
  await manager.open()
  manager.startTasks(settings.diskFullProbeIntervalMs)
  return manager
}

/** A folder that is this node's from here on. */
interface Claim {
  readonly path: string
  readonly lock: DirectoryLock
  readonly meta: MetaProperties | undefined
}

class DirectoryLogManager implements LogManager {
  readonly metadataDirectory: string
  readonly #environment: LogEnvironment
  readonly #config: ParsedConfig
  readonly #identity: LogManagerOptions['identity']
  readonly #retentionTimers: Timers
  readonly #directories: LogDirectory[] = []
  /** Directories that could not even be opened. */
  readonly #unopened = new Map<string, StorageError>()
  /** Of a metadata directory that holds no partitions. */
  #metadataLock: DirectoryLock | undefined
  #metadataDirectoryId: Uuid | undefined
  readonly #timers = new Set<Timer>()
  readonly #cleaner: LogCleaner
  readonly #moves: LogMoves
  /** Where partitions that aren't here yet are to be made: path by name. */
  readonly #preferred = new Map<string, string>()
  /** Names of partitions that were asked for, and may be in a directory that could not be opened. */
  readonly #missing = new Set<string>()
  #cleanerBackoffMs: number
  /** By partition name, the topic that was asked for last: what else there is of the name is of one that was deleted. */
  readonly #topicIds = new Map<string, Uuid>()
  /** Creation and deletion of one partition come one after the other. */
  readonly #changes = new Map<string, Promise<unknown>>()
  #clusterId = ''
  #isEmpty: boolean = true
  #listener: LogManagerListener | undefined
  #isClosed: boolean = false

  constructor(
    environment: LogEnvironment,
    config: ParsedConfig,
    {
      identity,
      retentionTimers = environment.platform.timers,
    }: Pick<LogManagerOptions, 'identity' | 'retentionTimers'>,
  ) {
    this.#environment = environment
    this.#identity = identity
    this.#retentionTimers = retentionTimers
    this.#config = config
    this.metadataDirectory = resolve(config.metadataLogDir)
    this.#cleaner = new LogCleaner({ environment, settings: config.values, logs: () => this.#allLogs() })
    this.#cleanerBackoffMs = config.values.logCleanerBackoffMs
    this.#moves = new LogMoves({
      environment,
      directories: this.#directories,
      maxBytesPerSecond: config.values.replicaAlterLogDirsIoMaxBytesPerSecond,
      inTurn: (name, work) => this.#inTurn(name, work),
      onMoved: (log, directoryId) => this.#listener?.onPlaced(log, directoryId),
    })
  }

  get clusterId(): string {
    return this.#clusterId
  }

  get directoryIds(): readonly Uuid[] {
    return this.#directories.map((directory) => directory.directoryId)
  }

  get metadataDirectoryId(): Uuid {
    assert(this.#metadataDirectoryId !== undefined, 'the manager is open')
    return this.#metadataDirectoryId
  }

  get isEmpty(): boolean {
    return this.#isEmpty
  }

  get cleanBrokerEpoch(): BrokerEpoch | null {
    const epochs = new Set(this.#directories.map((directory) => directory.cleanBrokerEpoch))
    return epochs.size === 1 && this.#unopened.size === 0 ? [...epochs][0]! : null
  }

  async open(): Promise<void> {
    const logDirectories = this.#config.logDirs.map((path) => resolve(path))
    const held = new Set<DirectoryLock>()
    try {
      const claims: Claim[] = []
      for (const path of new Set([...logDirectories, this.metadataDirectory])) {
        try {
          const claim = { path, ...(await claimDirectory(this.#environment, path)) }
          claims.push(claim)
          held.add(claim.lock)
        } catch (error) {
          this.#leaveOut(path, error)
        }
      }
      const known = claims.find(({ meta }) => meta !== undefined)?.meta?.clusterId
      const given = this.#config.values.clusterId ?? known ?? this.#identity?.clusterId
      this.#clusterId = given ?? this.#environment.platform.random.uuid()
      for (const claim of claims) checkOwner(claim, this.#clusterId, this.#config.nodeId)
      for (const claim of claims) {
        const directoryId = await this.#label(claim)
        if (claim.path === this.metadataDirectory) this.#metadataDirectoryId = directoryId
        if (logDirectories.includes(claim.path)) await this.#openDirectory(claim, directoryId)
        else this.#metadataLock = claim.lock
      }
      await this.#moves.settle(this.#unopened.size === 0)
    } catch (error) {
      for (const lock of held) await lock.release()
      throw error
    }
    this.#isEmpty = this.#directories.every(({ logs, faults }) => logs.size === 0 && faults.size === 0)
    this.#countOffline()
  }

  /** Writes whose folder it is into one that has never been used; its id. */
  async #label(claim: Claim): Promise<Uuid> {
    const { platform } = this.#environment
    if (claim.meta !== undefined) return claim.meta.directoryId
    const isForMetadata = this.#identity !== undefined && claim.path === this.metadataDirectory
    const directoryId = isForMetadata ? this.#identity.metadataDirectoryId : platform.random.uuid()
    const meta = { clusterId: this.#clusterId, nodeId: this.#config.nodeId, directoryId }
    await writeMetaProperties(platform.files, claim.path, meta)
    return directoryId
  }

  /** `diskFullProbeIntervalMs`: between two looks whether a full disk has room again. */
  startTasks(diskFullProbeIntervalMs: number): void {
    const { values } = this.#config
    const { clock } = this.#environment.platform
    this.#every(
      values.logRetentionCheckIntervalMs,
      values.logInitialTaskDelayMs,
      () => this.enforceRetention(),
      this.#retentionTimers,
    )
    this.#every(values.logFlushOffsetCheckpointIntervalMs, values.logInitialTaskDelayMs, () =>
      this.#onEachOnline((directory) => directory.saveChangedRecoveryPoints()),
    )
    const watermarkIntervalMs = values.replicaHighWatermarkCheckpointIntervalMs
    this.#every(watermarkIntervalMs, watermarkIntervalMs, () =>
      this.#onEachOnline((directory) => directory.saveChangedHighWatermarks()),
    )
    const expirationIntervalMs = values.producerIdExpirationCheckIntervalMs
    const expire = async () => {
      for (const log of this.#allLogs()) log.expireProducers(clock.now())
    }
    this.#every(expirationIntervalMs, expirationIntervalMs, expire, this.#retentionTimers)
    this.#every(diskFullProbeIntervalMs, diskFullProbeIntervalMs, () => this.#reopenFullDisks())
    const backoffMs = () => Math.max(1, this.#cleanerBackoffMs)
    this.#every(backoffMs, backoffMs(), () => this.clean())
  }

  async #openDirectory(claim: Claim, directoryId: Uuid): Promise<void> {
    const directory = new LogDirectory({
      environment: this.#environment,
      events: { onOffline: (failed, error) => this.#onOffline(failed, error) },
      path: claim.path,
      directoryId,
      lock: claim.lock,
      defaultConfig: this.#config.topicDefaults,
    })
    try {
      await directory.load()
      this.#directories.push(directory)
    } catch (error) {
      this.#leaveOut(claim.path, error)
      directory.fail(storageErrorOf(error, claim.path))
      await directory.close(null)
    }
  }

  /** One directory of several can't be used: the node does without. The last one, or a mistake in the settings, ends the start. */
  #leaveOut(path: string, error: unknown): void {
    const isDiskFault = error instanceof StorageError || error instanceof FileError
    if (!isDiskFault) throw error
    const failure = storageErrorOf(error, path)
    this.#unopened.set(path, failure)
    if (path === this.metadataDirectory || this.#unopened.size >= this.#config.logDirs.length) throw failure
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
    return holder?.error ?? (holder?.logs.has(name) ? undefined : holder?.faults.get(name)?.error)
  }

  partitions(): readonly TopicPartition[] {
    const names = this.#directories.flatMap(({ logs, faults, copies }) => [
      ...logs.keys(),
      ...faults.keys(),
      ...copies.keys(),
    ])
    return [...new Set(names)].map((name) => parsePartitionName(name)!)
  }

  getOrCreate(spec: LogSpec): Promise<PartitionLog> {
    const name = partitionName(spec.topic, spec.partition)
    return this.#inTurn(name, async () => {
      this.#topicIds.set(name, spec.topicId)
      this.#checkReopened(name)
      const holder =
        this.#directories.find(({ logs }) => logs.get(name)?.topicId === spec.topicId) ??
        this.#directories.find((directory) => mayHold(directory, name, spec))
      if (holder?.error !== undefined) throw holder.error
      const present = holder?.logs.get(name)
      if (holder !== undefined && present !== undefined) {
        // A fault of another directory, which it has told, is none of this log.
        await this.#discardOthers(name, spec).catch(() => {})
        present.updateConfig(spec.config)
        await this.#moves.resume(present, holder)
        this.#listener?.onPlaced(present, holder.directoryId)
        return present
      }
      if (holder !== undefined) throw holder.faults.get(name)?.error
      const assigned = this.#directories.find(({ directoryId }) => directoryId === spec.directoryId)
      this.#checkCanBeNew(name, spec, assigned)
      await this.#moves.forget(name)
      await this.#discardOthers(name, spec)
      const preferred = this.#preferred.get(name)
      this.#preferred.delete(name)
      const directory = this.#directories.find(({ path, isOnline }) => path === preferred && isOnline)
      const home = directory ?? (assigned?.isOnline ? assigned : this.#emptiest())
      if (assigned?.isOnline && home !== assigned) await assigned.noteElsewhere(name)
      const log = home.create(spec.topic, spec.topicId, spec.partition, spec.config)
      this.#listener?.onPlaced(log, home.directoryId)
      return log
    })
  }

  /** An empty log, made while the partition's own is being opened anew, would be taken for what came in its place. */
  #checkReopened(name: string): void {
    const reopening = this.#directories.find((directory) => directory.isReopening(name))
    if (reopening !== undefined) throw reopening.error ?? noDirectory()
  }

  /**
   * There is no log of the partition in the directories that could be opened. An empty one, made while its own is in one that
   * is missing, would count as the newer of the two when that is back: what was acknowledged would be deleted. A partition
   * without records has nothing on disk, so that only the metadata tells it from one that is missing.
   */
  #checkCanBeNew(name: string, { isNew, directoryId }: LogSpec, assigned: LogDirectory | undefined): void {
    // Anywhere else it could not be told, after a restart, from one that is still there.
    if (isNew !== true && assigned?.error !== undefined) throw assigned.error
    const mayBeElsewhere =
      assigned === undefined || assigned.moves.departureOf(name) !== undefined || this.#moves.isCopied(name)
    if (this.#unopened.size > 0 && isNew !== true && mayBeElsewhere) {
      this.#missing.add(name)
      throw missingLog(name, [...this.#unopened.keys()])
    }
    this.#missing.delete(name)
    const wasKnown = directoryId !== undefined && directoryId !== zeroUuid
    if (isNew === true || !wasKnown || assigned !== undefined) return
    this.#environment.logger.warn(
      { partition: name, directoryId },
      'partition starts empty: the log directory that it was in is none of log.dirs',
    )
  }

  /** What is of another topic goes; where that is in a directory that failed, at the latest when the directory is back. */
  async #discardOthers(name: string, spec: LogSpec): Promise<void> {
    for (const directory of this.#directories) {
      const log = directory.logs.get(name)
      const found = log ?? directory.faults.get(name)
      if (found === undefined || mayHold(directory, name, spec)) continue
      const { topic, topicId: newTopicId } = spec
      const { isOnline } = directory
      this.#environment.logger.info({ topic, topicId: found.topicId, newTopicId }, 'log of a deleted topic discarded')
      const { fileDeleteDelayMs } = log?.config ?? spec.config
      await directory.delete(name, fileDeleteDelayMs).catch((error: unknown) => {
        if (isOnline) throw error
      })
    }
  }

  move(topic: string, partition: number, path: string): Promise<MoveAnswer> {
    const name = partitionName(topic, partition)
    return this.#inTurn(name, async () => {
      if (!canHaveCopy(name)) return 'name-too-long'
      const target = this.#directories.find((directory) => directory.path === path)
      if (target === undefined) return this.#unopened.has(path) ? 'directory-offline' : 'directory-not-found'
      if (!target.isOnline) return 'directory-offline'
      const holder = this.#holderOf(name)
      if (holder === undefined) {
        if (this.#missing.has(name) || this.#directories.some((each) => each.isReopening(name)))
          return 'partition-offline'
        this.#preferred.delete(name)
        this.#preferred.set(name, path)
        if (this.#preferred.size > maxPreferred) this.#preferred.delete(this.#preferred.keys().next().value!)
        return 'not-here'
      }
      const log = holder.logs.get(name)
      if (log === undefined || !log.isOnline) return 'partition-offline'
      return await this.#moves.ask(log, holder, target)
    })
  }

  #emptiest(): LogDirectory {
    let emptiest: LogDirectory | undefined
    for (const directory of this.#directories) {
      if (!directory.isOnline) continue
      if (emptiest === undefined || directory.partitionCount < emptiest.partitionCount) emptiest = directory
    }
    if (emptiest !== undefined) return emptiest
    throw this.#directories.find((directory) => directory.error !== undefined)?.error ?? noDirectory()
  }

  delete(topic: string, partition: number): Promise<void> {
    const name = partitionName(topic, partition)
    return this.#inTurn(name, async () => {
      const failures: unknown[] = []
      await this.#moves.forget(name).catch((error) => failures.push(error))
      this.#preferred.delete(name)
      this.#missing.delete(name)
      this.#topicIds.delete(name)
      for (const directory of this.#directories) {
        const log = directory.logs.get(name)
        if (log === undefined && !directory.faults.has(name)) continue
        await directory.delete(name, log?.config.fileDeleteDelayMs ?? 0).catch((error) => failures.push(error))
      }
      if (failures.length > 0) throw failures[0]
    })
  }

  updateTopicConfigs(configs: ReadonlyMap<string, TopicConfig>): void {
    for (const log of this.#allLogs()) {
      const config = configs.get(log.topic)
      if (config !== undefined) log.updateConfig(config)
    }
    for (const copy of this.#moves.copies()) {
      const config = configs.get(copy.topic)
      if (config !== undefined) copy.updateConfig(configOfCopy(config))
    }
  }

  updateBrokerConfig(values: ParsedConfig['values']): void {
    this.#environment.producerIdExpirationMs = values.producerIdExpirationMs
    this.#cleanerBackoffMs = values.logCleanerBackoffMs
    this.#cleaner.updateSettings(values)
    this.#moves.maxBytesPerSecond = values.replicaAlterLogDirsIoMaxBytesPerSecond
  }

  async enforceRetention(): Promise<void> {
    for (const log of this.#allLogs()) {
      if (log.isOnline) await log.enforceRetention(this.#environment.platform.clock.now())
    }
  }

  clean(): Promise<void> {
    return this.#cleaner.run()
  }

  directories(): readonly LogDirectoryStatus[] {
    const opened = this.#directories.map((directory) => {
      const { path, directoryId, error, sizeBytes, logs } = directory
      const copies = this.#moves.copiesIn(directory)
      return { path, directoryId, error, sizeBytes, partitions: [...logs.values()], copies }
    })
    const unopened = [...this.#unopened].map(([path, error]) => ({
      path,
      directoryId: undefined,
      error,
      sizeBytes: 0,
      partitions: [],
      copies: [],
    }))
    return [...opened, ...unopened]
  }

  async close(brokerEpoch?: BrokerEpoch): Promise<void> {
    this.#isClosed = true
    this.#cleaner.stop()
    for (const timer of this.#timers) timer.cancel()
    await Promise.all(this.#changes.values())
    await this.#moves.stop()
    for (const directory of this.#directories) await directory.close(brokerEpoch ?? null)
    await this.#environment.handles.drained()
    await this.#metadataLock?.release()
  }

  #allLogs(): LocalLog[] {
    return this.#directories.flatMap((directory) => [...directory.logs.values()])
  }

  /**
   * Where the partition is: its log of the topic that was asked for, or of any topic, before a damaged folder of it. There is one,
   * but where a directory came back that was away when a topic was made anew.
   */
  #holderOf(name: string): LogDirectory | undefined {
    const directories = this.#directories
    const topicId = this.#topicIds.get(name)
    return (
      directories.find(({ logs }) => logs.has(name) && logs.get(name)?.topicId === topicId) ??
      directories.find(({ logs }) => logs.has(name)) ??
      directories.find(({ faults }) => faults.has(name))
    )
  }

  #onOffline(directory: LogDirectory, error: StorageError): void {
    this.#countOffline()
    this.#listener?.onDirectoryOffline(directory.path, error)
  }

  #countOffline(): void {
    const offline = this.#directories.filter((directory) => !directory.isOnline)
    this.#environment.probe.offlineDirectories.value = this.#unopened.size + offline.length
  }

  /** Any other fault needs a person, and a restart. */
  async #reopenFullDisks(): Promise<void> {
    for (const directory of this.#directories) {
      if (!directory.canReopen) continue
      await this.#moves.leave(directory)
      if (!(await directory.hasRoom())) continue
      await directory.reopen()
      await this.#settleReopened(directory)
      this.#countOffline()
      this.#listener?.onDirectoryOnline(directory.path)
    }
  }

  /** What was put in place of its logs meanwhile stays, and what is of topics that were deleted goes. */
  async #settleReopened(directory: LogDirectory): Promise<void> {
    const topicIdOf = (name: string) => directory.logs.get(name)?.topicId ?? directory.faults.get(name)?.topicId
    const isOfDeleted = (name: string) => {
      const topicId = topicIdOf(name)
      return topicId !== undefined && topicId !== (this.#topicIds.get(name) ?? topicId)
    }
    const isReplaced = (name: string) =>
      this.#directories.some((other) => other !== directory && other.logs.get(name)?.topicId === topicIdOf(name))
    const settled = [...directory.logs.keys(), ...directory.faults.keys()].map((name) =>
      this.#inTurn(name, async () => {
        if (isOfDeleted(name)) await directory.delete(name, 0)
        else if (directory.logs.has(name) && isReplaced(name)) await directory.supersede(name)
      }),
    )
    await Promise.all(settled)
  }

  async #onEachOnline(work: (directory: LogDirectory) => Promise<void>): Promise<void> {
    for (const directory of this.#directories) if (directory.isOnline) await work(directory)
  }

  /** Runs `work` again and again, each time `intervalMs`, as it is then, after it was done. A disk's fault was told where it came up. */
  #every(
    intervalMs: number | (() => number),
    delayMs: number,
    work: () => Promise<void>,
    timers = this.#environment.platform.timers,
  ): void {
    const timer = timers.set(Math.min(delayMs, 2 ** 31 - 1), () => {
      this.#timers.delete(timer)
      work()
        .catch((error: unknown) => this.#environment.logger.warn({ error }, 'periodic task of the logs failed'))
        .finally(() => {
          const nextMs = typeof intervalMs === 'number' ? intervalMs : intervalMs()
          if (!this.#isClosed) this.#every(intervalMs, nextMs, work, timers)
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

function checkOwner({ path, meta }: Claim, clusterId: string, nodeId: number): void {
  if (meta === undefined) return
  if (meta.clusterId !== clusterId) throw new ClusterIdMismatchError('cluster.id', path, meta.clusterId, clusterId)
  if (meta.nodeId !== nodeId) throw new ClusterIdMismatchError('node.id', path, String(meta.nodeId), String(nodeId))
}

/**
 * What the directory has under the name, a log or a damaged folder, may be of the topic. Not one that nothing tells the
 * topic of, where the partition came after the start: of that one, the directory knows.
 */
function mayHold({ logs, faults }: LogDirectory, name: string, { topicId, isNew }: LogSpec): boolean {
  const found = logs.get(name) ?? faults.get(name)
  if (found === undefined) return false
  return found.topicId === undefined ? isNew !== true : found.topicId === topicId
}

function missingLog(name: string, paths: readonly string[]): StorageError {
  const [where, them] =
    paths.length === 1
      ? ['a log directory that cannot be opened', 'that directory']
      : ['one of the log directories that cannot be opened', 'those directories']
  const message =
    `Partition ${name} may be in ${where}, ${paths.join(', ')}: it is offline until the node starts with ${them}, ` +
    `or starts empty when ${paths.length === 1 ? 'that is' : 'those are'} taken out of log.dirs`
  return new StorageError(message, paths[0]!)
}

function noDirectory(): StorageError {
  return new StorageError('No log directory is online', '')
}
