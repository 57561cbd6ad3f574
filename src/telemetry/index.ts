/**
 * telemetry: what a node says about itself: log lines and metrics. How they leave the process is not decided here: a
 * logger writes to the destination that it is given, and a snapshot of the metrics is a plain object.
 *
 * `Logger` is what every part takes; `createLogger` makes it of pino, `silentLogger` is for embedding and tests. `Metrics`
 * holds counters, gauges and histograms by name; a part's `probe.ts` asks for its own once and then only changes numbers.
 *
 * What holds:
 * - pino is loaded by `createLogger` and not before: a broker embedded with `silentLogger` starts without it.
 * - Times come from the clock that is passed in: two runs of one seed write the same log.
 * - Counting is an increment of a field; recording in a histogram is a few operations on numbers; neither allocates.
 * - Text of a peer never reaches a terminal raw: the human format quotes whatever isn't plain.
 *
 * Everything runs on the event loop and is synchronous.
 */
export { Histogram, type HistogramSnapshot } from './histogram.ts'
export { createLogger, type LogFields, type Logger, type LoggerOptions, type LogLevel, silentLogger } from './logger.ts'
export { type Counter, type Gauge, Metrics, type MetricsSnapshot } from './metrics.ts'
