import { beforeEach, describe, expect, test } from 'vitest'
import type { Offset } from '../../../src/base/index.ts'
import type { LogManager, PartitionLog } from '../../../src/log/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { BatchView, buildBatch, buildControlBatch, type Codec } from '../../../src/protocol/index.ts'
import { Metrics } from '../../../src/telemetry/index.ts'
import { append, directory, idempotent, type Keys, openLog, openLogs, readAll, recordsOf } from './support.ts'

const folder = `${directory}/orders-0`
/** Every segment holds a few batches; everything that is closed is due. */
const compacted: Keys = {
  'cleanup.policy': 'compact',
  'internal.segment.bytes': 400,
  'min.cleanable.dirty.ratio': 0,
  'index.interval.bytes': 0,
}

let simulation: Simulation
let host: SimulatedHost
let logs: LogManager
let log: PartitionLog
let metrics: Metrics

async function start(keys: Keys = compacted, brokerKeys: Keys = {}): Promise<void> {
  metrics = new Metrics()
  // The cleaner's own timer stays out of the way.
  const never = { 'log.cleaner.backoff.ms': 2 ** 31 - 1, ...brokerKeys }
  logs = await simulation.run(openLogs(host.platform, { keys: never, metrics }))
  log = await simulation.run(openLog(logs, keys))
  settle()
}

/** Everything that is flushed is committed. */
function settle(): void {
  log.setListener({
    onFlushed: (offset) => log.setHighWatermark(offset),
    onFailed: () => {},
    onLogStartMoved: () => {},
  })
  log.setHighWatermark(log.flushedOffset)
}

async function restart(keys: Keys = compacted): Promise<void> {
  await simulation.run(logs.close())
  await start(keys)
}

beforeEach(() => {
  simulation = createSimulation({ seed: 5 })
  host = simulation.host('a')
})

const nowMs = () => host.platform.clock.now()

interface PutOptions {
  readonly codec?: Codec
  readonly producer?: readonly [id: number, epoch: number, sequence: number]
}

/** One batch; `key=value`, and `key` alone is a tombstone. */
async function put(texts: readonly string[], { codec = 'none', producer }: PutOptions = {}): Promise<void> {
  const records = texts.map((text) => {
    const [key, value] = text.split('=')
    return { timestamp: nowMs(), key: Buffer.from(key!), value: value === undefined ? null : Buffer.from(value) }
  })
  const batch = buildBatch({ records, codec, ...(producer === undefined ? {} : idempotent(...producer)) })
  const result = await simulation.run(append(log, batch))
  expect(result).toMatchObject({ ok: true })
}

/** Closes the segment that takes appends, with a filler that fills one by itself, and flushes. */
async function roll(size = 290): Promise<void> {
  await put([`filler=${'x'.repeat(size)}`])
  await put(['last=x'])
  await simulation.run(log.flush())
}

async function clean(): Promise<void> {
  await simulation.run(logs.clean())
}

/** `offset:key=value` of every record. */
async function contents(fetchOffset?: Offset): Promise<string[]> {
  const records = await simulation.run(readAll(log, fetchOffset).then(recordsOf))
  return records.map(({ offset, key, value }) => `${offset}:${key}${value === null ? '' : `=${value.slice(0, 4)}`}`)
}

async function names(): Promise<string[]> {
  return ((await simulation.run(host.platform.files.list(folder))) ?? []).map(({ name }) => name)
}

const segments = async () => (await names()).filter((name) => name.endsWith('.log'))

