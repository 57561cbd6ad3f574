import type { TopicConfig } from '../config/index.ts'
import type { Offload, OffloadTask } from '../platform/index.ts'
import { BatchView, batchHeaderBytes, type Codec, type CompressionCodec, codecId, compress } from '../protocol/index.ts'

interface RepackInput {
  readonly codec: CompressionCodec
  readonly level: number | undefined
  readonly recordBytes: Uint8Array
}

/** Packs the records of a batch in a worker, which finds the task by its name. @public */
export const repackTask: OffloadTask<RepackInput, Uint8Array> = {
  module: import.meta.url,
  name: 'repackTask',
  run: runRepack,
}

function runRepack(input: RepackInput): Uint8Array {
  const { buffer, byteOffset, length } = input.recordBytes
  return compress(input.codec, Buffer.from(buffer, byteOffset, length), input.level)
}

/** `recordBytes` packed by `codec` at the topic's level, in a worker. Themselves when the codec is none. */
export async function packRecords(
  codec: Codec,
  recordBytes: Buffer,
  config: TopicConfig,
  offload: Offload,
): Promise<Uint8Array> {
  if (codec === 'none') return recordBytes
  // An exact copy: a slice would be cloned for the worker with all of the memory it is part of.
  const input = { codec, level: levelOf(codec, config), recordBytes: new Uint8Array(recordBytes) }
  return await offload.run(repackTask, input)
}

/** A new batch with the header of `view` and `recordBytes` packed by `codec`. For `compression.type`. */
export async function repackBatch(
  view: BatchView,
  recordBytes: Buffer,
  codec: Codec,
  config: TopicConfig,
  offload: Offload,
): Promise<Buffer> {
  const packed = await packRecords(codec, recordBytes, config, offload)
  const batch = Buffer.allocUnsafe(batchHeaderBytes + packed.length)
  view.bytes.copy(batch, 0, 0, batchHeaderBytes)
  batch.set(packed, batchHeaderBytes)
  new BatchView(batch).stampPacked(codecId(codec), batch.length)
  return batch
}

/** Undefined where the library has no levels. */
function levelOf(codec: CompressionCodec, config: TopicConfig): number | undefined {
  if (codec === 'gzip') return config.compressionGzipLevel
  return codec === 'zstd' ? config.compressionZstdLevel : undefined
}
