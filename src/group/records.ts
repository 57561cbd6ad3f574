import { ownCopy, RookeryError, type Uuid } from '../base/index.ts'
import type { RecordCodec } from '../coordinator-runtime/index.ts'
import {
  decodeMessage,
  encodeMessage,
  GroupMetadataKey,
  GroupMetadataValue,
  type Message,
  type MessageInput,
  OffsetCommitKey,
  OffsetCommitValue,
  Reader,
  Writer,
} from '../protocol/index.ts'

/** A record of `__consumer_offsets`; `value` null is a tombstone. */
export type GroupRecord = GroupMetadataRecord | OffsetRecord

export interface GroupMetadataRecord {
  readonly kind: 'group'
  readonly groupId: string
  readonly value: GroupMetadata | null
}

/** A generation of a group: written when its leader has assigned, or when the last member is gone. */
export type GroupMetadata = Readonly<GroupMetadataValue>

export interface OffsetRecord {
  readonly kind: 'offset'
  readonly groupId: string
  readonly topic: string
  readonly partition: number
  readonly value: CommittedOffset | null
}

export interface CommittedOffset {
  readonly offset: number
  /** -1: none. */
  readonly leaderEpoch: number
  readonly metadata: string
  /** Milliseconds since 1970. */
  readonly commitTimestampMs: number
  /** When to forget it, whatever the group does; -1: by the broker's retention. */
  readonly expireTimestampMs: number
  /** `zeroUuid` when not known. */
  readonly topicId: Uuid
}

/** Strings in records take at most this many bytes of UTF-8. */
const maxStringBytes = 32767

/**
 * Whether a text that a client sent can be stored. One that came in need not fit again: a byte that isn't UTF-8 is read as a
 * character of three bytes.
 */
export function isStorable(text: string): boolean {
  return 3 * text.length <= maxStringBytes || Buffer.byteLength(text) <= maxStringBytes
}

/** A record that a newer coordinator wrote: passing over it would lose what it says. */
class GroupRecordError extends RookeryError {
  readonly code = 'GROUP_RECORD_UNKNOWN'

  constructor(name: string, version: number, lastKnown: number) {
    super(`${name} has version ${version} in the log, known are those up to ${lastKnown}`)
  }
}

/**
 * Kafka's keys begin with an int16 that is the kind of record. It began as the version of one kind of key, so that two of
 * the numbers mean a committed offset.
 */
const offsetKeys = [0, 1]
const groupKey = 2

/** What Kafka 4 writes: the last layout without tags. */
const groupValueVersion = 3
/** The only layout with a time of its own to expire at; it has no leader epoch and no topic id. */
const expiringOffsetVersion = 1
/** The layout with a topic id. */
const offsetVersion = 4

/**
 * The records in Kafka's layout, which its tools read:
 *
 *     key    int16 kind | OffsetCommitKey (kind 1) or GroupMetadataKey (kind 2)
 *     value  int16 version | OffsetCommitValue (version 4, or 1 with a retention time) or GroupMetadataValue (version 3)
 */
export const groupRecordCodec: RecordCodec<GroupRecord> = {
  encode(record) {
    if (record.kind === 'group') {
      const { value } = record
      return {
        key: bytesOf(groupKey, GroupMetadataKey, 0, { group: record.groupId }),
        value: value === null ? null : bytesOf(groupValueVersion, GroupMetadataValue, groupValueVersion, value),
      }
    }
    const { groupId: group, topic, partition } = record
    return {
      key: bytesOf(1, OffsetCommitKey, 0, { group, topic, partition }),
      value: record.value === null ? null : offsetBytes(record.value),
    }
  },

  decode(key, value) {
    const reader = new Reader(key)
    const kind = reader.int16()
    if (kind === groupKey) {
      const { group } = decodeMessage(GroupMetadataKey, 0, reader)
      return { kind: 'group', groupId: group, value: value === null ? null : readGroup(value) }
    }
    if (!offsetKeys.includes(kind)) return undefined
    const { group, topic, partition } = decodeMessage(OffsetCommitKey, 0, reader)
    return { kind: 'offset', groupId: group, topic, partition, value: value === null ? null : readOffset(value) }
  },
}

function offsetBytes(committed: CommittedOffset): Buffer {
  const { offset, leaderEpoch, metadata, commitTimestampMs, expireTimestampMs, topicId } = committed
  const commitTimestamp = commitTimestampMs
  if (expireTimestampMs >= 0) {
    const value = { offset, metadata, commitTimestamp, expireTimestamp: expireTimestampMs }
    return bytesOf(expiringOffsetVersion, OffsetCommitValue, expiringOffsetVersion, value)
  }
  return bytesOf(offsetVersion, OffsetCommitValue, offsetVersion, {
    offset,
    leaderEpoch,
    metadata,
    commitTimestamp,
    topicId,
  })
}

function readOffset(bytes: Buffer): CommittedOffset {
  const value = readValue(OffsetCommitValue, bytes)
  return {
    offset: value.offset,
    leaderEpoch: value.leaderEpoch,
    metadata: value.metadata,
    commitTimestampMs: value.commitTimestamp,
    expireTimestampMs: value.expireTimestamp,
    topicId: value.topicId,
  }
}

/** Byte strings are copied: a slice would pin the whole batch for as long as the group lives. */
function readGroup(bytes: Buffer): GroupMetadata {
  const value = readValue(GroupMetadataValue, bytes)
  return {
    ...value,
    members: value.members.map((member) => ({
      ...member,
      subscription: ownCopy(member.subscription),
      assignment: ownCopy(member.assignment),
    })),
  }
}

function bytesOf<M extends Message>(prefix: number, message: M, version: number, value: MessageInput<M>): Buffer {
  const writer = new Writer(128)
  writer.int16(prefix)
  encodeMessage(message, version, value as never, writer)
  return Buffer.concat(writer.finish())
}

function readValue<F extends Message['fields']>(message: Message<F>, bytes: Buffer) {
  const reader = new Reader(bytes)
  const version = reader.int16()
  const { min, max } = message.versions
  if (version < min || version > max) throw new GroupRecordError(message.name, version, max)
  return decodeMessage(message, version, reader)
}
