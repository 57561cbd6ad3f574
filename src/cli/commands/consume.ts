import type { Cluster } from '../client/cluster.ts'
import { type FetchedRecord, Fetcher, type FetcherHandlers } from '../client/fetcher.ts'
import { GroupReader } from '../client/group-reader.ts'
import { placeName } from '../client/offsets.ts'
import { type From, parseFrom, placesAllowed, startingOffsets } from '../client/starting-offsets.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { UsageError } from '../exit.ts'
import { counted, isTerminal, note, write } from '../output.ts'
import { formatJson, formatText } from '../record-text.ts'

export interface ConsumeOptions extends ClusterCommandOptions {
  readonly from: string
  readonly partition?: readonly number[]
  readonly max?: number
  readonly exit?: boolean
  readonly group?: string
  readonly keySeparator?: string
  readonly details?: boolean
}

/** What reads: stops on its own or when told to. */
interface Reading {
  run(): Promise<void>
  stop(): void
}

export async function consume(topic: string, options: ConsumeOptions): Promise<void> {
  const from = parseFrom(options.from)
  if (from === undefined) {
    throw new UsageError(`--from ${options.from}: allowed is ${placesAllowed}`)
  }
  if (options.group !== undefined && options.partition !== undefined) {
    throw new UsageError('--partition contradicts --group: the group decides who reads what')
  }
  await withCluster(options, async (cluster) => {
    let reading: Reading | undefined
    const printer = new Printer(options, () => reading?.stop())
    reading = await createReading(cluster, topic, from, options, printer)
    const stop = () => reading.stop()
    // A second signal meets no handler and ends the process.
    process.once('SIGINT', stop).once('SIGTERM', stop)
    try {
      await reading.run()
    } finally {
      process.off('SIGINT', stop).off('SIGTERM', stop)
    }
    note(`${counted(printer.count, 'record')} read from ${topic}`)
  })
}

async function createReading(
  cluster: Cluster,
  topic: string,
  from: From,
  options: ConsumeOptions,
  handlers: FetcherHandlers,
): Promise<Reading> {
  const untilEnd = options.exit === true
  const { partitions } = await cluster.topic(topic)
  if (options.group !== undefined) {
    return new GroupReader(cluster, { groupId: options.group, topic, from, untilEnd, handlers })
  }
  const unknown = options.partition?.find((wanted) => !partitions.some(({ partition }) => partition === wanted))
  if (unknown !== undefined) {
    throw new UsageError(`--partition ${unknown}: ${topic} has partitions 0 to ${partitions.length - 1}`)
  }
  const places = partitions
    .filter(({ partition }) => options.partition?.includes(partition) ?? true)
    .map(({ partition }) => ({ topic, partition }))
  const ranges = await startingOffsets(cluster, places, from)
  const starts = ranges.map((range) => (untilEnd ? range : { ...range, endOffset: Number.POSITIVE_INFINITY }))
  return new Fetcher(cluster, starts, handlers)
}

class Printer implements FetcherHandlers {
  readonly #format: (record: FetchedRecord) => Uint8Array
  readonly #max: number
  readonly #onMax: () => void
  /** Records that were printed. */
  count = 0

  constructor(options: ConsumeOptions, onMax: () => void) {
    const { keySeparator, details = false } = options
    const printableOnly = isTerminal()
    this.#format =
      options.json === true
        ? (record) => Buffer.from(formatJson(record))
        : (record) => formatText(record, { keySeparator, details, printableOnly })
    this.#max = options.max ?? Number.POSITIVE_INFINITY
    this.#onMax = onMax
  }

  async onRecords(records: readonly FetchedRecord[]): Promise<number> {
    const taken = records.slice(0, Math.min(records.length, this.#max - this.count))
    this.count += taken.length
    if (this.count >= this.#max) this.#onMax()
    if (taken.length > 0) await write(Buffer.concat(taken.map(this.#format)))
    return taken.length
  }

  onOutOfRange(place: { topic: string; partition: number }, fetchOffset: number, resumeOffset: number): void {
    note(`rookery: ${placeName(place)} has no offset ${fetchOffset} (any more): reading on from ${resumeOffset}`)
  }
}