describe('compaction', () => {
  test('keeps the last record of each key, at its offset', async () => {
    await start()
    await put(['a=1', 'b=1', 'c=1'])
    await put(['a=2', 'b=2'])
    await put(['a=3'])
    await roll()
    await clean()
    expect(await contents()).toEqual(['2:c=1', '4:b=2', '5:a=3', '6:filler=xxxx', '7:last=x'])
  })

  test('leaves the active segment alone, and what is not committed', async () => {
    await start()
    await put(['a=1'])
    await put(['a=2'])
    await clean()
    expect(await contents()).toEqual(['0:a=1', '1:a=2'])
    await roll()
    log.setHighWatermark(1)
    await clean()
    expect((await contents())[0]).toBe('0:a=1')
    log.setHighWatermark(log.flushedOffset)
    await clean()
    expect((await contents())[0]).toBe('1:a=2')
  })

  test('outlives a restart and a power loss', async () => {
    await start()
    for (let i = 0; i < 20; i++) await put([`a=${i}`, `b=${i}`])
    await roll()
    await clean()
    const before = await contents()
    expect(before.slice(0, 2)).toEqual(['38:a=19', '39:b=19'])
    await restart()
    expect(await contents()).toEqual(before)
    host.crash()
    host.restart()
    await start()
    expect(await contents()).toEqual(before)
    expect(log.logEndOffset).toBe(42)
  })

  test('is not taken for damage when the recovery points are lost', async () => {
    await start()
    for (let i = 0; i < 20; i++) await put([`k${i}=1`, `a=${i}`])
    await roll()
    await clean()
    const before = await contents()
    host.crash()
    host.restart()
    await simulation.run(host.platform.files.remove(`${directory}/recovery-point-offset-checkpoint`))
    await start()
    expect(await contents()).toEqual(before)
  })

  test('makes one segment of small neighbours, and removes files after the delay', async () => {
    await start({ ...compacted, 'file.delete.delay.ms': 5000 })
    for (let i = 0; i < 60; i++) await put([`a=${i}`, `b=${i}`])
    await roll()
    const before = (await segments()).length
    const sizeBefore = log.sizeBytes
    await clean()
    // Files are grouped by their sizes before, so it takes a second cleaning to join them.
    await put(['b=61'])
    await roll()
    await clean()
    expect((await segments()).length).toBeLessThan(before / 2)
    expect(log.sizeBytes).toBeLessThan(sizeBefore / 2)
    expect((await names()).some((name) => name.endsWith('.deleted'))).toBe(true)
    await simulation.runFor(6000)
    expect((await names()).some((name) => name.endsWith('.deleted'))).toBe(false)
    expect((await contents())[0]).toBe('118:a=59')
  })

  test('serves reads from any offset, also from those that are gone', async () => {
    await start()
    for (let i = 0; i < 20; i++) await put([`a=${i}`, `k${i}=0`])
    await roll()
    await clean()
    for (let offset = 0; offset < 40; offset++) {
      const expected = offset <= 38 && offset % 2 === 0 && offset !== 38 ? offset + 1 : offset
      expect((await contents(offset)).at(0)?.split(':')[0], `offset ${offset}`).toBe(
        String(
          (await contents())
            .map((text) => Number(text.split(':')[0]))
            .find((at) => at >= expected - 1 && at >= firstOf(offset)),
        ),
      )
    }

    /** A batch comes whole, so the read may begin before the offset. */
    function firstOf(offset: Offset): Offset {
      return offset - (offset % 2)
    }
  })

  test.each(['gzip', 'snappy', 'lz4', 'zstd'] as const)('packs what stays of a %s batch again', async (codec) => {
    await start()
    for (let i = 0; i < 5; i++) await put([`a=${i}`, `k${i}=${'y'.repeat(80)}`, `b=${i}`], { codec })
    await roll()
    await clean()
    const batches = await simulation.run(readAll(log))
    expect(batches.slice(0, 4).map((batch) => new BatchView(batch).codecId)).toEqual(
      Array(4).fill({ gzip: 1, snappy: 2, lz4: 3, zstd: 4 }[codec]),
    )
    expect((await contents()).slice(0, 7)).toEqual([
      '1:k0=yyyy',
      '4:k1=yyyy',
      '7:k2=yyyy',
      '10:k3=yyyy',
      '12:a=4',
      '13:k4=yyyy',
      '14:b=4',
    ])
  })

  test('keeps first and last offset of a batch, its sequence, and the largest timestamp of what stays', async () => {
    await start()
    const records = [5, 1, 9, 3].map((timestamp, i) => ({
      timestamp,
      key: Buffer.from(`k${i}`),
      value: Buffer.from('v'),
    }))
    await simulation.run(append(log, buildBatch({ records, ...idempotent(7, 0, 0) })))
    await put(['k2=new'])
    await roll()
    await clean()
    const view = new BatchView((await simulation.run(readAll(log)))[0]!)
    expect([view.baseOffset, view.lastOffset, view.recordCount, view.maxTimestamp]).toEqual([0, 3, 3, 5])
    expect([view.producerId, view.baseSequence, view.lastSequence]).toEqual([7, 0, 3])
    expect(view.computeCrc()).toBe(view.crc)
    expect(await simulation.run(log.offsetForTimestamp(4, log.logEndOffset))).toMatchObject({ offset: 0, timestamp: 5 })
  })

  test('needs several passes when the keys do not fit into memory', async () => {
    await start({ ...compacted, 'internal.segment.bytes': 40_000 }, { 'log.cleaner.dedupe.buffer.size': 1 })
    const keys = 8000
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < keys; i += 1000) {
        await put(Array.from({ length: 1000 }, (_, k) => `key-${i + k}=${round}`))
      }
    }
    await roll(39_900)
    await clean()
    expect(metrics.snapshot().LogCleanerReadBytes).toBeGreaterThan(4 * log.sizeBytes)
    const found = await contents()
    expect(found.length).toBe(keys + 2)
    expect(found[0]).toBe(`${keys}:key-0=1`)
  })
})

