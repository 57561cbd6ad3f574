import type { LeaderEpoch, Offset } from '../base/index.ts'
import type { Offload } from '../platform/index.ts'
import { BatchTooLargeError, BatchView, CorruptBatchError, openRecordBytesOff, readRecords } from '../protocol/index.ts'
import type { TimeIndexEntry } from './indexes.ts'
import { largestTimestampOf, type Segment } from './segment.ts'
import type { TimestampAndOffset } from './types.ts'

/** Largest size to which a batch is unpacked to look at its records' timestamps. */
const maxUnpackedBytes = 64 * 1024 * 1024

/** The part of a log to search. */
export interface SearchedLog {
  readonly segments: readonly Segment[]
  readonly logStartOffset: Offset
  /** Exclusive. */
  readonly endOffset: Offset
  readonly offload: Offload
}

/** The first record whose timestamp is at least `timestamp`. */
export async function findTimestamp(log: SearchedLog, timestamp: number): Promise<TimestampAndOffset | undefined> {
  for (const segment of log.segments) {
    if (segment.baseOffset >= log.endOffset) return undefined
    if (segment.endOffset <= log.logStartOffset) continue
    if ((await segment.largestTimestamp()).timestamp < timestamp) continue
    const { offsets, times } = await segment.loadIndexes()
    const before = times.lastBefore(timestamp)
    let position = before === undefined ? 0 : offsets.lookup(before.offset)
    while (position < segment.sizeBytes) {
      const candidate = await nextBatch(segment, position, (view) => {
        return view.maxTimestamp >= timestamp && view.lastOffset >= log.logStartOffset
      })
      if (candidate === undefined) break
      const found = await findRecord(log, segment, candidate, timestamp)
      if (found !== undefined) return found.offset < log.endOffset ? found : undefined
      position = candidate.position + candidate.sizeBytes
    }
  }
  return undefined
}

/**
 * The first record that has the largest timestamp. As in Kafka that may be a record below the log start offset, as long as its
 * segment is there.
 */
export async function findMaxTimestamp(searched: SearchedLog): Promise<TimestampAndOffset | undefined> {
  const log = { ...searched, logStartOffset: 0 }
  let largest: TimeIndexEntry | undefined
  let holder: Segment | undefined
  for (const segment of log.segments) {
    if (segment.baseOffset >= log.endOffset) break
    const isWhole = segment.endOffset <= log.endOffset
    const candidate = isWhole ? await segment.largestTimestamp() : await largestOfPart(log, segment)
    if (candidate.timestamp <= (largest?.timestamp ?? -1)) continue
    largest = candidate
    holder = segment
  }
  if (largest === undefined || holder === undefined) return undefined
  const { offset, timestamp } = largest
  const position = await holder.positionOf(offset)
  const batch = await nextBatch(holder, position, () => true)
  return batch === undefined ? undefined : await findRecord(log, holder, batch, timestamp)
}

/** The largest timestamp among the batches of `segment` that end below the searched part's end. */
async function largestOfPart(log: SearchedLog, segment: Segment): Promise<TimeIndexEntry> {
  let largest: TimeIndexEntry = { timestamp: -1, offset: segment.baseOffset }
  const { offsets, times } = await segment.loadIndexes()
  let position = 0
  const indexed = times.lastBelow(log.endOffset)
  if (indexed !== undefined) {
    largest = indexed
    position = offsets.lookup(indexed.offset)
  }
  await segment.scan(position, (view) => {
    if (view.lastOffset >= log.endOffset) return false
    const timestamp = largestTimestampOf(view)
    if (timestamp > largest.timestamp) largest = { timestamp, offset: view.lastOffset }
    return true
  })
  return largest
}

interface BatchPlace {
  readonly position: number
  readonly sizeBytes: number
}

async function nextBatch(
  segment: Segment,
  position: number,
  isWanted: (view: BatchView) => boolean,
): Promise<BatchPlace | undefined> {
  let found: BatchPlace | undefined
  await segment.scan(position, (view, at) => {
    if (!isWanted(view)) return true
    found = { position: at, sizeBytes: view.sizeBytes }
    return false
  })
  return found
}

/**
 * The first record of a batch that is at least as young as `timestamp`; a batch that can't be opened stands for its first. The
 * leader epoch is the batch's: of a deleted record the log knows it no more.
 */
async function findRecord(
  log: SearchedLog,
  segment: Segment,
  place: BatchPlace,
  timestamp: number,
): Promise<TimestampAndOffset | undefined> {
  const bytes = Buffer.allocUnsafeSlow(place.sizeBytes)
  await segment.log.read(bytes, place.position)
  const view = new BatchView(bytes)
  const leaderEpoch = view.leaderEpoch as LeaderEpoch
  try {
    const recordBytes = await openRecordBytesOff(view, maxUnpackedBytes, log.offload)
    for (const record of readRecords(view, recordBytes)) {
      if (record.timestamp >= timestamp && record.offset >= log.logStartOffset) {
        return { timestamp: record.timestamp, offset: record.offset, leaderEpoch }
      }
    }
    return undefined
  } catch (error) {
    if (!(error instanceof CorruptBatchError || error instanceof BatchTooLargeError)) throw error
    return { timestamp: view.maxTimestamp, offset: Math.max(view.baseOffset, log.logStartOffset), leaderEpoch }
  }
}
