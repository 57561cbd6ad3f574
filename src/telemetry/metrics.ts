import { assert } from '../base/index.ts'
import { Histogram, type HistogramSnapshot } from './histogram.ts'

/** Only grows: `counter.value++`. A field, because a call costs more than what it counts. */
export interface Counter {
  value: number
}

/** Goes up and down: `gauge.value = n`. */
export interface Gauge {
  value: number
}

export type MetricsSnapshot = Readonly<Record<string, number | HistogramSnapshot>>

type Metric =
  | { readonly kind: 'counter' | 'gauge'; readonly cell: Counter }
  | { readonly kind: 'reading'; readonly read: () => number }
  | { readonly kind: 'histogram'; readonly histogram: Histogram }

/**
 * The metrics of one node by name. Names are Kafka's where Kafka has one (`BytesInPerSec`, `UnderReplicatedPartitions`,
 * with what distinguishes it behind a comma: `BytesInPerSec,topic=orders`). A part keeps what it gets here in its probe
 * and changes the numbers; asking twice for a name gives the same one.
 */
export class Metrics {
  readonly #metrics = new Map<string, Metric>()

  counter(name: string): Counter {
    return this.#cell(name, 'counter')
  }

  gauge(name: string): Gauge {
    return this.#cell(name, 'gauge')
  }

  /** A gauge that is asked for when a snapshot is taken; replaces an earlier one of that name. */
  reading(name: string, read: () => number): void {
    const present = this.#metrics.get(name)
    assert(present === undefined || present.kind === 'reading', `metric ${name} has one kind`)
    this.#metrics.set(name, { kind: 'reading', read })
  }

  histogram(name: string): Histogram {
    const present = this.#metrics.get(name)
    if (present === undefined) {
      const histogram = new Histogram()
      this.#metrics.set(name, { kind: 'histogram', histogram })
      return histogram
    }
    assert(present.kind === 'histogram', `metric ${name} has one kind`)
    return present.histogram
  }

  /** Forgets a metric, when what it measures is gone. */
  remove(name: string): void {
    this.#metrics.delete(name)
  }

  /** Every value now, by name, sorted. */
  snapshot(): MetricsSnapshot {
    const names = [...this.#metrics.keys()].sort()
    return Object.fromEntries(names.map((name) => [name, valueOfMetric(this.#metrics.get(name)!)]))
  }

  #cell(name: string, kind: 'counter' | 'gauge'): Counter {
    const present = this.#metrics.get(name)
    if (present === undefined) {
      const cell = { value: 0 }
      this.#metrics.set(name, { kind, cell })
      return cell
    }
    assert(present.kind === kind, `metric ${name} has one kind`)
    return present.cell
  }
}

function valueOfMetric(metric: Metric): number | HistogramSnapshot {
  if (metric.kind === 'histogram') return metric.histogram.snapshot()
  return metric.kind === 'reading' ? metric.read() : metric.cell.value
}