describe('a tombstone', () => {
  const keys = { ...compacted, 'delete.retention.ms': 10_000 }

  async function dirty(): Promise<void> {
    await put([`other=${nowMs()}`])
    await roll()
  }

  test('removes older records, stays for delete.retention.ms from its first cleaning on, and then goes', async () => {
    await start(keys)
    await put(['a=1', 'b=1'])
    await put(['a'])
    await roll()
    await simulation.runFor(60_000)
    await clean()
    expect((await contents()).slice(0, 2)).toEqual(['1:b=1', '2:a'])
    const view = new BatchView((await simulation.run(readAll(log)))[1]!)
    expect(view.hasDeleteHorizon).toBe(true)
    expect(view.baseTimestamp).toBeGreaterThan(nowMs() + 9000)
    expect(view.maxTimestamp).toBeLessThan(nowMs() - 50_000)
    await simulation.runFor(5000)
    await dirty()
    await clean()
    expect((await contents()).slice(0, 2)).toEqual(['1:b=1', '2:a'])
    await simulation.runFor(6000)
    await dirty()
    await clean()
    expect((await contents()).slice(0, 1)).toEqual(['1:b=1'])
    expect(await contents()).not.toContain('2:a')
  })

  test('keeps the timestamps of its batch when the horizon takes their base', async () => {
    await start(keys)
    const records = [1000, 999, 5000].map((timestamp, i) => ({ timestamp, key: Buffer.from(`k${i}`), value: null }))
    await simulation.run(append(log, buildBatch({ records, codec: 'gzip' })))
    await roll()
    await clean()
    const found = await simulation.run(readAll(log).then(recordsOf))
    expect(found.slice(0, 3).map(({ timestamp }) => timestamp)).toEqual([1000, 999, 5000])
  })

  test('stays for ever where its time cannot be told from the horizon', async () => {
    await start(keys)
    const records = [{ timestamp: -(2 ** 52), key: Buffer.from('a'), value: null }]
    await simulation.run(append(log, buildBatch({ records })))
    await roll()
    await clean()
    const [record] = await simulation.run(readAll(log).then(recordsOf))
    expect(record).toMatchObject({ offset: 0, timestamp: -(2 ** 52), value: null })
  })
})

describe('an idempotent producer', () => {
  test('of whose last batch no record stays is still known by it after a start without snapshots', async () => {
    await start()
    await put(['a=1'], { producer: [9, 2, 0] })
    await put(['a=2', 'b=2'], { producer: [9, 2, 1] })
    await put(['a=3', 'b=3'])
    await roll()
    await clean()
    const batches = await simulation.run(readAll(log))
    expect(batches.slice(0, 1).map((batch) => new BatchView(batch).recordCount)).toEqual([0])
    for (const name of await names()) {
      if (name.endsWith('.snapshot')) await simulation.run(host.platform.files.remove(`${folder}/${name}`))
    }
    host.crash()
    host.restart()
    await start()
    expect(log.activeProducers()).toMatchObject([{ producerId: 9, producerEpoch: 2, lastSequence: 2 }])
    const again = await simulation.run(
      append(log, buildBatch({ records: [{ timestamp: 1, key: Buffer.from('a') }], ...idempotent(9, 2, 3) })),
    )
    expect(again).toMatchObject({ ok: true, duplicate: false })
  })

  test('is sent no refusal by a replica that copied the log, for what it sends again', async () => {
    await start()
    for (let i = 0; i < 7; i++) await put(['a=1'], { producer: [9, 2, i] })
    await put(['a=2'])
    await roll()
    await clean()
    const copy = await simulation.run(openLog(logs, compacted, 1))
    for (const batch of await simulation.run(readAll(log))) copy.appendAsFollower(batch)
    const send = (sequence: number) =>
      simulation.run(
        append(copy, buildBatch({ records: [{ timestamp: 1, key: Buffer.from('a') }], ...idempotent(9, 2, sequence) })),
      )
    const inFlight = [2, 3, 4, 5, 6] // five at most
    for (const sequence of inFlight) expect(await send(sequence)).toMatchObject({ ok: true, duplicate: true })
    expect(await send(7)).toMatchObject({ ok: true, duplicate: false })
  })
})

