import type { Clock, Timers } from '../platform/index.ts'
import { readRecords } from './batch.ts'
import type { Pacer } from './pacer.ts'
import type { PartitionStore } from './ports.ts'
import type { Shard } from './shard.ts'
import type { RecordCodec, StateMachine } from './state-machine.ts'

/** Bytes asked of the store at once. */
const readBytes = 1 << 20
/** Wait for the high watermark to reach what was in the log when loading began. */
const commitPollMs = 10
/** Records between two looks at the clock. */
const recordsPerLook = 64

interface LoadTools<R> {
  readonly store: PartitionStore
  readonly codec: RecordCodec<R>
  readonly clock: Clock
  readonly timers: Timers
  readonly pacer: Pacer
}

/**
 * Replays a partition into the shard's machine, up to the log's end as it was at the call. Gives up quietly when the shard
 * is closed. Rejects when the log cannot be read or holds what the codec cannot.
 */
export async function loadShard<M extends StateMachine<R, E>, R, E>(
  shard: Shard<M, R, E>,
  tools: LoadTools<R>,
): Promise<'not-leader' | { readonly records: number; readonly bytes: number }> {
  const { partition, leaderEpoch } = shard
  const { store, timers } = tools
  const bounds = store.bounds(partition, leaderEpoch)
  if (bounds === undefined) return 'not-leader'
  const loaded = { records: 0, bytes: 0 }
  let position = bounds.startOffset
  while (position < bounds.logEndOffset && shard.phase === 'loading') {
    // Taken before the read: an empty answer then means that nothing is left below this offset (compaction leaves gaps).
    const committed = store.bounds(partition, leaderEpoch)
    if (committed === undefined) return 'not-leader'
    const batches = await store.read(partition, leaderEpoch, position, readBytes)
    if (batches === 'not-leader') return 'not-leader'
    for (const batch of batches) {
      loaded.bytes += batch.length
      const read = await replayBatch(shard, batch, tools)
      loaded.records += read.records
      position = read.nextOffset
    }
    if (batches.length === 0) {
      if (committed.highWatermark >= bounds.logEndOffset) break
      await new Promise<void>((resolve) => timers.set(commitPollMs, resolve))
    }
  }
  return loaded
}

async function replayBatch<M extends StateMachine<R, E>, R, E>(
  shard: Shard<M, R, E>,
  batch: Buffer,
  { codec, clock, pacer }: LoadTools<R>,
): Promise<{ readonly records: number; readonly nextOffset: number }> {
  let until = await pacer.turn()
  let records = 0
  const { nextOffset, each } = await readRecords(batch)
  for (const { key, value } of each) {
    if (shard.phase !== 'loading') break
    const record = codec.decode(key, value)
    if (record !== undefined) shard.machine.replay(record)
    records++
    if (records % recordsPerLook === 0 && clock.monotonic() >= until) until = await pacer.turn()
  }
  return { records, nextOffset }
}
