import { join } from 'node:path'
import type { LeaderEpoch, Offset } from '../base/index.ts'
import type { TopicConfig } from '../config/index.ts'
import type { Files } from '../platform/index.ts'
import { scanBatches } from './batch-scan.ts'
import { partitionMetadataFile, readEpochs, writeEpochs } from './checkpoint-files.ts'
import type { LogEnvironment } from './environment.ts'
import { EpochCache, type EpochEntry } from './epoch-cache.ts'
import { StorageError } from './errors.ts'
import type { TimeIndexEntry } from './indexes.ts'
import type { LoadedLog } from './local-log.ts'
import { replayProducers, snapshotName, snapshotsIn } from './producer-replay.ts'
import { ProducerState } from './producer-state.ts'
import { largestTimestampOf, Segment } from './segment.ts'
import { finishReplacements } from './segment-replacement.ts'

export interface LoadOptions {
  readonly environment: LogEnvironment
  /** The partition's folder. */
  readonly directory: string
  readonly config: TopicConfig
  /** The log was closed: its files are as they should be, and only the end is looked at. */
  readonly isClean: boolean
  /** What lies below was synced before the crash. */
  readonly recoveryPoint: Offset
  /** -1: the checkpoint says nothing. */
  readonly logStartOffset: Offset
  readonly highWatermark: Offset
  /** Below it compaction may have left holes; -1: it never ran. */
  readonly cleanedOffset: Offset
}

/**
 * Loads a partition's folder. After a crash, from the recovery point on: takes the CRC of every batch, drops what is torn,
 * rebuilds indexes, epochs and producer state, and syncs what it kept. Damage before the recovery point, where everything
 * had been synced, is a `StorageError`: cutting there would lose what was acknowledged.
 */
export async function loadPartition(options: LoadOptions): Promise<LoadedLog> {
  const { environment, directory } = options
  const { files } = environment.platform
  const epochs = new EpochCache()
  const storedEpochs = await readEpochs(files, directory)
  epochs.load(storedEpochs)
  const names = await removeLeftovers(options)
  let segments = await findSegments(options, names)
  const recoveryPoint = options.isClean ? 0 : options.recoveryPoint
  if (segments.length === 0 && recoveryPoint > Math.max(0, options.logStartOffset)) {
    throw damaged(directory, 0, recoveryPoint)
  }
  if (segments.length === 0 && options.logStartOffset <= 0) {
    const producers = { producers: new ProducerState(), snapshotOffset: -1 }
    return { segments, logStartOffset: 0, highWatermark: options.highWatermark, epochs: [], ...producers }
  }
  if (segments.length > 0) {
    if (options.isClean) await resumeActive(segments.at(-1)!, names, options.config)
    else segments = await recover(options, segments, epochs)
  }
  const logStartOffset = Math.max(options.logStartOffset, segments[0]?.baseOffset ?? 0)
  if (logStartOffset > (segments.at(-1)?.endOffset ?? 0)) {
    // What was deleted up to the log start had been there, and a crash took it together with the rest.
    for (const segment of segments.reverse()) await segment.remove()
    segments = [Segment.empty(environment, directory, logStartOffset, environment.platform.clock.now())]
    segments[0]!.log.createSync()
  }
  const logEndOffset = segments.at(-1)!.endOffset
  epochs.truncateFromEnd(logEndOffset)
  epochs.truncateFromStart(logStartOffset)
  if (!isSameEpochs(epochs.entries, storedEpochs)) await writeEpochs(files, directory, epochs.entries)
  const snapshots = snapshotsIn(names)
  await removeSnapshots(options, snapshots, (offset) => offset > logEndOffset)
  const { producers, snapshotOffset } = await replayProducers({
    files,
    directory,
    segments,
    upTo: logEndOffset,
    snapshots,
  })
  const bases = new Set(segments.map((segment) => segment.baseOffset))
  await removeSnapshots(options, snapshots, (offset) => offset !== snapshotOffset && !bases.has(offset))
  producers.expire(environment.platform.clock.now(), environment.producerIdExpirationMs)
  if (!options.isClean && !areNamesDurable(options, segments)) {
    // A process that was killed may have left the first files of a partition in the page cache.
    await environment.scheduler.run('log', async () => {
      await syncFile(files, join(directory, partitionMetadataFile))
      await files.syncDirectory(directory)
    })
  }
  const { highWatermark } = options
  return { segments, logStartOffset, highWatermark, epochs: epochs.entries, producers, snapshotOffset }
}

