import { describe, expect, test } from 'vitest'
import { type LeaderEpoch, type Offset, type Uuid, uuidFromBytes } from '../../../src/base/index.ts'
import { HandlePool, type LogManager, type PartitionLog } from '../../../src/log/index.ts'
import type { Platform } from '../../../src/platform/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { BatchView } from '../../../src/protocol/index.ts'
import { deleteRecords, type Model, observe, truncate } from './log-model.ts'
import { batchOf, drawing, type Keys, openLog, openLogs, readAll, replaceFiles, topicConfig } from './support.ts'

/** Crashes in one run, each at a random moment of random work. */
const crashesPerSeed = 4
const partitions = 2

/** What a wrong program would do differently. */
interface Mutation {
  mutate(platform: Platform): { readonly platform: Platform; readonly handles?: HandlePool }
}

function topicIdOf(partition: number, generation: number): Uuid {
  return uuidFromBytes(Buffer.from(`${partition}/${generation}`.padEnd(16, '.')))
}

async function runSeed(seed: number, mutation?: Mutation): Promise<void> {
  const simulation = createSimulation({ seed })
  const host = simulation.host('a')
  const draw = drawing(seed)
  const models = Array.from(
    { length: partitions },
    (_, i): Model => ({
      batches: [],
      flushedOffset: 0,
      logStartOffset: 0,
      topicId: topicIdOf(i, 0),
      isBusy: false,
    }),
  )
  const segmentKeys = { 'internal.segment.bytes': 900 + draw(2000), 'index.interval.bytes': draw(400) }
  const keys = { ...segmentKeys, 'flush.messages': draw(3) === 0 ? 1_000_000 : 1 }
  let leaderEpoch = 0
  for (let crash = 0; crash <= crashesPerSeed; crash++) {
    const { platform, handles } = mutation?.mutate(host.platform) ?? { platform: host.platform }
    const logs = await simulation.run(openLogs(platform, handles === undefined ? {} : { handles }))
    leaderEpoch++
    for (const [partition, model] of models.entries()) {
      model.isBusy = false
      const log = await simulation.run(openModelled(logs, keys, partition, model))
      await simulation.run(checkRecovered(log, model))
      log.assignEpochStart(leaderEpoch as LeaderEpoch)
      observe(log, model)
    }
    if (crash === crashesPerSeed) break
    await work(simulation, host, logs, keys, models, draw, leaderEpoch as LeaderEpoch, crash * 1000)
    host.crash()
    host.restart()
  }
}

async function openModelled(logs: LogManager, keys: Keys, partition: number, model: Model): Promise<PartitionLog> {
  const log = await logs.getOrCreate({
    topic: 'orders',
    topicId: model.topicId,
    partition,
    config: topicConfig(keys),
  })
  return log
}

/** Deletes the partition and makes one of a new topic in its place. */
async function replace(logs: LogManager, keys: Keys, model: Model, partition: number): Promise<void> {
  model.isBusy = true
  model.flushedOffset = 0
  model.logStartOffset = 0
  logs.get('orders', partition)?.setListener(undefined)
  await logs.delete('orders', partition)
  model.batches = []
  model.topicId = topicIdOf(
    partition,
    Number.parseInt(Buffer.from(model.topicId, 'base64url').toString().slice(2), 10) + 1,
  )
  observe(await openModelled(logs, keys, partition, model), model)
  model.isBusy = false
}

