import type { MetadataRecord } from '../../metadata/index.ts'

/**
 * Where decided records go. Raft mode appends them to the quorum's log, ZooKeeper mode writes znodes. Synchronous on
 * purpose: the loop knows the index of each entry before it decides the next one.
 */
export interface RecordSink {
  /** Index that the next entry gets. Only asked, and only true, while this node is the active controller. */
  nextIndex(): number
  /** Hands over one entry, to be stored at `nextIndex()`, after all that were handed over before. */
  append(records: readonly MetadataRecord[]): AppendOutcome
}

/**
 * 'full': too much waits to be stored; the same entry may be tried again when some of it is. 'not-controller': this node no
 * longer is it. In both cases nothing of the entry will be stored.
 */
export type AppendOutcome = 'appended' | 'full' | 'not-controller'
