import { messageOf } from '../../src/base/index.ts'
import { type Network, NetworkError, type Platform, type Socket } from '../../src/platform/index.ts'
import {
  type RpcChannel,
  RpcError,
  type RpcFailure,
  type RpcListener,
  type RpcNetwork,
  type RpcService,
  type RpcStream,
  type RpcStreamHandlers,
  type RpcTarget,
  type StreamMethod,
} from '../../src/rpc/index.ts'

/** A frame: 4 bytes length of what follows, 1 byte kind, the content. The first names the method. */
const frameKinds = { open: 0, message: 1, end: 2, error: 3 } as const
const headerBytes = 5
const connectTimeoutMs = 10_000
const nothing = Buffer.alloc(0)
/** One for all calls, as nobody sees it: an error with its stack costs more than all else of a call. */
const callIsOver = new RpcError('cancelled', 'The call was answered')

/**
 * Stands in for gRPC where a cluster is simulated: each call and each stream is a connection of its own over the platform's network, so
 * that cuts, delays and crashes of the simulated hosts reach it.
 */
export function createSocketRpc(platform: Pick<Platform, 'network' | 'timers'>): RpcNetwork {
  return {
    listen: (options, service) => listen(platform.network, options, service),
    connect: (target) => new SocketChannel(platform, target),
  }
}

async function listen(network: Network, options: RpcTarget, service: RpcService): Promise<RpcListener> {
  const connections = new Set<Connection>()
  const listener = await network
    .listen(options, (socket) => {
      const connection = new Connection(socket)
      connections.add(connection)
      serve(connection, service, () => connections.delete(connection))
    })
    .catch((error: unknown) => {
      const isTaken = error instanceof NetworkError && error.systemCode === 'EADDRINUSE'
      throw new RpcError(isTaken ? 'address-in-use' : 'unavailable', messageOf(error), { cause: error })
    })
  return {
    port: listener.port,
    async close() {
      await listener.close()
      for (const connection of connections) connection.destroy()
    },
  }
}

function serve(connection: Connection, service: RpcService, onClosed: () => void): void {
  let handlers: RpcStreamHandlers | undefined
  let call: 'Describe' | 'Ask' | undefined
  connection.start({
    onFrame(kind, content) {
      if (kind === frameKinds.open) {
        const method = content.toString()
        if (method === 'Describe' || method === 'Ask') call = method
        else handlers = service.stream(method as StreamMethod, connection.stream(), connection.remote)
      } else if (kind === frameKinds.message && call !== undefined) {
        void service.call(call, content, connection.remote).then(
          (answer) => connection.send(frameKinds.message, answer),
          (error: unknown) => connection.fail(error),
        )
      } else if (kind === frameKinds.message) {
        handlers?.onMessage(content)
      } else if (kind === frameKinds.end) {
        connection.end()
        connection.close(undefined)
      }
    },
    onClose(error) {
      onClosed()
      handlers?.onClose(error)
    },
  })
}

class SocketChannel implements RpcChannel {
  readonly #platform: Pick<Platform, 'network' | 'timers'>
  readonly #target: RpcTarget
  readonly #connections = new Set<Connection>()
  #isClosed = false

  constructor(platform: Pick<Platform, 'network' | 'timers'>, target: RpcTarget) {
    this.#platform = platform
    this.#target = target
  }

