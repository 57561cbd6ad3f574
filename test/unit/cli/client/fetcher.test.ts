import { describe, expect, test } from 'vitest'
import { recordsOf } from '../../../../src/cli/client/fetcher.ts'
import { buildBatch, buildControlBatch } from '../../../../src/protocol/index.ts'

const place = { topic: 't', partition: 3 }
const record = (value: string) => ({ timestamp: 5, value: Buffer.from(value) })

describe('recordsOf()', () => {
  test('reads batches of every codec and leaves one that was cut short for the next time', () => {
    const whole = (['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const).map((codec, i) =>
      buildBatch({ records: [record(`${codec}-1`), record(`${codec}-2`)], codec, baseOffset: 10 + 2 * i }),
    )
    const cut = buildBatch({ records: [record('cut')], baseOffset: 20 }).subarray(0, -1)
    const { records, nextOffset } = recordsOf(Buffer.concat([...whole, cut]), place)
    expect(records.map(({ offset, value }) => `${offset} ${value?.toString()}`)).toEqual([
      '10 none-1',
      '11 none-2',
      '12 gzip-1',
      '13 gzip-2',
      '14 snappy-1',
      '15 snappy-2',
      '16 lz4-1',
      '17 lz4-2',
      '18 zstd-1',
      '19 zstd-2',
    ])
    expect(records[0]).toMatchObject(place)
    expect(nextOffset).toBe(20)
  })

  test('passes over the markers of transactions and counts their offsets', () => {
    const marker = buildControlBatch({
      type: 'commit',
      coordinatorEpoch: 0,
      producerId: 1,
      producerEpoch: 0,
      timestamp: 1,
      baseOffset: 7,
    })
    expect(recordsOf(marker, place)).toEqual({ records: [], nextOffset: 8 })
  })

  test('refuses a damaged batch', () => {
    const batch = buildBatch({ records: [record('a')] })
    batch[batch.length - 1]! ^= 1
    expect(() => recordsOf(batch, place)).toThrow('A batch of t-3 is damaged (crc)')
  })
})
