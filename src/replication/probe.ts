import type { Counter, Gauge, Metrics } from '../telemetry/index.ts'

/** The metrics of the fetch sessions, under Kafka's names. */
export class FetchSessionProbe {
  readonly sessions: Gauge
  /** Over all sessions. */
  readonly partitions: Gauge
  /** Sessions that made place for others. */
  readonly evictions: Counter

  constructor(metrics: Metrics) {
    this.sessions = metrics.gauge('NumIncrementalFetchSessions')
    this.partitions = metrics.gauge('NumIncrementalFetchPartitionsCached')
    this.evictions = metrics.counter('IncrementalFetchSessionEvictionsPerSec')
  }
}
