import { assert, type Offset, type ProducerEpoch, type ProducerId } from '../base/index.ts'
import type { ActiveProducer } from './types.ts'

/** Batches remembered of each producer: a client has at most five requests in flight (KIP-98). */
const maxRememberedBatches = 5
const noEpoch = -1 as ProducerEpoch

/** One batch of an idempotent producer, as it was appended. */
export interface ProducerBatch {
  readonly producerId: ProducerId
  readonly producerEpoch: ProducerEpoch
  /** 0 to 2^31-1. */
  readonly baseSequence: number
  readonly baseOffset: Offset
  /** Inclusive. */
  readonly lastOffset: Offset
  /** Largest timestamp of the batch, milliseconds. */
  readonly timestamp: number
}

interface RememberedBatch {
  readonly firstSequence: number
  readonly lastSequence: number
  readonly lastOffset: Offset
  readonly offsetDelta: number
  readonly timestamp: number
}

interface Producer {
  epoch: ProducerEpoch
  /** Oldest first, at most five. */
  batches: RememberedBatch[]
  lastTimestamp: number
  /** Epoch of the transaction coordinator that wrote the last marker; -1 without one. Kept for the snapshot. */
  coordinatorEpoch: number
}

/** What is remembered of a producer and is committed. */
export interface CommittedBatches {
  readonly producerEpoch: ProducerEpoch
  /** Last offset of each; none when only the epoch is known; undefined when so much came after them that they aren't remembered. */
  readonly lastOffsets: readonly Offset[] | undefined
}

/** What a snapshot holds of one batch that is remembered. Field order is the file's. */
export interface ProducerEntry {
  readonly producerId: ProducerId
  readonly producerEpoch: ProducerEpoch
  /** -1 when no batch is remembered. */
  readonly lastSequence: number
  readonly lastOffset: Offset
  readonly offsetDelta: number
  readonly timestamp: number
  readonly coordinatorEpoch: number
  readonly currentTxnFirstOffset: Offset
}

/** The producer may append; or it sent this batch before; or why it may not. */
export type ProducerVerdict =
  | { readonly kind: 'append' }
  | { readonly kind: 'duplicate'; readonly baseOffset: Offset; readonly lastOffset: Offset; readonly timestamp: number }
  | { readonly kind: 'out-of-order-sequence'; readonly message: string }
  | { readonly kind: 'invalid-producer-epoch'; readonly message: string }

const mayAppend: ProducerVerdict = { kind: 'append' }

/**
 * What a log remembers of its idempotent producers: the epoch and the last five batches of each. A pure function of the
 * batches in the log (and of what expired), so it is rebuilt by replaying them, from a snapshot on.
 */
export class ProducerState {
  readonly #producers = new Map<ProducerId, Producer>()

  get size(): number {
    return this.#producers.size
  }

  /** Decides about a client's batch of `recordCount` records. Changes nothing. */
  check(
    producerId: ProducerId,
    producerEpoch: ProducerEpoch,
    baseSequence: number,
    recordCount: number,
  ): ProducerVerdict {
    const producer = this.#producers.get(producerId)
    // The state may have gone with retention or DeleteRecords: whatever comes is then the first.
    if (producer === undefined || producer.epoch === noEpoch) return mayAppend
    if (producerEpoch < producer.epoch) {
      return {
        kind: 'invalid-producer-epoch',
        message: `Epoch ${producerEpoch} of producer ${producerId} is older than its current epoch ${producer.epoch}`,
      }
    }
    if (producerEpoch > producer.epoch) {
      if (baseSequence === 0) return mayAppend
      return outOfOrder(producerId, producerEpoch, baseSequence, 0)
    }
    const lastSequence = addSequence(baseSequence, recordCount - 1)
    for (const batch of producer.batches) {
      if (batch.firstSequence === baseSequence && batch.lastSequence === lastSequence) {
        const { lastOffset, offsetDelta, timestamp } = batch
        return { kind: 'duplicate', baseOffset: lastOffset - offsetDelta, lastOffset, timestamp }
      }
    }
    const last = producer.batches.at(-1)
    if (last === undefined) return mayAppend
    const expected = addSequence(last.lastSequence, 1)
    return baseSequence === expected ? mayAppend : outOfOrder(producerId, producerEpoch, baseSequence, expected)
  }