/** Appends, flushes, truncates, deletes and closes, until a moment that is drawn. */
async function work(
  simulation: Simulation,
  host: SimulatedHost,
  logs: LogManager,
  keys: Keys,
  models: readonly Model[],
  draw: (end: number) => number,
  leaderEpoch: LeaderEpoch,
  firstBatch: number,
): Promise<void> {
  const steps = 1 + draw(60)
  for (let step = 0; step < steps; step++) {
    const partition = draw(models.length)
    const model = models[partition]!
    const log = logs.get('orders', partition)
    if (model.isBusy || log === undefined) continue
    if (!log.isOnline) break
    const action = draw(22)
    if (action === 0) {
      void log.flush().catch(() => {})
    } else if (action === 1) {
      const offset = draw(log.flushedOffset + 1)
      if (offset > log.logStartOffset) void deleteRecords(log, model, offset).catch(() => {})
    } else if (action === 2) {
      void logs.enforceRetention().catch(() => {})
    } else if (action === 3 && draw(8) === 0) {
      await simulation.run(logs.close().catch(() => {}))
      return
    } else if (action === 4 && draw(2) === 0 && log.logEndOffset > 0) {
      void truncate(log, model, draw(log.logEndOffset)).catch(() => {})
    } else if (action === 5 && draw(6) === 0) {
      void replace(logs, keys, model, partition).catch(() => {})
    } else {
      const bytes = batchOf(1 + draw(4), `${firstBatch + step}${'x'.repeat(draw(150))}`)
      const result = log.appendAsLeader(bytes, { leaderEpoch, origin: 'client' })
      if (result instanceof Promise || !result.ok) throw new Error(`append is refused: ${JSON.stringify(result)}`)
      model.batches.push({ endOffset: result.lastOffset + 1, bytes })
    }
    if (draw(3) > 0) await simulation.runFor(draw(20) / 10)
  }
  if (host.isUp) await simulation.runFor(draw(30) / 10)
}

function setEmpty(model: Model, offset: Offset): void {
  model.batches = []
  model.flushedOffset = offset
  model.logStartOffset = offset
}

/** Everything that was told durable is there; what else is there was appended, in its place. */
async function checkRecovered(log: PartitionLog, model: Model): Promise<void> {
  expect(log.logEndOffset).toBeGreaterThanOrEqual(model.flushedOffset)
  expect(log.logStartOffset).toBeGreaterThanOrEqual(model.logStartOffset)
  expect(log.flushedOffset).toBe(log.logEndOffset)
  if (log.logStartOffset === log.logEndOffset) return setEmpty(model, log.logEndOffset)
  const kept = model.batches.filter((batch) => batch.endOffset <= log.logEndOffset)
  expect(kept.at(-1)?.endOffset ?? 0).toBe(log.logEndOffset)
  const readable = kept.filter((batch) => batch.endOffset > log.logStartOffset)
  expect(await readAll(log)).toEqual(readable.map((batch) => batch.bytes))
  const last = readable.at(-1)
  if (last !== undefined) expect(log.latestEpoch).toBe(new BatchView(last.bytes).leaderEpoch)
  model.batches = kept
  model.flushedOffset = log.logEndOffset
  model.logStartOffset = log.logStartOffset
}

test('what a start after a kill found in the page cache outlives a power loss', async () => {
  for (let seed = 0; seed < 30; seed++) {
    const simulation = createSimulation({ seed })
    const host = simulation.host('a')
    const lockDirectory = async () => ({ release: async () => {} })
    const platform = { ...host.platform, files: replaceFiles(host.platform.files, { lockDirectory }) }
    const keys = { 'flush.messages': 1_000_000, 'internal.segment.bytes': 100_000 }
    const killed = await simulation.run(openLogs(platform))
    const before = await simulation.run(openLog(killed, keys))
    const bytes = batchOf(2, 'v')
    before.appendAsLeader(bytes, { leaderEpoch: 3 as LeaderEpoch, origin: 'client' })
    // The first process does nothing any more, and has synced nothing.
    const logs = await simulation.run(openLogs(platform))
    expect(logs.get('orders', 0)?.flushedOffset).toBe(2)
    host.crash()
    host.restart()
    const again = await simulation.run(openLogs(host.platform))
    const log = again.get('orders', 0)
    expect(log?.logEndOffset, `seed ${seed}`).toBe(2)
    expect(log?.latestEpoch).toBe(3)
    expect(await simulation.run(readAll(log!))).toEqual([bytes])
  }
})

