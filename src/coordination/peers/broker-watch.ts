import { addressText, type Uuid } from '../../base/index.ts'
import { type Clock, type Network, NetworkError, type Random, type Timer, type Timers } from '../../platform/index.ts'
import type { RpcTarget } from '../../rpc/index.ts'
import { attemptWaitMs, crashWindowMs } from './peer-link.ts'

export interface BrokerWatchOptions {
  readonly platform: {
    readonly clock: Clock
    readonly timers: Timers
    readonly random: Random
    readonly network: Network
  }
  /** Where other brokers reach that run of the node's; undefined: this run is not registered, or says no place. */
  readonly placeOf: (nodeId: number, incarnationId: Uuid) => RpcTarget | undefined
  /** A run of the node's opened a stream to this one. */
  readonly onConnected: (nodeId: number) => void
  /** Its stream closed, and nothing listens where it did, twice within a moment: its process has ended. */
  readonly onCrashed: (nodeId: number) => void
}

/** How long a connection may take that is made to see whether there is anybody. */
const connectTimeoutMs = 500
/** Looks after a stream has closed, over a second and a half: later the silence of the broker tells. */
const maxLooks = 6

interface Watched {
  readonly incarnationId: Uuid
  isOpen: boolean
  /** Where a connection was made while its stream was open. A refusal at another place may be anybody's. */
  reached: string | undefined
  looks: number
  refusedAtMs: number | undefined
  timer: Timer | undefined
}

/**
 * Notices that a process has ended which only calls: a broker without a vote keeps streams to the voters, and no voter has a link to
 * it. When its stream closes, each voter looks where the broker listens for other brokers. Two refusals within a moment are
 * evidence, as for a `PeerLink`; any connection that is made is the opposite, and the stream that is opened anew ends the looking.
 *
 * What a broker says of its place may be of use to clients only, `localhost` for instance. Refusals count only where a connection
 * was made before, while its stream was open.
 */
export class BrokerWatch {
  readonly #options: BrokerWatchOptions
  readonly #watched = new Map<number, Watched>()
  #isStopped = false

  constructor(options: BrokerWatchOptions) {
    this.#options = options
  }

  opened(nodeId: number, incarnationId: Uuid): void {
    if (this.#isStopped) return
    const before = this.#watched.get(nodeId)
    before?.timer?.cancel()
    const reached = before?.incarnationId === incarnationId ? before.reached : undefined
    const fresh = { looks: 0, refusedAtMs: undefined, timer: undefined }
    this.#watched.set(nodeId, { incarnationId, isOpen: true, reached, ...fresh })
    this.#options.onConnected(nodeId)
    void this.#reach(nodeId)
  }

  /** It has no other stream to this node. */
  closed(nodeId: number): void {
    const watched = this.#watched.get(nodeId)
    if (watched === undefined || !watched.isOpen || this.#isStopped) return
    watched.isOpen = false
    if (watched.reached === undefined) this.#watched.delete(nodeId)
    else this.#schedule(nodeId, watched)
  }

  /** Brokers were registered, or changed. */
  look(): void {
    for (const [nodeId, { isOpen }] of this.#watched) if (isOpen) void this.#reach(nodeId)
  }

  stop(): void {
    this.#isStopped = true
    for (const { timer } of this.#watched.values()) timer?.cancel()
    this.#watched.clear()
  }

  /** Sees, once for each place, whether it can be reached at all. */
  async #reach(nodeId: number): Promise<void> {
    const watched = this.#watched.get(nodeId)!
    const place = this.#options.placeOf(nodeId, watched.incarnationId)
    if (place === undefined || watched.reached === addressText(place)) return
    watched.reached = undefined
    if ((await this.#visit(place)) === 'connected' && watched.isOpen) watched.reached = addressText(place)
  }

  #schedule(nodeId: number, watched: Watched): void {
    if (watched.looks === maxLooks) {
      this.#watched.delete(nodeId)
      return
    }
    const { timers, random } = this.#options.platform
    watched.timer = timers.set(attemptWaitMs(watched.looks++, random), () => void this.#lookFor(nodeId, watched))
  }

  async #lookFor(nodeId: number, watched: Watched): Promise<void> {
    const place = this.#options.placeOf(nodeId, watched.incarnationId)
    const found = place !== undefined && watched.reached === addressText(place) ? await this.#visit(place) : 'unknown'
    if (this.#watched.get(nodeId) !== watched) return // it is back, or this node stops
    const nowMs = this.#options.platform.clock.monotonic()
    const { refusedAtMs } = watched
    watched.refusedAtMs = found === 'refused' ? nowMs : undefined
    if (found === 'refused' && refusedAtMs !== undefined && nowMs - refusedAtMs <= crashWindowMs) {
      this.#watched.delete(nodeId)
      this.#options.onCrashed(nodeId)
    } else {
      this.#schedule(nodeId, watched)
    }
  }

  async #visit({ host, port }: RpcTarget): Promise<'connected' | 'refused' | 'unknown'> {
    try {
      const socket = await this.#options.platform.network.connect({ host, port, timeoutMs: connectTimeoutMs })
      socket.start({ onData() {}, onClose() {} })
      socket.destroy()
      return 'connected'
    } catch (error) {
      if (!(error instanceof NetworkError)) throw error
      return error.systemCode === 'ECONNREFUSED' ? 'refused' : 'unknown'
    }
  }
}
