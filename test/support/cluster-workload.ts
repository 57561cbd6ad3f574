import type { KafkaClient } from '../../src/network/index.ts'
import { apis, ErrorCode } from '../../src/protocol/index.ts'
import { until } from './condition.ts'
import { type ExpectedErrors, SurvivingMember, SurvivingProducer } from './crash-workload.ts'
import { connect } from './kafka-connection.ts'

/** What every client tries again after, in a cluster where nodes come and go. */
const retriable: ReadonlySet<number> = new Set([
  ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  ErrorCode.LEADER_NOT_AVAILABLE,
  ErrorCode.NOT_LEADER_OR_FOLLOWER,
  ErrorCode.REQUEST_TIMED_OUT,
  ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
  ErrorCode.COORDINATOR_NOT_AVAILABLE,
  ErrorCode.NOT_COORDINATOR,
  ErrorCode.NOT_ENOUGH_REPLICAS,
  ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
  ErrorCode.KAFKA_STORAGE_ERROR,
  ErrorCode.FENCED_LEADER_EPOCH,
  // Batches behind one that was refused: all are sent again, in order.
  ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
])

const isRetriable: ExpectedErrors = (errorCode) => retriable.has(errorCode)

/** How long a node may take to answer before it is taken for hung, and another is asked. */
const requestTimeoutMs = 3000
/** Where none is asked in its place. */
const patientMs = 60_000

export interface WorkloadOptions {
  /** Where nodes listen, also those that don't run. */
  readonly addresses: readonly string[]
  /** There already. */
  readonly topic: string
  readonly partitionCount: number
  readonly groupId: string
}

/** Idempotent producers with acks=all, one a partition, and a group that commits, which follow their leaders through a cluster. */
export class ClusterWorkload {
  readonly #options: WorkloadOptions
  readonly #producers: readonly SurvivingProducer[]
  readonly #member: SurvivingMember
  readonly #clients = new Set<KafkaClient>()
  #isStopping = false
  #running: Promise<unknown> = Promise.resolve()

  /** At work, each producer and the member. */
  static async start(options: WorkloadOptions): Promise<ClusterWorkload> {
    const workload = new ClusterWorkload(options)
    await workload.#start()
    await workload.untilAllProgress()
    return workload
  }

  private constructor(options: WorkloadOptions) {
    const { topic, partitionCount, groupId } = options
    this.#options = options
    this.#producers = Array.from(
      { length: partitionCount },
      (_, partition) => new SurvivingProducer(topic, partition, true, isRetriable),
    )
    this.#member = new SurvivingMember(groupId, topic, isRetriable)
  }

  /** Joins the group, and works until `stop`. */
  async #start(): Promise<void> {
    let fault: unknown
    // The node that coordinates the group may hear of it a moment after who names it.
    const join = () =>
      this.#once(
        () => this.#coordinator(),
        (client) => this.#member.join(client),
        patientMs,
      )
    const hasJoined = () =>
      join().then(
        () => true,
        (error: unknown) => {
          fault = error
          return false
        },
      )
    await until(hasJoined, 'the group has its member').catch((error: unknown) => {
      throw new Error((error as Error).message, { cause: fault })
    })
    this.#running = Promise.all([
      ...this.#producers.map((producer) =>
        this.#work(
          () => this.#leader(producer.partition),
          (client) => producer.run(client),
        ),
      ),
      this.#work(
        () => this.#coordinator(),
        (client) => this.#member.run(client),
      ),
    ])
  }

  /** Waits until everybody got an answer to what was asked after this call. */
  async untilAllProgress(): Promise<void> {
    const before = this.progress()
    // What was under way may be answered: two more are not.
    const isAhead = () => this.progress().every((count, index) => count >= before[index]! + 20)
    await until(isAhead, 'every producer and the group go on').catch((error: unknown) => {
      const refusals = [...this.#producers, this.#member]
        .map(({ refusal }) => refusal)
        .filter((each) => each !== undefined)
      const refused = refusals.length === 0 ? '' : `: ${refusals.join(', ')}`
      throw new Error(
        `${(error as Error).message}: ${before.join(' ')} before, ${this.progress().join(' ')} now${refused}`,
      )
    })
  }

  /** Records acknowledged to each producer, and the offset that the group committed. */
  progress(): number[] {
    return [...this.#producers.map(({ acknowledgedCount }) => acknowledgedCount), this.#member.acknowledgedOffset]
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    for (const client of this.#clients) client.close()
    await this.#running
  }

  /** Every acknowledged record is there once, at its offset; the group is in its generation and has its commit. */
  async verify(): Promise<void> {
    for (const producer of this.#producers) {
      await this.#once(
        () => this.#leader(producer.partition),
        (client) => producer.verify(client),
        patientMs,
      )
    }
    await this.#once(
      () => this.#coordinator(),
      (client) => this.#member.verify(client),
      patientMs,
    )
  }

  async #work(find: () => Promise<string>, run: (client: KafkaClient) => Promise<void>): Promise<void> {
    while (!this.#isStopping) {
      await this.#once(find, run).catch(() => undefined)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  async #once(
    find: () => Promise<string>,
    use: (client: KafkaClient) => Promise<void>,
    timeoutMs = requestTimeoutMs,
  ): Promise<void> {
    const client = await connect(await find(), timeoutMs)
    this.#clients.add(client)
    try {
      await use(client)
    } finally {
      this.#clients.delete(client)
      client.close()
    }
  }

  /** The node that leads the partition, as the first says that knows one. */
  #leader(partition: number): Promise<string> {
    return this.#ask(async (client) => {
      const { topics, brokers } = await client.request(apis.Metadata, 12, { topics: [{ name: this.#options.topic }] })
      const leaderId = topics[0]?.partitions.find(({ partitionIndex }) => partitionIndex === partition)?.leaderId
      const leader = brokers.find(({ nodeId }) => nodeId === leaderId)
      return leader === undefined ? undefined : `${leader.host}:${leader.port}`
    }, `leader of partition ${partition}`)
  }

  #coordinator(): Promise<string> {
    return this.#ask(async (client) => {
      const { groupId } = this.#options
      const { coordinators } = await client.request(apis.FindCoordinator, 4, { keyType: 0, coordinatorKeys: [groupId] })
      const [found] = coordinators
      return found?.errorCode === ErrorCode.NONE ? `${found.host}:${found.port}` : undefined
    }, 'coordinator')
  }

  async #ask(question: (client: KafkaClient) => Promise<string | undefined>, what: string): Promise<string> {
    let found: string | undefined
    const ask = async () => {
      for (const address of shuffled(this.#options.addresses)) {
        if (this.#isStopping && this.#clients.size > 0) break
        const client = await connect(address, 1000).catch(() => undefined)
        if (client === undefined) continue
        found = await question(client).catch(() => undefined)
        client.close()
        if (found !== undefined) return true
      }
      return false
    }
    await until(ask, what)
    return found!
  }
}

function shuffled<T>(items: readonly T[]): T[] {
  const start = Math.floor(Math.random() * items.length)
  return [...items.slice(start), ...items.slice(0, start)]
}
