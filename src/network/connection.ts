import { addressText } from '../base/index.ts'
import type { Socket } from '../platform/index.ts'
import { FrameError } from './errors.ts'
import { foreignProtocol, httpRefusal } from './foreign-protocol.ts'
import type { FramePool } from './frame-pool.ts'
import { FrameReader } from './frame-reader.ts'
import type { MemoryBudget } from './memory-budget.ts'
import type { NetworkProbe } from './probe.ts'
import type { Answer, CloseAnswer, ConnectionFacts, RequestHandler, ResponseLoan } from './request-handler.ts'

/** What a connection needs of the server that it belongs to. */
export interface ConnectionHost {
  readonly handler: RequestHandler
  readonly maxRequestBytes: number
  readonly maxInFlight: number
  readonly framePool: FramePool
  readonly requestBudget: MemoryBudget
  readonly responseBudget: MemoryBudget
  readonly probe: NetworkProbe
  /** False while the broker has no memory for what this connection would send. */
  mayRead(connection: Connection): boolean
  /** False while the broker has no memory for answers of this connection, unless they are small. */
  mayBeginLarge(connection: Connection): boolean
  /** False when others have their turn first; the connection is advanced when its own comes. `isBrief`: the answer is small. */
  mayBeginNow(connection: Connection, isBrief: boolean): boolean
  /** The same for writing an answer that is there. */
  mayWriteNow(connection: Connection, isBrief: boolean): boolean
  /** It waits for its turn and nothing else. */
  isStanding(connection: Connection): boolean
  /** Handed to the socket. */
  onWrite(bytes: number): void
  /** What one answer may take of the memory for responses. */
  responseShareBytes(): number
  /** Nothing more is read until `updateReading` finds that it may be. */
  onPaused(connection: Connection): void
  /** A frame that was being received is whole. */
  onFrameWhole(connection: Connection): void
  monotonic(): number
  /** Says in one line why this connection is closed. */
  refused(connection: Connection, answer: CloseAnswer): void
  closed(connection: Connection, error: Error | undefined): void
}

/** Of requests that wait for their turn, or are under way, a connection that is still read holds no more. */
const maxStandingBytes = 64 * 1024
/** Given as the reason: without one an error with a stack is made for each connection that closes, at four times the cost. */
const isOver = 'The connection takes no more requests'

/** A request that began, in the order of arrival. */
interface Entry {
  readonly overlaps: boolean
  readonly isBrief: boolean
  /** Until the answer is there; then its memory is used for another. */
  frame: Buffer | undefined
  answer: Answer | undefined
}

/**
 * One accepted connection.
 *
 * Open: bytes are cut into frames; each begins as soon as it may and its answer leaves in its turn.
 * Draining (`drain`): no further request begins; what has begun is answered, then it ends.
 * Ending (a refusal or a finished drain): what still arrives is dropped until the socket closes.
 */
export class Connection implements ConnectionFacts {
  readonly peer: string
  readonly remoteAddress: string
  readonly localAddress: string
  readonly localPort: number
  readonly listenerName: string
  readonly #host: ConnectionHost
  readonly #socket: Socket
  readonly #reader: FrameReader
  readonly #abort = new AbortController()
  /** Begun and not yet handed to the socket, oldest first. */
  readonly #inFlight: Entry[] = []
  /** Of those in flight, the ones without an answer, and how many of these don't let others begin. */
  #unanswered = 0
  #unansweredExclusive = 0
  /** A whole frame that may not begin yet. */
  #waiting: Buffer | undefined
  #state: 'open' | 'draining' | 'ending' | 'closed' = 'open'
  #isReadingPaused: boolean = false
  /** The socket has more queued than its mark. */
  #isSocketFull: boolean = false
  #hasHadFrame: boolean = false
  /** Bytes charged to the request budget for what arrived and was not answered. */
  #requestBytes = 0
  /** Bytes charged to the response budget: answers that wait for their turn or for the socket. */
  #responseBytes = 0
  /** Time (monotonic) of the last byte in or out. */
  #lastActiveMs: number
  #lastWrittenMs: number

