import type { HistoryEvent, SentBatch } from '../node/history.ts'
import { type Checker, PropertyViolation, partitionKey } from './checker.ts'

/** A batch that was refused is never seen, and one that must be refused is never acknowledged. */
export class RefusedRecords implements Checker {
  readonly #refused = new Map<string, number>()
  readonly #bad = new Set<string>()

  on(event: HistoryEvent): void {
    switch (event.kind) {
      case 'batch-sent':
        if (event.batch.isBad) for (const value of event.batch.values) this.#bad.add(value)
        break
      case 'batch-refused':
        for (const value of event.batch.values) this.#refused.set(value, event.errorCode)
        break
      case 'batch-acked':
        if (event.batch.isBad) fail(`${event.batch.values[0]} breaks the rules and was acknowledged`, event.batch)
        break
      case 'fetched':
        for (const { value } of event.fetched.records) this.#see(value, event.fetched)
        break
      case 'final-log':
        for (const { value } of event.records) this.#see(value, event)
        break
    }
  }

  #see(value: string, place: Pick<SentBatch, 'topic' | 'partition'>): void {
    const errorCode = this.#refused.get(value)
    if (errorCode !== undefined) fail(`${value} was refused with error ${errorCode} and is there`, place)
    if (this.#bad.has(value)) fail(`${value} breaks the rules and is there`, place)
  }
}

function fail(message: string, { topic, partition }: Pick<SentBatch, 'topic' | 'partition'>): never {
  throw new PropertyViolation('refused records never appear', `${message} (${partitionKey(topic, partition)})`)
}
