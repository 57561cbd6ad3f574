import type { Counter, Gauge, Histogram, Metrics } from '../telemetry/index.ts'

/** The metrics of the logs of a node. */
export class LogProbe {
  /** Bytes appended by leaders and followers. */
  readonly appendedBytes: Counter
  /** Syncs of a partition's log, in microseconds from start to end. */
  readonly flushTimeUs: Histogram
  readonly tailReadBytes: Counter
  readonly fileReadBytes: Counter
  readonly offlineDirectories: Gauge
  readonly recoveredSegments: Counter

  constructor(metrics: Metrics) {
    this.appendedBytes = metrics.counter('LogAppendedBytes')
    this.flushTimeUs = metrics.histogram('LogFlushRateAndTimeUs')
    this.tailReadBytes = metrics.counter('LogTailReadBytes')
    this.fileReadBytes = metrics.counter('LogFileReadBytes')
    this.offlineDirectories = metrics.gauge('OfflineLogDirectoryCount')
    this.recoveredSegments = metrics.counter('LogRecoveredSegments')
  }
}
