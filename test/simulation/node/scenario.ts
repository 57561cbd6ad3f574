import type { Random } from '../../../src/platform/index.ts'
import type { Codec } from '../../../src/protocol/index.ts'

/** What a run is made of. All of it follows from the seed. */
export interface Scenario {
  /** Settings of the node, `key=value`. */
  readonly settings: readonly string[]
  readonly topics: readonly TopicPlan[]
  readonly producers: readonly ProducerPlan[]
  readonly consumerCount: number
  readonly memberCount: number
  readonly committerCount: number
  /** Topics are created and deleted all the time, too. */
  readonly hasChurn: boolean
  /** How long a sync takes on a healthy disk; a slow one leaves more time between an append and its sync. */
  readonly syncUs: readonly [least: number, most: number]
  /** Faults that may come, each as often as it stands here. */
  readonly faults: readonly FaultKind[]
  /** How many faults, one after the other. */
  readonly rounds: number
}

export interface TopicPlan {
  readonly name: string
  readonly partitionCount: number
  readonly isDurable: boolean
  readonly hasRetention: boolean
  readonly isCompacted: boolean
  /** As many as there are brokers when it is left out. */
  readonly replicationFactor?: number
  readonly configs: Readonly<Record<string, string>>
}

export interface ProducerPlan {
  readonly isIdempotent: boolean
  readonly acks: 1 | -1
  readonly codec: Codec
  /** Batches of one partition that are under way at once; at most 5, as in clients. */
  readonly window: number
  /** Least and most milliseconds between two windows. */
  readonly thinkMs: number
  readonly maxRecords: number
  readonly maxRecordBytes: number
  /** Milliseconds until it gives up an answer and sends again. */
  readonly patienceMs: number
  /** Share of the batches that are sent twice at once (idempotent) or break a rule (others). */
  readonly mischief: number
}

export type FaultKind =
  | 'power-loss'
  | 'power-loss-at-start'
  | 'kill'
  | 'stop'
  | 'pause'
  | 'clock-jump'
  | 'slow-disk'
  | 'write-error'
  | 'sync-error'
  | 'name-error'
  | 'disk-full'
  | 'cut'
  | 'delay'

const allFaults: readonly FaultKind[] = [
  'power-loss',
  'power-loss',
  'power-loss',
  'power-loss-at-start',
  'power-loss-at-start',
  'kill',
  'stop',
  'pause',
  'clock-jump',
  'slow-disk',
  'write-error',
  'sync-error',
  'name-error',
  'disk-full',
  'cut',
  'delay',
]

/** Power losses in one run when a run is to have nothing else. */
const powerLossesPerSeed = 5
const maxMessageBytes = 16_384

/** Draws a scenario. `powerLossesOnly`: the faults are power losses, `powerLossesPerSeed` of them. */
export function drawScenario(random: Random, powerLossesOnly: boolean): Scenario {
  const chance = (share: number) => random.float() < share
  const between = (least: number, most: number) => least + random.int(most - least + 1)
  const pick = <T>(values: readonly T[]): T => values[random.int(values.length)]!
  const settings = [
    'log.initial.task.delay.ms=0',
    `log.retention.check.interval.ms=${pick([50, 300, 2000])}`,
    `log.flush.offset.checkpoint.interval.ms=${pick([20, 200, 60_000])}`,
    `log.flush.start.offset.checkpoint.interval.ms=${pick([20, 200, 60_000])}`,
    `replica.high.watermark.checkpoint.interval.ms=${pick([20, 200, 5000])}`,
    `log.segment.delete.delay.ms=${pick([0, 100, 60_000])}`,
    `metadata.log.max.record.bytes.between.snapshots=${pick([500, 5000, 20_000_000])}`,
    `offsets.topic.num.partitions=${between(1, 4)}`,
    `log.cleaner.backoff.ms=${pick([20, 200, 15_000])}`,
    `log.cleaner.io.buffer.size=${pick([1000, 524_288])}`,
    'log.cleaner.min.cleanable.ratio=0',
    // Also of the topic of committed offsets, which so is compacted.
    `log.roll.ms=${pick([300, 604_800_000])}`,
    'message.max.bytes=16384',
    'auto.create.topics.enable=false',
  ]
  const topics = Array.from({ length: between(1, 2) }, (_, i): TopicPlan => {
    const isDurable = powerLossesOnly || chance(0.8)
    const isCompacted = chance(0.3)
    const hasRetention = !isCompacted && chance(0.3)
    return {
      name: `topic${i}`,
      partitionCount: between(1, 3),
      isDurable,
      hasRetention,
      isCompacted,
      configs: {
        ...(isCompacted ? { 'cleanup.policy': 'compact' } : {}),
        'max.message.bytes': String(maxMessageBytes),
        'internal.segment.bytes': String(isCompacted ? pick([17_000, 20_000]) : pick([20_000, 40_000, 1_000_000])),
        'index.interval.bytes': String(pick([0, 500, 4096])),
        'flush.messages': isDurable ? '1' : String(pick([10, 1_000_000])),
        ...(isDurable ? {} : { 'flush.ms': String(pick([20, 1000])) }),
        ...(chance(0.3) ? { 'segment.ms': String(pick([50, 500])) } : {}),
        ...(chance(0.2) ? { 'message.timestamp.type': 'LogAppendTime' } : {}),
        ...(chance(0.2) ? { 'compression.type': pick(['lz4', 'uncompressed', 'gzip']) } : {}),
        ...(hasRetention
          ? chance(0.5)
            ? { 'retention.ms': String(pick([100, 1000])) }
            : { 'retention.bytes': String(pick([0, 30_000])) }
          : {}),
      },
    }
  })
  const producers = Array.from({ length: between(1, 3) }, (): ProducerPlan => {
    const isIdempotent = chance(0.6)
    return {
      isIdempotent,
      acks: isIdempotent || chance(0.5) ? -1 : 1,
      codec: pick(['none', 'none', 'none', 'none', 'gzip', 'snappy', 'lz4', 'zstd'] as const),
      window: between(1, 5),
      thinkMs: pick([4, 20, 100]),
      maxRecords: pick([1, 4, 10]),
      maxRecordBytes: pick([30, 200, 1000]),
      patienceMs: pick([50, 500, 60_000]),
      mischief: pick([0, 0.1, 0.4]),
    }
  })
  return {
    settings,
    topics,
    producers,
    consumerCount: between(1, 2),
    memberCount: between(0, 3),
    committerCount: between(0, 1),
    hasChurn: chance(0.6),
    syncUs: pick([
      [200, 1000],
      [200, 1000],
      [1000, 20_000],
    ] as const),
    faults: powerLossesOnly ? ['power-loss', 'power-loss', 'power-loss-at-start'] : allFaults.filter(() => chance(0.7)),
    rounds: powerLossesOnly ? powerLossesPerSeed : between(2, 7),
  }
}
