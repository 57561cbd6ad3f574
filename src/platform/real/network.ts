import * as net from 'node:net'
import { assert } from '../../base/index.ts'
import { NetworkError, systemCodeOf } from '../errors.ts'
import type { Listener, ListenOptions, Network, Socket, SocketHandlers } from '../ports.ts'

/** `write` returns false when more than this is queued. A few replies of a fetch; less would stop and start too often. */
const queueMarkBytes = 256 * 1024
/** How long a socket that ended waits for the peer to end too. Closing at once would answer what still comes with a reset, which can take from the peer what it was just sent. */
const lingerMs = 1000
/** Tries to find one port that is free on both addresses of localhost. */
const portAttempts = 20

/**
 * What one read takes at most. All sockets read into the same memory, since libuv reads and reports in one go: a fresh chunk for each
 * read costs an allocation, and makes V8 collect garbage for each few dozen of them. On Windows reads are under way
 * before there is data, so each socket has memory of its own.
 */
const readBytes = 256 * 1024
const windowsReadBytes = 64 * 1024
let sharedReadBuffer: Buffer | undefined

function readBuffer(): Buffer {
  if (process.platform === 'win32') return Buffer.allocUnsafeSlow(windowsReadBytes)
  sharedReadBuffer ??= Buffer.allocUnsafeSlow(readBytes)
  return sharedReadBuffer
}

/** How long a connection is silent before the system asks whether the peer is still there: one that vanished is closed about ten seconds later. */
const keepAliveInitialDelay = 60_000

const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay, highWaterMark: queueMarkBytes }

/** TCP over node:net. */
export class RealNetwork implements Network {
  async listen(options: ListenOptions, onConnection: (socket: Socket) => void): Promise<Listener> {
    const { host, port } = options
    const open = (address: string, atPort: number): Promise<net.Server> => listenOn(host, address, atPort, onConnection)
    if (host === 'localhost') return new RealListener(host, await listenLocal(port, open))
    if (host !== '::') return new RealListener(host, [await open(host, port)])
    try {
      return new RealListener(host, [await open('::', port)])
    } catch (error) {
      if (!isAddressMissing(error)) throw error
      return new RealListener(host, [await open('0.0.0.0', port)]) // a machine without IPv6
    }
  }

  connect(options: { host: string; port: number; timeoutMs: number }): Promise<Socket> {
    const { host, port, timeoutMs } = options
    return new Promise((resolve, reject) => {
      const reading = new Reading()
      const socket = net.connect({ ...socketOptions, host, port, onread: reading })
      socket.pause() // until there is a handler
      const fail = (systemCode: string, cause?: unknown): void => {
        clearTimeout(timeout)
        socket.destroy()
        reject(new NetworkError('connect', host, port, systemCode, { cause }))
      }
      const timeout = setTimeout(() => fail('ETIMEDOUT'), timeoutMs)
      const onError = (error: Error): void => fail(systemCodeOf(error), error)
      socket.once('error', onError)
      socket.once('connect', () => {
        clearTimeout(timeout)
        socket.off('error', onError)
        resolve(new RealSocket(socket, reading))
      })
    })
  }
}

/** 127.0.0.1 and, where there is one, ::1, both on one port. */
async function listenLocal(
  port: number,
  open: (address: string, port: number) => Promise<net.Server>,
): Promise<net.Server[]> {
  for (let attempt = 1; ; attempt++) {
    const first = await open('127.0.0.1', port)
    try {
      return [first, await open('::1', portOf(first))]
    } catch (error) {
      if (isAddressMissing(error)) return [first]
      first.close()
      const isTaken = error instanceof NetworkError && error.systemCode === 'EADDRINUSE'
      if (!isTaken || port !== 0 || attempt === portAttempts) throw error
    }
  }
}

function listenOn(
  host: string,
  address: string,
  port: number,
  onConnection: (socket: Socket) => void,
): Promise<net.Server> {
  return new Promise((resolve, reject) => {
    const server = net.createServer({ ...socketOptions, pauseOnConnect: true }, (socket) =>
      onConnection(acceptedSocket(socket)),
    )
    const onError = (error: Error): void =>
      reject(new NetworkError('listen', host, port, systemCodeOf(error), { cause: error }))
    server.once('error', onError)
    server.listen({ host: address, port }, () => {
      server.off('error', onError)
      // Later errors are of one accept: that connection was closed by the system, the next may do. At EMFILE libuv closes it, and tells nobody.
      server.on('error', () => {})
      resolve(server)
    })
  })
}

/**
 * Node reads into memory of the caller for sockets that connect, and has no option for those a server accepts; so the accepted handle gets a
 * socket anew. Nothing has been read from it yet.
 */
