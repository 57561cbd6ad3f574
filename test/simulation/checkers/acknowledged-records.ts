import type { HistoryEvent, SentBatch } from '../node/history.ts'
import { type Checker, getOrMake, PowerLosses, PropertyViolation, partitionKey } from './checker.ts'

/**
 * What was acknowledged is in the log at the end, at the offset that was told, unless retention deleted it (of a compacted topic
 * `LastOfEachKey` knows more). Where syncs are
 * in the background a power loss may take what had been acknowledged before it.
 */
export class AcknowledgedRecords implements Checker {
  readonly #powerLosses = new PowerLosses()
  readonly #acked = new Map<string, Map<SentBatch, number>>()

  on(event: HistoryEvent, now: number): void {
    if (event.kind === 'batch-acked') {
      const { batch, baseOffset, sentAt } = event
      if (batch.topic.isCompacted) return
      if (!batch.topic.isDurable && this.#powerLosses.mayHaveTakenBack(sentAt)) return
      const key = partitionKey(batch.topic, batch.partition)
      getOrMake(this.#acked, key, () => new Map<SentBatch, number>()).set(batch, baseOffset)
    } else if (this.#powerLosses.on(event, now)) {
      for (const acked of this.#acked.values()) {
        for (const batch of acked.keys()) if (!batch.topic.isDurable) acked.delete(batch)
      }
    } else if (event.kind === 'final-log') {
      this.#check(event)
    }
  }

  #check({ topic, partition, records, logStartOffset }: HistoryEvent & { readonly kind: 'final-log' }): void {
    const key = partitionKey(topic, partition)
    const values = new Map(records.map(({ offset, value }) => [offset, value]))
    if (logStartOffset > 0 && !topic.hasRetention) {
      throw new PropertyViolation('acknowledged records stay', `${key} starts at ${logStartOffset} without retention`)
    }
    for (const [{ values: expected, acks }, baseOffset] of this.#acked.get(key) ?? []) {
      for (const [i, value] of expected.entries()) {
        const offset = baseOffset + i
        if (offset < logStartOffset || values.get(offset) === value) continue
        throw new PropertyViolation(
          'acknowledged records stay',
          `${value} was acknowledged (acks=${acks}) at offset ${offset} of ${key}, where ${values.get(offset) ?? 'nothing'} is`,
        )
      }
    }
  }
}
