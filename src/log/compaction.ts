import type { Offset } from '../base/index.ts'
import { type BatchView, codecById, openRecordBytesOff, RecordCursor } from '../protocol/index.ts'
import { BatchFilter, type DirtyKeys, maxUnpackedBytes, recordUnits } from './batch-filter.ts'
import { BatchReader } from './batch-reader.ts'
import { CleanedSegment } from './cleaned-segment.ts'
import type { CleanerPace } from './cleaner-pace.ts'
import { type CleanableLog, type CleaningPlan, groupSegments } from './cleaning-plan.ts'
import type { LogEnvironment } from './environment.ts'
import { StorageError } from './errors.ts'
import type { OffsetMap } from './offset-map.ts'
import type { CommittedBatches } from './producer-state.ts'
import type { Segment } from './segment.ts'

/** The least that the buffers for reading and writing take. */
const minBufferBytes = 4096

/** A log while it is cleaned. */
export interface LogInCleaning extends CleanableLog {
  readonly directory: string
  /** Aborted when the log needs its segments for something else: the cleaning ends at the next moment. */
  readonly signal: AbortSignal
  /** Of the producers that may still write, by id. */
  committedBatches(): ReadonlyMap<number, CommittedBatches>
  /** Makes sure, durably, that a start after a crash doesn't check what lies below `offset`, where compaction leaves holes. */
  confirmRecoveryPoint(offset: Offset): Promise<void>
  /** Puts `cleaned` in the place of `old`, neighbours of which it is what remains. Durable when it resolves. */
  replaceSegments(old: readonly Segment[], cleaned: Segment): Promise<void>
}

export interface Compaction {
  readonly environment: LogEnvironment
  readonly log: LogInCleaning
  readonly plan: CleaningPlan
  /** Empty. */
  readonly map: OffsetMap
  readonly pace: CleanerPace
  /** For reading and for writing together. */
  readonly bufferBytes: number
}

export interface CompactionResult {
  /** Everything below was compared; exclusive. */
  readonly endOffset: Offset
  readonly keys: number
  readonly readBytes: number
  readonly writtenBytes: number
}

/**
 * One cleaning of one log, in two passes: the last offset of each key in the dirty part, as far as memory reaches; then
 * every segment up to there is written anew without what `BatchFilter` drops, and small neighbours as one.
 *
 * Throws the signal's reason when the log aborts it; `CorruptBatchError` when a batch is damaged. Whatever it throws, the
 * segments that were replaced are right by themselves, and the others are as they were.
 */
export async function compact(compaction: Compaction): Promise<CompactionResult> {
  const { environment, log, plan } = compaction
  const readBefore = environment.probe.cleanerReadBytes.value
  const keys = await collectKeys(compaction)
  const endOffset = keys.latestOffset + 1
  const last = plan.segments.findLastIndex((segment) => segment.baseOffset < endOffset)
  const segments = plan.segments.slice(0, last + 1)
  const segmentsEnd = plan.segments[last + 1]?.baseOffset ?? plan.upTo
  await log.confirmRecoveryPoint(segmentsEnd)
  const nowMs = environment.platform.clock.now()
  const openTransactions = new Set<number>()
  let writtenBytes = 0
  for (const group of groupSegments(segments, segmentsEnd, log.config)) {
    writtenBytes += await rewriteGroup(compaction, keys, group, nowMs, openTransactions)
  }
  const readBytes = environment.probe.cleanerReadBytes.value - readBefore
  return { endOffset, keys: compaction.map.size, readBytes, writtenBytes }
}

