import { type Files, replaceFile } from '../../platform/index.ts'
import type { LogIndex, NodeId, Term } from '../core/types.ts'
import { seal, unseal } from './encoding.ts'

/**
 * A second, independent witness of what was durable. Level can lose synced writes without a word when its log is damaged; a
 * node that starts with less than this file says must not vote or lead.
 */
export interface QuorumState {
  readonly term: Term
  readonly votedFor: NodeId | null
  /** The log had this entry, with this CRC (which vouches for all before it); 0, 0 in a fresh log. */
  readonly lastDurableIndex: LogIndex
  readonly lastDurableCrc: number
}

export interface QuorumStateStore {
  /** Undefined when none was ever written. Throws `RaftStorageError` when it is damaged. */
  read(): Promise<QuorumState | undefined>
  /** Durable, whole or not at all, when it resolves. One call at a time. */
  write(state: QuorumState): Promise<void>
}

const fileName = 'quorum-state'
const maxFileBytes = 4096

/** The file `quorum-state` in `directory`, which exists: CRC, then `[1, term, votedFor | -1, lastDurableIndex, lastDurableCrc]`. */
export function quorumStateFile(files: Files, directory: string): QuorumStateStore {
  const path = `${directory}/${fileName}`
  return {
    async read() {
      const sealed = await files.readFile(path, maxFileBytes)
      if (sealed === undefined) return undefined
      const fields = unseal(sealed, `the file ${path}`)
      const term = fields.integer() as Term
      const votedFor = fields.integer(-1)
      return {
        term,
        votedFor: votedFor === -1 ? null : (votedFor as NodeId),
        lastDurableIndex: fields.integer() as LogIndex,
        lastDurableCrc: fields.integer(),
      }
    },
    async write({ term, votedFor, lastDurableIndex, lastDurableCrc }) {
      const sealed = seal([1, term, votedFor ?? -1, lastDurableIndex, lastDurableCrc])
      await replaceFile(files, directory, fileName, sealed)
    },
  }
}
