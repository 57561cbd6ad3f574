import { messageOf } from '../../base/index.ts'
import { type GroupRecord, groupRecordCodec } from '../../group/index.ts'
import {
  type BatchView,
  codecById,
  type KafkaRecord,
  openRecordBytes,
  parseControlRecord,
  readRecords,
} from '../../protocol/index.ts'
import type { SegmentFile } from './folder.ts'
import { type ScanFault, scanSegment } from './scan.ts'

export interface DumpOptions {
  readonly topic: string
  /** Sorted. */
  readonly segments: readonly SegmentFile[]
  /** Batches that hold one of these offsets, both inclusive. */
  readonly fromOffset: number
  readonly toOffset: number
  /** Unpacks batches. */
  readonly records: boolean
}

/** A batch's header, and its records where they were asked for. */
export interface DumpedBatch {
  readonly kind: 'batch'
  readonly file: string
  readonly position: number
  readonly sizeBytes: number
  readonly baseOffset: number
  /** Inclusive. */
  readonly lastOffset: number
  readonly recordCount: number
  readonly leaderEpoch: number
  readonly codec: string
  /** Milliseconds since 1970. */
  readonly maxTimestamp: number
  /** Who gave the records their time. */
  readonly timestampType: 'create' | 'append'
  /** -1: not idempotent. */
  readonly producerId: number
  readonly producerEpoch: number
  readonly baseSequence: number
  readonly isTransactional: boolean
  readonly isControl: boolean
  readonly crc: 'ok' | 'wrong'
  readonly records: readonly DumpedRecord[]
  /** Why there are no records, or not all. */
  readonly recordsFault?: string
}

export interface DumpedRecord {
  readonly record: KafkaRecord
  /** What a record of a coordinator, or a marker of a transaction, says. */
  readonly meaning?: Readonly<Record<string, unknown>>
}

/** The rest of a segment that is no batch. */
export interface DumpedRest {
  readonly kind: 'rest'
  readonly file: string
  readonly position: number
  readonly bytes: number
  readonly fault: ScanFault
}

/** What a batch may unpack to. */
const maxUnpackedBytes = 256 * 1024 * 1024
const groupTopic = '__consumer_offsets'

/** Segments that can hold none of the offsets aren't read. */
export async function* dumpSegments(options: DumpOptions): AsyncGenerator<DumpedBatch | DumpedRest> {
  const { segments, fromOffset, toOffset } = options
  for (const [i, segment] of segments.entries()) {
    const next = segments[i + 1]
    if (segment.baseOffset > toOffset) return
    if (next !== undefined && next.baseOffset <= fromOffset) continue
    const scan = scanSegment(segment.path)
    for (let step = await scan.next(); ; step = await scan.next()) {
      if (step.done === true) {
        const { endPosition: position, fileBytes, fault } = step.value
        if (fault !== undefined) {
          yield { kind: 'rest', file: segment.name, position, bytes: fileBytes - position, fault }
        }
        break
      }
      for (const { view, position, crc, isWhole } of step.value) {
        if (view.lastOffset < fromOffset) continue
        if (view.baseOffset > toOffset) {
          await scan.return({ endPosition: position, fileBytes: position, fault: undefined })
          return
        }
        yield { ...headerOf(view, position, segment.name, crc), ...recordsOf(view, isWhole, options) }
      }
    }
  }
}

function headerOf(view: BatchView, position: number, file: string, crc: 'ok' | 'wrong') {
  return {
    kind: 'batch',
    file,
    position,
    sizeBytes: view.sizeBytes,
    baseOffset: view.baseOffset,
    lastOffset: view.lastOffset,
    recordCount: view.recordCount,
    leaderEpoch: view.leaderEpoch,
    codec: codecById(view.codecId) ?? `codec ${view.codecId}`,
    maxTimestamp: view.maxTimestamp,
    timestampType: view.hasLogAppendTime ? 'append' : 'create',
    producerId: view.producerId,
    producerEpoch: view.producerEpoch,
    baseSequence: view.baseSequence,
    isTransactional: view.isTransactional,
    isControl: view.isControl,
    crc,
  } as const
}

function recordsOf(view: BatchView, isWhole: boolean, options: DumpOptions) {
  const records: DumpedRecord[] = []
  if (!options.records) return { records }
  if (!isWhole) return { records, recordsFault: 'The batch is too large to be unpacked here' }
  try {
    for (const record of readRecords(view, openRecordBytes(view, maxUnpackedBytes))) {
      if (record.offset < options.fromOffset || record.offset > options.toOffset) continue
      const meaning = view.isControl ? markerMeaning(record) : groupMeaning(options.topic, record)
      records.push({ record, ...(meaning === undefined ? {} : { meaning }) })
    }
    return { records }
  } catch (error) {
    // Whatever the bytes are, what could be read of them is shown.
    return { records, recordsFault: messageOf(error) }
  }
}

function markerMeaning(record: KafkaRecord): Readonly<Record<string, unknown>> {
  const marker = parseControlRecord(record)
  if (marker !== undefined) return { marker: marker.type, coordinatorEpoch: marker.coordinatorEpoch }
  const type = record.key !== null && record.key.length >= 4 ? record.key.readInt16BE(2) : -1
  return { marker: controlNames[type] ?? `type ${type}` }
}

/** Control records of Raft logs. */
const controlNames: Readonly<Record<number, string>> = {
  2: 'leader change',
  3: 'snapshot header',
  4: 'snapshot footer',
  5: 'kraft version',
  6: 'kraft voters',
}

function groupMeaning(topic: string, { key, value }: KafkaRecord): Readonly<Record<string, unknown>> | undefined {
  if (topic !== groupTopic || key === null) return undefined
  try {
    const record = groupRecordCodec.decode(key, value)
    return record === undefined ? undefined : shownGroupRecord(record)
  } catch {
    return undefined // of a kind that isn't known here: its bytes are shown
  }
}

function shownGroupRecord(record: GroupRecord): Readonly<Record<string, unknown>> {
  if (record.kind === 'offset') {
    const { groupId: group, topic, partition, value } = record
    if (value === null) return { group, topic, partition, deleted: true }
    const { offset, leaderEpoch, metadata, commitTimestampMs: commitTimestamp } = value
    return { group, topic, partition, offset, leaderEpoch, metadata, commitTimestamp }
  }
  const { groupId: group, value } = record
  if (value === null) return { group, deleted: true }
  const { generation, protocolType, protocol, leader, members } = value
  const shown = members.map(({ memberId, clientId, clientHost }) => ({ memberId, clientId, clientHost }))
  return { group, generation, protocolType, protocol, leader, members: shown }
}
