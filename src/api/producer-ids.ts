import type { ProducerId } from '../base/index.ts'
import type { Coordination } from '../coordination/index.ts'

/** Hands out producer ids from blocks that the controller gives to this broker. An id never repeats in a cluster; gaps are normal. */
export class ProducerIds {
  readonly #coordination: Pick<Coordination, 'allocateProducerIds'>
  #next = 0
  /** Exclusive. */
  #end = 0
  #refill: Promise<void> | undefined

  constructor(coordination: Pick<Coordination, 'allocateProducerIds'>) {
    this.#coordination = coordination
  }

  /** Rejects when no controller gives a new block. */
  async next(): Promise<ProducerId> {
    while (this.#next === this.#end) {
      this.#refill ??= this.#allocate().finally(() => {
        this.#refill = undefined
      })
      await this.#refill
    }
    return this.#next++ as ProducerId
  }

  async #allocate(): Promise<void> {
    const { firstProducerId, count } = await this.#coordination.allocateProducerIds()
    this.#next = firstProducerId
    this.#end = firstProducerId + count
  }
}
