/**
 * platform: the only door to the world. Clock and timers, randomness, files, TCP, and work off the event loop.
 *
 * Above this folder nothing reads a clock, draws a random number, sets a timer or opens a file or socket directly; that is
 * what lets a whole node, and a whole cluster, run in one process from one seed.
 *
 *   ports.ts        the contract: read it first; every comment there binds both implementations
 *   errors.ts       what they throw
 *   disk-room.ts    whether a disk that was full has room again
 *   replace-file.ts a small file as a whole, over the port
 *   waiting.ts      pauses and turns of the event loop, over the port
 *   real/           Node: `createRealPlatform`, `createRealThreads`
 *   memory/         files that live as long as the process: `createMemoryFiles`
 *   manual/         Node, with a clock that a test moves: `createManualPlatform`
 *   simulated/      virtual time, network and disk from a seed: a face of its own, so that a node does not load it
 *
 * Everything runs on the event loop of the caller, apart from the asynchronous calls of `Files` (libuv's thread pool) and
 * offloaded tasks (worker threads, started with the first task).
 *
 * Invariants that callers build on:
 * - Bytes are durable after `sync`, names after `syncDirectory`, and not before: a file handle whose sync failed
 *   fails each later one, since the system has dropped the pages by then.
 * - A directory lock is held by one node at most. On disk it is the file `.lock` (pid, start of the process, boot id).
 * - What one turn of the loop writes to a socket leaves in one system call.
 * - Timers and idle workers don't keep the process alive; sockets, listeners, calls and tasks under way do.
 */
export { hasRoomFor } from './disk-room.ts'
export { DirectoryLockedError, FileError, isDiskFull, isOutOfFiles, NetworkError, OffloadError } from './errors.ts'
export { createHaltingPlatform, type HaltingPlatform } from './halting/halting-platform.ts'
export { Turnstile } from './halting/turnstile.ts'
export { createManualPlatform, type ManualPlatform, type Time } from './manual/manual-platform.ts'
export { createMemoryFiles } from './memory/memory-files.ts'
export type {
  Clock,
  DirectoryEntry,
  DirectoryLock,
  FileHandle,
  FileStat,
  Files,
  Listener,
  ListenOptions,
  Network,
  Offload,
  OffloadTask,
  OpenMode,
  Platform,
  Random,
  Socket,
  SocketHandlers,
  Thread,
  ThreadPort,
  ThreadProgram,
  Threads,
  Timer,
  Timers,
} from './ports.ts'
export { directoryLockHolder } from './real/directory-lock.ts'
export { createRealPlatform } from './real/real-platform.ts'
export { createRealThreads } from './real/threads.ts'
export { replaceFile } from './replace-file.ts'
export { nextTurn, pause } from './waiting.ts'
