import { describe, expect, test } from 'vitest'
import type { LeaderEpoch } from '../../../src/base/index.ts'
import type { LogManager, PartitionLog } from '../../../src/log/index.ts'
import type { FileHandle, Files, Platform } from '../../../src/platform/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { BatchView } from '../../../src/protocol/index.ts'
import { deleteRecords, type Model, observe, truncate } from './log-model.ts'
import { batchOf, drawing, type Keys, openLogs, readAll, replaceFiles, topicConfig, topicId } from './support.ts'

const paths = ['/data/a', '/data/b', '/data/c'] as const
const partition = 0
/** Milliseconds for a test: a machine may have much else to do. */
const timeout = 120_000

const newModel = (): Model => ({ batches: [], flushedOffset: 0, logStartOffset: 0, topicId, isBusy: false })

function openAll(platform: Platform): Promise<LogManager> {
  return openLogs(platform, { keys: { 'log.dirs': paths.join() } })
}

function openModelled(logs: LogManager, keys: Keys, model: Model): Promise<PartitionLog> {
  return logs.getOrCreate({ topic: 'orders', topicId: model.topicId, partition, config: topicConfig(keys) })
}

function append(log: PartitionLog, model: Model, text: string, leaderEpoch: LeaderEpoch): void {
  const bytes = batchOf(2, text)
  const result = log.appendAsLeader(bytes, { leaderEpoch, origin: 'client' })
  if (result instanceof Promise || !result.ok) throw new Error(`append is refused: ${JSON.stringify(result)}`)
  model.batches.push({ endOffset: result.lastOffset + 1, bytes })
}

/** Everything that was told durable is there; what else is there was appended, in its place. */
async function checkRecovered(log: PartitionLog, model: Model): Promise<void> {
  expect(log.logEndOffset, 'nothing that was flushed is lost').toBeGreaterThanOrEqual(model.flushedOffset)
  expect(log.logStartOffset, 'what was deleted stays so').toBeGreaterThanOrEqual(model.logStartOffset)
  if (log.logStartOffset === log.logEndOffset) {
    model.batches = []
  } else {
    const kept = model.batches.filter(({ endOffset }) => endOffset <= log.logEndOffset)
    expect(kept.at(-1)?.endOffset ?? 0, 'the log ends where a batch did').toBe(log.logEndOffset)
    const readable = kept.filter(({ endOffset }) => endOffset > log.logStartOffset)
    expect(await readAll(log)).toEqual(readable.map(({ bytes }) => bytes))
    expect(log.latestEpoch).toBe(new BatchView(readable.at(-1)!.bytes).leaderEpoch)
    model.batches = kept
  }
  model.flushedOffset = log.logEndOffset
  model.logStartOffset = log.logStartOffset
}

function homesOf(logs: LogManager): string[] {
  const isHere = ({ partitions }: ReturnType<LogManager['directories']>[number]) =>
    partitions.some((log) => log.topic === 'orders' && log.partition === partition)
  return logs
    .directories()
    .filter(isHere)
    .map(({ path }) => path)
}

/** In each directory, what folders of partitions there are. */
async function foldersOf(files: Files): Promise<string[]> {
  const found: string[] = []
  for (const path of paths) {
    for (const { name, kind } of (await files.list(path)) ?? []) {
      if (kind === 'directory') found.push(`${path}/${name.replace(/\.[^.]+-(future|delete)$/, '.$1')}`)
    }
  }
  return found
}

