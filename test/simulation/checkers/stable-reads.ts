import type { Fetched, HistoryEvent, SeenRecord } from '../node/history.ts'
import { type Checker, getOrMake, PowerLosses, PropertyViolation, partitionKey } from './checker.ts'

interface Seen {
  /** By offset. */
  readonly values: Map<number, string>
  readonly epochs: Map<number, number>
  /** First offset after all that was seen. */
  endOffset: number
}

/**
 * Consumers see a prefix: every answer continues where it was asked to, without a gap (but in compacted topics), below the high watermark; an offset has
 * one value for ever, and leader epoch never falls from one record to the next. What was read is there at the end, unless
 * retention deleted it. Where syncs are in the background, a power loss ends these promises.
 */
export class StableReads implements Checker {
  readonly #powerLosses = new PowerLosses()
  readonly #seen = new Map<string, Seen>()
  /** Partitions whose syncs are in the background. */
  readonly #volatile = new Set<string>()
  readonly #leadersDiffer: boolean

  /** `leadersDiffer`: where retention deletes, each replica by itself, the log of the next leader may begin earlier. */
  constructor({ leadersDiffer = false } = {}) {
    this.#leadersDiffer = leadersDiffer
  }

  on(event: HistoryEvent, now: number): void {
    if (event.kind === 'fetched') {
      this.#onFetched(event.fetched)
    } else if (event.kind === 'fetch-out-of-range') {
      const { topic, partition, fetchOffset, logStartOffset } = event
      const seen = this.#seen.get(partitionKey(topic, partition))
      const isBelowStart = topic.hasRetention && (this.#leadersDiffer || fetchOffset < logStartOffset)
      // Without durability, what others have read since may be newer than the answer.
      if (topic.isDurable && seen !== undefined && fetchOffset <= seen.endOffset && !isBelowStart) {
        fail(`offset ${fetchOffset} had been reached, and is out of range now`, partitionKey(topic, partition))
      }
    } else if (this.#powerLosses.on(event, now)) {
      for (const key of this.#volatile) this.#seen.delete(key)
    } else if (event.kind === 'final-log') {
      const key = partitionKey(event.topic, event.partition)
      this.#see(key, event.records)
      const seen = this.#seen.get(key)
      if (seen !== undefined && seen.endOffset > event.highWatermark) {
        fail(`offset ${seen.endOffset - 1} was read, and the log ends at ${event.highWatermark}`, key)
      }
    }
  }

  #onFetched({ topic, partition, fetchOffset, records, highWatermark, sentAt }: Fetched): void {
    const key = partitionKey(topic, partition)
    if (!topic.isDurable) this.#volatile.add(key)
    let expected = fetchOffset
    for (const { offset } of records) {
      if (topic.isCompacted ? offset < expected : offset !== expected)
        fail(`offset ${expected} was asked for, and ${offset} came`, key)
      expected = offset + 1
    }
    if (expected > highWatermark && records.length > 0) {
      fail(`offset ${expected - 1} was given above the high watermark, ${highWatermark}`, key)
    }
    if (topic.isDurable || !this.#powerLosses.mayHaveTakenBack(sentAt)) this.#see(key, records)
  }

  #see(key: string, records: readonly SeenRecord[]): void {
    const seen = getOrMake(this.#seen, key, () => ({ values: new Map(), epochs: new Map(), endOffset: 0 }))
    for (const { offset, value, leaderEpoch } of records) {
      const before = seen.values.get(offset)
      if (before !== undefined && before !== value) fail(`offset ${offset} was ${before} and is ${value}`, key)
      seen.values.set(offset, value)
      const epochBefore = seen.epochs.get(offset - 1)
      if (epochBefore !== undefined && epochBefore > leaderEpoch) {
        fail(`leader epoch falls from ${epochBefore} to ${leaderEpoch} at offset ${offset}`, key)
      }
      seen.epochs.set(offset, leaderEpoch)
      if (offset >= seen.endOffset) seen.endOffset = offset + 1
    }
  }
}

function fail(message: string, key: string): never {
  throw new PropertyViolation('what was read stays', `${message} (${key})`)
}
