import type { Counter, Gauge, Histogram, Metrics } from '../telemetry/index.ts'

/** The metrics of the logs of a node. */
export class LogProbe {
  /** Bytes appended by leaders and followers. */
  readonly appendedBytes: Counter
  /** Bytes written to copies of partitions that move from one directory to another. */
  readonly movedBytes: Counter
  /** Partitions that move. */
  readonly movingPartitions: Gauge
  /** Syncs of a partition's log, in microseconds from start to end. */
  readonly flushTimeUs: Histogram
  readonly tailReadBytes: Counter
  readonly fileReadBytes: Counter
  readonly offlineDirectories: Gauge
  readonly recoveredSegments: Counter
  /** Read by compaction, in both passes. */
  readonly cleanerReadBytes: Counter
  /** Of segments that replaced others. */
  readonly cleanerWrittenBytes: Counter
  /** Partitions that compaction gave up until the next start. */
  readonly uncleanablePartitions: Gauge
  /** Of the last look, the largest part of a log that could be cleaned, in percent. */
  readonly maxDirtyPercent: Gauge

  constructor(metrics: Metrics) {
    this.appendedBytes = metrics.counter('LogAppendedBytes')
    this.movedBytes = metrics.counter('ThrottledBytes,type=AlterLogDirsReplication')
    this.movingPartitions = metrics.gauge('MovingLogs')
    this.flushTimeUs = metrics.histogram('LogFlushRateAndTimeUs')
    this.tailReadBytes = metrics.counter('LogTailReadBytes')
    this.fileReadBytes = metrics.counter('LogFileReadBytes')
    this.offlineDirectories = metrics.gauge('OfflineLogDirectoryCount')
    this.recoveredSegments = metrics.counter('LogRecoveredSegments')
    this.cleanerReadBytes = metrics.counter('LogCleanerReadBytes')
    this.cleanerWrittenBytes = metrics.counter('LogCleanerWrittenBytes')
    this.uncleanablePartitions = metrics.gauge('uncleanable-partitions-count')
    this.maxDirtyPercent = metrics.gauge('max-dirty-percent')
  }
}
