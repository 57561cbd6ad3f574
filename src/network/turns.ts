import { Deque } from '../base/index.ts'
import type { Clock, Timers } from '../platform/index.ts'

/** How long connections may be served in one turn of the event loop before others get one, */
const stretchMs = 8
/** and how much may be handed to their sockets: that costs its time later, when the promises of the turn have run. */
const stretchBytes = 4 * 1024 * 1024
/** Connections that are let in before there is a look at what they did: their writes come when the callback is over. */
const admittedPerCallback = 8
const maxCallbacksPerTurn = 64
/** Requests with brief answers that one connection may begin when it is let in; of others one. */
const maxBriefAtOnce = 16

/** Who has a request to begin, or an answer to write, in its turn. */
export interface Waiting {
  /** Does what may be done. */
  advance(): void
}

/**
 * Decides in which turn of the event loop a connection goes on. One turn may find thousands of sockets readable, and one append
 * may be what thousands of fetches wait for; what each does then (a megabyte handed to the system) would hold up everything
 * else for seconds. So connections go on at once for `stretchMs`; those that come later in the turn, and those that come while others
 * wait, stand in a line. From the line each goes on with one request at a time (or a few brief ones), those whose answers are brief in turn
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
  /** Was the first of its line, and may begin so many requests yet. */
  #admitted: Waiting | undefined
  #admittedLeft = 0
  #isBriefNext: boolean = true

  constructor({ clock, timers }: { readonly clock: Pick<Clock, 'monotonic'>; readonly timers: Pick<Timers, 'defer'> }) {
    this.#clock = clock
    this.#timers = timers
  }

  /** Whether `waiting` may begin a request now; if not it stands in the line, and is advanced when its turn comes. */
  mayBegin(waiting: Waiting, isBrief: boolean): boolean {
    if (this.#admitted === waiting && this.#admittedLeft > 0) {
      this.#admittedLeft -= isBrief ? 1 : maxBriefAtOnce
      return true
    }
    if (this.#standing.size === 0 && this.hasTime()) return true
    this.#stand(waiting, isBrief)
    return false
  }

  /** The same for answers: what has begun is finished first, so nobody stands in its way but the time. */
  mayWrite(waiting: Waiting, isBrief: boolean): boolean {
    if (this.hasTime()) return true
    this.#stand(waiting, isBrief)
    return false
  }

  #stand(waiting: Waiting, isBrief: boolean): void {
    if (this.#standing.has(waiting)) return
    this.#standing.add(waiting)
    const line = isBrief ? this.#brief : this.#other
    line.pushBack(waiting)
    this.#serve()
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

  /** In callbacks of their own: only then is what some began done, their writes included, before there is a look at the time. */
  #serve(): void {
    if (this.#isServing) return
    this.#isServing = true
    this.#timers.defer(() => {
      const callbacks = Math.ceil(this.#standing.size / admittedPerCallback)
      for (let i = 1; i < Math.min(callbacks, maxCallbacksPerTurn); i++) this.#timers.defer(() => this.#admitSome())
      this.#admitSome()
      this.#timers.defer(() => {
        this.#isServing = false
        if (this.#standing.size > 0) {
          this.#serve()
        } else {
          this.#brief.clear() // of who closed while it stood there
          this.#other.clear()
        }
      })
    })
  }

  #admitSome(): void {
    for (let i = 0; i < admittedPerCallback && this.#standing.size > 0 && this.hasTime(); i++) {
      const next = this.#next()
      if (next === undefined) return
      this.#admitted = next
      this.#admittedLeft = maxBriefAtOnce
      next.advance()
      this.#admitted = undefined
    }
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
