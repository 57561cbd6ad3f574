import { messageOf } from '../../base/index.ts'
import type { Clock, Timer, Timers } from '../../platform/index.ts'
import {
  type Hello,
  type NodeMessages,
  type RaftMessage,
  RpcError,
  type RpcStream,
  type RpcStreamHandlers,
  type StreamMethod,
} from '../../rpc/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import { helloTo, type NodeIdentity, refusalOf } from './identity.ts'

export interface AcceptedStreamsOptions {
  readonly platform: { readonly clock: Clock; readonly timers: Timers }
  readonly messages: NodeMessages
  readonly logger: Logger
  readonly identity: () => NodeIdentity
  /** A node called that this one talks to. */
  readonly onCall?: (hello: Hello) => void
  /** A node opened a stream for messages to this one, and the last that it had has closed. */
  readonly onOpened?: (hello: Hello) => void
  readonly onClosed?: (nodeId: number) => void
  /** `message.from` is who the hello named. Throws `RpcError` ('invalid-message') for what makes no sense. */
  readonly onRaft: (message: RaftMessage) => void
}

/** How long a caller may take to say who it is. */
const helloTimeoutMs = 1000
/** A caller that was heard from within this time is alive: another run of the same node is refused meanwhile. */
const aliveMs = 1500
/** Who is refused as it connects tries again twice a second: it is told of once in so long, and so many are remembered. */
const refusalReportMs = 10_000
const maxRefusals = 100

interface Caller {
  readonly hello: Hello
  readonly method: StreamMethod
  readonly stream: RpcStream
  lastHeardMs: number
}

/**
 * The streams that other nodes opened to this one. Each begins with a hello, is answered or refused, and carries Raft messages
 * to this node; to a caller that this node has no link of its own to, it carries the answers as well.
 */
export class AcceptedStreams {
  readonly #options: AcceptedStreamsOptions
  readonly #callers = new Set<Caller>()
  /** When a refused connection was told of, by its host and the reason; the longest ago first. */
  readonly #refusals = new Map<string, number>()

  constructor(options: AcceptedStreamsOptions) {
    this.#options = options
  }

  accept(method: StreamMethod, stream: RpcStream, remote: string): RpcStreamHandlers {
    const { clock, timers } = this.#options.platform
    const { peerMessage } = this.#options.messages
    let caller: Caller | undefined
    const refuse = (error: RpcError): void => {
      timer.cancel()
      this.#options.logger.warn({ remote, nodeId: caller?.hello.nodeId, reason: error.message }, 'peer refused')
      if (caller !== undefined) this.#callers.delete(caller)
      stream.cancel(error)
    }
    const timer: Timer = timers.set(helloTimeoutMs, () => {
      refuse(new RpcError('invalid-message', `No hello within ${helloTimeoutMs} ms`))
    })
    return {
      onMessage: (bytes) => {
        try {
          const message = peerMessage.decode(bytes)
          if (caller === undefined) {
            caller = this.#greet(message.hello, method, stream)
            timer.cancel()
            return
          }
          caller.lastHeardMs = clock.monotonic()
          if (message.ping !== undefined) stream.send(peerMessage.encode({ pong: {} }))
          else if (message.raft !== undefined) this.#onRaft(message.raft, caller)
        } catch (error) {
          refuse(
            error instanceof RpcError ? error : new RpcError('invalid-message', messageOf(error), { cause: error }),
          )
        }
      },
      onClose: () => {
        timer.cancel()
        if (caller === undefined || !this.#callers.delete(caller) || this.isOpenTo(caller.hello.nodeId)) return
        this.#options.onClosed?.(caller.hello.nodeId)
      },
    }
  }

  /** Who connected was refused before it opened any stream, for its certificate for instance. */
  refused(remote: string, reason: string): void {
    const { logger, platform } = this.#options
    const what = `${remote.replace(/:\d+$/, '')} ${reason}`
    const nowMs = platform.clock.monotonic()
    if (nowMs - (this.#refusals.get(what) ?? Number.NEGATIVE_INFINITY) < refusalReportMs) return
    this.#refusals.delete(what)
    this.#refusals.set(what, nowMs)
    const [oldest] = this.#refusals.keys()
    if (this.#refusals.size > maxRefusals) this.#refusals.delete(oldest!)
    logger.warn({ remote, reason }, 'connection refused')
  }

  /** Whether the node opened a stream for messages that is open. */
  isOpenTo(nodeId: number): boolean {
    return this.#callerOf(nodeId, 'Converse') !== undefined
  }

  /** When a stream that the node opened and that is open brought something last, of the monotonic clock; undefined without one. */
  lastHeardMs(nodeId: number): number | undefined {
    const times = [...this.#callers].filter(({ hello }) => hello.nodeId === nodeId).map((caller) => caller.lastHeardMs)
    return times.length === 0 ? undefined : Math.max(...times)
  }

  /** Sends over the stream for messages that the node opened; false when it has none. */
  send(toNodeId: number, message: Uint8Array): boolean {
    const caller = this.#callerOf(toNodeId, 'Converse')
    caller?.stream.send(message)
    return caller !== undefined
  }

  #callerOf(nodeId: number, method: StreamMethod): Caller | undefined {
    for (const caller of this.#callers) if (caller.hello.nodeId === nodeId && caller.method === method) return caller
    return undefined
  }

  #greet(hello: Hello | undefined, method: StreamMethod, stream: RpcStream): Caller {
    const { identity, platform, messages } = this.#options
    if (hello === undefined) throw new RpcError('invalid-message', 'A stream begins with a hello')
    const refusal = refusalOf(hello, identity()) ?? this.#otherRun(hello)
    if (refusal !== undefined) throw new RpcError('refused-by-peer', refusal)
    // It gave up the one before, whose end may never come here: what was sent there would reach nobody.
    const before = this.#callerOf(hello.nodeId, method)
    if (before !== undefined) {
      this.#callers.delete(before)
      before.stream.cancel(new RpcError('cancelled', `Node ${hello.nodeId} has opened another stream`))
    }
    const caller = { hello, method, stream, lastHeardMs: platform.clock.monotonic() }
    this.#callers.add(caller)
    this.#options.onCall?.(hello)
    if (method === 'Converse') this.#options.onOpened?.(hello)
    stream.send(messages.peerMessage.encode({ hello: helloTo(hello.nodeId, identity()) }))
    return caller
  }

  /** A run that ended closes its streams. Two at once with one id are two nodes, of which the first stays. */
  #otherRun({ nodeId, incarnationId }: Hello): string | undefined {
    const nowMs = this.#options.platform.clock.monotonic()
    for (const caller of this.#callers) {
      if (caller.hello.nodeId !== nodeId || caller.hello.incarnationId === incarnationId) continue
      if (nowMs - caller.lastHeardMs < aliveMs)
        return `Another node with node.id ${nodeId} is connected: each needs its own`
      this.#callers.delete(caller)
      caller.stream.cancel(new RpcError('refused-by-peer', `Node ${nodeId} was started anew`))
    }
    return undefined
  }

  #onRaft(message: RaftMessage, { hello }: Caller): void {
    if (message.from !== hello.nodeId || message.fromDirectoryId !== hello.directoryId) {
      throw new RpcError('invalid-message', `Node ${hello.nodeId} sent a message in the name of ${message.from}`)
    }
    this.#options.onRaft(message)
  }
}
