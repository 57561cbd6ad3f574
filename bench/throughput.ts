import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { encodeBatch } from './frames.ts'
import type { FetchLoad, ProduceLoad } from './load.ts'
import { cachedWriteLimit, loopbackFetchLimit, loopbackProduceLimit, megabyte, syncedWriteLimit } from './machine.ts'
import { type BrokerUnderTest, createTopic, type LoadResult, runLoad, type StartBroker } from './processes.ts'
import { count, figure, ratio, sizeText, Table } from './table.ts'

/**
 * throughput: what a broker takes and gives when the client costs as little as possible.
 *
 * Workload: a generator in another process (load.ts) sends encoded batches over a fixed number of connections, with a fixed
 * number of requests on their way on each, and checks every answer. A fresh broker for each row. Afterwards every record is
 * read back and counted: a row with a record missing or twice fails the run.
 *
 * Numbers: MB/s of record batches and records a second that were acknowledged (or fetched) while the clock ran; milliseconds from send to
 * answer; CPU seconds of the broker's process, all threads, for 10^9 bytes; how late a timer of its event loop ran; its
 * highest resident memory. Limits of the same minute: `loop`, the same load against a server that answers without looking; `disk`, batches
 * of the same size written by one caller, with fdatasync after each where the row waits for syncs. One sync covers many requests, so a
 * row may well be above 1x of `disk`.
 *
 * Rows with three replicas run on three nodes, with as many connections to each that leads; usage and memory are those of all three.
 *
 * To compare: ratios of rows within one run only. Both processes share the machine's cores, with whatever else runs there.
 */
export interface ThroughputOptions {
  readonly directory: string
  readonly seconds: number
  /** Rows whose name has this in it. */
  readonly rows: string | undefined
  readonly isFull: boolean
  /** The brokers to measure, one after the other in each row; ratios are to the last. */
  readonly brokers: readonly StartBroker[]
  /** Clusters of three nodes, for the rows with three replicas. */
  readonly clusters: readonly StartBroker[]
}

interface Row {
  readonly name: string
  /** Not in the short run. */
  readonly fullOnly?: boolean
  readonly partitions: number
  /** Three: on three nodes. One when left out. */
  readonly replicas?: 3
  readonly flush: 'each' | 'never'
  readonly produce: ProduceLoad
  /** Left out: the row measures producing. `filledBytes`: how much is produced before the clock starts. */
  readonly fetch?: Pick<FetchLoad, 'connections' | 'maxBytes' | 'partitionMaxBytes' | 'mode'> & {
    readonly filledBytes?: number
  }
}

const never = '9223372036854775807'
const kibibyte = 1024

const wide = { batchBytes: 128 * kibibyte, connections: 4, inFlight: 5 }

/** The one workload of `npm run bench` alone: the defaults of a broker, every acknowledged record on the disk. */
export const canonicalRow: Row = {
  name: '100 B, acks=-1, 1 partition, sync',
  partitions: 1,
  flush: 'each',
  produce: { ...wide, recordBytes: 100, acks: -1 },
}

const rows: readonly Row[] = [
  ...matrix(),
  {
    name: 'one 100 B record at a time, sync',
    partitions: 1,
    flush: 'each',
    produce: { recordBytes: 100, batchBytes: 1, acks: -1, connections: 1, inFlight: 1 },
  },
  {
    name: 'one 100 B record at a time, no sync',
    partitions: 1,
    flush: 'never',
    produce: { recordBytes: 100, batchBytes: 1, acks: 1, connections: 1, inFlight: 1 },
  },
  {
    name: '1.2 KB batches, sync',
    partitions: 1,
    flush: 'each',
    produce: { recordBytes: 100, batchBytes: 1200, acks: -1, connections: 1, inFlight: 20 },
  },
  {
    name: '1.2 KB batches, no sync',
    partitions: 1,
    flush: 'never',
    produce: { recordBytes: 100, batchBytes: 1200, acks: 1, connections: 1, inFlight: 20 },
  },
  ...[1, 16].flatMap((partitions): Row[] => [
    {
      name: `3 replicas, 100 B, ${partitions} partition${partitions === 1 ? '' : 's'}, sync`,
      partitions,
      replicas: 3,
      flush: 'each',
      produce: { ...wide, recordBytes: 100, acks: -1 },
    },
    {
      name: `3 replicas, 100 B, ${partitions} partition${partitions === 1 ? '' : 's'}, no sync`,
      fullOnly: true,
      partitions,
      replicas: 3,
      flush: 'never',
      produce: { ...wide, recordBytes: 100, acks: -1 },
    },
  ]),
  {
    name: '3 replicas, one 100 B record at a time, sync',
    partitions: 1,
    replicas: 3,
    flush: 'each',
    produce: { recordBytes: 100, batchBytes: 1, acks: -1, connections: 1, inFlight: 1 },
  },
  {
    name: '1,000 partitions, no sync',
    fullOnly: true,
    partitions: 1000,
    flush: 'never',
    produce: { ...wide, recordBytes: 100, batchBytes: 16 * kibibyte, acks: 1 },
  },
  {
    name: 'fetch from memory',
    partitions: 8,
    flush: 'never',
    produce: { ...wide, recordBytes: 100, acks: 1 },
    fetch: {
      mode: 'loop',
      connections: 1,
      maxBytes: 8 * 1024 * kibibyte,
      partitionMaxBytes: 1024 * kibibyte,
      filledBytes: 12e6,
    },
  },
  {
    name: 'fetch from files',
    partitions: 8,
    flush: 'never',
    produce: { ...wide, recordBytes: 100, acks: 1 },
    fetch: {
      mode: 'loop',
      connections: 1,
      maxBytes: 8 * 1024 * kibibyte,
      partitionMaxBytes: 1024 * kibibyte,
      filledBytes: 1e9,
    },
  },
  {
    name: 'produce and follow the tail',
    partitions: 4,
    flush: 'never',
    produce: { ...wide, recordBytes: 100, acks: 1 },
    fetch: { mode: 'follow', connections: 1, maxBytes: 8 * 1024 * kibibyte, partitionMaxBytes: 1024 * kibibyte },
  },
]

