import type { Cluster } from '../client/cluster.ts'
import { type FetchedRecord, Fetcher, type FetcherHandlers } from '../client/fetcher.ts'
import { GroupReader } from '../client/group-reader.ts'
import { type Place, placeName } from '../client/offsets.ts'
import {
  beyondEndText,
  type Froms,
  fromOf,
  missingText,
  parseFroms,
  placesAllowed,
  type Range,
  startingOffsetsEach,
} from '../client/starting-offsets.ts'
import { matchingTopics } from '../client/topics.ts'
import { type ClusterCommandOptions, withCluster } from '../connect.ts'
import { type DataFormat, parseData } from '../data-format.ts'
import { endSignals, UsageError } from '../exit.ts'
import { counted, isTerminal, note, Progress, whenReaderIsGone, write } from '../output.ts'
import { compilePattern, formatJson, formatText } from '../record-text.ts'

export interface ConsumeOptions extends ClusterCommandOptions {
  /** By default the beginning for what has an end, else what is to come. */
  readonly from?: string
  /** Exclusive; past the partitions' end it is the end. */
  readonly until?: string
  readonly last?: number
  readonly partition?: readonly number[]
  readonly max?: number
  readonly exit?: boolean
  readonly group?: string
  /** False: `--no-commit`. */
  readonly commit: boolean
  /** Only records with this key. */
  readonly key?: string
  readonly keySeparator?: string
  readonly keyFormat: DataFormat
  readonly valueFormat: DataFormat
  readonly null: string
  readonly details?: boolean
  readonly format?: string
}

/** What reads: stops on its own or when told to. */
interface Reading {
  run(): Promise<void>
  stop(): void
  /** For a reader that others would wait for. */
  abandon?(): Promise<void>
}

export async function consume(topics: readonly string[], options: ConsumeOptions): Promise<void> {
  checkOptions(options)
  const hasEnd = options.exit === true || options.until !== undefined
  const from = fromsOf('--from', options.from ?? (hasEnd ? 'beginning' : 'latest'))
  const until = options.until === undefined ? undefined : fromsOf('--until', options.until)
  const print = printFunction(options)
  await withCluster(options, async (cluster) => {
    let reading: Reading | undefined
    const printer = new Printer(print, options, () => reading?.stop())
    const names = await matchingTopics(cluster, topics)
    reading = await createReading(cluster, names, { from, until }, options, printer)
    const stop = () => {
      cluster.stopWaiting()
      reading.stop()
    }
    whenReaderIsGone(async () => {
      cluster.stopWaiting()
      await reading.abandon?.()
    })
    // A second signal meets no handler and ends the process.
    for (const signal of endSignals) process.once(signal, stop)
    if (isTerminal() && options.exit !== true && options.last === undefined && until === undefined) {
      note(`Waiting for records of ${names.join(', ')}; Ctrl-C ends, --from beginning shows earlier ones`)
    }
    try {
      await reading.run()
      await printer.end()
    } finally {
      for (const signal of endSignals) process.off(signal, stop)
    }
    note(`${counted(printer.count, 'record')} read from ${names.join(', ')}`)
  })
}

function checkOptions(options: ConsumeOptions): void {
  const { group, partition, last, until, exit, json, keySeparator, details, format, keyFormat, valueFormat } = options
  if (group !== undefined && partition !== undefined) {
    throw new UsageError('--partition contradicts --group: the group decides who reads what')
  }
  if (group !== undefined && (last !== undefined || until !== undefined)) {
    throw new UsageError('--last and --until contradict --group: a group reads on from where it is')
  }
  if (group === undefined && !options.commit) throw new UsageError('--no-commit is for --group')
  if (last !== undefined && (options.from !== undefined || until !== undefined || exit === true)) {
    throw new UsageError('--last contradicts --from, --until and --exit: it reads the end, and stops')
  }
  if (format !== undefined && (json === true || keySeparator !== undefined || details === true)) {
    throw new UsageError('--format contradicts --json, --key-separator and --details: it says itself what is printed')
  }
  const isBinary = (each: DataFormat) => each === 'hex' || each === 'base64'
  if (json === true && (isBinary(valueFormat) || (isBinary(keyFormat) && options.key === undefined))) {
    throw new UsageError(
      '--json shows bytes that are no text as keyBase64 and valueBase64: hex and base64 are for text',
    )
  }
}

function fromsOf(option: string, text: string): Froms {
  const froms = parseFroms(text)
  if (froms === undefined) throw new UsageError(`${option} ${text}: allowed is ${placesAllowed}`)
  return froms
}

async function createReading(
  cluster: Cluster,
  topics: readonly string[],
  { from, until }: { readonly from: Froms; readonly until: Froms | undefined },
  options: ConsumeOptions,
  handlers: FetcherHandlers,
): Promise<Reading> {
  const untilEnd = options.exit === true || options.last !== undefined
  if (options.group !== undefined) {
    if (!('all' in from)) throw new UsageError('--from for single partitions contradicts --group')
    const { group: groupId, commit: commits } = options
    return new GroupReader(cluster, { groupId, topics, from: from.all, untilEnd, commits, handlers })
  }
  const places = await wantedPlaces(cluster, topics, from, options)
  const last = options.last === undefined ? from : { all: { kind: 'last', count: options.last } as const }
  const ranges = await startingOffsetsEach(cluster, places, last)
  const beyond = beyondEndText(last, ranges)
  if (beyond !== undefined) note(`rookery: ${beyond}`)
  const ends = until === undefined ? undefined : await startingOffsetsEach(cluster, places, until)
  const endBy = new Map(ends?.map((range) => [placeName(range), range.nextOffset]))
  const starts = ranges.map((range): Range => {
    const endOffset = untilEnd || until !== undefined ? range.endOffset : Number.POSITIVE_INFINITY
    return { ...range, endOffset: Math.min(endOffset, endBy.get(placeName(range)) ?? endOffset) }
  })
  return new Fetcher(cluster, starts, handlers)
}

