import { partitionName, type Uuid } from '../base/index.ts'
import { CleanerPace } from './cleaner-pace.ts'
import type { LogEnvironment } from './environment.ts'
import type { LocalLog } from './local-log.ts'
import type { LogDirectory } from './log-directory.ts'
import type { PartitionCopy } from './log-manager.ts'
import { LogMove, type MoveOutcome } from './log-move.ts'
import { settleLogs } from './move-settlement.ts'
import { Mutex } from './mutex.ts'

/**
 * 'moving': it was begun, or goes on. 'there': it is in that directory, and stays. 'not-here': there is no such partition on this
 * broker, or not yet. 'partition-offline': it can't be read.
 */
export type MoveAnswer =
  | 'moving'
  | 'there'
  | 'not-here'
  | 'directory-not-found'
  | 'directory-offline'
  | 'partition-offline'
  | 'name-too-long'

/**
 * Which logs of a node move from one of its directories to another, and what a start finds of that.
 *
 * The directory of a log that moves notes which copy it moves into, and forgets it when the log is deleted or is to be elsewhere:
 * that the copy's own directory has failed by then, and comes back with it later, changes nothing. A start goes on with what is
 * noted, and with nothing else.
 *
 * Each of these is durable before the next: the log's directory notes the copy; all is copied; the copy's directory notes whence it
 * comes; the log's notes that the copy may be in its place, and where; the copy gets the partition's name; the log's folder loses it;
 * the log goes on in the copy; the copy's directory forgets, and then the log's notes that it has moved. When the switch
 * fails the log's directory takes its note back before the log goes on. So a start that sees one of the two directories knows whether
 * the other one may have what was told durable since.
 */
export class LogMoves {
  readonly #environment: LogEnvironment
  readonly #directories: readonly LogDirectory[]
  readonly #inTurn: (name: string, work: () => Promise<void>) => Promise<void>
  readonly #onMoved: (log: LocalLog, directoryId: Uuid) => void
  readonly #pace: CleanerPace
  readonly #turns = new Mutex()
  /** By partition name. */
  readonly #moves = new Map<string, LogMove>()

  /**
   * `directories`: those that could be opened, also later on. `inTurn`: changes of one partition come one after the other; of
   * what is called here, `ask`, `resume` and `end` are such changes.
   */
  constructor(options: {
    readonly environment: LogEnvironment
    readonly directories: readonly LogDirectory[]
    readonly maxBytesPerSecond: number
    readonly inTurn: (name: string, work: () => Promise<void>) => Promise<void>
    readonly onMoved: (log: LocalLog, directoryId: Uuid) => void
  }) {
    const { clock, timers } = options.environment.platform
    this.#environment = options.environment
    this.#directories = options.directories
    this.#inTurn = options.inTurn
    this.#onMoved = options.onMoved
    this.#pace = new CleanerPace({ clock, timers, maxBytesPerSecond: options.maxBytesPerSecond })
  }

  set maxBytesPerSecond(bytes: number) {
    this.#pace.maxBytesPerSecond = bytes
  }

  /**
   * At the start: of each partition one log is left, the right one, or none that can be used where that is in doubt; see
   * `settleLogs`. A copy that no log of here moves into goes. `knowsAll`: no directory is missing, in which the partition of a copy might be.
   */
  async settle(knowsAll: boolean): Promise<void> {
    await settleLogs({ directories: this.#directories, knowsAll, logger: this.#environment.logger })
    for (const directory of this.#directories) {
      for (const [name, copy] of [...directory.copies]) {
        const isNoted = this.#directories.some((holder) => {
          const isThere = holder.faults.has(name) || holder.logs.get(name)?.topicId === copy.topicId
          return isThere && holder.movesInto(name, copy)
        })
        const isUnknown = !knowsAll && !this.#directories.some(({ logs, faults }) => logs.has(name) || faults.has(name))
        const isOnlyOne = this.#directories.find(({ copies }) => copies.has(name)) === directory
        if ((isNoted || isUnknown) && isOnlyOne) continue
        this.#environment.logger.info({ partition: name, directory: directory.path }, 'copy of a partition discarded')
        await directory.discardCopy(name).catch(() => {}) // the directory has told
      }
    }
  }

  /** There is a copy: the partition is somewhere. */
  isCopied(name: string): boolean {
    return this.#directories.some(({ copies }) => copies.has(name))
  }

  copies(): readonly LocalLog[] {
    return this.#directories.flatMap(({ copies }) => [...copies.values()])
  }