  constructor(host: ConnectionHost, socket: Socket, listenerName: string) {
    this.#host = host
    this.#socket = socket
    this.listenerName = listenerName
    this.remoteAddress = socket.remoteAddress
    this.localAddress = socket.localAddress
    this.localPort = socket.localPort
    this.peer = addressText({ host: socket.remoteAddress, port: socket.remotePort })
    this.#reader = new FrameReader(host.maxRequestBytes, host.framePool)
    this.#lastActiveMs = host.monotonic()
    this.#lastWrittenMs = this.#lastActiveMs
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  lendResponseBytes(maxBytes: number): ResponseLoan {
    const budget = this.#host.responseBudget
    const bytes = Math.max(1, Math.min(maxBytes, this.#host.responseShareBytes()))
    budget.add(bytes)
    return { bytes, giveBack: () => budget.remove(bytes) }
  }

  /** Nothing was asked, is being asked or is on its way out. */
  get isIdle(): boolean {
    return this.#inFlight.length === 0 && this.#waiting === undefined && this.#responseBytes === 0
  }

  /** Time (monotonic, ms) of the last byte in or out. */
  get lastActiveMs(): number {
    return this.#lastActiveMs
  }

  /** Time (monotonic, ms) of the last answer that was written or, before there was one, of the first that waits for the socket. */
  get lastWrittenMs(): number {
    return this.#lastWrittenMs
  }

  get requestBytes(): number {
    return this.#requestBytes
  }

  get responseBytes(): number {
    return this.#responseBytes
  }

  /** A frame has begun that isn't whole. */
  get isInsideFrame(): boolean {
    return this.#state === 'open' && this.#waiting === undefined && this.#reader.isInsideFrame
  }

  get missingBytes(): number {
    return this.#reader.missingBytes
  }

  start(): void {
    this.#socket.start({
      onData: (chunk) => this.#onData(chunk),
      onDrain: () => {
        this.#isSocketFull = false
        this.advance()
      },
      onClose: (error) => this.#onClose(error),
    })
  }

  /** Begins what may begin, and reads on when nothing is in the way: called when a limit that held this connection gave way. */
  advance(): void {
    do {
      this.#beginAll()
      this.#flush()
    } while (this.#waiting !== undefined && this.#mayBegin(this.#waiting))
    this.updateReading()
  }

  /** Stops or resumes reading, as the limits say. */
  updateReading(): void {
    if (this.#state === 'ending' || this.#state === 'closed') return
    const paused = this.#state !== 'open' || this.#isHeldUp || !this.#host.mayRead(this)
    if (paused === this.#isReadingPaused) return
    this.#isReadingPaused = paused
    if (paused) {
      this.#socket.pause()
      this.#host.onPaused(this)
    } else this.#socket.resume()
  }

  /** A frame may not begin yet. One that only waits for its turn will soon: stopping the socket would cost more than its bytes. */
  get #isHeldUp(): boolean {
    if (this.#waiting === undefined) return false
    return this.#requestBytes > maxStandingBytes || !this.#host.isStanding(this)
  }

  /** Takes no further request; ends when those that began are answered. Waiting fetches are told to answer. */
  drain(): void {
    if (this.#state !== 'open') return
    this.#state = 'draining'
    this.updateReading()
    this.#abort.abort(isOver)
    this.#maybeEnd()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #onData(chunk: Buffer): void {
    if (this.#state !== 'open') return
    this.#lastActiveMs = this.#host.monotonic()
    this.#requestBytes += chunk.length
    this.#host.probe.bytesIn.value += chunk.length
    this.#host.requestBudget.add(chunk.length)
    this.#reader.push(chunk)
    this.advance()
    this.#reader.keep()
  }

  #beginAll(): void {
    while (this.#state === 'open') {
      if (this.#waiting === undefined) {
        this.#waiting = this.#nextFrame()
        if (this.#waiting === undefined) return
        this.#host.onFrameWhole(this)
      }
      if (!this.#mayBegin(this.#waiting)) return
      const frame = this.#waiting
      this.#waiting = undefined
      this.#begin(frame)
    }
  }

  #nextFrame(): Buffer | undefined {
    try {
      const frame = this.#reader.next()
      if (frame !== undefined) this.#hasHadFrame = true
      return frame
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      // In its turn, as any answer: what came before it is served. Nothing after it can be read.
      this.#inFlight.push({ overlaps: false, isBrief: true, frame: undefined, answer: this.#refusalOf(error) })
      this.#state = 'draining'
      return undefined
    }
  }

  #refusalOf(error: FrameError): CloseAnswer {
    switch (this.#hasHadFrame ? undefined : foreignProtocol(error.length)) {
      case 'TLS':
        return { close: 'TLS on a plaintext listener' }
      case 'HTTP':
        return { close: 'HTTP on a Kafka listener', farewell: httpRefusal() }
      default:
        return { close: error.message }
    }
  }

  #mayBegin(frame: Buffer): boolean {
    const { maxInFlight, handler } = this.#host
    if (this.#state !== 'open' || this.#isSocketFull || this.#inFlight.length >= maxInFlight) return false
    // Few slow readers of much must not hold up everyone's acknowledgements and heartbeats.
    const apiKey = apiKeyOf(frame)
    const isBrief = handler.isBrief(apiKey)
    if (!isBrief && !this.#host.mayBeginLarge(this)) return false
    const isNext = this.#unanswered === 0 || (this.#unansweredExclusive === 0 && handler.mayOverlap(apiKey))
    return isNext && this.#host.mayBeginNow(this, isBrief)
  }

  #begin(frame: Buffer): void {
    const { handler } = this.#host
    const apiKey = apiKeyOf(frame)
    const entry: Entry = {
      overlaps: handler.mayOverlap(apiKey),
      isBrief: handler.isBrief(apiKey),
      frame,
      answer: undefined,
    }
    this.#inFlight.push(entry)
    this.#unanswered++
    if (!entry.overlaps) this.#unansweredExclusive++
    try {
      const answer = handler.handle(frame, this)
      if (!(answer instanceof Promise)) this.#settle(entry, answer)
      else {
        answer.then(
          (given) => this.#settleLater(entry, given),
          (fault) => this.#settleLater(entry, { close: 'The request failed', fault }),
        )
      }
    } catch (fault) {
      this.#settle(entry, { close: 'The request failed', fault })
    }
  }

  #settleLater(entry: Entry, answer: Answer): void {
    this.#settle(entry, answer)
    if (this.#host.mayWriteNow(this, entry.isBrief)) this.advance()
  }

  #settle(entry: Entry, answer: Answer): void {
    const frame = entry.frame!
    entry.frame = undefined
    this.#host.framePool.giveBack(frame)
    if (this.#state === 'ending' || this.#state === 'closed') {
      releaseOf(answer)?.()
      return
    }
    entry.answer = answer
    this.#unanswered--
    if (!entry.overlaps) this.#unansweredExclusive--
    const requestBytes = frame.length + 4
    this.#requestBytes -= requestBytes
    this.#host.requestBudget.remove(requestBytes)
    const bytes = sizeOf(answer)
    if (bytes === 0) return
    if (this.#responseBytes === 0) this.#lastWrittenMs = this.#host.monotonic()
    this.#responseBytes += bytes
    this.#host.responseBudget.add(bytes)
  }

  /** Hands the socket, as one write, every answer whose turn has come. */
  #flush(): void {
    const inFlight = this.#inFlight
    if (inFlight[0]?.answer === undefined) return
    const chunks: Uint8Array[] = []
    const releases: (() => void)[] = []
    let bytes = 0
    let sent = 0
    let refusal: CloseAnswer | undefined
    while (refusal === undefined && sent < inFlight.length) {
      const answer = inFlight[sent]!.answer
      if (answer === undefined) break
      sent++
      if (answer === 'none') continue
      if ('close' in answer) {
        refusal = answer
        continue
      }
      bytes += sizeOf(answer)
      for (const chunk of answer.chunks) chunks.push(chunk)
      if (answer.release !== undefined) releases.push(answer.release)
    }
    inFlight.splice(0, sent)
    if (bytes > 0) this.#write(chunks, bytes, releases)
    if (refusal !== undefined) this.#refuse(refusal)
    else this.#maybeEnd()
  }

  #write(chunks: readonly Uint8Array[], bytes: number, releases: readonly (() => void)[]): void {
    const hasRoom = this.#socket.write(chunks, () => {
      for (const release of releases) release()
      this.#responseBytes -= bytes
      this.#host.probe.bytesOut.value += bytes
      this.#lastActiveMs = this.#host.monotonic()
      this.#lastWrittenMs = this.#lastActiveMs
      this.#host.responseBudget.remove(bytes)
    })
    if (!hasRoom) this.#isSocketFull = true
    this.#host.onWrite(bytes)
  }

  #maybeEnd(): void {
    if (this.#state === 'draining' && this.#inFlight.length === 0) this.#end()
  }

  #refuse(answer: CloseAnswer): void {
    if (answer.farewell !== undefined) this.#socket.write([answer.farewell])
    this.#host.refused(this, answer)
    this.#forgetAnswers()
    this.#end()
  }