describe('after a power loss at any moment', () => {
  test.each(Array.from({ length: 20 }, (_, group) => group))(
    'nothing told durable is lost (seeds %i * 10)',
    async (group) => {
      for (let seed = group * 10; seed < group * 10 + 10; seed++) {
        try {
          await runSeed(seed)
        } catch (error) {
          throw new Error(`seed ${seed}`, { cause: error })
        }
      }
    },
  )
})

/** How many of the first seeds notice the mutation. */
async function caught(mutation: Mutation, seeds: number): Promise<number> {
  let count = 0
  for (let seed = 0; seed < seeds; seed++) {
    try {
      await runSeed(seed, mutation)
    } catch {
      count++
    }
  }
  return count
}

describe('the check notices', () => {
  test('a flushed offset that moves before the sync', async () => {
    const mutation: Mutation = {
      mutate: (platform) => ({
        platform: { ...platform, files: replaceFiles(platform.files, {}, () => ({ sync: async () => {} })) },
      }),
    }
    expect(await caught(mutation, 20)).toBeGreaterThan(0)
  })

  test('a directory sync left out', async () => {
    const mutation: Mutation = {
      mutate: (platform) => ({
        platform: { ...platform, files: replaceFiles(platform.files, { syncDirectory: async () => {} }) },
      }),
    }
    expect(await caught(mutation, 20)).toBeGreaterThan(0)
  })

  test('a handle with unsynced bytes that is evicted', async () => {
    class CarelessPool extends HandlePool {
      protected override mayClose(): boolean {
        return true
      }
    }
    const mutation: Mutation = {
      mutate: (platform) => ({ platform, handles: new CarelessPool(platform.files, { maxOpen: 1 }) }),
    }
    expect(await caught(mutation, 20)).toBeGreaterThan(0)
  })
})

describe('A log that an ended process left behind', () => {
  test('keeps what is acknowledged after the next start through a power loss', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const simulation = createSimulation({ seed })
      const host = simulation.host('a')
      const first = await simulation.run(openLogs(host.platform))
      const unsynced = await simulation.run(openLog(first, { 'flush.messages': 1_000_000 }))
      unsynced.appendAsLeader(batchOf(1, 'first'), { leaderEpoch: 1 as LeaderEpoch, origin: 'client' })
      host.kill()

      const second = await simulation.run(openLogs(host.restart()))
      const log = await simulation.run(openLog(second))
      log.appendAsLeader(batchOf(1, 'second'), { leaderEpoch: 2 as LeaderEpoch, origin: 'client' })
      await simulation.run(log.flush())
      host.crash()

      const third = await simulation.run(openLogs(host.restart()))
      const found = await simulation.run(openLog(third))
      expect(found.logEndOffset, `seed ${seed}`).toBe(2)
    }
  })

  test('of which a write failed keeps what was appended before when the disk has room again', async () => {
    const simulation = createSimulation({ seed: 1 })
    const host = simulation.host('a')
    const logs = await simulation.run(openLogs(host.platform, { settings: { diskFullProbeIntervalMs: 100 } }))
    const keys = { 'flush.messages': 1_000_000, 'internal.segment.bytes': 150 }
    const log = await simulation.run(openLog(logs, keys))
    const options = { leaderEpoch: 1 as LeaderEpoch, origin: 'client' } as const
    log.appendAsLeader(batchOf(1, 'first'), options)
    // The roll asks for a flush, which writes indexes: those do not fit.
    host.disk.failNext({ operation: 'write', path: /index$|snapshot$/, code: 'ENOSPC' })
    log.appendAsLeader(batchOf(1, 'second'), options)
    await simulation.runUntil(() => !log.isOnline)
    await simulation.runUntil(() => logs.get('orders', 0)?.isOnline === true)
    expect(logs.get('orders', 0)?.logEndOffset).toBe(2)
    expect(logs.get('orders', 0)?.flushedOffset).toBe(2)
  })
})
