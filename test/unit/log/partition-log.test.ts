import { beforeEach, describe, expect, test } from 'vitest'
import type { LeaderEpoch, Offset } from '../../../src/base/index.ts'
import { type LogManager, type PartitionLog, StorageError } from '../../../src/log/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { BatchView, buildBatch } from '../../../src/protocol/index.ts'
import { appended, batchOf, directory, type Keys, offsetsOf, openLog, openLogs, read, readAll } from './support.ts'

let simulation: Simulation
let host: SimulatedHost
let logs: LogManager
let log: PartitionLog

const folder = `${directory}/orders-0`

async function start(keys: Keys = {}, tailCacheBytes = 0): Promise<void> {
  logs = await simulation.run(openLogs(host.platform, { settings: { tailCacheBytes } }))
  log = await simulation.run(openLog(logs, keys))
}

async function restart(keys: Keys = {}): Promise<void> {
  await simulation.run(logs.close())
  await start(keys)
}

async function crash(keys: Keys = {}): Promise<void> {
  host.crash()
  host.restart()
  await start(keys)
}

beforeEach(() => {
  simulation = createSimulation({ seed: 11 })
  host = simulation.host('a')
})

const nowMs = () => host.platform.clock.now()

/** `count` batches of two records. */
function fill(count: number, text = 'v'): void {
  for (let i = 0; i < count; i++) appended(log, batchOf(2, `${text}${i}`, { timestamp: nowMs() }))
}

async function names(extension: string): Promise<string[]> {
  const entries = (await simulation.run(host.platform.files.list(folder))) ?? []
  return entries.map(({ name }) => name).filter((name) => name.endsWith(extension))
}

const allOffsets = async () => offsetsOf(await simulation.run(readAll(log)))

function pairs(from: number, to: number): [Offset, Offset][] {
  return Array.from({ length: (to - from) / 2 }, (_, i) => [from + i * 2, from + i * 2 + 1])
}

describe('appending', () => {
  test('a partition has no folder before its first append', async () => {
    await start()
    expect(await simulation.run(host.platform.files.list(folder))).toBeUndefined()
    fill(1)
    expect(await names('')).toEqual(['00000000000000000000.log', 'partition.metadata'])
  })

  test('stamps base offset and leader epoch where the batch lies', async () => {
    await start()
    fill(1)
    const batch = batchOf(3, 'v')
    expect(appended(log, batch, { leaderEpoch: 4 as LeaderEpoch })).toMatchObject({ baseOffset: 2, lastOffset: 4 })
    const view = new BatchView(batch)
    expect([view.baseOffset, view.leaderEpoch]).toEqual([2, 4])
    expect(log.latestEpoch).toBe(4)
  })

  test('flushed offset and acknowledgement follow the sync, and one sync covers all that waited', async () => {
    await start()
    const flushed: Offset[] = []
    log.setListener({
      onFlushed: (offset) => void flushed.push(offset),
      onFailed: () => {},
      onLogStartMoved: () => {},
    })
    host.disk.syncUs = [1000, 1000]
    fill(1)
    await simulation.run(log.flush())
    fill(1)
    await simulation.runFor(0.5)
    fill(5)
    await simulation.run(log.flush())
    expect(flushed).toEqual([2, 4, 14])
  })

  test('with flush.messages above 1 the sync comes after so many records, or after flush.ms', async () => {
    await start({ 'flush.messages': 4, 'flush.ms': 1000 })
    expect(log.acksWaitForFlush).toBe(false)
    fill(1)
    await simulation.runFor(500)
    expect(log.flushedOffset).toBe(0)
    fill(1)
    await simulation.runFor(100)
    expect(log.flushedOffset).toBe(4)
    fill(1)
    await simulation.runFor(900)
    expect(log.flushedOffset).toBe(4)
    await simulation.runFor(200)
    expect(log.flushedOffset).toBe(6)
  })

  test('a follower keeps offsets and epochs, over segments, in few writes', async () => {
    await start({}, 1 << 20)
    fill(3)
    log.assignEpochStart(2 as LeaderEpoch)
    for (let i = 0; i < 3; i++) appended(log, batchOf(2, 'w'), { leaderEpoch: 2 as LeaderEpoch })
    const batches = await simulation.run(readAll(log))
    const follower = await simulation.run(openLog(logs, { 'internal.segment.bytes': 300 }, 1))
    follower.appendAsFollower(Buffer.concat(batches))
    expect(await simulation.run(readAll(follower))).toEqual(batches)
    expect(follower.latestEpoch).toBe(2)
    expect(follower.endOffsetForEpoch(1 as LeaderEpoch)).toEqual({ leaderEpoch: 1, endOffset: 6 })
    expect(() => follower.appendAsFollower(batches[0]!)).toThrow('does not continue the log')
    const torn = Buffer.from(batches[0]!)
    torn[70]! ^= 1
    torn.writeBigInt64BE(12n)
    expect(() => follower.appendAsFollower(torn)).toThrow('corrupt (crc)')
    expect(follower.logEndOffset).toBe(12)
  })
})

