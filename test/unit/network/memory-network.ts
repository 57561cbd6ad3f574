import type { Listener, ListenOptions, Network, Platform, Socket, SocketHandlers } from '../../../src/platform/index.ts'

/** Time that moves when a test says so. `defer` runs in the next microtask turn. */
export class ManualTime {
  nowMs = 1_000_000
  readonly #timers = new Set<{ dueMs: number; callback: () => void }>()

  readonly clock = { now: () => this.nowMs, monotonic: () => this.nowMs }

  readonly timers = {
    set: (delayMs: number, callback: () => void) => {
      const timer = { dueMs: this.nowMs + delayMs, callback }
      this.#timers.add(timer)
      return { cancel: () => void this.#timers.delete(timer) }
    },
    defer: (callback: () => void) => void setImmediate(callback),
  }

  get pendingTimers(): number {
    return this.#timers.size
  }

  /** Moves time and runs what falls due, in order. */
  advance(ms: number): void {
    const endMs = this.nowMs + ms
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)[0]
      if (due === undefined) break
      this.#timers.delete(due)
      this.nowMs = Math.max(this.nowMs, due.dueMs)
      due.callback()
    }
    this.nowMs = endMs
  }
}

/** The broker's end of a connection, with the client's side in the hands of the test. */
export class MemorySocket implements Socket {
  readonly remoteAddress: string
  readonly remotePort = 50_000
  readonly localAddress = '127.0.0.1'
  readonly localPort = 9092
  #handlers: SocketHandlers | undefined
  isPaused: boolean = false
  isClosed: boolean = false
  /** The broker ended its side. */
  hasEnded: boolean = false
  /** One element for each write. */
  readonly writes: Buffer[] = []
  /** When true, writes stay queued until `drain`. */
  holdsWrites: boolean = false
  #held: { bytes: number; onWritten: (() => void) | undefined }[] = []
  readonly #unread: Buffer[] = []

  constructor(remoteAddress = '10.0.0.9') {
    this.remoteAddress = remoteAddress
  }

  start(handlers: SocketHandlers): void {
    this.#handlers = handlers
    this.#deliver()
  }

  get queuedBytes(): number {
    return this.#held.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  write(chunks: readonly Uint8Array[], onWritten?: () => void): boolean {
    if (this.isClosed || this.hasEnded) {
      onWritten?.()
      return true
    }
    const bytes = Buffer.concat(chunks)
    this.writes.push(bytes)
    if (this.holdsWrites) this.#held.push({ bytes: bytes.length, onWritten })
    else onWritten?.()
    return !this.holdsWrites
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
    this.#deliver()
  }

  end(): void {
    this.hasEnded = true
    this.isPaused = false
  }

  destroy(): void {
    this.clientCloses()
  }

  /** The client sends; while the broker has paused the socket the bytes wait. */
  clientSends(bytes: Buffer): void {
    this.#unread.push(Buffer.from(bytes))
    this.#deliver()
  }

  /** Bytes that the broker did not read yet. */
  get unreadBytes(): number {
    return this.#unread.reduce((sum, chunk) => sum + chunk.length, 0)
  }

  clientCloses(error?: Error): void {
    if (this.isClosed) return
    this.isClosed = true
    const held = this.#held
    this.#held = []
    for (const { onWritten } of held) onWritten?.()
    this.#handlers?.onClose(error)
  }

  /** What was held is written. */
  drain(): void {
    this.holdsWrites = false
    const held = this.#held
    this.#held = []
    for (const { onWritten } of held) onWritten?.()
    this.#handlers?.onDrain?.()
  }

  /** All that the broker wrote. */
  get written(): Buffer {
    return Buffer.concat(this.writes)
  }

  /** The frames that the broker wrote, without their lengths. */
  get frames(): Buffer[] {
    const frames: Buffer[] = []
    const bytes = this.written
    for (let at = 0; at < bytes.length; at += 4 + bytes.readInt32BE(at)) {
      frames.push(bytes.subarray(at + 4, at + 4 + bytes.readInt32BE(at)))
    }
    return frames
  }

  #deliver(): void {
    while (this.#handlers !== undefined && !this.isPaused && !this.isClosed && this.#unread.length > 0) {
      const lent = Buffer.from(this.#unread.shift()!)
      this.#handlers.onData(lent)
      lent.fill(0xdb)
    }
  }
}

/** Listeners without a network: `connect` gives the client's end of a new connection. */
export class MemoryNetwork implements Network {
  readonly #acceptors = new Map<number, (socket: Socket) => void>()
  #nextPort = 9092

  listen(options: ListenOptions, onConnection: (socket: Socket) => void): Promise<Listener> {
    const port = options.port === 0 ? this.#nextPort++ : options.port
    this.#acceptors.set(port, onConnection)
    const close = () => {
      this.#acceptors.delete(port)
      return Promise.resolve()
    }
    return Promise.resolve({ host: options.host, port, close })
  }

  connect(): Promise<Socket> {
    return Promise.reject(new Error('Only the server side is in memory'))
  }

  get isListening(): boolean {
    return this.#acceptors.size > 0
  }

  accept(port = 9092, remoteAddress?: string): MemorySocket {
    const socket = new MemorySocket(remoteAddress)
    this.#acceptors.get(port)!(socket)
    return socket
  }
}

export function memoryPlatform(): {
  platform: Pick<Platform, 'network' | 'clock' | 'timers'>
  network: MemoryNetwork
  time: ManualTime
} {
  const network = new MemoryNetwork()
  const time = new ManualTime()
  return { platform: { network, clock: time.clock, timers: time.timers }, network, time }
}

/** `length | body` */
export function frameOf(body: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length)
  return Buffer.concat([length, body])
}

/** Lets promises and deferred callbacks run. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve))
}
