import { assert, type LeaderEpoch, type Offset, type ProducerEpoch, type Uuid } from '../../../src/base/index.ts'
import { parseConfig, resolveTopicConfig, type TopicConfig } from '../../../src/config/index.ts'
import {
  type Appended,
  type AppendOptions,
  type AppendResult,
  type HandlePool,
  type LogManager,
  type LogManagerSettings,
  openLogManager,
  type PartitionLog,
  type ReadResult,
} from '../../../src/log/index.ts'
import type { FileHandle, Files, Platform } from '../../../src/platform/index.ts'
import {
  type BatchOptions,
  BatchView,
  buildBatch,
  openRecordBytes,
  type RecordInput,
  readRecords,
} from '../../../src/protocol/index.ts'
import { Metrics, silentLogger } from '../../../src/telemetry/index.ts'

export const directory = '/data/logs'
export const topicId = 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid
export const epoch = 1 as LeaderEpoch

export type Keys = Readonly<Record<string, string | number>>

/** A small generator of its own: the simulation's must not depend on what the test draws. */
export function drawing(seed: number): (end: number) => number {
  let state = (seed + 1) * 0x9e3779b9
  return (end) => {
    state = (Math.imul(state ^ (state >>> 15), 0x85ebca6b) + 0x6d2b79f5) | 0
    return ((state ^ (state >>> 13)) >>> 0) % end
  }
}

/** A topic's settings over the defaults. */
export function topicConfig(keys: Keys = {}): TopicConfig {
  const overrides = new Map(Object.entries(keys).map(([key, value]) => [key, String(value)]))
  return resolveTopicConfig(overrides, parseConfig())
}

export interface OpenOptions {
  readonly keys?: Keys
  readonly settings?: Partial<LogManagerSettings>
  readonly handles?: HandlePool
  readonly metrics?: Metrics
}

export function openLogs(platform: Platform, options: OpenOptions = {}): Promise<LogManager> {
  const { settings, handles, metrics = new Metrics() } = options
  return openLogManager({
    platform,
    logger: silentLogger,
    metrics,
    config: parseConfig({ overrides: { 'log.dirs': directory, ...options.keys } }),
    ...(settings === undefined ? {} : { settings }),
    ...(handles === undefined ? {} : { handles }),
  })
}

export function openLog(logs: LogManager, keys: Keys = {}, partition = 0, topic = 'orders'): Promise<PartitionLog> {
  return logs.getOrCreate({ topic, topicId, partition, config: topicConfig(keys) })
}

/** A batch of `count` records of about `valueBytes` each; its text tells it from others. */
export function batchOf(
  count: number,
  text: string,
  options: Partial<BatchOptions> & { timestamp?: number } = {},
): Buffer {
  const { timestamp = 1_735_689_600_000, ...rest } = options
  const records: RecordInput[] = []
  for (let i = 0; i < count; i++)
    records.push({ timestamp, key: Buffer.from(`k${i}`), value: Buffer.from(`${text}-${i}`) })
  return buildBatch({ records, ...rest })
}

export function idempotent(producerId: number, producerEpoch: number, baseSequence: number): Partial<BatchOptions> {
  return { producerId, producerEpoch: producerEpoch as ProducerEpoch, baseSequence }
}

export async function append(
  log: PartitionLog,
  batch: Buffer,
  options: Partial<AppendOptions> = {},
): Promise<AppendResult> {
  return await log.appendAsLeader(batch, { leaderEpoch: epoch, origin: 'client', ...options })
}

/** Appends at once and expects it to succeed. */
export function appended(log: PartitionLog, batch: Buffer, options: Partial<AppendOptions> = {}): Appended {
  const result = log.appendAsLeader(batch, { leaderEpoch: epoch, origin: 'client', ...options })
  assert(!(result instanceof Promise) && result.ok, `append succeeds at once: ${JSON.stringify(result)}`)
  return result
}

export async function read(
  log: PartitionLog,
  fetchOffset: Offset,
  options: { endOffset?: Offset; maxBytes?: number; minOneBatch?: boolean } = {},
): Promise<Buffer> {
  const { endOffset = Number.MAX_SAFE_INTEGER, maxBytes = 1 << 20, minOneBatch = true } = options
  const result = await log.read({ fetchOffset, endOffset, maxBytes, minOneBatch })
  assert(!('outOfRange' in result), `offset ${fetchOffset} is in range`)
  return taken(result)
}

/** A copy of what was read, which is released. */
function taken(result: ReadResult): Buffer {
  const bytes = Buffer.concat(result.chunks)
  assert(bytes.length === result.sizeBytes, 'a read is as large as it says')
  result.release()
  return bytes
}

/** Every batch of the log from `fetchOffset` on. */
export async function readAll(log: PartitionLog, fetchOffset: Offset = log.logStartOffset): Promise<Buffer[]> {
  const batches: Buffer[] = []
  while (fetchOffset < log.logEndOffset) {
    const bytes = await read(log, fetchOffset)
    assert(bytes.length > 0, `there is a batch at offset ${fetchOffset}`)
    for (let at = 0; at < bytes.length; at += new BatchView(bytes, at).sizeBytes) {
      const view = new BatchView(bytes, at)
      batches.push(Buffer.from(view.bytes))
      fetchOffset = view.lastOffset + 1
    }
  }
  return batches
}

export interface ReadRecord {
  readonly offset: Offset
  readonly timestamp: number
  readonly key: string | null
  readonly value: string | null
}

/** Every record of `batches` that an application would see. */
export function recordsOf(batches: readonly Buffer[]): ReadRecord[] {
  return batches.flatMap((batch) => {
    const view = new BatchView(batch)
    if (view.isControl) return []
    return [...readRecords(view, openRecordBytes(view, 1 << 26))].map(({ offset, timestamp, key, value }) => ({
      offset,
      timestamp,
      key: key?.toString() ?? null,
      value: value?.toString() ?? null,
    }))
  })
}

/** [first offset, last offset] of each batch. */
export function offsetsOf(batches: readonly Buffer[]): [Offset, Offset][] {
  return batches.map((batch) => {
    const view = new BatchView(batch)
    return [view.baseOffset, view.lastOffset]
  })
}

/** `files` with some of its calls replaced; and of each file it opens, some of the handle's. */
export function replaceFiles(
  files: Files,
  calls: Partial<Files>,
  handleCalls: (handle: FileHandle) => Partial<FileHandle> = () => ({}),
): Files {
  const replaced = replace(files, calls)
  return replace(replaced, {
    open: async (path, mode) => replaceHandle(await replaced.open(path, mode)),
    openSync: (path, mode) => replaceHandle(replaced.openSync(path, mode)),
  })

  function replaceHandle(handle: FileHandle): FileHandle {
    return replace(handle, handleCalls(handle))
  }
}

function replace<T extends object>(target: T, calls: Partial<T>): T {
  return new Proxy(target, {
    get: (of, name) => {
      const own = calls[name as keyof T]
      if (own !== undefined) return own
      const value = of[name as keyof T]
      return typeof value === 'function' ? value.bind(of) : value
    },
  })
}
