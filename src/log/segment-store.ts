import { basename, join } from 'node:path'
import { assert, type Offset, type Uuid } from '../base/index.ts'
import { partitionMetadataFile, partitionMetadataText, writeEpochs } from './checkpoint-files.ts'
import type { LogEnvironment, LogHost } from './environment.ts'
import type { EpochEntry } from './epoch-cache.ts'
import type { PooledFile } from './handle-pool.ts'
import { snapshotName, snapshotsIn } from './producer-replay.ts'
import { Segment, type SegmentEnd, type SegmentLimits } from './segment.ts'
import { replaceSegments } from './segment-replacement.ts'

/** A segment that was closed, with what must be durable before its records count as flushed. */
interface RolledSegment {
  readonly segment: Segment
  readonly snapshotOffset: Offset
  readonly snapshot: Buffer
}

/**
 * The files of one partition: its segments in offset order, of which the last takes appends, and the producers' snapshots;
 * and what of them is not durable yet, in memory or on disk. Who calls when is `LocalLog`'s matter: of the asynchronous
 * calls one runs at a time, while appends go on.
 */
export class SegmentStore {
  readonly #environment: LogEnvironment
  #directory: string
  #host: LogHost
  readonly #topicId: Uuid
  readonly #onSyncWanted: () => void
  #segments: Segment[]
  #hasFiles: boolean
  #hasFolder: boolean
  #sizeBytes = 0
  #rewrites = 0
  #replacement: Promise<unknown> | undefined
  #rolled: RolledSegment[] = []
  #newFiles: PooledFile[] = []
  #changedNames = 0
  #syncedNames = 0
  #mustSyncParent = false
  #snapshotOffset: Offset

  /** `segments`: of the folder, maybe none; `snapshotOffset`: of the newest snapshot, -1 when there is none. */
  constructor(options: {
    readonly environment: LogEnvironment
    readonly host: LogHost
    readonly directory: string
    readonly topicId: Uuid
    readonly segments: Segment[]
    readonly snapshotOffset: Offset
    /** Too many files are open in the node: one with unsynced bytes can be closed once they are synced. */
    readonly onSyncWanted: () => void
  }) {
    this.#environment = options.environment
    this.#host = options.host
    this.#directory = options.directory
    this.#topicId = options.topicId
    this.#onSyncWanted = options.onSyncWanted
    this.#segments = options.segments
    this.#hasFiles = options.segments.length > 0
    this.#hasFolder = this.#hasFiles
    const active = options.segments.at(-1)
    if (active !== undefined) active.log.onSyncWanted = this.#onSyncWanted
    this.#snapshotOffset = options.snapshotOffset
    for (const segment of options.segments) this.#sizeBytes += segment.sizeBytes
  }

  /** The partition's folder. */
  get directory(): string {
    return this.#directory
  }

  get segments(): readonly Segment[] {
    return this.#segments
  }

  /** The one that takes appends. */
  get active(): Segment {
    const active = this.#segments.at(-1)
    assert(active !== undefined, 'a log with files has a segment')
    return active
  }

  /** The folder and its files appear with the first append. */
  get hasFiles(): boolean {
    return this.#hasFiles
  }

  /** Its folder is there, or was about to be made when something failed. */
  get hasFolder(): boolean {
    return this.#hasFolder
  }

  /** An append opens no file. */
  get isActiveOpen(): boolean {
    return this.#segments.at(-1)?.log.isOpen === true
  }

  get sizeBytes(): number {
    return this.#sizeBytes
  }

  /** Counts truncations and compactions: what was read across one is read again. */
  get rewrites(): number {
    return this.#rewrites
  }

  /** Settles when the segments' files have their names again; undefined while they have. */
  get renamed(): Promise<unknown> | undefined {
    return this.#replacement
  }

  /** Segments before the first whose indexes and snapshot the next sync has to store, and before the active one. */
  get closed(): readonly Segment[] {
    const open = this.#rolled[0]?.segment
    return this.#segments.slice(0, open === undefined ? -1 : this.#segments.indexOf(open))
  }

