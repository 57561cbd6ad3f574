/**
 * coordinator-runtime: one internal-topic partition as a replicated state machine.
 */
export type { PartitionStore, StoreAppendResult, StoreFailure } from './ports.ts'
