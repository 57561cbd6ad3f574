import type { BrokerId } from '../../base/index.ts'
import type { ControllerAnswer } from '../../controller/index.ts'
import type { MetadataDelta, MetadataImage } from '../../metadata/index.ts'
import type { ControllerRequestKind, ControllerRequests } from '../controller-channel.ts'

/**
 * This node's member of the metadata quorum, as its broker sees it: what was committed comes in order, requests go to
 * controllers. It may be on the broker's event loop (`LocalQuorum`) or in a thread of its own, of which it is then an
 * image that is a little late: nothing here is synchronous with Raft.
 */
export interface MetadataQuorum {
  readonly state: QuorumState
  /** All that was committed, as far as it came here. */
  readonly image: MetadataImage
  /** Once, before `start`. */
  listen(listener: QuorumListener): void
  /** Resolves when what is known to be committed has come to the listener. Rejects with the fault when it can't go on. */
  start(): Promise<void>
  /**
   * Asks the controller on the node `controller`, which may be this one. A refusal is an answer, and so is that the node was not
   * reached. Rejects when a decision has a bug, and when the quorum has ended on this node.
   */
  ask<Kind extends ControllerRequestKind>(
    controller: BrokerId,
    kind: Kind,
    request: ControllerRequests[Kind]['request'],
    timeoutMs: number,
  ): Promise<ControllerAnswer<ControllerRequests[Kind]['response']>>
  /** To the voter that is furthest. Does nothing where there is nobody to take it, nor where this node doesn't lead or has a fault. */
  transferLeadership(): Promise<void>
  /** From now on a write that finds the disk full waits for room, where this node is the only voter. */
  waitForRoom(): void
  /** Resolves when nothing of it runs any more and its storage is closed. Harmless when called again, and after a fault. */
  stop(): Promise<void>
}

export interface QuorumState {
  /** Who leads; null: nobody is known to. */
  readonly leaderId: BrokerId | null
  readonly term: number
  /** This node leads, and its controller decides: it has all that was before. */
  readonly isActive: boolean
  /** A write found the disk full, and is made again when there is room: until then nothing is stored. */
  readonly waitsForRoom: boolean
}

/** What it throws is a fault of the node. */
export interface QuorumListener {
  /** `image` is what `MetadataQuorum.image` is from now on. Each once, in order. */
  onStep(delta: MetadataDelta, image: MetadataImage): void
  /** After a step, with what followed from it on this node, and when `state` is another. */
  onChange(): void
  /** It can't go on, and what the node promised stands only if its process ends now. Once. */
  onFault(error: Error): void
}
