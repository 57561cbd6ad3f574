import type { MetadataImage } from '../../metadata/index.ts'
import { type Clock, nextTurn, type Timer, type Timers } from '../../platform/index.ts'
import type { Entry, LogIndex } from '../../raft/index.ts'
import { encodeSnapshot } from './metadata-snapshot.ts'

export interface SnapshotLimits {
  /** Bytes of new entries; `metadata.log.max.record.bytes.between.snapshots`. */
  readonly maxBytes: number
  /** Age of new entries, 0 for any; `metadata.log.max.snapshot.interval.ms`. */
  readonly maxIntervalMs: number
  /** New entries: each is read again at a start. */
  readonly maxEntries: number
}

/** Takes a snapshot of the metadata when the entries since the last one pass a limit; one at a time. */
export class SnapshotSchedule {
  readonly #limits: SnapshotLimits
  readonly #platform: { readonly clock: Clock; readonly timers: Timers }
  readonly #image: () => MetadataImage
  readonly #save: (index: LogIndex, data: Uint8Array) => Promise<void>
  #bytes = 0
  #entries = 0
  #timer: Timer | undefined
  #writing: Promise<void> | undefined
  #isStopped: boolean = false

  /** `image`: the latest that is applied. `save` rejects only when the node has a fault, which is reported elsewhere. */
  constructor(options: {
    readonly limits: SnapshotLimits
    readonly platform: { readonly clock: Clock; readonly timers: Timers }
    readonly image: () => MetadataImage
    readonly save: (index: LogIndex, data: Uint8Array) => Promise<void>
  }) {
    this.#limits = options.limits
    this.#platform = options.platform
    this.#image = options.image
    this.#save = options.save
  }

  /** After the entries were applied. */
  onCommitted(entries: readonly Entry[]): void {
    for (const { type, data } of entries) {
      if (type !== 'data') continue
      this.#entries++
      this.#bytes += data.length
    }
    const { maxBytes, maxEntries, maxIntervalMs } = this.#limits
    if (this.#entries >= maxEntries || this.#bytes >= maxBytes) this.#begin()
    else if (this.#entries > 0 && maxIntervalMs > 0 && this.#timer === undefined && !this.#isStopped) {
      this.#timer = this.#platform.timers.set(Math.min(maxIntervalMs, maxTimerMs), () => this.#begin())
    }
  }

  /** Resolves when none is being written any more. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    await this.#writing
  }

  #begin(): void {
    if (this.#writing !== undefined || this.#isStopped) return
    this.#timer?.cancel()
    this.#timer = undefined
    this.#entries = 0
    this.#bytes = 0
    this.#writing = this.#write().finally(() => {
      this.#writing = undefined
    })
  }

  async #write(): Promise<void> {
    const image = this.#image()
    const data = await encodeSnapshot(image, () => nextTurn(this.#platform.timers))
    if (this.#isStopped) return
    try {
      await this.#save(image.index as LogIndex, data)
    } catch {
      // The Raft node stopped by itself and told its fault listeners; the log still has every entry.
    }
  }
}

/** The longest delay that a timer of Node takes. */
const maxTimerMs = 2 ** 31 - 1
