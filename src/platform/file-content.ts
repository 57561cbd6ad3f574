const chunkBytes = 64 * 1024
const firstChunkBytes = 1024

/**
 * The bytes of a file in memory, in chunks of 64 KiB: growing copies nothing (but a small first chunk), and a hole takes no
 * memory. Bytes of a chunk past the size are always zero.
 */
export class FileContent {
  sizeBytes = 0
  readonly #chunks: (Buffer | undefined)[] = []

  /** Bytes between the old size and `position` become zero. `bytes` are copied. */
  write(bytes: Uint8Array, position: number): void {
    const end = position + bytes.length
    let from = 0
    while (from < bytes.length) {
      const at = position + from
      const inChunk = at & (chunkBytes - 1)
      const length = Math.min(bytes.length - from, chunkBytes - inChunk)
      const chunk = this.#chunkFor(Math.floor(at / chunkBytes), inChunk + length)
      chunk.set(length === bytes.length ? bytes : bytes.subarray(from, from + length), inChunk)
      from += length
    }
    if (bytes.length > 0 && end > this.sizeBytes) this.sizeBytes = end
  }

  /** Fills `target` from `position`, and returns how many bytes there were. */
  read(target: Uint8Array, position: number): number {
    const total = Math.max(0, Math.min(target.length, this.sizeBytes - position))
    let filled = 0
    while (filled < total) {
      const at = position + filled
      const inChunk = at & (chunkBytes - 1)
      const length = Math.min(total - filled, chunkBytes - inChunk)
      const chunk = this.#chunks[Math.floor(at / chunkBytes)]
      const held = chunk === undefined ? 0 : Math.max(0, Math.min(length, chunk.length - inChunk))
      if (held > 0) target.set(chunk!.subarray(inChunk, inChunk + held), filled)
      if (held < length) target.fill(0, filled + held, filled + length)
      filled += length
    }
    return total
  }

  /** A copy of `length` bytes from `position`; fewer when the file ends before. */
  copy(position: number, length: number): Buffer {
    const held = Buffer.allocUnsafeSlow(Math.max(0, Math.min(length, this.sizeBytes - position)))
    this.read(held, position)
    return held
  }

  /** Cuts, or grows with zeros. */
  truncate(sizeBytes: number): void {
    if (sizeBytes < this.sizeBytes) {
      const keptChunks = Math.ceil(sizeBytes / chunkBytes)
      if (this.#chunks.length > keptChunks) this.#chunks.length = keptChunks
      const inLast = sizeBytes & (chunkBytes - 1)
      if (inLast > 0) this.#chunks[keptChunks - 1]?.fill(0, inLast)
    }
    this.sizeBytes = sizeBytes
  }

  /** The chunk `index` with room for `minBytes` at least. */
  #chunkFor(index: number, minBytes: number): Buffer {
    const present = this.#chunks[index]
    if (present !== undefined && present.length >= minBytes) return present
    let length = chunkBytes
    if (index === 0) {
      length = Math.max(firstChunkBytes, (present?.length ?? 0) * 2)
      while (length < minBytes) length *= 2
    }
    // A small one comes out of Node's pool, which is cheaper than memory of its own.
    const chunk = length === firstChunkBytes ? Buffer.allocUnsafe(length).fill(0) : Buffer.alloc(length)
    present?.copy(chunk)
    while (this.#chunks.length < index) this.#chunks.push(undefined)
    this.#chunks[index] = chunk
    return chunk
  }
}