/** A platform that calls `onCall` before each change of the file system. */
function watched(platform: Platform, onCall: () => void): Platform {
  const before = <Args extends unknown[], Result>(call: (...args: Args) => Result) => {
    return (...args: Args): Result => {
      onCall()
      return call(...args)
    }
  }
  const { files } = platform
  const calls: Partial<Files> = {
    openSync: before((...args) => files.openSync(...args)),
    makeDirectorySync: before((...args) => files.makeDirectorySync(...args)),
    rename: before((...args) => files.rename(...args)),
    renameSync: before((...args) => files.renameSync(...args)),
    remove: before((...args) => files.remove(...args)),
    removeTree: before((...args) => files.removeTree(...args)),
    syncDirectory: before((...args) => files.syncDirectory(...args)),
  }
  const handleCalls = (handle: FileHandle): Partial<FileHandle> => ({
    writeSync: before((...args) => handle.writeSync(...args)),
    write: before((...args) => handle.write(...args)),
    truncate: before((...args) => handle.truncate(...args)),
    sync: before(() => handle.sync()),
  })
  return { ...platform, files: replaceFiles(files, calls, handleCalls) }
}

const keys = { 'internal.segment.bytes': 700, 'index.interval.bytes': 100 }

/** Fills a log, moves it with appends meanwhile, and crashes at the call of that number; then goes on with it. */
async function crashAt(call: number, seed: number, ends: 'crash' | 'kill'): Promise<'crashed' | 'moved'> {
  const simulation = createSimulation({ seed })
  const host = simulation.host('a')
  const model = newModel()
  let calls = Number.NEGATIVE_INFINITY
  const platform = watched(host.platform, () => {
    if (calls++ !== call || !host.isUp) return
    if (ends === 'crash') host.crash()
    else host.kill()
  })
  const logs = await simulation.run(openAll(platform))
  const log = await simulation.run(openModelled(logs, keys, model))
  observe(log, model)
  for (let i = 0; i < 20; i++) append(log, model, `first${i}`, 1 as LeaderEpoch)
  await simulation.run(log.flush())
  await simulation.run(log.deleteRecordsBefore(9, log.logEndOffset))
  model.logStartOffset = 9
  calls = 0
  void logs.move('orders', partition, paths[1]).catch(() => {})
  for (let i = 0; i < 400 && host.isUp; i++) {
    try {
      if (i % 8 === 0 && i < 200) append(log, model, `then${i}`, 1 as LeaderEpoch)
    } catch {
      expect(host.isUp, 'only a crash ends appends').toBe(false)
    }
    await simulation.runFor(0.3).catch(() => {})
  }
  const outcome = host.isUp ? 'moved' : 'crashed'
  if (host.isUp) host.crash()
  await goOn(simulation, host, model)
  return outcome
}

/** The next run finds it all, and ends the move, or has never heard of it. */
async function goOn(simulation: Simulation, host: SimulatedHost, model: Model): Promise<void> {
  const platform = host.restart()
  const logs = await simulation.run(openAll(platform))
  expect(homesOf(logs)).toHaveLength(1)
  const log = await simulation.run(openModelled(logs, keys, model))
  await simulation.run(checkRecovered(log, model))
  observe(log, model)
  for (let i = 0; i < 5; i++) append(log, model, `again${i}`, 2 as LeaderEpoch)
  await simulation.run(log.flush())
  await simulation.runUntil(() => logs.directories().every(({ copies }) => copies.length === 0))
  await simulation.runFor(100)
  const [home = ''] = homesOf(logs)
  expect(await simulation.run(foldersOf(platform.files))).toEqual([`${home}/orders-0`])
  await simulation.run(checkRecovered(log, model))
  host.crash()
  const last = await simulation.run(openAll(host.restart()))
  expect(homesOf(last)).toEqual([home])
  await simulation.run(checkRecovered(await simulation.run(openModelled(last, keys, model)), model))
}

describe.each(['crash', 'kill'] as const)('a %s at each call of a move', (ends) => {
  test('leaves one whole log, which goes on', { timeout }, async () => {
    for (let call = 0; ; call++) {
      try {
        if ((await crashAt(call, call % 7, ends)) === 'moved') {
          expect(call).toBeGreaterThan(60)
          return
        }
      } catch (error) {
        throw new Error(`at call ${call}`, { cause: error })
      }
    }
  })
})

