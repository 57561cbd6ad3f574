import { createHistogram } from 'node:perf_hooks'
import {
  type EncodedBatch,
  encodeBatch,
  type FetchPosition,
  fetchFrame,
  produceError,
  produceFrame,
  readFetchAnswer,
} from './frames.ts'
import { RawConnection } from './raw-connection.ts'

/**
 * The load generator, a process of its own: so its work isn't measured as the broker's, and the broker's event loop isn't held up by it.
 *
 * Produce: each connection keeps `inFlight` requests on their way. A request is one batch for one partition, encoded before the clock starts and
 * sent again and again (a broker stamps its own copy); partitions take turns. Fetch: each connection has one request on its
 * way, for all its partitions. Answers are checked: any error ends the run.
 */
export interface LoadJob {
  /** Of the broker, or of the leader of each partition. */
  readonly port: number | readonly number[]
  readonly topic: string
  readonly partitions: number
  readonly produce?: ProduceLoad
  readonly fetch?: FetchLoad
  /** Not measured: compilers and caches get warm. */
  readonly warmUpMs: number
  /** Measured. Left out: until a sweep has read everything, or `maxBytes` are produced. */
  readonly measureMs?: number
}

export interface ProduceLoad {
  readonly recordBytes: number
  readonly batchBytes: number
  readonly acks: number
  /** To each broker. */
  readonly connections: number
  /** Requests on their way, for each connection. */
  readonly inFlight: number
  /** After so many bytes it ends. */
  readonly maxBytes?: number
  /** True against a server that isn't a broker. */
  readonly unchecked?: boolean
}

export interface FetchLoad {
  /** To each broker. */
  readonly connections: number
  readonly maxBytes: number
  readonly partitionMaxBytes: number
  /**
   * 'sweep': once from the start to `endOffsets`; 'loop': the same again and again; 'follow': from the start on, waiting at
   * the end for more.
   */
  readonly mode: 'sweep' | 'loop' | 'follow'
  /** By partition; exclusive. */
  readonly endOffsets: readonly number[]
  readonly unchecked?: boolean
}

/** What was done while the clock ran. Latencies are from send to answer, in milliseconds. */
export interface Measured {
  readonly seconds: number
  readonly produced: Counted
  readonly fetched: Counted
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number }
  readonly requests: number
}

export interface Counted {
  readonly bytes: number
  readonly records: number
}

/** What the generator sends to its parent: first `measuring`, then `measured`, and `done` when nothing is on its way. */
export type LoadReport =
  | { readonly type: 'measuring' }
  | { readonly type: 'measured'; readonly measured: Measured }
  /** Over the whole run, warm-up included. `acknowledged`: records by partition. */
  | { readonly type: 'done'; readonly acknowledged: readonly number[]; readonly fetched: Counted }
  | { readonly type: 'failed'; readonly message: string }

class Load {
  readonly #job: LoadJob
  readonly #latency = createHistogram()
  readonly #acknowledged: number[]
  #produced = { bytes: 0, records: 0 }
  #fetched = { bytes: 0, records: 0 }
  #requests = 0
  #isStopping = false
  #onWay = 0
  #onIdle: () => void = () => undefined

  constructor(job: LoadJob) {
    this.#job = job
    this.#acknowledged = Array.from({ length: job.partitions }, () => 0)
  }

