import type { LeaderEpoch, Offset, TopicPartition } from '../../../src/base/index.ts'
import type {
  PartitionStore,
  StoreAppendResult,
  StoreBounds,
  StoreFailure,
} from '../../../src/coordinator-runtime/index.ts'
import type { Clock, Offload, Timer, Timers } from '../../../src/platform/index.ts'
import { BatchView } from '../../../src/protocol/index.ts'
import type { Logger } from '../../../src/telemetry/index.ts'

/** A clock and timers that only a test moves. Deferred work runs when the loop of promises is idle, by `settle`. */
export class ManualTime implements Clock, Timers {
  nowMs = 1_700_000_000_000
  monotonicMs = 0
  readonly #timers = new Set<{ atMs: number; callback: () => void }>()
  readonly #deferred: (() => void)[] = []

  now(): number {
    return this.nowMs
  }

  monotonic(): number {
    return this.monotonicMs
  }

  set(delayMs: number, callback: () => void): Timer {
    const timer = { atMs: this.monotonicMs + delayMs, callback }
    this.#timers.add(timer)
    return { cancel: () => this.#timers.delete(timer) }
  }

  defer(callback: () => void): void {
    this.#deferred.push(callback)
  }

  get timerCount(): number {
    return this.#timers.size
  }

  /** Runs promises and deferred work until nothing is left; timers stay. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 5; ) {
      for (let i = 0; i < 10; i++) await Promise.resolve()
      const next = this.#deferred.shift()
      quiet = next === undefined ? quiet + 1 : 0
      next?.()
    }
  }

  /** Moves time on, firing timers in their order. */
  async advance(byMs: number): Promise<void> {
    const endMs = this.monotonicMs + byMs
    await this.settle()
    for (;;) {
      const next = [...this.#timers].filter((timer) => timer.atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0]
      if (next === undefined) break
      this.#moveTo(Math.max(next.atMs, this.monotonicMs))
      this.#timers.delete(next)
      next.callback()
      await this.settle()
    }
    this.#moveTo(endMs)
  }

  #moveTo(monotonicMs: number): void {
    this.nowMs += monotonicMs - this.monotonicMs
    this.monotonicMs = monotonicMs
  }
}

/** Runs every task at once. */
export const inlineOffload: Offload = {
  run: async (task, input) => task.run(input),
}

interface Stored {
  readonly batch: Buffer
  readonly resolve: (end: 'committed' | StoreFailure) => void
}

/** One replica's logs in memory, whose appends are committed at once, or when the test says so. */
export class MemoryStore implements PartitionStore {
  /** Commit each append at once. */
  commitsAtOnce: boolean = true
  /** Refuse appends with this. */
  refusal: StoreFailure | undefined
  maxBytes = 1 << 20
  /** Reads give many batches in one buffer. */
  readsWholeChunks: boolean = true
  /** Reads reject with this. */
  readFault: Error | undefined
  /** Leader epochs by partition; a partition that isn't here is not led. */
  readonly epochs = new Map<number, LeaderEpoch>()
  readonly #logs = new Map<number, Stored[]>()
  /** Appends whose end nobody has heard of. */
  readonly #waiting = new Map<number, Stored[]>()
  readonly #highWatermarks = new Map<number, Offset>()

  lead(partition: number, leaderEpoch: number): LeaderEpoch {
    this.epochs.set(partition, leaderEpoch as LeaderEpoch)
    return leaderEpoch as LeaderEpoch
  }

