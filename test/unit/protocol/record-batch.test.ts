import { createRequire } from 'node:module'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type BatchOptions,
  BatchView,
  buildBatch,
  buildControlBatch,
  type Codec,
  CorruptBatchError,
  checkBatch,
  checkBatchShape,
  crc32c,
  type KafkaRecord,
  openRecordBytes,
  parseControlRecord,
  readRecords,
  tooHighInt64,
  walkRecords,
} from '../../../src/protocol/index.ts'

const timestamp = 1_700_000_000_000

function recordsOf(batch: Buffer, maxBytes = 1 << 24): KafkaRecord[] {
  const view = new BatchView(batch)
  return [...readRecords(view, openRecordBytes(view, maxBytes))]
}

function walk(batch: Buffer) {
  const view = new BatchView(batch)
  return walkRecords(view, openRecordBytes(view, 1 << 24))
}

/** An uncompressed batch with these record bytes, and a count and last offset delta that go with `count`. */
function rawBatch(count: number, records: string): Buffer {
  const batch = Buffer.concat([buildBatch({ records: [{ timestamp }] }).subarray(0, 61), Buffer.from(records, 'hex')])
  batch.writeInt32BE(batch.length - 12, 8)
  batch.writeInt32BE(count - 1, 23)
  batch.writeInt32BE(count, 57)
  batch.writeUInt32BE(crc32c(batch.subarray(21)), 17)
  return batch
}

const arbitraryBytes = fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes))
const arbitraryRecord = fc.record({
  timestamp: fc.oneof(fc.integer({ min: -1, max: 2 ** 45 }), fc.constant(timestamp)),
  key: fc.option(arbitraryBytes),
  value: fc.option(arbitraryBytes),
  headers: fc.array(fc.record({ key: fc.string({ maxLength: 5 }), value: fc.option(arbitraryBytes) }), {
    maxLength: 3,
  }),
})
const arbitraryBatch = fc.record({
  records: fc.array(arbitraryRecord, { minLength: 1, maxLength: 10 }),
  codec: fc.constantFrom<Codec>('none', 'gzip', 'snappy', 'lz4', 'zstd'),
  baseOffset: fc.maxSafeNat(),
  producerId: fc.integer({ min: -1 }),
  producerEpoch: fc.integer({ min: -1, max: 32767 }),
  baseSequence: fc.integer({ min: -1 }),
  transactional: fc.boolean(),
})