/** The keys of the dirty part from its start on, until the map is full. */
async function collectKeys(compaction: Compaction): Promise<DirtyKeys> {
  const { environment, map, plan } = compaction
  let latestOffset = plan.firstDirtyOffset - 1
  for (const [index, segment] of plan.segments.entries()) {
    const endOffset = plan.segments[index + 1]?.baseOffset ?? plan.upTo
    if (endOffset <= plan.firstDirtyOffset) continue
    const from = segment.baseOffset < plan.firstDirtyOffset ? await segment.positionOf(plan.firstDirtyOffset) : 0
    environment.indexCache.touchIfLoaded(segment)
    const hasAll = await eachBatch(compaction, segment, from, async (view) => {
      const fits = await collectBatchKeys(compaction, view)
      if (fits) latestOffset = view.lastOffset
      return fits
    })
    if (hasAll) {
      // Also past a hole at its end.
      latestOffset = endOffset - 1
      continue
    }
    if (latestOffset >= plan.firstDirtyOffset) break
    throw new StorageError(
      `A batch at offset ${plan.firstDirtyOffset} or after it has more keys than log.cleaner.dedupe.buffer.size holds`,
      segment.log.path,
    )
  }
  return { map, latestOffset }
}

/** False when the map is full. Then it may hold some keys of the batch, at the offsets that they have. */
async function collectBatchKeys({ environment, log, map, pace, plan }: Compaction, view: BatchView): Promise<boolean> {
  // Whether a transaction was committed isn't known, so its records take the place of none.
  if (view.isControl || view.isTransactional || view.recordCount === 0) return true
  const isPacked = codecById(view.codecId) !== 'none'
  const recordBytes = isPacked
    ? await openRecordBytesOff(view, maxUnpackedBytes, environment.platform.offload)
    : view.recordBytes
  const cursor = new RecordCursor(view, recordBytes)
  while (cursor.next()) {
    const turn = pace.spend(recordUnits + cursor.end - cursor.start)
    if (turn !== undefined) {
      await turn
      log.signal.throwIfAborted()
    }
    const { offset, keyBytes } = cursor
    if (keyBytes < 0 || offset < plan.firstDirtyOffset) continue
    if (!map.put(cursor.bytes, cursor.keyStart, keyBytes, offset)) return false
  }
  return true
}

/** One segment out of `group`; answers its size. */
async function rewriteGroup(
  compaction: Compaction,
  keys: DirtyKeys,
  group: readonly Segment[],
  nowMs: number,
  openTransactions: Set<number>,
): Promise<number> {
  const { environment, log, plan, pace, bufferBytes } = compaction
  const { config, directory, signal } = log
  const { offload } = environment.platform
  const producers = log.committedBatches()
  const options = { keys, config, producers, upTo: plan.upTo, nowMs, offload, pace, signal }
  const filter = new BatchFilter(options, openTransactions)
  const cleaned = new CleanedSegment({
    environment,
    directory,
    baseOffset: group[0]!.baseOffset,
    config,
    bufferBytes: Math.max(minBufferBytes, bufferBytes >> 1),
    pace,
    signal,
  })
  try {
    for (const segment of group) {
      await eachBatch(compaction, segment, 0, async (view) => {
        const kept = await filter.filter(view)
        if (kept !== undefined) await cleaned.append(kept)
        return true
      })
    }
    await cleaned.finish()
    signal.throwIfAborted()
  } catch (error) {
    await cleaned.abandon()
    throw error
  }
  await log.replaceSegments(group, cleaned.segment)
  environment.probe.cleanerWrittenBytes.value += cleaned.segment.sizeBytes
  return cleaned.segment.sizeBytes
}

/** Visits whole batches from position `from` on, until `visit` answers false; true when it never did. */
async function eachBatch(
  { environment, log, pace, bufferBytes }: Compaction,
  segment: Segment,
  from: number,
  visit: (view: BatchView) => Promise<boolean>,
): Promise<boolean> {
  const reader = new BatchReader({
    file: segment.log,
    from,
    end: segment.sizeBytes,
    bufferBytes: Math.max(minBufferBytes, bufferBytes >> 1),
  })
  for (;;) {
    log.signal.throwIfAborted()
    const count = await reader.fill()
    if (count === 0) return true
    environment.probe.cleanerReadBytes.value += count
    await pace.io(count, log.signal)
    for (let view = reader.take(); view !== undefined; view = reader.take()) {
      const turn = pace.spend(view.sizeBytes)
      if (turn !== undefined) {
        await turn
        log.signal.throwIfAborted()
      }
      if (!(await visit(view))) return false
    }
  }
}
