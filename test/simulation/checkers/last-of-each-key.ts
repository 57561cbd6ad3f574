import { type HistoryEvent, keyOf, type SentBatch } from '../node/history.ts'
import { type Checker, getOrMake, PowerLosses, PropertyViolation, partitionKey } from './checker.ts'

/**
 * Of a compacted topic, whoever reads from the beginning finds for each key the last record that was acknowledged, or one
 * that came later. Nothing but a later record takes the place of another.
 */
export class LastOfEachKey implements Checker {
  readonly #powerLosses = new PowerLosses()
  /** By partition and key, the largest offset that was acknowledged, with the value. */
  readonly #acked = new Map<string, Map<string, { readonly offset: number; readonly value: string }>>()
  readonly #volatile = new Set<string>()

  on(event: HistoryEvent, now: number): void {
    if (event.kind === 'batch-acked') {
      if (event.batch.topic.isCompacted) this.#onAcked(event.batch, event.baseOffset, event.sentAt)
    } else if (this.#powerLosses.on(event, now)) {
      for (const key of this.#volatile) this.#acked.delete(key)
    } else if (event.kind === 'final-log' && event.topic.isCompacted) {
      this.#check(event)
    }
  }

  #onAcked(batch: SentBatch, baseOffset: number, sentAt: number): void {
    const partition = partitionKey(batch.topic, batch.partition)
    if (!batch.topic.isDurable) {
      this.#volatile.add(partition)
      if (this.#powerLosses.mayHaveTakenBack(sentAt)) return
    }
    const acked = getOrMake(this.#acked, partition, () => new Map())
    for (const [i, value] of batch.values.entries()) {
      const offset = baseOffset + i
      if (offset >= (acked.get(keyOf(value))?.offset ?? 0)) acked.set(keyOf(value), { offset, value })
    }
  }

  #check({ topic, partition, records }: HistoryEvent & { readonly kind: 'final-log' }): void {
    const place = partitionKey(topic, partition)
    const last = new Map<string, { readonly offset: number; readonly value: string }>()
    for (const { offset, value } of records) last.set(keyOf(value), { offset, value })
    for (const [key, acked] of this.#acked.get(place) ?? []) {
      const found = last.get(key)
      if (found !== undefined && found.offset > acked.offset) continue
      if (found?.offset === acked.offset && found.value === acked.value) continue
      throw new PropertyViolation(
        'the last record of each key stays',
        `${acked.value} (${key}) was acknowledged at offset ${acked.offset} of ${place}; the last is ` +
          `${found === undefined ? 'gone' : `${found.value} at ${found.offset}`}`,
      )
    }
  }
}
