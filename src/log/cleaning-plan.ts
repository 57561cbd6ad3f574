import type { Offset } from '../base/index.ts'
import type { TopicConfig } from '../config/index.ts'
import { offsetEntryBytes, timeEntryBytes } from './indexes.ts'
import { maxRelativeOffset, type Segment } from './segment.ts'

/** What of a log the cleaner looks at. */
export interface CleanableLog {
  readonly config: TopicConfig
  readonly logStartOffset: Offset
  readonly logEndOffset: Offset
  /** Where the last cleaning ended; exclusive. */
  readonly cleanedOffset: Offset
  /** Committed and on disk up to here; exclusive. */
  readonly stableOffset: Offset
  /** In offset order, without those that may still change. */
  readonly closedSegments: readonly Segment[]
  /** Where the segments that may still change begin. */
  readonly openOffset: Offset
}

/** What there is to clean in a log, and how badly it needs it. */
export interface CleaningPlan {
  /** Segments up to `upTo`, in order. */
  readonly segments: readonly Segment[]
  /** Records from here on were never compared with those before them. */
  readonly firstDirtyOffset: Offset
  /** Nothing from here on is looked at: where a segment begins; exclusive. */
  readonly upTo: Offset
  /** The part of the log, 0 to 1, that is dirty, as far as it may be cleaned. */
  readonly dirtyRatio: number
  /** The ratio, or the age of the oldest dirty record, says that it is time. */
  readonly isDue: boolean
}

/** Undefined when nothing may be cleaned. */
export async function planCleaning(log: CleanableLog, nowMs: number): Promise<CleaningPlan | undefined> {
  const { config } = log
  const isKnown = log.cleanedOffset >= log.logStartOffset && log.cleanedOffset <= log.logEndOffset
  const firstDirtyOffset = isKnown ? log.cleanedOffset : log.logStartOffset
  const segments: Segment[] = []
  let cleanBytes = 0
  let dirtyBytes = 0
  let earliest = Number.POSITIVE_INFINITY
  let upTo = log.closedSegments[0]?.baseOffset ?? log.openOffset
  for (const [index, segment] of log.closedSegments.entries()) {
    const endOffset = log.closedSegments[index + 1]?.baseOffset ?? log.openOffset
    if (endOffset > log.stableOffset) break
    if (endOffset > firstDirtyOffset) {
      if (config.minCompactionLagMs > 0) {
        const { timestamp } = await segment.largestTimestamp()
        if (timestamp > nowMs - config.minCompactionLagMs) break
      }
      if (config.maxCompactionLagMs !== Number.POSITIVE_INFINITY) {
        const timestamp = await segment.firstTimestamp()
        if (timestamp > 0) earliest = Math.min(earliest, timestamp)
      }
      dirtyBytes += segment.sizeBytes
    } else {
      cleanBytes += segment.sizeBytes
    }
    segments.push(segment)
    upTo = endOffset
  }
  if (dirtyBytes === 0) return undefined
  const dirtyRatio = dirtyBytes / (cleanBytes + dirtyBytes)
  const isOverdue = earliest < nowMs - config.maxCompactionLagMs
  const isDue = isOverdue || dirtyRatio > config.minCleanableDirtyRatio
  return { segments, firstDirtyOffset, upTo, dirtyRatio, isDue }
}

/**
 * Neighbours that become one segment: as many as fit its limits together, measured before they are cleaned. `endOffset`: of
 * the last segment; exclusive.
 */
export function groupSegments(segments: readonly Segment[], endOffset: Offset, config: TopicConfig): Segment[][] {
  const groups: Segment[][] = []
  let group: Segment[] = []
  let bytes = 0
  for (const [index, segment] of segments.entries()) {
    const first = group[0]
    const lastOffset = (segments[index + 1]?.baseOffset ?? endOffset) - 1
    const fits =
      first !== undefined &&
      bytes + segment.sizeBytes <= config.segmentBytes &&
      mostIndexBytes(bytes + segment.sizeBytes, config) <= config.segmentIndexBytes &&
      lastOffset - first.baseOffset <= maxRelativeOffset
    if (!fits) {
      group = []
      groups.push(group)
      bytes = 0
    }
    group.push(segment)
    bytes += segment.sizeBytes
  }
  return groups
}

/** The most that the larger index of a segment of `sizeBytes` takes. */
function mostIndexBytes(sizeBytes: number, config: TopicConfig): number {
  const entries = Math.ceil(sizeBytes / Math.max(minBatchBytes, config.indexIntervalBytes + 1))
  return (entries + 1) * Math.max(offsetEntryBytes, timeEntryBytes)
}

const minBatchBytes = 61
