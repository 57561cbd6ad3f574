import { LRUCache } from 'lru-cache'
import type { Segment } from './segment.ts'

/** Bounds the memory of the indexes of segments that take no appends: the longest unused are dropped, being in files. */
export class IndexCache {
  readonly #cache: LRUCache<Segment, true>

  constructor(options: { readonly maxBytes: number }) {
    this.#cache = new LRUCache<Segment, true>({
      maxSize: Math.max(1, options.maxBytes),
      sizeCalculation: (_, segment) => Math.max(1, segment.indexBytes),
      dispose: (_, segment, reason) => {
        if (reason !== 'set') segment.dropIndexes()
      },
    })
  }

  /** The indexes of `segment` are loaded, stored, and were just used. */
  touch(segment: Segment): void {
    if (this.#cache.get(segment) !== undefined) return
    this.#cache.set(segment, true)
    if (!this.#cache.has(segment)) segment.dropIndexes()
  }

  /** `touch`, where someone may have loaded them. */
  touchIfLoaded(segment: Segment): void {
    if (segment.indexes !== undefined) this.touch(segment)
  }

  /** The segment is gone. */
  forget(segment: Segment): void {
    this.#cache.delete(segment)
  }
}