describe('rolling', () => {
  test('by size, before a segment would grow past segment.bytes', async () => {
    await start({ 'internal.segment.bytes': 400 })
    fill(10)
    await simulation.run(log.flush())
    for (const name of await names('.log')) {
      expect((await simulation.run(host.platform.files.stat(`${folder}/${name}`)))?.sizeBytes).toBeLessThanOrEqual(400)
    }
    expect((await names('.log')).length).toBeGreaterThan(2)
    expect(await allOffsets()).toEqual(pairs(0, 20))
  })

  test('by time, from the first batch on', async () => {
    await start({ 'segment.ms': 1000 })
    fill(2)
    await simulation.runFor(900)
    fill(1)
    expect(await names('.log')).toHaveLength(1)
    await simulation.runFor(200)
    fill(1)
    expect(await names('.log')).toEqual(['00000000000000000000.log', '00000000000000000006.log'])
    await restart({ 'segment.ms': 1000 })
    await simulation.runFor(1100)
    fill(1)
    expect(await names('.log')).toHaveLength(3)
  })

  test('when an index is full', async () => {
    await start({ 'segment.index.bytes': 40, 'index.interval.bytes': 0 })
    fill(12)
    expect((await names('.log')).length).toBeGreaterThan(1)
    await restart()
    for (const name of await names('.index')) {
      expect((await simulation.run(host.platform.files.stat(`${folder}/${name}`)))?.sizeBytes).toBeLessThanOrEqual(40)
    }
    expect(await allOffsets()).toEqual(pairs(0, 24))
  })

  test('when a relative offset would not fit 32 bits', async () => {
    await start()
    const batch = batchOf(1, 'v')
    log.appendAsFollower(batch)
    const far = Buffer.from(batch)
    far.writeBigInt64BE(2n ** 31n + 1n)
    log.appendAsFollower(far)
    expect(await names('.log')).toEqual(['00000000000000000000.log', '00000000002147483649.log'])
    expect(offsetsOf([await simulation.run(read(log, 5))])).toEqual([[2 ** 31 + 1, 2 ** 31 + 1]])
  })
})

