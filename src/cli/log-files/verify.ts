import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { messageOf } from '../../base/index.ts'
import {
  decodeProducerSnapshot,
  type EpochEntry,
  highWatermarkFile,
  logStartFile,
  readEpochs,
  readMetaProperties,
  readOffsets,
  readPartitionMetadata,
  recoveryPointFile,
} from '../../log/index.ts'
import type { Files } from '../../platform/index.ts'
import { BatchTooLargeError, CorruptBatchError, openRecordBytes, readRecords } from '../../protocol/index.ts'
import type { Findings } from './findings.ts'
import type { PartitionFolder, SegmentFile } from './folder.ts'
import { checkTransactionIndex, OffsetIndexCheck, readIndexFile, TimeIndexCheck } from './index-check.ts'
import { type ScanEnd, type ScannedBatch, scanSegment } from './scan.ts'

export interface VerifyOptions {
  readonly files: Files
  readonly findings: Findings
  /** Someone may be writing: what was cut off at the end may be about to be whole. */
  readonly isMoving: boolean
  /** Unpacks batches and looks at each record. */
  readonly records: boolean
  /** Only some segments are looked at: what is about the whole log is not. */
  readonly isPart?: boolean
  /** Bytes that were read since it was called last. */
  readonly onRead: (bytes: number) => void
}

/** What the files beside the partitions' folders say. */
export interface Checkpoints {
  readonly recoveryPoints: ReadonlyMap<string, number>
  readonly logStarts: ReadonlyMap<string, number>
  readonly highWatermarks: ReadonlyMap<string, number>
  /** Partitions that were compacted: their logs have gaps. */
  readonly compacted: ReadonlySet<string>
  /** Whoever wrote here last stopped in order. */
  readonly isClean: boolean
}

/** Written by the cleaner, Kafka's and ours: how far each compacted partition is clean. */
const cleanerFile = 'cleaner-offset-checkpoint'
/** What a batch may unpack to. */
const maxUnpackedBytes = 256 * 1024 * 1024
/** A compacted log, which can't be known before its end, may have a gap before each batch. */
const maxGaps = 1000

/** The files of a folder of `log.dirs` that are about all its partitions. To be read before the partitions are: they only grow. */
export async function readCheckpoints(directory: string, { files, findings }: VerifyOptions): Promise<Checkpoints> {
  const read = async (name: string) => {
    try {
      return await readOffsets(files, directory, name)
    } catch (error) {
      findings.fault(name, messageOf(error))
      return new Map<string, number>()
    }
  }
  return {
    recoveryPoints: await read(recoveryPointFile),
    logStarts: await read(logStartFile),
    highWatermarks: await read(highWatermarkFile),
    compacted: new Set((await read(cleanerFile)).keys()),
    isClean: (await files.stat(join(directory, '.kafka_cleanshutdown'))) !== undefined,
  }
}

/** Whose the folder is, and what lies in it beside partitions. */
export async function verifyDirectory(
  directory: string,
  partitions: readonly PartitionFolder[],
  checkpoints: Checkpoints,
  { files, findings, isMoving }: VerifyOptions,
): Promise<void> {
  try {
    const meta = await readMetaProperties(files, directory)
    if (meta === undefined) findings.note('meta.properties', 'There is none: it is not known whose folder this is')
  } catch (error) {
    findings.fault('meta.properties', messageOf(error))
  }
  if (!checkpoints.isClean && !isMoving) {
    findings.note(
      '.kafka_cleanshutdown',
      'There is none: the last run did not stop in order, and the next start recovers',
    )
  }
  const known = new Set(partitions.map(({ name }) => name))
  for (const name of await readdir(directory)) {
    if (/-(?:delete|stray|future)$/.test(name)) {
      findings.note(name, 'A partition that is being deleted or moved, or belongs to nobody: not looked at')
    }
  }
  const tables: readonly (readonly [string, ReadonlyMap<string, number>])[] = [
    [recoveryPointFile, checkpoints.recoveryPoints],
    [logStartFile, checkpoints.logStarts],
    [highWatermarkFile, checkpoints.highWatermarks],
  ]
  for (const [file, offsets] of tables) {
    const gone = [...offsets].filter(([name, offset]) => !known.has(name) && offset > 0).map(([name]) => name)
    if (gone.length === 0) continue
    const shown = gone.slice(0, 3).join(', ') + (gone.length > 3 ? ` and ${gone.length - 3} more` : '')
    findings.note(file, `It names partitions that are not here: ${shown}; they may have been deleted since`)
  }
}

