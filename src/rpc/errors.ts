import { RookeryError } from '../base/index.ts'

export type RpcFailure =
  /** Nothing listens there: the process is gone, or not up yet. The one failure that says so for certain. */
  | 'connection-refused'
  | 'unavailable'
  | 'deadline-exceeded'
  /** The peer won't talk to this node; `message` is its reason. */
  | 'refused-by-peer'
  | 'not-controller'
  | 'invalid-message'
  | 'internal'
  | 'address-in-use'
  | 'cancelled'

/** A fault of the way to another node, or its refusal. */
export class RpcError extends RookeryError {
  override readonly code = 'RPC_FAILED'
  readonly reason: RpcFailure

  constructor(reason: RpcFailure, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.reason = reason
  }
}
