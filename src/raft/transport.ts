import type { Message, NodeId } from './core/types.ts'

/** Carries messages to the other voters. The network's implementation is in `rpc/`; a node that votes alone has none. */
export interface RaftTransport {
  /** From now on what arrives goes to `receiver`. Called once. */
  start(receiver: RaftReceiver): void
  /**
   * Hands `message` over for `message.to`; never throws. Best effort: it may be lost, delayed, repeated or overtaken.
   * A sender that is faster than the network has its oldest messages dropped, not queued without bound.
   */
  send(message: Message): void
  /** Nothing is sent or received any more. */
  stop(): void
}

export interface RaftReceiver {
  /** `message` is well formed: whoever decoded it has checked every field's type and range. */
  onMessage(message: Message): void
  /** What was sent to `node` lately did not arrive. A hint: nothing depends on it but speed. */
  onUnreachable(node: NodeId): void
  /** A snapshot sent to `node` did not arrive. */
  onSnapshotFailed(node: NodeId): void
}