describe('batches that a leader has not committed', () => {
  /** Of the records before, only `keep` has no newer one. */
  async function appendBefore(uncommitted: number): Promise<void> {
    await start()
    await put(['keep=1'], { producer: [9, 2, 0] })
    await put(['a=1'], { producer: [9, 2, 1] })
    await put(['a=2'])
    await roll()
    const committed = log.logEndOffset
    for (let i = 0; i < uncommitted; i++) await put([`u${i}=1`], { producer: [9, 2, 2 + i] })
    await simulation.run(log.flush())
    log.setHighWatermark(committed)
  }

  test.each([1, 7])(
    'don’t let the committed one before %i of them go: they may yet be truncated',
    async (uncommitted) => {
      await appendBefore(uncommitted)
      const { highWatermark } = log
      await clean()
      expect((await contents()).slice(0, 3)).toEqual(['0:keep=1', '2:a=2', '3:filler=xxxx'])
      await simulation.run(log.truncateTo(highWatermark))
      const other = await simulation.run(openLog(logs, compacted, 1))
      for (const batch of await simulation.run(readAll(log))) other.appendAsFollower(batch)
      expect(other.activeProducers()).toMatchObject([{ producerId: 9, lastSequence: 1 }])
      expect(log.activeProducers()).toEqual(other.activeProducers())
    },
  )
})

describe('a transaction marker', () => {
  test('stays while a batch of its transaction does, and for delete.retention.ms after', async () => {
    const keys = { ...compacted, 'delete.retention.ms': 10_000 }
    await start(keys)
    const follow = (batch: Buffer) => {
      const view = new BatchView(batch)
      view.stampBaseOffset(log.logEndOffset)
      log.appendAsFollower(batch)
    }
    const record = { timestamp: nowMs(), key: Buffer.from('a'), value: Buffer.from('1') }
    follow(buildBatch({ records: [record], transactional: true, ...idempotent(4, 0, 0) }))
    const marker = { type: 'commit', coordinatorEpoch: 0, producerId: 4, producerEpoch: 0, timestamp: nowMs() } as const
    follow(buildControlBatch(marker))
    await put(['b=1'], { producer: [4, 0, 1] })
    await roll()
    await clean()
    expect((await contents()).slice(0, 2)).toEqual(['0:a=1', '2:b=1'])
    // A later record of no transaction takes its place.
    await put(['a=2'])
    await roll()
    await clean()
    expect((await contents()).slice(0, 1)).toEqual(['2:b=1'])
    const isControl = async () => (await simulation.run(readAll(log))).some((batch) => new BatchView(batch).isControl)
    expect(await isControl()).toBe(true)
    await roll()
    await clean()
    expect(await isControl()).toBe(true)
    await simulation.runFor(11_000)
    await roll()
    await clean()
    expect(await isControl()).toBe(false)
  })

  test('leaves the records of an aborted transaction from replacing others', async () => {
    await start()
    await put(['a=1'])
    const batch = buildBatch({
      records: [{ timestamp: 1, key: Buffer.from('a'), value: Buffer.from('aborted') }],
      transactional: true,
      baseOffset: 1,
      ...idempotent(4, 0, 0),
    })
    log.appendAsFollower(batch)
    await roll()
    await clean()
    expect((await contents()).slice(0, 2)).toEqual(['0:a=1', '1:a=abor'])
  })
})