describe.each([
  ['from the tail cache', 4 << 20],
  ['from files', 0],
])('reading %s', (_, tailCacheBytes) => {
  beforeEach(async () => {
    await start({ 'internal.segment.bytes': 1000, 'index.interval.bytes': 200 }, tailCacheBytes)
    fill(40)
  })

  test('gives the batch that holds the offset, whole', async () => {
    for (let offset = 0; offset < 80; offset++) {
      const bytes = await simulation.run(read(log, offset, { maxBytes: 1 }))
      expect(offsetsOf([bytes])).toEqual([[offset - (offset % 2), offset - (offset % 2) + 1]])
    }
  })

  test('ends at batch ends, within maxBytes', async () => {
    const size = new BatchView(await simulation.run(read(log, 4, { maxBytes: 1 }))).sizeBytes
    for (const [maxBytes, batches] of [
      [size * 2, 2],
      [size * 3 - 1, 2],
      [size, 1],
      [size - 1, 0],
    ] as const) {
      const bytes = await simulation.run(read(log, 4, { maxBytes, minOneBatch: false }))
      expect(bytes.length).toBe(batches * size)
    }
    expect((await simulation.run(read(log, 4, { maxBytes: 1, minOneBatch: true }))).length).toBe(size)
  })

  test('stops at the end offset', async () => {
    expect(offsetsOf([await simulation.run(read(log, 10, { endOffset: 12 }))])).toEqual([[10, 11]])
    expect((await simulation.run(read(log, 10, { endOffset: 11 }))).length).toBe(0)
    expect((await simulation.run(read(log, 10, { endOffset: 10 }))).length).toBe(0)
    expect((await simulation.run(read(log, 80))).length).toBe(0)
  })

  test('tells offsets out of range', () => {
    for (const fetchOffset of [-1, 81, Number.MAX_SAFE_INTEGER]) {
      expect(log.read({ fetchOffset, endOffset: 80, maxBytes: 100, minOneBatch: true })).toEqual({
        outOfRange: true,
        logStartOffset: 0,
        logEndOffset: 80,
      })
    }
  })

  test('gives everything in order', async () => {
    expect(await allOffsets()).toEqual(pairs(0, 80))
  })
})

test('a batch larger than a read buffer is read whole', async () => {
  await start({ 'max.message.bytes': 4 << 20, 'segment.bytes': 8 << 20 })
  const batch = buildBatch({ records: [{ timestamp: nowMs(), value: Buffer.alloc(3 << 20, 'x') }] })
  appended(log, batch)
  fill(1)
  expect((await simulation.run(read(log, 0, { maxBytes: 1000 }))).equals(batch)).toBe(true)
  await crash()
  expect(log.logEndOffset).toBeGreaterThanOrEqual(0)
})

describe('looking for a time', () => {
  beforeEach(async () => {
    await start({ 'internal.segment.bytes': 700, 'index.interval.bytes': 100 })
    const base = nowMs() - 100_000
    for (let i = 0; i < 20; i++) {
      const records = [0, 1, 2].map((k) => ({ timestamp: base + i * 10 + k, value: Buffer.from(`v${i}-${k}`) }))
      appended(log, buildBatch({ records, codec: i % 3 === 0 ? 'gzip' : 'none' }))
    }
  })

  const find = async (timestamp: number, end = 60) => await simulation.run(log.offsetForTimestamp(timestamp, end))

  test('finds the first record that is as young, in any segment, packed or not', async () => {
    const base = nowMs() - 100_000 - Math.floor(simulation.nowMs)
    const first = (await find(0))!.timestamp
    expect(base).toBeLessThanOrEqual(first)
    for (let i = 0; i < 20; i++) {
      for (const k of [0, 1, 2]) {
        const timestamp = first + i * 10 + k
        expect(await find(timestamp)).toEqual({ timestamp, offset: i * 3 + k, leaderEpoch: 1 })
      }
      const between = i === 19 ? undefined : { timestamp: first + (i + 1) * 10, offset: (i + 1) * 3, leaderEpoch: 1 }
      expect(await find(first + i * 10 + 5)).toEqual(between)
    }
    expect(await find(first + 100, 20)).toBeUndefined()
  })

  test('finds the largest timestamp, below an end', async () => {
    const first = (await find(0))!.timestamp
    expect(await simulation.run(log.offsetOfMaxTimestamp(60))).toMatchObject({ offset: 59, timestamp: first + 192 })
    expect(await simulation.run(log.offsetOfMaxTimestamp(30))).toMatchObject({ offset: 29, timestamp: first + 92 })
    expect(await simulation.run(log.offsetOfMaxTimestamp(0))).toBeUndefined()
    appended(log, batchOf(3, 'old', { timestamp: first - 1000 }))
    expect(await simulation.run(log.offsetOfMaxTimestamp(63))).toMatchObject({ offset: 59 })
    await simulation.run(log.deleteRecordsBefore(31, 63))
    expect(await find(0)).toMatchObject({ offset: 31, timestamp: first + 101 })
  })

  test('gives the same after a restart', async () => {
    const before = await find(nowMs() - 99_900)
    await restart()
    expect(await find(before!.timestamp)).toEqual(before)
  })
})

