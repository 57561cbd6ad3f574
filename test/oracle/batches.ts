import { type BatchOptions, BatchView, buildBatch, type RecordInput } from '../../src/protocol/index.ts'

/** A time that every run sends: 2023-11-14. */
export const someTime = 1_700_000_000_000

export function recordsOf(count: number, from: Partial<RecordInput> = {}): RecordInput[] {
  return Array.from({ length: count }, (_, i) => ({
    timestamp: someTime + i,
    key: Buffer.from(`k${i}`),
    value: Buffer.from(`v${i}`),
    ...from,
  }))
}

export function batchOf(count: number, options: Omit<BatchOptions, 'records'> = {}): Buffer {
  return buildBatch({ records: recordsOf(count), ...options })
}

/** `batch` with `bytes` written over it at `position`, its checksum made right again. */
export function patched(batch: Buffer, position: number, bytes: readonly number[]): Buffer {
  const copy = Buffer.from(batch)
  copy.set(bytes, position)
  copy.writeInt32BE(new BatchView(copy).computeCrc() | 0, 17)
  return copy
}