describe('when a log is due', () => {
  /** Rolls as many segments as `rounds` says, each with a record of key a. */
  async function write(rounds: number): Promise<void> {
    for (let i = 0; i < rounds; i++) {
      await put([`a=${i}`])
      await roll()
    }
  }

  const isCompacted = async () => !(await contents()).includes('0:a=0')

  test('the dirty part is larger than min.cleanable.dirty.ratio says, measured from where the last cleaning ended', async () => {
    const keys = { ...compacted, 'min.cleanable.dirty.ratio': 0.6 }
    await start(keys)
    await write(3)
    await clean()
    expect(await isCompacted()).toBe(true)
    const checkpoint = await simulation.run(
      host.platform.files.readFile(`${directory}/cleaner-offset-checkpoint`, 1000),
    )
    expect(checkpoint?.toString()).toBe('0\n1\norders 0 8\n')
    await put(['a=4'])
    await roll()
    await clean()
    expect(await contents()).toContain('6:a=2')
    await restart(keys)
    await clean()
    expect(await contents()).toContain('6:a=2')
    await write(8)
    await clean()
    expect(await contents()).not.toContain('6:a=2')
  })

  test('min.compaction.lag.ms keeps young records, and max.compaction.lag.ms takes old ones whatever the ratio', async () => {
    const keys = { ...compacted, 'min.cleanable.dirty.ratio': 1 }
    await start({ ...keys, 'min.compaction.lag.ms': 60_000, 'max.compaction.lag.ms': 61_000 })
    await write(3)
    await clean()
    expect(await isCompacted()).toBe(false)
    await simulation.runFor(62_000)
    await clean()
    expect(await isCompacted()).toBe(true)
  })

  test('max.compaction.lag.ms closes a segment that would not be for long', async () => {
    await start({ ...compacted, 'internal.segment.bytes': 1_000_000, 'max.compaction.lag.ms': 1000 })
    await put(['a=0'])
    await simulation.runFor(1100)
    await put(['a=1'])
    await put(['a=2'])
    await simulation.run(log.flush())
    expect(await segments()).toHaveLength(2)
  })

  test.each([{ 'log.cleaner.enable': 'false' }, { 'log.cleaner.threads': 0 }])(
    '%j: it never is',
    async (brokerKeys) => {
      await start(compacted, brokerKeys)
      await write(3)
      await clean()
      expect(await isCompacted()).toBe(false)
    },
  )

  test('the dirtiest goes first, by itself every log.cleaner.backoff.ms', async () => {
    await start(compacted, { 'log.cleaner.backoff.ms': 1000 })
    await write(3)
    expect(await isCompacted()).toBe(false)
    await simulation.runFor(1100)
    await simulation.runUntil(() => metrics.snapshot().LogCleanerWrittenBytes !== 0)
    expect(await isCompacted()).toBe(true)
  })

  test('a topic with compact,delete loses old segments, too, empty ones included', async () => {
    await start({ ...compacted, 'cleanup.policy': 'compact,delete', 'retention.ms': 30_000 })
    await write(3)
    await clean()
    expect(await isCompacted()).toBe(true)
    await simulation.runFor(31_000)
    await put(['b=1'])
    await roll()
    await simulation.run(logs.enforceRetention())
    expect((await contents()).slice(0, 2)).toEqual(['8:last=x', '9:b=1'])
    expect(log.logStartOffset).toBe(8)
  })
})

