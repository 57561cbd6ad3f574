import { describe, expect, test } from 'vitest'
import type { LeaderEpoch, Offset } from '../../../src/base/index.ts'
import type { LogManager, PartitionLog } from '../../../src/log/index.ts'
import type { Platform } from '../../../src/platform/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { buildBatch, type Codec } from '../../../src/protocol/index.ts'
import { directory, drawing, openLog, openLogs, readAll, recordsOf, replaceFiles } from './support.ts'

const crashesPerSeed = 4
/** Milliseconds for a test: a machine may have much else to do. */
const timeout = 120_000
const codecs: readonly Codec[] = ['none', 'none', 'none', 'gzip', 'zstd']

interface Written {
  readonly key: string
  /** Null: a tombstone. */
  readonly value: string | null
  readonly timestamp: number
}

/** What is known of the log from outside. */
interface Model {
  /** By offset, all that was appended and not truncated. */
  readonly records: Map<Offset, Written>
  readonly batchEnds: Set<Offset>
  flushedOffset: Offset
  highWatermark: Offset
  logStartOffset: Offset
  isBusy: boolean
  failure: Error | undefined
}

interface Mutation {
  mutate(platform: Platform): Platform
}

async function runSeed(seed: number, mutation?: Mutation): Promise<{ cleanings: number }> {
  const simulation = createSimulation({ seed })
  const host = simulation.host('a')
  // Slow enough that crashes come in the middle of replacements.
  host.disk.syncUs = [200, 5000]
  const draw = drawing(seed)
  const model: Model = {
    records: new Map(),
    batchEnds: new Set([0]),
    flushedOffset: 0,
    highWatermark: 0,
    logStartOffset: 0,
    isBusy: false,
    failure: undefined,
  }
  const deleteRetentionMs = [0, 20, 1e9][draw(3)]!
  const keys = {
    'cleanup.policy': 'compact',
    'internal.segment.bytes': 400 + draw(1000),
    'index.interval.bytes': draw(300),
    'min.cleanable.dirty.ratio': 0,
    'delete.retention.ms': deleteRetentionMs,
    'file.delete.delay.ms': draw(20),
  }
  const brokerKeys = {
    'log.cleaner.backoff.ms': 5 + draw(20),
    'log.cleaner.io.buffer.size': 1 + draw(20_000),
    'log.cleaner.io.max.bytes.per.second': draw(2) === 0 ? 1e12 : 100_000,
  }
  let cleanings = 0
  for (let crash = 0; crash <= crashesPerSeed; crash++) {
    const platform = mutation?.mutate(host.platform) ?? host.platform
    const logs = await simulation.run(openLogs(platform, { keys: brokerKeys }))
    const log = await simulation.run(openLog(logs, keys))
    model.isBusy = false
    await simulation.run(checkRecovered(log, model))
    observe(log, model)
    log.setHighWatermark(model.highWatermark)
    const held = await work(simulation, host, logs, log, model, draw, deleteRetentionMs, (crash + 1) as LeaderEpoch)
    if (held < model.records.size) cleanings++
    if (crash < crashesPerSeed) {
      if (draw(2) === 0) await runUntilReplacing(simulation, host, draw)
      host.crash()
      host.restart()
    }
  }
  return { cleanings }
}

/** To a moment between the first step and the last of putting a compacted segment in the place of others, if it comes soon. */
async function runUntilReplacing(
  simulation: Simulation,
  host: SimulatedHost,
  draw: (end: number) => number,
): Promise<void> {
  const isReplacing = () => {
    const folder = host.disk.find(`${directory}/orders-0`)
    return folder?.kind === 'directory' && [...folder.entries.keys()].some((name) => name.endsWith('.swap'))
  }
  for (let i = 0; i < 100 && !isReplacing(); i++) await simulation.runFor(0.5)
  await simulation.runFor(draw(100) / 10)
}

function observe(log: PartitionLog, model: Model): void {
  log.setListener({
    onFlushed: (flushedOffset) => {
      model.flushedOffset = flushedOffset
    },
    onFailed: (error) => {
      model.failure = error
    },
    onLogStartMoved: () => {},
  })
}

