import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../base/index.ts'
import type { Codec } from '../../protocol/index.ts'
import { Producer } from '../client/producer.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { type DataFormat, parseData } from '../data-format.ts'
import { endSignals, UsageError } from '../exit.ts'
import { LineSplitter } from '../lines.ts'
import { counted, note, Progress, show } from '../output.ts'
import { type LineFormat, type LineRecord, parseHeader, parseJsonLine, parseTextLine } from '../record-text.ts'

export interface ProduceOptions extends ClusterCommandOptions {
  readonly file?: string
  readonly key?: string
  readonly keySeparator?: string
  readonly keyFormat: DataFormat
  readonly valueFormat: DataFormat
  /** What stands for null. */
  readonly null?: string
  readonly header?: readonly string[]
  readonly partition?: number
  readonly max?: number
  /** Records in a second. */
  readonly rate?: number
  readonly compression: Codec
  readonly acks: 'all' | '1' | '0'
}

/** So much is collected before it is sent, when it comes at once. */
const flushBytes = 1024 * 1024

export async function produce(topic: string, options: ProduceOptions): Promise<void> {
  checkOptions(options)
  const headers = (options.header ?? []).map(parseHeader)
  const key = options.key === undefined ? null : parseData(Buffer.from(options.key), options.keyFormat, '--key')
  const input = await openInput(options.file)
  await withCluster(options, async (cluster) => {
    const acks = options.acks === 'all' ? -1 : (Number(options.acks) as 0 | 1)
    const producer = await Producer.open(cluster, { topic, acks, codec: options.compression })
    if (producer.isTopicCreated) {
      note(`Topic ${topic} was created with ${counted(producer.partitionCount, 'partition')}`)
    }
    const now = () => cluster.platform.clock.now()
    const { keySeparator, keyFormat, valueFormat, null: nullText } = options
    const format: LineFormat = { keySeparator, key, keyFormat, valueFormat, nullText, headers, now }
    const read = options.json === true ? parseJsonLine : parseTextLine
    if (input.stream === process.stdin && process.stdin.isTTY)
      note(`Each line becomes a record of ${topic}; Ctrl-D ends`)
    const lines = new LineProducer(input, producer, options, (line, place) => {
      const { record, partition } = read(line, place, format)
      return { record, partition: options.partition ?? partition }
    })
    // What was read is sent and told; a second signal meets no handler and ends the process.
    const stop = () => {
      cluster.stopWaiting()
      lines.stop()
    }
    for (const signal of endSignals) process.once(signal, stop)
    let failure: unknown
    try {
      await lines.run()
    } catch (error) {
      failure = error
    } finally {
      for (const signal of endSignals) process.off(signal, stop)
    }
    // Also when something failed: what was acknowledged is there.
    await report(topic, options, producer)
    if (failure !== undefined) throw failure
  })
}

function checkOptions({ json, keySeparator, key, keyFormat, valueFormat, null: nullText }: ProduceOptions): void {
  if (keySeparator === '') throw new UsageError('--key-separator: allowed is a text that is not empty')
  if (keySeparator !== undefined && key !== undefined) {
    throw new UsageError('--key contradicts --key-separator: each line has a key of its own')
  }
  if (json !== true) return
  if (keySeparator !== undefined) {
    throw new UsageError('--key-separator is for lines of text; with --json the key is a field')
  }
  if (nullText !== undefined) throw new UsageError('--null is for lines of text; JSON has a null')
  if (valueFormat !== 'text' || (keyFormat !== 'text' && key === undefined)) {
    throw new UsageError('--key-format and --value-format are for lines of text; JSON has keyBase64 and valueBase64')
  }
}

interface Input {
  readonly stream: NodeJS.ReadableStream & AsyncIterable<Buffer | string> & { destroy(): unknown }
  readonly name: string
}

async function openInput(file: string | undefined): Promise<Input> {
  if (file === undefined) return { stream: process.stdin, name: 'Line' }
  if ((await stat(file).catch(() => undefined))?.isDirectory() === true) {
    throw new UsageError(`--file ${file}: a folder; allowed is a file of lines`)
  }
  const stream = createReadStream(file, { highWaterMark: flushBytes })
  await new Promise<void>((resolve, reject) => {
    stream.once('open', () => resolve())
    stream.once('error', (error) => reject(new UsageError(`Cannot read ${file}: ${messageOf(error)}`)))
  })
  return { stream, name: `${file} line` }
}

/** Makes records of lines. What came in one chunk is sent before the next is read, so that a line that was typed goes out at once. */
class LineProducer {
  readonly #input: Input
  readonly #producer: Producer
  readonly #options: Pick<ProduceOptions, 'max' | 'rate'>
  readonly #parse: (line: Buffer, place: string) => LineRecord
  readonly #progress = new Progress()
  readonly #startMs = performance.now()
  /** Lines that became records. */
  #count = 0
  #isStopped = false

  constructor(
    input: Input,
    producer: Producer,
    options: Pick<ProduceOptions, 'max' | 'rate'>,
    parse: (line: Buffer, place: string) => LineRecord,
  ) {
    this.#input = input
    this.#producer = producer
    this.#options = options
    this.#parse = parse
  }

  /** Until the input ends, enough lines were read, or `stop`. Throws `UsageError` for a line that can't be used. */
  async run(): Promise<void> {
    const splitter = new LineSplitter()
    try {
      for await (const chunk of this.#input.stream) {
        for (const line of splitter.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)) {
          await this.#add(line)
          if (this.#isStopped) return
        }
        await this.#producer.flush()
      }
      const last = splitter.end()
      if (last !== undefined) await this.#add(last)
    } catch (error) {
      // A stream that `stop` closed says that it ended early.
      if (!this.#isStopped) throw error
    } finally {
      this.#progress.clear()
      // Lines before one that can't be used were good.
      await this.#producer.flush()
      this.#input.stream.destroy()
    }
  }

  stop(): void {
    this.#isStopped = true
    this.#input.stream.destroy()
  }

  async #add(line: Buffer): Promise<void> {
    const { max = Number.POSITIVE_INFINITY, rate } = this.#options
    if (rate !== undefined) await this.#pace(rate)
    if (this.#isStopped) return
    const { record, partition } = this.#parse(line, `${this.#input.name} ${this.#count + 1}`)
    this.#producer.add(record, partition)
    this.#count++
    if (this.#count >= max) this.#isStopped = true
    if (this.#producer.pendingBytes >= flushBytes) await this.#producer.flush()
    if (this.#input.stream !== process.stdin || !process.stdin.isTTY) {
      this.#progress.show(() => `${counted(this.#count, 'record')} sent`)
    }
  }

  /** Waits until it is the next record's turn; what waits meanwhile is sent. */
  async #pace(rate: number): Promise<void> {
    const dueMs = this.#startMs + (this.#count / rate) * 1000
    if (performance.now() >= dueMs) return
    await this.#producer.flush()
    for (;;) {
      const leftMs = dueMs - performance.now() // once: it may be over a moment later
      if (this.#isStopped || leftMs <= 0) return
      await sleep(Math.min(200, leftMs))
    }
  }
}

async function report(topic: string, options: ProduceOptions, producer: Producer): Promise<void> {
  const partitions = producer.produced
  const records = partitions.reduce((sum, range) => sum + range.records, 0)
  const result = { topic, records, partitions }
  if (options.json === true) await show(options, result, () => '')
  else note(`${counted(records, 'record')} written to ${topic}`)
}
