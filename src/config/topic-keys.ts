import { boolean, declareKeys, double, enumOf, int, type Key, list, long, maxLong, type ValuesOf } from './keys.ts'

/** A broker's key that a topic takes its value from when it has none of its own. */
export interface BrokerSynonym {
  readonly name: string
  /** Multiplies the broker's number: 3,600,000 where it is in hours. */
  readonly factor: number
}

/** A broker's names for `key`, from the one that counts most; empty when it has none. */
export function brokerSynonymsOf(key: Key<unknown>): readonly BrokerSynonym[] {
  return synonyms.get(key.name) ?? []
}

/** `partition:broker` */
const throttledReplica = /^\d{1,10}:\d{1,10}$/
/** Every replica of the topic; stands alone. */
const everyReplica = '*'

/** Whether a list of throttled replicas names the one that `brokerId` has of `partition`. */
export function isThrottledReplica(replicas: readonly string[], partition: number, brokerId: number): boolean {
  if (replicas.length === 0) return false
  return replicas.some((each) => {
    if (each === everyReplica) return true
    const colon = each.indexOf(':')
    return Number(each.slice(0, colon)) === partition && Number(each.slice(colon + 1)) === brokerId
  })
}

/** The broker's keys that say the same thing as `name`, in other units or more weakly, with itself, from the strongest. */
export function equivalentBrokerKeys(name: string): readonly string[] {
  for (const group of synonyms.values()) {
    if (group.length > 1 && group.some((synonym) => synonym.name === name)) return group.map((synonym) => synonym.name)
  }
  return [name]
}

/**
 * Every key of a topic in Kafka 4.3, with its type, limits and default. Rookery acts on those that `TopicConfig` lists;
 * the others are kept and answered, so that a client that reads all of them and writes them back loses nothing.
 */
export const topicKeys = declareKeys({
  cleanupPolicy: list('cleanup.policy', {
    default: ['delete'],
    oneOf: ['compact', 'delete'],
    repeats: true,
    doc: 'What becomes of old data: removed (delete), or only the last record of each key kept (compact)',
  }),
  compressionGzipLevel: int('compression.gzip.level', {
    default: -1,
    min: -1,
    max: 9,
    except: 0,
    doc: 'The level of gzip',
  }),
  compressionLz4Level: int('compression.lz4.level', { default: 9, min: 1, max: 17, doc: 'The level of lz4' }),
  compressionType: enumOf('compression.type', {
    default: 'producer',
    oneOf: ['uncompressed', 'zstd', 'lz4', 'snappy', 'gzip', 'producer'],
    doc: 'How records are stored: as the producer compressed them, or compressed anew',
  }),
  compressionZstdLevel: int('compression.zstd.level', { default: 3, min: -131_072, max: 22, doc: 'The level of zstd' }),
  deleteRetentionMs: long('delete.retention.ms', {
    default: 86_400_000,
    min: 0,
    doc: 'How long compaction keeps the mark of a deleted key',
  }),
  fileDeleteDelayMs: long('file.delete.delay.ms', {
    default: 60_000,
    min: 0,
    doc: 'Time from taking a file out of use to removing it',
  }),
  flushMessages: long('flush.messages', {
    default: 1,
    kafkaDefault: maxLong,
    min: 1,
    doc: 'At 1 every acknowledged record was synced to disk before the answer; at any other value syncing is in the background',
  }),
  flushMs: long('flush.ms', { default: maxLong, min: 0, doc: 'A record is synced at the latest after this time' }),
  followerReplicationThrottledReplicas: list('follower.replication.throttled.replicas', {
    default: [],
    elements: throttledReplica,
    alone: everyReplica,
    doc: 'Replicas whose fetching is throttled, each as partition:broker, or *',
  }),
  indexIntervalBytes: int('index.interval.bytes', {
    default: 4096,
    min: 0,
    doc: 'Bytes of records between two entries of an index',
  }),
  internalSegmentBytes: int('internal.segment.bytes', {
    default: null,
    min: 1,
    internal: true,
    doc: 'Wins over segment.bytes and may be smaller; for tests',
  }),
  leaderReplicationThrottledReplicas: list('leader.replication.throttled.replicas', {
    default: [],
    elements: throttledReplica,
    alone: everyReplica,
    doc: 'Replicas that are served throttled, each as partition:broker, or *',
  }),
  localRetentionBytes: long('local.retention.bytes', { default: -2, min: -2, doc: 'Tiered storage is not built' }),
  localRetentionMs: long('local.retention.ms', { default: -2, min: -2, doc: 'Tiered storage is not built' }),
  maxCompactionLagMs: long('max.compaction.lag.ms', {
    default: maxLong,
    min: 1,
    doc: 'A record older than this is compacted whatever the ratio',
  }),
  maxMessageBytes: int('max.message.bytes', {
    default: 1_048_588,
    min: 0,
    doc: 'The largest record batch, as compressed',
  }),
  messageTimestampAfterMaxMs: long('message.timestamp.after.max.ms', {
    default: 3_600_000,
    min: 0,
    doc: 'A record whose time is further in the future than this is refused',
  }),
  messageTimestampBeforeMaxMs: long('message.timestamp.before.max.ms', {
    default: maxLong,
    min: 0,
    doc: 'A record whose time is further in the past than this is refused',
  }),
  messageTimestampType: enumOf('message.timestamp.type', {
    default: 'CreateTime',
    oneOf: ['CreateTime', 'LogAppendTime'],
    doc: 'The time in a record: the producer’s, or when it was appended',
  }),
  minCleanableDirtyRatio: double('min.cleanable.dirty.ratio', {
    default: 0.5,
    min: 0,
    max: 1,
    doc: 'A log is compacted when this part of it was not compacted yet',
  }),
  minCompactionLagMs: long('min.compaction.lag.ms', {
    default: 0,
    min: 0,
    doc: 'A record younger than this is not compacted',
  }),
  minInsyncReplicas: int('min.insync.replicas', {
    default: 1,
    min: 1,
    doc: 'A write with acks=all is refused while fewer replicas than this are in sync',
  }),
  preallocate: boolean('preallocate', { default: false, doc: 'A new segment takes its full size on disk at once' }),
  remoteLogCopyDisable: boolean('remote.log.copy.disable', { default: false, doc: 'Tiered storage is not built' }),
  remoteLogDeleteOnDisable: boolean('remote.log.delete.on.disable', {
    default: false,
    doc: 'Tiered storage is not built',
  }),
  remoteStorageEnable: boolean('remote.storage.enable', { default: false, doc: 'Tiered storage is not built' }),
  retentionBytes: long('retention.bytes', {
    default: -1,
    doc: 'Oldest segments are removed while a partition is larger than this; -1 is never',
  }),
  retentionMs: long('retention.ms', {
    default: 604_800_000,
    min: -1,
    doc: 'A segment is removed when its newest record is older than this; -1 is never',
  }),
  segmentBytes: int('segment.bytes', {
    default: 1_073_741_824,
    min: 1_048_576,
    doc: 'A segment is closed and a new one begun before it would grow past this',
  }),
  segmentIndexBytes: int('segment.index.bytes', {
    default: 10_485_760,
    min: 4,
    doc: 'The largest index; a full one closes its segment',
  }),
  segmentJitterMs: long('segment.jitter.ms', {
    default: 0,
    min: 0,
    doc: 'At most this much, at random, is taken from segment.ms',
  }),
  segmentMs: long('segment.ms', { default: 604_800_000, min: 1, doc: 'A segment is closed when it is this old' }),
  uncleanLeaderElectionEnable: boolean('unclean.leader.election.enable', {
    default: false,
    doc: 'A replica that is not in sync may become leader when no other is left, which loses records',
  }),
})

