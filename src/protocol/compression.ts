import { createRequire } from 'node:module'
import type { Offload, OffloadTask } from '../platform/index.ts'
import { BatchTooLargeError, CorruptBatchError } from './faults.ts'
import { measureLz4Frame } from './lz4-frame.ts'
import { packXerial, unpackSnappy } from './snappy-blocks.ts'

/** By the number that a batch's attributes hold. */
const codecs = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const
export type Codec = (typeof codecs)[number]

/** A codec that changes the bytes. */
export type CompressionCodec = Exclude<Codec, 'none'>

/** Undefined for a number that no codec has. */
export function codecById(id: number): Codec | undefined {
  return codecs[id]
}

export function codecId(codec: Codec): number {
  return codecs.indexOf(codec)
}

/**
 * Packs `bytes` the way Kafka's clients read it: gzip, zstd and lz4 as one frame, snappy in the blocks of snappy-java.
 * On the event loop. `level`: gzip's, 1 to 9, or zstd's; their own defaults when left out or -1 for gzip. The libraries
 * for lz4 and snappy have no levels.
 */
export function compress(codec: CompressionCodec, bytes: Buffer, level?: number): Buffer {
  switch (codec) {
    case 'gzip':
      return zlib().gzipSync(bytes, level === undefined ? {} : { level })
    case 'zstd': {
      const { ZSTD_c_compressionLevel } = zlib().constants
      return zlib().zstdCompressSync(bytes, level === undefined ? {} : { params: { [ZSTD_c_compressionLevel]: level } })
    }
    case 'lz4':
      return lz4().compressFrameSync(bytes)
    case 'snappy':
      return packXerial(bytes, snappy().compressSync)
  }
}

/**
 * Unpacks what any client wrote: snappy raw or in blocks, lz4 with linked or independent blocks. Never makes more than
 * `maxBytes`: throws `BatchTooLargeError` instead, and `CorruptBatchError` for bytes the codec doesn't understand.
 * On the event loop.
 */
export function decompress(codec: CompressionCodec, bytes: Buffer, maxBytes: number): Buffer {
  try {
    switch (codec) {
      case 'gzip':
        return zlib().gunzipSync(bytes, { maxOutputLength: maxBytes })
      case 'zstd':
        return zlib().zstdDecompressSync(bytes, { maxOutputLength: maxBytes })
      case 'lz4':
        // The library has no bound of its own, so the frame is measured first.
        return lz4().decompressFrameSync(bytes.subarray(0, measureLz4Frame(bytes, maxBytes).frameBytes))
      case 'snappy':
        return unpackSnappy(bytes, maxBytes, uncompressSnappyBlock)
    }
  } catch (error) {
    if (error instanceof CorruptBatchError || error instanceof BatchTooLargeError) throw error
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw new BatchTooLargeError(maxBytes)
    throw new CorruptBatchError(`Records are no valid ${codec} data`, { cause: error })
  }
}

interface DecompressionInput {
  readonly codec: CompressionCodec
  readonly bytes: Uint8Array
  readonly maxBytes: number
}

/** Errors lose their class on the way from a worker, so they travel as values. */
type DecompressionResult =
  | { readonly bytes: Uint8Array }
  | { readonly fault: 'too-large' }
  | { readonly fault: 'corrupt'; readonly message: string }

/** `decompress` off the event loop. `bytes` are copied before it returns. */
export async function decompressOff(
  codec: CompressionCodec,
  bytes: Buffer,
  maxBytes: number,
  offload: Offload,
): Promise<Buffer> {
  // An exact copy: a slice would be cloned with all of the memory it is part of.
  const result = await offload.run(decompressionTask, { codec, bytes: new Uint8Array(bytes), maxBytes })
  if ('bytes' in result) return Buffer.from(result.bytes.buffer, result.bytes.byteOffset, result.bytes.byteLength)
  if (result.fault === 'too-large') throw new BatchTooLargeError(maxBytes)
  throw new CorruptBatchError(result.message)
}

/** Runs in a worker, which loads this module by itself. */
export const decompressionTask: OffloadTask<DecompressionInput, DecompressionResult> = {
  module: import.meta.url,
  name: 'decompressionTask',
  run: runDecompression,
}

function runDecompression(input: DecompressionInput): DecompressionResult {
  const bytes = Buffer.from(input.bytes.buffer, input.bytes.byteOffset, input.bytes.byteLength)
  try {
    return { bytes: decompress(input.codec, bytes, input.maxBytes) }
  } catch (error) {
    if (error instanceof BatchTooLargeError) return { fault: 'too-large' }
    if (error instanceof CorruptBatchError) return { fault: 'corrupt', message: error.message }
    throw error
  }
}

// The libraries are loaded when a codec is first used: most brokers pass batches through and never open one.

const load = createRequire(import.meta.url)

function zlib(): typeof import('node:zlib') {
  return process.getBuiltinModule('node:zlib')
}

function lz4(): typeof import('lz4-napi') {
  return load('lz4-napi') as typeof import('lz4-napi')
}

function snappy(): typeof import('snappy') {
  return load('snappy') as typeof import('snappy')
}

function uncompressSnappyBlock(block: Buffer): Buffer {
  return snappy().uncompressSync(block) as Buffer
}