/** A sync covered records of the last segment, and with them every name in the folder and whose it is. */
function areNamesDurable({ recoveryPoint }: LoadOptions, segments: readonly Segment[]): boolean {
  return recoveryPoint > segments.at(-1)!.baseOffset
}

/** Removes what an earlier run had not finished; answers the names of all other files. */
async function removeLeftovers({ environment, directory }: LoadOptions): Promise<readonly string[]> {
  const { files } = environment.platform
  await finishReplacements(environment, directory)
  const names: string[] = []
  for (const { name, kind } of (await files.list(directory)) ?? []) {
    if (kind !== 'file') continue
    if (/\.(deleted|tmp|cleaned)$/.test(name)) await files.remove(join(directory, name))
    else names.push(name)
  }
  return names
}

/** The segments that the folder holds, without those that lie below the log start. */
async function findSegments(options: LoadOptions, names: readonly string[]): Promise<Segment[]> {
  const { environment, directory } = options
  const { files, clock } = environment.platform
  const bases = names.filter((name) => /^\d{20}\.log$/.test(name)).map((name) => Number.parseInt(name, 10))
  bases.sort((a, b) => a - b)
  // A crash came between the removal of a segment's log and that of its indexes.
  const indexes = names.filter((name) => /^\d{20}\.(index|timeindex)$/.test(name))
  const orphans = indexes.filter((name) => !bases.includes(Number.parseInt(name, 10)))
  for (const name of orphans) await files.remove(join(directory, name))
  const segments: Segment[] = []
  for (const [index, baseOffset] of bases.entries()) {
    const endOffset = bases[index + 1] ?? Number.POSITIVE_INFINITY
    const segment = new Segment({
      files: environment,
      directory,
      baseOffset,
      endOffset,
      sizeBytes: (await files.stat(join(directory, `${String(baseOffset).padStart(20, '0')}.log`)))?.sizeBytes ?? 0,
      createdMs: clock.now(),
    })
    if (endOffset <= options.logStartOffset) await segment.remove()
    else segments.push(segment)
  }
  return segments
}

/** What is so short is read as fast as its indexes. */
const shortBytes = 64 * 1024

/** After a clean shutdown: finds the end of the log behind the last index entry. */
async function resumeActive(active: Segment, names: readonly string[], config: TopicConfig): Promise<void> {
  if (active.sizeBytes <= shortBytes) {
    active.resetIndexes()
    await active.scan(0, (view, position) => {
      active.noteBatch(view, position, config)
      return true
    })
    active.noteLargestTimestamp()
    if (active.indexNames.every((name) => names.includes(name))) active.noteIndexesStored()
    return
  }
  const { offsets, times } = await active.loadIndexes()
  let endOffset = active.baseOffset
  let largest: TimeIndexEntry = times.last ?? { timestamp: -1, offset: active.baseOffset }
  await active.scan(offsets.lastPosition, (view) => {
    endOffset = view.lastOffset + 1
    const timestamp = largestTimestampOf(view)
    if (timestamp > largest.timestamp) largest = { timestamp, offset: view.lastOffset }
    return true
  })
  active.resume(endOffset, largest)
}

