import { createRequire } from 'node:module'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Offload } from '../../../src/platform/index.ts'
import { type CompressionCodec, compress, decompress, decompressionTask } from '../../../src/protocol/compression.ts'
import {
  BatchTooLargeError,
  BatchView,
  buildBatch,
  CorruptBatchError,
  codecById,
  codecId,
  openRecordBytes,
  openRecordBytesOff,
} from '../../../src/protocol/index.ts'
import { measureLz4Frame } from '../../../src/protocol/lz4-frame.ts'

const load = createRequire(import.meta.url)
const snappy = load('snappy') as { compressSync(bytes: Buffer): Buffer }
const lz4 = load('lz4-napi') as typeof import('lz4-napi')

const codecs: CompressionCodec[] = ['gzip', 'snappy', 'lz4', 'zstd']
const samples = [
  Buffer.alloc(0),
  Buffer.from('x'),
  Buffer.alloc(100_000, 'compressible '),
  Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * i * 31 + (i >> 3)) & 0xff)),
]

/** The Offload port as the simulation has it, but with the copies a worker makes. */
const offload: Offload = {
  run: async (task, input) => structuredClone(task.run(structuredClone(input))),
}

describe.each(codecs)('%s', (codec) => {
  test('unpacks what it packed, up to the very bound', () => {
    for (const bytes of samples) {
      const packed = compress(codec, bytes)
      expect(decompress(codec, packed, Math.max(bytes.length, 1))).toEqual(bytes)
      if (bytes.length > 1) expect(() => decompress(codec, packed, bytes.length - 1)).toThrow(BatchTooLargeError)
    }
  })

  test('refuses a bomb in little time and memory', () => {
    const bomb = compress(codec, Buffer.alloc(64 << 20))
    const before = process.memoryUsage.rss()
    expect(() => decompress(codec, bomb, 1 << 20)).toThrow('Record batch unpacks to more than 1048576 bytes')
    expect(process.memoryUsage.rss() - before).toBeLessThan(32 << 20)
  })

  test('calls cut and changed bytes corrupt, and throws nothing else', () => {
    const packed = compress(codec, samples[2]!.subarray(0, 3000))
    for (let length = 0; length < packed.length; length++) tryDecompress(codec, packed.subarray(0, length))
    const change = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 })
    fc.assert(
      fc.property(change, fc.uint8Array({ maxLength: 40 }), (changes, random) => {
        const bytes = Buffer.from(packed)
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte
        tryDecompress(codec, bytes)
        tryDecompress(codec, Buffer.from(random))
        tryDecompress(codec, Buffer.concat([packed.subarray(0, 16), random]))
      }),
      { numRuns: 500 },
    )
    expect(() => decompress(codec, packed.subarray(0, packed.length / 2), 1 << 20)).toThrow(CorruptBatchError)
  })

  test('opens a batch off the loop with the same result and the same errors', async () => {
    const batch = new BatchView(buildBatch({ codec, records: [{ timestamp: 1, value: samples[2]! }] }))
    const opened = await openRecordBytesOff(batch, 1 << 20, offload)
    expect(Buffer.isBuffer(opened)).toBe(true)
    expect(opened).toEqual(openRecordBytes(batch, 1 << 20))
    await expect(openRecordBytesOff(batch, 1000, offload)).rejects.toThrow(BatchTooLargeError)
    batch.buffer.fill(0xff, 61 + 20)
    await expect(openRecordBytesOff(batch, 1 << 20, offload)).rejects.toThrow(CorruptBatchError)
  })

  test('has its number in the attributes', () => {
    expect(codecById(codecId(codec))).toBe(codec)
    expect(new BatchView(buildBatch({ codec, records: [{ timestamp: 1 }] })).codecId).toBe(codecId(codec))
  })
})

/** Whatever comes out is within the bound; what is refused is refused with the two errors there are. */
function tryDecompress(codec: CompressionCodec, bytes: Buffer): void {
  try {
    expect(decompress(codec, bytes, 100_000).length).toBeLessThanOrEqual(100_000)
  } catch (error) {
    if (!(error instanceof BatchTooLargeError)) expect(error).toBeInstanceOf(CorruptBatchError)
  }
}

test('snappy is read raw, as librdkafka writes it, and in blocks, as Java does', () => {
  const bytes = samples[2]!
  expect(decompress('snappy', snappy.compressSync(bytes), bytes.length)).toEqual(bytes)
  const packed = compress('snappy', bytes)
  expect(packed.subarray(0, 16).toString('hex')).toBe('82534e41505059000000000100000001')
  // 100,000 bytes in blocks of 32 KiB: four of them.
  let blocks = 0
  for (let at = 16; at < packed.length; at += 4 + packed.readInt32BE(at)) blocks++
  expect(blocks).toBe(4)
})

test('a snappy block that claims 4 GiB is refused by its claim', () => {
  const claim = Buffer.from('ffffffff0f00', 'hex')
  expect(() => decompress('snappy', claim, 1 << 20)).toThrow(BatchTooLargeError)
  expect(() => decompress('snappy', Buffer.from('ffffffffffffff', 'hex'), 1 << 20)).toThrow(CorruptBatchError)
  const xerial = (block: Buffer) => Buffer.concat([compress('snappy', Buffer.alloc(0)), block])
  expect(() => decompress('snappy', xerial(Buffer.from('7fffffff00', 'hex')), 1 << 20)).toThrow(CorruptBatchError)
  expect(() => decompress('snappy', xerial(Buffer.from('0000', 'hex')), 1 << 20)).toThrow(CorruptBatchError)
})

test('an lz4 frame is measured without unpacking it, with and without checksums', () => {
  for (const bytes of [...samples, Buffer.alloc(3 << 20, 'abcdefghij')]) {
    for (const options of [{}, { contentChecksum: true }, { blockChecksums: true }]) {
      const frame = lz4.compressFrameSync(bytes, options)
      expect(measureLz4Frame(frame, 4 << 20)).toEqual({ frameBytes: frame.length, unpackedBytes: bytes.length })
      expect(decompress('lz4', Buffer.concat([frame, Buffer.from('rest')]), 4 << 20)).toEqual(bytes)
    }
  }
})

test('gzip and zstd frames of other levels are read', () => {
  const bytes = samples[2]!
  expect(decompress('gzip', gzipSync(bytes, { level: 1 }), bytes.length)).toEqual(bytes)
  expect(decompress('zstd', zstdCompressSync(bytes), bytes.length)).toEqual(bytes)
})

test('a worker gets the packed bytes alone, not the memory they are part of', async () => {
  const batch = buildBatch({ codec: 'gzip', records: [{ timestamp: 1, value: samples[2]! }] })
  const view = new BatchView(Buffer.concat([Buffer.alloc(1 << 20), batch]), 1 << 20)
  let cloned = 0
  const watching: Offload = {
    run: async (task, input) => {
      cloned = (input as { readonly bytes: Uint8Array }).bytes.buffer.byteLength
      return task.run(input)
    },
  }
  expect(await openRecordBytesOff(view, 1 << 20, watching)).toEqual(openRecordBytes(view, 1 << 20))
  expect(cloned).toBe(view.recordBytes.length)
})

test('a codec that does not exist is a corrupt batch', () => {
  const batch = buildBatch({ records: [{ timestamp: 1 }] })
  batch[22] = 5
  expect(() => openRecordBytes(new BatchView(batch), 100)).toThrow('Batch names codec 5, which does not exist')
})

test('a worker finds the task by its name', async () => {
  const module = (await import(decompressionTask.module)) as Record<string, unknown>
  expect(module[decompressionTask.name]).toBe(decompressionTask)
})
