import type { LeaderEpoch, Offset, Uuid } from '../../src/base/index.ts'
import type { AppendResult, LogListener, PartitionLog, ReadResult } from '../../src/log/index.ts'

/**
 * A log whose syncs end when the test says so. Each "batch" is a buffer that stands for one record per byte; nothing is
 * checked, stamped or stored on a disk.
 */
export class FakeLog implements PartitionLog {
  readonly topic: string
  readonly topicId = 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid
  readonly partition = 0
  logStartOffset: Offset = 0
  logEndOffset: Offset = 0
  flushedOffset: Offset = 0
  highWatermark: Offset = 0
  latestEpoch = -1 as LeaderEpoch
  acksWaitForFlush = true
  isOnline = true
  isReadable = true
  activeListener: LogListener | undefined
  readonly batches: { readonly baseOffset: Offset; readonly bytes: Buffer }[] = []
  releasedReads = 0
  openReads = 0

  constructor(topic = 'orders') {
    this.topic = topic
  }

  get sizeBytes(): number {
    return this.batches.reduce((sum, batch) => sum + batch.bytes.length, 0)
  }

  setListener(listener: LogListener | undefined): void {
    this.activeListener = listener
  }

  appendAsLeader(records: Buffer): AppendResult {
    const baseOffset = this.logEndOffset
    this.batches.push({ baseOffset, bytes: Buffer.from(records) })
    this.logEndOffset += records.length
    return {
      ok: true,
      baseOffset,
      lastOffset: this.logEndOffset - 1,
      logAppendTimeMs: -1,
      logStartOffset: this.logStartOffset,
      duplicate: false,
    }
  }

  appendAsFollower(records: Buffer): void {
    this.appendAsLeader(records)
  }

  /** What a sync's completion does. */
  completeFlush(): void {
    this.flushedOffset = this.logEndOffset
    this.activeListener?.onFlushed(this.flushedOffset)
  }

  async flush(): Promise<void> {
    this.completeFlush()
  }

  read(options: { fetchOffset: Offset; endOffset: Offset; maxBytes: number; minOneBatch: boolean }): ReadResult {
    const chunks: Buffer[] = []
    let sizeBytes = 0
    for (const { baseOffset, bytes } of this.batches) {
      if (baseOffset + bytes.length <= options.fetchOffset || baseOffset >= options.endOffset) continue
      const isFirst = chunks.length === 0 && options.minOneBatch
      if (!isFirst && sizeBytes + bytes.length > options.maxBytes) break
      chunks.push(bytes)
      sizeBytes += bytes.length
    }
    this.openReads++
    return { chunks, sizeBytes, release: () => void this.releasedReads++ }
  }

  async offsetForTimestamp(): Promise<undefined> {
    return undefined
  }

  async offsetOfMaxTimestamp(): Promise<undefined> {
    return undefined
  }

  assignEpochStart(leaderEpoch: LeaderEpoch): void {
    this.latestEpoch = leaderEpoch
  }

  endOffsetForEpoch(leaderEpoch: LeaderEpoch): { leaderEpoch: LeaderEpoch; endOffset: Offset } {
    return { leaderEpoch, endOffset: this.logEndOffset }
  }

  epochForOffset(): LeaderEpoch {
    return this.latestEpoch
  }

  async truncateTo(offset: Offset): Promise<void> {
    this.logEndOffset = offset
  }

  async truncateFullyAndStartAt(offset: Offset): Promise<void> {
    this.batches.length = 0
    this.logStartOffset = offset
    this.logEndOffset = offset
  }

  async startWithin(): Promise<void> {}

  async deleteRecordsBefore(offset: Offset): Promise<void> {
    if (offset <= this.logStartOffset) return
    this.logStartOffset = offset
    this.activeListener?.onLogStartMoved(offset)
  }

  setHighWatermark(offset: Offset): void {
    this.highWatermark = offset
  }

  activeProducers(): [] {
    return []
  }
}