  /** Index of the segment that holds `offset`. */
  indexOf(offset: Offset): number {
    const segments = this.#segments
    let low = 0
    let high = segments.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (segments[middle]!.baseOffset <= offset) low = middle
      else high = middle - 1
    }
    return low
  }

  /** Someone has used the indexes of `segment`: they stay in memory as long as others don't need it more. */
  touchIndexes(segment: Segment): void {
    if (segment === this.#segments.at(-1) || !this.#segments.includes(segment)) return
    if (this.#rolled.some((rolled) => rolled.segment === segment)) return
    this.#environment.indexCache.touchIfLoaded(segment)
  }

  // Appending

  /** Writes whole batches, which continue the log at `baseOffset`, to the active segment. */
  append(batches: Buffer, baseOffset: Offset, limits: SegmentLimits): void {
    if (!this.#hasFiles) this.#createFiles(baseOffset)
    this.active.append(batches, limits)
    this.#sizeBytes += batches.length
  }

  /** The folder and its first files: whose it is, and the first segment. The next sync makes them durable. */
  #createFiles(baseOffset: Offset): void {
    const { handles, platform } = this.#environment
    this.#hasFolder = true
    platform.files.makeDirectorySync(this.directory)
    // Both files can be opened, or nothing has changed.
    const segment = this.#createSegment(baseOffset)
    const metadata = handles.file(join(this.directory, partitionMetadataFile))
    metadata.writeSync([partitionMetadataText(this.#topicId)], 0)
    this.#newFiles.push(metadata)
    this.#segments = [segment]
    this.#changedNames++
    this.#hasFiles = true
    this.#mustSyncParent = true
  }

  #createSegment(baseOffset: Offset): Segment {
    const segment = Segment.empty(this.#environment, this.directory, baseOffset, this.#environment.platform.clock.now())
    segment.log.createSync()
    segment.log.onSyncWanted = this.#onSyncWanted
    return segment
  }

  /**
   * Closes the active segment, unless it is empty, and begins the next at `baseOffset`. What that leaves to store, with
   * the producers' `snapshot` there, is the next sync's.
   */
  roll(baseOffset: Offset, snapshot: Buffer): void {
    if (!this.#hasFiles) {
      this.#createFiles(baseOffset)
      return
    }
    const next = this.#createSegment(baseOffset) // the only step that may fail
    const old = this.active
    old.noteLargestTimestamp()
    this.#rolled.push({ segment: old, snapshotOffset: baseOffset, snapshot })
    this.#segments.push(next)
    this.#changedNames++
  }

  // Syncing

  /**
   * Makes durable all that there is when this is called: contents first, then the names that lead to them. `epochs` are
   * stored, too, when there are some.
   */
  async sync(epochs: readonly EpochEntry[] | undefined): Promise<void> {
    const active = this.#segments.at(-1)
    if (active === undefined) return
    const { files } = this.#environment.platform
    const rolled = this.#rolled
    const newFiles = this.#newFiles
    const changedNames = this.#changedNames
    const mustSyncParent = this.#mustSyncParent
    this.#rolled = []
    this.#newFiles = []
    this.#mustSyncParent = false
    for (const { segment, snapshotOffset, snapshot } of rolled) {
      await segment.log.sync()
      await segment.storeIndexes()
      await this.#storeSnapshot(snapshotOffset, snapshot)
      this.#environment.indexCache.touch(segment)
    }
    // A new folder has two files, which are synced side by side: its first record waits for the disk often enough.
    await Promise.all([active.log.sync(), ...newFiles.map((file) => file.sync())])
    for (const file of newFiles) file.discard()
    await Promise.all([
      this.#syncNames(changedNames, epochs),
      mustSyncParent ? files.syncDirectory(this.#host.path) : undefined,
    ])
  }

  /** Of the folder; storing epochs ends with it. */
  async #syncNames(changedNames: number, epochs: readonly EpochEntry[] | undefined): Promise<void> {
    const { files } = this.#environment.platform
    if (epochs !== undefined) await writeEpochs(files, this.directory, epochs)
    else if (this.#syncedNames < changedNames) await files.syncDirectory(this.directory)
    this.#syncedNames = Math.max(this.#syncedNames, changedNames)
  }

  /** Stores what a start would otherwise find by looking at records; `sync` makes it durable. */
  async storeState(endOffset: Offset, snapshot: () => Buffer): Promise<void> {
    this.active.noteLargestTimestamp()
    if (await this.active.storeIndexes()) this.#changedNames++
    if (this.#snapshotOffset === endOffset) return
    await this.#storeSnapshot(endOffset, snapshot())
    this.#changedNames++
  }

  async #storeSnapshot(offset: Offset, content: Buffer): Promise<void> {
    const file = this.#environment.handles.file(join(this.directory, snapshotName(offset)))
    try {
      await file.write([content], 0)
      await file.truncate(content.length)
      await file.sync()
    } finally {
      file.discard()
    }
    this.#snapshotOffset = offset
  }

  /** The newest snapshot that is stored is at `offset`; -1: there is none. */
  noteSnapshot(offset: Offset): void {
    this.#snapshotOffset = offset
  }

  /** Answers the offsets of those that stay. */
  async removeSnapshotsAbove(offset: Offset): Promise<readonly Offset[]> {
    const { files } = this.#environment.platform
    const names = ((await files.list(this.directory)) ?? []).map(({ name }) => name)
    const snapshots = snapshotsIn(names)
    for (const above of snapshots.filter((each) => each > offset)) {
      await files.remove(join(this.directory, snapshotName(above)))
    }
    if (this.#snapshotOffset > offset) this.#snapshotOffset = -1
    return snapshots.filter((each) => each <= offset)
  }

  // Removing

  /** Begins a truncation: reads that are under way are done again. */
  beginTruncation(): void {
    this.#rewrites++
    this.#changedNames++
  }

  /** Drops what lies behind `end` in `cut`, and the segments after it, from the last on. */
  async truncateTo(cut: Segment, end: SegmentEnd): Promise<void> {
    while (this.active !== cut) await this.#removeLast()
    this.#rolled = this.#rolled.filter(({ segment }) => segment !== cut && this.#segments.includes(segment))
    this.#environment.indexCache.forget(cut)
    this.#sizeBytes -= await cut.truncateTo(end)
  }

  /** Removes every segment, from the last on, and begins anew at `offset`. */
  async startAfresh(offset: Offset): Promise<void> {
    while (this.#segments.length > 0) await this.#removeLast()
    this.#rolled = []
    await this.removeSnapshotsAbove(-1)
    if (!this.#hasFiles) {
      this.#createFiles(offset)
      return
    }
    this.#segments.push(this.#createSegment(offset))
    this.#changedNames++
  }

  async #removeLast(): Promise<void> {
    const segment = this.#segments.pop()
    assert(segment !== undefined, 'there is a segment to remove')
    this.#sizeBytes -= segment.sizeBytes
    this.#environment.indexCache.forget(segment)
    await segment.remove()
  }

  /** Takes the first `count` segments, not all, out of use; their files are removed after `delayMs`. */
  async removeFirst(count: number, delayMs: number): Promise<void> {
    const renamed: string[] = []
    for (const segment of this.#segments.splice(0, count)) {
      this.#sizeBytes -= segment.sizeBytes
      this.#environment.indexCache.forget(segment)
      renamed.push(...(await segment.renameToDeleted()))
    }
    this.#changedNames++
    this.#host.removeLater(renamed, delayMs)
  }

  /**
   * Puts `cleaned` in the place of `old`, closed neighbours of which it is what remains; their files are removed after
   * `delayMs`. Durable when it resolves.
   */
  async replace(old: readonly Segment[], cleaned: Segment, delayMs: number): Promise<void> {
    const first = this.#segments.indexOf(old[0]!)
    assert(first >= 0 && this.#segments[first + old.length - 1] === old.at(-1), 'the segments are neighbours')
    cleaned.endOffset = this.#segments[first + old.length]!.baseOffset
    // All in one turn: who reads from now on waits for the names, and who was reading reads again.
    this.#rewrites++
    for (const segment of old) {
      segment.retire()
      this.#environment.indexCache.forget(segment)
      this.#sizeBytes -= segment.sizeBytes
    }
    this.#sizeBytes += cleaned.sizeBytes
    this.#segments.splice(first, old.length, cleaned)
    const replacement = replaceSegments(this.#environment, old, cleaned)
    this.#replacement = replacement.catch(() => {})
    const renamed = await replacement
    this.#replacement = undefined
    this.#environment.indexCache.touch(cleaned)
    this.#host.removeLater(renamed, delayMs)
  }

  // Moving

  /** Gives the folder another name, in one turn. Its old files are found under the new one. */
  rename(directory: string): void {
    if (this.#hasFiles) this.#environment.platform.files.renameSync(this.#directory, directory)
    this.#directory = directory
    for (const segment of this.#segments) segment.followFolder(directory)
    for (const file of this.#newFiles) file.path = join(directory, basename(file.path))
  }

  /** Goes on with the files of `other`, in the directory `host`; its own are nobody's any more, and reads of them done again. */
  takeOver(other: SegmentStore, host: LogHost): void {
    this.#rewrites++
    for (const segment of this.#segments) {
      segment.retire()
      this.#environment.indexCache.forget(segment)
    }
    for (const file of this.#newFiles) file.discard()
    this.#host = host
    this.#directory = other.#directory
    this.#segments = other.#segments
    this.#hasFiles = other.#hasFiles
    this.#hasFolder = other.#hasFolder
    this.#sizeBytes = other.#sizeBytes
    this.#rolled = other.#rolled
    this.#newFiles = other.#newFiles
    this.#changedNames = other.#changedNames
    this.#syncedNames = other.#syncedNames
    this.#mustSyncParent = other.#mustSyncParent
    this.#snapshotOffset = other.#snapshotOffset
    for (const segment of this.#segments) segment.log.onSyncWanted = this.#onSyncWanted
    other.#segments = []
    other.#newFiles = []
    other.#rolled = []
    other.#hasFiles = false
  }

  /** No index is looked up any more. */
  forgetIndexes(): void {
    for (const segment of this.#segments) this.#environment.indexCache.forget(segment)
  }

  /** No file is used any more: each is closed after the last call on it. */
  discardFiles(): void {
    for (const segment of this.#segments) segment.log.discard()
  }
}
