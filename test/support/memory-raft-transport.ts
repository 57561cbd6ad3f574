import type { Message, NodeId, RaftReceiver, RaftTransport } from '../../src/raft/index.ts'

/** Joins Raft nodes in one process: a message arrives in a later microtask, unless its link is cut or an end is gone. */
export class RaftTransportHub {
  readonly #receivers = new Map<NodeId, RaftReceiver>()
  readonly #cut = new Set<string>()
  /** Messages that were sent, also those that did not arrive. */
  readonly sent: Message[] = []

  transportOf(id: NodeId): RaftTransport {
    let own: RaftReceiver | undefined
    return {
      start: (receiver) => {
        own = receiver
        this.#receivers.set(id, receiver)
      },
      setMembership: () => undefined,
      learn: () => undefined,
      send: (message) => {
        if (this.#receivers.get(id) === own) this.#carry(message)
      },
      stop: () => {
        if (this.#receivers.get(id) === own) this.#receivers.delete(id)
      },
    }
  }

  /** The process of `id` is dead: whatever is left of it neither sends nor hears. */
  remove(id: NodeId): void {
    this.#receivers.delete(id)
  }

  /** Neither hears the other from now on. */
  cut(a: NodeId, b: NodeId): void {
    this.#cut.add(`${a}-${b}`).add(`${b}-${a}`)
  }

  heal(): void {
    this.#cut.clear()
  }

  #carry(message: Message): void {
    this.sent.push(message)
    if (this.#cut.has(`${message.from}-${message.to}`)) return
    queueMicrotask(() => this.#receivers.get(message.to)?.onMessage(structuredClone(message)))
  }
}
