import type { Counter, Histogram, Metrics } from '../telemetry/index.ts'

/** The metrics of one API, under Kafka's names. */
export class ApiProbe {
  readonly requests: Counter
  /** Requests whose handler threw. */
  readonly faults: Counter
  /** From a whole request to its answer, in microseconds: what it waited for included, its turn on the connection not. */
  readonly timeUs: Histogram

  constructor(metrics: Metrics, apiName: string) {
    this.requests = metrics.counter(`RequestsPerSec,request=${apiName}`)
    this.faults = metrics.counter(`ErrorsPerSec,request=${apiName},error=UNKNOWN_SERVER_ERROR`)
    this.timeUs = metrics.histogram(`TotalTimeUs,request=${apiName}`)
  }
}
