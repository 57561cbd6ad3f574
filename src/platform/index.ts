/**
 * platform: the only door to the world. Clock and timers, randomness, files, TCP, and work off the event loop.
 *
 * Above this folder nothing reads a clock, draws a random number, sets a timer or opens a file or socket directly; that is
 * what lets a whole node, and a whole cluster, run in one process from one seed.
 */
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
  Timer,
  Timers,
} from './ports.ts'
