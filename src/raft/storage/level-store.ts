import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { isMainThread } from 'node:worker_threads'
import { Level } from 'level'
import { messageOf } from '../../base/index.ts'
import { FileError } from '../../platform/index.ts'
import { RaftStorageError } from './errors.ts'
import type { KeyValueOperation, KeyValueStore } from './key-value-store.ts'

/** How much an iterator fetches at once: with Level's 16 KiB, most of the time of a start goes into asking for more. */
const highWaterMarkBytes = 1 << 20

/** `RTLD_NODELETE` of dlopen(3), of which Node has no constant: what is loaded stays when it is closed. Elsewhere it stays anyway, or has no such flag. */
const stayLoaded: Partial<Record<NodeJS.Platform, number>> = { linux: 0x1000, freebsd: 0x1000, darwin: 0x80 }

if (!isMainThread) keepLevelLoaded()

/**
 * LevelDB compacts in a thread of its own, which it never ends. Node unloads a native module with the last worker thread
 * that has it, under the feet of that thread: the process would end with SIGSEGV. Of the main thread nothing is unloaded.
 */
function keepLevelLoaded(): void {
  const flag = stayLoaded[process.platform]
  if (flag === undefined) return
  for (const file of Object.keys(createRequire(import.meta.url).cache)) {
    if (file.includes('classic-level') && file.endsWith('.node')) {
      process.dlopen({ exports: {} }, file, constants.dlopen.RTLD_LAZY | flag)
    }
  }
}

/**
 * LevelDB in `directory`, made when it is missing. Throws `RaftStorageError` when it can't be opened, being in use for instance. Loaded by `import()` only where a broker keeps its metadata on disk: a
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
  try {
    await level.open()
  } catch (error) {
    const cause = (error as { cause?: unknown }).cause ?? error
    const full = fullDiskError(cause, 'open', directory)
    const reason =
      full === undefined
        ? `Cannot open the Raft log in ${directory}`
        : `The disk is full: no room to open the Raft log in ${directory}`
    throw new RaftStorageError(`${reason}: ${messageOf(cause)}`, { cause: full ?? error })
  }
  /** Level writes in threads, one for each call, which overtake each other: a batch begins when the one before is over. */
  let last: Promise<unknown> = Promise.resolve()
  return {
    get: (key) => level.get(key),
    iterate: (from, end) => level.iterator({ gte: from, lt: end, highWaterMarkBytes }),
    batch: (operations, { sync }) => {
      const write = async () => {
        try {
          await level.batch(operations.map(toLevel), { sync })
        } catch (error) {
          throw fullDiskError(error, 'write', directory) ?? error
        }
      }
      const written = last.then(write, write)
      last = written
      return written
    },
    close: () => level.close(),
  }
}

/** Level gives what the system said only as its text. Undefined for any other error. */
function fullDiskError(error: unknown, operation: string, directory: string): FileError | undefined {
  const text = `${(error as { code?: unknown } | null)?.code} ${messageOf(error)}`
  const systemCode = /no space left|not enough space|ENOSPC/i.test(text)
    ? 'ENOSPC'
    : /quota exceeded|EDQUOT/i.test(text)
      ? 'EDQUOT'
      : undefined
  return systemCode && new FileError(operation, directory, systemCode, { cause: error })
}

function toLevel(operation: KeyValueOperation) {
  return operation.type === 'put' ? operation : { type: 'del' as const, key: operation.key }
}
