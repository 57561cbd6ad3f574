import { messageOf } from '../base/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { startsWithin } from './batch-validator.ts'
import type { CleanerPace } from './cleaner-pace.ts'
import type { LocalLog } from './local-log.ts'
import type { LogDirectory } from './log-directory.ts'
import type { Mutex } from './mutex.ts'

/** One read: what is copied until others get a turn of the event loop. */
const chunkBytes = 256 * 1024
/** Copied between two syncs of the copy. */
const syncBytes = 16 * 1024 * 1024
/** Attempts to switch that records, or deletions, came in between of; then the log and its copy are compared again. */
const maxSwitches = 1000

/**
 * How it ended. 'paused': the log's own directory failed; the copy waits for it. 'failed': the copy is of no use. Both leave
 * the log as it was. 'stopped': it was asked to.
 */
export type MoveOutcome = 'moved' | 'paused' | 'failed' | 'stopped'

/**
 * One log moves to another directory of this broker (KIP-113): a copy there is filled from it in the background, at the speed
 * that is allowed, and takes its place when it has everything.
 *
 * Stages: comparing (where the copy, which may be of an earlier run, parts from the log, by leader epochs, it is cut), copying,
 * and, from the turn in which the copy has everything, mirroring: each append goes to both until the switch. A truncation of the
 * log cuts the copy too. The log isn't compacted while it moves: of a key that is deleted the copy might get the record
 * and not the tombstone.
 */
export class LogMove {
  readonly target: LogDirectory
  readonly #log: LocalLog
  readonly #source: LogDirectory
  readonly #copy: LocalLog
  readonly #pace: CleanerPace
  readonly #turns: Mutex
  readonly #logger: Logger
  readonly #aborter = new AbortController()
  readonly #done: Promise<MoveOutcome>
  /** The copy agrees with the log up to its end, or here. */
  #cutAt = Number.POSITIVE_INFINITY
  #isCompared = false
  #unsyncedBytes = 0