/** Every file of a partition's folder. */
export async function verifyPartition(
  folder: PartitionFolder,
  checkpoints: Checkpoints,
  options: VerifyOptions,
): Promise<void> {
  await new PartitionVerifier(folder, checkpoints, options).run()
}

class PartitionVerifier {
  readonly #folder: PartitionFolder
  readonly #checkpoints: Checkpoints
  readonly #options: VerifyOptions
  readonly #findings: Findings
  /** Sorted; empty when there is no file, or a damaged one. */
  #epochs: readonly EpochEntry[] = []
  #hasEpochs = false
  /** Of the last batch, exclusive. */
  #endOffset = 0
  /** Where the next batch is to begin; undefined before the first, and behind one whose header can't be believed. */
  #nextOffset: number | undefined
  #lastEpoch = -1
  readonly #gaps: { readonly file: string; readonly position: number; readonly from: number; readonly to: number }[] =
    []
  /** A batch has fewer records than offsets: it was compacted. */
  #isCompacted: boolean

  constructor(folder: PartitionFolder, checkpoints: Checkpoints, options: VerifyOptions) {
    this.#folder = folder
    this.#checkpoints = checkpoints
    this.#options = options
    this.#findings = options.findings
    this.#isCompacted = checkpoints.compacted.has(folder.name) || folder.topic.startsWith('__')
  }

