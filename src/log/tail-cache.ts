import { assert, type Offset } from '../base/index.ts'

const defaultArenaBytes = 2 * 1024 * 1024
/** Limits the objects that describe an arena filled with tiny batches of many partitions. */
const maxRunsPerArena = 2048
/** Bytes after which a run isn't extended: finding a batch in a run walks the headers before it. */
const maxExtendedRunBytes = 64 * 1024

/**
 * The newest batches of all partitions in memory: a ring of arenas that are filled, read and used again.
 *
 * Fresh large buffers cost page faults and garbage collection (measured: twice the CPU per byte), and a small slice pins
 * the whole of its buffer. So memory is counted by arena, arenas are recycled, and one that readers still hold when its
 * turn comes is left out of the ring until they release it; appends that find no arena are then simply not cached.
 */
export class TailCache {
  readonly #arenaBytes: number
  readonly #maxArenas: number
  /** Arenas whose content may be read, oldest first; the last is being filled. */
  readonly #ring: Arena[] = []
  readonly #free: Arena[] = []
  #arenaCount = 0

  /** `budgetBytes`: all that is ever allocated, 0 for no cache. */
  constructor(options: { readonly budgetBytes: number; readonly arenaBytes?: number }) {
    this.#arenaBytes = Math.min(options.arenaBytes ?? defaultArenaBytes, Math.floor(options.budgetBytes / 4))
    this.#maxArenas = this.#arenaBytes < 1024 ? 0 : Math.floor(options.budgetBytes / this.#arenaBytes)
  }

  /** Bytes allocated. */
  get allocatedBytes(): number {
    return this.#arenaCount * this.#arenaBytes
  }

  /** The view of one partition's newest batches. */
  openTail(): LogTail {
    return new LogTail(this)
  }

