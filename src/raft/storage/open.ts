import { dirname } from 'node:path'
import { type Files, hasRoomFor, type Timers } from '../../platform/index.ts'
import type { Membership } from '../core/types.ts'
import type { KeyValueStore } from './key-value-store.ts'
import { MemoryStore } from './memory-store.ts'
import { quorumStateFile } from './quorum-state.ts'
import { RaftStorage } from './raft-storage.ts'

/** See `RaftStorageOptions` for `bootstrap`. */
export interface OpenOptions {
  readonly timers: Timers
  readonly bootstrap: Membership | undefined
}

/** What opening a store may write: Level stores what its write-ahead log holds, 4 MiB, in another file. */
const bytesToOpen = 4 << 20

/** Decides when a sync may run; the process's scheduler of all syncs is one. Settles as `work` does. */
export type ScheduleSync = (work: () => Promise<void>) => Promise<void>

/** On disk: Level in `<directory>/log`, the independent witness in `<directory>/quorum-state`. Makes the folder (not its parent) when it is missing. */
export async function openDurableStorage(
  options: OpenOptions & {
    readonly files: Files
    readonly directory: string
    readonly scheduleSync: ScheduleSync
    /** Opens the store in a folder; Level when left out. A simulation has one of its own. */
    readonly openStore?: (directory: string) => Promise<KeyValueStore>
  },
): Promise<RaftStorage> {
  const { files, directory, timers, bootstrap, scheduleSync } = options
  await files.makeDirectory(directory)
  await files.syncDirectory(dirname(directory))
  const openStore = options.openStore ?? (await import('./level-store.ts')).openLevelStore
  const open = async () => withScheduledSyncs(await openStore(`${directory}/log`), scheduleSync)
  const store = await open()
  await files.syncDirectory(directory)
  const recovery = { hasRoom: () => hasRoomFor(files, directory, bytesToOpen), reopenStore: open }
  return await RaftStorage.open({ store, quorumState: quorumStateFile(files, directory), timers, bootstrap, recovery })
}

/**
 * Whether `directory` holds no Raft log: neither was there ever one, nor anything of one. What the rule for a first boot of several
 * voters asks: only when all of them are empty may they be formatted as a new quorum. Throws `RaftStorageError` when a store
 * that is there can't be opened.
 */
export async function isDurableStorageEmpty(options: {
  readonly files: Files
  readonly directory: string
  /** As for `openDurableStorage`. */
  readonly openStore?: (directory: string) => Promise<KeyValueStore>
}): Promise<boolean> {
  const { files, directory } = options
  if ((await files.stat(`${directory}/quorum-state`)) !== undefined) return false
  if ((await files.list(`${directory}/log`)) === undefined) return true
  const openStore = options.openStore ?? (await import('./level-store.ts')).openLevelStore
  const store = await openStore(`${directory}/log`)
  try {
    for await (const _ of store.iterate(new Uint8Array(0), Uint8Array.of(255))) return false
    return true
  } finally {
    await store.close()
  }
}

/** Nothing survives the process; nothing is loaded for it either. */
export async function openMemoryStorage({ timers, bootstrap }: OpenOptions): Promise<RaftStorage> {
  return await RaftStorage.open({ store: new MemoryStore(), quorumState: undefined, timers, bootstrap })
}

/** Level syncs in libuv's thread pool like everyone else: its syncs are scheduled together with those of the partitions. */
function withScheduledSyncs(store: KeyValueStore, scheduleSync: ScheduleSync): KeyValueStore {
  return {
    get: (key) => store.get(key),
    iterate: (from, end) => store.iterate(from, end),
    batch: (operations, options) => {
      const write = () => store.batch(operations, options)
      return options.sync ? scheduleSync(write) : write()
    },
    close: () => store.close(),
  }
}
