import { messageOf } from '../../base/index.ts'
import type { Clock, Timer, Timers } from '../../platform/index.ts'
import {
  type Hello,
  type NodeMessages,
  type RaftMessage,
  RpcError,
  type RpcStream,
  type RpcStreamHandlers,
} from '../../rpc/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import { helloTo, type NodeIdentity, refusalOf } from './identity.ts'

export interface AcceptedStreamsOptions {
  readonly platform: { readonly clock: Clock; readonly timers: Timers }
  readonly messages: NodeMessages
  readonly logger: Logger
  readonly identity: () => NodeIdentity
  /** `message.from` is who the hello named. Throws `RpcError` ('invalid-message') for what makes no sense. */
  readonly onRaft: (message: RaftMessage) => void
}

/** How long a caller may take to say who it is. */
const helloTimeoutMs = 1000
/** A caller that was heard from within this time is alive: another run of the same node is refused meanwhile. */
const aliveMs = 1500

interface Caller {
  readonly hello: Hello
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

  constructor(options: AcceptedStreamsOptions) {
    this.#options = options
  }

  accept(stream: RpcStream, remote: string): RpcStreamHandlers {
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
            caller = this.#greet(message.hello, stream)
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
        if (caller !== undefined) this.#callers.delete(caller)
      },
    }
  }

  /** Sends over a stream that the node opened; false when it has none. */
  send(toNodeId: number, message: Uint8Array): boolean {
    for (const { hello, stream } of this.#callers) {
      if (hello.nodeId !== toNodeId) continue
      stream.send(message)
      return true
    }
    return false
  }

  /** When a stream that the node opened and that is open brought something last, of the monotonic clock; undefined without one. */
  lastHeardMs(nodeId: number): number | undefined {
    const times = [...this.#callers].filter(({ hello }) => hello.nodeId === nodeId).map((caller) => caller.lastHeardMs)
    return times.length === 0 ? undefined : Math.max(...times)
  }

  #greet(hello: Hello | undefined, stream: RpcStream): Caller {
    const { identity, platform, messages } = this.#options
    if (hello === undefined) throw new RpcError('invalid-message', 'A stream begins with a hello')
    const refusal = refusalOf(hello, identity()) ?? this.#otherRun(hello)
    if (refusal !== undefined) throw new RpcError('refused-by-peer', refusal)
    const caller = { hello, stream, lastHeardMs: platform.clock.monotonic() }
    this.#callers.add(caller)
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
