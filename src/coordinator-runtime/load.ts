import type { Offset } from '../base/index.ts'
import { type Clock, type Offload, pause, type Timers } from '../platform/index.ts'
import { BatchView, codecById, openRecordBytesOff, readRecords } from '../protocol/index.ts'
import type { Pacer } from './pacer.ts'
import type { PartitionStore, StoreBounds } from './ports.ts'
import type { Shard } from './shard.ts'
import type { RecordCodec, StateMachine } from './state-machine.ts'

/** Bytes asked of the store at once. */
const readBytes = 1 << 20
/** What one batch may unpack to: far above what a coordinator writes, far below what would hurt. */
const maxUnpackedBytes = 64 << 20
/** Wait for the high watermark to reach what was in the log when loading began. */
const commitPollMs = 10
/** Records between two looks at the clock. */
const recordsPerLook = 64

interface LoadTools<R> {
  readonly store: PartitionStore
  readonly codec: RecordCodec<R>
  readonly clock: Clock
  readonly timers: Timers
  readonly offload: Offload
}

/**
 * Replays a partition into the shard's machine, up to the log's end as it was at the call. Gives up quietly when the shard
 * is closed. Rejects when the log cannot be read or holds what the codec cannot.
 */
export async function loadShard<M extends StateMachine<R, E>, R, E>(
  shard: Shard<M, R, E>,
  tools: LoadTools<R>,
  pacer: Pacer,
): Promise<'not-leader' | Loaded> {
  const { store } = tools
  const bounds = store.bounds(shard.partition, shard.leaderEpoch)
  if (bounds === undefined) return 'not-leader'
  if (bounds.startOffset === bounds.logEndOffset) return { records: 0, bytes: 0 }
  await pacer.enter()
  try {
    return await replayUpTo(bounds, shard, tools, pacer)
  } finally {
    pacer.leave()
  }
}

interface Loaded {
  readonly records: number
  readonly bytes: number
}

async function replayUpTo<M extends StateMachine<R, E>, R, E>(
  bounds: StoreBounds,
  shard: Shard<M, R, E>,
  tools: LoadTools<R>,
  pacer: Pacer,
): Promise<'not-leader' | Loaded> {
  const { partition, leaderEpoch } = shard
  const { store, timers } = tools
  const loaded = { records: 0, bytes: 0 }
  let position = bounds.startOffset
  while (position < bounds.logEndOffset && shard.phase === 'loading') {
    // Taken before the read: an empty answer then means that nothing is left below this offset (compaction leaves gaps).
    const committed = store.bounds(partition, leaderEpoch)
    if (committed === undefined) return 'not-leader'
    const chunks = await store.read(partition, leaderEpoch, position, readBytes)
    if (chunks === 'not-leader') return 'not-leader'
    for (const chunk of chunks) {
      const read = await replayChunk(shard, chunk, tools, pacer)
      loaded.records += read.records
      loaded.bytes += chunk.length
      position = read.nextOffset
    }
    if (chunks.length > 0) continue
    if (store.bounds(partition, leaderEpoch) === undefined) return 'not-leader'
    if (committed.highWatermark >= bounds.logEndOffset) break
    pacer.leave()
    await pause(timers, commitPollMs)
    await pacer.enter()
  }
  return loaded
}

/**
 * Markers, and records inside transactions, are passed over: what became of a transaction is for its own replay to know.
 * Batches of a chunk share stretches of work: a turn of a busy loop for each of many small ones would take minutes.
 */
async function replayChunk<M extends StateMachine<R, E>, R, E>(
  shard: Shard<M, R, E>,
  chunk: Buffer,
  { codec, clock, offload }: LoadTools<R>,
  pacer: Pacer,
): Promise<{ readonly records: number; readonly nextOffset: Offset }> {
  let records = 0
  let until = await pacer.turn()
  const batch = new BatchView(chunk)
  for (let position = 0; position < chunk.length; position += batch.sizeBytes) {
    batch.moveTo(chunk, position)
    if (batch.isControl || batch.isTransactional) continue
    let { recordBytes } = batch
    if (codecById(batch.codecId) !== 'none') {
      recordBytes = await openRecordBytesOff(batch, maxUnpackedBytes, offload)
      until = await pacer.turn()
    }
    for (const { key, value } of readRecords(batch, recordBytes)) {
      if (shard.phase !== 'loading') break
      const record = key === null ? undefined : codec.decode(key, value)
      if (record !== undefined) shard.machine.replay(record)
      records++
      if (records % recordsPerLook === 0 && clock.monotonic() >= until) until = await pacer.turn()
    }
  }
  return { records, nextOffset: batch.lastOffset + 1 }
}
