import { gzipSync } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import type { LeaderEpoch } from '../../../src/base/index.ts'
import type { AppendOptions, AppendResult, PartitionLog } from '../../../src/log/index.ts'
import { createRealPlatform } from '../../../src/platform/index.ts'
import { createSimulation } from '../../../src/platform/simulated/index.ts'
import { BatchView, buildBatch, crc32c, readRecords } from '../../../src/protocol/index.ts'
import {
  appended,
  batchOf,
  epoch,
  idempotent,
  type Keys,
  openLog,
  openLogs,
  readAll,
  topicConfig,
  topicId,
} from './support.ts'

const simulation = createSimulation({ seed: 1 })
let hosts = 0
const nowMs = simulation.host('a').platform.clock.now()

async function newLog(keys: Keys = {}): Promise<PartitionLog> {
  const { platform } = simulation.host(`host${hosts++}`)
  return await simulation.run(openLogs(platform).then((logs) => openLog(logs, keys)))
}

function offer(log: PartitionLog, batch: Buffer, options: Partial<AppendOptions> = {}): Promise<AppendResult> {
  const result = log.appendAsLeader(batch, { leaderEpoch: epoch, origin: 'client', ...options })
  return simulation.run(Promise.resolve(result))
}

/** `batch` with a change, and the CRC put right again. */
function changed(batch: Buffer, change: (batch: Buffer) => void): Buffer {
  change(batch)
  batch.writeUInt32BE(crc32c(batch.subarray(21)), 17)
  return batch
}

function header(change: (batch: Buffer) => void): Buffer {
  return changed(batchOf(3, 'value', { timestamp: nowMs }), change)
}

const good = () => batchOf(3, 'value', { timestamp: nowMs })

describe('a hostile record set is refused with its reason', () => {
  const cases: [string, string, () => Buffer, Partial<AppendOptions>?][] = [
    ['nothing', 'not-one-batch', () => Buffer.alloc(0)],
    ['a few bytes', 'not-one-batch', () => good().subarray(0, 16)],
    ['half a batch', 'not-one-batch', () => good().subarray(0, 80)],
    ['two batches', 'not-one-batch', () => Buffer.concat([good(), good()])],
    ['format 1', 'not-one-batch', () => header((batch) => batch.writeInt8(1, 16))],
    ['format 0', 'not-one-batch', () => header((batch) => batch.writeInt8(0, 16))],
    ['format 3', 'corrupt-message', () => header((batch) => batch.writeInt8(3, 16))],
    ['a length below the header', 'corrupt-message', () => header((batch) => batch.writeInt32BE(20, 8))],
    ['a negative length', 'corrupt-message', () => header((batch) => batch.writeInt32BE(-1, 8))],
    ['a length of 2 GiB', 'message-too-large', () => header((batch) => batch.writeInt32BE(0x7fffffff, 8))],
    ['a flipped bit', 'corrupt-message', () => flip(good(), 70)],
    ['a flipped bit of the CRC', 'corrupt-message', () => flip(good(), 18)],
    ['a base offset', 'invalid-record', () => header((batch) => batch.writeBigInt64BE(5n, 0))],
    ['no records', 'invalid-record', () => header((batch) => batch.writeInt32BE(0, 57))],
    ['a producer id past 2^53', 'invalid-record', () => header((batch) => batch.writeBigInt64BE(2n ** 53n, 43))],
    ['a negative record count', 'invalid-record', () => header((batch) => batch.writeInt32BE(-3, 57))],
    ['more records than there are', 'invalid-record', () => claim(4)],
    ['2^31 - 1 records', 'invalid-record', () => claim(0x7fffffff)],
    ['fewer records than there are', 'invalid-record', () => claim(2)],
    [
      'an offset delta that contradicts the count',
      'invalid-record',
      () => header((batch) => batch.writeInt32BE(7, 23)),
    ],
    ['a control batch', 'invalid-record', () => header((batch) => batch.writeInt16BE(0x20, 21))],
    ['a transactional batch', 'unsupported-for-message-format', () => header((batch) => batch.writeInt16BE(0x10, 21))],
    ['a delete horizon', 'invalid-record', () => header((batch) => batch.writeInt16BE(0x40, 21))],
    ['an unknown codec', 'unsupported-compression-type', () => header((batch) => batch.writeInt16BE(5, 21))],
    ['zstd in an old request', 'unsupported-compression-type', () => packed('zstd'), { produceVersion: 6 }],
    ['a producer without sequence', 'invalid-record', () => batchOf(1, 'v', idempotent(7, 0, -1))],
    ['a record that claims too much', 'invalid-record', () => header((batch) => batch.writeInt8(0x7f, 61))],
    ['an offset delta out of order', 'invalid-record', () => header((batch) => batch.writeInt8(4, 64))],
    ['a time two hours ahead', 'invalid-timestamp', () => batchOf(1, 'v', { timestamp: nowMs + 7_200_000 })],
    ['a time past 2^53', 'invalid-timestamp', () => header((batch) => batch.writeBigInt64BE(2n ** 62n, 27))],
    ['an older leader epoch', 'fenced-leader-epoch', good, { leaderEpoch: 0 as LeaderEpoch }],
  ]
  let log: PartitionLog
  beforeEach(async () => {
    log = await newLog()
    appended(log, good())
  })
  test.each(cases)('%s: %s', async (_, reason, make, options) => {
    expect(await offer(log, make(), options)).toMatchObject({ ok: false, reason })
    expect(log.logEndOffset).toBe(3)
    expect(await simulation.run(readAll(log))).toHaveLength(1)
  })

  test('any flipped bit, in any byte that the CRC covers', async () => {
    const { length } = good()
    for (let at = 17; at < length; at++) {
      expect(await offer(log, flip(good(), at))).toMatchObject({ ok: false, reason: 'corrupt-message' })
    }
  })

  test('cut at any byte', async () => {
    const { length } = good()
    for (let end = 0; end < length; end++) {
      expect(await offer(log, good().subarray(0, end))).toMatchObject({ ok: false })
    }
    expect(log.logEndOffset).toBe(3)
  })
})

