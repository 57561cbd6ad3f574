import type { Message, NodeId, RaftReceiver, RaftTransport } from '../../src/raft/index.ts'

/** Joins Raft nodes in one process: a message arrives in a later microtask, unless its link is cut. */
export class RaftTransportHub {
  readonly #receivers = new Map<NodeId, RaftReceiver>()
  readonly #cut = new Set<string>()

  transportOf(id: NodeId): RaftTransport {
    return {
      start: (receiver) => {
        this.#receivers.set(id, receiver)
      },
      send: (message) => this.#carry(message),
      stop: () => {
        this.#receivers.delete(id)
      },
    }
  }

  /** Neither hears the other from now on. */
  cut(a: NodeId, b: NodeId): void {
    this.#cut.add(`${a}-${b}`).add(`${b}-${a}`)
  }

  heal(): void {
    this.#cut.clear()
  }

  #carry(message: Message): void {
    if (this.#cut.has(`${message.from}-${message.to}`)) return
    queueMicrotask(() => this.#receivers.get(message.to)?.onMessage(structuredClone(message)))
  }
}