  copiesIn({ copies }: LogDirectory): readonly PartitionCopy[] {
    return [...copies].map(([name, { topic, partition, sizeBytes, logEndOffset }]) => {
      const log = this.#directories.find(({ logs }) => logs.has(name))?.logs.get(name)
      return { topic, partition, sizeBytes, offsetLag: Math.max(0, (log?.logEndOffset ?? 0) - logEndOffset) }
    })
  }

  /** `log`, of `source`, is to be in `target`. */
  async ask(log: LocalLog, source: LogDirectory, target: LogDirectory): Promise<'moving' | 'there'> {
    const name = nameOf(log)
    const move = this.#moves.get(name)
    if (move?.target === target) return 'moving'
    if (move !== undefined || this.isCopied(name) || source.moves.departureOf(name) !== undefined) {
      await this.end(name)
      // It was at the switch, or past it, when it was to be ended.
      const holder = this.#directories.find(({ logs }) => logs.get(name) === log)
      if (holder !== undefined && holder !== source) return await this.ask(log, holder, target)
    }
    if (source === target) return 'there'
    this.#begin(log, source, target, target.createCopy(log))
    return 'moving'
  }

  /** Goes on with what an earlier run, or an earlier life of the directory, had begun. */
  async resume(log: LocalLog, source: LogDirectory): Promise<void> {
    const name = nameOf(log)
    const move = this.#moves.get(name)
    if (move?.isOf(log)) return
    await move?.stop()
    const target = this.#directories.find(({ copies, isOnline }) => isOnline && copies.has(name))
    const copy = target?.copies.get(name)
    if (target === undefined || copy === undefined || !log.isOnline) return
    if (!source.movesInto(name, copy)) return await target.discardCopy(name) // of a log that was here before this one
    if (log.cleanedOffset >= 0 || log.config.cleanupPolicy.compact) {
      // Compacted since, or nobody knows: it may lack what deletes a key of which the copy has a record.
      await target.discardCopy(name)
      this.#begin(log, source, target, target.createCopy(log))
    } else {
      copy.updateConfig(log.config)
      this.#begin(log, source, target, copy)
    }
  }

  #begin(log: LocalLog, source: LogDirectory, target: LogDirectory, copy: LocalLog): void {
    const name = nameOf(log)
    const { logger, probe } = this.#environment
    const move = new LogMove({ log, source, copy, target, pace: this.#pace, turns: this.#turns, logger })
    this.#moves.set(name, move)
    probe.movingPartitions.value++
    void move.done.then((outcome) => {
      probe.movingPartitions.value--
      if (this.#moves.get(name) === move) this.#moves.delete(name)
      if (outcome === 'moved') this.#onMoved(log, target.directoryId)
      if (outcome === 'failed') this.#discard(name, move)
    })
  }

  #discard(name: string, { copy, target }: LogMove): void {
    const discarded = this.#inTurn(name, async () => {
      if (target.copies.get(name) === copy) await target.discardCopy(name)
    })
    discarded.catch(() => {}) // the directory has told
  }

  /** Nothing of a move of the partition is left, but what it had come to; that it has moved from a directory isn't forgotten. */
  async end(name: string): Promise<void> {
    await this.#stop(name)
    for (const directory of this.#directories) {
      if (!directory.isOnline || directory.moves.departureOf(name) === undefined) continue
      if (directory.logs.has(name)) directory.moves.forget(name)
      else directory.moves.hasMoved(name)
      await directory.saveMoves()
    }
  }

  /** Nothing of any move of the partition is left, as if it had never been in any directory. */
  async forget(name: string): Promise<void> {
    await this.#stop(name)
    for (const directory of this.#directories) {
      if (!directory.isOnline) continue
      directory.moves.forget(name)
      await directory.saveMoves()
    }
  }

  async #stop(name: string): Promise<void> {
    await this.#moves.get(name)?.stop()
    for (const directory of this.#directories) await directory.discardCopy(name)
  }

  /** No copy is in `directory`, which failed, any more. */
  async leave(directory: LogDirectory): Promise<void> {
    const outcomes: Promise<MoveOutcome>[] = []
    for (const move of this.#moves.values()) if (move.target === directory) outcomes.push(move.stop())
    await Promise.all(outcomes)
    await directory.dropCopies()
  }

  /** Nothing is under way any more; copies wait for the next start. */
  async stop(): Promise<void> {
    await Promise.all([...this.#moves.values()].map((move) => move.stop()))
  }
}

function nameOf({ topic, partition }: LocalLog): string {
  return partitionName(topic, partition)
}
