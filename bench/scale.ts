import { connect, type Socket } from 'node:net'
import { KafkaClient } from '../src/network/index.ts'
import { createRealPlatform } from '../src/platform/index.ts'
import { apis } from '../src/protocol/index.ts'
import { encodeBatch, fetchFrame } from './frames.ts'
import { megabyte } from './machine.ts'
import { createTopic, type ForkedBroker, runLoad, startRookery } from './processes.ts'
import { figure, Table } from './table.ts'

/**
 * scale: what many partitions and many connections cost one node.
 *
 * Partitions: 5,000 in five topics (`--full`: and 20,000) are created, lie idle, see load on one topic beside them, get one record each, are
 * found again by a start after a clean stop and after kill -9, and are deleted. Connections: 2,000 lie idle, then wait in a fetch for records
 * that do not come, then read slowly what is there. Then they go, and the memory should too.
 *
 * Numbers: seconds of the whole step; the event loop's p99 and its longest delay during it (what a client beside it may see); processor
 * time while nothing is asked; resident memory, and what one partition or connection adds to it. To compare: with the same
 * machine in the same minute, and the loop's delay with the row `idle`, which is the machine's own.
 */
export interface ScaleOptions {
  readonly directory: string
  readonly isFull: boolean
  readonly seconds: number
  readonly rows: string | undefined
  readonly profileDirectory: string | undefined
}

const topics = 5
const connections = 2000
/** Connections that are opened, or closed, at a time. */
const openedAtATime = 200
const recordShape = { recordBytes: 100, batchBytes: 1024 }

export async function scale(options: ScaleOptions): Promise<void> {
  const table = new Table([
    { heading: 'step', width: 58, left: true },
    { heading: 'seconds', width: 8 },
    { heading: 'loop p99', width: 8 },
    { heading: 'loop max', width: 8 },
    { heading: 'CPU %', width: 6 },
    { heading: 'MB', width: 6 },
    { heading: 'each KB', width: 8 },
  ])
  table.head()
  const isWanted = (name: string) => options.rows === undefined || name.includes(options.rows)
  for (const count of options.isFull ? [5000, 20_000] : [5000]) {
    if (isWanted('partitions')) await new Steps(options, table, count).partitions()
  }
  if (isWanted('connections')) await new Steps(options, table, connections).connections()
}

class Steps {
  readonly #options: ScaleOptions
  readonly #table: Table
  readonly #count: number
  readonly #directory: string
  #broker: ForkedBroker | undefined
  #emptyBytes = 0

  constructor(options: ScaleOptions, table: Table, count: number) {
    this.#options = options
    this.#table = table
    this.#count = count
    this.#directory = `${options.directory}/scale-${count}`
  }

  get #running(): ForkedBroker {
    if (this.#broker === undefined) throw new Error('No broker runs')
    return this.#broker
  }

