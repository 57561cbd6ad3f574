import type { Offset } from '../base/index.ts'
import type { TopicConfig } from '../config/index.ts'
import type { Files } from '../platform/index.ts'
import type { Segment } from './segment.ts'

/** The log that retention looks at. */
export interface RetainedLog {
  readonly config: TopicConfig
  /** In offset order; the last takes appends. */
  readonly segments: readonly Segment[]
  readonly sizeBytes: number
  readonly logStartOffset: Offset
  readonly logEndOffset: Offset
  /** Nothing that isn't committed and on disk goes; exclusive. */
  readonly stableOffset: Offset
}

/** How many segments from the start on may go: too old, too much, or below the log start. */
export async function countExpired(log: RetainedLog, nowMs: number, files: Files): Promise<number> {
  const { cleanupPolicy, retentionMs, retentionBytes } = log.config
  const { segments } = log
  const active = segments.at(-1)
  let excessBytes = log.sizeBytes - retentionBytes
  let count = 0
  for (const segment of segments) {
    const endOffset = segments[count + 1]?.baseOffset ?? log.logEndOffset
    if (endOffset > log.stableOffset || (segment === active && segment.sizeBytes === 0)) break
    const isBelowStart = endOffset <= log.logStartOffset && segment !== active
    const isExcess = cleanupPolicy.delete && excessBytes >= segment.sizeBytes
    if (!isBelowStart && !isExcess) {
      if (!cleanupPolicy.delete || retentionMs === Number.POSITIVE_INFINITY) break
      if (nowMs - (await writtenMs(segment, files)) <= retentionMs) break
    }
    excessBytes -= segment.sizeBytes
    count++
  }
  return count
}

/** When the newest record was written, as far as anything tells. */
async function writtenMs(segment: Segment, files: Files): Promise<number> {
  const { timestamp } = await segment.largestTimestamp()
  if (timestamp >= 0) return timestamp
  return (await files.stat(segment.log.path))?.modifiedMs ?? segment.createdMs
}
