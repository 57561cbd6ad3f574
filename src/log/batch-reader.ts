import { assert } from '../base/index.ts'
import { BatchView, batchHeaderBytes, CorruptBatchError, checkBatchShape } from '../protocol/index.ts'
import type { PooledFile } from './handle-pool.ts'

/** No broker takes batches of this size: a length that claims more is damage. */
const maxBatchBytes = 256 * 1024 * 1024

/**
 * Whole batches of a file, one after the other, each checked, through one buffer that grows for larger ones:
 *
 *     while (await reader.fill()) for (let batch = reader.take(); batch !== undefined; batch = reader.take()) ...
 *
 * Throws `CorruptBatchError` at a damaged batch.
 */
export class BatchReader {
  readonly #file: PooledFile
  readonly #view: BatchView
  #buffer: Buffer
  /** Position in the file of what is to be read next. */
  #next: number
  readonly #end: number
  #taken = 0
  #filled = 0
  #wanted = 0

  /** From position `from`, where a batch begins, to `end`, exclusive. */
  constructor(options: {
    readonly file: PooledFile
    readonly from: number
    readonly end: number
    readonly bufferBytes: number
  }) {
    this.#file = options.file
    this.#next = options.from
    this.#end = options.end
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(batchHeaderBytes, options.bufferBytes))
    this.#view = new BatchView(this.#buffer)
  }

  /** Reads on, once all was taken that can be. Answers how many bytes it read; 0 at the end. */
  async fill(): Promise<number> {
    const rest = this.#filled - this.#taken
    if (this.#next === this.#end && rest === 0) return 0
    if (this.#wanted > this.#buffer.length) {
      const larger = Buffer.allocUnsafeSlow(this.#wanted)
      this.#buffer.copy(larger, 0, this.#taken, this.#filled)
      this.#buffer = larger
    } else {
      this.#buffer.copyWithin(0, this.#taken, this.#filled)
    }
    this.#taken = 0
    this.#filled = rest
    const target = this.#buffer.subarray(rest, rest + Math.min(this.#buffer.length - rest, this.#end - this.#next))
    assert(target.length > 0 || this.#next === this.#end, 'there is room to read on')
    const count = target.length === 0 ? 0 : await this.#file.read(target, this.#next)
    if (count === 0) throw this.#damage('truncated')
    this.#next += count
    this.#filled += count
    return count
  }

  /** The next batch, valid until `fill`; undefined when more must be read first. */
  take(): BatchView | undefined {
    const available = this.#filled - this.#taken
    if (available === 0) return undefined
    const rest = available + this.#end - this.#next
    if (available < batchHeaderBytes) {
      if (rest < batchHeaderBytes) throw this.#damage('truncated')
      return undefined
    }
    const shape = checkBatchShape(this.#buffer, this.#taken, this.#taken + rest)
    if (shape !== 'ok') throw this.#damage(shape)
    const view = this.#view.moveTo(this.#buffer, this.#taken)
    const { sizeBytes } = view
    if (sizeBytes > maxBatchBytes) throw this.#damage('length')
    if (sizeBytes > available) {
      this.#wanted = sizeBytes
      return undefined
    }
    if (view.lastOffsetDelta < 0) throw this.#damage('offset delta')
    if (view.computeCrc() !== view.crc) throw this.#damage('crc')
    this.#taken += sizeBytes
    return view
  }

  #damage(fault: string): CorruptBatchError {
    const position = this.#next - (this.#filled - this.#taken)
    return new CorruptBatchError(`${this.#file.path} is damaged at byte ${position} (${fault})`)
  }
}
