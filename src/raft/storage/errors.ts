import { RookeryError } from '../../base/index.ts'
import { isDiskFull } from '../../platform/index.ts'

/**
 * The Raft state on disk is damaged, incomplete or newer than this program, or the disk failed. The node must not run on
 * it: what it forgot, a vote or an entry, the quorum may count on.
 */
export class RaftStorageError extends RookeryError {
  override readonly code = 'RAFT_STORAGE_FAILED'
  /** There was no room: it may do when there is some. */
  readonly isDiskFull: boolean

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.isDiskFull = isDiskFull(options?.cause)
  }
}
