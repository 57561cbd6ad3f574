import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { LeaderEpoch } from '../src/base/index.ts'
import { parseConfig, resolveTopicConfig } from '../src/config/index.ts'
import { openLogManager, type PartitionLog } from '../src/log/index.ts'
import { KafkaClient } from '../src/network/index.ts'
import { createRealPlatform } from '../src/platform/index.ts'
import {
  apis,
  BatchView,
  checkBatch,
  crc32c,
  decodeMessage,
  encodeResponse,
  Reader,
  readRequestHeader,
  walkRecords,
} from '../src/protocol/index.ts'
import { Metrics, silentLogger } from '../src/telemetry/index.ts'
import { encodeBatch, fetchFrame, produceFrame } from './frames.ts'
import { createTopic, startRookery } from './processes.ts'
import { figure, Table } from './table.ts'

/**
 * micro: parts of the hot path by themselves, in this process.
 *
 * Workload: each part runs again and again for a fixed time, in rounds. Numbers: the median of the rounds in nanoseconds a call, the best
 * round (what the part costs when nothing else wants the core), and MB/s where bytes go through it. The round trips are over loopback to a
 * broker in another process, one request in flight.
 *
 * To compare: the best rounds of two commits on one machine. A part that got 10 % slower here is seldom seen in `throughput`: see
 * its share there first (`--profile`).
 */
export interface MicroOptions {
  readonly directory: string
  /** For each part. */
  readonly seconds: number
  readonly rows: string | undefined
}

interface Part {
  readonly name: string
  /** That go through it in one call. */
  readonly bytes?: number
  readonly run: () => unknown
}

const rounds = 10
const kibibyte = 1024

export async function micro({ directory, seconds, rows }: MicroOptions): Promise<void> {
  const table = new Table([
    { heading: 'part', width: 52, left: true },
    { heading: 'median ns', width: 10 },
    { heading: 'best ns', width: 10 },
    { heading: 'MB/s', width: 8 },
  ])
  table.head()
  const measure = async (part: Part, isAsync: boolean): Promise<void> => {
    if (rows !== undefined && !part.name.includes(rows)) return
    const ns = isAsync ? await timeAsync(part.run, seconds) : timeSync(part.run, seconds)
    const best = ns[0]!
    const speed = part.bytes === undefined ? '' : figure((part.bytes / best) * 1000)
    table.row([part.name, figure(ns[ns.length >>> 1]!), figure(best), speed])
  }
  for (const part of [...checksums(), ...batches(), ...codec()]) await measure(part, false)
  const log = await openLog(await mkdtemp(join(directory, 'micro-')))
  const uncached = await openLog(await mkdtemp(join(directory, 'micro-')), { tailCacheBytes: 0 })
  try {
    for (const part of logParts(log.partition, uncached.partition)) await measure(part, false)
  } finally {
    await log.close()
    await uncached.close()
  }
  const trips = await roundTrips(directory)
  try {
    for (const part of trips.parts) await measure(part, true)
  } finally {
    await trips.close()
  }
}

function checksums(): Part[] {
  return [100, kibibyte, 16 * kibibyte, 1024 * kibibyte].map((bytes) => {
    const content = Buffer.alloc(bytes, 7)
    return { name: `CRC-32C of ${bytes} B`, bytes, run: () => crc32c(content) }
  })
}

function batches(): Part[] {
  const parts: Part[] = []
  for (const [recordBytes, batchBytes] of [
    [100, 1200],
    [10, 128 * kibibyte],
    [100, 128 * kibibyte],
    [1024, 128 * kibibyte],
  ] as const) {
    const { bytes, records } = encodeBatch({ recordBytes, batchBytes })
    const view = new BatchView(bytes)
    const what = `${records} records of ${recordBytes} B`
    parts.push({ name: `batch walk, ${what}`, bytes: bytes.length, run: () => walkRecords(view, view.recordBytes) })
    parts.push({ name: `batch check, ${what}`, bytes: bytes.length, run: () => checkBatch(bytes, 0, bytes.length) })
  }
  return parts
}

function codec(): Part[] {
  const { bytes } = encodeBatch({ recordBytes: 100, batchBytes: 1200 })
  const positions = Array.from({ length: 16 }, (_, partition) => ({ partition, offset: 1e6 }))
  const limits = { maxBytes: 2 ** 20, partitionMaxBytes: 2 ** 20, maxWaitMs: 500 }
  const produceRequest = produceFrame('bench', 0, -1, bytes).subarray(4)
  const fetchRequest = fetchFrame('bench', positions, limits).subarray(4)
  const decode = (frame: Buffer, api: (typeof apis)['Produce'] | (typeof apis)['Fetch']) => () => {
    const reader = new Reader(frame)
    const { apiVersion } = readRequestHeader(reader)
    return decodeMessage(api.request as typeof apis.Produce.request, apiVersion, reader)
  }
  const partitionResponses = [{ index: 0, errorCode: 0, baseOffset: 12_345_678, logStartOffset: 0 }]
  const produceAnswer = { responses: [{ name: 'bench', partitionResponses }] }
  const partitions = positions.map(({ partition }) => ({
    partitionIndex: partition,
    errorCode: 0,
    highWatermark: 1e6,
    lastStableOffset: 1e6,
    logStartOffset: 0,
    abortedTransactions: null,
    records: [bytes],
  }))
  const fetchAnswer = { responses: [{ topic: 'bench', partitions }] }
  return [
    { name: 'decode Produce, one batch', run: decode(produceRequest, apis.Produce) },
    { name: 'decode Fetch, 16 partitions', run: decode(fetchRequest, apis.Fetch) },
    { name: 'encode answer to Produce', run: () => encodeResponse(apis.Produce.response, 9, 1, produceAnswer) },
    {
      name: 'encode answer to Fetch, 16 partitions',
      run: () => encodeResponse(apis.Fetch.response, 11, 1, fetchAnswer),
    },
  ]
}

