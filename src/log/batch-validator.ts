import { assert, type Offset } from '../base/index.ts'
import type { TopicConfig } from '../config/index.ts'
import type { Offload } from '../platform/index.ts'
import {
  BatchTooLargeError,
  BatchView,
  batchPrefixBytes,
  type Codec,
  CorruptBatchError,
  checkBatch,
  codecById,
  openRecordBytesOff,
  type RecordWalk,
  readRecords,
  walkRecords,
} from '../protocol/index.ts'
import { repackBatch } from './repack.ts'
import type { AppendOptions, AppendRefusal, Refused } from './types.ts'

/** Largest size to which a batch is unpacked, when a rule asks what is inside: a batch is some MB at most as sent. */
const maxUnpackedBytes = 64 * 1024 * 1024
const maxRecordErrors = 100
/** Of any format: offset, size, and the least that a record of the first one took. */
const minBatchBytes = 26
const zstdSinceProduceVersion = 7

/** A batch that may be stored: itself, or what it became when it was packed anew. */
export interface ValidBatch {
  readonly ok: true
  readonly batch: Buffer
}

export type Validation = ValidBatch | Refused

/**
 * Checks one record set that is to be appended as a leader, in the order Kafka does, and stamps what the topic's settings
 * ask for. Answers at once unless the records have to be unpacked. Stateless: sequences and offsets are the log's matter.
 */
export function validateBatch(
  records: Buffer,
  options: AppendOptions,
  config: TopicConfig,
  nowMs: number,
  offload: Offload,
): Validation | Promise<Validation> {
  const refusal = checkHeader(records, options, config)
  if (refusal !== undefined) return refusal
  const view = new BatchView(records.subarray(0, new BatchView(records).sizeBytes))
  const codec = codecById(view.codecId)
  assert(codec !== undefined, 'checkHeader refuses an unknown codec')
  // Which time counts is the topic's to say.
  if (view.hasLogAppendTime && config.timestampType !== 'LogAppendTime') view.stampCreateTime()
  const mustRepack =
    options.origin === 'client' && config.compressionType !== 'producer' && codecNamed(config.compressionType) !== codec
  if (codec === 'none' && !mustRepack)
    return checkRecords(view, view.recordBytes, config, nowMs) ?? stamp(view, config, nowMs)
  const mustOpen = mustRepack || (config.cleanupPolicy.compact && !view.isControl)
  // Where a timestamp of the header is illegal, the answer says of which records.
  if (!mustOpen && areHeaderTimesLegal(view, config, nowMs)) return stamp(view, config, nowMs)
  return openAndCheck(view, config, nowMs, mustRepack ? codecNamed(config.compressionType) : undefined, offload)
}

/** A log from `logStartOffset` to `logEndOffset` is empty, and starts within the first of the batches: so the log does that they are of. */
export function startsWithin(
  { logStartOffset, logEndOffset }: { readonly logStartOffset: Offset; readonly logEndOffset: Offset },
  batches: Buffer,
): boolean {
  if (batches.length < batchPrefixBytes || logStartOffset !== logEndOffset) return false
  const { baseOffset, lastOffset } = new BatchView(batches)
  return baseOffset < logStartOffset && logStartOffset <= lastOffset
}

/**
 * Checks batches as a leader stored them, which are to be appended at `logEndOffset`. Answers where the last whole one
 * ends. Throws `CorruptBatchError` when one is damaged or doesn't continue the log.
 */
export function checkReplicated(records: Buffer, logEndOffset: Offset): number {
  const view = new BatchView(records)
  let nextOffset = logEndOffset
  let at = 0
  while (at < records.length) {
    const check = checkBatch(records, at, records.length)
    if (check === 'truncated' && at > 0) break
    if (check !== 'ok') throw new CorruptBatchError(`Batch that the leader sent is corrupt (${check})`)
    view.moveTo(records, at)
    if (view.baseOffset < nextOffset || view.lastOffsetDelta < 0) {
      throw new CorruptBatchError(
        `Batch at offset ${view.baseOffset} that the leader sent does not continue the log, which ends at ${nextOffset}`,
      )
    }
    nextOffset = view.lastOffset + 1
    at += view.sizeBytes
  }
  return at
}