describe('a record set that is odd but can be read is stored', () => {
  const odd: [string, () => Buffer][] = [
    ['with a part of another batch behind it', () => Buffer.concat([good(), good().subarray(0, 40)])],
    ['from a producer without epoch', () => batchOf(3, 'v', idempotent(7, -1, 0))],
    ['with a time before 1970', () => batchOf(3, 'v', { timestamp: -2 })],
    ['that claims LogAppendTime', () => header((batch) => batch.writeInt16BE(0x08, 21))],
  ]
  test.each(odd)('%s', async (_, make) => {
    const log = await newLog()
    expect(await offer(log, make())).toMatchObject({ ok: true, baseOffset: 0, lastOffset: 2, logAppendTimeMs: -1 })
    const batches = await simulation.run(readAll(log))
    expect(batches).toHaveLength(1)
    const view = new BatchView(batches[0]!)
    expect(view.sizeBytes).toBe(batches[0]!.length)
    expect([view.hasLogAppendTime, view.crc]).toEqual([false, view.computeCrc()])
  })
})

function flip(batch: Buffer, at: number): Buffer {
  batch[at]! ^= 1
  return batch
}

/** Claims `count` records, with an offset delta that goes with it. */
function claim(count: number): Buffer {
  return header((batch) => {
    batch.writeInt32BE(count, 57)
    batch.writeInt32BE(count - 1, 23)
  })
}

function packed(codec: 'gzip' | 'snappy' | 'lz4' | 'zstd', keys = true): Buffer {
  const value = Buffer.from('value '.repeat(50))
  const records = [0, 1].map((i) => ({ timestamp: nowMs, key: keys || i === 0 ? Buffer.from(`k${i}`) : null, value }))
  return buildBatch({ codec, records })
}

describe('sizes', () => {
  test('max.message.bytes counts the batch as it is sent', async () => {
    const { length } = good()
    expect(await offer(await newLog({ 'max.message.bytes': length }), good())).toMatchObject({ ok: true })
    expect(await offer(await newLog({ 'max.message.bytes': length - 1 }), good())).toMatchObject({
      ok: false,
      reason: 'message-too-large',
    })
  })

  test('a batch larger than a segment is refused', async () => {
    const log = await newLog({ 'internal.segment.bytes': 50 })
    expect(await offer(log, good())).toMatchObject({ ok: false, reason: 'record-list-too-large' })
  })
})

