import { RookeryError } from '../base/index.ts'

/** What is open beside segments and connections: the metadata log, listeners, checkpoints, what the runtime itself needs. */
const reserved = 100
/** Below this many nothing useful could be served. */
const minOpenFiles = 256
/** Files of segments that stay open while nobody uses them, where the system allows many. */
const maxIdleFiles = 2048
/** From here on nobody has to think of the limit. */
const plenty = 16_384

/** The system lets this process open too few files and sockets. */
export class OpenFilesError extends RookeryError {
  override readonly code = 'OPEN_FILES_TOO_FEW'
  readonly limit: number

  constructor(limit: number) {
    super(
      `This process may have ${limit} files and sockets open at a time, and a node needs ${minOpenFiles} at least. ` +
        'Allow more before it is started: ulimit -n 65536, or LimitNOFILE=65536 of its systemd unit',
    )
    this.limit = limit
  }
}

/** How the files that the system allows are shared out, so that neither segments nor connections take what the others need. */
export interface OpenFiles {
  readonly limit: number
  /** Segment files kept open while idle. */
  readonly maxIdleFiles: number
  /** Segment files open at a time. */
  readonly maxFiles: number
  readonly maxConnections: number
  /** So few that a person should know. */
  readonly isTight: boolean
}

/** Half for files, half for connections. Throws `OpenFilesError`. */
export function shareOpenFiles(limit: number): OpenFiles {
  if (limit < minOpenFiles) throw new OpenFilesError(limit)
  const maxFiles = Math.floor((limit - reserved) / 2)
  return {
    limit,
    maxFiles,
    maxIdleFiles: Math.min(maxIdleFiles, Math.floor((maxFiles * 2) / 3)),
    maxConnections: Math.ceil((limit - reserved) / 2),
    isTight: limit < plenty,
  }
}