describe('a batch', () => {
  test('has the golden bytes', () => {
    const batch = buildBatch({
      records: [
        { timestamp, key: Buffer.from('k'), value: Buffer.from('v') },
        { timestamp: timestamp + 300, key: null, value: Buffer.alloc(0), headers: [{ key: 'h', value: null }] },
      ],
      baseOffset: 5,
      leaderEpoch: 2,
      producerId: 1000,
      producerEpoch: 1,
      baseSequence: 7,
    })
    expect(batch.subarray(0, 17).toString('hex')).toBe('0000000000000005' + '00000045' + '00000002' + '02')
    expect(batch.readUInt32BE(17)).toBe(crc32c(batch.subarray(21)))
    expect(batch.subarray(21).toString('hex')).toBe(
      [
        [
          '0000',
          '00000001',
          '0000018bcfe56800',
          '0000018bcfe5692c',
          '00000000000003e8',
          '0001',
          '00000007',
          '00000002',
        ],
        ['10', '00', '00', '00', '02', '6b', '02', '76', '00'],
        ['14', '00', 'd804', '02', '01', '00', '02', '02', '68', '01'],
      ]
        .flat()
        .join(''),
    )
  })

  test('gives back what it was built from, with every codec', () => {
    fc.assert(
      fc.property(arbitraryBatch, (options) => {
        const batch = buildBatch(options)
        const view = new BatchView(batch)
        expect(checkBatch(batch, 0, batch.length)).toBe('ok')
        expect(view.sizeBytes).toBe(batch.length)
        expect(view.recordCount).toBe(options.records.length)
        expect(view.baseOffset).toBe(options.baseOffset)
        expect(view.producerId).toBe(options.producerId)
        expect(view.producerEpoch).toBe(options.producerEpoch)
        expect(view.baseSequence).toBe(options.baseSequence)
        expect(view.isTransactional).toBe(options.transactional)
        expect(view.isControl).toBe(false)
        const expected = options.records.map((record, i) => ({ ...record, offset: options.baseOffset + i }))
        expect(recordsOf(batch)).toEqual(expected)
        const timestamps = options.records.map((record) => record.timestamp)
        expect(walk(batch)).toEqual({
          ok: true,
          firstKeyless: options.records.findIndex((record) => record.key === null),
          maxTimestamp: Math.max(...timestamps),
          minTimestamp: Math.min(...timestamps),
        })
        expect(view.maxTimestamp).toBe(Math.max(...timestamps))
      }),
    )
  })

  test('is found and stamped anywhere in a buffer', () => {
    const one = buildBatch({ records: [{ timestamp }, { timestamp }] })
    const buffer = Buffer.concat([Buffer.alloc(7), one, one])
    const view = new BatchView(buffer, 7)
    view.stampBaseOffset(2 ** 40 + 3)
    view.stampLeaderEpoch(9)
    view.moveTo(buffer, 7 + one.length).stampBaseOffset(2 ** 40 + 5)
    expect(view.moveTo(buffer, 7).lastOffset).toBe(2 ** 40 + 4)
    expect(view.leaderEpoch).toBe(9)
    expect(checkBatch(buffer, 7, buffer.length)).toBe('ok')
    expect(view.bytes).toHaveLength(one.length)
    expect(view.moveTo(buffer, 7 + view.sizeBytes).baseOffset).toBe(2 ** 40 + 5)
    expect(view.leaderEpoch).toBe(-1)
  })

  test('stamped with an append time is valid and gives every record that time', () => {
    const batch = buildBatch({ records: [{ timestamp }, { timestamp: timestamp + 5 }], codec: 'lz4' })
    const view = new BatchView(batch)
    view.stampLogAppendTime(timestamp + 1000)
    expect(checkBatch(batch, 0, batch.length)).toBe('ok')
    expect(view.hasLogAppendTime).toBe(true)
    expect(view.codecId).toBe(3)
    expect(recordsOf(batch).map((record) => record.timestamp)).toEqual([timestamp + 1000, timestamp + 1000])
  })

  test('numbers its sequences across the wrap', () => {
    const batch = buildBatch({ records: [{ timestamp }, { timestamp }, { timestamp }], baseSequence: 2 ** 31 - 2 })
    expect(new BatchView(batch).lastSequence).toBe(0)
  })

  test('with timestamps beyond 2^53 reads as out of range, and keeps its bytes', () => {
    const batch = buildBatch({ records: [{ timestamp: 1 }, { timestamp: 2 ** 40 }] })
    batch.writeBigInt64BE(2n ** 63n - 1n, 27)
    batch.writeBigInt64BE(2n ** 63n - 1n, 35)
    expect(new BatchView(batch).maxTimestamp).toBe(tooHighInt64)
    expect(recordsOf(batch).map((record) => record.timestamp)).toEqual([tooHighInt64, tooHighInt64])
    expect(walk(batch)).toMatchObject({ ok: true, maxTimestamp: tooHighInt64 })
    expect(batch.readBigInt64BE(35)).toBe(2n ** 63n - 1n)
  })
})

describe('checkBatch', () => {
  const batch = buildBatch({ records: [{ timestamp, value: Buffer.from('value') }] })

  test('finds every cut', () => {
    for (let end = 0; end < batch.length; end++) expect(checkBatch(batch, 0, end)).toBe('truncated')
    expect(checkBatch(batch, 0, batch.length)).toBe('ok')
  })

  test('finds every flipped bit but those the broker sets', () => {
    for (let bit = 0; bit < batch.length * 8; bit++) {
      const byte = bit >> 3
      const flipped = Buffer.from(batch)
      flipped[byte] = flipped[byte]! ^ (1 << (bit & 7))
      const outsideCrc = byte < 8 || (byte >= 12 && byte < 16)
      expect(checkBatch(flipped, 0, flipped.length) === 'ok', `bit ${bit}`).toBe(outsideCrc)
    }
  })

  test('names what is wrong', () => {
    const changed = (at: number, byte: number) => {
      const copy = Buffer.from(batch)
      copy[at] = byte
      return checkBatch(copy, 0, copy.length)
    }
    expect(changed(16, 1)).toBe('magic')
    expect(changed(8, 0xff)).toBe('length')
    expect(changed(11, 48)).toBe('length')
    expect(changed(8, 0x7f)).toBe('truncated')
    expect(changed(30, 0xff)).toBe('crc')
    expect(checkBatchShape(batch, 0, batch.length)).toBe('ok')
  })
})

