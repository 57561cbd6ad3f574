import type { MetadataRecord } from '../../metadata/index.ts'

/**
 * Where decided records go. Raft mode appends them to the quorum's log, ZooKeeper mode writes znodes. Synchronous on
 * purpose: the loop knows the index of each entry before it decides the next one.
 */
export interface RecordSink {
  /** Index that the next entry gets. Only asked, and only true, while this node is the active controller. */
  nextIndex(): number
  /**
   * Hands over one entry, to be stored at `nextIndex()`, after all that were handed over before. False: this node
   * no longer is the controller, or can't take an entry now; nothing of it will be stored.
   */
  append(records: readonly MetadataRecord[]): boolean
}
