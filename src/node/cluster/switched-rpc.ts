import type { Timers, Turnstile } from '../../platform/index.ts'
import {
  type CallMethod,
  type RpcChannel,
  RpcError,
  type RpcListener,
  type RpcListenOptions,
  type RpcNetwork,
  type RpcService,
  type RpcStream,
  type RpcStreamHandlers,
  type RpcTarget,
  type StreamMethod,
} from '../../rpc/index.ts'

export interface SwitchedRpcOptions {
  readonly network: RpcNetwork
  readonly timers: Timers
  /** Stops what comes in when the node is halted. */
  readonly turnstile: Turnstile
  /** The way from this node to the one with that name. */
  readonly wayTo: (host: string) => Turnstile
  /** Ports by the names under which nodes are in the settings: each gets a free one when it listens. */
  readonly ports: Map<string, number>
}

const loopback = '127.0.0.1'

/** gRPC of one node of a cluster in one process: names instead of ports, over ways that can be cut, and with an end. */
export class SwitchedRpc implements RpcNetwork {
  readonly #options: SwitchedRpcOptions
  readonly #listeners = new Set<RpcListener>()
  readonly #channels = new Set<RpcChannel>()

  constructor(options: SwitchedRpcOptions) {
    this.#options = options
  }

  async listen({ host }: RpcListenOptions, service: RpcService): Promise<RpcListener> {
    const { network, ports, turnstile } = this.#options
    const listener = await network.listen({ host: loopback, port: 0 }, haltingService(service, turnstile))
    ports.set(host, listener.port)
    this.#listeners.add(listener)
    return {
      port: listener.port,
      close: () => {
        this.#listeners.delete(listener)
        return listener.close()
      },
    }
  }

  connect({ host }: RpcTarget): RpcChannel {
    const { network, ports } = this.#options
    let port: number | undefined
    let channel: RpcChannel | undefined
    /** Another one after the peer was started anew, on another port. */
    const current = (): RpcChannel | undefined => {
      if (port === ports.get(host)) return channel
      if (channel !== undefined) drop(channel)
      port = ports.get(host)
      channel = port === undefined ? undefined : network.connect({ host: loopback, port })
      if (channel !== undefined) this.#channels.add(channel)
      return channel
    }
    const drop = (old: RpcChannel) => {
      this.#channels.delete(old)
      old.close()
    }
    return {
      call: (method, request, timeoutMs) => this.#call(host, current, method, request, timeoutMs),
      openStream: (method, handlers) => this.#openStream(host, current, method, handlers),
      close: () => {
        if (channel !== undefined) drop(channel)
      },
    }
  }

  /** What a process leaves that was killed: closed streams, and nobody who listens. */
  async end(): Promise<void> {
    for (const channel of this.#channels) channel.close()
    this.#channels.clear()
    await Promise.all([...this.#listeners].map((listener) => listener.close()))
  }

  async #call(
    host: string,
    channel: () => RpcChannel | undefined,
    method: CallMethod,
    request: Uint8Array,
    timeoutMs: number,
  ): Promise<Buffer> {
    const { timers, turnstile, wayTo } = this.#options
    const way = wayTo(host)
    return await new Promise<Buffer>((resolve, reject) => {
      const timer = timers.set(timeoutMs, () => reject(new RpcError('deadline-exceeded', `${host} is not reached`)))
      way.pass(() => {
        const found = channel()
        const answer = found?.call(method, request, timeoutMs) ?? Promise.reject(nobodyListens(host))
        const settle = (end: () => void) => {
          way.pass(() =>
            turnstile.pass(() => {
              timer.cancel()
              end()
            }),
          )
        }
        answer.then(
          (bytes) => settle(() => resolve(bytes)),
          (error: unknown) => settle(() => reject(error)),
        )
      })
    })
  }

  #openStream(
    host: string,
    channel: () => RpcChannel | undefined,
    method: StreamMethod,
    handlers: RpcStreamHandlers,
  ): RpcStream {
    const { timers, turnstile, wayTo } = this.#options
    const way = wayTo(host)
    let stream: RpcStream | undefined
    let isCancelled = false
    const tell = (call: () => void) => {
      way.pass(() =>
        turnstile.pass(() => {
          if (!isCancelled) call()
        }),
      )
    }
    way.pass(() => {
      if (isCancelled) return
      stream = channel()?.openStream(method, {
        onMessage: (message) => tell(() => handlers.onMessage(message)),
        onDrain: () => tell(() => handlers.onDrain?.()),
        onClose: (error) => tell(() => handlers.onClose(error)),
      })
      if (stream === undefined) timers.defer(() => tell(() => handlers.onClose(nobodyListens(host))))
    })
    return {
      send: (message) => {
        if (!way.isHeld) return stream?.send(message) ?? true
        way.pass(() => {
          if (stream?.send(message) === true) tell(() => handlers.onDrain?.())
        })
        return false
      },
      end: () => way.pass(() => stream?.end()),
      cancel: (error) => {
        isCancelled = true
        stream?.cancel(error)
      },
    }
  }
}

function nobodyListens(host: string): RpcError {
  return new RpcError('connection-refused', `${host}: nothing listens there`)
}

/** `service`, whose calls and streams wait while its node is halted. */
function haltingService(service: RpcService, turnstile: Turnstile): RpcService {
  return {
    call: (method, request, remote) =>
      new Promise((resolve, reject) => {
        turnstile.pass(() => void service.call(method, request, remote).then(resolve, reject))
      }),
    stream: (method, stream, remote) => {
      let handlers: RpcStreamHandlers | undefined
      turnstile.pass(() => {
        handlers = service.stream(method, stream, remote)
      })
      return {
        onMessage: (message) => turnstile.pass(() => handlers?.onMessage(message)),
        onDrain: () => turnstile.pass(() => handlers?.onDrain?.()),
        onClose: (error) => turnstile.pass(() => handlers?.onClose(error)),
      }
    },
    onRefused: (remote, reason) => turnstile.pass(() => service.onRefused?.(remote, reason)),
  }
}
