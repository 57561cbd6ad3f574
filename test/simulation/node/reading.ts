import { apis, BatchView, checkBatch, ErrorCode, openRecordBytes, readRecords } from '../../../src/protocol/index.ts'
import { PropertyViolation, partitionKey } from '../checkers/checker.ts'
import type { Client } from './client.ts'
import type { SeenRecord, SimulatedTopic } from './history.ts'
import type { Subject } from './world.ts'

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
const wrongLeader: ReadonlySet<number> = new Set([
  ErrorCode.NOT_LEADER_OR_FOLLOWER,
  ErrorCode.FENCED_LEADER_EPOCH,
  ErrorCode.UNKNOWN_LEADER_EPOCH,
])

/** One fetch over several partitions, of the node that leads the first. Moves the positions over what came. Undefined when no answer came. */
export async function fetchOnce(
  client: Client,
  positions: readonly Position[],
  options: { readonly maxWaitMs: number; readonly maxBytes: number },
): Promise<readonly ReadPart[] | undefined> {
  const { history } = client.world
  const connection = await client.connection(subjectOf(positions[0]))
  const sentAt = history.now
  const leaderEpochs = positions.map((position) => client.leaderEpochOf(subjectOf(position)))
  const answer = await client.requestOn(connection, apis.Fetch, fetchVersion, {
    maxWaitMs: options.maxWaitMs,
    minBytes: 1,
    maxBytes: options.maxBytes,
    sessionId: 0,
    topics: positions.map(({ topic, partition, offset }, i) => ({
      topicId: topic.topicId as never,
      partitions: [
        {
          partition,
          currentLeaderEpoch: leaderEpochs[i]!,
          fetchOffset: offset,
          partitionMaxBytes: options.maxBytes,
        },
      ],
    })),
    forgottenTopicsData: [],
    rackId: '',
  })
  if (answer === undefined || answer.errorCode !== ErrorCode.NONE) {
    for (const position of positions) client.onRefused(subjectOf(position))
    return undefined
  }
  return answer.responses.map(({ partitions }, i) => {
    const position = positions[i]!
    const { topic, partition, offset } = position
    const { errorCode, highWatermark, logStartOffset, records: bytes } = partitions[0]!
    if (errorCode !== ErrorCode.NONE) {
      client.onRefused(subjectOf(position))
      return { position, errorCode, records: [], highWatermark, logStartOffset }
    }
    const place = `${partitionKey(topic, partition)} from offset ${offset}`
    const { records, endOffset } = unpack(bytes ?? Buffer.alloc(0), place)
    const wanted = records.filter((record) => record.offset >= offset)
    const fetched = {
      topic,
      partition,
      leaderEpoch: leaderEpochs[i]!,
      fetchOffset: offset,
      records: wanted,
      highWatermark,
      logStartOffset,
      sentAt,
    }
    history.add({ kind: 'fetched', fetched })
    position.offset = Math.max(offset, endOffset)
    return { position, errorCode, records: wanted, highWatermark, logStartOffset }
  })
}

function subjectOf(position: Position | undefined): Subject {
  return position === undefined ? 'anything' : { topic: position.topic.name, partition: position.partition }
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
  const answer = await client.request(
    apis.ListOffsets,
    7,
    {
      replicaId: -1,
      isolationLevel: 0,
      topics: [{ name: topic.name, partitions: [{ partitionIndex: partition, timestamp: earliest }] }],
    },
    { topic: topic.name, partition },
  )
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

/**
 * Reads a partition from start to end, and tells the history of it. Answers how many offsets have no record. Throws when it can't
 * be read.
 */
export async function readAll(reader: Client, topic: SimulatedTopic, partition: number): Promise<number> {
  const position = { topic, partition, offset: 0 }
  const records: SeenRecord[] = []
  for (;;) {
    const [part] = (await fetchOnce(reader, [position], { maxWaitMs: 0, maxBytes: 200_000 })) ?? []
    if (part === undefined || (await resetIfOutOfRange(reader, part))) continue
    if (wrongLeader.has(part.errorCode)) {
      await reader.think(20)
      continue
    }
    if (part.errorCode !== ErrorCode.NONE) {
      throw new PropertyViolation('everything can be read', `${topic.name}-${partition}: error ${part.errorCode}`)
    }
    records.push(...part.records)
    if (position.offset < part.highWatermark) continue
    const { highWatermark, logStartOffset } = part
    const kept = records.filter(({ offset }) => offset >= logStartOffset)
    reader.world.history.add({ kind: 'final-log', topic, partition, records: kept, logStartOffset, highWatermark })
    return highWatermark - logStartOffset - kept.length
  }
}
