import type { KafkaClient } from '../../../src/network/index.ts'
import { apis, type BatchOptions, BatchView, buildBatch, ErrorCode } from '../../../src/protocol/index.ts'
import { PropertyViolation } from '../checkers/checker.ts'
import { Client } from './client.ts'
import { keyOf, type SentBatch, type SimulatedTopic } from './history.ts'
import type { ProducerPlan } from './scenario.ts'
import type { ClientWorld, Subject } from './world.ts'

/**
 * Errors that promise that a batch is not in the log and won't be. All others, as no answer at all, leave it open: the batch
 * may have been appended before the disk failed, the time was up or the leader changed.
 */
const definiteRefusals: ReadonlySet<number> = new Set([
  ErrorCode.CORRUPT_MESSAGE,
  ErrorCode.INVALID_RECORD,
  ErrorCode.MESSAGE_TOO_LARGE,
  ErrorCode.RECORD_LIST_TOO_LARGE,
  ErrorCode.INVALID_TIMESTAMP,
  ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
  ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
  ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  ErrorCode.NOT_ENOUGH_REPLICAS,
  ErrorCode.FENCED_LEADER_EPOCH,
  ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
  ErrorCode.INVALID_PRODUCER_EPOCH,
])
const badForms = ['checksum', 'two batches', 'too large', 'control', 'magic'] as const

/** Milliseconds that the node may wait for a sync. */
const produceTimeoutMs = 3000

interface Outgoing {
  readonly batch: SentBatch
  readonly bytes: Buffer
  isAcked: boolean
}

/** What a producer sends to one partition. */
interface Lane {
  readonly subject: Subject
  readonly topic: SimulatedTopic
  readonly partition: number
  readonly name: string
  /** -1: not idempotent, or not known yet. */
  producerId: number
  producerEpoch: number
  /** The next batch's. */
  baseSequence: number
  sentCount: number
  /** The log has a batch of this producer id. */
  isKnown: boolean
  /** Batches whose outcome is unknown, oldest first: an idempotent producer sends them again. */
  open: Outgoing[]
}

/**
 * Sends batches to every partition of its topics, several at once, all over one connection. An idempotent one sends again what
 * was not acknowledged, in order, until it is, and sometimes sends a batch twice for no reason; any other sends each batch
 * once, and sometimes one that the broker must refuse.
 */
export class Producer {
  readonly #client: Client
  /** Where batches are sent a second time: answers of two connections come in any order. */
  readonly #secondClient: Client
  readonly #plan: ProducerPlan
  readonly #lanes: Lane[]