/** The partitions that `--partition` and `--from` name, or all. Throws `UsageError` for one that isn't there. */
async function wantedPlaces(
  cluster: Cluster,
  topics: readonly string[],
  from: Froms,
  options: ConsumeOptions,
): Promise<readonly Place[]> {
  const places: Place[] = []
  for (const topic of topics) {
    const { partitions } = await cluster.topic(topic)
    const named = [...(options.partition ?? []), ...('all' in from ? [] : from.byPartition.keys())]
    const unknown = named.find((wanted) => !partitions.some(({ partition }) => partition === wanted))
    if (unknown !== undefined) {
      throw new UsageError(missingText(topic, unknown, partitions.length))
    }
    for (const { partition } of partitions) {
      const isNamed = options.partition?.includes(partition) ?? true
      if (isNamed && fromOf(from, partition) !== undefined) places.push({ topic, partition })
    }
  }
  return places
}

function printFunction(options: ConsumeOptions): (record: FetchedRecord) => Uint8Array {
  const { keySeparator, keyFormat, valueFormat, null: nullText, details = false } = options
  const format = { keySeparator, keyFormat, valueFormat, nullText, details, printableOnly: isTerminal() }
  if (options.format !== undefined) return compilePattern(options.format, format)
  if (options.json === true) return (record) => Buffer.from(formatJson(record, valueFormat))
  return (record) => formatText(record, format)
}

/** Prints records as they come; with `last` only the last ones, in the order of their times, at the end. */
class Printer implements FetcherHandlers {
  readonly #print: (record: FetchedRecord) => Uint8Array
  readonly #key: Buffer | undefined
  readonly #last: number | undefined
  readonly #max: number
  readonly #onMax: () => void
  readonly #progress = new Progress()
  /** For `last`. */
  #kept: FetchedRecord[] = []
  /** Records that were printed. */
  count = 0

  constructor(print: (record: FetchedRecord) => Uint8Array, options: ConsumeOptions, onMax: () => void) {
    this.#print = print
    this.#key = options.key === undefined ? undefined : parseData(Buffer.from(options.key), options.keyFormat, '--key')
    this.#last = options.last
    this.#max = options.max ?? Number.POSITIVE_INFINITY
    this.#onMax = onMax
  }

  async onRecords(records: readonly FetchedRecord[]): Promise<number> {
    if (this.#last !== undefined) {
      for (const record of records) if (this.#isWanted(record)) this.#kept.push(ownBytes(record))
      if (this.#kept.length > 2 * this.#last + 10_000) this.#keepLast(this.#last)
      return records.length
    }
    const texts: Uint8Array[] = []
    let taken = 0
    for (const record of records) {
      if (this.count >= this.#max) break
      taken++
      if (!this.#isWanted(record)) continue
      texts.push(this.#print(record))
      this.count++
    }
    if (this.count >= this.#max) this.#onMax()
    if (texts.length > 0) await write(Buffer.concat(texts))
    if (!isTerminal()) this.#progress.show(() => `${counted(this.count, 'record')} read`)
    return taken
  }

  onOutOfRange(place: Place, fetchOffset: number, resumeOffset: number): void {
    note(`rookery: ${placeName(place)} has no offset ${fetchOffset} (any more): reading on from ${resumeOffset}`)
  }

  /** Once everything was read. */
  async end(): Promise<void> {
    this.#progress.clear()
    if (this.#last === undefined) return
    this.#keepLast(Math.min(this.#last, this.#max))
    this.count = this.#kept.length
    for (let at = 0; at < this.count; at += 1000) {
      await write(Buffer.concat(this.#kept.slice(at, at + 1000).map(this.#print)))
    }
  }

  #isWanted({ key }: FetchedRecord): boolean {
    return this.#key === undefined || key?.equals(this.#key) === true
  }

  #keepLast(count: number): void {
    const [first] = this.#kept
    const isOnePartition = this.#kept.every((each) => each.partition === first?.partition && each.topic === first.topic)
    // Within a partition offsets are the order, whatever its producers say of the time.
    if (isOnePartition) this.#kept.sort((left, right) => left.offset - right.offset)
    else this.#kept.sort((left, right) => left.timestamp - right.timestamp || left.offset - right.offset)
    this.#kept = this.#kept.slice(Math.max(0, this.#kept.length - count))
  }
}

/** Its bytes without the answer that they came in. */
function ownBytes(record: FetchedRecord): FetchedRecord {
  const own = (bytes: Buffer | null) => (bytes === null ? null : Buffer.from(bytes))
  const headers = record.headers.map(({ key, value }) => ({ key, value: own(value) }))
  return { ...record, key: own(record.key), value: own(record.value), headers }
}