test('finds the largest timestamp of a deleted record too, as long as its segment is there', async () => {
  await start()
  const timestamp = nowMs() - 1000
  appended(log, batchOf(3, 'young', { timestamp }))
  appended(log, batchOf(3, 'old', { timestamp: timestamp - 1000 }))
  for (const start of [2, 4, 6]) {
    await simulation.run(log.deleteRecordsBefore(start, 6))
    expect(await simulation.run(log.offsetOfMaxTimestamp(6))).toMatchObject({ timestamp, leaderEpoch: 1 })
  }
  expect(await simulation.run(log.offsetForTimestamp(timestamp, 6))).toBeUndefined()
})

describe('truncation', () => {
  test.each([0, 1, 2, 7, 8, 19, 20, 38, 39, 40, 50])('to %i keeps the batches below the offset', async (offset) => {
    await start({ 'internal.segment.bytes': 600, 'index.interval.bytes': 100 }, 1 << 20)
    fill(20)
    await simulation.run(log.flush())
    await simulation.run(log.truncateTo(offset))
    const end = Math.min(40, offset - (offset % 2))
    expect(log.logEndOffset).toBe(end)
    expect(log.flushedOffset).toBe(end)
    expect(await allOffsets()).toEqual(pairs(0, end))
    fill(3)
    expect(await allOffsets()).toEqual(pairs(0, end + 6))
    await simulation.run(log.flush())
    await crash()
    expect(await allOffsets()).toEqual(pairs(0, end + 6))
  })

  test('is not mistaken for damage when power is lost right after it', async () => {
    await start({ 'internal.segment.bytes': 600 })
    fill(20)
    await simulation.run(log.flush())
    await restart({ 'internal.segment.bytes': 600 })
    await simulation.run(log.truncateTo(10))
    await crash()
    expect(logs.faultOf('orders', 0)).toBeUndefined()
    expect(log.logEndOffset).toBe(10)
  })

  test('takes epochs with it', async () => {
    await start()
    fill(2)
    appended(log, batchOf(2, 'v'), { leaderEpoch: 3 as LeaderEpoch })
    appended(log, batchOf(2, 'v'), { leaderEpoch: 5 as LeaderEpoch })
    expect(log.endOffsetForEpoch(4 as LeaderEpoch)).toEqual({ leaderEpoch: 3, endOffset: 6 })
    expect(log.endOffsetForEpoch(5 as LeaderEpoch)).toEqual({ leaderEpoch: 5, endOffset: 8 })
    expect(log.endOffsetForEpoch(6 as LeaderEpoch)).toEqual({ leaderEpoch: -1, endOffset: -1 })
    await simulation.run(log.truncateTo(6))
    expect(log.latestEpoch).toBe(3)
    await restart()
    expect(log.endOffsetForEpoch(3 as LeaderEpoch)).toEqual({ leaderEpoch: 3, endOffset: 6 })
    expect(log.endOffsetForEpoch(0 as LeaderEpoch)).toEqual({ leaderEpoch: 0, endOffset: 0 })
  })

  test('at the end takes an epoch with it that has no batches: the next leader may never have heard of it', async () => {
    await start()
    fill(2)
    const before = log.latestEpoch
    log.assignEpochStart(3 as LeaderEpoch)
    expect(log.latestEpoch).toBe(3)
    await simulation.run(log.truncateTo(log.logEndOffset))
    expect(log.latestEpoch).toBe(before)
  })

  test('starting afresh empties the log and survives restarts', async () => {
    await start({ 'internal.segment.bytes': 600 })
    fill(20)
    await simulation.run(log.truncateFullyAndStartAt(1000))
    expect([log.logStartOffset, log.logEndOffset, log.sizeBytes]).toEqual([1000, 1000, 0])
    await crash()
    expect([log.logStartOffset, log.logEndOffset]).toEqual([1000, 1000])
    fill(2)
    expect(await allOffsets()).toEqual(pairs(1000, 1004))
  })
})