  async partitions(): Promise<void> {
    const count = this.#count.toLocaleString('en-US')
    const perTopic = this.#count / topics
    await this.#start('start, empty')
    await this.#idle('idle, empty')
    const names = Array.from({ length: topics }, (_, i) => `topic-${i}`)
    await this.#step(`create ${count} partitions in ${topics} topics`, async () => {
      for (const name of names) await createTopic(this.#running.port, name, perTopic, {})
    })
    await this.#idle(`idle, ${count} partitions`)
    await createTopic(this.#running.port, 'busy', 4, {})
    await this.#load('load on 4 partitions beside them, acks=-1')
    await this.#step(`first record of each of ${count}`, async () => {
      for (const topic of names) await this.#oneRecordEach(topic, perTopic)
    })
    await this.#load('load on 4 partitions beside them, which have files now')
    await this.#idle(`idle, ${count} partitions with records`)
    await this.#step(`one more record of each of ${count}`, async () => {
      for (const topic of names) await this.#oneRecordEach(topic, perTopic)
    })
    await this.#stop()
    await this.#start(`start after a clean stop, ${count} partitions`)
    await this.#running.kill()
    await this.#start(`start after kill -9, ${count} partitions`)
    await this.#step(`delete ${count} partitions`, () => this.#deleteTopics(names))
    await this.#stop()
  }

  async connections(): Promise<void> {
    const count = this.#count.toLocaleString('en-US')
    await this.#start('start')
    await createTopic(this.#running.port, 'bench', 1, {})
    await this.#oneRecordEach('bench', 1, 2 * megabyte)
    await this.#idle('idle, no connections', true)
    const sockets: Socket[] = []
    await this.#step(`${count} connections open at once`, async () => {
      for (let i = 0; i < this.#count; i += openedAtATime) {
        sockets.push(...(await Promise.all(Array.from({ length: openedAtATime }, () => this.#open()))))
      }
    })
    await this.#idle(`${count} connections idle`)
    await createTopic(this.#running.port, 'busy', 4, {})
    await this.#load(`load on 4 partitions beside ${count} idle ones`)
    const empty = [{ partition: 3, offset: 0 }]
    await createTopic(this.#running.port, 'empty', 4, {})
    for (const socket of sockets) {
      socket.write(fetchFrame('empty', empty, { maxBytes: 1e6, partitionMaxBytes: 1e6, maxWaitMs: 30_000 }))
    }
    await this.#idle(`${count} connections wait in a fetch`)
    await this.#load(`load on 4 partitions beside ${count} waiting ones`)
    for (const socket of sockets) socket.destroy()
    const slow: Socket[] = []
    await this.#step(`${count} connections ask for 1 MB each, and read 64 KB/s`, async () => {
      for (let i = 0; i < this.#count; i += openedAtATime) {
        slow.push(...(await Promise.all(Array.from({ length: openedAtATime }, () => this.#open()))))
      }
      const limits = { maxBytes: 1e6, partitionMaxBytes: 1e6, maxWaitMs: 0 }
      for (const socket of slow) socket.pause().write(fetchFrame('bench', [{ partition: 0, offset: 0 }], limits))
      const untilMs = performance.now() + this.#options.seconds * 1000
      while (performance.now() < untilMs) {
        for (const socket of slow) socket.read(6400)
        await sleep(100)
      }
    })
    await this.#load(`load on 4 partitions beside these`)
    for (const socket of slow) socket.destroy()
    await sleep(500)
    await this.#idle('idle, when they are gone')
    // Memory that nobody holds goes back when garbage is collected, which takes some work.
    await this.#load('load on 4 partitions when they are gone')
    await this.#idle('idle after that')
    await this.#stop()
  }

  async #start(what: string): Promise<void> {
    const beganMs = performance.now()
    this.#broker = await startRookery(this.#options.profileDirectory)(this.#directory)
    const seconds = (performance.now() - beganMs) / 1000
    const { rssBytes, cpuSeconds } = await this.#broker.end()
    this.#table.row([what, figure(seconds), '', '', figure((cpuSeconds / seconds) * 100), figure(rssBytes / megabyte)])
  }

  async #stop(): Promise<void> {
    const beganMs = performance.now()
    await this.#running.stop()
    this.#table.row(['stop', figure((performance.now() - beganMs) / 1000)])
  }

  async #idle(what: string, isBase = false): Promise<void> {
    await sleep(500)
    await this.#step(what, () => sleep(this.#options.seconds * 1000))
    if (!isBase && this.#emptyBytes > 0) return
    await this.#running.begin()
    this.#emptyBytes = (await this.#running.end()).rssBytes
  }

  async #step(what: string, work: () => Promise<void>): Promise<void> {
    await this.#running.begin()
    const beganMs = performance.now()
    await work()
    const seconds = (performance.now() - beganMs) / 1000
    const usage = await this.#running.end()
    const { loopDelayP99Ms = Number.NaN, loopDelayMaxMs = Number.NaN, cpuSeconds, rssBytes } = usage
    const eachKb = this.#emptyBytes === 0 ? Number.NaN : (rssBytes - this.#emptyBytes) / 1000 / this.#count
    this.#table.row([
      what,
      figure(seconds),
      figure(loopDelayP99Ms),
      figure(loopDelayMaxMs),
      figure((cpuSeconds / seconds) * 100),
      figure(rssBytes / megabyte),
      figure(eachKb),
    ])
  }

  async #load(what: string): Promise<void> {
    const produce = { recordBytes: 100, batchBytes: 16 * 1024, acks: -1, connections: 2, inFlight: 5 }
    const job = { port: this.#running.port, topic: 'busy', partitions: 4, produce, warmUpMs: 500 }
    const { measured, usage } = await runLoad({ ...job, measureMs: this.#options.seconds * 1000 }, this.#running)
    this.#table.row([
      `${what}: ${figure(measured.produced.bytes / megabyte / measured.seconds)} MB/s, p99 ${figure(measured.latencyMs.p99)} ms`,
      figure(measured.seconds),
      figure(usage?.loopDelayP99Ms ?? Number.NaN),
      figure(usage?.loopDelayMaxMs ?? Number.NaN),
    ])
  }

  /** `bytes`: more than one batch for each, until so many are there. */
  async #oneRecordEach(topic: string, partitions: number, bytes?: number): Promise<void> {
    const maxBytes = bytes ?? partitions * encodeBatch(recordShape).bytes.length
    const produce = { ...recordShape, acks: -1, connections: 4, inFlight: 5, maxBytes }
    await runLoad({ port: this.#running.port, topic, partitions, produce, warmUpMs: 0 })
  }

  /** Until the broker has no logs of theirs any more. */
  async #deleteTopics(names: readonly string[]): Promise<void> {
    const platform = createRealPlatform()
    const client = await KafkaClient.connect({
      platform,
      host: '127.0.0.1',
      port: this.#running.port,
      clientId: 'bench',
      timeoutMs: 60_000,
    })
    await client.request(apis.DeleteTopics, 5, { topicNames: [...names], timeoutMs: 60_000 })
    for (;;) {
      const { results } = await client.request(apis.DescribeLogDirs, 4, { topics: null })
      const left = results.flatMap((result) => result.topics).filter(({ name }) => names.includes(name))
      if (left.length === 0) break
      await sleep(50)
    }
    client.close()
  }

  #open(): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port: this.#running.port })
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        socket.on('error', () => undefined)
        resolve(socket)
      })
    })
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