  constructor(world: ClientWorld, name: string, plan: ProducerPlan, topics: readonly SimulatedTopic[]) {
    this.#client = new Client(world, name, plan.patienceMs)
    this.#secondClient = new Client(world, `${name}-again`, plan.patienceMs, name)
    this.#plan = plan
    this.#lanes = topics.flatMap((topic) =>
      Array.from({ length: topic.partitionCount }, (_, partition) => ({
        subject: { topic: topic.name, partition },
        topic,
        partition,
        name: `${name}.${topic.name}-${partition}`,
        producerId: -1,
        producerEpoch: -1,
        baseSequence: 0,
        sentCount: 0,
        isKnown: false,
        open: [],
      })),
    )
  }

  /** Resolves when it has nothing left to do in a run that ends. */
  async run(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => this.#runLane(lane)))
  }

  /** One window to each partition, without a second attempt. */
  async sendOnce(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => this.#sendWindow(lane)))
  }

  async #runLane(lane: Lane): Promise<void> {
    const { world } = this.#client
    while (!world.isDraining || lane.open.length > 0) {
      await this.#client.think(this.#plan.thinkMs)
      if (this.#plan.isIdempotent) {
        if (lane.producerId < 0 && !(await this.#takeProducerId(lane))) continue
        const connection = await this.#client.connection(lane.subject)
        while (!world.isDraining && this.#mayBegin(lane)) lane.open.push(this.#nextBatch(lane, connection))
        await this.#sendOpen(lane, connection)
      } else if (!world.isDraining) {
        await this.#sendWindow(lane)
      }
    }
  }

  /**
   * The node knows the last five batches of a producer again: none goes out before the fifth before it was acknowledged. The
   * first goes alone: a log that doesn't know the producer would take the second for the first, too.
   */
  #mayBegin({ open, sentCount, isKnown }: Lane): boolean {
    if (!isKnown && open.length > 0) return false
    const first = open[0]?.batch.sequence ?? sentCount
    return sentCount - first < this.#plan.window
  }

  async #sendWindow(lane: Lane): Promise<void> {
    const connection = await this.#client.connection(lane.subject)
    const sent = Array.from({ length: this.#plan.window }, () => this.#nextBatch(lane, connection))
    await Promise.all(sent.map((outgoing) => this.#send(this.#client, connection, lane, outgoing)))
  }

  async #takeProducerId(lane: Lane): Promise<boolean> {
    const answer = await this.#client.request(apis.InitProducerId, 4, {
      transactionalId: null,
      transactionTimeoutMs: 60_000,
    })
    if (answer === undefined || answer.errorCode !== ErrorCode.NONE) return false
    const { producerId, producerEpoch } = answer
    this.#client.world.history.add({ kind: 'producer-id', producerId, producerEpoch })
    lane.producerId = producerId
    lane.producerEpoch = producerEpoch
    lane.baseSequence = 0
    lane.isKnown = false
    return true
  }

  /** Sends all that is open, at once and in order, and keeps what is still not acknowledged. */
  async #sendOpen(lane: Lane, connection: KafkaClient): Promise<void> {
    const attempts = lane.open.map((outgoing) => {
      const first = this.#send(this.#client, connection, lane, outgoing)
      if (!this.#client.chance(this.#plan.mischief)) return first
      // To a log that doesn't know the producer any sequence is the first one: a copy must not come before all else.
      const again =
        !lane.isKnown || this.#client.chance(0.3)
          ? this.#send(this.#client, connection, lane, outgoing, true)
          : this.#secondClient
              .connection(lane.subject)
              .then((second) => this.#send(this.#secondClient, second, lane, outgoing, true))
      return Promise.all([first, again]).then(([code, codeAgain]) => code ?? codeAgain)
    })
    const [firstCode] = await Promise.all(attempts)
    const wasFirstOpen = lane.open[0]?.isAcked === false
    if (lane.open.some(({ isAcked }) => isAcked)) lane.isKnown = true
    lane.open = lane.open.filter(({ isAcked }) => !isAcked)
    if (wasFirstOpen && firstCode === ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER) {
      if (lane.topic.isDurable) {
        const message = `${lane.name} sends the batch after its last acknowledged one, and it is out of order`
        this.#client.world.history.fail(new PropertyViolation('idempotent producers go on', message))
      }
      // A power loss took the batch before: as clients do, begin anew, with what was sent open for ever.
      lane.open = []
      lane.producerId = -1
    }
  }

  /** Answers the error code; undefined when there was no answer. */
  async #send(
    client: Client,
    connection: KafkaClient,
    { subject }: Lane,
    outgoing: Outgoing,
    isCopy = false,
  ): Promise<number | undefined> {
    const { batch, bytes } = outgoing
    const { history } = client.world
    const sentAt = history.now
    const answer = await client.requestOn(connection, apis.Produce, 9, {
      transactionalId: null,
      acks: batch.acks,
      timeoutMs: produceTimeoutMs,
      topicData: [{ name: batch.topic.name, partitionData: [{ index: batch.partition, records: bytes }] }],
    })
    const partition = answer?.responses[0]?.partitionResponses[0]
    if (partition?.errorCode !== ErrorCode.NONE) client.onRefused(subject)
    if (partition === undefined) return undefined
    const { errorCode, baseOffset } = partition
    if (errorCode === ErrorCode.NONE) {
      if (!outgoing.isAcked) history.add({ kind: 'batch-acked', batch, baseOffset, sentAt, isOvertaking: isCopy })
      outgoing.isAcked = true
    } else if (!batch.isIdempotent && definiteRefusals.has(errorCode)) {
      history.add({ kind: 'batch-refused', batch, errorCode })
    }
    return errorCode
  }

  #nextBatch(lane: Lane, connection: KafkaClient): Outgoing {
    const { random, clock } = this.#client.platform
    const { isIdempotent, maxRecords, maxRecordBytes, acks, codec, mischief } = this.#plan
    const sequence = lane.sentCount++
    const count = 1 + random.int(maxRecords)
    const values = Array.from({ length: count }, (_, i) =>
      `${lane.name}#${sequence}:${i}/`.padEnd(random.int(maxRecordBytes), '.'),
    )
    const options: BatchOptions = {
      records: values.map((value) => ({
        timestamp: clock.now(),
        key: lane.topic.isCompacted ? Buffer.from(keyOf(value)) : null,
        value: Buffer.from(value),
      })),
      codec,
      ...(isIdempotent
        ? { producerId: lane.producerId, producerEpoch: lane.producerEpoch, baseSequence: lane.baseSequence }
        : {}),
    }
    lane.baseSequence += count
    const isBad = !isIdempotent && this.#client.chance(mischief / 2)
    const bytes = isBad ? badBatch(options, badForms[random.int(badForms.length)]!) : buildBatch(options)
    const batch: SentBatch = {
      topic: lane.topic,
      partition: lane.partition,
      values,
      order: isIdempotent
        ? `${lane.name} with id ${lane.producerId}`
        : `${lane.name} on connection ${this.#client.numberOf(connection)}`,
      sequence,
      isIdempotent,
      acks,
      isBad,
    }
    this.#client.world.history.add({ kind: 'batch-sent', batch })
    return { batch, bytes, isAcked: false }
  }
}

function badBatch(options: BatchOptions, form: (typeof badForms)[number]): Buffer {
  switch (form) {
    case 'checksum': {
      const bytes = buildBatch(options)
      bytes[bytes.length - 1]! ^= 0x40
      return bytes
    }
    case 'two batches':
      return Buffer.concat([buildBatch(options), buildBatch(options)])
    case 'too large': {
      const ballast = { timestamp: options.records[0]!.timestamp, value: Buffer.alloc(17_000, 'x') }
      return buildBatch({ ...options, codec: 'none', records: [...options.records, ballast] })
    }
    case 'control':
      return buildBatch({ ...options, control: true })
    case 'magic': {
      const bytes = buildBatch(options)
      bytes[16] = 1
      new BatchView(bytes).stampMaxTimestamp(options.records[0]!.timestamp)
      return bytes
    }
  }
}
