import type { Offload, OffloadTask } from '../platform/index.ts'
import { BatchView, batchHeaderBytes, type Codec, type CompressionCodec, codecId, compress } from '../protocol/index.ts'

interface RepackInput {
  readonly codec: CompressionCodec
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
  return compress(input.codec, Buffer.from(buffer, byteOffset, length))
}

/** A new batch with the header of `view` and `recordBytes` packed by `codec`. For `compression.type`. */
export async function repackBatch(
  view: BatchView,
  recordBytes: Buffer,
  codec: Codec,
  offload: Offload,
): Promise<Buffer> {
  // An exact copy: a slice would be cloned for the worker with all of the memory it is part of.
  const packed =
    codec === 'none' ? recordBytes : await offload.run(repackTask, { codec, recordBytes: new Uint8Array(recordBytes) })
  const batch = Buffer.allocUnsafe(batchHeaderBytes + packed.length)
  view.bytes.copy(batch, 0, 0, batchHeaderBytes)
  batch.set(packed, batchHeaderBytes)
  new BatchView(batch).stampPacked(codecId(codec), batch.length)
  return batch
}
