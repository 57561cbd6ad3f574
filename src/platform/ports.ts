import type { Uuid } from '../base/index.ts'

/** Everything a node may do to the world, in one value that is passed down. */
export interface Platform {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
  readonly files: Files
  readonly network: Network
  readonly offload: Offload
}

export interface Clock {
  /** Wall clock, whole milliseconds since 1970. May jump either way: use it for record timestamps and for display. */
  now(): number
  /** Milliseconds since some fixed moment, with a fraction; never goes back. Use it for every duration and deadline. */
  monotonic(): number
}

export interface Timers {
  /**
   * Runs `callback` once, `delayMs` (0 or more) from now at the earliest. A pending timer doesn't keep the process alive, unless
   * `keepsAlive` says so: where a node ends, its timer may be all that is left to run.
   */
  set(delayMs: number, callback: () => void, options?: { readonly keepsAlive: boolean }): Timer
  /** Runs `callback` after the I/O of this turn of the event loop was handled. */
  defer(callback: () => void): void
}

export interface Timer {
  /** No effect when it ran already or was cancelled. */
  cancel(): void
}

export interface Random {
  /** Uniform in [0, 1). */
  float(): number
  /** Uniform whole number in [0, end). `end`: 1 to 2^48. */
  int(end: number): number
  /** A random UUID (version 4) in Kafka's text form; never `zeroUuid`, never begins with '-'. */
  uuid(): Uuid
  bytes(length: number): Buffer
}

/**
 * Files. A path is absolute. Every fault is a `FileError` with the operation, the path and the system's code
 * (ENOSPC, EIO, ENOENT ...). What is written is durable only after `sync` of the file, and a file's name (created, renamed,
 * removed) only after `syncDirectory` of its folder: the simulated disk forgets the rest at a crash.
 *
 * The `...Sync` calls run on the event loop: only for the page cache (small writes to a segment, hot reads). The others
 * go through the thread pool.
 */
export interface Files {
  /** 'create' makes the file when it is missing; all modes but 'read' can write. */
  open(path: string, mode: OpenMode): Promise<FileHandle>
  openSync(path: string, mode: OpenMode): FileHandle
  /** Whole content; undefined when there is no such file. Throws when it is larger than `maxBytes`. */
  readFile(path: string, maxBytes: number): Promise<Buffer | undefined>
  /** Names, sorted, of what is directly inside; undefined when there is no such folder. */
  list(path: string): Promise<readonly DirectoryEntry[] | undefined>
  stat(path: string): Promise<FileStat | undefined>
  /** With its parents; no error when it is there. */
  makeDirectory(path: string): Promise<void>
  /** One folder, whose parent is there; no error when it is there itself. */
  makeDirectorySync(path: string): void
  /** Replaces `to`. Both in one file system. */
  rename(from: string, to: string): Promise<void>
  /** The same at once, for a folder of which files are in use by their paths. */
  renameSync(from: string, to: string): void
  /** One file; no error when it is not there. */
  remove(path: string): Promise<void>
  /** A folder with all that is inside; no error when it is not there. */
  removeTree(path: string): Promise<void>
  /** Makes the names inside `path` durable. */
  syncDirectory(path: string): Promise<void>
  /**
   * Takes the exclusive right to use a folder, for as long as this process lives or until `release`; the lock of a dead
   * process doesn't count. Throws `DirectoryLockedError` (with the holder) when another process, or another
   * node in this one, holds it.
   */
  lockDirectory(path: string): Promise<DirectoryLock>
  /** Bytes free and total of the file system that holds `path`. */
  space(path: string): Promise<{ readonly freeBytes: number; readonly totalBytes: number }>
  /** Files and sockets that this process may have open at a time; infinity when the system sets no limit or doesn't tell. */
  maxOpen(): Promise<number>
  /** A new empty folder for temporary data, whose name begins with `prefix`. */
  makeTemporaryDirectory(prefix: string): Promise<string>
}

export type OpenMode = 'read' | 'write' | 'create'

export interface DirectoryEntry {
  readonly name: string
  readonly kind: 'file' | 'directory'
}

export interface FileStat {
  readonly sizeBytes: number
  readonly modifiedMs: number
  readonly kind: 'file' | 'directory'
}

export interface DirectoryLock {
  release(): Promise<void>
}

