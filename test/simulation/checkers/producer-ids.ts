import type { HistoryEvent } from '../node/history.ts'
import { type Checker, PropertyViolation } from './checker.ts'

/** No two producers are given the same id and epoch, before a crash or after. */
export class ProducerIds implements Checker {
  readonly #given = new Set<string>()

  on(event: HistoryEvent): void {
    if (event.kind !== 'producer-id') return
    const given = `${event.producerId} with epoch ${event.producerEpoch}`
    if (this.#given.has(given)) throw new PropertyViolation('producer ids never repeat', `${given} was given twice`)
    this.#given.add(given)
  }
}
