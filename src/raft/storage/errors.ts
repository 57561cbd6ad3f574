import { RookeryError } from '../../base/index.ts'

/**
 * The Raft state on disk is damaged, incomplete or newer than this program, or the disk failed. The node must not run on
 * it: what it forgot, a vote or an entry, the quorum may count on.
 */
export class RaftStorageError extends RookeryError {
  override readonly code = 'RAFT_STORAGE_FAILED'
}
