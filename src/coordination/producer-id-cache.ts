import type { ProducerId } from '../base/index.ts'

interface ProducerIdBlock {
  readonly firstProducerId: ProducerId
  readonly count: number
}

/** Hands out a block of producer ids one by one, and fetches the next when it is used up. Callers that come meanwhile share it. */
export class ProducerIdCache {
  readonly #fetchBlock: () => Promise<ProducerIdBlock>
  #nextProducerId = 0
  /** Exclusive. */
  #blockEnd = 0
  #fetching: Promise<void> | undefined

  constructor(fetchBlock: () => Promise<ProducerIdBlock>) {
    this.#fetchBlock = fetchBlock
  }

  async take(): Promise<ProducerId> {
    while (this.#nextProducerId >= this.#blockEnd) {
      this.#fetching ??= this.#fetch()
      await this.#fetching
    }
    return this.#nextProducerId++ as ProducerId
  }

  async #fetch(): Promise<void> {
    try {
      const { firstProducerId, count } = await this.#fetchBlock()
      this.#nextProducerId = firstProducerId
      this.#blockEnd = firstProducerId + count
    } finally {
      this.#fetching = undefined
    }
  }
}