describe('an empty log that starts within the first batch of its leader', () => {
  /** Three batches as another log has them, and a log that starts anew at an offset within the first of them. */
  async function startWithin(): Promise<Buffer> {
    await start()
    fill(4)
    await simulation.run(log.flush())
    const records = await simulation.run(read(log, 2))
    await simulation.run(log.truncateFullyAndStartAt(3))
    return records
  }

  test('takes that batch whole, and shows it from its start on', async () => {
    const records = await startWithin()
    await simulation.run(log.startWithin(records))
    expect([log.logStartOffset, log.logEndOffset]).toEqual([3, 8])
    await crash()
    expect(log.logStartOffset).toBe(3)
    expect(await log.read({ fetchOffset: 2, endOffset: 8, maxBytes: 1, minOneBatch: true })).toHaveProperty(
      'outOfRange',
    )
    expect(await allOffsets()).toEqual(pairs(2, log.logEndOffset))
  })

  test('is empty at its start when power is lost on the way', async () => {
    const records = await startWithin()
    for (let passedMs = 0.05; passedMs < 5; passedMs *= 1.2) {
      log.startWithin(records).catch(() => undefined)
      await simulation.runFor(passedMs)
      await crash()
      expect(log.logStartOffset).toBe(3)
      expect([3, 4, 6, 8]).toContain(log.logEndOffset)
      await simulation.run(log.truncateFullyAndStartAt(3))
    }
  })

  test('refuses a batch that does not reach over its start, and one when it is not empty', async () => {
    const records = await startWithin()
    await simulation.run(log.truncateFullyAndStartAt(20))
    await expect(simulation.run(log.startWithin(records))).rejects.toThrow('offset 20 to 20')
    await simulation.run(log.truncateFullyAndStartAt(3))
    await simulation.run(log.startWithin(records))
    await expect(simulation.run(log.startWithin(records))).rejects.toThrow('offset 3 to 8')
    expect([log.logStartOffset, log.logEndOffset]).toEqual([3, 8])
  })
})

describe('retention', () => {
  const keys = { 'internal.segment.bytes': 600, 'retention.ms': 1000, 'file.delete.delay.ms': 100 }

  test('by time drops whole segments below the high watermark, the active one too', async () => {
    await start(keys)
    fill(20)
    await simulation.run(log.flush())
    await simulation.runFor(2000)
    await simulation.run(logs.enforceRetention())
    expect(log.logStartOffset).toBe(0)
    log.setHighWatermark(20)
    await simulation.run(logs.enforceRetention())
    expect(log.logStartOffset).toBeGreaterThan(0)
    expect(log.logStartOffset).toBeLessThanOrEqual(20)
    expect(await allOffsets()).toEqual(pairs(log.logStartOffset, 40))
    log.setHighWatermark(40)
    await simulation.run(logs.enforceRetention())
    expect([log.logStartOffset, log.logEndOffset, log.sizeBytes]).toEqual([40, 40, 0])
    await simulation.runFor(200)
    expect(await names('.deleted')).toEqual([])
    expect(await names('.log')).toEqual(['00000000000000000040.log'])
    await crash(keys)
    expect([log.logStartOffset, log.logEndOffset]).toEqual([40, 40])
  })

  test('by size keeps at least so many bytes', async () => {
    await start({ 'internal.segment.bytes': 600, 'retention.bytes': 1500 })
    fill(40)
    await simulation.run(log.flush())
    log.setHighWatermark(80)
    await simulation.run(logs.enforceRetention())
    expect(log.sizeBytes).toBeGreaterThanOrEqual(1500)
    expect(log.sizeBytes).toBeLessThan(1500 + 600)
    expect(await allOffsets()).toEqual(pairs(log.logStartOffset, 80))
  })

  test('never on a topic that is only compacted', async () => {
    await start({ ...keys, 'cleanup.policy': 'compact', 'retention.bytes': 0 })
    fill(20)
    await simulation.run(log.flush())
    log.setHighWatermark(40)
    await simulation.runFor(5000)
    await simulation.run(logs.enforceRetention())
    expect(log.logStartOffset).toBe(0)
  })

  test('a read under way outlives the deletion of its segment', async () => {
    await start(keys)
    fill(20)
    await simulation.run(log.flush())
    log.setHighWatermark(40)
    await simulation.runFor(2000)
    const reading = read(log, 0, { maxBytes: 2 << 20 })
    const retention = logs.enforceRetention()
    const outcome = await simulation.run(reading.then(offsetsOfBytes, String))
    await simulation.run(retention)
    expect(outcome === 'AssertionError: offset 0 is in range' || Array.isArray(outcome)).toBe(true)
    expect(log.isOnline).toBe(true)
  })
})

