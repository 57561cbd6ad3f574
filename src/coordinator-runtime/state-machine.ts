import type { StoreFailure } from './ports.ts'

/**
 * The pure part of a coordinator: the state of one partition of its internal topic. It reads no clock, holds no promise and
 * sets no timer; what it wants of the world is in the outcome that it returns.
 */
export interface StateMachine<R, E> {
  /**
   * Takes a record into the state: each one that an outcome held, right after it was appended, and on loading all that
   * the partition holds, in order. Replaying a record that the state has already (a decision may have changed it in
   * advance) changes nothing.
   */
  replay(record: R): void
  /** What a record is about. An answer that tells of this is held back until the record is committed. */
  keyOf(record: R): string
  /** Everything was replayed; from now on the machine is asked. */
  onLoaded(now: Now): Outcome<R, E>
  /** A timer that an outcome had set. */
  onTimer(event: E, now: Now): Outcome<R, E>
}

/** Turns records into what is in the log and back. */
export interface RecordCodec<R> {
  /** `value` null is a tombstone. */
  encode(record: R): { readonly key: Buffer; readonly value: Buffer | null }
  /** Undefined for a kind of record that this coordinator doesn't know and may pass over. Throws on one it should know. */
  decode(key: Buffer, value: Buffer | null): R | undefined
}

/** The time of one decision. */
export interface Now {
  /** Milliseconds since 1970; for what is stored. */
  readonly wallMs: number
  /** Milliseconds since some moment; for deadlines. */
  readonly monotonicMs: number
}

/** What a decision leads to. Everything left out is nothing. */
export interface Outcome<R, E> {
  /** Appended as one batch: all of them or none. */
  readonly records?: readonly R[]
  /** Given once `records`, and all that was written before about the same key, is committed. */
  readonly answers?: readonly Answer[]
  /** Applied in order, also when the append is refused. */
  readonly timers?: readonly TimerChange<E>[]
  /** For the log and the metrics: what the decision began or ended. */
  readonly news?: readonly News[]
  /**
   * The append was refused and `answers` were answered with a failure: puts back what the decision had changed in advance.
   * Its outcome has no records. Left out when the decision changed nothing.
   */
  readonly onRefused?: (reason: StoreFailure, now: Now) => Outcome<R, E>
}

/** Something that people want to know of a coordinator: a fixed message, the data as fields. */
export interface News {
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** Setting a key that is set replaces it. `delayMs`: 0 or more. */
export type TimerChange<E> =
  | { readonly key: string; readonly delayMs: number; readonly event: E }
  | { readonly key: string; readonly delayMs?: undefined }

/** Stands for one caller who waits for a T. Numbers are never reused. */
export type Ticket<T> = number & { readonly __answer?: (response: T) => void }

export interface Answer {
  readonly ticket: Ticket<unknown>
  readonly response: unknown
}

/** The one way to make an `Answer`: the response is what the ticket's holder waits for. */
export function answer<T>(ticket: Ticket<T>, response: T): Answer {
  return { ticket: ticket as number, response }
}
