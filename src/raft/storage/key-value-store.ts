/**
 * The narrowest door to the store under the Raft log: ordered keys, atomic batches. Level stands behind it in production, a
 * write-ahead log over the platform's files in simulation, a map for brokers that keep nothing.
 *
 * Keys compare byte by byte. A fault rejects, and leaves open what of the batch is there; nothing may be written after it but to a
 * store that is opened anew. A disk without room is a `FileError` of which `isDiskFull` is true.
 */
export interface KeyValueStore {
  get(key: Uint8Array): Promise<Uint8Array | undefined>
  /** Ascending, from `from` inclusive to `end` exclusive. What is written meanwhile may or may not be seen. */
  iterate(from: Uint8Array, end: Uint8Array): AsyncIterable<readonly [key: Uint8Array, value: Uint8Array]>
  /**
   * All of `operations` or none, after a crash too. Batches take effect in the order of the calls, and a crash loses only
   * the last ones; none that was called before one with `sync` resolved.
   */
  batch(operations: readonly KeyValueOperation[], options: { readonly sync: boolean }): Promise<void>
  close(): Promise<void>
}

export type KeyValueOperation =
  | { readonly type: 'put'; readonly key: Uint8Array; readonly value: Uint8Array }
  | { readonly type: 'delete'; readonly key: Uint8Array }