  call(method: 'Describe' | 'Ask', request: Uint8Array, timeoutMs: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const connection = this.#open(method, {
        onMessage(answer) {
          timer.cancel()
          resolve(answer)
          connection.close(callIsOver)
        },
        onClose(error) {
          timer.cancel()
          reject(error ?? new RpcError('unavailable', 'The connection was closed'))
        },
      })
      const timer = this.#platform.timers.set(timeoutMs, () => {
        connection.close(new RpcError('deadline-exceeded', `${this.#target.host}: no answer within ${timeoutMs} ms`))
      })
      connection.send(frameKinds.message, request)
    })
  }

  openStream(method: StreamMethod, handlers: RpcStreamHandlers): RpcStream {
    return this.#open(method, handlers).stream()
  }

  close(): void {
    this.#isClosed = true
    for (const connection of [...this.#connections]) connection.close(new RpcError('cancelled', 'Channel closed'))
  }

  #open(method: string, handlers: RpcStreamHandlers): Connection {
    const connection = new Connection(undefined)
    this.#connections.add(connection)
    connection.start({
      onFrame(kind, content) {
        if (kind === frameKinds.message) handlers.onMessage(content)
        else if (kind === frameKinds.error) connection.close(errorFrom(content))
        else connection.close(undefined)
      },
      onClose: (error) => {
        this.#connections.delete(connection)
        handlers.onClose(error)
      },
    })
    connection.send(frameKinds.open, Buffer.from(method))
    if (this.#isClosed) queueMicrotask(() => connection.close(new RpcError('cancelled', 'Channel closed')))
    else void this.#connect(connection)
    return connection
  }

  async #connect(connection: Connection): Promise<void> {
    try {
      connection.attach(await this.#platform.network.connect({ ...this.#target, timeoutMs: connectTimeoutMs }))
    } catch (error) {
      const isRefused = error instanceof NetworkError && error.systemCode === 'ECONNREFUSED'
      connection.close(new RpcError(isRefused ? 'connection-refused' : 'unavailable', messageOf(error)))
    }
  }
}

interface ConnectionHandlers {
  onFrame(kind: number, content: Buffer): void
  onClose(error: RpcError | undefined): void
}

/** One socket, or one to be: what is sent before there is one waits. */
class Connection {
  #socket: Socket | undefined
  #handlers: ConnectionHandlers | undefined
  #unsent: Buffer[] = []
  #received: Buffer = nothing
  #isClosed = false

  constructor(socket: Socket | undefined) {
    this.#socket = socket
  }

  get remote(): string {
    return this.#socket === undefined ? '' : `${this.#socket.remoteAddress}:${this.#socket.remotePort}`
  }

  start(handlers: ConnectionHandlers): void {
    this.#handlers = handlers
    if (this.#socket !== undefined) this.attach(this.#socket)
  }

  attach(socket: Socket): void {
    this.#socket = socket
    if (this.#isClosed) {
      socket.destroy()
      return
    }
    socket.start({
      onData: (chunk) => this.#onData(chunk),
      onClose: (error) => {
        if (this.#isClosed) return
        this.close(new RpcError('unavailable', messageOf(error ?? 'The connection was closed')))
      },
    })
    for (const frame of this.#unsent.splice(0)) socket.write([frame])
  }

  stream(): RpcStream {
    return {
      send: (message) => this.send(frameKinds.message, message),
      end: () => this.end(),
      cancel: (error) => {
        this.#handlers = undefined // it knows
        if (error === undefined) this.destroy()
        else this.fail(error)
      },
    }
  }

  send(kind: number, content: Uint8Array): boolean {
    if (this.#isClosed) return true
    const frame = Buffer.allocUnsafe(headerBytes + content.length)
    frame.writeUInt32BE(content.length + 1, 0)
    frame[4] = kind
    frame.set(content, headerBytes)
    if (this.#socket !== undefined) return this.#socket.write([frame])
    this.#unsent.push(frame)
    return true
  }

  end(): void {
    this.send(frameKinds.end, nothing)
  }

  fail(error: unknown): void {
    const reason = error instanceof RpcError ? error.reason : 'internal'
    this.send(frameKinds.error, Buffer.from(JSON.stringify({ reason, message: messageOf(error) })))
    this.#socket?.end()
  }

  destroy(): void {
    if (!this.#isClosed) this.close(new RpcError('cancelled', 'The stream was cancelled'))
  }

  close(error: RpcError | undefined): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (error === undefined) this.#socket?.end()
    else this.#socket?.destroy()
    this.#handlers?.onClose(error)
  }

  #onData(chunk: Buffer): void {
    // A copy: the chunk is lent, and what a handler was given stays its own.
    this.#received = this.#received.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#received, chunk])
    while (!this.#isClosed && this.#received.length >= headerBytes) {
      const end = 4 + this.#received.readUInt32BE(0)
      if (this.#received.length < end) return
      const content = this.#received.subarray(headerBytes, end)
      const kind = this.#received[4]!
      this.#received = this.#received.subarray(end)
      this.#handlers?.onFrame(kind, content)
    }
  }
}

function errorFrom(content: Buffer): RpcError {
  const { reason, message } = JSON.parse(content.toString()) as { reason: RpcFailure; message: string }
  return new RpcError(reason, message)
}
