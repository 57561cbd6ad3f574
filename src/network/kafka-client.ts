import { messageOf } from '../base/index.ts'
import type { Platform, Socket, Timer } from '../platform/index.ts'
import {
  type Api,
  type ApiMessage,
  decodeMessage,
  encodeRequest,
  type MessageInput,
  type MessageType,
  Reader,
  readResponseHeader,
} from '../protocol/index.ts'
import { KafkaClientError } from './errors.ts'
import { FrameReader } from './frame-reader.ts'

/** Largest response that is taken. */
const maxResponseBytes = 256 * 1024 * 1024

export interface KafkaClientOptions {
  readonly platform: Pick<Platform, 'network' | 'timers'>
  readonly host: string
  readonly port: number
  readonly clientId: string
  /** For connecting, and for each request that names none. */
  readonly timeoutMs: number
}

interface Pending {
  readonly api: Api
  readonly version: number
  readonly correlationId: number
  readonly timer: Timer
  readonly resolve: (response: unknown) => void
  readonly reject: (error: KafkaClientError) => void
}

/**
 * One outbound connection: requests by their declarations, answers in order. It knows no cluster and retries nothing. After
 * the first fault every request on it fails with that fault: connect again.
 */
export class KafkaClient {
  readonly #options: KafkaClientOptions
  readonly #socket: Socket
  readonly #reader = new FrameReader(maxResponseBytes)
  /** Sent and not answered, oldest first. */
  readonly #pending: Pending[] = []
  #correlationId = 0
  #fault: KafkaClientError | undefined

  /** Throws `NetworkError`. */
  static async connect(options: KafkaClientOptions): Promise<KafkaClient> {
    const { platform, host, port, timeoutMs } = options
    return new KafkaClient(options, await platform.network.connect({ host, port, timeoutMs }))
  }

  private constructor(options: KafkaClientOptions, socket: Socket) {
    this.#options = options
    this.#socket = socket
    socket.start({
      onData: (chunk) => this.#onData(chunk),
      onClose: (error) =>
        this.#fail(error === undefined ? 'The broker closed the connection' : messageOf(error), error),
    })
  }

  /** False once a request can only fail. */
  get isOpen(): boolean {
    return this.#fault === undefined
  }

  /** Resolves with the response, error codes and all. Throws `KafkaClientError`. Record data in it is a slice of the answer. */
  request<Request extends ApiMessage, Response extends ApiMessage>(
    api: Api<Request, Response>,
    version: number,
    body: MessageInput<Request>,
    options: { readonly timeoutMs?: number } = {},
  ): Promise<MessageType<Response>> {
    if (this.#fault !== undefined) return Promise.reject(this.#fault)
    const correlationId = this.#send(api, version, body)
    return new Promise((resolve, reject) => {
      const timeoutMs = options.timeoutMs ?? this.#options.timeoutMs
      const timer = this.#options.platform.timers.set(timeoutMs, () => {
        this.#fail(`No answer to ${api.name} within ${timeoutMs} ms`)
      })
      const settle = resolve as (response: unknown) => void
      this.#pending.push({ api, version, correlationId, timer, resolve: settle, reject })
    })
  }

  /** Sends a request that has no response (Produce with acks=0). */
  send<Request extends ApiMessage, Response extends ApiMessage>(
    api: Api<Request, Response>,
    version: number,
    body: MessageInput<Request>,
  ): void {
    if (this.#fault !== undefined) throw this.#fault
    this.#send(api, version, body)
  }

  /** Requests that wait for an answer fail. */
  close(): void {
    this.#fault ??= new KafkaClientError('The connection was closed')
    this.#rejectAll(this.#fault)
    this.#socket.end()
  }

  #send<Request extends ApiMessage>(api: Api<Request>, version: number, body: MessageInput<Request>): number {
    const correlationId = this.#correlationId
    this.#correlationId = (correlationId + 1) & 0x7fffffff
    const header = { correlationId, clientId: this.#options.clientId }
    this.#socket.write(encodeRequest(api.request as ApiMessage, version, header, body as MessageInput<ApiMessage>))
    return correlationId
  }

  #onData(chunk: Buffer): void {
    if (this.#fault !== undefined) return
    try {
      this.#reader.push(chunk)
      for (let frame = this.#reader.next(); frame !== undefined; frame = this.#reader.next()) this.#onFrame(frame)
    } catch (error) {
      this.#fail(`The broker's answer can not be read: ${messageOf(error)}`, error)
    }
  }

  #onFrame(frame: Buffer): void {
    const pending = this.#pending[0]
    if (pending === undefined) throw new KafkaClientError('An answer came that was not asked for')
    const { api, version, correlationId } = pending
    const reader = new Reader(frame)
    const answered = readResponseHeader(api, version, reader)
    if (answered !== correlationId) {
      throw new KafkaClientError(`An answer to request ${answered} came, ${correlationId} is next`)
    }
    const response = decodeMessage(api.response, version, reader)
    this.#pending.shift()
    pending.timer.cancel()
    pending.resolve(response)
  }

  #fail(message: string, cause?: unknown): void {
    if (this.#fault !== undefined) return
    const { host, port } = this.#options
    this.#fault = new KafkaClientError(`${host}:${port}: ${message}`, { cause })
    this.#rejectAll(this.#fault)
    this.#socket.destroy()
  }

  #rejectAll(fault: KafkaClientError): void {
    for (const { timer, reject } of this.#pending) {
      timer.cancel()
      reject(fault)
    }
    this.#pending.length = 0
  }
}
