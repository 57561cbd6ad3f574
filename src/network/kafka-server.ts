import { messageOf } from '../base/index.ts'
import type { Listener, Platform, Socket, Timer } from '../platform/index.ts'
import type { Logger, Metrics } from '../telemetry/index.ts'
import { Connection, type ConnectionHost } from './connection.ts'
import { ConnectionCounts, type ConnectionLimits, type ConnectionRefusal } from './connection-limits.ts'
import { FramePool } from './frame-pool.ts'
import { MemoryBudget } from './memory-budget.ts'
import { NetworkProbe } from './probe.ts'
import type { CloseAnswer, RequestHandler } from './request-handler.ts'
import { Turns } from './turns.ts'

/** Requests of one connection that may be under way at a time; further ones wait, and with them the reading. */
const maxInFlight = 128
/**
 * While the request budget is used up, this part of it on top is shared equally by all connections: who keeps within the own
 * part is read on, so that a few peers with large requests, or half ones, do not silence everyone else.
 */
const reservePart = 0.25
/**
 * Lent for an answer even when there is less, since one may have to hold a whole batch whatever its limit: the budget is then used up.
 */
const minLoanBytes = 1024 * 1024
/** One answer takes at most this part of what is left of the response budget, */
const maxSharePart = 0.25
/** nor more than so many times what each connection would have of the whole. */
const maxEqualShares = 4
/** While the broker is out of memory, a peer that holds some of it may take this long over its next step. */
const stallMs = 10_000

export interface KafkaServerOptions {
  readonly platform: Pick<Platform, 'network' | 'clock' | 'timers'>
  readonly handler: RequestHandler
  readonly log: Logger
  readonly metrics: Metrics
  /** `socket.request.max.bytes`. */
  readonly maxRequestBytes: number
  /**
   * `queued.max.request.bytes`: for the requests of all connections, and as much again for the responses. Never less than
   * one largest request.
   */
  readonly maxQueuedBytes: number
  /** `connections.max.idle.ms`. */
  readonly maxIdleMs: number
  readonly connectionLimits: ConnectionLimits
}

export interface ServerStatistics {
  readonly connections: number
  readonly requestBytes: number
  readonly responseBytes: number
}

/**
 * Accepts Kafka connections on any number of listeners and has their requests answered.
 *
 * Memory: two budgets for the whole broker, request bytes (whatever arrived and was not answered) and response bytes
 * (answers not yet written). Above the first a connection is read only while it keeps within its equal part of a reserve, above
 * the second no request begins but those whose answers are small and, within a reserve, those of connections that hold no
 * answers. What has begun always finishes, so both come down by
 * themselves, but for two cases. Unfinished frames can use up the first budget among them: then one connection at a time, the one that lacks least, may read until its frame is whole. And who doesn't send or
 * read can hold what others need: who makes no step for `stallMs` while a budget is used up is closed.
 */
export class KafkaServer {
  /** Of the options at first; may be changed, and connections that are above a lower limit then stay. */
  connectionLimits: ConnectionLimits
  readonly #options: KafkaServerOptions
  readonly #connections = new Set<Connection>()
  readonly #counts = new ConnectionCounts()
  /** Connections refused since the last line about it, and when that was (monotonic). */
  #refusedCount = 0
  #refusalToldMs = Number.NEGATIVE_INFINITY
  readonly #listeners: Listener[] = []
  readonly #turns: Turns
  readonly #requestBudget: MemoryBudget
  readonly #responseBudget: MemoryBudget
  /** Above the limit of the request budget: shared by all connections. */
  readonly #reserveBytes: number
  /** Above the limit lie the reserve and what one connection may borrow, at most one largest request. */
  readonly #maxRequestBytesHeld: number
  readonly #host: ConnectionHost
  readonly #probe: NetworkProbe
  /** May read although the request budget is used up, since `#borrowedAtMs`. */
  #borrower: Connection | undefined
  #borrowedAtMs = 0
  #isAdvancePending: boolean = false
  /** Connections that are still to be advanced in this pass. */
  #advancing: Iterator<Connection> | undefined
  #idleTimer: Timer | undefined
  #stallTimer: Timer | undefined
  #isClosing: boolean = false
  #onEmpty: (() => void) | undefined

