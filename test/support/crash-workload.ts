import { expect } from 'vitest'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis, type Codec, ErrorCode } from '../../src/protocol/index.ts'
import { readPartition } from './kafka-connection.ts'
import { initProducerId, ProduceError, produceBatch } from './producing.ts'

const codecs: readonly Codec[] = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
const maxInFlight = 5

/** Which error codes a workload meets without being wrong. */
export type ExpectedErrors = (errorCode: number) => boolean

const noErrors: ExpectedErrors = () => false

interface SentBatch {
  /** Its records are numbered from here. */
  readonly firstNumber: number
  readonly count: number
  readonly codec: Codec
}

/**
 * One producer of one partition that lives longer than the broker: after a crash it sends again, in order, what was not
 * acknowledged, as every client does. Its records carry their numbers, from 0 without a gap.
 */
export class SurvivingProducer {
  readonly topic: string
  readonly partition: number
  readonly #isIdempotent: boolean
  readonly #isExpected: ExpectedErrors
  #identity: { readonly producerId: number; readonly producerEpoch: number } | undefined
  #nextNumber = 0
  /** Oldest first. */
  readonly #unacknowledged: SentBatch[] = []
  /** Offset by record number. */
  readonly #acknowledged: number[] = []
  /** An answer that no crash explains. */
  #refusal: ProduceError | undefined

  constructor(topic: string, partition: number, isIdempotent: boolean, isExpected = noErrors) {
    this.topic = topic
    this.partition = partition
    this.#isIdempotent = isIdempotent
    this.#isExpected = isExpected
  }

  get acknowledgedCount(): number {
    return this.#acknowledged.length
  }

  /** An error that should not have come; nothing is sent after it. */
  get refusal(): string | undefined {
    return this.#refusal?.message
  }

