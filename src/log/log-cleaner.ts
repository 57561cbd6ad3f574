import { messageOf } from '../base/index.ts'
import type { ParsedConfig } from '../config/index.ts'
import { FileError } from '../platform/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { CleanerPace } from './cleaner-pace.ts'
import { type CleaningPlan, planCleaning } from './cleaning-plan.ts'
import { type CompactionResult, compact, type LogInCleaning } from './compaction.ts'
import type { LogEnvironment } from './environment.ts'
import { KeyHash } from './key-hash.ts'
import type { LocalLog } from './local-log.ts'
import { OffsetMap } from './offset-map.ts'

/** The keys of the broker that say how logs are cleaned. */
export type CleanerSettings = Pick<
  ParsedConfig['values'],
  | 'logCleanerEnable'
  | 'logCleanerThreads'
  | 'logCleanerDedupeBufferSize'
  | 'logCleanerIoBufferSize'
  | 'logCleanerIoBufferLoadFactor'
  | 'logCleanerIoMaxBytesPerSecond'
>

/**
 * Cleans the logs of a node whose `cleanup.policy` has `compact`, one at a time, the dirtiest first.
 *
 * A log with a damaged batch is left alone until the next start, so that it doesn't keep others from being cleaned; one
 * whose disk did not answer, or had no room, is tried again.
 */
export class LogCleaner {
  readonly #environment: LogEnvironment
  readonly #logger: Logger
  readonly #logs: () => readonly LocalLog[]
  readonly #pace: CleanerPace
  readonly #hash: KeyHash
  readonly #uncleanable = new WeakSet<LocalLog>()
  #settings: CleanerSettings
  #running: Promise<void> | undefined
  #isStopped: boolean = false

  /** `logs`: all there are at the time of the call. */
  constructor(options: {
    readonly environment: LogEnvironment
    readonly settings: CleanerSettings
    readonly logs: () => readonly LocalLog[]
  }) {
    const { clock, timers, random } = options.environment.platform
    this.#environment = options.environment
    this.#logger = options.environment.logger.child({ part: 'cleaner' })
    this.#logs = options.logs
    this.#settings = options.settings
    const maxBytesPerSecond = options.settings.logCleanerIoMaxBytesPerSecond
    this.#pace = new CleanerPace({ clock, timers, maxBytesPerSecond })
    this.#hash = new KeyHash(random.bytes(16))
  }

  updateSettings(settings: CleanerSettings): void {
    this.#settings = settings
    this.#pace.maxBytesPerSecond = settings.logCleanerIoMaxBytesPerSecond
  }

  /** Cleans until no log is due. Whoever calls while it does waits with the others. */
  run(): Promise<void> {
    this.#running ??= this.#cleanAllDue().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Begins no other cleaning. The logs abort the one under way when they are closed. */
  stop(): void {
    this.#isStopped = true
  }

  async #cleanAllDue(): Promise<void> {
    const { logCleanerEnable, logCleanerThreads } = this.#settings
    if (!logCleanerEnable || logCleanerThreads === 0) return
    // A log that was tried isn't tried again in this run: its truncation, say, may abort every one.
    const tried = new Set<LocalLog>()
    while (!this.#isStopped) {
      const log = await this.#dirtiest(tried)
      if (log === undefined) return
      const endOffset = await this.#clean(log)
      if (endOffset === undefined) tried.add(log)
    }
  }

  async #dirtiest(tried: ReadonlySet<LocalLog>): Promise<LocalLog | undefined> {
    const nowMs = this.#environment.platform.clock.now()
    let dirtiest: LocalLog | undefined
    let largestRatio = -1
    let maxRatio = 0
    for (const log of this.#logs()) {
      if (!log.config.cleanupPolicy.compact || this.#uncleanable.has(log) || tried.has(log)) continue
      const plan = await this.#guarded(log, (view) => planCleaning(view, nowMs))
      maxRatio = Math.max(maxRatio, plan?.dirtyRatio ?? 0)
      if (plan?.isDue !== true || plan.dirtyRatio <= largestRatio) continue
      dirtiest = log
      largestRatio = plan.dirtyRatio
    }
    this.#environment.probe.maxDirtyPercent.value = Math.round(maxRatio * 100)
    return dirtiest
  }

  /** Where the cleaning ended; undefined when it did not come to its end. */
  async #clean(log: LocalLog): Promise<number | undefined> {
    const { clock } = this.#environment.platform
    const startedMs = clock.monotonic()
    const result = await this.#guarded(log, async (view) => {
      const plan = await planCleaning(view, clock.now())
      if (plan?.isDue !== true) return undefined
      const compaction = await this.#compact(view, plan)
      await log.noteCleaned(compaction.endOffset)
      return compaction
    })
    if (result === undefined) return undefined
    const { topic, partition } = log
    const tookMs = Math.round(clock.monotonic() - startedMs)
    this.#logger.info({ topic, partition, ...result, tookMs }, 'log compacted')
    if (log.config.cleanupPolicy.delete) await log.enforceRetention(clock.now())
    return result.endOffset
  }

  #compact(log: LogInCleaning, plan: CleaningPlan): Promise<CompactionResult> {
    const { logCleanerDedupeBufferSize, logCleanerIoBufferLoadFactor, logCleanerIoBufferSize } = this.#settings
    const map = new OffsetMap({
      hash: this.#hash,
      maxBytes: logCleanerDedupeBufferSize,
      loadFactor: logCleanerIoBufferLoadFactor,
    })
    const environment = this.#environment
    const pace = this.#pace
    return compact({ environment, log, plan, map, pace, bufferBytes: logCleanerIoBufferSize })
  }

  async #guarded<T>(log: LocalLog, work: (view: LogInCleaning) => Promise<T>): Promise<T | undefined> {
    try {
      return await log.whileCleaning(work)
    } catch (error) {
      const { topic, partition } = log
      if (error instanceof FileError || !log.isOnline) {
        this.#logger.warn({ topic, partition, error: messageOf(error) }, 'log cannot be compacted now')
        return undefined
      }
      this.#uncleanable.add(log)
      this.#environment.probe.uncleanablePartitions.value++
      this.#logger.error({ topic, partition, error }, 'log is not compacted any more, until the next start')
      return undefined
    }
  }
}
