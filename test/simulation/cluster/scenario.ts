import type { Random } from '../../../src/platform/index.ts'
import type { ProducerPlan, TopicPlan } from '../node/scenario.ts'

/** What a run of a cluster is made of. All of it follows from the seed. */
export interface ClusterScenario {
  /** Settings of every node, `key=value`. */
  readonly settings: readonly string[]
  readonly topics: readonly TopicPlan[]
  readonly producers: readonly ProducerPlan[]
  readonly consumerCount: number
  readonly memberCount: number
  readonly committerCount: number
  /** Partitions are reassigned. */
  readonly hasMoves: boolean
  /** Records are deleted from the start of logs. */
  readonly hasDeletions: boolean
  /** Topics are created and deleted all the time, too. */
  readonly hasChurn: boolean
  /** Brokers and controllers are nodes of their own. */
  readonly hasSeparateRoles: boolean
  /** Who votes may change: the nodes find each other by `controller.quorum.bootstrap.servers`. */
  readonly isDynamic: boolean
  /**
   * Acknowledgements don't wait for syncs: they stand by there being copies, so that no second node loses power before the first
   * has come back and has everything.
   */
  readonly isVolatile: boolean
  /** How long a sync takes on a healthy disk. */
  readonly syncUs: readonly [least: number, most: number]
  /** Faults that may come, each as often as it stands here. */
  readonly faults: readonly ClusterFault[]
  readonly rounds: number
  /** Share of the rounds in which a second fault is made beside the first. */
  readonly overlap: number
}

export type ClusterFault =
  | 'kill'
  | 'power-loss'
  | 'power-loss-of-all'
  | 'kill-two'
  | 'stop'
  | 'pause'
  | 'cut-one-way'
  | 'cut-both-ways'
  | 'isolate'
  | 'cut-client'
  | 'delay'
  | 'slow-disk'
  | 'clock-jump'
  | 'write-error'
  | 'sync-error'
  | 'disk-full'
  /** A controller loses its vote, follows, and gets it back. */
  | 'revote'
  /** A machine gets an empty disk; a controller votes again when its vote was given to that one. */
  | 'wipe'
  /** The same the other way round: the vote is taken first. */
  | 'revote-wipe'

const allFaults: readonly ClusterFault[] = [
  'kill',
  'kill',
  'kill',
  'power-loss',
  'power-loss',
  'power-loss-of-all',
  'kill-two',
  'stop',
  'stop',
  'pause',
  'pause',
  'cut-one-way',
  'cut-both-ways',
  'isolate',
  'cut-client',
  'delay',
  'slow-disk',
  'clock-jump',
  'write-error',
  'sync-error',
  'disk-full',
]

/** Those in which at most one node loses what it did not sync. */
const harmlessFaults: readonly ClusterFault[] = [
  'kill',
  'power-loss',
  'power-loss',
  'stop',
  'pause',
  'cut-one-way',
  'cut-both-ways',
  'isolate',
  'cut-client',
  'delay',
  'clock-jump',
]

/** Where voters may change. */
const quorumFaults: readonly ClusterFault[] = ['revote', 'revote', 'wipe', 'wipe', 'revote-wipe']

const maxMessageBytes = 16_384

export function drawClusterScenario(random: Random, only: readonly ClusterFault[] | undefined): ClusterScenario {
  const chance = (share: number) => random.float() < share
  const between = (least: number, most: number) => least + random.int(most - least + 1)
  const pick = <T>(values: readonly T[]): T => values[random.int(values.length)]!
  const isVolatile = only === undefined && chance(0.25)
  const settings = [
    'min.insync.replicas=2',
    `replica.lag.time.max.ms=${pick([300, 2000, 10_000])}`,
    `replica.fetch.wait.max.ms=${pick([100, 500, 500])}`,
    `replica.high.watermark.checkpoint.interval.ms=${pick([20, 200, 5000])}`,
    `log.flush.offset.checkpoint.interval.ms=${pick([20, 200, 60_000])}`,
    `metadata.log.max.record.bytes.between.snapshots=${pick([2000, 20_000, 20_000_000])}`,
    'broker.session.timeout.ms=3000',
    'broker.heartbeat.interval.ms=500',
    `offsets.topic.num.partitions=${between(1, 3)}`,
    ...(chance(0.5) ? ['offsets.topic.replication.factor=3'] : []),
    'message.max.bytes=16384',
    'log.initial.task.delay.ms=0',
    `log.retention.check.interval.ms=${pick([300, 2000])}`,
    `log.segment.delete.delay.ms=${pick([0, 60_000])}`,
    `log.flush.start.offset.checkpoint.interval.ms=${pick([200, 60_000])}`,
    `log.cleaner.backoff.ms=${pick([200, 15_000])}`,
    'log.cleaner.min.cleanable.ratio=0',
    ...(chance(0.3) ? ['log.roll.ms=600'] : []),
    'auto.create.topics.enable=false',
  ]
  const hasDeletions = chance(0.4)
  const topics = Array.from({ length: between(1, 2) }, (_, i): TopicPlan => {
    const isCompacted = chance(0.25)
    const expires = !isCompacted && chance(0.25)
    return {
      name: `topic${i}`,
      partitionCount: between(1, 2),
      isDurable: true,
      hasRetention: !isCompacted && (expires || hasDeletions),
      isCompacted,
      replicationFactor: pick([2, 3, 3]),
      configs: {
        ...(isCompacted ? { 'cleanup.policy': 'compact' } : {}),
        ...(expires ? pick([{ 'retention.ms': '2000' }, { 'retention.bytes': '30000' }]) : {}),
        'max.message.bytes': String(maxMessageBytes),
        'internal.segment.bytes': String(isCompacted || expires ? 20_000 : pick([20_000, 100_000, 1_000_000])),
        ...(isVolatile
          ? { 'flush.messages': '1000000', 'flush.ms': String(pick([20, 1000, 60_000])) }
          : { 'flush.messages': '1' }),
        ...(chance(0.5) ? { 'min.insync.replicas': '2' } : {}),
      },
    }
  })
  const producers = Array.from({ length: between(1, 3) }, (): ProducerPlan => {
    const isIdempotent = chance(0.6)
    return {
      isIdempotent,
      acks: isIdempotent || chance(0.6) ? -1 : 1,
      codec: pick(['none', 'none', 'none', 'gzip', 'lz4'] as const),
      window: between(1, 5),
      thinkMs: pick([10, 40, 150]),
      maxRecords: pick([1, 4, 10]),
      maxRecordBytes: pick([30, 200, 1000]),
      patienceMs: pick([300, 1000, 4000]),
      mischief: pick([0, 0.1, 0.3]),
    }
  })
  const isDynamic = only?.some((fault) => quorumFaults.includes(fault)) ?? chance(0.6)
  const drawn = [...(isVolatile ? harmlessFaults : allFaults), ...(isDynamic ? quorumFaults : [])]
  return {
    settings,
    topics,
    producers,
    consumerCount: between(1, 2),
    memberCount: between(0, 2),
    committerCount: between(0, 1),
    hasMoves: chance(0.5),
    hasDeletions: hasDeletions && topics.some(({ isCompacted }) => !isCompacted),
    hasChurn: chance(0.4),
    hasSeparateRoles: chance(0.1),
    isDynamic,
    syncUs: pick([
      [200, 1000],
      [200, 1000],
      [1000, 15_000],
    ] as const),
    isVolatile,
    faults: only ?? drawn.filter(() => chance(0.7)),
    rounds: between(2, 6),
    overlap: isVolatile ? 0 : pick([0, 0.2, 0.5]),
  }
}
