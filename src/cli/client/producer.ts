import { apis, buildBatch, type Codec, type RecordInput } from '../../protocol/index.ts'
import type { Cluster, TopicMetadata } from './cluster.ts'
import { expectNoError, RequestRefusedError, UnknownTopicError } from './errors.ts'
import { partitionOfKey } from './partitioner.ts'

export interface ProducerOptions {
  readonly topic: string
  /** -1 for all in-sync replicas. Only then the producer is idempotent, and a try again writes nothing twice. */
  readonly acks: -1 | 0 | 1
  readonly codec: Codec
}

export interface ProducedRange {
  readonly partition: number
  /** Inclusive; -1 with acks=0, which tells no offsets. */
  firstOffset: number
  /** Inclusive. */
  lastOffset: number
  records: number
}

/** A batch is closed before its records take more than this; well below the 1 MiB that brokers accept by default. */
const maxBatchBytes = 900 * 1024
/** What a record takes beside its key, value and headers, at most. */
const recordOverheadBytes = 32

/**
 * Writes records to one topic. `add` collects, `flush` sends what was collected: one batch a partition and request, and none
 * before the last was answered, so that records of a partition stay in order whatever has to be sent again.
 */
export class Producer {
  readonly #cluster: Cluster
  readonly #options: ProducerOptions
  readonly partitionCount: number
  /** By partition; the batches of one are sent one after the other. */
  readonly #pending = new Map<number, Batch[]>()
  #pendingBytes = 0
  readonly #sequences = new Map<number, number>()
  #identity = { producerId: -1, producerEpoch: -1 }
  /** Where records without a key go until the next flush: batches are larger than if each went elsewhere. */
  #keylessPartition: number
  readonly #produced = new Map<number, ProducedRange>()

  /** The topic wasn't there before. */
  readonly isTopicCreated: boolean

  /** Creates the topic when the broker does so by itself. Throws `RequestRefusedError`, `UnknownTopicError`. */
  static async open(cluster: Cluster, options: ProducerOptions): Promise<Producer> {
    const known = await knownOrCreated(cluster, options.topic)
    const producer = new Producer(cluster, options, known.topic.partitions.length, known.isCreated)
    if (options.acks === -1) await producer.#identify()
    return producer
  }

  private constructor(cluster: Cluster, options: ProducerOptions, partitionCount: number, isTopicCreated: boolean) {
    this.isTopicCreated = isTopicCreated
    this.#cluster = cluster
    this.#options = options
    this.partitionCount = partitionCount
    this.#keylessPartition = cluster.platform.random.int(partitionCount)
  }

  /** Of what waits for `flush`. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  /** What was acknowledged so far, by partition. */
  get produced(): readonly ProducedRange[] {
    return [...this.#produced.values()].sort((left, right) => left.partition - right.partition)
  }

  /** `partition` when it is given, else by the key's hash, else any. Throws `RequestRefusedError` for one that isn't there. */
  add(record: RecordInput, partition?: number): void {
    const target = partition ?? this.#choose(record.key ?? null)
    if (target >= this.partitionCount) {
      const message = `It has partitions 0 to ${this.partitionCount - 1}`
      throw new RequestRefusedError(`Partition ${target} of ${this.#options.topic}`, unknownTopicOrPartition, message)
    }
    const sizeBytes = sizeOf(record)
    const batches = this.#pending.get(target) ?? []
    this.#pending.set(target, batches)
    const last = batches.at(-1)
    if (last !== undefined && last.sizeBytes + sizeBytes <= maxBatchBytes) {
      last.records.push(record)
      last.sizeBytes += sizeBytes
    } else {
      batches.push({ records: [record], sizeBytes })
    }
    this.#pendingBytes += sizeBytes
  }

  /** Resolves once everything that was added is acknowledged. Throws `RequestRefusedError`. */
  async flush(): Promise<void> {
    const pending = [...this.#pending]
    this.#pending.clear()
    this.#pendingBytes = 0
    this.#keylessPartition = (this.#keylessPartition + 1) % this.partitionCount
    const results = await Promise.allSettled(
      pending.map(async ([partition, batches]) => {
        for (const batch of batches) await this.#sendBatch(partition, batch.records)
      }),
    )
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  #choose(key: Uint8Array | null): number {
    return key === null ? this.#keylessPartition : partitionOfKey(key, this.partitionCount)
  }

  async #identify(): Promise<void> {
    await this.#cluster.retrying(async () => {
      const connection = await this.#cluster.any()
      if (!connection.serves(apis.InitProducerId)) return
      const request = { transactionalId: null, transactionTimeoutMs: 60_000 }
      const { errorCode, producerId, producerEpoch } = await connection.call(apis.InitProducerId, request)
      expectNoError('Producer id', errorCode)
      this.#identity = { producerId, producerEpoch }
    })
  }

  async #sendBatch(partition: number, records: readonly RecordInput[]): Promise<void> {
    const { topic, acks, codec } = this.#options
    const isIdempotent = this.#identity.producerId >= 0
    const baseSequence = this.#sequences.get(partition) ?? 0
    const batch = buildBatch({ records, codec, ...(isIdempotent ? { ...this.#identity, baseSequence } : {}) })
    const partitionData = [{ index: partition, records: batch }]
    const request = { acks, timeoutMs: this.#cluster.timeoutMs, topicData: [{ name: topic, partitionData }] }
    const send = async () => {
      const connection = await this.#cluster.retrying(() => this.#cluster.leaderOf(topic, partition))
      if (acks === 0) {
        connection.send(apis.Produce, request)
        return -1
      }
      const { responses } = await connection.call(apis.Produce, request)
      const answer = responses[0]?.partitionResponses[0]
      expectNoError(`Records to ${topic}-${partition}`, answer?.errorCode ?? -1, answer?.errorMessage)
      return answer!.baseOffset
    }
    // Without a sequence, what had no answer may be there: to send it again could write it twice.
    const baseOffset = isIdempotent ? await this.#cluster.retrying(send) : await send()
    this.#sequences.set(partition, (baseSequence + records.length) % 2 ** 31)
    this.#count(partition, baseOffset, records.length)
  }

  #count(partition: number, baseOffset: number, records: number): void {
    const lastOffset = baseOffset < 0 ? -1 : baseOffset + records - 1
    const range = this.#produced.get(partition)
    if (range === undefined) {
      this.#produced.set(partition, { partition, firstOffset: baseOffset, lastOffset, records })
    } else {
      range.lastOffset = lastOffset
      range.records += records
    }
  }
}

/** Asked for first without creating it, to know which of both it was. */
async function knownOrCreated(cluster: Cluster, name: string): Promise<{ topic: TopicMetadata; isCreated: boolean }> {
  try {
    return { topic: await cluster.topic(name), isCreated: false }
  } catch (unknown) {
    if (!(unknown instanceof UnknownTopicError)) throw unknown
    try {
      return { topic: await cluster.topic(name, { create: true }), isCreated: true }
    } catch (error) {
      // The broker creates none by itself.
      const isStillUnknown = error instanceof RequestRefusedError && error.errorCode === unknownTopicOrPartition
      throw isStillUnknown ? unknown : error
    }
  }
}

interface Batch {
  readonly records: RecordInput[]
  sizeBytes: number
}

const unknownTopicOrPartition = 3

function sizeOf({ key, value, headers = [] }: RecordInput): number {
  let sizeBytes = recordOverheadBytes + (key?.length ?? 0) + (value?.length ?? 0)
  for (const header of headers) sizeBytes += 10 + header.key.length * 3 + (header.value?.length ?? 0)
  return sizeBytes
}
