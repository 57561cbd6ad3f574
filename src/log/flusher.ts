import { type Deferred, deferred, type Offset } from '../base/index.ts'
import type { Clock, Timer, Timers } from '../platform/index.ts'
import type { Histogram } from '../telemetry/index.ts'
import type { FlushScheduler } from './flush-scheduler.ts'
import type { Mutex } from './mutex.ts'

const maxTimerMs = 2 ** 31 - 1

interface Waiter {
  readonly offset: Offset
  readonly done: Deferred<void>
}

/** What a flusher asks of its log. */
export interface FlushedLog {
  readonly logEndOffset: Offset
  readonly isOnline: boolean
  /** Makes durable all that the log holds when this is called. */
  syncEverything(): Promise<void>
  /** Everything below `offset` is durable. */
  onFlushed(offset: Offset): void
  /** A sync failed. What it should have covered may never reach the disk. */
  onSyncFailed(error: unknown): void
}

/**
 * Group commit of one log: decides when to sync, and moves the flushed offset when a sync has returned.
 *
 * One sync runs at a time. All that is appended while it runs, or while it waits for its turn among the other logs, shares
 * the next one. A failed sync ends it for good.
 */
export class Flusher {
  readonly #log: FlushedLog
  readonly #scheduler: FlushScheduler
  readonly #mutex: Mutex
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #timeUs: Histogram
  #flushedOffset: Offset
  #unflushedRecords = 0
  #isRunning: boolean = false
  #isWanted: boolean = false
  #timer: Timer | undefined
  #waiters: Waiter[] = []

  /** `mutex`: held during a sync, so that nothing else changes files meanwhile, apart from appends. */
  constructor(options: {
    readonly log: FlushedLog
    readonly scheduler: FlushScheduler
    readonly mutex: Mutex
    readonly clock: Clock
    readonly timers: Timers
    readonly timeUs: Histogram
    readonly flushedOffset: Offset
  }) {
    this.#log = options.log
    this.#scheduler = options.scheduler
    this.#mutex = options.mutex
    this.#clock = options.clock
    this.#timers = options.timers
    this.#timeUs = options.timeUs
    this.#flushedOffset = options.flushedOffset
  }

  /** Exclusive. */
  get flushedOffset(): Offset {
    return this.#flushedOffset
  }

  noteAppended(records: number): void {
    this.#unflushedRecords += records
  }

  /** After an append: syncs now, after `flushMessages` records, or `flushMs` after the first of them. */
  requestWhenDue(flushMessages: number, flushMs: number): void {
    if (this.#unflushedRecords >= flushMessages) {
      this.request()
    } else if (this.#unflushedRecords > 0 && flushMs <= maxTimerMs && this.#timer === undefined) {
      this.#timer = this.#timers.set(flushMs, () => {
        this.#timer = undefined
        this.request()
      })
    }
  }

  request(): void {
    this.#isWanted = true
    if (this.#isRunning) return
    this.#isRunning = true
    void this.#run()
  }

  /** Resolves when everything below `offset` is durable. */
  wait(offset: Offset): Promise<void> {
    const waiter = { offset, done: deferred<void>() }
    this.#waiters.push(waiter)
    this.request()
    return waiter.done.promise
  }

  async #run(): Promise<void> {
    try {
      while (this.#isWanted && this.#log.isOnline) {
        // The mutex first: whoever waits for it must not hold up the syncs of others.
        await this.#mutex.run(() => this.#scheduler.run('log', () => this.#flush()))
      }
    } catch (error) {
      this.#log.onSyncFailed(error)
    } finally {
      this.#isRunning = false
    }
  }

  async #flush(): Promise<void> {
    if (!this.#log.isOnline) return
    const startedMs = this.#clock.monotonic()
    const target = this.#log.logEndOffset
    this.beginSync()
    await this.#log.syncEverything()
    this.#timeUs.record((this.#clock.monotonic() - startedMs) * 1000)
    if (this.#log.isOnline) this.moveTo(target)
  }

  /** A sync begins that covers all that was appended: nothing is left to ask for one. */
  beginSync(): void {
    this.#isWanted = false
    this.#unflushedRecords = 0
    this.#timer?.cancel()
    this.#timer = undefined
  }

  /** Everything below `offset` is durable. */
  moveTo(offset: Offset): void {
    if (offset <= this.#flushedOffset) return
    this.#flushedOffset = offset
    if (this.#waiters.length > 0) {
      const due = this.#waiters.filter((waiter) => waiter.offset <= offset)
      this.#waiters = this.#waiters.filter((waiter) => waiter.offset > offset)
      for (const waiter of due) waiter.done.resolve()
    }
    this.#log.onFlushed(offset)
  }

  /** The log ends at `endOffset` now. */
  truncateTo(endOffset: Offset): void {
    this.#flushedOffset = Math.min(this.#flushedOffset, endOffset)
  }

  /** Tells whoever waits that it was in vain. */
  rejectWaiters(error: Error): void {
    for (const waiter of this.#waiters.splice(0)) waiter.done.reject(error)
  }

  /** The log takes no appends any more. */
  stop(error: Error): void {
    this.#isWanted = false
    this.#timer?.cancel()
    this.#timer = undefined
    this.rejectWaiters(error)
  }
}
