import type { LeaderEpoch, TopicPartition } from '../base/index.ts'
import type { Timer } from '../platform/index.ts'
import type { Answer, StateMachine } from './state-machine.ts'

/** Why a request to a coordinator got no answer from its state. All of them are worth a retry but the last. */
export type RuntimeFailure =
  | 'not-coordinator'
  | 'coordinator-load-in-progress'
  | 'coordinator-not-available'
  | 'record-too-large'

export type RuntimeResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: RuntimeFailure }

/** An append that the high watermark has not passed yet. */
export interface PendingWrite {
  readonly keys: ReadonlySet<string>
  /** What is answered when it is committed: its own answers, then those of requests that saw its records. */
  answers: Answer[]
  deadline: Timer | undefined
}

/**
 * The coordinator of one partition in one leader epoch; runtime state only, the rules are in `CoordinatorRuntime`.
 *
 * loading -> active when all was replayed; any -> closed when the epoch ends, when the replica turns out not to lead, or to
 * make place for a fresh load. A closed shard keeps nothing and is never opened again.
 */
export class Shard<M extends StateMachine<R, E>, R, E> {
  readonly partition: TopicPartition
  readonly leaderEpoch: LeaderEpoch
  readonly machine: M
  phase: 'loading' | 'active' | 'closed' = 'loading'
  /** In order of their offsets. */
  readonly pending = new Set<PendingWrite>()
  /** The last pending write about a key. */
  readonly lastWriteOf = new Map<string, PendingWrite>()
  lastWrite: PendingWrite | undefined
  readonly timers = new Map<string, Timer>()
  readonly #waiting = new Map<number, (result: RuntimeResult<unknown>) => void>()

  constructor(partition: TopicPartition, leaderEpoch: LeaderEpoch, machine: M) {
    this.partition = partition
    this.leaderEpoch = leaderEpoch
    this.machine = machine
  }

  wait(ticket: number, resolve: (result: RuntimeResult<unknown>) => void): void {
    this.#waiting.set(ticket, resolve)
  }

  /** A ticket that was answered already (its write timed out before it was committed) is passed over. */
  settle(ticket: number, result: RuntimeResult<unknown>): void {
    const resolve = this.#waiting.get(ticket)
    if (resolve === undefined) return
    this.#waiting.delete(ticket)
    resolve(result)
  }

  addPending(write: PendingWrite): void {
    this.pending.add(write)
    this.lastWrite = write
    for (const key of write.keys) this.lastWriteOf.set(key, write)
  }

  removePending(write: PendingWrite): void {
    write.deadline?.cancel()
    this.pending.delete(write)
    if (this.lastWrite === write) this.lastWrite = undefined
    for (const key of write.keys) if (this.lastWriteOf.get(key) === write) this.lastWriteOf.delete(key)
  }

  /** Cancels every timer and answers everyone who waits with `reason`. */
  close(reason: RuntimeFailure): void {
    this.phase = 'closed'
    for (const timer of this.timers.values()) timer.cancel()
    this.timers.clear()
    for (const write of this.pending) write.deadline?.cancel()
    this.pending.clear()
    this.lastWriteOf.clear()
    this.lastWrite = undefined
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const resolve of waiting) resolve({ ok: false, reason })
  }
}