describe('a cleaning under way', () => {
  /** Slow enough to be met in the middle: about a second for the log that `begin` writes. */
  const slow = { 'log.cleaner.io.max.bytes.per.second': 20_000, 'log.cleaner.io.buffer.size': 1 }

  let cleaning: Promise<void>

  /** Returns in the middle of a cleaning of 50 records of key a, and one of each of others. */
  async function begin(): Promise<void> {
    await start(compacted, slow)
    for (let i = 0; i < 50; i++) await put([`a=${i}`, `k${i}=0`])
    await roll()
    cleaning = logs.clean()
    const folderOf = () => host.disk.find(folder)
    await simulation.runUntil(() => {
      const node = folderOf()
      return (
        node?.kind === 'directory' && [...node.entries.keys()].filter((name) => name.endsWith('.deleted')).length > 9
      )
    })
  }

  async function expectNothingLeft(): Promise<void> {
    await simulation.run(cleaning)
    expect((await names()).filter((name) => /cleaned|swap/.test(name))).toEqual([])
    expect(log.isOnline).toBe(true)
  }

  test('goes on beside appends and reads', async () => {
    await begin()
    const before = await contents(90)
    await put(['b=1'])
    expect(await contents(90)).toEqual([...before, '102:b=1'])
    expect((await contents()).filter((text) => text.includes('k'))).toHaveLength(50)
    await simulation.run(cleaning)
    expect((await contents()).filter((text) => text.includes(':a='))).toEqual(['98:a=49'])
    expect((await contents()).filter((text) => text.includes('k'))).toHaveLength(50)
  })

  test('ends when the log is truncated, which then holds what lies below the offset', async () => {
    await begin()
    await simulation.run(log.truncateTo(60))
    await expectNothingLeft()
    expect(log.logEndOffset).toBe(60)
    expect((await contents()).filter((text) => text.includes('k'))).toHaveLength(30)
    await put(['c=1'])
    await roll()
    await clean()
    expect((await contents()).filter((text) => text.includes(':a='))).toEqual(['58:a=29'])
  })

  test('ends when the log is emptied', async () => {
    await begin()
    await simulation.run(log.truncateFullyAndStartAt(500))
    await expectNothingLeft()
    await put(['c=1'])
    expect(await contents()).toEqual(['500:c=1'])
  })

  test('ends when the topic is not compacted any more', async () => {
    await begin()
    await simulation.run(openLog(logs, { ...compacted, 'cleanup.policy': 'delete' }))
    await expectNothingLeft()
    expect((await contents()).filter((text) => text.includes('k'))).toHaveLength(50)
  })

  test('does not hold up the end of the log, nor its deletion', async () => {
    await begin()
    const startedMs = nowMs()
    await restart()
    expect(nowMs() - startedMs).toBeLessThan(500)
    expect((await contents()).filter((text) => text.includes('k'))).toHaveLength(50)
    await simulation.run(logs.close())
    await begin2()
    await simulation.run(logs.delete('orders', 0))
    await simulation.run(cleaning)
    expect(await names()).toEqual([])

    async function begin2(): Promise<void> {
      await start(compacted, slow)
      cleaning = logs.clean()
      await simulation.runFor(100)
    }
  })

  test('moves on with DeleteRecords, whose log start stays', async () => {
    await begin()
    await simulation.run(log.deleteRecordsBefore(70, log.highWatermark))
    await simulation.run(cleaning)
    expect(log.logStartOffset).toBe(70)
    expect((await contents(70)).filter((text) => text.includes('k'))).toHaveLength(15)
  })

  test('keeps to log.cleaner.io.max.bytes.per.second', async () => {
    await start(compacted, slow)
    for (let i = 0; i < 50; i++) await put([`a=${i}`, `k${i}=0`])
    await roll()
    const startedMs = nowMs()
    await clean()
    const snapshot = metrics.snapshot()
    const bytes = Number(snapshot.LogCleanerReadBytes) + Number(snapshot.LogCleanerWrittenBytes)
    expect(bytes).toBeGreaterThan(10_000)
    expect(nowMs() - startedMs).toBeGreaterThan((bytes / 20_000) * 1000 * 0.8)
  })
})

describe('what goes wrong', () => {
  test('a damaged batch ends the cleaning of its log until the next start, and not of others', async () => {
    await start()
    await put(['a=1'])
    await put(['a=2'])
    await roll()
    const other = await simulation.run(openLog(logs, compacted, 0, 'others'))
    const handle = host.platform.files.openSync(`${folder}/00000000000000000000.log`, 'write')
    handle.writeSync([Buffer.from('?')], 80)
    await simulation.run(handle.close())
    await clean()
    expect(metrics.snapshot()['uncleanable-partitions-count']).toBe(1)
    expect(log.isOnline).toBe(true)
    log = other
    settle()
    await put(['a=1'])
    await put(['a=2'])
    await roll()
    await clean()
    expect((await contents())[0]).toBe('1:a=2')
    expect(metrics.snapshot()['uncleanable-partitions-count']).toBe(1)
  })

  test('a disk without room for the new segment: it is tried again later', async () => {
    await start()
    await put(['a=1'])
    await put(['a=2'])
    await roll()
    host.disk.failNext({ operation: 'write', path: /cleaned/, code: 'ENOSPC' })
    await clean()
    expect(log.isOnline).toBe(true)
    expect(await contents()).toContain('0:a=1')
    expect((await names()).filter((name) => name.endsWith('.cleaned'))).toEqual([])
    await clean()
    expect(await contents()).not.toContain('0:a=1')
  })

  test('a name that cannot be changed takes the directory offline, and a restart ends what began', async () => {
    await start()
    await put(['a=1'])
    await put(['a=2'])
    await roll()
    host.disk.failNext({ operation: 'rename', path: /swap/, code: 'EIO', skip: 1 })
    await clean()
    expect(log.isOnline).toBe(false)
    host.crash()
    host.restart()
    await start()
    expect((await contents())[0]).toBe('1:a=2')
  })
})
