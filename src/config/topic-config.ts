import { assert } from '../base/index.ts'
import { shortened } from './config-error.ts'
import { nearestOf } from './nearest.ts'
import { type TopicValues, topicKeys } from './topic-keys.ts'

/**
 * How one topic's log behaves: its own settings over the broker's over the defaults. Frozen. A limit that isn't there
 * (-1, or Kafka's 9223372036854775807) is Infinity: compare with it, and never give it to a timer.
 */
export interface TopicConfig {
  /** What becomes of old data. Neither: everything is kept. */
  readonly cleanupPolicy: { readonly delete: boolean; readonly compact: boolean }
  /** A segment is rolled before it would grow past this many bytes. */
  readonly segmentBytes: number
  /** A segment is rolled when it is this old, less up to `segmentJitterMs`. */
  readonly segmentMs: number
  readonly segmentJitterMs: number
  /** The largest index, in bytes; a full one rolls its segment. */
  readonly segmentIndexBytes: number
  /** Bytes of records between two index entries; 0 is an entry for each batch. */
  readonly indexIntervalBytes: number
  /** A segment whose newest record is older is removed. 0 or more. */
  readonly retentionMs: number
  /** Oldest segments are removed while the partition is larger. 0 or more. */
  readonly retentionBytes: number
  /** From taking a file out of use to removing it. */
  readonly fileDeleteDelayMs: number
  /** The largest batch, as compressed. */
  readonly maxMessageBytes: number
  readonly minInSyncReplicas: number
  readonly timestampType: TopicValues['messageTimestampType']
  /** How far in the past a record's time may be. */
  readonly timestampBeforeMaxMs: number
  /** How far in the future a record's time may be. */
  readonly timestampAfterMaxMs: number
  /** 1: every answer with acks other than 0 waits for the sync that covers it. Otherwise: records between two syncs. */
  readonly flushMessages: number
  readonly flushMs: number
  readonly preallocate: boolean
  /** 'producer': as it came. */
  readonly compressionType: TopicValues['compressionType']
  /** -1: gzip's own default. */
  readonly compressionGzipLevel: number
  readonly compressionLz4Level: number
  readonly compressionZstdLevel: number
  /** Compaction: how long the mark of a deleted key stays. */
  readonly deleteRetentionMs: number
  /** Compaction: the part of a log, 0 to 1, that must be uncompacted before it runs. */
  readonly minCleanableDirtyRatio: number
  readonly minCompactionLagMs: number
  readonly maxCompactionLagMs: number
  readonly uncleanLeaderElectionEnable: boolean
  /** Replicas that are served throttled, each as `partition:broker`, or only `*`. See `isThrottledReplica`. */
  readonly leaderThrottledReplicas: readonly string[]
  /** Replicas whose fetching is throttled, likewise. */
  readonly followerThrottledReplicas: readonly string[]
}

/** Texts by key, as a topic carries them. */
export type TopicOverrides = ReadonlyMap<string, string>

/** Why a topic can't have these settings. */
export interface TopicConfigFault {
  readonly key: string
  /** A sentence without a full stop, fit for a client. */
  readonly message: string
}

const keyByName = new Map(Object.values(topicKeys).map((key) => [key.name, key]))