/** After a crash. Answers the segments that stay. */
async function recover(options: LoadOptions, segments: Segment[], epochs: EpochCache): Promise<Segment[]> {
  const { environment, directory, recoveryPoint } = options
  const first = Math.max(
    0,
    segments.findLastIndex((segment) => segment.baseOffset <= recoveryPoint),
  )
  for (let index = first; index < segments.length; index++) {
    const segment = segments[index]!
    const next = segments[index + 1]
    const fault = await recoverSegment(options, segment, epochs)
    // What was compacted had been synced: a hole there is no end that a crash took.
    const isHole =
      next !== undefined && segment.endOffset !== next.baseOffset && next.baseOffset > options.cleanedOffset
    if ((fault !== undefined || isHole) && segment.endOffset < recoveryPoint) {
      throw damaged(segment.log.path, segment.endOffset, recoveryPoint, fault)
    }
    const isLast = next === undefined || fault !== undefined || isHole
    // It ends where the last sync did: nothing in it is in the page cache only.
    if (next === undefined && fault === undefined && segment.endOffset === recoveryPoint) break
    await environment.scheduler.run('log', async () => {
      if (!isLast) {
        segment.noteLargestTimestamp()
        await segment.storeIndexes()
      }
      await segment.syncAll()
    })
    if (!isLast) {
      environment.indexCache.touch(segment)
      continue
    }
    environment.logger.info(
      { directory, logEndOffset: segment.endOffset, ...(fault === undefined ? {} : { torn: fault }) },
      'log recovered',
    )
    for (const dropped of segments.splice(index + 1).reverse()) await dropped.remove()
  }
  const endOffset = segments.at(-1)!.endOffset
  if (endOffset < recoveryPoint) throw damaged(directory, endOffset, recoveryPoint)
  return segments
}

/** Checks every batch, fills the indexes, and cuts the file where the good batches end; answers what was wrong there. */
async function recoverSegment(options: LoadOptions, segment: Segment, epochs: EpochCache): Promise<string | undefined> {
  const { environment, config } = options
  environment.probe.recoveredSegments.value++
  segment.resetIndexes()
  let fault: string | undefined
  let goodBytes = 0
  const scan = await scanBatches({
    file: segment.log,
    buffers: environment.buffers,
    from: 0,
    to: segment.sizeBytes,
    verifyCrc: true,
    visit: (view, position) => {
      if (view.baseOffset < segment.endOffset) fault = 'offset goes back'
      if (fault !== undefined) return false
      segment.noteBatch(view, position, config)
      if (view.leaderEpoch > epochs.latestEpoch) epochs.assign(view.leaderEpoch as LeaderEpoch, view.baseOffset)
      goodBytes = position + view.sizeBytes
      return true
    },
  })
  fault ??= scan.fault
  if (fault !== undefined && segment.endOffset >= options.recoveryPoint) {
    await segment.log.truncate(goodBytes)
    segment.sizeBytes = goodBytes
  }
  return fault
}

function isSameEpochs(entries: readonly EpochEntry[], others: readonly EpochEntry[]): boolean {
  return (
    entries.length === others.length &&
    entries.every(({ epoch, startOffset }, i) => epoch === others[i]?.epoch && startOffset === others[i].startOffset)
  )
}

async function syncFile(files: Files, path: string): Promise<void> {
  const handle = await files.open(path, 'write')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function removeSnapshots(
  { environment, directory }: LoadOptions,
  snapshots: readonly Offset[],
  isWanted: (offset: Offset) => boolean,
): Promise<void> {
  for (const offset of snapshots) {
    if (isWanted(offset)) await environment.platform.files.remove(join(directory, snapshotName(offset)))
  }
}

function damaged(path: string, endOffset: Offset, recoveryPoint: Offset, fault?: string): StorageError {
  return new StorageError(
    `Log ${path} is damaged at offset ${endOffset}${fault === undefined ? '' : ` (${fault})`}, although everything ` +
      `below offset ${recoveryPoint} had been synced`,
    path,
  )
}
