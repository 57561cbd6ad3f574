import type { ConfirmedRead, LogIndex } from './types.ts'

/**
 * Reads that wait until a majority shows that this leader still leads (thesis §6.4). Those that come while a round of
 * heartbeats is under way share the next one. A round's number never comes twice in a process, so an answer to an earlier
 * heartbeat confirms no later read.
 */
export class ReadQueue {
  #waiting: number[] = []
  /** Under way, oldest first. */
  #rounds: { readonly round: number; readonly index: LogIndex; readonly ids: readonly number[] }[] = []
  #lastRound = 0
  #length = 0
  #confirmed: ConfirmedRead[] = []

  /** Reads not confirmed yet. */
  get length(): number {
    return this.#length
  }

  /** Number of the last round begun; 0 before the first. */
  get lastRound(): number {
    return this.#lastRound
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0
  }

  get isRoundUnderWay(): boolean {
    return this.#rounds.length > 0
  }

  add(id: number): void {
    this.#waiting.push(id)
    this.#length++
  }

  /** Begins a round for the reads that wait. Each sees at least what is committed now, which is all that was when it came. */
  beginRound(commitIndex: LogIndex): void {
    if (this.#waiting.length === 0) return
    this.#rounds.push({ round: ++this.#lastRound, index: commitIndex, ids: this.#waiting })
    this.#waiting = []
  }

  /** A majority has answered `round` or a later one. */
  confirm(round: number): void {
    while (this.#rounds.length > 0 && this.#rounds[0]!.round <= round) {
      const { index, ids } = this.#rounds.shift()!
      this.#length -= ids.length
      for (const id of ids) this.#confirmed.push({ id, index })
    }
  }

  get hasConfirmed(): boolean {
    return this.#confirmed.length > 0
  }

  takeConfirmed(): readonly ConfirmedRead[] {
    const confirmed = this.#confirmed
    this.#confirmed = []
    return confirmed
  }

  /** Leadership is lost, and with it every read not yet given out. */
  clear(): void {
    this.#waiting = []
    this.#rounds = []
    this.#confirmed = []
    this.#length = 0
  }
}