  /** Sends until the connection ends, or an error comes. */
  async run(client: KafkaClient): Promise<void> {
    if (this.#isIdempotent) this.#identity ??= await initProducerId(client).catch(() => undefined)
    if (this.#isIdempotent && this.#identity === undefined) return
    const again = [...this.#unacknowledged]
    const inFlight: Promise<boolean>[] = []
    for (;;) {
      while (inFlight.length < maxInFlight) inFlight.push(this.#send(client, again.shift() ?? this.#nextBatch()))
      if (!(await inFlight.shift())) break
    }
    await Promise.all(inFlight)
  }

  /** Compares the partition with what was acknowledged. */
  async verify(client: KafkaClient): Promise<void> {
    expect(this.#refusal).toBeUndefined()
    const batches = await readPartition(client, this.topic, this.partition)
    const records = batches.flatMap((batch) => batch.records)
    const place = `${this.topic}-${this.partition}`
    records.forEach(({ offset }, index) => {
      if (offset !== index) throw new Error(`${place}: offset ${offset} where ${index} is expected`)
    })
    const numbers = records.map(({ value }) => Number.parseInt(`${value}`, 10))
    this.#acknowledged.forEach((offset, number) => {
      if (numbers[offset] === number) return
      throw new Error(`${place}: record ${number} was acknowledged with offset ${offset}, where ${numbers[offset]} is`)
    })
    this.#acknowledged.reduce((previous, offset) => {
      if (offset <= previous) throw new Error(`${place}: acknowledged out of order: ${offset} after ${previous}`)
      return offset
    }, -1)
    if (!this.#isIdempotent) return
    numbers.forEach((number, index) => {
      if (number !== index) throw new Error(`${place}: record ${number} where ${index} is expected`)
    })
  }

  #nextBatch(): SentBatch {
    const batch = {
      firstNumber: this.#nextNumber,
      count: 1 + (this.#nextNumber % 4),
      codec: codecs[this.#nextNumber % codecs.length] ?? 'none',
    }
    this.#nextNumber += batch.count
    this.#unacknowledged.push(batch)
    return batch
  }

  /** False when there was no answer, or one that should not be. */
  async #send(client: KafkaClient, batch: SentBatch): Promise<boolean> {
    const { firstNumber, count, codec } = batch
    const records = Array.from({ length: count }, (_, index) => ({
      timestamp: Date.now(),
      value: Buffer.from(`${firstNumber + index}`.padEnd(100, ' ')),
    }))
    const identity = this.#identity === undefined ? {} : { ...this.#identity, baseSequence: firstNumber }
    try {
      const baseOffset = await produceBatch(client, this.topic, this.partition, { records, codec, ...identity })
      this.#unacknowledged.splice(this.#unacknowledged.indexOf(batch), 1)
      for (let index = 0; index < count; index++) this.#acknowledged[firstNumber + index] = baseOffset + index
      return true
    } catch (error) {
      if (error instanceof ProduceError && !this.#isExpected(error.errorCode)) this.#refusal ??= error
      return false
    }
  }
}

/** A member of a group that commits one offset after the other, and stays in its generation over crashes of the broker. */
export class SurvivingMember {
  readonly groupId: string
  readonly #topic: string
  readonly #isExpected: ExpectedErrors
  #memberId = ''
  #generationId = -1
  #acknowledged = -1
  #sent = -1
  #refusal: number | undefined

  constructor(groupId: string, topic: string, isExpected = noErrors) {
    this.groupId = groupId
    this.#topic = topic
    this.#isExpected = isExpected
  }

  get acknowledgedOffset(): number {
    return this.#acknowledged
  }

  /** An error that should not have come; nothing is committed after it. */
  get refusal(): string | undefined {
    return this.#refusal === undefined ? undefined : `commit with error ${this.#refusal}`
  }

  async join(client: KafkaClient): Promise<void> {
    await client.request(apis.FindCoordinator, 3, { key: this.groupId, keyType: 0 })
    const join = () =>
      client.request(apis.JoinGroup, 7, {
        groupId: this.groupId,
        sessionTimeoutMs: 600_000,
        rebalanceTimeoutMs: 600_000,
        memberId: this.#memberId,
        protocolType: 'consumer',
        protocols: [{ name: 'range', metadata: Buffer.from('subscription') }],
      })
    this.#memberId = (await join()).memberId
    const { errorCode, generationId } = await join()
    expect(errorCode).toBe(ErrorCode.NONE)
    this.#generationId = generationId
    const synced = await client.request(apis.SyncGroup, 3, {
      groupId: this.groupId,
      generationId,
      memberId: this.#memberId,
      assignments: [{ memberId: this.#memberId, assignment: Buffer.from('assignment') }],
    })
    expect(synced.errorCode).toBe(ErrorCode.NONE)
  }

  /** Commits until the connection ends, or an error comes. */
  async run(client: KafkaClient): Promise<void> {
    while (client.isOpen && this.#refusal === undefined) {
      this.#sent++
      const committedOffset = this.#sent
      const partitions = [{ partitionIndex: 0, committedOffset, committedMetadata: `commit ${committedOffset}` }]
      const response = await client
        .request(apis.OffsetCommit, 7, {
          groupId: this.groupId,
          generationIdOrMemberEpoch: this.#generationId,
          memberId: this.#memberId,
          topics: [{ name: this.#topic, partitions }],
        })
        .catch(() => undefined)
      if (response === undefined) return
      const errorCode = response.topics[0]?.partitions[0]?.errorCode
      if (errorCode === ErrorCode.NONE) {
        this.#acknowledged = committedOffset
      } else if (errorCode !== undefined && this.#isExpected(errorCode)) {
        return
      } else {
        this.#refusal = errorCode
      }
    }
  }

  /** What was acknowledged is there, or what came after it and may have been stored; the member is still one. */
  async verify(client: KafkaClient): Promise<void> {
    expect(this.#refusal).toBeUndefined()
    const { topics } = await client.request(apis.OffsetFetch, 7, {
      groupId: this.groupId,
      topics: [{ name: this.#topic, partitionIndexes: [0] }],
      requireStable: true,
    })
    const { errorCode, committedOffset, metadata } = topics[0]!.partitions[0]!
    expect(errorCode).toBe(ErrorCode.NONE)
    expect(committedOffset).toBeGreaterThanOrEqual(this.#acknowledged)
    expect(committedOffset).toBeLessThanOrEqual(this.#sent)
    if (committedOffset >= 0) expect(metadata).toBe(`commit ${committedOffset}`)
    const heartbeat = await client.request(apis.Heartbeat, 3, {
      groupId: this.groupId,
      generationId: this.#generationId,
      memberId: this.#memberId,
    })
    expect(heartbeat.errorCode).toBe(ErrorCode.NONE)
  }
}
