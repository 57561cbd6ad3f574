import { isIP } from 'node:net'
import { checkServerIdentity, createSecureContext } from 'node:tls'
import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  type ClientDuplexStream,
  credentials,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceDefinition,
  type ServiceError,
  status,
} from '@grpc/grpc-js'
import { addressText, messageOf } from '../base/index.ts'
import { Connections, tlsText } from './connections.ts'
import { RpcError, type RpcFailure } from './errors.ts'
import type {
  CallMethod,
  RpcChannel,
  RpcListener,
  RpcListenOptions,
  RpcNetwork,
  RpcService,
  RpcStream,
  RpcStreamHandlers,
  RpcTarget,
  StreamMethod,
} from './ports.ts'
import type { TlsIdentity } from './tls.ts'

/** The largest message taken; more than a Raft message or a chunk of a snapshot ever has. */
const maxMessageBytes = 64 * 1024 * 1024

/**
 * A process that is gone is noticed by its closed connection, one that hangs or is cut off within three seconds. Each channel
 * has its own connection, so that a new channel is a fresh start.
 */
const channelOptions: ChannelOptions = {
  'grpc.initial_reconnect_backoff_ms': 50,
  'grpc.min_reconnect_backoff_ms': 50,
  'grpc.max_reconnect_backoff_ms': 500,
  'grpc.keepalive_time_ms': 2000,
  'grpc.keepalive_timeout_ms': 1000,
  'grpc.keepalive_permit_without_calls': 1,
  'grpc.max_receive_message_length': maxMessageBytes,
  'grpc.max_send_message_length': -1,
  'grpc.enable_http_proxy': 0,
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.use_local_subchannel_pool': 1,
  'grpc-node.flow_control_window': 1024 * 1024,
}

const serverOptions: ChannelOptions = {
  'grpc.keepalive_time_ms': 2000,
  'grpc.keepalive_timeout_ms': 1000,
  'grpc.max_receive_message_length': maxMessageBytes,
  'grpc.max_send_message_length': -1,
  'grpc.max_concurrent_streams': 1000,
}

const path = (method: CallMethod | StreamMethod) => `/rookery.v1.Node/${method}`

/** Messages of `proto/node.proto` over gRPC, all of them with TLS where it is given. */
export function createGrpcNetwork(tls?: TlsIdentity): RpcNetwork {
  const securityOf = tls === undefined ? () => plain : securityWith(tls)
  return {
    listen: (options, service) => listen(options, service, tls),
    connect: (target) => new GrpcChannel(target, securityOf(target)),
  }
}

/** How a channel is secured. */
interface ChannelSecurity {
  readonly credentials: ChannelCredentials
  readonly options: ChannelOptions
}

const plain: ChannelSecurity = { credentials: credentials.createInsecure(), options: channelOptions }

/** What the server is asked for where it has an address only, which TLS takes for no name (RFC 6066, 3). */
const namelessServer = 'node'

function securityWith({ context, checksHostNames }: TlsIdentity): (target: RpcTarget) => ChannelSecurity {
  const secureContext = createSecureContext(context)
  return ({ host }) => ({
    credentials: credentials.createFromSecureContext(secureContext, {
      checkServerIdentity: (_name, certificate) =>
        checksHostNames ? checkServerIdentity(host, certificate) : undefined,
    }),
    options: isIP(host) === 0 ? channelOptions : { ...channelOptions, 'grpc.ssl_target_name_override': namelessServer },
  })
}

// ---- client ----

class GrpcChannel implements RpcChannel {
  readonly #client: Client
  readonly #address: string
  /** Calls and streams that are under way: gRPC lets them go on when a client is closed. */
  readonly #open = new Set<{ cancel(): void }>()
  #isClosed = false

  constructor(target: RpcTarget, security: ChannelSecurity) {
    this.#address = addressText(target)
    this.#client = new Client(this.#address, security.credentials, security.options)
  }

