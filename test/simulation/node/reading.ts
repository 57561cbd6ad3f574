import { apis, BatchView, checkBatch, ErrorCode, openRecordBytes, readRecords } from '../../../src/protocol/index.ts'
import { PropertyViolation, partitionKey } from '../checkers/checker.ts'
import type { Client } from './client.ts'
import type { SeenRecord, SimulatedTopic } from './history.ts'

/** How far a reader has come in one partition. */
export interface Position {
  readonly topic: SimulatedTopic
  readonly partition: number
  offset: number
}

export interface ReadPart {
  readonly position: Position
  readonly errorCode: number
  readonly records: readonly SeenRecord[]
  readonly highWatermark: number
  readonly logStartOffset: number
}

const fetchVersion = 16
const maxUnpackedBytes = 1 << 20
const earliest = -2n

/** One fetch over several partitions. Moves the positions over what came. Undefined when no answer came. */
export async function fetchOnce(
  client: Client,
  positions: readonly Position[],
  options: { readonly maxWaitMs: number; readonly maxBytes: number },
): Promise<readonly ReadPart[] | undefined> {
  const { history } = client.world
  const connection = await client.connection()
  const sentAt = history.now
  const answer = await client.requestOn(connection, apis.Fetch, fetchVersion, {
    maxWaitMs: options.maxWaitMs,
    minBytes: 1,
    maxBytes: options.maxBytes,
    sessionId: 0,
    topics: positions.map(({ topic, partition, offset }) => ({
      topicId: topic.topicId as never,
      partitions: [{ partition, fetchOffset: offset, partitionMaxBytes: options.maxBytes }],
    })),
    forgottenTopicsData: [],
    rackId: '',
  })
  if (answer === undefined || answer.errorCode !== ErrorCode.NONE) return undefined
  return answer.responses.map(({ partitions }, i) => {
    const position = positions[i]!
    const { topic, partition, offset } = position
    const { errorCode, highWatermark, logStartOffset, records: bytes } = partitions[0]!
    if (errorCode !== ErrorCode.NONE) return { position, errorCode, records: [], highWatermark, logStartOffset }
    const place = `${partitionKey(topic, partition)} from offset ${offset}`
    const { records, endOffset } = unpack(bytes ?? Buffer.alloc(0), place)
    const wanted = records.filter((record) => record.offset >= offset)
    const fetched = { topic, partition, fetchOffset: offset, records: wanted, highWatermark, logStartOffset, sentAt }
    history.add({ kind: 'fetched', fetched })
    position.offset = Math.max(offset, endOffset)
    return { position, errorCode, records: wanted, highWatermark, logStartOffset }
  })
}

/** `endOffset`: behind the last batch, which may end in records that were compacted away; exclusive. */
function unpack(bytes: Buffer, place: string): { readonly records: SeenRecord[]; readonly endOffset: number } {
  const records: SeenRecord[] = []
  let endOffset = 0
  const view = new BatchView(bytes)
  for (let at = 0; at < bytes.length; at += view.sizeBytes) {
    const check = checkBatch(bytes, at, bytes.length)
    if (check !== 'ok') throw new PropertyViolation('what is read is whole', `${check} in an answer to ${place}`)
    view.moveTo(bytes, at)
    const { leaderEpoch } = view
    endOffset = view.lastOffset + 1
    for (const { offset, value } of readRecords(view, openRecordBytes(view, maxUnpackedBytes))) {
      records.push({ offset, leaderEpoch, value: value?.toString() ?? '' })
    }
  }
  return { records, endOffset }
}

/** Where the log starts now; undefined when no answer came. */
async function earliestOffset(client: Client, topic: SimulatedTopic, partition: number): Promise<number | undefined> {
  const answer = await client.request(apis.ListOffsets, 7, {
    replicaId: -1,
    isolationLevel: 0,
    topics: [{ name: topic.name, partitions: [{ partitionIndex: partition, timestamp: earliest }] }],
  })
  const found = answer?.topics[0]?.partitions[0]
  return found?.errorCode === ErrorCode.NONE ? found.offset : undefined
}

/** Moves a position to the log start when its offset is gone. Answers whether it was that. */
export async function resetIfOutOfRange(client: Client, { position, errorCode }: ReadPart): Promise<boolean> {
  if (errorCode !== ErrorCode.OFFSET_OUT_OF_RANGE) return false
  const { topic, partition, offset: fetchOffset } = position
  const logStartOffset = await earliestOffset(client, topic, partition)
  if (logStartOffset === undefined) return false
  client.world.history.add({ kind: 'fetch-out-of-range', topic, partition, fetchOffset, logStartOffset })
  position.offset = logStartOffset
  return true
}