  /** Begins. `turns`: of all moves, of which one copies at a time. */
  constructor(options: {
    readonly log: LocalLog
    readonly source: LogDirectory
    readonly copy: LocalLog
    readonly target: LogDirectory
    readonly pace: CleanerPace
    readonly turns: Mutex
    readonly logger: Logger
  }) {
    this.#log = options.log
    this.#source = options.source
    this.#copy = options.copy
    this.target = options.target
    this.#pace = options.pace
    this.#turns = options.turns
    const { topic, partition } = options.log
    this.#logger = options.logger.child({ topic, partition, from: options.source.path, to: options.target.path })
    this.#logger.info({ copiedUpTo: options.copy.logEndOffset }, 'log moves to another directory')
    this.#done = this.#log.whileCopied(
      (endOffset) => {
        this.#cutAt = Math.min(this.#cutAt, endOffset)
      },
      () => this.#run(),
    )
  }

  /** It is that object which moves, and not one of before its directory was opened anew. */
  isOf(log: LocalLog): boolean {
    return log === this.#log
  }

  get copy(): LocalLog {
    return this.#copy
  }

  /** How it ended; never rejects. */
  get done(): Promise<MoveOutcome> {
    return this.#done
  }

  /** Ends it, unless it is at the switch already. */
  stop(): Promise<MoveOutcome> {
    this.#aborter.abort()
    return this.#done
  }

  async #run(): Promise<MoveOutcome> {
    try {
      await this.#copyAndSwitch()
    } catch (error) {
      return this.#outcomeOf(error)
    }
    this.#logger.info({ logEndOffset: this.#log.logEndOffset }, 'log has moved to another directory')
    return 'moved'
  }

  #outcomeOf(error: unknown): MoveOutcome {
    if (this.#aborter.signal.aborted) return 'stopped'
    const outcome = this.#log.isOnline ? 'failed' : 'paused'
    this.#logger.error({ error: messageOf(error), outcome }, 'log cannot move to another directory')
    return outcome
  }

  async #copyAndSwitch(): Promise<void> {
    const name = `${this.#log.topic}-${this.#log.partition}`
    if (await this.target.isNameTaken(name))
      throw new Error(`Directory ${this.target.path} has a folder ${name} already`)
    await this.#source.noteMove(name, this.#copy)
    const { signal } = this.#aborter
    for (let switches = 0; switches < maxSwitches; ) {
      signal.throwIfAborted()
      const copiedBytes = await this.#turns.run(async () => {
        signal.throwIfAborted()
        return await this.#copyMore()
      })
      if (copiedBytes !== 'all') {
        await this.#pace.io(copiedBytes, signal)
        continue
      }
      switches++
      if (await this.#log.moveInto(this.#copy, this.target.moveOf(this.#copy, this.#source))) {
        await this.#noteSwitched(name)
        return
      }
      this.#log.mirrorTo(undefined)
    }
    throw new Error('The log changed too often')
  }

  /**
   * The source's note comes last: a log that is noted to have come from there is believed by it. Its checkpoints speak no more of the log in
   * any case. Each directory tells of its faults itself.
   */
  async #noteSwitched(name: string): Promise<void> {
    const isNoted = await this.target.saveMoves().then(
      () => true,
      () => false,
    )
    if (isNoted) this.#source.moves.hasMoved(name)
    await this.#source.saveCheckpoints().catch(() => {})
  }

  /** Bytes that were copied; 'all': the copy has everything, and gets what is appended from here on. */
  async #copyMore(): Promise<number | 'all'> {
    await this.#compare()
    await this.#followStart()
    await this.#pace.spend(chunkBytes)
    const { rewrites, logEndOffset } = this.#log
    const fetchOffset = this.#copy.logEndOffset
    if (this.#isToBeCut || fetchOffset < this.#log.logStartOffset) return 0
    const read = this.#log.read({ fetchOffset, endOffset: logEndOffset, maxBytes: chunkBytes, minOneBatch: true })
    const found = read instanceof Promise ? await read : read
    if ('outOfRange' in found) return 0 // deleted or truncated meanwhile
    const { chunks, sizeBytes } = found
    try {
      if (rewrites !== this.#log.rewrites) return 0
      // No batch there: compaction took the last ones, and the next record gets the end.
      if (sizeBytes === 0 && fetchOffset < logEndOffset) this.#copy.skipTo(logEndOffset)
      if (sizeBytes > 0) await this.#append(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    } finally {
      found.release()
    }
    // In the turn of the last look: nothing is appended between what was copied last and what is mirrored first.
    if (this.#hasAll) {
      this.#log.mirrorTo((batches) => this.#mirror(batches))
      return 'all'
    }
    this.#unsyncedBytes += sizeBytes
    if (this.#unsyncedBytes >= syncBytes) {
      this.#unsyncedBytes = 0
      await this.#copy.flush()
    }
    return sizeBytes
  }

  get #isToBeCut(): boolean {
    return this.#cutAt < this.#copy.logEndOffset
  }

  get #hasAll(): boolean {
    return (
      !this.#isToBeCut &&
      this.#copy.logEndOffset === this.#log.logEndOffset &&
      this.#copy.logStartOffset === this.#log.logStartOffset
    )
  }

  /** A fault of the copy's directory ends the move, and not the append. */
  #mirror(batches: Buffer): void {
    try {
      this.#copy.appendAsFollower(batches)
    } catch {
      this.#log.mirrorTo(undefined)
    }
  }

  /** Cuts the copy where it has other records than the log: once by their epochs, since it may be of an earlier run; then as told. */
  async #compare(): Promise<void> {
    const copy = this.#copy
    if (!this.#isCompared) {
      this.#isCompared = true
      while (copy.logEndOffset > copy.logStartOffset && !(await this.#cutOnce()));
    }
    while (this.#cutAt < Number.POSITIVE_INFINITY) {
      const endOffset = this.#cutAt
      this.#cutAt = Number.POSITIVE_INFINITY
      if (endOffset < copy.logEndOffset) await copy.truncateTo(Math.max(endOffset, copy.logStartOffset))
    }
  }

  /** One step of what a follower does with its leader's epochs. True: what is left of the copy agrees. */
  async #cutOnce(): Promise<boolean> {
    const copy = this.#copy
    const epoch = copy.latestEpoch
    const { leaderEpoch, endOffset } = this.#log.endOffsetForEpoch(epoch)
    if (leaderEpoch < 0 || endOffset < copy.logStartOffset) {
      await copy.truncateFullyAndStartAt(this.#log.logStartOffset)
      return true
    }
    const ofCopy = copy.endOffsetForEpoch(leaderEpoch)
    const common = Math.min(endOffset, ofCopy.leaderEpoch < 0 ? copy.logStartOffset : ofCopy.endOffset)
    if (common < copy.logEndOffset) await copy.truncateTo(Math.max(common, copy.logStartOffset))
    return leaderEpoch === epoch || ofCopy.leaderEpoch === leaderEpoch
  }

  /** Records that are deleted from the log are from the copy too. */
  async #followStart(): Promise<void> {
    const { logStartOffset } = this.#log
    if (logStartOffset <= this.#copy.logStartOffset) return
    if (logStartOffset > this.#copy.logEndOffset) await this.#copy.truncateFullyAndStartAt(logStartOffset)
    else await this.#copy.deleteRecordsBefore(logStartOffset, this.#copy.logEndOffset)
  }

  /** An empty copy of a log that begins within a batch begins with that batch. */
  async #append(records: Buffer): Promise<void> {
    if (startsWithin(this.#copy, records)) await this.#copy.startWithin(records)
    else this.#copy.appendAsFollower(records)
  }
}
