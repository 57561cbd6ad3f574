import { messageOf, RookeryError } from '../base/index.ts'
import { isDiskFull, isOutOfFiles } from '../platform/index.ts'

/**
 * A disk did not do what was asked, or what it gave back is damaged. The partition it names is offline until its
 * directory is opened again; what was acknowledged before stays true.
 */
export class StorageError extends RookeryError {
  readonly code = 'STORAGE_FAILED'
  /** The file or folder at fault. */
  readonly path: string
  /** The disk has no room: service resumes by itself when there is some. */
  readonly isDiskFull: boolean
  /** No file could be opened: service resumes by itself when others are closed. */
  readonly isOutOfFiles: boolean

  constructor(message: string, path: string, options?: { cause?: unknown }) {
    super(message, options)
    this.path = path
    this.isDiskFull = isFull(options?.cause)
    this.isOutOfFiles = isOutOfFiles(options?.cause)
  }
}

/** `error` as a StorageError; one that is none becomes its cause. */
export function storageErrorOf(error: unknown, path: string): StorageError {
  if (error instanceof StorageError) return error
  const full = isFull(error)
  const message = full
    ? `Disk full: no room left for ${path}; nothing is acknowledged there until there is room again`
    : `Storage failed at ${path}: ${messageOf(error)}`
  return new StorageError(message, path, { cause: error })
}

function isFull(error: unknown): boolean {
  return error instanceof StorageError ? error.isDiskFull : isDiskFull(error)
}

/** A log directory belongs to another cluster or another node. */
export class ClusterIdMismatchError extends RookeryError {
  readonly code = 'CLUSTER_ID_MISMATCH'
  readonly directory: string
  /** What the folder's meta.properties says. */
  readonly stored: string
  readonly expected: string

  constructor(kind: 'cluster.id' | 'node.id', directory: string, stored: string, expected: string) {
    super(
      `Folder ${directory} belongs to ${kind} ${stored}, but this node has ${kind} ${expected}. ` +
        `To start with an empty folder and keep the old one beside it: mv ${quoted(directory)} ${quoted(`${directory}.${stored}`)}`,
    )
    this.directory = directory
    this.stored = stored
    this.expected = expected
  }
}

/** For a POSIX shell, whatever the name is. */
function quoted(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`
}