  constructor(options: KafkaServerOptions) {
    this.#options = options
    this.#turns = new Turns(options.platform)
    this.connectionLimits = options.connectionLimits
    const limitBytes = Math.max(options.maxQueuedBytes, options.maxRequestBytes + 4)
    this.#requestBudget = new MemoryBudget(limitBytes, () => this.#onPressure())
    this.#responseBudget = new MemoryBudget(limitBytes, () => this.#onPressure())
    this.#reserveBytes = limitBytes * reservePart
    this.#maxRequestBytesHeld = limitBytes + this.#reserveBytes + options.maxRequestBytes
    this.#probe = new NetworkProbe(options.metrics, {
      connections: () => this.#connections.size,
      requestBudget: this.#requestBudget,
      responseBudget: this.#responseBudget,
    })
    this.#host = {
      handler: options.handler,
      maxRequestBytes: options.maxRequestBytes,
      maxInFlight,
      framePool: new FramePool(),
      requestBudget: this.#requestBudget,
      responseBudget: this.#responseBudget,
      probe: this.#probe,
      mayRead: (connection) =>
        !this.#requestBudget.isAbove || connection === this.#borrower || this.#isWithinReserve(connection),
      mayBeginLarge: (connection) =>
        !this.#responseBudget.isAbove || (connection.responseBytes === 0 && this.#hasResponseReserve),
      mayBeginNow: (connection, isBrief) => this.#turns.mayBegin(connection, isBrief),
      mayWriteNow: (connection, isBrief) => this.#turns.mayWrite(connection, isBrief),
      isStanding: (connection) => this.#turns.isStanding(connection),
      onWrite: (bytes) => this.#turns.noteWritten(bytes),
      responseShareBytes: () => this.#responseShareBytes(),
      onPaused: (connection) => {
        // It reached its part of the reserve. Nothing else may happen that has a borrower chosen.
        const waitsForMemory = this.#requestBudget.isAbove && connection.isInsideFrame
        if (waitsForMemory && this.#borrower === undefined) this.#onPressure()
      },
      onFrameWhole: (connection) => {
        if (connection === this.#borrower) this.#lendTo(undefined)
      },
      monotonic: () => options.platform.clock.monotonic(),
      refused: (connection, answer) => this.#refused(connection, answer),
      closed: (connection, error) => this.#closed(connection, error),
    }
  }

  /** Starts accepting. Throws `NetworkError`. The port is the one that was bound when 0 was asked for. */
  async listen(listener: { name: string; host: string; port: number }): Promise<{ host: string; port: number }> {
    const { name, host, port } = listener
    const bound = await this.#options.platform.network.listen({ host, port }, (socket) => this.#accept(socket, name))
    this.#listeners.push(bound)
    return { host: bound.host, port: bound.port }
  }

  get statistics(): ServerStatistics {
    return {
      connections: this.#connections.size,
      requestBytes: this.#requestBudget.usedBytes,
      responseBytes: this.#responseBudget.usedBytes,
    }
  }

  /** Stops accepting and reading, lets requests that began be answered for at most `graceMs`, then closes what is left. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true
    const stopped = Promise.all(this.#listeners.map((listener) => listener.close()))
    for (const connection of [...this.#connections]) connection.drain()
    if (this.#connections.size > 0) {
      const emptied = new Promise<void>((resolve) => {
        this.#onEmpty = resolve
      })
      // Nothing is read any more: without it the process would end here, before the rest of the node is stopped.
      const deadline = this.#options.platform.timers.set(
        graceMs,
        () => {
          for (const connection of [...this.#connections]) connection.destroy()
        },
        { keepsAlive: true },
      )
      await emptied
      deadline.cancel()
    }
    await stopped
    this.#idleTimer?.cancel()
    this.#stallTimer?.cancel()
  }

  #accept(socket: Socket, listenerName: string): void {
    const refusal = this.#counts.refusalOf(socket.remoteAddress, this.connectionLimits)
    if (this.#isClosing || refusal !== undefined) {
      if (!this.#isClosing && refusal !== undefined) this.#tellRefused(socket, refusal)
      socket.destroy()
      return
    }
    const connection = new Connection(this.#host, socket, listenerName)
    this.#connections.add(connection)
    this.#counts.add(connection.remoteAddress)
    this.#probe.accepted.value++
    this.#options.log.debug({ peer: connection.peer, listener: listenerName }, 'connection accepted')
    connection.start()
    connection.updateReading()
    this.#armIdleTimer()
  }

  /** One line, and while a storm lasts one more now and then. */
  #tellRefused({ remoteAddress, remotePort }: Socket, limit: ConnectionRefusal): void {
    this.#refusedCount++
    this.#probe.refusedConnections.value++
    const nowMs = this.#options.platform.clock.monotonic()
    if (nowMs - this.#refusalToldMs < refusalLineMs) return
    const counts = { connections: this.#connections.size, refused: this.#refusedCount }
    const reason = `${limit} reached`
    this.#options.log.warn({ peer: `${remoteAddress}:${remotePort}`, ...counts, reason }, 'connection refused')
    this.#refusedCount = 0
    this.#refusalToldMs = nowMs
  }

  #refused(connection: Connection, answer: CloseAnswer): void {
    this.#probe.refused.value++
    const { peer, listenerName: listener } = connection
    const fields = { peer, listener, ...answer.details, reason: answer.close }
    if (answer.fault === undefined) this.#options.log.warn(fields, 'connection closed: request refused')
    else this.#options.log.error({ ...fields, error: answer.fault }, 'connection closed: request failed')
  }

  #closed(connection: Connection, error: Error | undefined): void {
    this.#connections.delete(connection)
    this.#turns.forget(connection)
    this.#counts.remove(connection.remoteAddress)
    if (connection === this.#borrower) this.#lendTo(undefined)
    const fields = { peer: connection.peer, ...(error === undefined ? {} : { reason: messageOf(error) }) }
    this.#options.log.debug(fields, 'connection closed')
    if (this.#connections.size === 0) this.#onEmpty?.()
  }

  /** Deferred: it runs in the middle of a connection's own work. */
  #onPressure(): void {
    if (this.#isAdvancePending) return
    this.#isAdvancePending = true
    if (this.#advancing === undefined) this.#options.platform.timers.defer(() => this.#advanceAll())
  }

  #advanceAll(): void {
    this.#isAdvancePending = false
    if (this.#requestBudget.isAbove) {
      if (this.#borrower === undefined) this.#chooseBorrower()
    } else {
      this.#borrower = undefined
    }
    if (this.#requestBudget.isAbove || this.#responseBudget.isAbove) this.#armStallTimer()
    // A pass that is under way looks at all that are left in it; this one begins when it is done.
    if (this.#advancing !== undefined) this.#isAdvancePending = true
    else this.#advanceFrom([...this.#connections].values())
  }

  /** Whole answers may be read and written meanwhile, thousands of them when memory comes back at once: so in turns of the loop. */
  #advanceFrom(rest: Iterator<Connection>): void {
    const { timers } = this.#options.platform
    this.#advancing = rest
    for (let next = rest.next(); next.done !== true; next = rest.next()) {
      if (!this.#turns.isStanding(next.value)) next.value.advance()
      if (!this.#turns.hasTime()) {
        timers.defer(() => this.#advanceFrom(rest))
        return
      }
    }
    this.#advancing = undefined
    if (this.#isAdvancePending) timers.defer(() => this.#advanceAll())
  }

  /** For answers of connections that hold none, while others don't read theirs. */
  get #hasResponseReserve(): boolean {
    return this.#responseBudget.usedBytes < this.#responseBudget.limitBytes + this.#reserveBytes
  }

  /** So that a few clients that read slowly, or many, don't take it all from the others. */
  #responseShareBytes(): number {
    const { limitBytes, usedBytes } = this.#responseBudget
    const ofRest = (limitBytes - usedBytes) * maxSharePart
    const ofAll = (limitBytes / Math.max(1, this.#connections.size)) * maxEqualShares
    return Math.max(minLoanBytes, Math.floor(Math.min(ofRest, ofAll)))
  }

  #isWithinReserve(connection: Connection): boolean {
    return (
      this.#requestBudget.usedBytes < this.#maxRequestBytesHeld &&
      connection.requestBytes * this.#connections.size < this.#reserveBytes
    )
  }

  /** The one that lacks least, if with its frame whole no more is used than the limit, one largest request and the reserve. */
  #chooseBorrower(): void {
    let chosen: Connection | undefined
    for (const connection of this.#connections) {
      if (!connection.isInsideFrame) continue
      if (chosen === undefined || connection.missingBytes < chosen.missingBytes) chosen = connection
    }
    if (chosen === undefined) return
    if (this.#requestBudget.usedBytes + chosen.missingBytes <= this.#maxRequestBytesHeld) this.#lendTo(chosen)
  }

  #lendTo(connection: Connection | undefined): void {
    const before = this.#borrower
    this.#borrower = connection
    this.#borrowedAtMs = this.#options.platform.clock.monotonic()
    before?.updateReading()
    connection?.updateReading()
    if (connection === undefined && this.#requestBudget.isAbove) this.#onPressure()
  }

  /** Looks again, and closes who held memory and made no step, until there is memory. */
  #armStallTimer(): void {
    if (this.#stallTimer !== undefined) return
    this.#stallTimer = this.#options.platform.timers.set(stallMs, () => {
      this.#stallTimer = undefined
      this.#closeStalled()
      this.#advanceAll()
    })
  }

  #closeStalled(): void {
    const stalledBeforeMs = this.#options.platform.clock.monotonic() - stallMs
    const borrower = this.#borrower
    if (borrower !== undefined && this.#borrowedAtMs <= stalledBeforeMs) {
      this.#closeSilent(
        borrower,
        'The rest of the request did not come while the broker was out of memory for requests',
      )
    }
    if (!this.#responseBudget.isAbove) return
    for (const connection of [...this.#connections]) {
      if (connection.responseBytes === 0 || connection.lastWrittenMs > stalledBeforeMs) continue
      this.#closeSilent(connection, 'Responses were not read while the broker was out of memory for responses')
    }
  }

  #closeSilent(connection: Connection, reason: string): void {
    this.#options.log.warn({ peer: connection.peer, reason }, 'connection closed: stalled')
    connection.destroy()
  }

  /** One timer for all: at the earliest moment at which any connection may have been idle for too long. */
  #armIdleTimer(): void {
    if (this.#idleTimer !== undefined || this.#connections.size === 0) return
    const nowMs = this.#options.platform.clock.monotonic()
    let earliestMs = nowMs
    for (const connection of this.#connections) earliestMs = Math.min(earliestMs, connection.lastActiveMs)
    const delayMs = Math.max(earliestMs + this.#options.maxIdleMs - nowMs, minIdleCheckMs)
    this.#idleTimer = this.#options.platform.timers.set(Math.min(delayMs, maxTimerMs), () => {
      this.#idleTimer = undefined
      this.#closeIdle()
      this.#armIdleTimer()
    })
  }

  #closeIdle(): void {
    const idleSinceMs = this.#options.platform.clock.monotonic() - this.#options.maxIdleMs
    for (const connection of [...this.#connections]) {
      if (!connection.isIdle || connection.lastActiveMs > idleSinceMs) continue
      this.#options.log.debug({ peer: connection.peer }, 'connection closed: idle')
      connection.destroy()
    }
  }
}

/** Between two lines about refused connections. */
const refusalLineMs = 10_000
/** Connections that are busy for longer than the idle limit are looked at again no sooner than this. */
const minIdleCheckMs = 100
/** Timers take no longer delays. */
const maxTimerMs = 2 ** 31 - 1
