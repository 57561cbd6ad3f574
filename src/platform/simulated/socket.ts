import { assert } from '../../base/index.ts'
import { NetworkError } from '../errors.ts'
import type { Socket, SocketHandlers } from '../ports.ts'
import type { SimulatedNetwork } from './network.ts'
import type { Prng } from './prng.ts'
import type { Process } from './process.ts'
import type { Scheduler } from './scheduler.ts'

/** `write` returns false when more than this is queued. */
const queueMarkBytes = 64 * 1024
/** Bytes of one direction that were sent and not yet taken by the peer's handler: the two systems' buffers. */
const windowBytes = 256 * 1024
/** How long an ended socket waits for the peer to end too. */
const lingerUs = 1_000_000
/** Share of the flushes that arrive in more pieces than one. */
const splitShare = 0.25
/** What lent memory holds after its time. */
const rubbish = 0xdb

/** One end of a connection. */
export interface Endpoint {
  readonly host: string
  readonly process: Process
  readonly address: string
  readonly port: number
}

export interface SocketContext {
  readonly network: SimulatedNetwork
  readonly scheduler: Scheduler
  /** Latencies, and where data is cut into pieces. */
  readonly random: Prng
}

/** What travels: data, the end of the data, or a reset. */
type Segment = Buffer | 'end' | 'reset'

interface QueuedWrite {
  readonly chunks: readonly Uint8Array[]
  readonly length: number
  readonly onWritten: (() => void) | undefined
}

/** Both ends of a new connection. */
export function connectPair(
  client: Endpoint,
  server: Endpoint,
  context: SocketContext,
): { client: SimulatedSocket; server: SimulatedSocket } {
  const clientSocket = new SimulatedSocket(client, server, context)
  const serverSocket = new SimulatedSocket(server, client, context)
  clientSocket.peer = serverSocket
  serverSocket.peer = clientSocket
  return { client: clientSocket, server: serverSocket }
}

/**
 * One end of a virtual TCP connection. Data goes from the queue of writes, in one flush a turn, into the window, and
 * from there in pieces to the peer; the handler's taking a piece opens the window again. What is in the window was
 * copied; what is in the queue was not, so that a buffer that changes too early shows at the peer.
 */
export class SimulatedSocket implements Socket {
  readonly #local: Endpoint
  readonly #remote: Endpoint
  readonly #context: SocketContext
  /** Set when both ends are made, before anything is sent. */
  #peer!: SimulatedSocket
  #handlers: SocketHandlers | undefined

  // Sending.
  readonly #queue: QueuedWrite[] = []
  /** Bytes of the first queued write that are in the window already. */
  #sentOfFirst = 0
  #queuedBytes = 0
  #windowUsed = 0
  #isFlushPlanned: boolean = false
  #needsDrain: boolean = false
  /** Sent, not arrived. An arrival takes the first, whichever it was planned for: so the order stays. */
  readonly #onTheWay: Segment[] = []
  /** Arrivals that a cut link prevented. */
  #stalledCount = 0

  // Receiving.
  readonly #received: Segment[] = []
  #isReading: boolean = true

  /** `end` was called: nothing more is written or delivered. */
  #isEnded: boolean = false
  #isEndSent: boolean = false
  #isPeerEnded: boolean = false
  /** `onClose` is due, or was called. */
  #isClosed: boolean = false

  constructor(local: Endpoint, remote: Endpoint, context: SocketContext) {
    this.#local = local
    this.#remote = remote
    this.#context = context
  }

  get process(): Process {
    return this.#local.process
  }

  get host(): string {
    return this.#local.host
  }

  get peerHost(): string {
    return this.#remote.host
  }

  get remoteAddress(): string {
    return this.#remote.address
  }

  get remotePort(): number {
    return this.#remote.port
  }

  get localAddress(): string {
    return this.#local.address
  }

  get localPort(): number {
    return this.#local.port
  }

  get queuedBytes(): number {
    return this.#queuedBytes
  }

  set peer(peer: SimulatedSocket) {
    this.#peer = peer
  }

