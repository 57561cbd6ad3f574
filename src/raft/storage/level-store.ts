import { Level } from 'level'
import type { KeyValueOperation, KeyValueStore } from './key-value-store.ts'

/**
 * LevelDB in `directory`, made when it is missing. Loaded by `import()` only where a broker keeps its metadata on disk: a
 * broker in memory never loads Level.
 *
 * Level opens without an error after a damaged write-ahead log and skips what it can't read: whoever reads from it has
 * to check that all is there.
 */
export async function openLevelStore(directory: string): Promise<KeyValueStore> {
  const level = new Level<Uint8Array, Uint8Array>(directory, {
    keyEncoding: 'view',
    valueEncoding: 'view',
    // Entries are small, few are read twice, and the whole log is in memory anyway.
    cacheSize: 1 << 20,
    writeBufferSize: 4 << 20,
  })
  await level.open()
  return {
    get: (key) => level.get(key),
    iterate: (from, end) => level.iterator({ gte: from, lt: end }),
    batch: (operations, { sync }) => level.batch(operations.map(toLevel), { sync }),
    close: () => level.close(),
  }
}

function toLevel(operation: KeyValueOperation) {
  return operation.type === 'put' ? operation : { type: 'del' as const, key: operation.key }
}