/** Does this and that until a moment that is drawn; answers how many records there were to read last. */
async function work(
  simulation: Simulation,
  host: SimulatedHost,
  logs: LogManager,
  log: PartitionLog,
  model: Model,
  draw: (end: number) => number,
  deleteRetentionMs: number,
  leaderEpoch: LeaderEpoch,
): Promise<number> {
  let held = model.records.size
  const steps = 20 + draw(120)
  for (let step = 0; step < steps; step++) {
    if (!log.isOnline) throw new Error('the log is offline', { cause: model.failure })
    const action = draw(24)
    if (model.isBusy) {
      await simulation.runFor(1)
    } else if (action === 0) {
      void logs.clean().catch(() => {})
    } else if (action === 1) {
      void logs.enforceRetention().catch(() => {})
    } else if (action === 2) {
      const found = await simulation.run(check(log, model, host.platform.clock.now() - deleteRetentionMs))
      held = found.size
    } else if (action === 3 && draw(3) === 0) {
      void truncate(log, model, model.highWatermark + draw(log.logEndOffset - model.highWatermark + 1)).catch(() => {})
    } else if (action === 4 && draw(4) === 0) {
      const offset = draw(model.highWatermark + 1)
      model.logStartOffset = Math.max(model.logStartOffset, offset)
      await simulation.run(log.deleteRecordsBefore(offset, model.highWatermark))
    } else if (action === 5 && draw(8) === 0) {
      await simulation.run(logs.close())
      return held
    } else {
      append(log, model, draw, host.platform.clock.now(), leaderEpoch)
    }
    if (draw(4) > 0 && !model.isBusy) {
      const ends = [...model.batchEnds].filter((end) => end >= model.highWatermark && end <= model.flushedOffset)
      if (ends.length > 0) model.highWatermark = ends[draw(ends.length)]!
      log.setHighWatermark(model.highWatermark)
    }
    if (draw(3) > 0) await simulation.runFor(draw(30) / 10)
  }
  return held
}

function append(
  log: PartitionLog,
  model: Model,
  draw: (end: number) => number,
  nowMs: number,
  leaderEpoch: LeaderEpoch,
): void {
  const records: Written[] = Array.from({ length: 1 + draw(4) }, () => ({
    // Some keys come again and again, others have their last record far back.
    key: draw(4) === 0 ? `rare${draw(100)}` : `k${draw(7)}`,
    value: draw(4) === 0 ? null : `${draw(1e6)}${'x'.repeat(draw(80))}`,
    timestamp: nowMs + draw(5),
  }))
  const batch = buildBatch({
    records: records.map(({ key, value, timestamp }) => ({
      key: Buffer.from(key),
      value: value === null ? null : Buffer.from(value),
      timestamp,
    })),
    codec: codecs[draw(codecs.length)]!,
    leaderEpoch,
    baseOffset: log.logEndOffset,
  })
  const baseOffset = log.logEndOffset
  // As a follower: an append of packed records as a leader would not be at once.
  log.appendAsFollower(batch)
  for (const [i, record] of records.entries()) model.records.set(baseOffset + i, record)
  model.batchEnds.add(log.logEndOffset)
}

/** Cuts the log, never below what is committed; until that is done, either state of it may be found after a crash. */
async function truncate(log: PartitionLog, model: Model, offset: Offset): Promise<void> {
  model.isBusy = true
  const kept = [...model.batchEnds].filter((end) => end <= offset).reduce((a, b) => Math.max(a, b), 0)
  model.flushedOffset = Math.min(model.flushedOffset, kept)
  log.setListener(undefined)
  await log.truncateTo(offset)
  if (log.logEndOffset > kept && log.logEndOffset > offset) throw new Error('the log was not truncated')
  forget(model, log.logEndOffset)
  model.flushedOffset = log.flushedOffset
  observe(log, model)
  model.isBusy = false
}

