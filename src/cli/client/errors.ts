import { RookeryError } from '../../base/index.ts'
import { errorByCode, errorName } from '../../protocol/index.ts'

/** No broker of the cluster can be reached, or it doesn't speak what is needed. */
export class ClusterUnreachableError extends RookeryError {
  override readonly code = 'CLUSTER_UNREACHABLE'
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
    super(`${what}: ${reason} (${errorName(errorCode)})`)
    this.errorCode = errorCode
    this.retriable = known?.retriable ?? false
  }
}

/** Throws `RequestRefusedError` for every code but NONE. */
export function expectNoError(what: string, errorCode: number, brokerMessage?: string | null): void {
  if (errorCode !== 0) throw new RequestRefusedError(what, errorCode, brokerMessage)
}