/** What can be told from the header and the CRC. */
function checkHeader(records: Buffer, options: AppendOptions, config: TopicConfig): Refused | undefined {
  const isClient = options.origin === 'client'
  if (records.length < batchPrefixBytes) return refused('not-one-batch', 'Record set holds no record batch')
  const view = new BatchView(records)
  const { magic } = view
  if (magic < 2) return refused('not-one-batch', `Record format ${magic} is not supported; allowed is 2`)
  if (magic > 2) return refused('corrupt-message', `Record batch has unknown format ${magic}`)
  // Told before the CRC is taken: the length field says it, and taking the CRC costs more than it is worth.
  if (view.sizeBytes > config.maxMessageBytes) {
    return refused(
      'message-too-large',
      `Record batch of ${view.sizeBytes} bytes is larger than max.message.bytes=${config.maxMessageBytes}`,
    )
  }
  const check = checkBatch(records, 0, records.length)
  if (check === 'truncated') return refused('not-one-batch', 'Record set holds no whole record batch')
  if (check !== 'ok') return refused('corrupt-message', `Record batch is corrupt (${check})`)
  const rest = checkRest(records.subarray(view.sizeBytes))
  if (rest !== undefined) return rest
  if (view.sizeBytes > config.segmentBytes) {
    return refused(
      'record-list-too-large',
      `Record batch of ${view.sizeBytes} bytes is larger than segment.bytes=${config.segmentBytes}`,
    )
  }
  const codec = codecById(view.codecId)
  if (codec === undefined) return refused('unsupported-compression-type', `Codec ${view.codecId} does not exist`)
  if (codec === 'zstd' && (options.produceVersion ?? zstdSinceProduceVersion) < zstdSinceProduceVersion) {
    return refused(
      'unsupported-compression-type',
      `Codec zstd needs Produce version ${zstdSinceProduceVersion} or later`,
    )
  }
  if (isClient && view.baseOffset !== 0) {
    return refused('invalid-record', `Record batch has base offset ${view.baseOffset}; allowed is 0`)
  }
  if (view.recordCount < 1 || view.lastOffsetDelta !== view.recordCount - 1) {
    return refused(
      'invalid-record',
      `Record batch claims ${view.recordCount} records but last offset delta ${view.lastOffsetDelta}`,
    )
  }
  if (isClient && view.isControl) return refused('invalid-record', 'Clients may not write control batches')
  if (view.isTransactional) {
    return refused('unsupported-for-message-format', 'Transactions are not supported by this broker')
  }
  if (view.hasDeleteHorizon) return refused('invalid-record', 'Clients may not set a delete horizon')
  if (view.producerId >= 0 && view.baseSequence < 0) {
    return refused('invalid-record', `Record batch of producer ${view.producerId} has sequence ${view.baseSequence}`)
  }
  // Such ids read as one and the same: the second of two producers would have its records taken for those of the first.
  if (!Number.isSafeInteger(view.producerId)) {
    return refused('invalid-record', 'Record batch has a producer id that no broker gave out')
  }
  return undefined
}

/** What stands behind the batch: nothing, or a part of another one, which is passed over as by every reader of batches. */
function checkRest(rest: Buffer): Refused | undefined {
  if (rest.length < batchPrefixBytes) return undefined
  const { sizeBytes } = new BatchView(rest)
  if (sizeBytes < minBatchBytes) return refused('corrupt-message', `Record batch of ${sizeBytes} bytes is too small`)
  if (sizeBytes > rest.length) return undefined
  return refused('not-one-batch', 'Record set holds more than one record batch')
}

/** Framing, keys and timestamps of unpacked records. */
function checkRecords(view: BatchView, recordBytes: Buffer, config: TopicConfig, nowMs: number): Refused | undefined {
  const walk = walkRecords(view, recordBytes)
  if (!walk.ok) return refused('invalid-record', walk.reason)
  if (config.cleanupPolicy.compact && !view.isControl && walk.firstKeyless >= 0) {
    return keyless(view, recordBytes)
  }
  return checkTimestamps(view, recordBytes, walk, config, nowMs)
}

function keyless(view: BatchView, recordBytes: Buffer): Refused {
  const message = 'Compacted topic cannot accept message without key'
  return {
    ...refused('invalid-record', 'One or more records have been rejected'),
    recordErrors: recordsAtFault(view, recordBytes, message, (record) => record.key === null),
  }
}

