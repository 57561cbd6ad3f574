import { Deque } from '../base/index.ts'
import type { Clock, Timers } from '../platform/index.ts'

/** How long connections may be served in one turn of the event loop before others get one, */
const stretchMs = 8
/** and how much may be handed to their sockets: that costs its time later, when the promises of the turn have run. */
const stretchBytes = 4 * 1024 * 1024
/** Connections that are let in one after the other in a turn, while there is time. Each has its writes done before the next. */
const admittedPerTurn = 32

/** Who has a request to begin, or an answer to write, in its turn. */
export interface Waiting {
  /** Does what may be done. */
  advance(): void
}

/**
 * Decides in which turn of the event loop a connection goes on. One turn may find thousands of sockets readable, and one append
 * may be what thousands of fetches wait for; what each does then (a megabyte handed to the system) would hold up everything
 * else for seconds. So connections go on at once for `stretchMs`; those that come later in the turn, and those that come while others
 * wait, stand in a line. From the line each goes on with one request at a time, those whose answers are brief in turn
 * with the others: acknowledgements and heartbeats don't wait behind thousands of large reads.
 */
export class Turns {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #timers: Pick<Timers, 'defer'>
  readonly #brief = new Deque<Waiting>()
  readonly #other = new Deque<Waiting>()
  /** Those that stand in a line. */
  readonly #standing = new Set<Waiting>()
  /** When this turn's time is over; undefined until something is done in it. */
  #turnEndMs: number | undefined
  #turnBytes = 0
  #isServing: boolean = false
  /** May go on with one request, as the first of its line. */
  #admitted: Waiting | undefined
  #isBriefNext: boolean = true

  constructor({ clock, timers }: { readonly clock: Pick<Clock, 'monotonic'>; readonly timers: Pick<Timers, 'defer'> }) {
    this.#clock = clock
    this.#timers = timers
  }

  /** Whether `waiting` may go on with a request now; if not it stands in the line, and is advanced when its turn comes. */
  mayGoOn(waiting: Waiting, isBrief: boolean): boolean {
    if (this.#admitted === waiting) {
      this.#admitted = undefined
      return true
    }
    if (this.#standing.size === 0 && this.hasTime()) return true
    if (!this.#standing.has(waiting)) {
      this.#standing.add(waiting)
      const line = isBrief ? this.#brief : this.#other
      line.pushBack(waiting)
      this.#serve()
    }
    return false
  }

  /** So much is handed to a socket in this turn. */
  noteWritten(bytes: number): void {
    this.#turnBytes += bytes
  }

  /** It is advanced in its turn. */
  isStanding(waiting: Waiting): boolean {
    return this.#standing.has(waiting)
  }

  /** It is closed. */
  forget(waiting: Waiting): void {
    this.#standing.delete(waiting)
  }

  /** False when the others are to have a turn of the event loop first. */
  hasTime(): boolean {
    const nowMs = this.#clock.monotonic()
    if (this.#turnEndMs !== undefined) return nowMs < this.#turnEndMs && this.#turnBytes < stretchBytes
    this.#turnEndMs = nowMs + stretchMs
    this.#turnBytes = 0
    this.#timers.defer(() => {
      this.#turnEndMs = undefined
    })
    return true
  }

  /** Each in a callback of its own: only then is what one began done, its writes included, before there is a look at the time. */
  #serve(): void {
    if (this.#isServing) return
    this.#isServing = true
    for (let i = 0; i < admittedPerTurn; i++) this.#timers.defer(() => this.#admitNext())
    this.#timers.defer(() => {
      this.#isServing = false
      if (this.#standing.size > 0) {
        this.#serve()
      } else {
        this.#brief.clear() // of who closed while it stood there
        this.#other.clear()
      }
    })
  }

  #admitNext(): void {
    if (this.#standing.size === 0 || !this.hasTime()) return
    const next = this.#next()
    if (next === undefined) return
    this.#admitted = next
    next.advance()
    this.#admitted = undefined
  }

  #next(): Waiting | undefined {
    for (;;) {
      const isBrief = this.#isBriefNext ? this.#brief.length > 0 : this.#other.length === 0
      const next = (isBrief ? this.#brief : this.#other).popFront()
      this.#isBriefNext = !isBrief
      if (next === undefined || this.#standing.delete(next)) return next
    }
  }
}
