import type { RpcError } from './errors.ts'

/** Methods of `proto/node.proto` with one request and one answer. */
export type CallMethod = 'Describe' | 'Ask'
/** Methods with a stream of messages each way. */
export type StreamMethod = 'Converse' | 'SendSnapshot'

/**
 * Messages between nodes: calls and streams of byte strings, in order within a stream. gRPC implements it; where a cluster is
 * simulated, something over the simulated network does. What makes connections reliable (deadlines, watchdogs, trying again) is
 * above, so that it is simulated too.
 */
export interface RpcNetwork {
  /** Throws `RpcError` ('address-in-use', or 'unavailable' for another reason). */
  listen(options: RpcListenOptions, service: RpcService): Promise<RpcListener>
  /** Never throws and connects when first used. A channel connects again by itself when it is used after a failure. */
  connect(target: RpcTarget): RpcChannel
}

export interface RpcTarget {
  readonly host: string
  readonly port: number
}

/** `host`: '0.0.0.0' and '::' are all addresses. Port 0 picks a free one. */
export type RpcListenOptions = RpcTarget

export interface RpcListener {
  readonly port: number
  /** Ends every stream and connection, at once. */
  close(): Promise<void>
}

/** What a node answers. */
export interface RpcService {
  /** The answer, or an `RpcError` that the caller gets; what else is thrown is a fault of this node and told as 'internal'. */
  call(method: CallMethod, request: Buffer, remote: string): Promise<Uint8Array>
  /** A peer opened a stream. `stream` may be written at once. */
  stream(method: StreamMethod, stream: RpcStream, remote: string): RpcStreamHandlers
  /** Who connected may not ask anything, for its certificate for instance. `reason` is a sentence about it, for people. */
  onRefused?(remote: string, reason: string): void
}

export interface RpcChannel {
  /** Throws `RpcError`, at the latest after `timeoutMs`. */
  call(method: CallMethod, request: Uint8Array, timeoutMs: number): Promise<Buffer>
  /** Connects if need be: what is sent meanwhile waits. Has no deadline: whoever opens it watches it. */
  openStream(method: StreamMethod, handlers: RpcStreamHandlers): RpcStream
  /** Its calls and streams fail. */
  close(): void
}

export interface RpcStreamHandlers {
  onMessage(message: Buffer): void
  /** What was queued is handed to the system. */
  onDrain?(): void
  /** Called once, last; `error` is undefined when the peer ended the stream in order. Not after `cancel`. */
  onClose(error: RpcError | undefined): void
}

export interface RpcStream {
  /** False: enough is queued, wait for `onDrain`. No effect once the stream is closed. */
  send(message: Uint8Array): boolean
  /** The peer sees an orderly end after what was sent; the stream closes when the peer ends it too. */
  end(): void
  /** Ends it now, on a server with `error` for the peer. */
  cancel(error?: RpcError): void
}
