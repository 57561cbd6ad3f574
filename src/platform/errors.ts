import { addressText, RookeryError } from '../base/index.ts'

/** A call on a file or folder failed. `systemCode` decides what to do: ENOSPC, EIO, ENOENT, EACCES, EFBIG ... */
export class FileError extends RookeryError {
  override readonly code = 'FILE_FAILED'
  /** The port's call: open, read, write, sync, truncate, rename ... */
  readonly operation: string
  readonly path: string
  readonly systemCode: string

  constructor(operation: string, path: string, systemCode: string, options?: { cause?: unknown }) {
    super(`Cannot ${operation} ${path} (${systemCode})`, options)
    this.operation = operation
    this.path = path
    this.systemCode = systemCode
  }
}

/** Listening or connecting failed, or a connection broke. `systemCode`: EADDRINUSE, ECONNREFUSED, ECONNRESET, ETIMEDOUT ... */
export class NetworkError extends RookeryError {
  override readonly code = 'NETWORK_FAILED'
  /** listen, connect or transfer. */
  readonly operation: string
  /** host:port */
  readonly address: string
  readonly systemCode: string

  constructor(operation: string, host: string, port: number, systemCode: string, options?: { cause?: unknown }) {
    const address = addressText({ host, port })
    super(`Cannot ${operation} ${operation === 'listen' ? 'on' : 'to'} ${address} (${systemCode})`, options)
    this.operation = operation
    this.address = address
    this.systemCode = systemCode
  }
}

/** Another process, or another node in this process, uses the folder. */
export class DirectoryLockedError extends RookeryError {
  override readonly code = 'DIRECTORY_LOCKED'
  readonly path: string
  /** -1 when the lock file doesn't tell. */
  readonly holderPid: number

  constructor(path: string, holderPid: number, isThisProcess: boolean) {
    const holder = isThisProcess ? `another node in this process (${holderPid})` : `process ${holderPid}`
    super(`Folder ${path} is in use by ${holder}: stop that one first, or use another folder`)
    this.path = path
    this.holderPid = holderPid
  }
}

/** An offloaded task threw (the message is the task's), or its worker stopped before it was done. */
export class OffloadError extends RookeryError {
  override readonly code = 'OFFLOAD_FAILED'
}

/** The process, or the system, has as many files and sockets open as it may: an error that passes when some are closed. */
export function isOutOfFiles(error: unknown): boolean {
  return error instanceof FileError && (error.systemCode === 'EMFILE' || error.systemCode === 'ENFILE')
}

/** The disk, or what this user may have of it, has no room left: an error that passes when there is some. */
export function isDiskFull(error: unknown): boolean {
  return error instanceof FileError && (error.systemCode === 'ENOSPC' || error.systemCode === 'EDQUOT')
}

/** The system's code of what a call of Node threw; 'EUNKNOWN' when it carries none. */
export function systemCodeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : 'EUNKNOWN'
}
