import type { HistoryEvent } from '../node/history.ts'
import { type Checker, PropertyViolation, partitionKey } from './checker.ts'

/** What was deleted, and was said to be, is not there at the end. */
export class DeletedRecords implements Checker {
  readonly #lowWatermarks = new Map<string, number>()

  on(event: HistoryEvent): void {
    if (event.kind !== 'records-deleted' && event.kind !== 'final-log') return
    const key = partitionKey(event.topic, event.partition)
    const known = this.#lowWatermarks.get(key) ?? 0
    if (event.kind === 'records-deleted') {
      this.#lowWatermarks.set(key, Math.max(known, event.lowWatermark))
    } else if (event.logStartOffset < known) {
      const message = `${key} was deleted up to offset ${known}, and starts at ${event.logStartOffset}`
      throw new PropertyViolation('deleted records stay away', message)
    }
  }
}