function offsetsOfBytes(bytes: Buffer): [Offset, Offset][] {
  return offsetsOf([bytes])
}

describe('deleting records', () => {
  test('moves the log start at once, and durably', async () => {
    await start({ 'internal.segment.bytes': 600 })
    fill(20)
    await simulation.run(log.flush())
    const told: Offset[] = []
    log.setListener({
      onFlushed: () => {},
      onFailed: () => {},
      onLogStartMoved: (offset) => void told.push(offset),
    })
    await simulation.run(log.deleteRecordsBefore(15, 40))
    expect([log.logStartOffset, told]).toEqual([15, [15]])
    expect(log.read({ fetchOffset: 14, endOffset: 40, maxBytes: 1, minOneBatch: true })).toMatchObject({
      outOfRange: true,
    })
    expect(offsetsOf([await simulation.run(read(log, 15, { maxBytes: 1 }))])).toEqual([[14, 15]])
    log.setHighWatermark(40)
    await simulation.run(logs.enforceRetention())
    expect((await names('.log'))[0]).not.toBe('00000000000000000000.log')
    await crash()
    expect(log.logStartOffset).toBe(15)
  })

  test('beyond the limit is a mistake of the caller', async () => {
    await start()
    fill(2)
    await expect(log.deleteRecordsBefore(3, 2)).rejects.toThrow('up to the high watermark')
  })
})

describe('a log that is deleted while it is used', () => {
  const uses: [string, (log: PartitionLog) => unknown][] = [
    ['a read', (log) => log.read({ fetchOffset: 0, endOffset: 400, maxBytes: 1000, minOneBatch: true })],
    ['a search for a time', (log) => log.offsetForTimestamp(nowMs(), 400)],
    ['a search for the largest time', (log) => log.offsetOfMaxTimestamp(400)],
    ['a truncation', (log) => log.truncateTo(100)],
    ['a sync', (log) => log.flush()],
  ]
  test.each(uses)('tells %s, at whatever step, that it is closed', async (_name, use) => {
    for (let steps = 0; steps < 12; steps++) {
      await start({ 'internal.segment.bytes': 1000, 'flush.messages': 1_000_000 })
      fill(200)
      await simulation.run(log.flush())
      log.setHighWatermark(log.logEndOffset)
      fill(1)
      const used = Promise.resolve(use(log)).then(
        () => undefined,
        (error: unknown) => error,
      )
      for (let step = 0; step < steps; step++) await Promise.resolve()
      await simulation.run(logs.delete('orders', 0))
      const error = await simulation.run(used)
      if (error !== undefined) expect(error).toBeInstanceOf(StorageError)
      await simulation.run(logs.close())
    }
  })
})
