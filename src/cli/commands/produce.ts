import { createReadStream } from 'node:fs'
import { messageOf } from '../../base/index.ts'
import type { Codec } from '../../protocol/index.ts'
import { Producer } from '../client/producer.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { UsageError } from '../exit.ts'
import { LineSplitter } from '../lines.ts'
import { counted, note, show } from '../output.ts'
import { type LineFormat, type LineRecord, parseHeader, parseJsonLine, parseTextLine } from '../record-text.ts'

export interface ProduceOptions extends ClusterCommandOptions {
  readonly file?: string
  readonly keySeparator?: string
  readonly header?: readonly string[]
  readonly partition?: number
  readonly compression: Codec
  readonly acks: 'all' | '1' | '0'
}

/** So much is collected before it is sent, when it comes at once. */
const flushBytes = 1024 * 1024

export async function produce(topic: string, options: ProduceOptions): Promise<void> {
  if (options.keySeparator === '') throw new UsageError('--key-separator: allowed is a text that is not empty')
  if (options.json === true && options.keySeparator !== undefined) {
    throw new UsageError('--key-separator is for lines of text; with --json the key is a field')
  }
  const headers = (options.header ?? []).map(parseHeader)
  const input = await openInput(options.file)
  await withCluster(options, async (cluster) => {
    const acks = options.acks === 'all' ? -1 : (Number(options.acks) as 0 | 1)
    const producer = await Producer.open(cluster, { topic, acks, codec: options.compression })
    const now = () => cluster.platform.clock.now()
    const format: LineFormat = { keySeparator: options.keySeparator, headers, now }
    const read = options.json === true ? parseJsonLine : parseTextLine
    if (input.stream === process.stdin && process.stdin.isTTY)
      note(`Each line becomes a record of ${topic}; Ctrl-D ends`)
    let failure: unknown
    try {
      await produceLines(input, producer, (line, place) => {
        const { record, partition } = read(line, place, format)
        return { record, partition: options.partition ?? partition }
      })
    } catch (error) {
      failure = error
    }
    // Also when something failed: what was acknowledged is there.
    await report(topic, options, producer)
    if (failure !== undefined) throw failure
  })
}

interface Input {
  readonly stream: NodeJS.ReadableStream & AsyncIterable<Buffer | string>
  readonly name: string
}

async function openInput(file: string | undefined): Promise<Input> {
  if (file === undefined) return { stream: process.stdin, name: 'Line' }
  const stream = createReadStream(file, { highWaterMark: flushBytes })
  await new Promise<void>((resolve, reject) => {
    stream.once('open', () => resolve())
    stream.once('error', (error) => reject(new UsageError(`Cannot read ${file}: ${messageOf(error)}`)))
  })
  return { stream, name: `${file} line` }
}

/** What came in one chunk is sent before the next is read, so that a line that was typed goes out at once. */
async function produceLines(
  input: Input,
  producer: Producer,
  parse: (line: Buffer, place: string) => LineRecord,
): Promise<void> {
  const splitter = new LineSplitter()
  let lineNumber = 0
  const add = async (line: Buffer) => {
    lineNumber++
    const { record, partition } = parse(line, `${input.name} ${lineNumber}`)
    producer.add(record, partition)
    if (producer.pendingBytes >= flushBytes) await producer.flush()
  }
  try {
    for await (const chunk of input.stream) {
      for (const line of splitter.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)) await add(line)
      await producer.flush()
    }
    const last = splitter.end()
    if (last !== undefined) await add(last)
  } finally {
    // Lines before one that can't be used were good.
    await producer.flush()
  }
}

async function report(topic: string, options: ProduceOptions, producer: Producer): Promise<void> {
  const partitions = producer.produced
  const records = partitions.reduce((sum, range) => sum + range.records, 0)
  const result = { topic, records, partitions }
  if (options.json === true) await show(options, result, () => '')
  else note(`${counted(records, 'record')} written to ${topic}`)
}