/** The first fault of a topic's own settings, which a client may have sent; undefined when all may be kept. */
export function validateTopicOverrides(overrides: ReadonlyMap<string, string | null>): TopicConfigFault | undefined {
  for (const [name, text] of overrides) {
    const key = keyByName.get(name)
    if (key === undefined) {
      const nearest = nearestOf(name, keyByName.keys())
      const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`
      return { key: name, message: `Unknown topic config ${shortened(name)}${hint}` }
    }
    if (text === null)
      return { key: name, message: `Null is no value for topic config ${name}; allowed is ${key.allowed}` }
    if (key.parse(text) === undefined) {
      return { key: name, message: `${name}=${shortened(text)}: allowed is ${key.allowed}` }
    }
  }
  return contradictionOf(overrides)
}

function contradictionOf(overrides: ReadonlyMap<string, string | null>): TopicConfigFault | undefined {
  const own = overrides as TopicOverrides // each text was parsed, so none is null
  if (ownValue(topicKeys.remoteStorageEnable.name, own) === true) {
    return {
      key: 'remote.storage.enable',
      message: 'remote.storage.enable=true: tiered storage is not built; allowed is false',
    }
  }
  const minLag = ownValue(topicKeys.minCompactionLagMs.name, own)
  const maxLag = ownValue(topicKeys.maxCompactionLagMs.name, own)
  if (typeof minLag === 'number' && typeof maxLag === 'number' && minLag > maxLag) {
    return {
      key: 'min.compaction.lag.ms',
      message: `min.compaction.lag.ms=${minLag}: allowed is at most max.compaction.lag.ms, which is ${maxLag}`,
    }
  }
  return undefined
}

/** A topic's own value; undefined when it has none. */
function ownValue(name: string, overrides: TopicOverrides): unknown {
  const text = overrides.get(name)
  return text === undefined ? undefined : keyByName.get(name)?.parse(text)?.value
}

/** What a topic without settings of its own gets from its broker; a part of `ParsedConfig`. */
export interface TopicDefaults {
  /** Text by topic key; a key without one is missing. */
  readonly topicDefaultTexts: ReadonlyMap<string, string>
  readonly topicDefaults: TopicConfig
}

/** The settings of a topic. `overrides` passed `validateTopicOverrides`, also when they come from the metadata log. */
export function resolveTopicConfig(overrides: TopicOverrides, defaults: TopicDefaults): TopicConfig {
  return overrides.size === 0 ? defaults.topicDefaults : topicConfigOf(overrides, defaults.topicDefaultTexts)
}

/** `overrides` over `inherited`, both valid texts by topic key. */
export function topicConfigOf(overrides: TopicOverrides, inherited: ReadonlyMap<string, string>): TopicConfig {
  const values: Record<string, unknown> = {}
  for (const [property, key] of Object.entries(topicKeys)) {
    const text = overrides.get(key.name) ?? inherited.get(key.name)
    const parsed = text === undefined ? null : key.parse(text)
    assert(parsed !== undefined, `${key.name} is validated before it is used`)
    values[property] = parsed === null ? null : parsed.value
  }
  const typed = values as TopicValues
  return Object.freeze({
    cleanupPolicy: Object.freeze({
      delete: typed.cleanupPolicy.includes('delete'),
      compact: typed.cleanupPolicy.includes('compact'),
    }),
    segmentBytes: typed.internalSegmentBytes ?? typed.segmentBytes,
    segmentMs: typed.segmentMs,
    segmentJitterMs: typed.segmentJitterMs,
    segmentIndexBytes: typed.segmentIndexBytes,
    indexIntervalBytes: typed.indexIntervalBytes,
    retentionMs: unlimitedBelowZero(typed.retentionMs),
    retentionBytes: unlimitedBelowZero(typed.retentionBytes),
    fileDeleteDelayMs: typed.fileDeleteDelayMs,
    maxMessageBytes: typed.maxMessageBytes,
    minInSyncReplicas: typed.minInsyncReplicas,
    timestampType: typed.messageTimestampType,
    timestampBeforeMaxMs: typed.messageTimestampBeforeMaxMs,
    timestampAfterMaxMs: typed.messageTimestampAfterMaxMs,
    flushMessages: typed.flushMessages,
    flushMs: typed.flushMs,
    preallocate: typed.preallocate,
    compressionType: typed.compressionType,
    compressionGzipLevel: typed.compressionGzipLevel,
    compressionLz4Level: typed.compressionLz4Level,
    compressionZstdLevel: typed.compressionZstdLevel,
    deleteRetentionMs: typed.deleteRetentionMs,
    minCleanableDirtyRatio: typed.minCleanableDirtyRatio,
    minCompactionLagMs: typed.minCompactionLagMs,
    maxCompactionLagMs: typed.maxCompactionLagMs,
    uncleanLeaderElectionEnable: typed.uncleanLeaderElectionEnable,
    leaderThrottledReplicas: typed.leaderReplicationThrottledReplicas,
    followerThrottledReplicas: typed.followerReplicationThrottledReplicas,
  })
}

function unlimitedBelowZero(limit: number): number {
  return limit < 0 ? Number.POSITIVE_INFINITY : limit
}
