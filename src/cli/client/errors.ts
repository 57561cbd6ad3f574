import { messageOf, RookeryError } from '../../base/index.ts'
import { FrameError, KafkaClientError } from '../../network/index.ts'
import { NetworkError } from '../../platform/index.ts'
import { ErrorCode, errorByCode, errorName } from '../../protocol/index.ts'

/** No broker of the cluster can be reached, or it doesn't speak what is needed. */
export class ClusterUnreachableError extends RookeryError {
  override readonly code = 'CLUSTER_UNREACHABLE'
  /** A broker may be back in a moment. */
  readonly retriable: boolean

  constructor(message: string, { retriable, ...options }: ErrorOptions & { readonly retriable: boolean }) {
    super(message, options)
    this.retriable = retriable
  }
}

/** A topic that is asked about isn't there. */
export class UnknownTopicError extends RookeryError {
  override readonly code = 'TOPIC_UNKNOWN'

  constructor(name: string, nearest: string | undefined) {
    const help =
      nearest === undefined || nearest === name
        ? '`rookery topics list` shows which there are'
        : `Did you mean ${nearest}?`
    super(`There is no topic ${name}. ${help}`)
  }
}

/** A broker that is asked about isn't there, or is down. */
export class UnknownBrokerError extends RookeryError {
  override readonly code = 'BROKER_UNKNOWN'

  constructor(id: number, ids: readonly number[]) {
    const those = ids.length === 1 ? `the only broker is ${ids[0]}` : `brokers are ${ids.join(', ')}`
    super(`There is no broker ${id} that is up; ${those}`)
  }
}

/** A broker answered with one of Kafka's error codes. */
export class RequestRefusedError extends RookeryError {
  override readonly code = 'REQUEST_REFUSED'
  /** Kafka's number. */
  readonly errorCode: number
  /** The same request may succeed in a moment, mostly once the metadata is fresh. */
  readonly retriable: boolean

  constructor(what: string, errorCode: number, brokerMessage?: string | null) {
    const known = errorByCode(errorCode)
    const reason = brokerMessage || known?.message || 'The broker refused'
    const advice = adviceByCode.get(errorCode)
    super(`${what}: ${reason} (${errorName(errorCode)})${advice === undefined ? '' : `. ${advice}`}`)
    this.errorCode = errorCode
    this.retriable = known?.retriable ?? false
  }
}

/** What to do about a damaged partition, or a disk that failed. */
export const storageAdvice =
  'The log of its broker says why; `rookery log verify` on the data folder shows what is damaged'
const adviceByCode: ReadonlyMap<number, string> = new Map([[ErrorCode.KAFKA_STORAGE_ERROR, storageAdvice]])

/** Throws `RequestRefusedError` for every code but NONE. */
export function expectNoError(what: string, errorCode: number, brokerMessage?: string | null): void {
  if (errorCode !== 0) throw new RequestRefusedError(what, errorCode, brokerMessage)
}

/** One sentence, with what to do, for a fault of connecting to a broker or of talking to it. */
export function connectionFaultText(error: unknown): string {
  if (error instanceof NetworkError && error.operation === 'connect') return connectFaultText(error)
  if (!(error instanceof KafkaClientError)) return messageOf(error)
  const { cause, message } = error
  if (cause instanceof FrameError) {
    const address = message.slice(0, message.indexOf(': '))
    return `${address} does not speak Kafka: ${foreignAnswer(cause.length)}`
  }
  if (/No answer to|closed the connection|ECONNRESET|EPIPE/.test(message)) {
    return `${message}. It may be another program, or a listener that wants TLS or a login, which this command line can't do`
  }
  return message
}

function connectFaultText({ address, systemCode, message }: NetworkError): string {
  switch (systemCode) {
    case 'ECONNREFUSED':
      return `Nobody listens on ${address}. \`rookery start\` starts a broker; --bootstrap-server (-b) names another`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `The name of ${address} is not known here. --bootstrap-server (-b) takes host:port of a broker`
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `${address} can not be reached (${systemCode}): a wrong address, or a firewall between`
    default:
      return message
  }
}

/** What the first four bytes of an answer, taken for a length, tell about who sent them. */
function foreignAnswer(length: number): string {
  const text = Buffer.alloc(4)
  text.writeInt32BE(length)
  if (text.toString('latin1') === 'HTTP') return 'it answers in HTTP. Which port does the broker listen on?'
  if (text[0] === 0x15 && text[1] === 0x03)
    return "it answers in TLS, which this command line can't do: name a PLAINTEXT listener"
  return 'its answer is in another protocol. Which port does the broker listen on?'
}