/** One open file. Positions and lengths are in bytes. Writes by position: there is no cursor. */
export interface FileHandle {
  readonly path: string
  /** Current size. */
  sizeSync(): number
  /** Writes all of `chunks`, one after the other, from `position`. After a fault any part of them may be in the file. */
  writeSync(chunks: readonly Uint8Array[], position: number): void
  write(chunks: readonly Uint8Array[], position: number): Promise<void>
  /** Fills `target` from `position`; returns how many bytes there were (fewer than asked only at the end of the file). */
  readSync(target: Uint8Array, position: number): number
  read(target: Uint8Array, position: number): Promise<number>
  truncate(sizeBytes: number): Promise<void>
  truncateSync(sizeBytes: number): void
  /** fdatasync: all that was written before the call is durable when it resolves. Never retried and then believed. */
  sync(): Promise<void>
  /** Only when no call on it is in flight. */
  close(): Promise<void>
  /** The same at once, for a file that others keep a name of: the last close of a removed one gives its blocks back, which takes a while. */
  closeSync(): void
}

/** TCP. */
export interface Network {
  /** Port 0 picks a free one. Throws `NetworkError` (EADDRINUSE, EACCES ...). */
  listen(options: ListenOptions, onConnection: (socket: Socket) => void): Promise<Listener>
  /** Resolves when connected. Throws `NetworkError` (ECONNREFUSED, ETIMEDOUT ...). */
  connect(options: { host: string; port: number; timeoutMs: number }): Promise<Socket>
}

export interface ListenOptions {
  /** '0.0.0.0' and '::' are all addresses; 'localhost' is 127.0.0.1 and, where there is one, ::1, on the same port. */
  readonly host: string
  readonly port: number
}

export interface Listener {
  readonly host: string
  readonly port: number
  /** Stops accepting; connections that were accepted stay. */
  close(): Promise<void>
}

/** A connected TCP socket with TCP_NODELAY. Data flows as soon as handlers are set. */
export interface Socket {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly localAddress: string
  readonly localPort: number
  /** Sets the handlers, once. `onClose` is called exactly once, last, also after `destroy`. */
  start(handlers: SocketHandlers): void
  /**
   * Queues `chunks` as one write. They must not change until they are written: `onWritten`, when given, runs then (or
   * when the socket closes without having written them). False: more than the socket's mark is queued, wait for `onDrain`.
   */
  write(chunks: readonly Uint8Array[], onWritten?: () => void): boolean
  /** Bytes queued and not yet handed to the system. */
  readonly queuedBytes: number
  /** Stops and resumes `onData`. */
  pause(): void
  resume(): void
  /** Closes after what is queued was written. */
  end(): void
  /** Closes at once. */
  destroy(): void
}

export interface SocketHandlers {
  /** `chunk` is lent until the handler returns: other bytes are read into its memory then. */
  onData(chunk: Buffer): void
  onDrain?(): void
  /** The peer ended its side or the connection broke; `error` tells why in the second case. */
  onClose(error: Error | undefined): void
}

/** Work of more than a few milliseconds, off the event loop; runs inline when simulated. */
export interface Offload {
  /**
   * An error of the task rejects with an `OffloadError` of the same message. Inputs and results are structured-cloned; Buffers
   * come back as Uint8Array. `input` must not change until then: it is cloned when a worker is free.
   */
  run<Input, Output>(task: OffloadTask<Input, Output>, input: Input): Promise<Output>
}

/**
 * A pure function that a worker can load by itself: exported as `name` from the module at `module`, which `rolldown.config.ts` names
 * as an entry, so that the package has both.
 */
export interface OffloadTask<Input, Output> {
  /** `import.meta.url` of the module that exports `run` under `name`. */
  readonly module: string
  readonly name: string
  readonly run: (input: Input) => Output
}

/**
 * Threads of the system, each with an event loop of its own: for a part of a node that must get its turns whatever the others do.
 * No part of `Platform`: a simulated world has none, and whoever is in one has them on its event loop.
 */
export interface Threads {
  /** `input` is structured-cloned. What keeps the program from starting is the thread's end. */
  start<Input>(program: ThreadProgram<Input>, input: Input): Thread
}

/** A program that a thread can load by itself, as it does an `OffloadTask`. */
export interface ThreadProgram<Input> {
  /** `import.meta.url` of the module that exports the program under `name`. */
  readonly module: string
  readonly name: string
  /** Runs in the thread, which goes on until it is stopped. What nobody in it catches ends it. */
  readonly run: (port: ThreadPort, input: Input) => void
}

/** One end of the way between a thread and who started it. */
export interface ThreadPort {
  /**
   * Messages are structured-cloned, and come in order; those of a thread that ended are dropped. The memory of `moved` goes over,
   * and is gone here. Throws for what can't be cloned.
   */
  post(message: unknown, moved?: readonly ArrayBuffer[]): void
  /** Once. Messages wait for it. */
  onMessage(listener: (message: unknown) => void): void
}

/** A thread, for who started it. It keeps the process alive. */
export interface Thread extends ThreadPort {
  /** Called once, when it has ended, after all its messages; `error`: what nobody in it caught. */
  onEnd(listener: (error: Error | undefined) => void): void
  /** Ends it wherever it is. Resolves when it has ended. */
  stop(): Promise<void>
}
