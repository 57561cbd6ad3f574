import { openDurableStorage, openMemoryStorage, type RaftStorage } from '../raft/index.ts'
import type { RaftStorageRequest } from './running-node.ts'

/** The Raft log in Level, beside the partitions. Loads Level. */
export function raftStorageOnDisk(request: RaftStorageRequest): Promise<RaftStorage> {
  const { directory, platform, bootstrap, scheduleSync } = request
  const { files, timers } = platform
  return openDurableStorage({ files, timers, directory, bootstrap, scheduleSync })
}

/** A Raft log that ends with its process. Loads nothing. */
export function memoryRaftStorage({ platform, bootstrap }: RaftStorageRequest): Promise<RaftStorage> {
  return openMemoryStorage({ timers: platform.timers, bootstrap })
}
