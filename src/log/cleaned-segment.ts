import type { Offset } from '../base/index.ts'
import type { TopicConfig } from '../config/index.ts'
import { BatchView } from '../protocol/index.ts'
import type { CleanerPace } from './cleaner-pace.ts'
import type { LogEnvironment } from './environment.ts'
import type { PooledFile } from './handle-pool.ts'
import { Segment } from './segment.ts'
import { cleanedSuffix } from './segment-replacement.ts'

/** A segment in the making, of batches that remain of others. Its log is a `.cleaned` file until it replaces them. */
export class CleanedSegment {
  readonly segment: Segment
  readonly #file: PooledFile
  readonly #environment: LogEnvironment
  readonly #config: TopicConfig
  readonly #pace: CleanerPace
  readonly #signal: AbortSignal
  readonly #buffer: Buffer
  readonly #view: BatchView
  #filled = 0
  /** Bytes of the file. */
  #written = 0

  constructor(options: {
    readonly environment: LogEnvironment
    readonly directory: string
    readonly baseOffset: Offset
    readonly config: TopicConfig
    readonly bufferBytes: number
    readonly pace: CleanerPace
    readonly signal: AbortSignal
  }) {
    const { environment, directory, baseOffset } = options
    this.#environment = environment
    this.#config = options.config
    this.#pace = options.pace
    this.#signal = options.signal
    this.#buffer = Buffer.allocUnsafeSlow(options.bufferBytes)
    this.#view = new BatchView(this.#buffer)
    this.segment = Segment.empty(environment, directory, baseOffset, environment.platform.clock.now())
    this.#file = environment.handles.file(`${this.segment.log.path}${cleanedSuffix}`)
  }

  /** `batch` is one batch, copied or written when it resolves. */
  async append(batch: Buffer): Promise<void> {
    if (this.#filled + batch.length > this.#buffer.length) await this.#flush()
    const { segment } = this
    segment.noteBatch(this.#view.moveTo(batch, 0), segment.sizeBytes, this.#config)
    segment.sizeBytes += batch.length
    if (batch.length > this.#buffer.length) await this.#write(batch)
    else this.#filled += batch.copy(this.#buffer, this.#filled)
  }

  /** Makes the log durable, but for its name. */
  async finish(): Promise<void> {
    await this.#flush()
    this.segment.noteLargestTimestamp()
    // There may be a longer one that an earlier try could not remove; or none yet, when nothing remained.
    await this.#file.truncate(this.#written)
    await this.#environment.scheduler.run('log', () => this.#file.sync())
    this.#file.discard()
  }

  /** Takes the file away, if it can. What is left is removed at the next start. */
  async abandon(): Promise<void> {
    this.#file.discard()
    this.segment.retire()
    await this.#environment.platform.files.remove(this.#file.path).catch(() => {})
  }

  async #flush(): Promise<void> {
    const bytes = this.#buffer.subarray(0, this.#filled)
    this.#filled = 0
    if (bytes.length > 0) await this.#write(bytes)
  }

  async #write(bytes: Buffer): Promise<void> {
    await this.#file.write([bytes], this.#written)
    this.#written += bytes.length
    await this.#pace.io(bytes.length, this.#signal)
  }
}
