import { join } from 'node:path'
import type { Offset, ProducerEpoch, ProducerId } from '../base/index.ts'
import type { Files } from '../platform/index.ts'
import type { BatchView } from '../protocol/index.ts'
import { decodeProducerSnapshot } from './producer-snapshot.ts'
import { ProducerState } from './producer-state.ts'
import type { Segment } from './segment.ts'

const maxSnapshotBytes = 1024 * 1024 * 1024

/** Notes an appended batch; nothing happens when its producer isn't idempotent. */
export function replayBatch(producers: ProducerState, view: BatchView): void {
  if (view.producerId < 0 || view.isControl) return
  producers.replay({
    producerId: view.producerId as ProducerId,
    producerEpoch: view.producerEpoch as ProducerEpoch,
    baseSequence: view.baseSequence,
    baseOffset: view.baseOffset,
    lastOffset: view.lastOffset,
    timestamp: view.maxTimestamp,
  })
}

/**
 * The producer state of a log that ends at `upTo`: the newest whole snapshot, and the headers of the batches after it, those
 * below the log start included: a producer's last batch may be among them, and without it the snapshot's would pass for the
 * last. For the same reason a snapshot that doesn't reach to the first segment counts for nothing: of a producer that is not
 * known any sequence is taken, of one whose state is old the next one is refused for ever. `snapshotOffset`: of the one that
 * was taken; -1: there was none.
 */
export async function replayProducers(log: {
  readonly files: Files
  readonly directory: string
  readonly segments: readonly Segment[]
  readonly upTo: Offset
  /** Offsets of the snapshots in the folder, ascending. */
  readonly snapshots: readonly Offset[]
}): Promise<{ readonly producers: ProducerState; readonly snapshotOffset: Offset }> {
  const producers = new ProducerState()
  const snapshotOffset = await loadNewestSnapshot(log, producers)
  for (const segment of log.segments) {
    if (segment.endOffset <= snapshotOffset || segment.baseOffset >= log.upTo) continue
    const position = segment.baseOffset >= snapshotOffset ? 0 : await segment.positionOf(snapshotOffset)
    await segment.scan(position, (view) => {
      if (view.baseOffset >= log.upTo) return false
      replayBatch(producers, view)
      return true
    })
  }
  return { producers, snapshotOffset }
}

async function loadNewestSnapshot(
  log: {
    readonly files: Files
    readonly directory: string
    readonly segments: readonly Segment[]
    readonly upTo: Offset
    readonly snapshots: readonly Offset[]
  },
  producers: ProducerState,
): Promise<Offset> {
  const firstOffset = log.segments[0]?.baseOffset ?? log.upTo
  for (const offset of log.snapshots.toReversed()) {
    if (offset > log.upTo || offset < firstOffset) continue
    const content = await log.files.readFile(join(log.directory, snapshotName(offset)), maxSnapshotBytes)
    const entries = content === undefined ? undefined : decodeProducerSnapshot(content)
    if (entries === undefined) continue
    producers.load(entries)
    return offset
  }
  return -1
}

/** Offsets of the snapshots among the files of a partition's folder, ascending. */
export function snapshotsIn(names: readonly string[]): Offset[] {
  const offsets = names.filter((name) => /^\d{20}\.snapshot$/.test(name)).map((name) => Number.parseInt(name, 10))
  return offsets.sort((a, b) => a - b)
}

export function snapshotName(offset: Offset): string {
  return `${String(offset).padStart(20, '0')}.snapshot`
}
