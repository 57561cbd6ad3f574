import type { Offset, Uuid } from '../../../src/base/index.ts'
import type { PartitionLog } from '../../../src/log/index.ts'

/** What is known of one partition's log from outside. */
export interface Model {
  /** As appended, in order. */
  batches: { readonly endOffset: Offset; readonly bytes: Buffer }[]
  /** Told as durable. */
  flushedOffset: Offset
  /** Moved up durably. */
  logStartOffset: Offset
  topicId: Uuid
  /** A truncation or deletion is under way: nothing else is done. */
  isBusy: boolean
}

/** Has the model told of what becomes durable. */
export function observe(log: PartitionLog, model: Model): void {
  log.setListener({
    onFlushed: (flushedOffset) => {
      model.flushedOffset = flushedOffset
      log.setHighWatermark(flushedOffset)
    },
    onFailed: () => {},
    onLogStartMoved: () => {},
  })
}

export async function deleteRecords(log: PartitionLog, model: Model, offset: Offset): Promise<void> {
  model.isBusy = true
  await log.deleteRecordsBefore(offset, log.flushedOffset)
  model.logStartOffset = Math.max(model.logStartOffset, offset)
  model.isBusy = false
}

/** Cuts the log; until that is done, either state of it may be found after a crash. */
export async function truncate(log: PartitionLog, model: Model, offset: Offset): Promise<void> {
  model.isBusy = true
  // The batch that holds the offset goes as a whole.
  const kept = model.batches.findLast((batch) => batch.endOffset <= offset)?.endOffset ?? 0
  model.flushedOffset = Math.min(model.flushedOffset, kept)
  model.logStartOffset = Math.min(model.logStartOffset, kept)
  log.setListener(undefined)
  await log.truncateTo(offset)
  model.batches = model.batches.filter((batch) => batch.endOffset <= log.logEndOffset)
  model.flushedOffset = log.flushedOffset // a cut at the end, or past it, makes nothing durable
  model.logStartOffset = log.logStartOffset
  observe(log, model)
  model.isBusy = false
}