/** Moves there and back, with all else that happens to a log, through crashes. Answers how often it came somewhere else. */
async function runSeed(seed: number, mutate = (platform: Platform) => platform): Promise<number> {
  const simulation = createSimulation({ seed })
  const host = simulation.host('a')
  const draw = drawing(seed)
  const model = newModel()
  const ownKeys = { ...keys, 'flush.messages': draw(3) === 0 ? 1_000_000 : 1 }
  let homes = 0
  let home = ''
  for (let crash = 0; crash <= 4; crash++) {
    const platform = mutate(crash === 0 ? host.platform : host.restart())
    const logs = await simulation.run(openAll(platform))
    model.isBusy = false
    const log = await simulation.run(openModelled(logs, ownKeys, model))
    expect(homesOf(logs)).toHaveLength(1)
    await simulation.run(checkRecovered(log, model))
    let leaderEpoch = (crash * 1000) as LeaderEpoch
    log.assignEpochStart(leaderEpoch)
    observe(log, model)
    const steps = 20 + draw(150)
    for (let step = 0; step < steps; step++) {
      expect(log.isOnline).toBe(true)
      const action = draw(24)
      if (homesOf(logs)[0] !== home) homes++
      home = homesOf(logs)[0]!
      if (action < 3) {
        void logs.move('orders', partition, paths[draw(3)]!).catch(() => {})
      } else if (model.isBusy) {
        await simulation.runFor(1)
      } else if (action === 3) {
        // A log is cut for what another leader has, in an epoch of its own.
        leaderEpoch++
        void truncate(log, model, draw(log.logEndOffset + 1)).catch(() => {})
      } else if (action === 4) {
        const offset = draw(log.flushedOffset + 1)
        if (offset > log.logStartOffset) void deleteRecords(log, model, offset).catch(() => {})
      } else if (action === 5) {
        void logs.enforceRetention().catch(() => {})
      } else if (action === 6) {
        void log.flush().catch(() => {})
      } else if (action === 7 && draw(12) === 0) {
        await simulation.run(logs.close())
        break
      } else {
        append(log, model, `${crash}/${step}${'x'.repeat(draw(150))}`, leaderEpoch)
      }
      if (draw(3) > 0) await simulation.runFor(draw(30) / 10)
    }
    if (draw(2) === 0) host.crash()
    else host.kill()
  }
  return homes
}

describe('a log that is moved to and fro through crashes', () => {
  test.each([0, 1, 2, 3, 4, 13])(
    'loses nothing that was told durable, and nothing that was deleted comes back (seeds %i * 10)',
    { timeout },
    async (group) => {
      let homes = 0
      for (let seed = group * 10; seed < group * 10 + 10; seed++) {
        try {
          homes += await runSeed(seed)
        } catch (error) {
          throw new Error(`seed ${seed}`, { cause: error })
        }
      }
      expect(homes).toBeGreaterThan(20)
    },
  )
})

describe('the check notices', () => {
  async function isCaught(mutate: (platform: Platform) => Platform): Promise<boolean> {
    for (let seed = 0; seed < 150; seed++) {
      try {
        await runSeed(seed, mutate)
      } catch {
        return true
      }
    }
    return false
  }

  test('a copy that comes in the place of its log before it is synced', { timeout }, async () => {
    const unsynced = (platform: Platform): Platform => ({
      ...platform,
      files: replaceFiles(platform.files, {}, (handle) =>
        handle.path.includes('-future/') ? { sync: async () => {} } : {},
      ),
    })
    expect(await isCaught(unsynced)).toBe(true)
  })

  test('log start offsets that are not told to the directory of the copy', { timeout }, async () => {
    const untold = (platform: Platform): Platform => ({
      ...platform,
      files: replaceFiles(platform.files, {
        rename: (from, to) =>
          to.endsWith('log-start-offset-checkpoint') && !to.startsWith(paths[0])
            ? platform.files.remove(from)
            : platform.files.rename(from, to),
      }),
    })
    expect(await isCaught(untold)).toBe(true)
  })
})