/** CreateTime only: whether the producer's clock is to be believed. */
function checkTimestamps(
  view: BatchView,
  recordBytes: Buffer,
  walk: Extract<RecordWalk, { ok: true }>,
  config: TopicConfig,
  nowMs: number,
): Refused | undefined {
  if (config.timestampType === 'LogAppendTime') return undefined
  if (isLegalTime(walk.minTimestamp, config, nowMs) && isLegalTime(walk.maxTimestamp, config, nowMs)) {
    // What the time index says must hold for the records, whatever the producer wrote into the header.
    if (view.maxTimestamp !== walk.maxTimestamp) view.stampMaxTimestamp(walk.maxTimestamp)
    return undefined
  }
  const message = timeMessage(config)
  return {
    ...refused('invalid-timestamp', message),
    recordErrors: recordsAtFault(view, recordBytes, message, ({ timestamp }) => !isLegalTime(timestamp, config, nowMs)),
  }
}

/** For records that stay packed: the header tells the first and the largest timestamp. */
function areHeaderTimesLegal(view: BatchView, config: TopicConfig, nowMs: number): boolean {
  if (config.timestampType === 'LogAppendTime') return true
  return isLegalTime(view.baseTimestamp, config, nowMs) && isLegalTime(view.maxTimestamp, config, nowMs)
}

function isLegalTime(timestamp: number, config: TopicConfig, nowMs: number): boolean {
  if (timestamp === -1) return true
  if (!Number.isSafeInteger(timestamp)) return false
  return nowMs - timestamp <= config.timestampBeforeMaxMs && timestamp - nowMs <= config.timestampAfterMaxMs
}

function timeMessage(config: TopicConfig): string {
  return (
    `Timestamp is out of range: allowed is ${span(config.timestampBeforeMaxMs)} before ` +
    `and ${span(config.timestampAfterMaxMs)} after the broker's time`
  )
}

function span(limitMs: number): string {
  return limitMs === Number.POSITIVE_INFINITY ? 'any time' : `up to ${limitMs} ms`
}

function recordsAtFault(
  view: BatchView,
  recordBytes: Buffer,
  message: string,
  isAtFault: (record: { readonly key: Buffer | null; readonly timestamp: number }) => boolean,
): NonNullable<Refused['recordErrors']> {
  const errors: { batchIndex: number; message: string }[] = []
  let batchIndex = 0
  for (const record of readRecords(view, recordBytes)) {
    if (isAtFault(record)) errors.push({ batchIndex, message })
    if (errors.length === maxRecordErrors) break
    batchIndex++
  }
  return errors
}

function stamp(view: BatchView, config: TopicConfig, nowMs: number): ValidBatch {
  if (config.timestampType === 'LogAppendTime' && !view.isControl) view.stampLogAppendTime(nowMs)
  return { ok: true, batch: view.buffer }
}

/** `target`: the codec to pack them with anew. */
async function openAndCheck(
  view: BatchView,
  config: TopicConfig,
  nowMs: number,
  target: Codec | undefined,
  offload: Offload,
): Promise<Validation> {
  let recordBytes: Buffer
  try {
    recordBytes = await openRecordBytesOff(view, maxUnpackedBytes, offload)
  } catch (error) {
    if (error instanceof CorruptBatchError) return refused('corrupt-message', error.message)
    if (error instanceof BatchTooLargeError) return refused('message-too-large', error.message)
    throw error
  }
  const refusal = checkRecords(view, recordBytes, config, nowMs)
  if (refusal !== undefined) return refusal
  if (target === undefined) return stamp(view, config, nowMs)
  const batch = await repackBatch(view, recordBytes, target, config, offload)
  if (batch.length > config.maxMessageBytes) {
    return refused(
      'message-too-large',
      `Record batch of ${batch.length} bytes, compressed anew, is larger than max.message.bytes=${config.maxMessageBytes}`,
    )
  }
  return stamp(new BatchView(batch), config, nowMs)
}

function codecNamed(compressionType: Exclude<TopicConfig['compressionType'], 'producer'> | 'producer'): Codec {
  assert(compressionType !== 'producer', 'producer is no codec')
  return compressionType === 'uncompressed' ? 'none' : compressionType
}

function refused(reason: AppendRefusal, message: string): Refused {
  return { ok: false, reason, message }
}
