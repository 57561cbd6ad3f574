import { dirname } from 'node:path'
import type { Files, Timers } from '../../platform/index.ts'
import type { Membership } from '../core/types.ts'
import { MemoryStore } from './memory-store.ts'
import { quorumStateFile } from './quorum-state.ts'
import { RaftStorage } from './raft-storage.ts'

/** See `RaftStorageOptions` for `bootstrap`. */
export interface OpenOptions {
  readonly timers: Timers
  readonly bootstrap: Membership | undefined
}

/** On disk: Level in `<directory>/log`, the independent witness in `<directory>/quorum-state`. Makes the folder (not its parent) when it is missing. */
export async function openDurableStorage(
  options: OpenOptions & { readonly files: Files; readonly directory: string },
): Promise<RaftStorage> {
  const { files, directory, timers, bootstrap } = options
  await files.makeDirectory(directory)
  await files.syncDirectory(dirname(directory))
  const { openLevelStore } = await import('./level-store.ts')
  const store = await openLevelStore(`${directory}/log`)
  await files.syncDirectory(directory)
  return await RaftStorage.open({ store, quorumState: quorumStateFile(files, directory), timers, bootstrap })
}

/** Nothing survives the process; nothing is loaded for it either. */
export async function openMemoryStorage({ timers, bootstrap }: OpenOptions): Promise<RaftStorage> {
  return await RaftStorage.open({ store: new MemoryStore(), quorumState: undefined, timers, bootstrap })
}