  #end(): void {
    this.#state = 'ending'
    this.#forgetUnread()
    this.#abort.abort(isOver)
    this.#socket.end()
  }

  #forgetUnread(): void {
    if (this.#waiting !== undefined) this.#host.framePool.giveBack(this.#waiting)
    this.#waiting = undefined
    this.#reader.stop()
  }

  #onClose(error: Error | undefined): void {
    this.#state = 'closed'
    this.#forgetUnread()
    this.#host.requestBudget.remove(this.#requestBytes)
    this.#requestBytes = 0
    this.#forgetAnswers()
    this.#abort.abort(isOver)
    this.#host.closed(this, error)
  }

  /** What was handed to the socket gives itself back (`onWritten` runs in any case); this is what wasn't. */
  #forgetAnswers(): void {
    for (const { answer } of this.#inFlight) {
      if (answer === undefined) continue
      const bytes = sizeOf(answer)
      this.#responseBytes -= bytes
      this.#host.responseBudget.remove(bytes)
      releaseOf(answer)?.()
    }
    this.#inFlight.length = 0
  }
}

/** What a request begins with; -1 when it is too short to have one. */
function apiKeyOf(frame: Buffer): number {
  return frame.length < 2 ? -1 : ((frame[0]! << 24) | (frame[1]! << 16)) >> 16
}

/** Bytes that an answer puts on the wire. */
function sizeOf(answer: Answer): number {
  if (answer === 'none' || 'close' in answer) return 0
  let bytes = 0
  for (const chunk of answer.chunks) bytes += chunk.length
  return bytes
}

function releaseOf(answer: Answer): (() => void) | undefined {
  return answer === 'none' || 'close' in answer ? undefined : answer.release
}