  start(handlers: SocketHandlers): void {
    this.process.checkAlive()
    assert(this.#handlers === undefined, 'the handlers of a socket are set once')
    this.#handlers = handlers
    this.#later(() => this.#deliver())
  }

  write(chunks: readonly Uint8Array[], onWritten?: () => void): boolean {
    this.process.checkAlive()
    let length = 0
    for (const chunk of chunks) length += chunk.length
    this.#record('send', length, chunks)
    if (this.#isEnded || this.#isClosed) {
      if (onWritten !== undefined) this.#later(onWritten)
      return true
    }
    this.#queue.push({ chunks, length, onWritten })
    this.#queuedBytes += length
    this.#planFlush(0)
    if (this.#queuedBytes <= queueMarkBytes) return true
    this.#needsDrain = true
    return false
  }

  pause(): void {
    this.process.checkAlive()
    if (!this.#isEnded) this.#isReading = false
  }

  resume(): void {
    this.process.checkAlive()
    if (this.#isReading) return
    this.#isReading = true
    this.#later(() => this.#deliver())
  }

  end(): void {
    this.process.checkAlive()
    if (this.#isEnded || this.#isClosed) return
    this.#record('end', 0)
    this.#isEnded = true
    this.#isReading = true
    this.#planFlush(0)
    this.#later(() => this.#deliver())
  }

  destroy(): void {
    this.process.checkAlive()
    if (this.#isClosed) return
    this.#record('destroy', 0)
    if (!this.#isEndSent) this.#send('end')
    this.#isEndSent = true
    this.#close(undefined)
  }

  /** The process died: the peer gets a reset, and this end does nothing any more. */
  abort(): void {
    if (!this.#isClosed) this.#send('reset')
    this.#isClosed = true
    this.#queue.length = 0
    this.#context.network.forget(this)
  }

  /** The link is whole again: what it lost is sent once more. */
  resend(): void {
    for (; this.#stalledCount > 0; this.#stalledCount--) this.#planArrival()
  }

  /** Moves what fits from the queue into the window and sends it; then, when nothing is left, the end. */
  #flush(): void {
    this.#isFlushPlanned = false
    if (this.#isClosed) return
    const room = windowBytes - this.#windowUsed
    const length = Math.min(room, this.#queuedBytes)
    const written: (() => void)[] = []
    if (this.#queue.length > 0) this.#sendData(this.#takeQueued(length, written))
    for (const onWritten of written) onWritten()
    if (this.#isClosed) return // by one of them
    if (this.#needsDrain && this.#queuedBytes === 0) {
      this.#needsDrain = false
      if (!this.#isEnded) this.#handlers?.onDrain?.()
    }
    if (this.#isEnded && this.#queue.length === 0 && !this.#isEndSent) {
      this.#isEndSent = true
      this.#send('end')
      if (this.#isPeerEnded) this.#close(undefined)
      else this.#context.scheduler.schedule(lingerUs, this.process, () => this.#close(undefined))
    }
  }

  /** A copy of the next `length` queued bytes; adds the callbacks of the writes that are done with them to `written`. */
  #takeQueued(length: number, written: (() => void)[]): Buffer {
    const data = Buffer.allocUnsafe(length)
    let filled = 0
    let writesDone = 0
    while (writesDone < this.#queue.length) {
      const write = this.#queue[writesDone]!
      const wanted = Math.min(write.length - this.#sentOfFirst, length - filled)
      copyFrom(write.chunks, this.#sentOfFirst, data, filled, wanted)
      filled += wanted
      this.#sentOfFirst += wanted
      if (this.#sentOfFirst < write.length) break
      this.#sentOfFirst = 0
      writesDone++
      if (write.onWritten !== undefined) written.push(write.onWritten)
    }
    this.#queue.splice(0, writesDone)
    this.#queuedBytes -= length
    return data
  }

  #sendData(data: Buffer): void {
    this.#windowUsed += data.length
    const { random } = this.#context
    let from = 0
    if (random.chance(splitShare)) {
      for (let pieces = random.between(1, 3); pieces > 0 && data.length - from > 1; pieces--) {
        const end = from + random.between(1, data.length - from - 1)
        this.#send(data.subarray(from, end))
        from = end
      }
    }
    if (from < data.length) this.#send(from === 0 ? data : data.subarray(from))
  }

  #send(segment: Segment): void {
    this.#onTheWay.push(segment)
    this.#planArrival()
  }

  #planArrival(): void {
    const { network, scheduler } = this.#context
    const latencyUs = network.drawLatencyUs(this.host, this.peerHost)
    // Nobody owns the event: that the peer's process is dead or paused doesn't stop the data on its way.
    scheduler.schedule(latencyUs, undefined, () => {
      if (network.isCut(this.host, this.peerHost)) {
        this.#stalledCount++
        network.addStalled(this)
      } else {
        scheduler.lastHost = this.peerHost
        this.#peer.#arrive(this.#onTheWay.shift()!)
      }
    })
  }

  /** `segment` reaches this end's host. */
  #arrive(segment: Segment): void {
    if (this.process.isDead || this.#isClosed) {
      // Nobody is there to take it.
      if (segment instanceof Buffer) this.#send('reset')
      return
    }
    this.#received.push(segment)
    if (this.process.isPaused) this.#later(() => this.#deliver())
    else this.#deliver()
  }

  /** Gives the handlers what was received. */
  #deliver(): void {
    while (this.#handlers !== undefined && !this.#isClosed) {
      const isReset = this.#received.at(-1) === 'reset'
      if (!this.#isReading && !isReset) return
      const segment = isReset ? 'reset' : this.#received.shift()
      if (segment === undefined) return
      if (segment === 'reset') {
        this.#close(new NetworkError('transfer', this.remoteAddress, this.remotePort, 'ECONNRESET'))
      } else if (segment === 'end') {
        this.#isPeerEnded = true
        if (this.#isEndSent) this.#close(undefined)
        else this.#endToo()
      } else {
        this.#peer.#openWindow(segment.length)
        this.#record('receive', segment.length, [segment])
        if (!this.#isEnded) {
          // Lent, as by the real one: who keeps it reads rubbish.
          this.#handlers.onData(segment)
          segment.fill(rubbish)
        }
      }
    }
  }

  /** The peer ended: this end sends what is queued and ends as well. */
  #endToo(): void {
    this.#isEnded = true
    this.#planFlush(0)
  }

  /** The peer took `length` bytes out of the window. */
  #openWindow(length: number): void {
    this.#windowUsed -= length
    if (this.#queue.length === 0 || this.process.isDead) return
    this.#planFlush(this.#context.network.drawLatencyUs(this.peerHost, this.host))
  }

  #planFlush(delayUs: number): void {
    if (this.#isFlushPlanned) return
    this.#isFlushPlanned = true
    this.#context.scheduler.schedule(delayUs, this.process, () => this.#flush())
  }

  #close(error: Error | undefined): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#isEnded = true
    this.#context.network.forget(this)
    for (const { onWritten } of this.#queue.splice(0)) if (onWritten !== undefined) this.#later(onWritten)
    this.#queuedBytes = 0
    this.#received.length = 0
    this.#later(() => {
      this.#record('closed', 0)
      this.#handlers?.onClose(error)
    })
  }

  #later(body: () => void): void {
    this.#context.scheduler.schedule(0, this.process, body)
  }

  #record(operation: string, length: number, chunks?: readonly Uint8Array[]): void {
    const { scheduler } = this.#context
    scheduler.trace.record(scheduler.nowUs, this.host, operation, this.peerHost, this.remotePort, length, chunks)
  }
}

/** Copies `length` bytes that begin at byte `start` of `chunks` to `target` at `at`. */
function copyFrom(chunks: readonly Uint8Array[], start: number, target: Buffer, at: number, length: number): void {
  for (const chunk of chunks) {
    if (length === 0) return
    if (start >= chunk.length) {
      start -= chunk.length
      continue
    }
    const count = Math.min(chunk.length - start, length)
    target.set(count === chunk.length ? chunk : chunk.subarray(start, start + count), at)
    at += count
    length -= count
    start = 0
  }
}