  call(method: CallMethod, request: Uint8Array, timeoutMs: number): Promise<Buffer> {
    if (this.#isClosed) return Promise.reject(this.#closedError())
    return new Promise((resolve, reject) => {
      const options = { deadline: Date.now() + timeoutMs }
      const call = this.#client.makeUnaryRequest(
        path(method),
        toBuffer,
        toBuffer,
        request,
        options,
        (error, answer) => {
          this.#open.delete(call)
          if (error !== null) reject(this.#errorFrom(error))
          else resolve(answer ?? Buffer.alloc(0))
        },
      )
      this.#open.add(call)
    })
  }

  openStream(method: StreamMethod, handlers: RpcStreamHandlers): RpcStream {
    if (this.#isClosed) {
      queueMicrotask(() => handlers.onClose(this.#closedError()))
      return closedStream
    }
    // A stream waits for its connection only as long as one is being made: a refused one fails it at once.
    const call = this.#client.makeBidiStreamRequest(path(method), toBuffer, toBuffer)
    this.#open.add(call)
    call.on('status', () => this.#open.delete(call))
    return new GrpcStream(call, handlers, {
      errorFrom: (error) => this.#errorFrom(error),
      cancel: () => call.cancel(),
    })
  }

  close(): void {
    this.#isClosed = true
    for (const call of this.#open) call.cancel()
    this.#client.close()
  }

  #closedError(): RpcError {
    return new RpcError('cancelled', `${this.#address}: the channel is closed`)
  }

  #errorFrom(error: ServiceError): RpcError {
    return new RpcError(failureOf(error), `${this.#address}: ${readable(error.details)}`, { cause: error })
  }
}

/** What gRPC says of a connection that could not be made, without what is always the same. */
function readable(details: string): string {
  const text = details.replace(/\s*Resolution note:\s*$/, '').replace(/Last error: Error( \[\w+\])?: /, 'Last error: ')
  if (/wrong version number|packet length too long/.test(text)) return 'No TLS there: the peer speaks without it'
  return tlsText(text)
}

const closedStream: RpcStream = { send: () => true, end() {}, cancel() {} }

/** gRPC has one code for all that keeps a connection from being made; the system's own is in the text. */
function failureOf({ code, details }: Pick<ServiceError, 'code' | 'details'>): RpcFailure {
  if (code === status.UNAVAILABLE && /\bECONNREFUSED\b/.test(details)) return 'connection-refused'
  const known = (Object.keys(statusCodes) as RpcFailure[]).find((reason) => statusCodes[reason] === code)
  return known ?? 'unavailable'
}

/** Codes in which a server tells its refusals. */
const statusCodes: Readonly<Partial<Record<RpcFailure, status>>> = {
  'refused-by-peer': status.FAILED_PRECONDITION,
  'not-controller': status.ABORTED,
  'invalid-message': status.INVALID_ARGUMENT,
  'deadline-exceeded': status.DEADLINE_EXCEEDED,
  cancelled: status.CANCELLED,
  internal: status.INTERNAL,
}

// ---- both ends ----

type DuplexCall = ClientDuplexStream<Uint8Array, Buffer> | ServerDuplexStream<Buffer, Uint8Array>

interface GrpcStreamSide {
  errorFrom(error: ServiceError): RpcError
  cancel(error: RpcError | undefined): void
}

class GrpcStream implements RpcStream {
  readonly #call: DuplexCall
  readonly #side: GrpcStreamSide
  #isClosed = false

  constructor(call: DuplexCall, handlers: RpcStreamHandlers, side: GrpcStreamSide) {
    this.#call = call
    this.#side = side
    const close = (error: RpcError | undefined): void => {
      if (this.#isClosed) return
      this.#isClosed = true
      handlers.onClose(error)
    }
    call.on('data', (message: Buffer) => {
      if (!this.#isClosed) handlers.onMessage(message)
    })
    call.on('drain', () => {
      if (!this.#isClosed) handlers.onDrain?.()
    })
    call.on('error', (error: ServiceError) => close(side.errorFrom(error)))
    call.on('cancelled', () => close(new RpcError('cancelled', 'The peer cancelled the stream')))
    call.on('end', () => {
      call.end() // each end answers the other's
      close(undefined)
    })
  }

  send(message: Uint8Array): boolean {
    return this.#isClosed || this.#call.write(message)
  }

  end(): void {
    if (!this.#isClosed) this.#call.end()
  }

  cancel(error?: RpcError): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#side.cancel(error)
  }
}

// ---- server ----

async function listen(
  options: RpcListenOptions,
  service: RpcService,
  tls: TlsIdentity | undefined,
): Promise<RpcListener> {
  const server = new Server(serverOptions)
  server.addService(serviceDefinition, {
    Describe: callHandler('Describe', service),
    Ask: callHandler('Ask', service),
    Converse: streamHandler('Converse', service),
    SendSnapshot: streamHandler('SendSnapshot', service),
  })
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure()) // TLS is below
  const connections = new Connections({
    at: options,
    tls,
    onConnection: (socket) => injector.injectConnection(socket),
    onRefused: (remote, reason) => service.onRefused?.(remote, reason),
  })
  const port = await connections.listen().catch((error: unknown) => {
    server.forceShutdown()
    throw bindError(options, error)
  })
  return {
    port,
    async close() {
      server.forceShutdown()
      connections.close()
      await Promise.resolve()
    },
  }
}

function bindError(options: RpcListenOptions, error: unknown): RpcError {
  const message = messageOf(error)
  const reason = /\bEADDRINUSE\b/.test(message) ? 'address-in-use' : 'unavailable'
  return new RpcError(reason, `${addressText(options)}: cannot listen: ${message}`, { cause: error })
}

interface UnaryCall {
  readonly request: Buffer
  getPeer(): string
}

type UnaryAnswer = (error: { code: status; details: string } | null, answer?: Uint8Array) => void

function callHandler(method: CallMethod, service: RpcService) {
  return (call: UnaryCall, answer: UnaryAnswer): void => {
    void service.call(method, call.request, call.getPeer()).then(
      (response) => answer(null, response),
      (error: unknown) => answer(statusOf(error)),
    )
  }
}

function streamHandler(method: StreamMethod, service: RpcService) {
  return (call: ServerDuplexStream<Buffer, Uint8Array>): void => {
    let handlers: RpcStreamHandlers | undefined
    const stream = new GrpcStream(
      call,
      {
        onMessage: (message) => handlers?.onMessage(message),
        onDrain: () => handlers?.onDrain?.(),
        onClose: (error) => handlers?.onClose(error),
      },
      {
        errorFrom: (error) => new RpcError(failureOf(error), `${call.getPeer()}: ${error.message}`, { cause: error }),
        cancel: (error) => call.emit('error', statusOf(error ?? new RpcError('cancelled', 'The stream was cancelled'))),
      },
    )
    handlers = service.stream(method, stream, call.getPeer())
  }
}

function statusOf(error: unknown): { code: status; details: string } {
  const reason = error instanceof RpcError ? error.reason : 'internal'
  return { code: statusCodes[reason] ?? status.UNAVAILABLE, details: messageOf(error) }
}

// ---- the service, with messages as bytes ----

function method(name: CallMethod | StreamMethod, isStream: boolean): MethodDefinition<Uint8Array, Buffer> {
  return {
    path: path(name),
    requestStream: isStream,
    responseStream: isStream,
    requestSerialize: toBuffer,
    requestDeserialize: toBuffer as (bytes: Buffer) => Uint8Array,
    responseSerialize: toBuffer,
    responseDeserialize: toBuffer,
  }
}

const serviceDefinition: ServiceDefinition = {
  Describe: method('Describe', false),
  Ask: method('Ask', false),
  Converse: method('Converse', true),
  SendSnapshot: method('SendSnapshot', true),
}

/** A view of the same memory. */
function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
