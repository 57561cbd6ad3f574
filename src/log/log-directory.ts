import { basename, dirname, join } from 'node:path'
import { type BrokerEpoch, type Offset, partitionName, type TopicPartition, type Uuid } from '../base/index.ts'
import type { TopicConfig } from '../config/index.ts'
import { type DirectoryLock, FileError, type Files, hasRoomFor, isOutOfFiles, replaceFile } from '../platform/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { forEachBounded } from './bounded.ts'
import {
  cleanerFile,
  highWatermarkFile,
  logStartFile,
  moveFile,
  readOffsets,
  readPartitionMetadata,
  recoveryPointFile,
  writeOffsets,
} from './checkpoint-files.ts'
import { Coalesced } from './coalesced.ts'
import type { LogEnvironment, LogHost } from './environment.ts'
import { StorageError, storageErrorOf } from './errors.ts'
import { type LoadedLog, LocalLog, type MoveTarget } from './local-log.ts'
import { type MetaProperties, readMetaProperties } from './meta-properties.ts'
import { MoveNotes } from './move-notes.ts'
import { loadPartition } from './partition-loader.ts'
import { ProducerState } from './producer-state.ts'
import { Removals } from './removals.ts'

/** Kafka's name; its content says nothing that is needed here. */
const cleanShutdownFile = '.kafka_cleanshutdown'
/** What must fit before a full disk counts as having room again: a few batches and the files of a roll. */
const neededBytes = 4 * 1024 * 1024
/** Partitions that are loaded or closed at a time: as many as keep the thread pool busy. */
const maxConcurrentLogs = 8

/** What is known of a partition before it is loaded. */
interface LoadHint {
  readonly recoveryPoint: Offset
  readonly logStartOffset: Offset
  readonly highWatermark: Offset
  readonly cleanedOffset: Offset
  readonly config: TopicConfig
  /** Of the log that was there, if one was. */
  readonly topicId?: Uuid | undefined
}

/** A partition whose folder is damaged, or may be outdated. */
interface FaultyPartition {
  readonly error: StorageError
  /** Undefined where nothing says it. */
  readonly topicId: Uuid | undefined
  /** It must outlive this run. */
  readonly recoveryPoint: Offset
}

export interface LogDirectoryEvents {
  onOffline(directory: LogDirectory, error: StorageError): void
}

/**
 * One log directory: its lock, whose it is, its partitions' logs and their checkpoints.
 *
 * States: online; offline after the first failed write or sync, with every log in it; where that was for want of room its logs can be
 * read. `reopen` brings it back, with new logs in place of the old ones.
 *
 *     meta.properties                       whose folder this is
 *     .lock                                 held while the node runs
 *     .kafka_cleanshutdown                  only while no node runs, and after a clean shutdown
 *     recovery-point-offset-checkpoint      below it everything was synced
 *     log-start-offset-checkpoint           where it isn't 0
 *     replication-offset-checkpoint         high watermarks
 *     cleaner-offset-checkpoint             where the last compaction ended, for compacted topics
 *     log-move-checkpoint                   which partitions move from here, and to here, and have moved from here
 *     <topic>-<partition>/                  a partition
 *     <topic>-<partition>.<id>-future/      a copy, of a partition that moves here from another directory
 *     <topic>-<partition>.<uuid>-delete/    deleted, to be removed
 */