describe('walkRecords', () => {
  test('passes records framed by hand', () => {
    expect(walk(rawBatch(1, '0c' + '00' + '00' + '00' + '01' + '01' + '00'))).toMatchObject({
      ok: true,
      firstKeyless: 0,
    })
    const withHeader = '100002020000020001'
    expect(walk(rawBatch(2, `0c000000010100${withHeader}`))).toMatchObject({ ok: true, firstKeyless: 0 })
  })

  test.each([
    ['a record longer than its fields', '0e00000001010000'],
    ['a record shorter than its fields', '0a000000010100'],
    ['a record past the end', '7e000000010100'],
    ['a negative length', '01000000010100'],
    ['an offset delta that is not the next', '0c000002010100'],
    ['a key past the end', '0c0000007e0100'],
    ['a key of 1 GiB', '140000008080808008010000'],
    ['a value past the end', '0c000000017e00'],
    ['more headers than bytes', '0c00000001017e'],
    ['a negative header count', '0c000000010101'],
    ['a header without a key', '10000000010102' + '01' + '01'],
    ['a varint of eleven bytes', '2800ffffffffffffffffffff010000010100000000'],
    ['a varint of 33 bits', '140000' + '8080808010' + '010100'],
    ['a varint that goes on into the next field', '0e00' + '8080' + '00010100'],
    ['a negative length that hides the right one', '0d000000010100'],
    ['bytes after the last record', '0c00000001010000'],
    ['no bytes at all', ''],
  ])('finds %s', (what, records) => {
    const batch = rawBatch(1, records)
    expect(checkBatch(batch, 0, batch.length)).toBe('ok')
    expect(walk(batch)).toMatchObject({ ok: false })
    if (what !== 'an offset delta that is not the next') expect(() => recordsOf(batch)).toThrow(CorruptBatchError)
  })

  test('refuses a header count by the bytes that are left', () => {
    expect(walk(rawBatch(1, '0c00000001017e'))).toEqual({
      ok: false,
      reason: 'Record claims 63 headers with 0 bytes left',
    })
  })

  test('finds a count or a last offset delta that is not the records', () => {
    const records = '0c000000010100' + '0c000002010100'
    expect(walk(rawBatch(2, records))).toMatchObject({ ok: true })
    expect(walk(rawBatch(1, records))).toEqual({ ok: false, reason: 'Bytes are left after the last record' })
    expect(walk(rawBatch(3, records))).toEqual({ ok: false, reason: 'Batch claims 3 records in 14 bytes' })
    expect(walk(rawBatch(-1, records))).toMatchObject({ ok: false })
    expect(walk(rawBatch(2 ** 31 - 1, records))).toMatchObject({ ok: false })
    const batch = rawBatch(2, records)
    batch.writeInt32BE(2, 23)
    expect(walk(batch)).toEqual({ ok: false, reason: 'Batch of 2 records has last offset delta 2' })
  })

  test('never throws, and passes just what readRecords reads in whole', () => {
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 })
    const random = fc.tuple(fc.integer({ min: 0, max: 4 }), fc.uint8Array({ maxLength: 40 }))
    fc.assert(
      fc.property(arbitraryBatch, changes, random, (options, changed, [count, bytes]) => {
        const batch = buildBatch({ ...options, codec: 'none' })
        for (const [at, byte] of changed) batch[61 + (at % (batch.length - 61))] = byte
        for (const each of [batch, rawBatch(count, Buffer.from(bytes).toString('hex'))]) {
          const walked = walk(each)
          const records = recordsIfReadable(each)
          const { baseOffset } = new BatchView(each)
          expect(walked.ok).toBe(records?.every((record, i) => record.offset === baseOffset + i) ?? false)
          if (!walked.ok) continue
          expect(walked.firstKeyless).toBe(records?.findIndex((record) => record.key === null))
          if (records?.length) expect(walked.maxTimestamp).toBe(Math.max(...records.map((record) => record.timestamp)))
        }
      }),
      { numRuns: 300 },
    )
  })
})