  /** A batch was appended: by a client after `check`, by replication, or it is replayed. */
  replay(batch: ProducerBatch): void {
    let producer = this.#producers.get(batch.producerId)
    if (producer === undefined) {
      producer = { epoch: batch.producerEpoch, batches: [], lastTimestamp: -1, coordinatorEpoch: -1 }
      this.#producers.set(batch.producerId, producer)
    }
    if (producer.epoch !== batch.producerEpoch) {
      producer.epoch = batch.producerEpoch
      producer.batches = []
    }
    const offsetDelta = batch.lastOffset - batch.baseOffset
    producer.batches.push({
      firstSequence: batch.baseSequence,
      lastSequence: addSequence(batch.baseSequence, offsetDelta),
      lastOffset: batch.lastOffset,
      offsetDelta,
      timestamp: batch.timestamp,
    })
    if (producer.batches.length > maxRememberedBatches) producer.batches.shift()
    producer.lastTimestamp = batch.timestamp
  }

  /** Forgets producers that wrote nothing since `expirationMs` before `nowMs`. */
  expire(nowMs: number, expirationMs: number): void {
    for (const [producerId, producer] of this.#producers) {
      if (nowMs - producer.lastTimestamp >= expirationMs) this.#producers.delete(producerId)
    }
  }

  clear(): void {
    this.#producers.clear()
  }

  /** Takes what `entries` gave, or a snapshot of Kafka, which has the last batch of each producer only. */
  load(entries: readonly ProducerEntry[]): void {
    this.#producers.clear()
    for (const entry of entries) {
      const { producerId, producerEpoch: epoch, lastSequence, lastOffset, offsetDelta, timestamp } = entry
      const known = this.#producers.get(producerId)
      const batches = known?.epoch === epoch ? known.batches : []
      if (lastSequence >= 0) {
        const firstSequence = subtractSequence(lastSequence, offsetDelta)
        batches.push({ firstSequence, lastSequence, lastOffset, offsetDelta, timestamp })
      }
      if (batches.length > maxRememberedBatches) batches.shift()
      const { coordinatorEpoch } = entry
      this.#producers.set(producerId, { epoch, batches, lastTimestamp: timestamp, coordinatorEpoch })
    }
  }

  /**
   * An entry for every batch that is remembered, a producer's oldest first; one without a batch for a producer of which only
   * the epoch is known. With the last batch alone, as Kafka stores it, a crash right after a roll would forget the four before
   * it, and a client that sends its five batches in flight again would be refused what is already in the log. Kafka reads the
   * file all the same: of entries with one id it keeps the last.
   */
  entries(): ProducerEntry[] {
    const entries: ProducerEntry[] = []
    for (const [producerId, producer] of this.#producers) {
      const { epoch: producerEpoch, coordinatorEpoch, lastTimestamp } = producer
      const shared = { producerId, producerEpoch, coordinatorEpoch, currentTxnFirstOffset: -1 }
      if (producer.batches.length === 0) {
        entries.push({ ...shared, lastSequence: -1, lastOffset: -1, offsetDelta: 0, timestamp: lastTimestamp })
      }
      for (const { lastSequence, lastOffset, offsetDelta, timestamp } of producer.batches) {
        entries.push({ ...shared, lastSequence, lastOffset, offsetDelta, timestamp })
      }
    }
    return entries
  }

  /** By producer id. What lies at the high watermark or above may yet be truncated. */
  committedBatches(highWatermark: Offset): ReadonlyMap<number, CommittedBatches> {
    const committed = new Map<number, CommittedBatches>()
    for (const [producerId, { epoch: producerEpoch, batches }] of this.#producers) {
      const lastOffsets = batches.map(({ lastOffset }) => lastOffset).filter((lastOffset) => lastOffset < highWatermark)
      const isForgotten = lastOffsets.length === 0 && batches.length > 0
      committed.set(producerId, { producerEpoch, lastOffsets: isForgotten ? undefined : lastOffsets })
    }
    return committed
  }

  active(): readonly ActiveProducer[] {
    return [...this.#producers].map(([producerId, { epoch: producerEpoch, batches, lastTimestamp }]) => ({
      producerId,
      producerEpoch,
      lastSequence: batches.at(-1)?.lastSequence ?? -1,
      lastTimestampMs: lastTimestamp,
    }))
  }
}

function outOfOrder(
  producerId: ProducerId,
  producerEpoch: ProducerEpoch,
  baseSequence: number,
  expected: number,
): ProducerVerdict {
  return {
    kind: 'out-of-order-sequence',
    message: `Producer ${producerId} (epoch ${producerEpoch}) sent sequence ${baseSequence}; expected is ${expected}`,
  }
}

/** Sequences count from 0 to 2147483647 and go on with 0. `sequence` and `count` are in that range. */
function addSequence(sequence: number, count: number): number {
  assert(sequence >= 0 && count >= 0, 'sequences are not negative')
  return (sequence + count) % 2 ** 31
}

function subtractSequence(sequence: number, count: number): number {
  return (sequence - count + 2 ** 31) % 2 ** 31
}
