import type { Counter, Metrics } from '../telemetry/index.ts'

/** The metrics of the groups that this broker coordinates, under Kafka's names. */
export class GroupProbe {
  readonly begunRebalances: Counter
  readonly completedRebalances: Counter

  constructor(metrics: Metrics) {
    this.begunRebalances = metrics.counter('group-rebalance-count')
    this.completedRebalances = metrics.counter('group-completed-rebalance-count')
  }
}
