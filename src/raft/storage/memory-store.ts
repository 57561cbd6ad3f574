import type { KeyValueOperation, KeyValueStore } from './key-value-store.ts'

/** Keeps everything in memory, for a broker that is to leave nothing behind. What it is given is not copied. */
export class MemoryStore implements KeyValueStore {
  /** By key in latin1, which sorts as its bytes do. */
  readonly #values = new Map<string, Uint8Array>()

  async get(key: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#values.get(textOf(key))
  }

  async *iterate(from: Uint8Array, end: Uint8Array): AsyncGenerator<readonly [Uint8Array, Uint8Array]> {
    const [fromText, endText] = [textOf(from), textOf(end)]
    const keys = [...this.#values.keys()].filter((key) => key >= fromText && key < endText)
    keys.sort((a, b) => (a < b ? -1 : 1))
    for (const key of keys) yield [Buffer.from(key, 'latin1'), this.#values.get(key)!]
  }

  async batch(operations: readonly KeyValueOperation[]): Promise<void> {
    this.apply(operations)
  }

  /** The batch, at once. */
  apply(operations: readonly KeyValueOperation[]): void {
    for (const operation of operations) {
      if (operation.type === 'put') this.#values.set(textOf(operation.key), operation.value)
      else this.#values.delete(textOf(operation.key))
    }
  }

  async close(): Promise<void> {
    this.#values.clear()
  }
}

function textOf(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('latin1')
}
