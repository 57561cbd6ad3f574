import { Deque } from '../../base/index.ts'
import type { Clock, Random, Timer, Timers } from '../../platform/index.ts'
import {
  type RpcChannel,
  RpcError,
  type RpcNetwork,
  type RpcStream,
  type RpcTarget,
  type StreamMethod,
} from '../../rpc/index.ts'

/** What becomes of the way to a peer. Called in the turn in which it is noticed, never from within a call of the link. */
export interface PeerLinkListener {
  /** The peer answered the hello with its own: what is sent now arrives, unless something breaks. */
  onOpen(hello: Buffer): void
  onMessage(message: Buffer): void
  /** What was sent lately may not have arrived. Once for each time that the link was open, and for each attempt that failed. */
  onDown(error: RpcError): void
  /** Nothing listens where the peer was, twice within a moment: its process has ended. Once, until it is open again. */
  onCrashed(): void
}

export interface PeerLinkOptions {
  readonly network: RpcNetwork
  readonly target: RpcTarget
  readonly method: StreamMethod
  readonly platform: { readonly clock: Clock; readonly timers: Timers; readonly random: Random }
  /** First message of every stream. */
  readonly hello: () => Uint8Array
  /** A message that the peer answers with one of its own, sent when nothing came for a while. */
  readonly ping: Uint8Array
  readonly listener: PeerLinkListener
}

/** How long a peer may take to answer the hello. A stopped process accepts connections and says nothing. */
const helloTimeoutMs = 1000
/** Nothing came for so long: ask for a sign of life. */
const pingAfterMs = 500
/** Nothing came for so long: the way is dead though nothing says so. Start afresh. */
const silenceMs = 1500
/** Waits before the next attempts, each with up to half of it more; the last repeats. The first comes at once. */
const backoffMs = [0, 50, 100, 200, 400, 500]
/**
 * Two refusals in a row within so much mean a process that has ended; a single one may be a listener being replaced. Room for the
 * longest of the waits and for a machine that is busy: where it was 150 ms, a loaded one missed it, and waited for its election timeout.
 */
export const crashWindowMs = 1000
/** Before the attempt with that number, from 0. */
export function attemptWaitMs(attempt: number, random: Random): number {
  return backoffMs[Math.min(attempt, backoffMs.length - 1)]! * (1 + random.float() / 2)
}

/** What may wait for a slow network before the oldest is dropped. */
const maxQueuedBytes = 16 * 1024 * 1024

type State =
  | { readonly is: 'waiting'; readonly timer: Timer }
  | { readonly is: 'greeting'; readonly stream: RpcStream; readonly timer: Timer }
  | { readonly is: 'open'; readonly stream: RpcStream; timer: Timer }
  | { readonly is: 'stopped' }

/**
 * One stream to one peer, kept open: connects, greets, notices silence, and begins again after every failure.
 *
 *     waiting --time is up--> greeting --hello came--> open
 *        ^-------- failed, or no hello in time --|       |
 *        ^-------- closed, or silent --------------------|        any --stop--> stopped
 *
 * Best effort: what is sent while it isn't open is dropped, and so are the oldest of too many that wait. Each attempt has a
 * channel of its own: one that hangs while it connects is thrown away with it.
 */
export class PeerLink {
  readonly #options: PeerLinkOptions
  #state: State = { is: 'stopped' }
  #channel: RpcChannel | undefined
  #attempts = 0
  #lastHeardMs: number | undefined
  #refusedAtMs: number | undefined
  #hasCrashed = false
  readonly #queue = new Deque<Uint8Array>()
  #queuedBytes = 0
  #isFull = false

  constructor(options: PeerLinkOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#state.is === 'open'
  }

  /**
   * When the peer was last heard, of the monotonic clock; later by the time for which this process stood still meanwhile. Undefined
   * when it never was.
   */
  get lastHeardMs(): number | undefined {
    return this.#lastHeardMs
  }

  start(): void {
    this.#wait()
  }

  /** No listener is called any more. */
  stop(): void {
    this.#leave()
    this.#state = { is: 'stopped' }
  }