function matrix(): Row[] {
  const all: Row[] = []
  for (const flush of ['never', 'each'] as const) {
    for (const partitions of [1, 16]) {
      for (const acks of [1, -1]) {
        for (const recordBytes of [10, 100, 1024]) {
          const size = recordBytes === 1024 ? '1 KiB' : `${recordBytes} B`
          const parts = partitions === 1 ? '1 partition' : `${partitions} partitions`
          const name = `${size}, acks=${acks}, ${parts}, ${flush === 'each' ? 'sync' : 'no sync'}`
          // Without syncs acks=1 and acks=-1 are the same work on a single node; so is each record size for most of it.
          const fullOnly = recordBytes !== 100 || (flush === 'never' ? acks === -1 : acks === 1)
          all.push({ name, fullOnly, partitions, flush, produce: { ...wide, recordBytes, acks } })
        }
      }
    }
  }
  return all
}

/** What one row gave for one broker. */
export interface RowResult {
  readonly row: Row
  readonly broker: string
  readonly result: LoadResult
  readonly megabytesPerSecond: number
  readonly recordsPerSecond: number
  readonly readBack: { readonly records: number; readonly megabytesPerSecond: number }
  readonly limits: Limits
}

interface Limits {
  readonly loopback: number
  readonly disk: number | undefined
}

export async function throughput(options: ThroughputOptions): Promise<void> {
  const { rows: pattern, isFull } = options
  const chosen = rows.filter((row) =>
    pattern === undefined ? isFull || row.fullOnly !== true : row.name.includes(pattern),
  )
  if (chosen.length === 0)
    throw new Error(`No row is named ${pattern}. Rows:\n  ${rows.map(({ name }) => name).join('\n  ')}`)
  const table = new Table([
    { heading: 'row', width: 36, left: true },
    { heading: 'broker', width: 10, left: true },
    { heading: 'conns x in flight', width: 22, left: true },
    { heading: 'MB/s', width: 6 },
    { heading: 'records/s', width: 9 },
    { heading: 'p50 ms', width: 7 },
    { heading: 'p99 ms', width: 7 },
    { heading: 'of loop', width: 7 },
    { heading: 'of disk', width: 7 },
    { heading: 'CPU s/GB', width: 8 },
    { heading: 'loop p99 ms', width: 11 },
    { heading: 'peak MB', width: 7 },
    { heading: 'read back', width: 9 },
    { heading: 'ratio', width: 6 },
  ])
  table.head()
  for (const row of chosen) {
    const limits = await limitsOf(row, options.directory)
    table.row([
      row.name,
      'limits',
      '',
      '',
      '',
      '',
      '',
      figure(limits.loopback),
      limits.disk === undefined ? '' : figure(limits.disk),
    ])
    const results: RowResult[] = []
    const starts = row.replicas === 3 ? options.clusters : options.brokers
    const warmUp = starts.length > 1 ? peerWarmUpMs : warmUpMs
    for (const start of starts) {
      results.push(await runRow(row, start, options.directory, options.seconds, limits, warmUp))
    }
    const base = results.at(-1)!
    for (const result of results) print(table, result, result === base ? undefined : base)
  }
}

function print(table: Table, result: RowResult, base: RowResult | undefined): void {
  const { row, limits, megabytesPerSecond, recordsPerSecond, readBack } = result
  const { measured, usage } = result.result
  const gigabytes = (measured.produced.bytes + measured.fetched.bytes) / 1e9
  table.row([
    row.name,
    result.broker,
    loadText(row),
    figure(megabytesPerSecond),
    count(recordsPerSecond),
    figure(measured.latencyMs.p50),
    figure(measured.latencyMs.p99),
    ratio(megabytesPerSecond / limits.loopback),
    limits.disk === undefined ? '' : ratio(megabytesPerSecond / limits.disk),
    usage === undefined ? '-' : figure(usage.cpuSeconds / gigabytes),
    usage?.loopDelayP99Ms === undefined ? '-' : figure(usage.loopDelayP99Ms),
    usage === undefined ? '-' : figure(usage.peakRssBytes / megabyte),
    count(readBack.records),
    base === undefined ? '' : ratio(megabytesPerSecond / base.megabytesPerSecond),
  ])
}

