import type { HistoryEvent, SentBatch } from '../node/history.ts'
import { type Checker, PropertyViolation, partitionKey } from './checker.ts'

/**
 * Of what was sent, each record is in the log at most once (idempotent producers send theirs again, the others never do),
 * batches are whole (but in compacted topics), and those of one producer are in the order in which they were sent. Nothing else is in the log.
 */
export class OrderAndUniqueness implements Checker {
  readonly #batchOf = new Map<string, SentBatch>()

  on(event: HistoryEvent): void {
    if (event.kind === 'batch-sent') {
      for (const value of event.batch.values) this.#batchOf.set(value, event.batch)
    } else if (event.kind === 'final-log') {
      this.#check(event)
    }
  }

  #check({ topic, partition, records, logStartOffset }: HistoryEvent & { readonly kind: 'final-log' }): void {
    const key = partitionKey(topic, partition)
    const violation = (message: string) =>
      new PropertyViolation('records are in order and once', `${message} in ${key}`)
    const offsetOf = new Map<string, number>()
    const last = new Map<string, SentBatch>()
    let open: { readonly batch: SentBatch; next: number } | undefined
    for (const { offset, value } of records) {
      const batch = this.#batchOf.get(value)
      if (batch === undefined) throw violation(`${value} at offset ${offset} was never sent but is`)
      const isElsewhere = batch.topic.name !== topic.name || batch.partition !== partition
      if (isElsewhere) throw violation(`${value} was sent to ${partitionKey(batch.topic, batch.partition)} but is`)
      const first = offsetOf.get(value)
      if (first !== undefined) throw violation(`${value} is at ${first} and again at ${offset}`)
      offsetOf.set(value, offset)
      const place = batch.values.indexOf(value)
      if (topic.isCompacted) {
        const before = last.get(batch.order)
        if (before !== undefined && before.sequence > batch.sequence) {
          throw violation(`${value} at offset ${offset} comes after ${before.values[0]}, which was sent later,`)
        }
        last.set(batch.order, batch)
        continue
      }
      if (open === undefined || open.next === open.batch.values.length) {
        // Fetches begin with whole batches; a log start moved by retention is one's first offset, one by DeleteRecords any.
        if (place !== 0 && offset !== logStartOffset)
          throw violation(`a batch begins with its record ${place}, ${value}, at offset ${offset}`)
        open = { batch, next: place }
        const before = last.get(batch.order)
        if (before !== undefined && before.sequence >= batch.sequence) {
          throw violation(`${value} at offset ${offset} comes after ${before.values[0]}, which was sent later,`)
        }
        last.set(batch.order, batch)
      }
      if (open.batch !== batch || place !== open.next) throw violation(`${value} at offset ${offset} splits a batch`)
      open.next++
    }
    if (open !== undefined && open.next < open.batch.values.length) {
      throw violation(`only ${open.next} records of the last batch, ${open.batch.values[0]}, are`)
    }
  }
}