  batches(partition = 0): readonly Buffer[] {
    return (this.#logs.get(partition) ?? []).map(({ batch }) => batch)
  }

  append({ partition }: TopicPartition, leaderEpoch: LeaderEpoch, batch: Buffer): StoreAppendResult {
    if (this.epochs.get(partition) !== leaderEpoch) return { ok: false, reason: 'not-leader' }
    if (this.refusal !== undefined) return { ok: false, reason: this.refusal }
    const baseOffset = this.#endOffset(partition)
    const view = new BatchView(batch)
    view.stampBaseOffset(baseOffset)
    view.stampLeaderEpoch(leaderEpoch)
    const log = this.#logs.get(partition) ?? []
    this.#logs.set(partition, log)
    const waiting = this.#waiting.get(partition) ?? []
    this.#waiting.set(partition, waiting)
    const committed = new Promise<'committed' | StoreFailure>((resolve) => {
      const stored = { batch, resolve }
      log.push(stored)
      waiting.push(stored)
    })
    if (this.commitsAtOnce) this.commit(partition)
    return { ok: true, baseOffset, committed }
  }

  /** Puts a batch that someone else made into the log, committed. */
  preload(batch: Buffer, partition = 0): void {
    const log = this.#logs.get(partition) ?? []
    this.#logs.set(partition, log)
    new BatchView(batch).stampBaseOffset(this.#endOffset(partition))
    log.push({ batch, resolve: () => undefined })
    this.commit(partition)
  }

  /** The high watermark reaches the end. */
  commit(partition = 0): void {
    this.#highWatermarks.set(partition, this.#endOffset(partition))
    this.#end(partition, 'committed')
  }

  /** Tells those who wait that their leader epoch is over; the log stays, and the next leader may commit it. */
  fail(reason: StoreFailure, partition = 0): void {
    this.#end(partition, reason)
  }

  #end(partition: number, end: 'committed' | StoreFailure): void {
    for (const { resolve } of this.#waiting.get(partition)?.splice(0) ?? []) resolve(end)
  }

  /** What isn't committed is lost. */
  lose(reason: StoreFailure, partition = 0): void {
    const log = this.#logs.get(partition) ?? []
    const highWatermark = this.#highWatermarks.get(partition) ?? 0
    const kept = log.filter(({ batch }) => new BatchView(batch).baseOffset < highWatermark)
    this.#logs.set(partition, kept)
    for (const stored of log) if (!kept.includes(stored)) stored.resolve(reason)
  }

  async read({ partition }: TopicPartition, leaderEpoch: LeaderEpoch, fromOffset: Offset, maxBytes: number) {
    if (this.readFault !== undefined) throw this.readFault
    if (this.epochs.get(partition) !== leaderEpoch) return 'not-leader' as const
    const highWatermark = this.#highWatermarks.get(partition) ?? 0
    const read: Buffer[] = []
    let bytes = 0
    for (const { batch } of this.#logs.get(partition) ?? []) {
      const { baseOffset, lastOffset } = new BatchView(batch)
      if (lastOffset < fromOffset || baseOffset >= highWatermark) continue
      if (bytes > 0 && bytes + batch.length > maxBytes) break
      read.push(Buffer.from(batch))
      bytes += batch.length
    }
    if (this.readsWholeChunks && read.length > 0) return [Buffer.concat(read)]
    return read
  }

  bounds({ partition }: TopicPartition, leaderEpoch: LeaderEpoch): StoreBounds | undefined {
    if (this.epochs.get(partition) !== leaderEpoch) return undefined
    const highWatermark = this.#highWatermarks.get(partition) ?? 0
    return { startOffset: 0, highWatermark, logEndOffset: this.#endOffset(partition) }
  }

  maxBatchBytes(): number {
    return this.maxBytes
  }

  #endOffset(partition: number): Offset {
    const last = this.#logs.get(partition)?.at(-1)
    return last === undefined ? 0 : new BatchView(last.batch).lastOffset + 1
  }
}

/** Keeps what was logged. */
export function recordingLogger(): Logger & { readonly lines: string[] } {
  const lines: string[] = []
  const log = (level: string) => (_fields: object, message: string) => void lines.push(`${level} ${message}`)
  const logger = {
    lines,
    child: () => logger,
    debug: log('debug'),
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
  }
  return logger
}