export class LogDirectory implements LogHost {
  readonly path: string
  readonly directoryId: Uuid
  readonly #environment: LogEnvironment
  readonly #logger: Logger
  readonly #events: LogDirectoryEvents
  readonly #lock: DirectoryLock
  readonly #defaultConfig: TopicConfig
  /** By partition name. Offline ones stay until the directory is reopened. */
  readonly logs = new Map<string, LocalLog>()
  /** Copies of partitions that move here, by partition name. */
  readonly copies = new Map<string, LocalLog>()
  readonly moves = new MoveNotes()
  /** Partitions whose folder is damaged, or may be outdated; none of them is in `logs`. */
  readonly faults = new Map<string, FaultyPartition>()
  /** Logs that may be outdated: used by nobody, and the checkpoints still speak of them. */
  readonly #withheld = new Map<string, LocalLog>()
  #reopening: ReadonlySet<string> = new Set()
  readonly #recoveryPoints: Coalesced
  readonly #logStarts: Coalesced
  readonly #highWatermarks: Coalesced
  readonly #cleanedOffsets: Coalesced
  readonly #storedMoves: Coalesced
  /** Makes durable that folders were renamed and no checkpoint speaks of them: once for many that are deleted together. */
  readonly #deletions: Coalesced
  readonly #removals: Removals
  #error: StorageError | undefined
  #syncFailed = false
  #savedRecoverySum = 0
  #savedWatermarkSum = 0

