import { buildBatch } from './batch-builder.ts'
import type { KafkaRecord } from './records.ts'

/**
 * The marker that ends a transaction: the only record of a control batch.
 *
 *     key    int16 version 0 | int16 type: 0 abort, 1 commit
 *     value  int16 version 0 | int32 coordinator epoch
 */
export interface ControlRecord {
  readonly type: 'abort' | 'commit'
  /** Leader epoch of the transaction coordinator that wrote it. */
  readonly coordinatorEpoch: number
}

export interface ControlBatchOptions extends ControlRecord {
  readonly producerId: number
  readonly producerEpoch: number
  readonly timestamp: number
  readonly baseOffset?: number
  readonly leaderEpoch?: number
}

export function buildControlBatch(options: ControlBatchOptions): Buffer {
  const { type, coordinatorEpoch, timestamp, ...batch } = options
  const key = Buffer.alloc(4)
  key.writeInt16BE(type === 'commit' ? 1 : 0, 2)
  const value = Buffer.alloc(6)
  value.writeInt32BE(coordinatorEpoch, 2)
  return buildBatch({ ...batch, records: [{ timestamp, key, value }], transactional: true, control: true })
}

/** Undefined for a marker of another kind, which readers pass over. */
export function parseControlRecord(record: Pick<KafkaRecord, 'key' | 'value'>): ControlRecord | undefined {
  const { key, value } = record
  if (key === null || value === null || key.length < 4 || value.length < 6) return undefined
  const type = key.readInt16BE(2)
  if (type !== 0 && type !== 1) return undefined
  return { type: type === 1 ? 'commit' : 'abort', coordinatorEpoch: value.readInt32BE(2) }
}