/** `4 x 5 x 128 KiB`: connections, requests on their way on each, bytes of one. */
function loadText({ produce, fetch }: Row): string {
  const produced = `${produce.connections} x ${produce.inFlight} x ${sizeText(encodeBatch(produce).bytes.length)}`
  if (fetch === undefined) return produced
  const fetched = `${fetch.connections} x 1 x ${sizeText(fetch.maxBytes)}`
  return fetch.mode === 'follow' ? `${produced} + ${fetched}` : fetched
}

const limitMs = 400

export async function limitsOf(row: Row, directory: string): Promise<Limits> {
  const { produce, fetch, flush, partitions } = row
  if (fetch !== undefined && fetch.mode !== 'follow') {
    const load = { ...fetch, endOffsets: [] }
    const measured = await loopbackFetchLimit(load, fetch.maxBytes, limitMs)
    return { loopback: measured.fetched.bytes / megabyte / measured.seconds, disk: undefined }
  }
  const measured = await loopbackProduceLimit(produce, partitions, limitMs)
  const batchBytes = encodeBatch(produce).bytes.length
  const disk =
    flush === 'each'
      ? await syncedWriteLimit(directory, batchBytes, limitMs)
      : await cachedWriteLimit(directory, batchBytes, limitMs)
  return { loopback: measured.produced.bytes / megabyte / measured.seconds, disk: disk.megabytesPerSecond }
}

const topic = 'bench'
const warmUpMs = 700
/** Beside a peer, for both: a Java machine compiles what is hot only after some seconds. */
const peerWarmUpMs = 8000

export async function runRow(
  row: Row,
  start: StartBroker,
  parent: string,
  seconds: number,
  limits: Limits,
  warmUp = warmUpMs,
): Promise<RowResult> {
  await mkdir(parent, { recursive: true })
  const directory = await mkdtemp(join(parent, 'broker-'))
  let broker: BrokerUnderTest | undefined
  try {
    broker = await start(directory)
    const { partitions, flush, replicas = 1 } = row
    const configs = {
      'flush.messages': flush === 'each' ? '1' : never,
      'min.insync.replicas': String(replicas - 1 || 1),
    }
    const leaders = await createTopic(broker.port, topic, partitions, configs, replicas)
    const result = await measureRow(row, broker, leaders, seconds * 1000, warmUp)
    const readBack = await readBackAll(leaders, partitions, result.acknowledged)
    const { measured } = result
    const counted = row.fetch === undefined ? measured.produced : measured.fetched
    return {
      row,
      broker: broker.name,
      result,
      megabytesPerSecond: counted.bytes / megabyte / measured.seconds,
      recordsPerSecond: counted.records / measured.seconds,
      readBack,
      limits,
    }
  } finally {
    await broker?.stop()
    await rm(directory, { recursive: true, force: true })
  }
}

async function measureRow(
  row: Row,
  broker: BrokerUnderTest,
  port: readonly number[],
  measureMs: number,
  warmUpMs: number,
): Promise<LoadResult> {
  const { produce, fetch, partitions } = row
  const base = { port, topic, partitions }
  if (fetch === undefined) return await runLoad({ ...base, produce, warmUpMs, measureMs }, broker)
  if (fetch.mode === 'follow') {
    return await runLoad({ ...base, produce, fetch: { ...fetch, endOffsets: [] }, warmUpMs, measureMs }, broker)
  }
  const filled = await fill(row, port)
  const load = { ...fetch, endOffsets: filled.acknowledged }
  const result = await runLoad({ ...base, fetch: load, warmUpMs, measureMs }, broker)
  return { ...result, acknowledged: filled.acknowledged }
}

/** Produces about `filledBytes`. */
async function fill({ produce, fetch, partitions }: Row, port: readonly number[]): Promise<LoadResult> {
  const maxBytes = fetch?.filledBytes ?? 0
  return await runLoad({ port, topic, partitions, produce: { ...produce, maxBytes }, warmUpMs: 0 })
}

/** Reads everything from the start. Throws when it isn't exactly what was acknowledged. */
async function readBackAll(port: readonly number[], partitions: number, acknowledged: readonly number[]) {
  const { measured } = await runLoad({
    port,
    topic,
    partitions,
    fetch: {
      mode: 'sweep',
      connections: 1,
      maxBytes: 4 * 2 ** 20,
      partitionMaxBytes: 2 ** 20,
      endOffsets: acknowledged,
    },
    warmUpMs: 0,
  })
  const { records, bytes } = measured.fetched
  const expected = acknowledged.reduce((sum, each) => sum + each, 0)
  if (records !== expected) throw new Error(`${expected} records were acknowledged, ${records} were read back`)
  return { records, megabytesPerSecond: bytes / megabyte / measured.seconds }
}
