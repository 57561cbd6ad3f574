import { KafkaClient } from '../../src/network/index.ts'
import { createRealPlatform } from '../../src/platform/index.ts'
import {
  apis,
  BatchView,
  batchPrefixBytes,
  type Codec,
  checkBatch,
  codecById,
  type KafkaRecord,
  openRecordBytes,
  readRecords,
} from '../../src/protocol/index.ts'

const platform = createRealPlatform()

/** A raw connection to `127.0.0.1:9092`. */
export function connect(address: string, timeoutMs = 30_000): Promise<KafkaClient> {
  const [host = '', port] = address.split(/:(\d+)$/)
  return KafkaClient.connect({ platform, host, port: Number(port), clientId: 'test', timeoutMs })
}

/** A batch as it lies in the log. */
export interface StoredBatch {
  readonly baseOffset: number
  readonly codec: Codec
  readonly leaderEpoch: number
  readonly producerId: number
  readonly producerEpoch: number
  readonly baseSequence: number
  readonly sizeBytes: number
  readonly records: readonly KafkaRecord[]
}

/** All batches of a partition from `fromOffset` to its high watermark; CRCs are checked. */
export async function readPartition(
  client: KafkaClient,
  topic: string,
  partition: number,
  fromOffset = 0,
): Promise<StoredBatch[]> {
  const batches: StoredBatch[] = []
  let fetchOffset = fromOffset
  for (;;) {
    const ask = { partition, fetchOffset, partitionMaxBytes: 4 * 1024 * 1024 }
    const response = await client.request(apis.Fetch, 12, {
      maxWaitMs: 0,
      minBytes: 0,
      topics: [{ topic, partitions: [ask] }],
      forgottenTopicsData: [],
      rackId: '',
    })
    const answer = response.responses[0]?.partitions[0]
    if (answer === undefined || answer.errorCode !== 0) {
      throw new Error(`Cannot read ${topic}-${partition} at ${fetchOffset}: error ${answer?.errorCode}`)
    }
    const found = batchesIn(answer.records ?? Buffer.alloc(0))
    batches.push(...found)
    const last = found.at(-1)
    if (last === undefined) {
      if (fetchOffset < answer.highWatermark) throw new Error(`Nothing of ${topic}-${partition} at ${fetchOffset}`)
      return batches
    }
    fetchOffset = last.baseOffset + last.records.length
  }
}

function batchesIn(bytes: Buffer): StoredBatch[] {
  const batches: StoredBatch[] = []
  const view = new BatchView(bytes)
  for (let position = 0; position + batchPrefixBytes <= bytes.length; position += view.sizeBytes) {
    view.moveTo(bytes, position)
    const check = checkBatch(bytes, position, bytes.length)
    if (check === 'truncated') break
    if (check !== 'ok') throw new Error(`Batch at ${position}, offset ${view.baseOffset}: ${check}`)
    batches.push({
      baseOffset: view.baseOffset,
      codec: codecById(view.codecId) ?? 'none',
      leaderEpoch: view.leaderEpoch,
      producerId: view.producerId,
      producerEpoch: view.producerEpoch,
      baseSequence: view.baseSequence,
      sizeBytes: view.sizeBytes,
      records: [...readRecords(view, openRecordBytes(view, 64 * 1024 * 1024))],
    })
  }
  return batches
}
