import { apis, buildBatch, ErrorCode } from '../src/protocol/index.ts'
import { ClusterClient, clockMs, nodeIds, sleep, until } from './cluster.ts'

/** One success of a probe. Times are those of `clockMs`. */
export interface Success {
  /** The node that answered. */
  readonly node: number
  readonly sentMs: number
  readonly answeredMs: number
}

/** Between an answer and the next request. */
const produceGapMs = 3
const writeGapMs = 20
const retryMs = 5
/** A request that is not answered for so long makes the probe ask who leads, and how often. */
const patienceMs = 50
const lookEveryMs = 15
/** For one look, and for one change of a setting: a process that is stopped takes requests and answers none. */
const lookTimeoutMs = 500
const writeTimeoutMs = 300

/** A probe runs until it is stopped, and keeps what succeeded. */
abstract class Probe {
  readonly successes: Success[] = []
  #isStopped = false
  #running: Promise<unknown> = Promise.resolve()

  /** Resolves when it has succeeded several times; rejects when it doesn't for a minute. Either way it runs until `stop`. */
  async start(): Promise<void> {
    this.#running = this.run()
    await until(() => this.successes.length >= 20, 'a probe to succeed')
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.close()
    await this.#running
  }

  /** The first success of a request that was sent after `sinceMs`, by another node than `notBy`. */
  firstAfter(sinceMs: number, notBy: number): Success | undefined {
    return this.successes.find(({ sentMs, node }) => sentMs > sinceMs && node !== notBy)
  }

  /** Whether a request that was sent after `sinceMs` succeeded. */
  hasSuccessAfter(sinceMs: number): boolean {
    return (this.successes.at(-1)?.sentMs ?? 0) > sinceMs
  }

  /**
   * The longest time without a success that began before `untilMs` and ended after `sinceMs`. What has not ended doesn't count, so wait
   * with `hasSuccessAfter` first.
   */
  longestGapMs(sinceMs: number, untilMs: number): number {
    let longest = 0
    let lastMs: number | undefined
    for (const { answeredMs } of this.successes) {
      if (lastMs !== undefined && answeredMs > sinceMs && lastMs < untilMs)
        longest = Math.max(longest, answeredMs - lastMs)
      lastMs = answeredMs
    }
    return longest
  }

  protected get isStopped(): boolean {
    return this.#isStopped
  }

  protected abstract run(): Promise<unknown>
  protected abstract close(): void
}

/**
 * A producer that waits for nothing: acks=all, one record and one request at a time, no backoff, and when there is no answer it asks
 * every node who leads, again and again. What it sees is what a cluster can do; clients of real programs add their own
 * timeouts and backoffs.
 */
export class ProduceProbe extends Probe {
  readonly #topic: string
  readonly #partition: number
  readonly #client: ClusterClient
  readonly #lookers: ClusterClient
  readonly #looking = new Set<number>()
  readonly #batch = buildBatch({ records: [{ timestamp: Date.now(), value: Buffer.alloc(100, 1) }] }) as Buffer
  #leader: number
  #leaderEpoch = -1
  #onMoved: () => void = () => undefined

  constructor(ports: readonly number[], topic: string, partition: number, leader: number) {
    super()
    this.#topic = topic
    this.#partition = partition
    this.#leader = leader
    this.#client = new ClusterClient(ports)
    this.#lookers = new ClusterClient(ports, lookTimeoutMs)
  }

  protected override async run(): Promise<void> {
    while (!this.isStopped) {
      const node = this.#leader
      const sentMs = clockMs()
      const moved = new Promise<false>((resolve) => {
        this.#onMoved = () => resolve(false)
      })
      let looking: NodeJS.Timeout | undefined
      const waiting = setTimeout(() => {
        looking = setInterval(() => this.#look(), lookEveryMs)
      }, patienceMs)
      const isDone = await Promise.race([this.#send(node), moved])
      clearTimeout(waiting)
      clearInterval(looking)
      if (isDone) {
        this.successes.push({ node, sentMs, answeredMs: clockMs() })
        await sleep(produceGapMs)
      } else {
        if (this.#leader !== node) this.#client.drop(node)
        this.#look()
        await sleep(retryMs)
      }
    }
  }

  protected override close(): void {
    this.#onMoved()
    this.#client.close()
    this.#lookers.close()
  }

  async #send(node: number): Promise<boolean> {
    const partitionData = [{ index: this.#partition, records: [this.#batch] }]
    const topicData = [{ name: this.#topic, partitionData }]
    try {
      const body = { transactionalId: null, acks: -1, timeoutMs: 30_000, topicData }
      const { responses } = await this.#client.request(node, apis.Produce, 9, body)
      return responses[0]?.partitionResponses[0]?.errorCode === ErrorCode.NONE
    } catch {
      return false
    }
  }

  #look(): void {
    if (this.isStopped) return
    for (const id of nodeIds) {
      if (this.#looking.has(id)) continue
      this.#looking.add(id)
      this.#lookers
        .partitions(id, this.#topic)
        .then((partitions) => {
          const seen = partitions[this.#partition]
          if (seen === undefined || seen.leader < 0 || seen.leaderEpoch <= this.#leaderEpoch) return
          this.#leader = seen.leader
          this.#leaderEpoch = seen.leaderEpoch
          this.#onMoved()
        })
        .catch(() => undefined)
        .finally(() => this.#looking.delete(id))
    }
  }
}

/** Changes a setting of a topic through each of `nodes`, again and again. Whoever answers has the change: it is committed. */
export class WriteProbe extends Probe {
  readonly #topic: string
  readonly #nodes: readonly number[]
  readonly #client: ClusterClient
  #changes = 0

  constructor(ports: readonly number[], topic: string, nodes: readonly number[]) {
    super()
    this.#topic = topic
    this.#nodes = nodes
    this.#client = new ClusterClient(ports, writeTimeoutMs)
  }

  protected override async run(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => this.#runOn(node)))
  }

  protected override close(): void {
    this.#client.close()
  }

  async #runOn(node: number): Promise<void> {
    while (!this.isStopped) {
      const sentMs = clockMs()
      const value = String(1e9 + this.#changes++)
      const isDone = await changeTopic(this.#client, node, this.#topic, value).catch(() => false)
      if (isDone) this.successes.push({ node, sentMs, answeredMs: clockMs() })
      await sleep(isDone ? writeGapMs : retryMs)
    }
  }
}

/** Whether the broker says that it is done. */
export async function changeTopic(
  client: ClusterClient,
  node: number,
  topic: string,
  retentionMs: string,
): Promise<boolean> {
  const configs = [{ name: 'retention.ms', configOperation: 0, value: retentionMs }]
  const resources = [{ resourceType: 2, resourceName: topic, configs }]
  const body = { resources, validateOnly: false }
  const { responses } = await client.request(node, apis.IncrementalAlterConfigs, 1, body)
  return responses[0]?.errorCode === ErrorCode.NONE
}
