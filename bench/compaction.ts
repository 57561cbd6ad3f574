import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { LeaderEpoch } from '../src/base/index.ts'
import { parseConfig, resolveTopicConfig } from '../src/config/index.ts'
import { type LogManager, openLogManager, type PartitionLog } from '../src/log/index.ts'
import { createRealPlatform } from '../src/platform/index.ts'
import { buildBatch, type Codec } from '../src/protocol/index.ts'
import { Metrics, silentLogger } from '../src/telemetry/index.ts'
import { figure, Table } from './table.ts'

/**
 * compaction: a log with many records of few keys is compacted, in this process.
 *
 * Workload: `records` records of about 100 bytes over 100,000 keys, in batches of 200 or, as coordinators write them, of one.
 * Numbers: MB of segments before and after, the rate at which they are compacted, and the event loop's delay meanwhile
 * (beyond the millisecond at which it is sampled): what any client of a broker waits longer because of a compaction.
 *
 * To compare: MB/s and the delays of two commits on one machine. The largest delay is that of one turn; a busy machine makes it.
 */
export async function compaction({ directory, isFull }: { directory: string; isFull: boolean }): Promise<void> {
  const table = new Table([
    { heading: 'workload', width: 24, left: true },
    { heading: 'MB before', width: 10 },
    { heading: 'MB after', width: 10 },
    { heading: 'seconds', width: 9 },
    { heading: 'MB/s', width: 8 },
    { heading: 'delay p50', width: 10 },
    { heading: 'p99 ms', width: 8 },
    { heading: 'max ms', width: 8 },
  ])
  table.head()
  const records = isFull ? 4_000_000 : 1_000_000
  await run('batches of 200', { records, batchRecords: 200, codec: 'none' })
  await run('batches of 200, lz4', { records, batchRecords: 200, codec: 'lz4' })
  await run('batches of 1', { records: records / 2, batchRecords: 1, codec: 'none' })

  async function run(name: string, workload: Workload): Promise<void> {
    const folder = await mkdtemp(join(directory, 'compaction-'))
    try {
      table.row([name, ...(await measure(folder, workload))])
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }
}

interface Workload {
  readonly records: number
  readonly batchRecords: number
  readonly codec: Codec
}

const keys = 100_000
const megabyte = 1e6
const sampleMs = 1

async function measure(folder: string, workload: Workload): Promise<string[]> {
  const overrides = { 'log.dirs': folder, 'log.cleaner.backoff.ms': '1000000000', 'log.segment.bytes': '8388608' }
  const config = parseConfig({ overrides })
  const logs = await openLogManager({
    platform: createRealPlatform(),
    logger: silentLogger,
    metrics: new Metrics(),
    config,
  })
  const settings = new Map([
    ['cleanup.policy', 'compact'],
    ['flush.messages', '1000000000'],
    ['min.cleanable.dirty.ratio', '0'],
    ['file.delete.delay.ms', '0'],
  ])
  const topicConfig = resolveTopicConfig(settings, config)
  const topicId = createRealPlatform().random.uuid()
  const log = await logs.getOrCreate({ topic: 'compacted', topicId, partition: 0, config: topicConfig })
  await fill(log, workload)
  const before = log.sizeBytes
  const figures = await compact(logs)
  const after = log.sizeBytes
  await logs.close()
  const { seconds, p50, p99, max } = figures
  return [before / megabyte, after / megabyte, seconds, before / megabyte / seconds, p50, p99, max].map(figure)
}

async function fill(log: PartitionLog, { records, batchRecords, codec }: Workload): Promise<void> {
  for (let at = 0; at < records; at += batchRecords) {
    const batch = buildBatch({
      records: Array.from({ length: batchRecords }, (_, i) => ({
        timestamp: Date.now(),
        key: Buffer.from(`key number ${((at + i) * 7919) % keys}`),
        value: Buffer.from(`value number ${at + i} `.padEnd(70, 'x')),
      })),
      codec,
    })
    await log.appendAsLeader(batch, { leaderEpoch: 1 as LeaderEpoch, origin: 'client' })
    if (at % 100_000 === 0) await log.flush()
  }
  await log.flush()
  log.setHighWatermark(log.flushedOffset)
}

async function compact(logs: LogManager): Promise<{ seconds: number; p50: number; p99: number; max: number }> {
  const delay = monitorEventLoopDelay({ resolution: sampleMs })
  const startedMs = performance.now()
  delay.enable()
  await logs.clean()
  delay.disable()
  const milliseconds = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - sampleMs)
  return {
    seconds: (performance.now() - startedMs) / 1000,
    p50: milliseconds(delay.percentile(50)),
    p99: milliseconds(delay.percentile(99)),
    max: milliseconds(delay.max),
  }
}