describe('timestamps', () => {
  test('before and after limits hold for each record, and the records at fault are named', async () => {
    const log = await newLog({ 'message.timestamp.before.max.ms': 1000, 'message.timestamp.after.max.ms': 1000 })
    const records = [0, -2000, 0, 2000].map((delta) => ({ timestamp: nowMs + delta, value: Buffer.from('v') }))
    const result = await offer(log, buildBatch({ records }))
    expect(result).toMatchObject({ ok: false, reason: 'invalid-timestamp' })
    expect(result.ok ? [] : result.recordErrors?.map(({ batchIndex }) => batchIndex)).toEqual([1, 3])
    expect(await offer(log, buildBatch({ records: [{ timestamp: -1, value: null }] }))).toMatchObject({ ok: true })
  })

  test('a compressed batch is judged by its header, and opened to name the records at fault', async () => {
    const log = await newLog({ 'message.timestamp.before.max.ms': 1000 })
    const old = buildBatch({ codec: 'gzip', records: [{ timestamp: nowMs - 5000, value: null }] })
    expect(await offer(log, old)).toMatchObject({
      ok: false,
      reason: 'invalid-timestamp',
      recordErrors: [{ batchIndex: 0 }],
    })
  })

  test('LogAppendTime stamps every record and is answered', async () => {
    const log = await newLog({ 'message.timestamp.type': 'LogAppendTime' })
    const result = appended(log, batchOf(2, 'value', { timestamp: 5 }))
    const [stored] = await simulation.run(readAll(log))
    const view = new BatchView(stored!)
    expect(result.logAppendTimeMs).toBeGreaterThanOrEqual(nowMs)
    expect(view.hasLogAppendTime).toBe(true)
    expect(view.maxTimestamp).toBe(result.logAppendTimeMs)
    expect(view.computeCrc()).toBe(view.crc)
    expect([...readRecords(view, view.recordBytes)].map(({ timestamp }) => timestamp)).toEqual([
      result.logAppendTimeMs,
      result.logAppendTimeMs,
    ])
  })

  test('a header that claims another largest timestamp is put right', async () => {
    const log = await newLog()
    appended(
      log,
      header((batch) => batch.writeBigInt64BE(BigInt(nowMs + 1000), 35)),
    )
    const [stored] = await simulation.run(readAll(log))
    const view = new BatchView(stored!)
    expect(view.maxTimestamp).toBe(nowMs)
    expect(view.computeCrc()).toBe(view.crc)
  })
})

