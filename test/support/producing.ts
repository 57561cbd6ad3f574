import type { KafkaClient } from '../../src/network/index.ts'
import { apis, type BatchOptions, buildBatch, ErrorCode } from '../../src/protocol/index.ts'

/** Appends one batch, with acks=-1 unless told otherwise; resolves with its base offset. Throws `ProduceError` for an error code. */
export async function produceBatch(
  client: KafkaClient,
  topic: string,
  partition: number,
  batch: BatchOptions,
  acks: -1 | 1 = -1,
): Promise<number> {
  const { responses } = await client.request(apis.Produce, 9, {
    acks,
    timeoutMs: 30_000,
    topicData: [{ name: topic, partitionData: [{ index: partition, records: buildBatch(batch) }] }],
  })
  const answer = responses[0]?.partitionResponses[0]
  if (answer === undefined) throw new Error(`No answer for ${topic}-${partition}`)
  if (answer.errorCode !== ErrorCode.NONE) throw new ProduceError(answer.errorCode, answer.errorMessage)
  return answer.baseOffset
}

export class ProduceError extends Error {
  readonly errorCode: number

  constructor(errorCode: number, message: string | null) {
    super(`Produce failed with ${errorCode}: ${message}`)
    this.errorCode = errorCode
  }
}

/** A producer id of its own, as an idempotent producer gets it. */
export async function initProducerId(client: KafkaClient): Promise<{ producerId: number; producerEpoch: number }> {
  const { errorCode, producerId, producerEpoch } = await client.request(apis.InitProducerId, 4, {
    transactionalId: null,
    transactionTimeoutMs: 60_000,
  })
  if (errorCode !== ErrorCode.NONE) throw new Error(`No producer id: error ${errorCode}`)
  return { producerId, producerEpoch }
}
