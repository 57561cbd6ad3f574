/** Answers requests. The network carries bytes and knows no API. */
export interface RequestHandler {
  /**
   * `frame`: one whole request, without its length; it may be read until the answer is given, not after. Never throws for
   * what a peer sent: it answers `close`. What it throws nevertheless closes the connection.
   */
  handle(frame: Buffer, connection: ConnectionFacts): Answer | Promise<Answer>
  /**
   * True: a request of this API may begin while others of which the same is true are unanswered. All other requests
   * of a connection begin when every earlier one was answered, as in Kafka: a client may count on it.
   */
  mayOverlap(apiKey: number): boolean
  /** True: answers of this API are small whatever is asked, so they may be given when there is no memory for others. */
  isBrief(apiKey: number): boolean
}

/** What a handler may know of the connection that a request came over. */
export interface ConnectionFacts {
  /** `127.0.0.1:53412`, for logs. */
  readonly peer: string
  readonly remoteAddress: string
  /** The address that the client dialled. */
  readonly localAddress: string
  readonly localPort: number
  /** Name of the listener that accepted it: 'PLAINTEXT'. */
  readonly listenerName: string
  /** Aborted when the connection closes or the server stops: who waits for the sake of this client gives up. */
  readonly signal: AbortSignal
  /**
   * Memory for one more answer whose size can be chosen, of which `maxBytes` are wanted. It counts as used until it is given
   * back: when what was read is not sent, or in the same turn in which it is answered, where it is counted as it is. So many
   * answers that are read at the same time keep within the broker's limit together.
   */
  lendResponseBytes(maxBytes: number): ResponseLoan
}

export interface ResponseLoan {
  /** What the answer should keep within; 1 or more. */
  readonly bytes: number
  /** To be called once. */
  giveBack(): void
}

export type Answer =
  /** Goes out as it is, length and header included, when all earlier requests of the connection were answered. */
  | {
      readonly chunks: readonly Uint8Array[] /** Runs once the chunks are written or never will be. */
      readonly release?: () => void
    }
  /** The request has no response (Produce with acks=0). */
  | 'none'
  /** The connection closes after the answers to earlier requests, with one log line. */
  | CloseAnswer

export interface CloseAnswer {
  readonly close: string
  /** More for the log line: api key, version, client id. */
  readonly details?: Readonly<Record<string, unknown>>
  /** What was thrown, when the reason is a bug here and not the peer. */
  readonly fault?: unknown
  /** Sent as it is before the connection closes. */
  readonly farewell?: Uint8Array
}