/** The typed value of every key of a topic. */
export type TopicValues = ValuesOf<typeof topicKeys>

const minuteMs = 60_000
const hourMs = 3_600_000

const synonyms: ReadonlyMap<string, readonly BrokerSynonym[]> = new Map([
  ['cleanup.policy', same('log.cleanup.policy')],
  ['compression.gzip.level', same('compression.gzip.level')],
  ['compression.lz4.level', same('compression.lz4.level')],
  ['compression.type', same('compression.type')],
  ['compression.zstd.level', same('compression.zstd.level')],
  ['delete.retention.ms', same('log.cleaner.delete.retention.ms')],
  ['file.delete.delay.ms', same('log.segment.delete.delay.ms')],
  ['flush.messages', same('log.flush.interval.messages')],
  ['flush.ms', same('log.flush.interval.ms', 'log.flush.scheduler.interval.ms')],
  ['index.interval.bytes', same('log.index.interval.bytes')],
  ['local.retention.bytes', same('log.local.retention.bytes')],
  ['local.retention.ms', same('log.local.retention.ms')],
  ['max.compaction.lag.ms', same('log.cleaner.max.compaction.lag.ms')],
  ['max.message.bytes', same('message.max.bytes')],
  ['message.timestamp.after.max.ms', same('log.message.timestamp.after.max.ms')],
  ['message.timestamp.before.max.ms', same('log.message.timestamp.before.max.ms')],
  ['message.timestamp.type', same('log.message.timestamp.type')],
  ['min.cleanable.dirty.ratio', same('log.cleaner.min.cleanable.ratio')],
  ['min.compaction.lag.ms', same('log.cleaner.min.compaction.lag.ms')],
  ['min.insync.replicas', same('min.insync.replicas')],
  ['preallocate', same('log.preallocate')],
  ['retention.bytes', same('log.retention.bytes')],
  [
    'retention.ms',
    [
      { name: 'log.retention.ms', factor: 1 },
      { name: 'log.retention.minutes', factor: minuteMs },
      { name: 'log.retention.hours', factor: hourMs },
    ],
  ],
  ['segment.bytes', same('log.segment.bytes')],
  ['segment.index.bytes', same('log.index.size.max.bytes')],
  [
    'segment.jitter.ms',
    [
      { name: 'log.roll.jitter.ms', factor: 1 },
      { name: 'log.roll.jitter.hours', factor: hourMs },
    ],
  ],
  [
    'segment.ms',
    [
      { name: 'log.roll.ms', factor: 1 },
      { name: 'log.roll.hours', factor: hourMs },
    ],
  ],
  ['unclean.leader.election.enable', same('unclean.leader.election.enable')],
])

function same(...names: readonly string[]): readonly BrokerSynonym[] {
  return names.map((name) => ({ name, factor: 1 }))
}
