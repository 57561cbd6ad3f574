import type { Offset } from '../base/index.ts'
import { hashWords, type KeyHash } from './key-hash.ts'

/** The hash of a key, and its offset + 1 as two words; 0: the slot is free. */
const slotWords = hashWords + 2
export const slotBytes = slotWords * 4
const shardBits = 10
const shardCount = 1 << shardBits
const minShardSlots = 4

/**
 * The last offset of each key in a stretch of a log, for compaction: hashes in place of keys, in bounded memory.
 *
 * It is many small tables with open addressing, each of which grows by itself, so that it takes memory in proportion to the
 * keys there are, and no growth holds up the event loop.
 */
export class OffsetMap {
  readonly #hash: KeyHash
  readonly #maxSlots: number
  readonly #loadFactor: number
  readonly #shards: Int32Array[] = []
  readonly #counts = new Int32Array(shardCount)
  #slots = 0
  #size = 0

  /** `maxBytes`: of all tables. `loadFactor`: the part of a table that may be taken. */
  constructor(options: { readonly hash: KeyHash; readonly maxBytes: number; readonly loadFactor: number }) {
    this.#hash = options.hash
    this.#maxSlots = Math.max(shardCount * minShardSlots, Math.floor(options.maxBytes / slotBytes))
    this.#loadFactor = Math.min(0.95, Math.max(0.1, options.loadFactor))
  }

  /** Keys held. */
  get size(): number {
    return this.#size
  }

  get allocatedBytes(): number {
    return this.#slots * slotBytes
  }

  /** Notes that the key lies at `offset`, above all that it was noted with. False when there is no room for another key. */
  put(bytes: Buffer, start: number, count: number, offset: Offset): boolean {
    this.#hash.update(bytes, start, count)
    const { words } = this.#hash
    const index = shardOf(words)
    let shard = this.#shards[index]
    let at = shard === undefined ? -1 : find(shard, words)
    if (shard === undefined || (shard[at + hashWords] === 0 && shard[at + hashWords + 1] === 0)) {
      if (this.#counts[index]! + 1 > (shard === undefined ? 0 : shard.length / slotWords) * this.#loadFactor) {
        shard = this.#grow(index)
        if (shard === undefined) return false
        at = find(shard, words)
      }
      this.#counts[index]!++
      this.#size++
    }
    const table = shard!
    for (let i = 0; i < hashWords; i++) table[at + i] = words[i]!
    const stored = offset + 1
    table[at + hashWords] = Math.floor(stored / 0x1_0000_0000)
    table[at + hashWords + 1] = stored
    return true
  }

  /** The offset that the key was last noted with; -1 when it never was. */
  get(bytes: Buffer, start: number, count: number): Offset {
    this.#hash.update(bytes, start, count)
    const { words } = this.#hash
    const shard = this.#shards[shardOf(words)]
    if (shard === undefined) return -1
    const at = find(shard, words)
    return shard[at + hashWords]! * 0x1_0000_0000 + (shard[at + hashWords + 1]! >>> 0) - 1
  }

  /** A table half as large again; undefined when all memory is in use. */
  #grow(index: number): Int32Array | undefined {
    const old = this.#shards[index]
    const oldSlots = old === undefined ? 0 : old.length / slotWords
    const slots = Math.max(minShardSlots, Math.ceil(oldSlots * 1.5))
    if (this.#slots - oldSlots + slots > this.#maxSlots) return undefined
    const table = new Int32Array(slots * slotWords)
    if (old !== undefined) {
      for (let from = 0; from < old.length; from += slotWords) {
        if (old[from + hashWords] === 0 && old[from + hashWords + 1] === 0) continue
        const entry = old.subarray(from, from + slotWords)
        table.set(entry, find(table, entry))
      }
    }
    this.#slots += slots - oldSlots
    this.#shards[index] = table
    return table
  }
}

/** Word 0 picks the table and word 1 the place in it. */
function shardOf(words: Int32Array): number {
  return words[0]! & (shardCount - 1)
}

/** Where the hash is, or else the free slot where it would go. A table is never full. */
function find(table: Int32Array, words: Int32Array): number {
  let at = ((words[1]! >>> 0) % (table.length / slotWords)) * slotWords
  for (;;) {
    if (table[at + hashWords] === 0 && table[at + hashWords + 1] === 0) return at
    if (
      table[at] === words[0] &&
      table[at + 1] === words[1] &&
      table[at + 2] === words[2] &&
      table[at + 3] === words[3]
    ) {
      return at
    }
    at += slotWords
    if (at === table.length) at = 0
  }
}
