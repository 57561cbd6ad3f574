import {
  type Network,
  NetworkError,
  type Socket,
  type SocketHandlers,
  type Timers,
  Turnstile,
} from '../../platform/index.ts'

/** The ways between nodes, one for each pair. What is sent over one that is cut waits, as TCP has it, until it is healed. */
export class Links {
  readonly #ways = new Map<string, Turnstile>()

  between(a: number, b: number): Turnstile {
    const name = `${Math.min(a, b)}-${Math.max(a, b)}`
    let way = this.#ways.get(name)
    if (way === undefined) {
      way = new Turnstile()
      this.#ways.set(name, way)
    }
    return way
  }

  healAll(): void {
    for (const way of this.#ways.values()) way.letGo()
  }
}

export interface LinkedNetworkOptions {
  readonly network: Network
  readonly timers: Timers
  /** The way to whoever listens on this port; undefined for who is no node. */
  readonly wayTo: (port: number) => Turnstile | undefined
}

/** The network of one node: its connections to other nodes follow the ways between them. */
export class LinkedNetwork implements Network {
  readonly #options: LinkedNetworkOptions

  constructor(options: LinkedNetworkOptions) {
    this.#options = options
  }

  listen(...args: Parameters<Network['listen']>): ReturnType<Network['listen']> {
    return this.#options.network.listen(...args)
  }

  async connect(options: Parameters<Network['connect']>[0]): Promise<Socket> {
    const { network, timers, wayTo } = this.#options
    const { host, port, timeoutMs } = options
    const way = wayTo(port)
    if (way === undefined) return await network.connect(options)
    await new Promise<void>((resolve, reject) => {
      const timer = timers.set(timeoutMs, () => reject(new NetworkError('connect', host, port, 'ETIMEDOUT')))
      way.pass(() => {
        timer.cancel()
        resolve()
      })
    })
    return linkedSocket(await network.connect(options), way)
  }
}

/** `socket` over a way that may be cut: both directions wait while it is. */
function linkedSocket(socket: Socket, way: Turnstile): Socket {
  let handlers: SocketHandlers | undefined
  const write: Socket['write'] = (chunks, onWritten) => {
    if (!way.isHeld) return socket.write(chunks, onWritten)
    way.pass(() => {
      const hasRoom = socket.write(chunks, onWritten)
      if (hasRoom) handlers?.onDrain?.()
    })
    return false
  }
  return {
    remoteAddress: socket.remoteAddress,
    remotePort: socket.remotePort,
    localAddress: socket.localAddress,
    localPort: socket.localPort,
    get queuedBytes() {
      return socket.queuedBytes
    },
    start: (given) => {
      handlers = given
      socket.start({
        onData: (chunk) => {
          const kept = way.isHeld ? Buffer.from(chunk) : chunk // it is lent only until this returns
          way.pass(() => given.onData(kept))
        },
        onDrain: () => way.pass(() => given.onDrain?.()),
        onClose: (error) => way.pass(() => given.onClose(error)),
      })
    },
    write,
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    end: () => way.pass(() => socket.end()),
    destroy: () => socket.destroy(),
  }
}