function acceptedSocket(accepted: net.Socket): RealSocket {
  const owner = accepted as unknown as { _handle: unknown }
  const reading = new Reading()
  const options = { ...socketOptions, handle: owner._handle, onread: reading }
  owner._handle = null
  const socket = new net.Socket(options as net.SocketConstructorOpts)
  socket.pause() // until there is a handler
  return new RealSocket(socket, reading)
}

/** Where a socket's bytes are read to, and who gets them. */
class Reading implements net.OnReadOpts {
  readonly buffer = readBuffer()
  onData: ((chunk: Buffer) => void) | undefined
  readonly callback = (bytes: number): boolean => {
    this.onData?.(this.buffer.subarray(0, bytes))
    return true
  }
}

function isAddressMissing(error: unknown): boolean {
  return error instanceof NetworkError && ['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL'].includes(error.systemCode)
}

function portOf(server: net.Server): number {
  const address = server.address()
  assert(address !== null && typeof address === 'object', 'a listening TCP server has an address')
  return address.port
}

class RealListener implements Listener {
  readonly host: string
  readonly port: number
  readonly #servers: readonly net.Server[]

  constructor(host: string, servers: readonly net.Server[]) {
    this.host = host
    this.port = portOf(servers[0]!)
    this.#servers = servers
  }

  close(): Promise<void> {
    // The callback of `close` would wait for the accepted connections; the port is free in the next turn of the loop.
    for (const server of this.#servers) server.close()
    return new Promise((resolve) => setImmediate(resolve))
  }
}

/**
 * Writes of one turn are corked and leave as one writev when the callbacks and promises of that turn have run. A system call
 * for each reply costs 4 to 5 us; with 16 replies in a turn the server does four times as many, with 64 six times.
 */
class RealSocket implements Socket {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly localAddress: string
  readonly localPort: number
  readonly #socket: net.Socket
  readonly #reading: Reading
  #handlers: SocketHandlers | undefined
  #error: Error | undefined
  #isClosed: boolean = false
  #isEnded: boolean = false
  #isCorked: boolean = false
  /** As a microtask that asks for a tick: the tick comes when the promises of the turn have run, and so have written. */
  readonly #uncorkSoon = (): void => process.nextTick(this.#uncork)
  readonly #uncork = (): void => {
    this.#isCorked = false
    this.#socket.uncork()
  }

  constructor(socket: net.Socket, reading: Reading) {
    this.#socket = socket
    this.#reading = reading
    // Kept: after the close the system doesn't tell any more.
    this.remoteAddress = plainAddress(socket.remoteAddress)
    this.remotePort = socket.remotePort ?? 0
    this.localAddress = plainAddress(socket.localAddress)
    this.localPort = socket.localPort ?? 0
    socket.on('error', (error) => {
      this.#error = new NetworkError('transfer', this.remoteAddress, this.remotePort, systemCodeOf(error), {
        cause: error,
      })
    })
    socket.on('close', () => {
      this.#isClosed = true
      this.#handlers?.onClose(this.#error)
    })
  }

  get queuedBytes(): number {
    return this.#socket.writableLength
  }

  start(handlers: SocketHandlers): void {
    assert(this.#handlers === undefined, 'the handlers of a socket are set once')
    this.#handlers = handlers
    if (this.#isClosed) {
      process.nextTick(() => handlers.onClose(this.#error))
      return
    }
    this.#socket.on('drain', () => handlers.onDrain?.())
    this.#reading.onData = (chunk) => {
      if (!this.#isEnded) handlers.onData(chunk)
    }
    this.#socket.resume()
  }

  write(chunks: readonly Uint8Array[], onWritten?: () => void): boolean {
    const socket = this.#socket
    if (this.#isEnded || socket.destroyed || !socket.writable) {
      if (onWritten !== undefined) process.nextTick(onWritten)
      return true
    }
    if (!this.#isCorked) {
      this.#isCorked = true
      socket.cork()
      queueMicrotask(this.#uncorkSoon)
    }
    const last = chunks.length - 1
    if (last < 0) return socket.write('', onWritten)
    for (let i = 0; i < last; i++) socket.write(chunks[i]!)
    return socket.write(chunks[last]!, onWritten)
  }

  pause(): void {
    if (!this.#isEnded) this.#socket.pause()
  }

  resume(): void {
    // Before `start` there is nobody to take the data: it would be lost.
    if (this.#handlers !== undefined) this.#socket.resume()
  }

  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    const socket = this.#socket
    socket.end(() => {
      const timeout = setTimeout(() => socket.destroy(), lingerMs)
      timeout.unref()
      socket.once('close', () => clearTimeout(timeout))
    })
    // What still comes is dropped; only so is the peer's end seen.
    socket.resume()
  }

  destroy(): void {
    this.#isEnded = true
    this.#socket.destroy()
  }
}

/** An IPv4 peer of a dual-stack listener shows as IPv4. */
function plainAddress(address: string | undefined): string {
  return address?.startsWith('::ffff:') === true ? address.slice(7) : (address ?? '')
}