  /** @internal Room for `sizeBytes` in the arena being filled; undefined when there is none to be had. */
  reserve(sizeBytes: number): Arena | undefined {
    if (sizeBytes > this.#arenaBytes) return undefined
    const filling = this.#ring.at(-1)
    if (
      filling !== undefined &&
      filling.runCount < maxRunsPerArena &&
      filling.filledBytes + sizeBytes <= this.#arenaBytes
    )
      return filling
    const next = this.#nextArena()
    if (next !== undefined) this.#ring.push(next)
    return next
  }

  #nextArena(): Arena | undefined {
    const free = this.#free.pop()
    if (free !== undefined) return free
    if (this.#arenaCount < this.#maxArenas) {
      this.#arenaCount++
      return new Arena(Buffer.allocUnsafeSlow(this.#arenaBytes), (arena) => this.#free.push(arena))
    }
    while (this.#ring.length > 0) {
      const oldest = this.#ring.shift()
      if (oldest?.retire() === true) return this.#free.pop()
    }
    return undefined
  }
}

/** Memory that is filled once from the start, read by reference, and used again when nobody reads it. */
class Arena {
  readonly buffer: Buffer
  readonly #onFree: (arena: Arena) => void
  filledBytes = 0
  runCount = 0
  /** Tells runs of an earlier filling from this one's. */
  generation = 0
  #readers = 0
  #retired = false
  readonly #tails = new Set<LogTail>()

  constructor(buffer: Buffer, onFree: (arena: Arena) => void) {
    this.buffer = buffer
    this.#onFree = onFree
  }

  /** Where `bytes` begin now. They fit. */
  fill(bytes: Buffer, tail: LogTail): number {
    const start = this.filledBytes
    bytes.copy(this.buffer, start)
    this.filledBytes = start + bytes.length
    this.#tails.add(tail)
    return start
  }

  retain(): void {
    this.#readers++
  }

  release(): void {
    assert(this.#readers > 0, 'an arena is released once for each time it was retained')
    this.#readers--
    if (this.#retired && this.#readers === 0) this.#recycle()
  }

  /** Takes its content out of use; true when it is free at once, false when readers hold it for now. */
  retire(): boolean {
    this.#retired = true
    this.generation++
    for (const tail of this.#tails) tail.dropStale()
    this.#tails.clear()
    if (this.#readers > 0) return false
    this.#recycle()
    return true
  }

  #recycle(): void {
    this.#retired = false
    this.filledBytes = 0
    this.runCount = 0
    this.#onFree(this)
  }
}

/** Whole batches of one partition, one after the other in one arena. */
interface Run {
  readonly firstOffset: Offset
  /** Exclusive. */
  endOffset: Offset
  readonly arena: Arena
  readonly generation: number
  readonly start: number
  end: number
}

/** Bytes of an arena, held until `release`. */
export interface TailSlices {
  readonly chunks: readonly Buffer[]
  readonly sizeBytes: number
  release(): void
}

/** The cached end of one partition's log: runs of batches in offset order, without a gap between them. */
export class LogTail {
  readonly #cache: TailCache
  #runs: Run[] = []

  constructor(cache: TailCache) {
    this.#cache = cache
  }

  /** Copies one batch that begins at `firstOffset` and ends before `endOffset`. */
  append(batch: Buffer, firstOffset: Offset, endOffset: Offset): void {
    const arena = this.#cache.reserve(batch.length)
    const last = this.#runs.at(-1)
    if (arena === undefined || (last !== undefined && last.endOffset > firstOffset)) {
      this.#runs = []
      return
    }
    const start = arena.fill(batch, this)
    if (
      last !== undefined &&
      last.arena === arena &&
      last.generation === arena.generation &&
      last.end === start &&
      last.endOffset === firstOffset &&
      last.end + batch.length - last.start <= maxExtendedRunBytes
    ) {
      last.end = start + batch.length
      last.endOffset = endOffset
      return
    }
    if (last !== undefined && last.endOffset !== firstOffset) this.#runs = []
    arena.runCount++
    this.#runs.push({
      firstOffset,
      endOffset,
      arena,
      generation: arena.generation,
      start,
      end: start + batch.length,
    })
  }

  /** First offset that is cached; undefined when nothing is. */
  get firstOffset(): Offset | undefined {
    return this.#runs[0]?.firstOffset
  }

  /**
   * Whole batches from the one that holds `fetchOffset`; those at or above `endOffset` are left out, and so are those past
   * `maxBytes`, but for the first one when `minOneBatch`. Undefined when `fetchOffset` isn't cached.
   */
  read(fetchOffset: Offset, endOffset: Offset, maxBytes: number, minOneBatch: boolean): TailSlices | undefined {
    let index = this.#find(fetchOffset)
    if (index < 0) return undefined
    const chunks: Buffer[] = []
    const held: Arena[] = []
    let sizeBytes = 0
    let chunkArena: Arena | undefined
    let chunkStart = 0
    let chunkEnd = 0
    for (let run = this.#runs[index]; run !== undefined; run = this.#runs[++index]) {
      if (run.firstOffset >= endOffset) break
      const { start, end } = wholeBatches(
        run,
        fetchOffset,
        endOffset,
        maxBytes - sizeBytes,
        minOneBatch && sizeBytes === 0,
      )
      if (start === end) break
      if (chunkArena === run.arena && chunkEnd === start) {
        chunkEnd = end
      } else {
        if (chunkArena !== undefined) chunks.push(chunkArena.buffer.subarray(chunkStart, chunkEnd))
        if (chunkArena !== run.arena) {
          run.arena.retain()
          held.push(run.arena)
        }
        chunkArena = run.arena
        chunkStart = start
        chunkEnd = end
      }
      sizeBytes += end - start
      if (end < run.end) break
    }
    if (chunkArena !== undefined) chunks.push(chunkArena.buffer.subarray(chunkStart, chunkEnd))
    let isReleased = false
    return {
      chunks,
      sizeBytes,
      release: () => {
        if (isReleased) return
        isReleased = true
        for (const arena of held) arena.release()
      },
    }
  }

  /** Forgets everything: the log was truncated, or its bytes can't be trusted. */
  clear(): void {
    this.#runs = []
  }

  /** Forgets the batches below `offset`, where one begins: they were compacted. */
  dropBelow(offset: Offset): void {
    while (this.#runs[0] !== undefined && this.#runs[0].endOffset <= offset) this.#runs.shift()
    const first = this.#runs[0]
    if (first === undefined || first.firstOffset >= offset) return
    const { buffer } = first.arena
    let start = first.start
    while (readBaseOffset(buffer, start) < offset) start += 12 + buffer.readInt32BE(start + 8)
    this.#runs[0] = { ...first, firstOffset: offset, start }
  }

  /** @internal Drops runs whose arena was taken back. The oldest arenas go first, and so do the oldest runs. */
  dropStale(): void {
    let stale = 0
    for (const run of this.#runs) {
      if (run.generation === run.arena.generation) break
      stale++
    }
    if (stale > 0) this.#runs.splice(0, stale)
  }

  /** Index of the run that holds `offset`; -1 when none does. */
  #find(offset: Offset): number {
    const runs = this.#runs
    let low = 0
    let high = runs.length - 1
    while (low <= high) {
      const middle = (low + high) >>> 1
      const run = runs[middle]!
      if (offset < run.firstOffset) high = middle - 1
      else if (offset >= run.endOffset) low = middle + 1
      else return middle
    }
    return -1
  }
}

/** The part of `run` to give out. `fetchOffset` may lie before the run. */
function wholeBatches(
  run: Run,
  fetchOffset: Offset,
  endOffset: Offset,
  maxBytes: number,
  minOneBatch: boolean,
): { start: number; end: number } {
  if (fetchOffset <= run.firstOffset && endOffset >= run.endOffset && run.end - run.start <= maxBytes) return run
  const { buffer } = run.arena
  let start = -1
  let end = run.start
  let position = run.start
  while (position < run.end) {
    const baseOffset = readBaseOffset(buffer, position)
    const next = position + 12 + buffer.readInt32BE(position + 8)
    const lastOffset = baseOffset + buffer.readInt32BE(position + 23)
    if (lastOffset >= fetchOffset) {
      if (lastOffset >= endOffset) break
      if (start < 0) start = position
      if (next - start > maxBytes && !(minOneBatch && position === start)) break
      end = next
    }
    position = next
  }
  return start < 0 || end < start ? { start: run.start, end: run.start } : { start, end }
}

function readBaseOffset(buffer: Buffer, position: number): number {
  return buffer.readInt32BE(position) * 0x1_0000_0000 + buffer.readUInt32BE(position + 4)
}
