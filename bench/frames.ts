import { apis, buildBatch, encodeRequest } from '../src/protocol/index.ts'

/** Bytes of the batch header; a batch begins with its base offset and its length. */
const batchHeaderBytes = 61
/** Versions that every broker of the last years serves, with answers whose fields stand at fixed places. */
const produceVersion = 7
const fetchVersion = 4

export interface BatchShape {
  /** Of each record's value. */
  readonly recordBytes: number
  /** Of the whole batch, about: as many records as fit, one at least. */
  readonly batchBytes: number
}

export interface EncodedBatch {
  readonly bytes: Buffer
  readonly records: number
}

/** One batch without compression, producer id or sequence, as a broker gets it from a client that isn't idempotent. */
export function encodeBatch({ recordBytes, batchBytes }: BatchShape): EncodedBatch {
  const timestamp = Date.now()
  const value = Buffer.alloc(recordBytes)
  for (let i = 0; i < recordBytes; i++) value[i] = 97 + ((i * 7) % 26)
  const build = (count: number) =>
    buildBatch({ records: Array.from({ length: count }, () => ({ timestamp, value })) }) as Buffer
  const perRecord = (build(200).length - batchHeaderBytes) / 200
  const records = Math.max(1, Math.floor((batchBytes - batchHeaderBytes) / perRecord))
  return { bytes: build(records), records }
}

/** A whole Produce request with one batch for one partition. Its correlation id is always 0: answers come in order. */
export function produceFrame(topic: string, partition: number, acks: number, batch: Buffer): Buffer {
  const body = {
    acks,
    timeoutMs: 30_000,
    topicData: [{ name: topic, partitionData: [{ index: partition, records: [batch] }] }],
  }
  return Buffer.concat(
    encodeRequest(apis.Produce.request, produceVersion, { correlationId: 0, clientId: 'bench' }, body),
  )
}

/** The error code of an answer to `produceFrame`; `answer` begins behind the length. */
export function produceError(answer: Buffer): number {
  const nameBytes = answer.readInt16BE(8)
  return answer.readInt16BE(10 + nameBytes + 8)
}

export interface FetchPosition {
  readonly partition: number
  offset: number
}

export function fetchFrame(
  topic: string,
  positions: readonly FetchPosition[],
  limits: { readonly maxBytes: number; readonly partitionMaxBytes: number; readonly maxWaitMs: number },
): Buffer {
  const { maxBytes, partitionMaxBytes, maxWaitMs } = limits
  const partitions = positions.map(({ partition, offset }) => ({ partition, fetchOffset: offset, partitionMaxBytes }))
  const body = {
    replicaId: -1,
    maxWaitMs,
    minBytes: 1,
    maxBytes,
    isolationLevel: 0,
    topics: [{ topic, partitions }],
  }
  return Buffer.concat(encodeRequest(apis.Fetch.request, fetchVersion, { correlationId: 0, clientId: 'bench' }, body))
}

/** What one answer to `fetchFrame` brought. */
export interface Fetched {
  records: number
  bytes: number
}

/**
 * Walks the batches of an answer, moves `positions` (in the order asked) behind them and counts. Throws when a partition has an
 * error, or when a batch doesn't continue where the last one ended: a record is missing then, or came twice.
 */
export function readFetchAnswer(answer: Buffer, positions: readonly FetchPosition[]): Fetched {
  const fetched: Fetched = { records: 0, bytes: 0 }
  if (answer.readInt32BE(8) === 0) return fetched
  let at = 12 + 2 + answer.readInt16BE(12) + 4
  for (const position of positions) {
    const partition = answer.readInt32BE(at)
    const error = answer.readInt16BE(at + 4)
    if (partition !== position.partition || error !== 0) {
      throw new Error(`Fetch of partition ${position.partition} answered partition ${partition}, error ${error}`)
    }
    const aborted = answer.readInt32BE(at + 22)
    at += 26 + Math.max(0, aborted) * 16
    const sizeBytes = answer.readInt32BE(at)
    at += 4
    const end = at + Math.max(0, sizeBytes)
    fetched.bytes += end - at
    while (at + batchHeaderBytes <= end) {
      const lengthBytes = 12 + answer.readInt32BE(at + 8)
      if (at + lengthBytes > end) break
      const baseOffset = answer.readInt32BE(at) * 2 ** 32 + answer.readUInt32BE(at + 4)
      const count = answer.readInt32BE(at + 57)
      if (baseOffset + count > position.offset) {
        if (baseOffset > position.offset) {
          throw new Error(`Partition ${partition}: records ${position.offset} to ${baseOffset - 1} are missing`)
        }
        fetched.records += baseOffset + count - position.offset
        position.offset = baseOffset + count
      }
      at += lengthBytes
    }
    at = end
  }
  return fetched
}