  async run(): Promise<void> {
    const { segments, name, path } = this.#folder
    this.#findings.counts.partitions++
    await this.#readMetadata(path)
    if (segments.length === 0 && this.#folder.topic === '__cluster_metadata') {
      this.#findings.note(name, "Rookery's metadata log: the broker itself checks it at each start")
      return
    }
    for (const segment of segments) await this.#readable(segment, segment === segments.at(-1))
    for (const gap of this.#gaps.splice(0)) {
      if (this.#isCompacted) continue
      const missing = `offsets ${gap.from} to ${gap.to - 1} are missing`
      this.#findings.fault(
        gap.file,
        `Before this batch ${missing}, and nothing says that the topic is compacted`,
        gap.position,
      )
    }
    if (this.#options.isPart === true) return
    await this.#snapshots()
    this.#offsets()
    const left = this.#folder.fileNames.filter((each) => /\.(?:cleaned|swap|deleted|tmp)$/.test(each))
    if (left.length > 0) {
      const others = left.length === 1 ? '' : ` and ${left.length - 1} more`
      this.#findings.note(name, `${left[0]}${others}: left by work under way, such as a compaction`)
    }
  }

  async #readMetadata(path: string): Promise<void> {
    const { files } = this.#options
    try {
      await readPartitionMetadata(files, path)
    } catch (error) {
      this.#findings.fault(`${this.#folder.name}/partition.metadata`, messageOf(error))
    }
    const file = `${this.#folder.name}/leader-epoch-checkpoint`
    try {
      this.#epochs = await readEpochs(files, path)
      this.#hasEpochs = this.#epochs.length > 0
    } catch (error) {
      this.#findings.fault(file, messageOf(error))
    }
    for (const [i, entry] of this.#epochs.entries()) {
      const before = this.#epochs[i - 1]
      if (before === undefined || (before.epoch < entry.epoch && before.startOffset <= entry.startOffset)) continue
      this.#findings.fault(
        file,
        `Epoch ${entry.epoch} from ${entry.startOffset} follows ${before.epoch} from ${before.startOffset}`,
      )
      this.#hasEpochs = false
    }
  }

  /** What the system refuses to read is a fault of that segment, and the others are looked at. */
  async #readable(segment: SegmentFile, isLast: boolean): Promise<void> {
    try {
      await this.#segment(segment, isLast)
    } catch (error) {
      const { code, path } = error as NodeJS.ErrnoException
      if (code === undefined) throw error
      this.#nextOffset = undefined
      const file = path === undefined ? segment.name : `${this.#folder.name}/${basename(path)}`
      if (code === 'ENOENT' && this.#options.isMoving) this.#findings.note(file, 'It was deleted meanwhile')
      else this.#findings.fault(file, `It can not be read (${code})`)
    }
  }

  async #segment(segment: SegmentFile, isLast: boolean): Promise<void> {
    const { findings, onRead } = this.#options
    findings.counts.segments++
    const { offsets, times } = await this.#indexes(segment, isLast)
    const scan = scanSegment(segment.path, onRead)
    for (;;) {
      const step = await scan.next()
      if (step.done === true) {
        findings.counts.bytes += step.value.fileBytes
        offsets?.onEnd(step.value.endPosition)
        times?.onEnd()
        this.#onSegmentEnd(segment, isLast, step.value)
        return
      }
      for (const batch of step.value) {
        offsets?.onBatch(batch.view, batch.position)
        times?.onBatch(batch.view)
        this.#onBatch(segment, batch)
      }
    }
  }

  async #indexes(segment: SegmentFile, isLast: boolean) {
    const { findings, isMoving } = this.#options
    const stem = segment.path.slice(0, -'.log'.length)
    const name = segment.name.slice(0, -'.log'.length)
    // The last segment's are written, or made whole, when it is closed; a start after a crash makes them anew.
    const isRebuilt = isLast && (isMoving || !this.#checkpoints.isClean)
    const reportTo = (file: string) => (message: string, position: number) => {
      if (isRebuilt) findings.note(file, `${message}; a start makes this index anew`, position)
      else findings.fault(file, message, position)
    }
    const [offsetBytes, timeBytes, transactions] = await Promise.all(
      ['.index', '.timeindex', '.txnindex'].map((suffix) => readIndexFile(`${stem}${suffix}`)),
    )
    if (!isLast && (offsetBytes === undefined || timeBytes === undefined)) {
      findings.note(segment.name, 'Its index is missing; a start makes it anew')
    }
    if (transactions !== undefined) checkTransactionIndex(transactions, `${name}.txnindex`, findings)
    return {
      offsets: offsetBytes && new OffsetIndexCheck(offsetBytes, segment.baseOffset, reportTo(`${name}.index`)),
      times: timeBytes && new TimeIndexCheck(timeBytes, segment.baseOffset, reportTo(`${name}.timeindex`)),
    }
  }

  #onBatch({ name: file, baseOffset: segmentBase }: SegmentFile, { view, position, crc, isWhole }: ScannedBatch): void {
    const findings = this.#findings
    findings.counts.batches++
    const { baseOffset, lastOffset } = view
    if (crc === 'wrong') {
      findings.fault(
        file,
        `The CRC of offsets ${baseOffset} to ${lastOffset} is wrong: its bytes are not those that were written`,
        position,
      )
      // What its header says may be as wrong.
      this.#endOffset = Math.max(this.#endOffset, lastOffset + 1)
      this.#nextOffset = undefined
      return
    }
    findings.counts.records += view.recordCount
    if (baseOffset < segmentBase) {
      findings.fault(file, `Offset ${baseOffset} is below the segment's first, ${segmentBase}`, position)
    }
    const next = this.#nextOffset
    if (next !== undefined && baseOffset < next) {
      findings.fault(file, `Offset ${baseOffset} is there again: the batch before it ends with ${next - 1}`, position)
    }
    if (next !== undefined && baseOffset > next && this.#gaps.length < maxGaps) {
      this.#gaps.push({ file, position, from: next, to: baseOffset })
    }
    if (view.recordCount < view.lastOffsetDelta + 1 && !view.isControl) this.#isCompacted = true
    this.#nextOffset = lastOffset + 1
    this.#endOffset = Math.max(this.#endOffset, lastOffset + 1)
    this.#checkEpoch(file, view.leaderEpoch, baseOffset, position)
    if (this.#options.records && isWhole) this.#checkRecords(file, view, position)
  }

  #checkEpoch(file: string, epoch: number, baseOffset: number, position: number): void {
    if (epoch < this.#lastEpoch) {
      this.#findings.fault(file, `Leader epoch ${epoch} follows epoch ${this.#lastEpoch}`, position)
      return
    }
    this.#lastEpoch = epoch
    const first = this.#epochs[0]
    if (!this.#hasEpochs || first === undefined || epoch < 0 || baseOffset < first.startOffset) return
    const entry = this.#epochs.findLast(({ startOffset }) => startOffset <= baseOffset)!
    if (entry.epoch === epoch) return
    const isAhead = epoch > this.#epochs.at(-1)!.epoch && (this.#options.isMoving || !this.#checkpoints.isClean)
    const message = `Offset ${baseOffset} was written in leader epoch ${epoch}, and leader-epoch-checkpoint says ${entry.epoch}`
    if (isAhead) this.#findings.note(file, `${message}; it is behind, and a start mends that`, position)
    else this.#findings.fault(file, message, position)
  }

  #checkRecords(file: string, view: ScannedBatch['view'], position: number): void {
    try {
      for (const _ of readRecords(view, openRecordBytes(view, maxUnpackedBytes)));
    } catch (error) {
      if (!(error instanceof CorruptBatchError || error instanceof BatchTooLargeError)) throw error
      this.#findings.fault(
        file,
        `The records of offsets ${view.baseOffset} to ${view.lastOffset}: ${error.message}`,
        position,
      )
    }
  }

  #onSegmentEnd({ name }: SegmentFile, isLast: boolean, end: ScanEnd): void {
    if (end.fault === undefined) return
    const rest = end.fileBytes - end.endPosition
    if (isLast && this.#options.isMoving) {
      this.#findings.note(
        name,
        `The last ${rest} bytes are no whole batch; they may be about to be written`,
        end.endPosition,
      )
      return
    }
    const what = {
      truncated: `The file ends within a batch: the last ${rest} bytes are no whole one`,
      zeros: `The last ${rest} bytes are zero: room that was taken in advance, or a write that was lost`,
      format: `What follows, ${rest} bytes, is no batch of format 2`,
      length: `What follows, ${rest} bytes, begins with a batch whose lengths make no sense`,
    }[end.fault]
    const recoveryPoint = this.#checkpoints.recoveryPoints.get(this.#folder.name) ?? 0
    const isTorn = isLast && !this.#checkpoints.isClean && this.#endOffset >= recoveryPoint
    const consequence = isTorn ? `; it is above the recovery point (${recoveryPoint}), so a start drops it` : ''
    this.#findings.fault(name, `${what}${consequence}`, end.endPosition)
  }

  async #snapshots(): Promise<void> {
    const { findings, isMoving } = this.#options
    for (const each of this.#folder.fileNames) {
      const match = /^(\d{20})\.snapshot$/.exec(each)
      if (match === null) continue
      const file = `${this.#folder.name}/${each}`
      const offset = Number(match[1])
      const bytes = await readFile(join(this.#folder.path, each)).catch(() => undefined)
      if (bytes === undefined) continue // removed meanwhile
      const entries = decodeProducerSnapshot(bytes)
      if (entries === undefined)
        findings.fault(file, 'It is no whole snapshot of producers: its CRC or its length is wrong')
      const beyond = entries?.find(({ lastOffset }) => lastOffset >= offset)
      if (beyond !== undefined) {
        findings.fault(
          file,
          `Producer ${beyond.producerId} has written offset ${beyond.lastOffset} in it, and it is of offset ${offset}`,
        )
      }
      const end = this.#logEndOffset
      if (offset > end && !isMoving) findings.fault(file, `It is of offset ${offset}, and the log ends at ${end}`)
    }
  }

  /** Exclusive. */
  get #logEndOffset(): number {
    return Math.max(this.#endOffset, this.#folder.segments.at(-1)?.baseOffset ?? 0)
  }

  /** What the checkpoints of the directory say about this partition. */
  #offsets(): void {
    const { findings, isMoving } = this.#options
    const { name } = this.#folder
    if (this.#folder.topic === '__cluster_metadata') return
    const end = this.#logEndOffset
    const compare = (file: string, what: string, offset: number | undefined) => {
      if (offset === undefined || offset <= end || isMoving) return
      findings.fault(file, `The ${what} of ${name} is ${offset}, and its log ends at ${end}: what was there is gone`)
    }
    compare(recoveryPointFile, 'recovery point', this.#checkpoints.recoveryPoints.get(name))
    compare(logStartFile, 'log start offset', this.#checkpoints.logStarts.get(name))
    compare(highWatermarkFile, 'high watermark', this.#checkpoints.highWatermarks.get(name))
    const epochs = `${name}/leader-epoch-checkpoint`
    const last = this.#epochs.at(-1)
    if (last !== undefined && last.startOffset > end && !isMoving) {
      findings.fault(epochs, `Epoch ${last.epoch} begins at ${last.startOffset}, and the log ends at ${end}`)
    }
  }
}
