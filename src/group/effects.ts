import type { StoreFailure } from '../coordinator-runtime/index.ts'
import {
  type Answer,
  answer,
  type News,
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

/** Why the members of a group have to join again. */
export type RebalanceReason =
  | 'member-joined'
  | 'member-changed' // it speaks other protocols, or reads other topics
  | 'leader-rejoined' // to assign anew
  | 'static-member-replaced'
  | 'member-left'
  | 'session-expired'
  | 'not-synced' // it did not ask for its assignment in time
  | 'assignment-not-stored'
  | 'group-too-large' // group.max.size was lowered

/** What of a group is logged and counted. */
export type GroupNews = News &
  (
    | {
        readonly message: 'group rebalance began'
        readonly fields: {
          readonly groupId: string
          /** That ends. */
          readonly generation: number
          readonly members: number
          readonly reason: RebalanceReason
          /** Whose doing it is; null when no single member's. */
          readonly memberId: string | null
          /** In its client's words; null when it gave none. */
          readonly clientReason: string | null
        }
      }
    | {
        readonly message: 'group rebalance ended'
        readonly fields: {
          readonly groupId: string
          /** That begins. */
          readonly generation: number
          readonly members: number
          readonly protocol: string | null
          readonly leaderId: string | null
        }
      }
  )

/** The outcome of one decision, gathered while it is made. */
export class Effects implements Outcome<GroupRecord, GroupTimer> {
  readonly records: GroupRecord[] = []
  readonly answers: Answer[] = []
  readonly timers: TimerChange<GroupTimer>[] = []
  readonly news: GroupNews[] = []
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
