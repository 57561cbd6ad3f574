import { FrameError } from './errors.ts'
import type { FramePool } from './frame-pool.ts'

/** Least memory taken for a frame that doesn't lie in one chunk; a socket itself costs more. */
const minCollectBytes = 16 * 1024

/**
 * Cuts a connection's bytes into frames: an int32 length, then that many bytes.
 *
 * Chunks are only lent by the socket, so each frame is copied, once, into memory of its own. One that doesn't lie in one chunk is
 * collected in a buffer that grows with what arrives (to four times as much at most), so that a peer that claims a gigabyte and sends ten bytes costs
 * ten bytes; a third of its bytes are copied twice.
 */
export class FrameReader {
  readonly #maxFrameBytes: number
  readonly #pool: FramePool | undefined
  /** Chunks not cut yet, oldest first; the first one from `#position` on. */
  readonly #chunks: Buffer[] = []
  #position = 0
  /** Bytes of the length that were read so far, 0 to 3, and their value. */
  #lengthBytes = 0
  #lengthValue = 0
  /** Length of the frame that is being collected; -1 between frames. */
  #expectedBytes = -1
  #collected: Buffer | undefined
  #collectedBytes = 0

  /** With a pool, each frame is to be given back to it when it was dealt with. */
  constructor(maxFrameBytes: number, pool?: FramePool) {
    this.#maxFrameBytes = maxFrameBytes
    this.#pool = pool
  }

  /** Takes `chunk`, which must stay as it is until `keep`, or until `next` has returned undefined. */
  push(chunk: Buffer): void {
    if (chunk.length > 0) this.#chunks.push(chunk)
  }

  /** The memory of the last chunk is about to be used for something else: copies what wasn't cut. */
  keep(): void {
    const last = this.#chunks.length - 1
    if (last < 0) return
    const chunk = this.#chunks[last]!
    this.#chunks[last] = Buffer.from(last === 0 ? chunk.subarray(this.#position) : chunk)
    if (last === 0) this.#position = 0
  }

  /** True when a frame has begun that isn't whole. Meaningful after `next` returned undefined. */
  get isInsideFrame(): boolean {
    return this.#expectedBytes >= 0 || this.#lengthBytes > 0
  }

  /** Bytes that the frame being received still lacks; 0 between frames and before its length is known. */
  get missingBytes(): number {
    return this.#expectedBytes < 0 ? 0 : this.#expectedBytes - this.#collectedBytes
  }

  /** Nothing more will be read: gives back what a frame was being collected in. */
  stop(): void {
    if (this.#collected !== undefined) this.#pool?.giveBack(this.#collected)
    this.#collected = undefined
    this.#chunks.length = 0
  }

  /**
   * The next whole frame without its length; undefined when more bytes are needed.
   * Throws `FrameError` when a length is negative or above the limit; nothing can be read after that.
   */
  next(): Buffer | undefined {
    if (this.#expectedBytes < 0) {
      if (!this.#readLength()) return undefined
      const chunk = this.#chunks[0]
      const end = this.#position + this.#expectedBytes
      if (chunk !== undefined && end <= chunk.length) {
        const room = this.#take(this.#expectedBytes)
        const frame = room.length === this.#expectedBytes ? room : room.subarray(0, this.#expectedBytes)
        chunk.copy(frame, 0, this.#position, end)
        this.#expectedBytes = -1
        this.#consume(chunk, end)
        return frame
      }
      if (this.#expectedBytes === 0) {
        this.#expectedBytes = -1
        return Buffer.alloc(0)
      }
    }
    return this.#collect()
  }

  /** Reads the int32 that begins a frame into `#expectedBytes`; false when it isn't all there. */
  #readLength(): boolean {
    let chunk = this.#chunks[0]
    while (chunk !== undefined) {
      let position = this.#position
      while (this.#lengthBytes < 4 && position < chunk.length) {
        this.#lengthValue = (this.#lengthValue << 8) | chunk[position++]!
        this.#lengthBytes++
      }
      this.#consume(chunk, position)
      if (this.#lengthBytes === 4) {
        const length = this.#lengthValue
        this.#lengthBytes = 0
        this.#lengthValue = 0
        if (length < 0 || length > this.#maxFrameBytes) throw new FrameError(length, this.#maxFrameBytes)
        this.#expectedBytes = length
        this.#collectedBytes = 0
        return true
      }
      chunk = this.#chunks[0]
    }
    return false
  }

  /** Moves bytes from the chunks into `#collected` until the frame is whole or there are no more. */
  #collect(): Buffer | undefined {
    let chunk = this.#chunks[0]
    while (chunk !== undefined) {
      const taken = Math.min(this.#expectedBytes - this.#collectedBytes, chunk.length - this.#position)
      const target = this.#roomFor(this.#collectedBytes + taken)
      chunk.copy(target, this.#collectedBytes, this.#position, this.#position + taken)
      this.#collectedBytes += taken
      this.#consume(chunk, this.#position + taken)
      if (this.#collectedBytes === this.#expectedBytes) {
        this.#collected = undefined
        this.#expectedBytes = -1
        return target.length === this.#collectedBytes ? target : target.subarray(0, this.#collectedBytes)
      }
      chunk = this.#chunks[0]
    }
    return undefined
  }

  #roomFor(sizeBytes: number): Buffer {
    const current = this.#collected
    if (current !== undefined && current.length >= sizeBytes) return current
    const wantedBytes = Math.min(this.#expectedBytes, Math.max(minCollectBytes, 4 * sizeBytes))
    const grown = this.#take(wantedBytes)
    if (current !== undefined) {
      current.copy(grown, 0, 0, this.#collectedBytes)
      this.#pool?.giveBack(current)
    }
    this.#collected = grown
    return grown
  }

  #take(sizeBytes: number): Buffer {
    return this.#pool?.take(sizeBytes) ?? Buffer.allocUnsafe(sizeBytes)
  }

  #consume(chunk: Buffer, position: number): void {
    if (position === chunk.length) {
      this.#chunks.shift()
      this.#position = 0
    } else {
      this.#position = position
    }
  }
}
