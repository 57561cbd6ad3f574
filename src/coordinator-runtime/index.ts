/**
 * coordinator-runtime: one partition of an internal topic as a replicated state machine. It knows nothing of groups or
 * transactions: it owns the partitions that this broker leads, and carries a pure machine's decisions out.
 *
 * `StateMachine` is what a coordinator implements, `Outcome` what its decisions return; `CoordinatorRuntime` runs them;
 * `PartitionStore` is the port to the log that `node/` fills in.
 *
 * The contract of a decision, all in one turn of the loop:
 *
 *     decide   the machine reads its newest state, and may change what isn't stored
 *     append   its records, as one batch: all of them or none; refused: `onRefused` puts back what was changed
 *     replay   the same records into the state, so that the next decision sees them
 *     timers   set and cancelled
 *     answer   later: when the high watermark has passed the records
 *
 * What holds:
 * - Nobody hears of a record that may yet be lost. A decision without records that may have seen uncommitted ones about the
 *   same key is answered after them. (The newest state is read, and the answer waits; no second, committed copy of the
 *   state is kept. Kafka keeps one, and its reads don't wait.)
 * - State never holds what the log won't: a write that fails after its append drops the state and loads it anew. A write
 *   that only takes long is answered 'coordinator-not-available' and stays, as its records are still in the log.
 * - Load and unload are fenced by leader epoch: late news of an older epoch changes nothing, and a store call names the
 *   epoch it is for.
 * - Loading holds the event loop for a few milliseconds a turn, however many partitions load at once.
 *
 * All of it runs on the event loop. A machine's assertion that fails is a bug and is not caught here.
 */
export type { PartitionStore, StoreAppendResult, StoreBounds, StoreFailure } from './ports.ts'
export { CoordinatorRuntime, type CoordinatorRuntimeOptions } from './runtime.ts'
export type { RuntimeFailure, RuntimeResult } from './shard.ts'
export {
  type Answer,
  answer,
  type News,
  type Now,
  type Outcome,
  type RecordCodec,
  type StateMachine,
  type Ticket,
  type TimerChange,
} from './state-machine.ts'
