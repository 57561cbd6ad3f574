import type { StoreFailure } from '../coordinator-runtime/index.ts'
import {
  type Answer,
  answer,
  type Now,
  type Outcome,
  type Ticket,
  type TimerChange,
} from '../coordinator-runtime/index.ts'
import type { GroupRecord } from './records.ts'

/** What a timer was set for. It names what it is about and is looked up when it fires: that may be gone by then. */
export type GroupTimer =
  | { readonly kind: 'session'; readonly groupId: string; readonly memberId: string }
  | { readonly kind: 'join'; readonly groupId: string }
  | { readonly kind: 'initial-join'; readonly groupId: string; readonly delayMs: number; readonly remainingMs: number }
  | { readonly kind: 'sync'; readonly groupId: string }
  | { readonly kind: 'arm-sessions' }
  | { readonly kind: 'expire-offsets' }

/** The outcome of one decision, gathered while it is made. */
export class Effects implements Outcome<GroupRecord, GroupTimer> {
  readonly records: GroupRecord[] = []
  readonly answers: Answer[] = []
  readonly timers: TimerChange<GroupTimer>[] = []
  readonly now: Now
  onRefused?: (reason: StoreFailure, now: Now) => Outcome<GroupRecord, GroupTimer>

  constructor(now: Now) {
    this.now = now
  }

  answer<T>(ticket: Ticket<T>, response: T): this {
    this.answers.push(answer(ticket, response))
    return this
  }

  setTimer(key: string, delayMs: number, event: GroupTimer): void {
    this.timers.push({ key, delayMs, event })
  }

  cancelTimer(key: string): void {
    this.timers.push({ key })
  }
}

export function sessionKey(groupId: string, memberId: string): string {
  return `session\0${groupId}\0${memberId}`
}

/** A group waits for its members to join, or for its leader to assign, never both: one key each. */
export function joinKey(groupId: string): string {
  return `join\0${groupId}`
}

export function syncKey(groupId: string): string {
  return `sync\0${groupId}`
}
