import type { Counter, Metrics } from '../telemetry/index.ts'
import type { MemoryBudget } from './memory-budget.ts'

/** The metrics of a server's connections, under Kafka's names. */
export class NetworkProbe {
  readonly accepted: Counter
  readonly refused: Counter
  /** Above a limit of connections. */
  readonly refusedConnections: Counter
  readonly bytesIn: Counter
  readonly bytesOut: Counter

  constructor(
    metrics: Metrics,
    now: { connections: () => number; requestBudget: MemoryBudget; responseBudget: MemoryBudget },
  ) {
    this.accepted = metrics.counter('connection-creation-total')
    this.refused = metrics.counter('connection-refused-total')
    this.refusedConnections = metrics.counter('connection-limit-refused-total')
    this.bytesIn = metrics.counter('incoming-byte-total')
    this.bytesOut = metrics.counter('outgoing-byte-total')
    metrics.reading('connection-count', now.connections)
    metrics.reading('MemoryPoolUsed,pool=requests', () => now.requestBudget.usedBytes)
    metrics.reading('MemoryPoolUsed,pool=responses', () => now.responseBudget.usedBytes)
  }
}