/** A partition on disk that never waits for a sync. */
async function openLog(
  directory: string,
  settings: { readonly tailCacheBytes?: number } = {},
): Promise<{ readonly partition: PartitionLog; close(): Promise<void> }> {
  const platform = createRealPlatform()
  const config = parseConfig({
    overrides: { 'log.dirs': directory, 'log.flush.interval.messages': '9223372036854775807' },
  })
  const logs = await openLogManager({ platform, logger: silentLogger, metrics: new Metrics(), config, settings })
  const partition = await logs.getOrCreate({
    topic: 'bench',
    topicId: platform.random.uuid(),
    partition: 0,
    config: resolveTopicConfig(new Map(), config),
  })
  const close = async () => {
    await logs.close()
    await rm(directory, { recursive: true, force: true })
  }
  return { partition, close }
}

/** `uncached`: a log without a tail cache. */
function logParts(log: PartitionLog, uncached: PartitionLog): Part[] {
  const appendTo = (log: PartitionLog, batch: Buffer) => () => {
    batch.fill(0, 0, 8) // the base offset, which the last append stamped
    const result = log.appendAsLeader(batch, { leaderEpoch: 0 as LeaderEpoch, origin: 'client' })
    if (result instanceof Promise || !result.ok) throw new Error('The batch was not appended at once')
  }
  const small = encodeBatch({ recordBytes: 100, batchBytes: 1200 }).bytes
  const large = encodeBatch({ recordBytes: 100, batchBytes: 128 * kibibyte }).bytes
  const readBytes = 1024 * kibibyte
  for (let i = 0; i < 40; i++) appendTo(uncached, large)()
  const read = (log: PartitionLog) => () => {
    const fetchOffset = Math.max(0, log.logEndOffset - Math.floor(((2 * readBytes) / large.length) * 1000))
    const result = log.read({ fetchOffset, endOffset: log.logEndOffset, maxBytes: readBytes, minOneBatch: true })
    if (result instanceof Promise || 'outOfRange' in result) throw new Error('The read was not answered at once')
    result.release()
  }
  return [
    { name: 'append 1.2 KB', bytes: small.length, run: appendTo(log, small) },
    { name: 'append 128 KiB', bytes: large.length, run: appendTo(log, large) },
    { name: 'read 1 MiB from the tail cache (slices)', run: read(log) },
    { name: 'read 1 MiB from the page cache', bytes: readBytes, run: read(uncached) },
  ]
}

async function roundTrips(parent: string): Promise<{ readonly parts: Part[]; close(): Promise<void> }> {
  const directory = await mkdtemp(join(parent, 'micro-'))
  const broker = await startRookery()(directory)
  await createTopic(broker.port, 'bench', 1, { 'flush.messages': '9223372036854775807' })
  await createTopic(broker.port, 'synced', 1, { 'flush.messages': '1' })
  const platform = createRealPlatform()
  const options = { platform, host: '127.0.0.1', port: broker.port, clientId: 'bench', timeoutMs: 10_000 }
  const client = await KafkaClient.connect(options)
  const produceTo = (name: string) => async () => {
    const records = [encodeBatch({ recordBytes: 100, batchBytes: 1 }).bytes]
    const body = { acks: -1, timeoutMs: 1000, topicData: [{ name, partitionData: [{ index: 0, records }] }] }
    const { responses } = await client.request(apis.Produce, 9, body)
    if (responses[0]?.partitionResponses[0]?.errorCode !== 0) throw new Error('A record was refused')
  }
  const parts = [
    { name: 'round trip: ApiVersions', run: () => client.request(apis.ApiVersions, 3, {}) },
    { name: 'round trip: one 100 B record', run: produceTo('bench') },
    { name: 'round trip: one 100 B record, fdatasync', run: produceTo('synced') },
  ]
  const close = async () => {
    client.close()
    await broker.stop()
    await rm(directory, { recursive: true, force: true })
  }
  return { parts, close }
}

/** Nanoseconds a call in each round, ascending. */
function timeSync(run: () => unknown, seconds: number): number[] {
  const roundMs = (seconds * 1000) / (rounds + 1)
  let calls = 1
  // The first rounds warm up, and find how many calls fill one.
  for (let tookMs = 0; tookMs < roundMs / 2; calls *= 2) {
    const beganMs = performance.now()
    for (let i = 0; i < calls; i++) run()
    tookMs = performance.now() - beganMs
  }
  const results: number[] = []
  for (let round = 0; round < rounds; round++) {
    const beganMs = performance.now()
    for (let i = 0; i < calls; i++) run()
    results.push(((performance.now() - beganMs) * 1e6) / calls)
  }
  return results.sort((a, b) => a - b)
}

async function timeAsync(run: () => unknown, seconds: number): Promise<number[]> {
  const roundMs = (seconds * 1000) / (rounds + 1)
  const results: number[] = []
  for (let round = 0; round <= rounds; round++) {
    const beganMs = performance.now()
    let calls = 0
    let tookMs = 0
    for (; tookMs < roundMs; tookMs = performance.now() - beganMs) {
      await run()
      calls++
    }
    if (round > 0) results.push((tookMs * 1e6) / calls)
  }
  return results.sort((a, b) => a - b)
}
