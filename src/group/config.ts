/** What `node/` passes on of the broker's settings; Kafka's keys in parentheses. */
export interface GroupConfig {
  /** Range of session timeouts, both ends included (`group.min.session.timeout.ms`, `group.max.session.timeout.ms`). */
  readonly minSessionTimeoutMs: number
  readonly maxSessionTimeoutMs: number
  /** How long an empty group waits for more members, 0 or more (`group.initial.rebalance.delay.ms`). */
  readonly initialRebalanceDelayMs: number
  /** Most members of a group, 1 or more (`group.max.size`). */
  readonly groupMaxSize: number
  /** Longest metadata of a committed offset, in UTF-16 code units as Kafka counts them (`offset.metadata.max.bytes`). */
  readonly offsetMetadataMaxBytes: number
  /** How long offsets that nobody uses are kept (`offsets.retention.minutes`). */
  readonly offsetsRetentionMs: number
  /** Time between two looks for such offsets (`offsets.retention.check.interval.ms`). */
  readonly offsetsRetentionCheckIntervalMs: number
}