function forget(model: Model, endOffset: Offset): void {
  for (const offset of model.records.keys()) if (offset >= endOffset) model.records.delete(offset)
  for (const end of model.batchEnds) if (end > endOffset) model.batchEnds.delete(end)
  model.flushedOffset = endOffset
}

async function checkRecovered(log: PartitionLog, model: Model): Promise<void> {
  expect(log.logEndOffset, 'nothing that was flushed is lost').toBeGreaterThanOrEqual(model.flushedOffset)
  expect(model.batchEnds, 'the log ends where a batch did').toContain(log.logEndOffset)
  forget(model, log.logEndOffset)
  expect(log.logStartOffset, 'only DeleteRecords moves the log start').toBe(model.logStartOffset)
  model.highWatermark = Math.max(model.logStartOffset, Math.min(model.highWatermark, log.logEndOffset))
  await check(log, model, Number.POSITIVE_INFINITY)
}

/**
 * What can be read is what was appended, in its place; of each key the last record is there, but for tombstones from before
 * `droppedBeforeMs`, and then there is none of that key.
 */
async function check(log: PartitionLog, model: Model, droppedBeforeMs: number): Promise<ReadonlyMap<Offset, Written>> {
  const found = new Map<Offset, Written>()
  const last = new Map<string, Offset>()
  const logStartOffset = Math.max(log.logStartOffset, model.logStartOffset)
  for (const [offset, { key }] of model.records) if (offset < log.logEndOffset) last.set(key, offset)
  let previous = -1
  for (const { offset, key, value, timestamp } of recordsOf(await readAll(log))) {
    expect(offset, 'offsets grow').toBeGreaterThan(previous)
    previous = offset
    expect({ key, value, timestamp }, `record at ${offset}`).toEqual(model.records.get(offset))
    found.set(offset, { key: key!, value, timestamp })
  }
  for (const [key, offset] of last) {
    if (offset < logStartOffset || found.has(offset)) continue
    const record = model.records.get(offset)!
    expect(record.value, `last record of ${key}, at ${offset}`).toBeNull()
    expect(record.timestamp, `tombstone of ${key} at ${offset}`).toBeLessThan(droppedBeforeMs + 10)
    const older = [...found].filter(([at, other]) => other.key === key && at < offset && at >= logStartOffset)
    expect(older, `records of ${key} below its tombstone at ${offset}`).toEqual([])
  }
  return found
}

describe('a log that is compacted through power losses', () => {
  test.each(Array.from({ length: 10 }, (_, group) => group))(
    'keeps the last record of every key (seeds %i * 5)',
    { timeout },
    async (group) => {
      let cleanings = 0
      for (let seed = group * 5; seed < group * 5 + 5; seed++) {
        try {
          cleanings += (await runSeed(seed)).cleanings
        } catch (error) {
          throw new Error(`seed ${seed}`, { cause: error })
        }
      }
      expect(cleanings).toBeGreaterThan(0)
    },
  )
})

describe('the check notices', () => {
  /** Whether one of many seeds notices the mutation. */
  async function isCaught(mutation: Mutation): Promise<boolean> {
    for (let seed = 0; seed < 150; seed++) {
      try {
        await runSeed(seed, mutation)
      } catch {
        return true
      }
    }
    return false
  }

  test('a compacted segment that replaces others before it is synced', { timeout }, async () => {
    const mutation: Mutation = {
      mutate: (platform) => ({
        ...platform,
        files: replaceFiles(platform.files, {}, (handle) =>
          handle.path.endsWith('.cleaned') ? { sync: async () => {} } : {},
        ),
      }),
    }
    expect(await isCaught(mutation)).toBe(true)
  })

  test('a replacement that a start does not finish', { timeout }, async () => {
    const mutation: Mutation = {
      mutate: (platform) => ({
        ...platform,
        files: replaceFiles(platform.files, {
          list: async (path) => (await platform.files.list(path))?.filter(({ name }) => !name.endsWith('.swap')),
        }),
      }),
    }
    expect(await isCaught(mutation)).toBe(true)
  })
})