describe('records that must be unpacked', () => {
  test('a compacted topic refuses records without key and names them', async () => {
    const log = await newLog({ 'cleanup.policy': 'compact' })
    const keyless = buildBatch({ records: [{ timestamp: nowMs, key: Buffer.from('a') }, { timestamp: nowMs }] })
    for (const batch of [keyless, packed('gzip', false)]) {
      const result = await offer(log, batch)
      expect(result).toMatchObject({ ok: false, reason: 'invalid-record' })
      expect(result.ok ? [] : result.recordErrors).toEqual([
        { batchIndex: 1, message: 'Compacted topic cannot accept message without key' },
      ])
    }
    expect(await offer(log, packed('gzip'))).toMatchObject({ ok: true })
  })

  test('packed bytes that are none are corrupt, and a bomb is too large', async () => {
    const log = await newLog({ 'cleanup.policy': 'compact' })
    const nonsense = changed(packed('gzip'), (batch) => batch.fill(7, 61))
    expect(await offer(log, nonsense)).toMatchObject({ ok: false, reason: 'corrupt-message' })
    const inside = gzipSync(Buffer.alloc(80 * 1024 * 1024))
    const bomb = Buffer.concat([packed('gzip').subarray(0, 61), inside])
    bomb.writeInt32BE(bomb.length - 12, 8)
    expect(
      await offer(
        log,
        changed(bomb, () => {}),
      ),
    ).toMatchObject({ ok: false, reason: 'message-too-large' })
  })

  test('compression.type packs anew what came otherwise', async () => {
    for (const [type, sent, stored] of [
      ['gzip', 'none', 1],
      ['zstd', 'gzip', 4],
      ['uncompressed', 'lz4', 0],
    ] as const) {
      const log = await newLog({ 'compression.type': type })
      const records = [{ timestamp: nowMs, key: Buffer.from('key'), value: Buffer.from('value') }]
      expect(await offer(log, buildBatch({ records, codec: sent }))).toMatchObject({
        ok: true,
        baseOffset: 0,
        lastOffset: 0,
      })
      const view = new BatchView((await simulation.run(readAll(log)))[0]!)
      expect(view.codecId).toBe(stored)
      expect(view.computeCrc()).toBe(view.crc)
    }
  })

  test.each([
    ['gzip', 'compression.gzip.level', 1, 9],
    ['zstd', 'compression.zstd.level', -100, 19],
  ] as const)('%s packs as tight as %s says', async (type, key, fast, tight) => {
    const text = Array.from({ length: 3000 }, (_, i) => `${(i * 7919) % 1009} of ${(i * 31) % 97}`).join(', ')
    const sizes: number[] = []
    for (const level of [fast, tight]) {
      const log = await newLog({ 'compression.type': type, [key]: level })
      const records = [{ timestamp: nowMs, key: Buffer.from('key'), value: Buffer.from(text) }]
      expect(await offer(log, buildBatch({ records }))).toMatchObject({ ok: true })
      sizes.push(log.sizeBytes)
    }
    expect(sizes[0]).toBeGreaterThan(sizes[1]! * 1.05)
  })

  test('appends keep their order behind one that is being unpacked', async () => {
    const log = await newLog({ 'cleanup.policy': 'compact' })
    const options = { leaderEpoch: epoch, origin: 'client' } as const
    const results = ['gzip', 'none', 'zstd', 'none'].map((codec) =>
      log.appendAsLeader(
        codec === 'none' ? batchOf(1, 'plain', { timestamp: nowMs }) : packed(codec as 'gzip'),
        options,
      ),
    )
    const settled = await simulation.run(Promise.all(results))
    expect(settled.map((result) => (result.ok ? result.baseOffset : result))).toEqual([0, 2, 3, 5])
  })

  test("a coordinator's batch is appended at once, ahead of those that are being unpacked", async () => {
    const log = await newLog({ 'cleanup.policy': 'compact' })
    const unpacked = log.appendAsLeader(packed('gzip'), { leaderEpoch: epoch, origin: 'client' })
    const coordinators = log.appendAsLeader(good(), { leaderEpoch: epoch, origin: 'coordinator' })
    expect(coordinators).toMatchObject({ ok: true, baseOffset: 0, lastOffset: 2 })
    expect(await simulation.run(Promise.resolve(unpacked))).toMatchObject({ ok: true, baseOffset: 3 })
  })

  test("a coordinator's batch stays as it is, whatever the topic's compression.type", async () => {
    const log = await newLog({ 'cleanup.policy': 'compact', 'compression.type': 'gzip' })
    const result = log.appendAsLeader(good(), { leaderEpoch: epoch, origin: 'coordinator' })
    expect(result).toMatchObject({ ok: true, baseOffset: 0, lastOffset: 2 })
  })

  test('a bomb for the worker threads leaves the process alone', async () => {
    const platform = createRealPlatform()
    const path = await platform.files.makeTemporaryDirectory('rookery-log-')
    const logs = await openLogs(platform, { keys: { 'log.dirs': path } })
    try {
      const config = topicConfig({ 'cleanup.policy': 'compact' })
      const log = await logs.getOrCreate({ topic: 'orders', topicId, partition: 0, config })
      const result = await log.appendAsLeader(packed('gzip'), { leaderEpoch: epoch, origin: 'client' })
      expect(result).toMatchObject({ ok: true, lastOffset: 1 })
    } finally {
      await logs.close()
      await platform.files.removeTree(path)
    }
  })
})
