import type { Membership, Message, NodeId, Voter } from './core/types.ts'

/**
 * Carries messages between the members of one quorum: voters, and nodes without a vote that follow. The network's implementation
 * is in `rpc/`; a node that votes alone has none.
 *
 * Whom it can reach: every voter of the membership (by its `endpoint`, or by what the configuration says of its id), every node of
 * `RaftNode.setContacts`, and whoever opened a connection to this node: a node without a vote asks, and is answered on
 * what it opened. A 'snapshotChunk' is large (`RaftConfig.maxSnapshotChunkBytes`) and better kept off the way of the others.
 */
export interface RaftTransport {
  /** From now on what arrives goes to `receiver`. Called once. */
  start(receiver: RaftReceiver): void
  /** Who votes: called after `start`, and at each change, committed or not. Who isn't in it may still be sent to. */
  setMembership(membership: Membership): void
  /** Where one can be reached that may not be in the membership: another node named it as the leader. */
  learn(voter: Voter): void
  /**
   * Hands `message` over for `message.to`; never throws. Best effort: it may be lost, delayed, repeated or overtaken.
   * A sender that is faster than the network has its oldest messages dropped, not queued without bound.
   */
  send(message: Message): void
  /** Nothing is received any more, and nothing sent but what `send` was given before, where that is possible at once. */
  stop(): void
}

export interface RaftReceiver {
  /**
   * `message` is well formed: whoever decoded it has checked every field's type and range. Its bytes may be a view of what
   * arrived, and must not change afterwards.
   */
  onMessage(message: Message): void
  /** What was sent to `node` lately did not arrive. A hint: nothing depends on it but speed. */
  onUnreachable(node: NodeId): void
  /** What is sent to `node` arrives again, or for the first time. The same kind of hint. */
  onReachable(node: NodeId): void
  /** A chunk of a snapshot sent to `node` did not arrive. */
  onSnapshotFailed(node: NodeId): void
  /**
   * The process of `node` is known to be dead: its stream closed and reconnects were refused, which silence doesn't show. When it
   * led, an election begins at once. A hint that is wrong costs no more than that, and then none is believed for a while.
   */
  onCrashed(node: NodeId): void
}