/** Undefined when the batch is refused; any other error fails the test. */
function recordsIfReadable(batch: Buffer): KafkaRecord[] | undefined {
  try {
    return recordsOf(batch)
  } catch (error) {
    if (error instanceof CorruptBatchError) return undefined
    throw error
  }
}

test('offsets that do not rise, or pass the last, are corrupt', () => {
  const same = rawBatch(2, '0c000002010100' + '0c000002010100')
  expect(() => recordsOf(same)).toThrow('Record 1 has offset delta 1 after 1')
  const beyond = rawBatch(2, '0c000000010100' + '0c000004010100')
  expect(() => recordsOf(beyond)).toThrow('Record 1 has offset delta 2 after 0')
})

test('a compacted batch keeps the offsets of the records that are left', () => {
  const batch = rawBatch(2, '0c000004010100' + '0c00000a010100')
  batch.writeInt32BE(9, 23)
  expect(recordsOf(batch).map((record) => record.offset)).toEqual([2, 5])
  expect(new BatchView(batch).lastOffset).toBe(9)
  expect(walk(batch)).toMatchObject({ ok: false })
})

test('a control batch holds a marker that is read back', () => {
  const marker = { coordinatorEpoch: 77 }
  for (const type of ['abort', 'commit'] as const) {
    const batch = buildControlBatch({ ...marker, type, producerId: 4, producerEpoch: 2, timestamp })
    const view = new BatchView(batch)
    expect([view.isControl, view.isTransactional, view.baseSequence]).toEqual([true, true, -1])
    expect(recordsOf(batch).map(parseControlRecord)).toEqual([{ ...marker, type }])
  }
  expect(parseControlRecord({ key: Buffer.from('00000002', 'hex'), value: Buffer.alloc(6) })).toBe(undefined)
  expect(parseControlRecord({ key: Buffer.alloc(3), value: Buffer.alloc(6) })).toBe(undefined)
  expect(parseControlRecord({ key: null, value: null })).toBe(undefined)
})

describe('kafkajs', () => {
  const load = createRequire(import.meta.url)
  const KafkaDecoder = load('kafkajs/src/protocol/decoder') as new (bytes: Buffer) => object
  const decodeBatch = load('kafkajs/src/protocol/recordBatch/v0/decoder') as (decoder: object) => Promise<{
    readonly records: readonly { readonly key: Buffer | null; readonly value: Buffer | null; readonly offset: string }[]
  }>
  const produceRequest = load('kafkajs/src/protocol/requests/produce/v7/request') as (options: object) => {
    encode(): Promise<{ buffer: Buffer }>
  }

  test('reads our batches', async () => {
    const options: BatchOptions = {
      baseOffset: 30,
      codec: 'gzip',
      records: [
        { timestamp, key: Buffer.from('a'), value: Buffer.from('b'), headers: [{ key: 'h', value: Buffer.from('x') }] },
        { timestamp: timestamp - 70_000, key: null, value: null },
      ],
    }
    for (const codec of ['none', 'gzip'] as const) {
      const { records } = await decodeBatch(new KafkaDecoder(buildBatch({ ...options, codec })))
      expect(records).toMatchObject([
        { key: Buffer.from('a'), value: Buffer.from('b'), offset: '30', headers: { h: Buffer.from('x') } },
        { key: null, value: null, offset: '31', timestamp: String(timestamp - 70_000) },
      ])
    }
  })

  test('writes batches that we read', async () => {
    const messages = [
      { key: 'k', value: 'first', timestamp },
      { key: null, value: 'second', timestamp: timestamp + 1, headers: { name: 'v' } },
    ]
    for (const compression of [0, 1]) {
      const topicData = [{ topic: 't', partitions: [{ partition: 0, firstSequence: 0, messages }] }]
      const { buffer } = await produceRequest({ acks: -1, timeout: 1, compression, topicData }).encode()
      const batch = buffer.subarray(buffer.indexOf(Buffer.from('0000000000000000', 'hex'), 19))
      expect(checkBatch(batch, 0, batch.length)).toBe('ok')
      expect(walk(batch)).toMatchObject({ ok: true, firstKeyless: 1 })
      expect(recordsOf(batch)).toMatchObject([
        { key: Buffer.from('k'), value: Buffer.from('first'), timestamp },
        { key: null, value: Buffer.from('second'), headers: [{ key: 'name', value: Buffer.from('v') }] },
      ])
    }
  })
})