  constructor(options: {
    readonly environment: LogEnvironment
    readonly events: LogDirectoryEvents
    readonly path: string
    readonly directoryId: Uuid
    readonly lock: DirectoryLock
    /** For partitions that are found. */
    readonly defaultConfig: TopicConfig
  }) {
    this.#defaultConfig = options.defaultConfig
    this.#environment = options.environment
    this.#events = options.events
    this.path = options.path
    this.directoryId = options.directoryId
    this.#lock = options.lock
    this.#logger = options.environment.logger.child({ directory: options.path })
    this.#recoveryPoints = this.#offsets(recoveryPointFile, () => this.#collectRecoveryPoints())
    // Also where it is the first segment's offset: renames of the segments before it may not be durable yet.
    this.#logStarts = this.#offsets(logStartFile, () =>
      this.#collect((log) => (log.logStartToStore > 0 ? log.logStartToStore : -1)),
    )
    this.#highWatermarks = this.#offsets(highWatermarkFile, () => this.#collect((log) => log.highWatermark))
    this.#cleanedOffsets = this.#offsets(cleanerFile, () => this.#collect((log) => log.cleanedOffset))
    this.#storedMoves = this.#checkpoint(moveFile, (files) => this.moves.write(files, this.path))
    this.#deletions = new Coalesced(async () => {
      await options.environment.platform.files.syncDirectory(this.path)
      await Promise.all([this.#recoveryPoints.run(), this.#logStarts.run(), this.#highWatermarks.run()])
    })
    this.#removals = new Removals(options.environment.platform, this.#logger)
  }

  /** Why it is offline; undefined when it isn't. */
  get error(): StorageError | undefined {
    return this.#error
  }

  get isOnline(): boolean {
    return this.#error === undefined
  }

  get partitionCount(): number {
    return this.logs.size + this.faults.size
  }

  get sizeBytes(): number {
    let total = 0
    for (const log of this.logs.values()) total += log.sizeBytes
    return total
  }

  /** Of the run before, if it was stopped in order and said which it was; null otherwise. */
  cleanBrokerEpoch: BrokerEpoch | null = null

  /** Loads every partition in the folder. A damaged one is left out and told; an unreadable disk throws. */
  async load(): Promise<void> {
    const { files } = this.#environment.platform
    const marker = join(this.path, cleanShutdownFile)
    const markerText = await files.readFile(marker, 64 * 1024)
    const isClean = markerText !== undefined
    this.cleanBrokerEpoch = brokerEpochOf(markerText)
    const [recoveryPoints, logStarts, highWatermarks, cleanedOffsets] = await Promise.all([
      readOffsets(files, this.path, recoveryPointFile),
      readOffsets(files, this.path, logStartFile),
      readOffsets(files, this.path, highWatermarkFile),
      readOffsets(files, this.path, cleanerFile),
      this.moves.read(files, this.path),
    ])
    await this.#loadAll(isClean, (name) => ({
      recoveryPoint: recoveryPoints.get(name) ?? 0,
      logStartOffset: logStarts.get(name) ?? -1,
      highWatermark: highWatermarks.get(name) ?? -1,
      cleanedOffset: cleanedOffsets.get(name) ?? -1,
      config: this.#defaultConfig,
    }))
    if (isClean) {
      await files.remove(marker)
      await files.syncDirectory(this.path)
    }
    // A line of a partition that is gone would be believed of a later one of the same name.
    const isKnown = (name: string) => this.logs.has(name) || this.faults.has(name) || this.copies.has(name)
    if (![...recoveryPoints.keys()].every(isKnown)) await this.saveRecoveryPoints()
    if (![...logStarts.keys()].every(isKnown)) await this.saveLogStarts()
    if (![...highWatermarks.keys()].every(isKnown)) await this.saveHighWatermarks()
    if (![...cleanedOffsets.keys()].every(isKnown)) await this.saveCleanedOffsets()
    if (this.logs.size > 0) this.#logger.info({ partitions: this.logs.size, clean: isClean }, 'logs loaded')
  }

  async #loadAll(isClean: boolean, hintFor: (name: string) => LoadHint): Promise<void> {
    const { files } = this.#environment.platform
    const names: string[] = []
    /** Folders by the partition of which they hold a copy: one each. */
    const copies = new Map<string, string>()
    for (const { name, kind } of (await files.list(this.path)) ?? []) {
      if (kind !== 'directory') continue
      const copied = copiedPartition(name)
      if (name.endsWith('-delete')) await files.removeTree(join(this.path, name))
      else if (parsePartitionName(name) !== undefined) names.push(name)
      else if (copied !== undefined && !copies.has(copied)) copies.set(copied, name)
      else if (copied !== undefined) await files.removeTree(join(this.path, name))
    }
    await forEachBounded(copies, maxConcurrentLogs, async ([name, folder]) => {
      await this.#loadCopy(name, folder, isClean && !names.includes(name), names.includes(name), hintFor(name))
    })
    await forEachBounded(names, maxConcurrentLogs, async (name) => {
      const hint = hintFor(name)
      try {
        await this.#loadOne(name, isClean, hint)
      } catch (error) {
        // What was read is wrong: this partition's trouble. What could not be read is the whole directory's.
        if (!(error instanceof StorageError) || error.cause !== undefined) throw storageErrorOf(error, this.path)
        const topicId = (await this.#topicIdOf(name)) ?? hint.topicId
        this.faults.set(name, { error, topicId, recoveryPoint: hint.recoveryPoint })
        this.#logger.error({ partition: name, error }, 'partition is damaged')
      }
    })
    // Folders of partitions that a killed process had made, and not yet synced.
    if (!isClean) await files.syncDirectory(this.path)
  }

  /** What can't be gone on with is removed: the partition itself has it all. */
  async #loadCopy(name: string, folder: string, isClean: boolean, isOutdated: boolean, hint: LoadHint): Promise<void> {
    const { files } = this.#environment.platform
    const directory = join(this.path, folder)
    try {
      const topicId = isOutdated ? undefined : await readPartitionMetadata(files, directory)
      if (topicId === undefined) return await files.removeTree(directory)
      const loaded = await loadPartition({ ...hint, environment: this.#environment, directory, isClean })
      this.copies.set(name, this.#logOf(name, topicId, loaded, hint.config, hint.cleanedOffset, directory))
    } catch (error) {
      if (!(error instanceof StorageError) || error.cause !== undefined) throw storageErrorOf(error, this.path)
      this.#logger.warn({ partition: name, error }, 'unfinished copy of a partition is damaged, and removed')
      await files.removeTree(directory)
    }
  }

  async #loadOne(name: string, isClean: boolean, hint: LoadHint): Promise<void> {
    const { files } = this.#environment.platform
    const directory = join(this.path, name)
    const topicId = await readPartitionMetadata(files, directory)
    if (topicId === undefined) {
      const entries = (await files.list(directory)) ?? []
      if (entries.some((entry) => entry.name.endsWith('.log')) && (isClean || hint.recoveryPoint > 0)) {
        throw new StorageError(`Folder ${directory} has a log but no partition.metadata`, directory)
      }
      // Half-made: its first flush never came, so nothing in it was acknowledged.
      await files.removeTree(directory)
      return
    }
    const loaded = await loadPartition({ ...hint, environment: this.#environment, directory, isClean })
    this.#add(name, topicId, loaded, hint.config, hint.cleanedOffset)
  }

  /** Of a partition that is damaged, as far as its folder says. */
  async #topicIdOf(name: string): Promise<Uuid | undefined> {
    try {
      return await readPartitionMetadata(this.#environment.platform.files, join(this.path, name))
    } catch (error) {
      if (error instanceof StorageError) return undefined
      throw storageErrorOf(error, this.path)
    }
  }

  #add(name: string, topicId: Uuid, loaded: LoadedLog, config: TopicConfig, cleanedOffset = -1): LocalLog {
    const log = this.#logOf(name, topicId, loaded, config, cleanedOffset)
    this.logs.set(name, log)
    return log
  }

  /** `copyDirectory`: of a copy; the partition's own folder when left out. */
  #logOf(
    name: string,
    topicId: Uuid,
    loaded: LoadedLog,
    config: TopicConfig,
    cleanedOffset: Offset,
    copyDirectory?: string,
  ): LocalLog {
    const { topic, partition } = parsePartitionName(name)!
    const isCopy = copyDirectory !== undefined
    return new LocalLog({
      environment: this.#environment,
      host: this,
      topic,
      topicId,
      partition,
      directory: copyDirectory ?? join(this.path, name),
      config: isCopy ? configOfCopy(config) : config,
      loaded,
      cleanedOffset,
      isCopy,
    })
  }

  /** A new partition: nothing on disk, until its first append. */
  create(topic: string, topicId: Uuid, partition: number, config: TopicConfig): LocalLog {
    return this.#add(partitionName(topic, partition), topicId, emptyLog(), config)
  }

  /** An empty copy of a partition in another directory. Nothing on disk, until something is copied. */
  createCopy(original: LocalLog): LocalLog {
    const { topicId, config, cleanedOffset } = original
    const name = partitionName(original.topic, original.partition)
    const id = this.#environment.platform.random.bytes(16).toString('hex')
    const directory = join(this.path, copyFolder(name, id))
    const copy = this.#logOf(name, topicId, emptyLog(), config, cleanedOffset, directory)
    this.copies.set(name, copy)
    return copy
  }

  /** A partition of here moves into `copy`: that one, and none of before, is gone on with at a start. Durable when it resolves. */
  async noteMove(name: string, copy: LocalLog): Promise<void> {
    this.moves.moves(name, copyId(copy))
    await this.saveMoves()
  }

  /** Makes durable what `moves` holds. */
  async saveMoves(): Promise<void> {
    if (!this.moves.isStored) await this.#storedMoves.run()
  }

  /** Whether `copy` was noted. */
  movesInto(name: string, copy: LocalLog): boolean {
    return this.moves.departureOf(name)?.copy === copyId(copy)
  }

  /** Takes a log out of use that may be outdated. */
  withhold(name: string, error: StorageError): void {
    const log = this.logs.get(name)!
    this.#withheld.set(name, log)
    this.logs.delete(name)
    this.faults.set(name, { error, topicId: log.topicId, recoveryPoint: log.recoveryPoint })
    this.#logger.error({ partition: name, error }, 'log of a partition may be outdated')
  }

  /** Takes a copy out of use. Durable when it resolves. */
  async discardCopy(name: string): Promise<void> {
    const copy = this.copies.get(name)
    if (copy === undefined) return
    const wasOnDisk = copy.hasFiles
    this.copies.delete(name)
    await copy.abandon()
    if (this.#error !== undefined) return
    const { files } = this.#environment.platform
    try {
      if (!wasOnDisk) return copy.hasFolder ? await files.removeTree(copy.directory) : undefined
      await this.#removeFolder(copy.directory, name, 0)
      if (copy.cleanedOffset >= 0) await this.#cleanedOffsets.run()
    } catch (error) {
      const failure = storageErrorOf(error, copy.directory)
      this.fail(failure)
      throw failure
    }
  }

  /** Where `copy`, which is this directory's, goes on as the partition, in place of the log that `from` has. */
  moveOf(copy: LocalLog, from: LogDirectory): MoveTarget {
    const name = partitionName(copy.topic, copy.partition)
    const deletedFolder = from.#deletedFolder(name)
    const id = copyId(copy)
    return {
      host: this,
      folder: join(this.path, name),
      copyFolder: copy.directory,
      deletedFolder,
      onSwitched: () => {
        this.copies.delete(name)
        this.logs.set(name, from.logs.get(name)!)
        from.logs.delete(name)
        this.moves.forget(name)
      },
      prepare: async () => {
        from.moves.switches(name, id, this.directoryId)
        await from.saveMoves()
      },
      noteArrival: async () => {
        // Where it was before it went to `from`: that is over.
        if (this.moves.departureOf(name) !== undefined) this.moves.hasMoved(name)
        this.moves.arrives(name, id, from.directoryId)
        await this.saveMoves()
      },
      takeBack: async () => {
        this.moves.hasArrived(name)
        from.moves.moves(name, id)
        await from.saveMoves()
      },
      confirm: () => from.#forgetMoved(deletedFolder),
    }
  }

  /** The folder of a partition that is in another directory now. A fault is this directory's. */
  async #forgetMoved(deletedFolder: string): Promise<void> {
    const { files } = this.#environment.platform
    try {
      await files.syncDirectory(this.path)
    } catch (error) {
      this.fail(storageErrorOf(error, this.path))
      return
    }
    this.#removals.add(0, () => files.removeTree(deletedFolder))
  }

  /** Checkpoints speak no more of partitions that were here. Throws when this directory fails. */
  async saveCheckpoints(): Promise<void> {
    await Promise.all([
      this.#recoveryPoints.run(),
      this.#logStarts.run(),
      this.#highWatermarks.run(),
      this.#cleanedOffsets.run(),
      this.saveMoves(),
    ])
  }

  /** Whether there is something under the name of a partition that isn't here. */
  async isNameTaken(name: string): Promise<boolean> {
    return (await this.#environment.platform.files.stat(join(this.path, name))) !== undefined
  }

  #deletedFolder(name: string): string {
    const suffix = `.${this.#environment.platform.random.uuid()}-delete`
    return join(this.path, `${name.slice(0, 255 - suffix.length)}${suffix}`)
  }

  /** Renames a folder, durably, and removes it after `delayMs`. */
  async #removeFolder(directory: string, name: string, delayMs: number): Promise<void> {
    const { files } = this.#environment.platform
    const renamed = this.#deletedFolder(name)
    await files.rename(directory, renamed)
    await this.#deletions.run()
    this.#removals.add(delayMs, () => files.removeTree(renamed))
  }

  /** `delete`, of a log in whose place there is one in another directory. */
  async supersede(name: string): Promise<void> {
    if (this.moves.departureOf(name) === undefined) await this.noteElsewhere(name)
    await this.#delete(name, 0)
    this.moves.hasArrived(name)
    await this.noteElsewhere(name)
  }

  /** The partition is in another directory, whatever the metadata says. Durable when it resolves. */
  async noteElsewhere(name: string): Promise<void> {
    this.moves.hasMoved(name)
    await this.saveMoves()
  }

  /** Takes a partition out of use; its folder is removed after `delayMs`. Durable when it resolves. */
  async delete(name: string, delayMs: number): Promise<void> {
    await this.#delete(name, delayMs)
    this.moves.forget(name)
    await this.saveMoves()
  }

  async #delete(name: string, delayMs: number): Promise<void> {
    const { files } = this.#environment.platform
    const log = this.logs.get(name) ?? this.#withheld.get(name)
    const wasOnDisk = this.faults.has(name) || log?.hasFiles === true
    this.logs.delete(name)
    this.faults.delete(name)
    this.#withheld.delete(name)
    await log?.abandon()
    const directory = join(this.path, name)
    try {
      if (wasOnDisk) await this.#removeFolder(directory, name, delayMs)
      else if (log?.hasFolder !== false) await files.removeTree(directory)
      if (!wasOnDisk) return
      if (log === undefined || log.cleanedOffset >= 0) await this.#cleanedOffsets.run()
    } catch (error) {
      const failure = storageErrorOf(error, directory)
      this.fail(failure)
      throw failure
    }
  }

  removeLater(paths: readonly string[], delayMs: number): void {
    const { files } = this.#environment.platform
    for (const path of paths) this.#removals.add(delayMs, () => files.remove(path))
  }

  fail(error: StorageError): void {
    this.#noteFault(error)
    if (this.#error !== undefined) return
    this.#error = error
    this.#logger.error({ error, partitions: this.logs.size }, 'log directory is offline')
    for (const log of this.#all()) log.goOffline(error)
    this.#events.onOffline(this, error)
  }

  saveRecoveryPoints(): Promise<void> {
    return this.#recoveryPoints.run()
  }

  saveLogStarts(): Promise<void> {
    return this.#logStarts.run()
  }

  saveCleanedOffsets(): Promise<void> {
    return this.#cleanedOffsets.run()
  }

  saveHighWatermarks(): Promise<void> {
    return this.#highWatermarks.run()
  }

  /** For timers: an idle node writes nothing. */
  async saveChangedRecoveryPoints(): Promise<void> {
    const sum = this.#sum((log) => log.recoveryPoint)
    if (sum === this.#savedRecoverySum) return
    await this.saveRecoveryPoints()
    this.#savedRecoverySum = sum
  }

  /** For timers: an idle node writes nothing. */
  async saveChangedHighWatermarks(): Promise<void> {
    const sum = this.#sum((log) => log.highWatermark)
    if (sum === this.#savedWatermarkSum) return
    await this.saveHighWatermarks()
    this.#savedWatermarkSum = sum
  }

  /** Offsets that only move up differ in their sum when one differs; where one moves down, a checkpoint is saved anyway. */
  #sum(offsetOf: (log: LocalLog) => Offset): number {
    let sum = 0
    for (const log of this.#all()) if (log.hasFiles) sum += offsetOf(log)
    return sum
  }

  *#all(): Iterable<LocalLog> {
    yield* this.logs.values()
    yield* this.copies.values()
    yield* this.#withheld.values()
  }

  #offsets(file: string, collect: () => ReadonlyMap<string, Offset>): Coalesced {
    return this.#checkpoint(file, (files) => writeOffsets(files, this.path, file, collect()))
  }

  #checkpoint(file: string, write: (files: Files) => Promise<void>): Coalesced {
    return new Coalesced(async () => {
      if (this.#error !== undefined) throw this.#error
      try {
        await write(this.#environment.platform.files)
      } catch (error) {
        const failure = storageErrorOf(error, join(this.path, file))
        this.fail(failure)
        throw failure
      }
    })
  }

  #collectRecoveryPoints(): Map<string, Offset> {
    const points = this.#collect((log) => log.recoveryPoint)
    for (const [name, { recoveryPoint }] of this.faults) points.set(name, recoveryPoint)
    return points
  }

  /** Of logs that are on disk; -1 is left out. */
  #collect(offsetOf: (log: LocalLog) => Offset): Map<string, Offset> {
    const offsets = new Map<string, Offset>()
    for (const log of this.#all()) {
      const offset = log.hasFiles ? offsetOf(log) : -1
      if (offset >= 0) offsets.set(partitionName(log.topic, log.partition), offset)
    }
    return offsets
  }

  /** Whether there is room again on a disk that was full, and files can be opened. */
  hasRoom(): Promise<boolean> {
    return hasRoomFor(this.#environment.platform.files, this.path, neededBytes)
  }

  /**
   * It went offline because a write found no room, or a file could not be opened. After a failed sync, whatever the reason, the system may show what never
   * reached the disk: that takes a restart.
   */
  get canReopen(): boolean {
    return (
      (this.#error?.isDiskFull === true || this.#error?.isOutOfFiles === true) &&
      !this.#syncFailed &&
      ![...this.#all()].some((log) => log.syncFailed)
    )
  }

  #noteFault({ cause }: StorageError): void {
    if (cause instanceof FileError && cause.operation === 'sync' && !isOutOfFiles(cause)) this.#syncFailed = true
  }

  /** Removes the copies: they may be what filled the disk, and what they are made of is there. */
  async dropCopies(): Promise<void> {
    const { files } = this.#environment.platform
    for (const copy of this.copies.values()) await copy.abandon()
    this.copies.clear()
    for (const { name } of (await files.list(this.path)) ?? []) {
      if (copiedPartition(name) !== undefined) await files.removeTree(join(this.path, name))
    }
  }

  /** It is being opened anew, and has not come to the partition yet: whether that is here isn't seen from `logs` and `faults`. */
  isReopening(name: string): boolean {
    return this.#reopening.has(name)
  }

  /** Opens every log anew, as after a crash at this moment. Throws when the disk fails again. */
  async reopen(): Promise<void> {
    this.#reopening = new Set([...this.logs.keys(), ...this.faults.keys()])
    try {
      await this.#reopen()
    } catch (error) {
      this.#noteFault(storageErrorOf(error, this.path))
      throw error
    } finally {
      this.#reopening = new Set()
    }
  }

  async #reopen(): Promise<void> {
    const before = new Map(this.logs)
    const faultsBefore = new Map(this.faults)
    for (const log of [...before.values(), ...this.#withheld.values()]) await log.abandon()
    this.logs.clear()
    this.faults.clear()
    try {
      await this.#loadAll(false, (name) => {
        const log = before.get(name) ?? this.#withheld.get(name)
        const fault = faultsBefore.get(name)
        return {
          topicId: log?.topicId ?? fault?.topicId,
          recoveryPoint: log?.recoveryPoint ?? fault?.recoveryPoint ?? 0,
          logStartOffset: log?.logStartOffset ?? -1,
          highWatermark: log?.highWatermark ?? -1,
          cleanedOffset: log?.cleanedOffset ?? -1,
          config: log?.config ?? this.#defaultConfig,
        }
      })
      for (const name of this.logs.keys()) {
        if (this.#withheld.has(name)) continue
        if (before.has(name) || faultsBefore.has(name)) this.moves.settle(name)
        else this.moves.hasMoved(name) // of a copy that was not switched to
      }
      const { files } = this.#environment.platform
      if (!this.moves.isStored) await this.moves.write(files, this.path)
    } catch (error) {
      for (const log of this.logs.values()) await log.abandon()
      this.logs.clear()
      for (const [name, log] of before) this.logs.set(name, log)
      this.faults.clear()
      for (const [name, fault] of faultsBefore) this.faults.set(name, fault)
      throw error
    }
    for (const name of [...this.#withheld.keys()]) {
      if (this.logs.has(name)) this.withhold(name, faultsBefore.get(name)!.error)
    }
    for (const [name, log] of before) {
      if (this.logs.has(name) || this.faults.has(name)) continue
      this.#add(name, log.topicId, emptyLog(), log.config)
    }
    this.#error = undefined
    this.#logger.info({ partitions: this.logs.size }, 'log directory is online again')
  }

  /** Clean shutdown, of the run that has the epoch: the next start trusts what it finds. Gives the lock back in any case. */
  async close(brokerEpoch: BrokerEpoch | null): Promise<void> {
    const { files } = this.#environment.platform
    this.#removals.cancel()
    // A damaged partition, and a log that a bug stopped, must be looked at by the next start.
    const isSound = this.faults.size === 0 && [...this.#all()].every((log) => log.isOnline)
    try {
      await forEachBounded(this.#all(), maxConcurrentLogs, (log) => log.close())
      if (this.#error === undefined) {
        await Promise.all([this.saveRecoveryPoints(), this.saveLogStarts(), this.saveHighWatermarks()])
        const marker = Buffer.from(JSON.stringify({ version: 0, brokerEpoch: brokerEpoch ?? -1 }))
        if (isSound) await replaceFile(files, this.path, cleanShutdownFile, marker)
      }
    } catch (error) {
      this.#logger.error({ error }, 'log directory was not shut down cleanly')
    }
    for (const log of this.#all()) await log.abandon()
    await this.#lock.release()
  }
}

/** Kafka's markers of before KIP-966 are empty. */
function brokerEpochOf(marker: Buffer | undefined): BrokerEpoch | null {
  const epoch = Number(/"brokerEpoch"\s*:\s*(\d+)/.exec(marker?.toString('utf8') ?? '')?.[1] ?? -1)
  return Number.isSafeInteger(epoch) && epoch >= 0 ? (epoch as BrokerEpoch) : null
}

function emptyLog(): LoadedLog {
  return {
    segments: [],
    logStartOffset: 0,
    epochs: [],
    producers: new ProducerState(),
    snapshotOffset: -1,
    highWatermark: -1,
  }
}

/** Kafka's name of a copy's folder: `orders-0.<32 hex digits>-future`. */
function copyFolder(name: string, id: string): string {
  return `${name}.${id}-future`
}

/** What tells a copy from any other, also of the same partition. */
function copyId({ directory }: LocalLog): string {
  return /\.([^.]+)-future$/.exec(basename(directory))?.[1] ?? ''
}

/** The partition of which a folder holds a copy; undefined for any other folder. */
function copiedPartition(folder: string): string | undefined {
  const name = /^(.+)\.[^.]+-future$/.exec(folder)?.[1]
  return name === undefined || parsePartitionName(name) === undefined ? undefined : name
}

/** A folder can't have a longer name. */
const maxFolderName = 255

/** Whether a copy of the partition can have a folder. */
export function canHaveCopy(name: string): boolean {
  return copyFolder(name, '0'.repeat(32)).length <= maxFolderName
}

/** A copy is synced where it is asked to be: nobody waits for what it appends. */
export function configOfCopy(config: TopicConfig): TopicConfig {
  return { ...config, flushMessages: Number.POSITIVE_INFINITY, flushMs: Number.POSITIVE_INFINITY }
}

/** Undefined for a folder that is no partition's. The metadata log is not of this part. */
export function parsePartitionName(name: string): TopicPartition | undefined {
  const match = /^([a-zA-Z0-9._-]{1,249})-(\d{1,10})$/.exec(name)
  if (match === null || match[1] === '__cluster_metadata') return undefined
  return { topic: match[1]!, partition: Number(match[2]) }
}

/** Locks a folder, making it when it is missing, and reads whose it is. */
export async function claimDirectory(
  environment: LogEnvironment,
  path: string,
): Promise<{ readonly lock: DirectoryLock; readonly meta: MetaProperties | undefined }> {
  const { files } = environment.platform
  // The names that lead to a new folder must outlive a power loss as well as what it holds.
  const toSync = [dirname(path)]
  while ((await files.stat(toSync.at(-1)!)) === undefined) toSync.push(dirname(toSync.at(-1)!))
  await files.makeDirectory(path)
  const lock = await files.lockDirectory(path)
  try {
    const meta = await readMetaProperties(files, path)
    if (meta === undefined) for (const parent of toSync) await files.syncDirectory(parent)
    return { lock, meta }
  } catch (error) {
    await lock.release()
    throw error
  }
}