  async run(): Promise<void> {
    const { warmUpMs, measureMs } = this.#job
    await this.#startProducing()
    await this.#startFetching()
    await sleep(warmUpMs)
    report({ type: 'measuring' })
    this.#latency.reset()
    const before = this.#counts()
    const startedMs = performance.now()
    await (measureMs === undefined ? this.#idle() : sleep(measureMs))
    const seconds = (performance.now() - startedMs) / 1000
    const after = this.#counts()
    const since = (now: Counted, then: Counted) => ({
      bytes: now.bytes - then.bytes,
      records: now.records - then.records,
    })
    report({
      type: 'measured',
      measured: {
        seconds,
        produced: since(after.produced, before.produced),
        fetched: since(after.fetched, before.fetched),
        requests: after.requests - before.requests,
        latencyMs: {
          p50: this.#latency.percentile(50) / 1000,
          p99: this.#latency.percentile(99) / 1000,
          max: this.#latency.max / 1000,
        },
      },
    })
    this.#isStopping = true
    await this.#idle()
    report({ type: 'done', acknowledged: this.#acknowledged, fetched: this.#fetched })
  }

  #counts() {
    return { produced: { ...this.#produced }, fetched: { ...this.#fetched }, requests: this.#requests }
  }

  #idle(): Promise<void> {
    if (this.#onWay === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onIdle = resolve
    })
  }

  #arrived(): void {
    this.#onWay--
    if (this.#onWay === 0) this.#onIdle()
  }

  async #startProducing(): Promise<void> {
    const { produce, topic, partitions } = this.#job
    if (produce === undefined) return
    const batch = encodeBatch(produce)
    const frames = Array.from({ length: partitions }, (_, partition) =>
      produceFrame(topic, partition, produce.acks, batch.bytes),
    )
    for (const [port, led] of this.#brokers()) await this.#produceTo(port, led, produce, batch, frames)
  }

  /** Partitions by the port of the broker that leads them. */
  #brokers(): Map<number, number[]> {
    const { port, partitions } = this.#job
    const led = new Map<number, number[]>()
    for (let partition = 0; partition < partitions; partition++) {
      const at = typeof port === 'number' ? port : port[partition]!
      led.set(at, [...(led.get(at) ?? []), partition])
    }
    return led
  }

  async #produceTo(
    port: number,
    led: readonly number[],
    produce: ProduceLoad,
    batch: EncodedBatch,
    frames: readonly Buffer[],
  ): Promise<void> {
    const { maxBytes = Number.POSITIVE_INFINITY } = produce
    let turn = 0
    for (let c = 0; c < produce.connections; c++) {
      const connection = await RawConnection.connect(port, fail)
      /** Partition and time of each request on its way, oldest first: a ring. */
      const sentTo = new Int32Array(produce.inFlight)
      const sentMs = new Float64Array(produce.inFlight)
      let first = 0
      let last = 0
      const send = (): void => {
        const partition = led[turn++ % led.length]!
        sentTo[last % produce.inFlight] = partition
        sentMs[last % produce.inFlight] = performance.now()
        last++
        this.#onWay++
        connection.send(frames[partition]!)
      }
      connection.onAnswer((answer) => {
        const error = produce.unchecked === true ? 0 : produceError(answer)
        if (error !== 0) fail(new Error(`Produce was answered with error ${error}`))
        const slot = first++ % produce.inFlight
        this.#latency.record(Math.max(1, Math.round((performance.now() - sentMs[slot]!) * 1000)))
        this.#acknowledged[sentTo[slot]!]! += batch.records
        this.#produced.bytes += batch.bytes.length
        this.#produced.records += batch.records
        this.#requests++
        if (!this.#isStopping && this.#produced.bytes < maxBytes) send()
        this.#arrived()
      })
      for (let i = 0; i < produce.inFlight; i++) send()
    }
  }

  async #startFetching(): Promise<void> {
    const { fetch, topic } = this.#job
    if (fetch === undefined) return
    for (const [port, led] of this.#brokers()) {
      for (let c = 0; c < fetch.connections; c++) {
        const connection = await RawConnection.connect(port, fail)
        const positions = led
          .filter((_, i) => i % fetch.connections === c)
          .map((partition) => ({ partition, offset: 0 }))
        if (positions.length > 0) this.#fetchOn(connection, topic, positions, fetch)
      }
    }
  }

  #fetchOn(connection: RawConnection, topic: string, all: readonly FetchPosition[], load: FetchLoad): void {
    let positions = all
    let sentMs = 0
    const send = (): void => {
      sentMs = performance.now()
      this.#onWay++
      connection.send(fetchFrame(topic, positions, { ...load, maxWaitMs: 100 }))
    }
    const isLeft = ({ partition, offset }: FetchPosition) => offset < (load.endOffsets[partition] ?? 0)
    connection.onAnswer((answer) => {
      if (load.unchecked === true) this.#fetched.bytes += answer.length
      else this.#take(answer, positions)
      if (this.#job.produce === undefined)
        this.#latency.record(Math.max(1, Math.round((performance.now() - sentMs) * 1000)))
      this.#requests++
      let isDone = this.#isStopping
      if (load.unchecked !== true && load.mode !== 'follow') {
        positions = positions.filter(isLeft)
        if (positions.length === 0 && load.mode === 'loop') {
          positions = all
          for (const position of all) position.offset = 0
        }
        isDone ||= positions.length === 0
      }
      if (!isDone) send()
      this.#arrived()
    })
    send()
  }

  #take(answer: Buffer, positions: readonly FetchPosition[]): void {
    const fetched = readFetchAnswer(answer, positions)
    this.#fetched.bytes += fetched.bytes
    this.#fetched.records += fetched.records
  }
}

function report(message: LoadReport): void {
  process.send!(message)
}

function fail(error: Error): void {
  process.send!({ type: 'failed', message: error.message } satisfies LoadReport, () => process.exit(1))
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

process.once('message', (job: LoadJob) => {
  new Load(job).run().then(
    () => process.disconnect(),
    (error: Error) => fail(error),
  )
})
process.once('disconnect', () => process.exit())