  /** `message` is not kept unless it is sent. */
  send(message: Uint8Array): void {
    if (this.#state.is !== 'open') return
    if (!this.#isFull) {
      this.#isFull = !this.#state.stream.send(message)
      return
    }
    this.#queue.pushBack(message)
    this.#queuedBytes += message.length
    while (this.#queuedBytes > maxQueuedBytes && this.#queue.length > 1)
      this.#queuedBytes -= this.#queue.popFront()!.length
  }

  #wait(): void {
    const { timers, random } = this.#options.platform
    const timer = timers.set(attemptWaitMs(this.#attempts++, random), () => this.#connect())
    this.#state = { is: 'waiting', timer }
  }

  #connect(): void {
    const { network, target, method, platform, hello } = this.#options
    const channel = network.connect(target)
    this.#channel = channel
    const stream = channel.openStream(method, {
      onMessage: (message) => this.#ifCurrent(channel, () => this.#onMessage(message)),
      onDrain: () => this.#ifCurrent(channel, () => this.#onDrain()),
      onClose: (error) => {
        this.#ifCurrent(channel, () => this.#fail(error ?? new RpcError('unavailable', 'The peer ended the stream')))
      },
    })
    const timer = platform.timers.set(helloTimeoutMs, () => {
      this.#fail(new RpcError('deadline-exceeded', `No hello within ${helloTimeoutMs} ms`))
    })
    this.#state = { is: 'greeting', stream, timer }
    stream.send(hello())
  }

  #ifCurrent(channel: RpcChannel, work: () => void): void {
    if (this.#channel === channel) work()
  }

  #onMessage(message: Buffer): void {
    this.#lastHeardMs = this.#options.platform.clock.monotonic()
    if (this.#state.is === 'open') {
      this.#options.listener.onMessage(message)
    } else if (this.#state.is === 'greeting') {
      this.#state.timer.cancel()
      this.#state = { is: 'open', stream: this.#state.stream, timer: this.#watch() }
      this.#attempts = 0
      this.#refusedAtMs = undefined
      this.#hasCrashed = false
      this.#options.listener.onOpen(message)
    }
  }

  /** Looks again when the next sign of life is due. Time for which this process itself stood still is no silence. */
  #watch(): Timer {
    const { platform, ping } = this.#options
    const dueMs = platform.clock.monotonic() + pingAfterMs
    return platform.timers.set(pingAfterMs, () => {
      if (this.#state.is !== 'open') return
      const nowMs = platform.clock.monotonic()
      const lastHeardMs = (this.#lastHeardMs ?? nowMs) + nowMs - dueMs
      this.#lastHeardMs = lastHeardMs
      const silentMs = nowMs - lastHeardMs
      if (silentMs >= silenceMs) {
        this.#fail(new RpcError('unavailable', `Silent for ${Math.round(silentMs)} ms`))
        return
      }
      if (silentMs >= pingAfterMs) this.#state.stream.send(ping)
      this.#state.timer = this.#watch()
    })
  }

  #onDrain(): void {
    this.#isFull = false
    while (this.#state.is === 'open' && !this.#isFull && this.#queue.length > 0) {
      const message = this.#queue.popFront()!
      this.#queuedBytes -= message.length
      this.#isFull = !this.#state.stream.send(message)
    }
  }

  #fail(error: RpcError): void {
    this.#leave()
    this.#wait()
    this.#options.listener.onDown(error)
    if (error.reason === 'connection-refused') this.#onRefused()
    else this.#refusedAtMs = undefined
  }

  #onRefused(): void {
    const nowMs = this.#options.platform.clock.monotonic()
    const before = this.#refusedAtMs
    this.#refusedAtMs = nowMs
    if (this.#hasCrashed || before === undefined || nowMs - before > crashWindowMs) return
    this.#hasCrashed = true
    this.#options.listener.onCrashed()
  }

  /** Whatever the attempt of now has is given up; its events reach nobody any more. */
  #leave(): void {
    if (this.#state.is !== 'stopped') this.#state.timer.cancel()
    const channel = this.#channel
    this.#channel = undefined // first: its end may be told from within `close`, and is no failure of the next attempt
    channel?.close()
    this.#queue.clear()
    this.#queuedBytes = 0
    this.#isFull = false
  }
}
