import {
  apis,
  BatchView,
  batchPrefixBytes,
  checkBatch,
  ErrorCode,
  openRecordBytes,
  readRecords,
} from '../../../src/protocol/index.ts'
import type { Read, SeenRecord } from '../judge/history.ts'
import { early, outOfRange } from '../judge/reads.ts'
import { requestTimeoutMs, type Session } from './session.ts'

const maxWaitMs = 200
/** Room for many batches: those of the producers here are small. */
const maxBytes = 256 * 1024

/** Fetches once from the leader, and records it; undefined when there was nobody to ask. */
export async function fetchOnce(
  session: Session,
  process: string,
  partition: number,
  fetchOffset: number,
): Promise<Read | undefined> {
  const { world } = session
  const leader = await session.leader(partition)
  const client = leader && (await session.connection(leader.id).catch(() => undefined))
  if (leader === undefined || client === undefined) {
    session.forgetLeader(partition)
    return undefined
  }
  const read: Read = {
    kind: 'read',
    process,
    partition,
    leaderEpoch: leader.leaderEpoch,
    fetchOffset,
    invokedMs: world.recording.now(),
    completedMs: Number.POSITIVE_INFINITY,
    outcome: 'unknown',
    records: [],
    highWatermark: -1,
  }
  world.recording.reads.push(read)
  try {
    const asked = { partition, currentLeaderEpoch: leader.leaderEpoch, fetchOffset, partitionMaxBytes: maxBytes }
    const { responses } = await client.request(
      apis.Fetch,
      12,
      {
        maxWaitMs,
        minBytes: 1,
        topics: [{ topic: world.topic, partitions: [asked] }],
        forgottenTopicsData: [],
        rackId: '',
      },
      { timeoutMs: requestTimeoutMs },
    )
    read.completedMs = world.recording.now()
    const answer = responses[0]!.partitions[0]!
    if (answer.errorCode !== ErrorCode.NONE) {
      read.outcome = 'fail'
      read.note = answer.errorCode === ErrorCode.OFFSET_OUT_OF_RANGE ? outOfRange : `error ${answer.errorCode}`
      session.forgetLeader(partition)
      return read
    }
    read.outcome = 'ok'
    read.highWatermark = answer.highWatermark
    read.records = recordsIn(answer.records ?? Buffer.alloc(0)).filter(({ offset }) => offset >= fetchOffset)
    // What came in while the answer waited is in its high watermark and not in its records.
    if (read.completedMs - read.invokedMs < maxWaitMs / 2) read.note = early
  } catch (error) {
    read.note = (error as Error).message
    session.forgetLeader(partition)
  }
  return read
}

/** All records of whole batches. Throws for what is damaged. */
export function recordsIn(bytes: Buffer): SeenRecord[] {
  const records: SeenRecord[] = []
  const view = new BatchView(bytes)
  for (let position = 0; position + batchPrefixBytes <= bytes.length; position += view.sizeBytes) {
    view.moveTo(bytes, position)
    const check = checkBatch(bytes, position, bytes.length)
    if (check === 'truncated') break
    if (check !== 'ok') throw new Error(`Batch at ${position}, offset ${view.baseOffset}: ${check}`)
    for (const { offset, value } of readRecords(view, openRecordBytes(view, 64 * 1024 * 1024))) {
      records.push({ offset, value: `${value}`.trimEnd(), leaderEpoch: view.leaderEpoch })
    }
  }
  return records
}
