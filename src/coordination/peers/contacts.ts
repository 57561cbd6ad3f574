import { addressText } from '../../base/index.ts'
import type { Timer, Timers } from '../../platform/index.ts'
import type { NodeDescription, NodeMessages, RpcNetwork, RpcTarget } from '../../rpc/index.ts'
import { describeNode } from './describe-node.ts'

export interface ContactsOptions {
  readonly network: RpcNetwork
  readonly messages: NodeMessages
  readonly timers: Timers
  readonly nodeId: number
  readonly clusterId: () => string
  /** `controller.quorum.bootstrap.servers`. */
  readonly servers: readonly RpcTarget[]
  /** Whether this node knows who leads. */
  readonly hasLeader: () => boolean
  /** Nodes of this cluster, and where each is: at least one. */
  readonly onFound: (nodes: readonly { readonly id: number; readonly endpoint: string }[]) => void
}

const intervalMs = 500
const callTimeoutMs = 1000

/**
 * Finds the voters of a quorum of which the settings say only where some controllers are: as long as this node knows of no
 * leader it asks at each of those places who is there, and whom that one knows as voters.
 */
export class Contacts {
  readonly #options: ContactsOptions
  #timer: Timer | undefined
  #isStopped = false

  constructor(options: ContactsOptions) {
    this.#options = options
  }

  start(): void {
    void this.#look()
  }

  stop(): void {
    this.#isStopped = true
    this.#timer?.cancel()
  }

  async #look(): Promise<void> {
    const { timers, hasLeader } = this.#options
    if (!hasLeader()) await this.#askAll()
    if (!this.#isStopped) this.#timer = timers.set(intervalMs, () => void this.#look())
  }

  async #askAll(): Promise<void> {
    const { servers, nodeId, clusterId, onFound } = this.#options
    const found = await Promise.all(
      servers.map(async (target) => ({
        target,
        description: (await describeNode(this.#options, target, nodeId, callTimeoutMs)).description,
      })),
    )
    if (this.#isStopped) return
    const nodes = new Map<number, string>()
    const isOurs = (description: NodeDescription) => description.clusterId === clusterId()
    for (const { description } of found) {
      if (description === undefined || !isOurs(description)) continue
      for (const { id, endpoint } of description.voters) if (endpoint !== '') nodes.set(id, endpoint)
    }
    // Where one answered counts more than where it is said to be.
    for (const { target, description } of found) {
      if (description !== undefined && isOurs(description)) nodes.set(description.nodeId, addressText(target))
    }
    nodes.delete(nodeId)
    if (nodes.size > 0) onFound([...nodes].map(([id, endpoint]) => ({ id, endpoint })))
  }
}
