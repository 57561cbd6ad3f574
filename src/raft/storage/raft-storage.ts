import { crc32 } from 'node:zlib'
import { assert, messageOf } from '../../base/index.ts'
import { isDiskFull, type Timer, type Timers } from '../../platform/index.ts'
import { MemoryLog } from '../core/memory-log.ts'
import type {
  Entry,
  HardState,
  LogIndex,
  LogView,
  Membership,
  PartialSnapshot,
  Ready,
  Snapshot,
  SnapshotChunk,
  Term,
} from '../core/types.ts'
import {
  chunkKey,
  crcOf,
  decodeChunk,
  encodeChunk,
  encodeChunkBytes,
  encodeEntry,
  encodeHardState,
  encodeManifest,
  encodePartialHeader,
  entryKey,
  formatKey,
  formatVersion,
  hardStateKey,
  type Manifest,
  manifestKey,
  manifestOf,
  partialKey,
  seal,
} from './encoding.ts'
import { RaftStorageError } from './errors.ts'
import { FullDisk, type FullDiskPolicy, type FullDiskRecovery } from './full-disk.ts'
import type { KeyValueOperation, KeyValueStore } from './key-value-store.ts'
import { type KeptPartial, loadState } from './load.ts'
import type { QuorumState, QuorumStateStore } from './quorum-state.ts'

export interface RaftStorageOptions {
  /** Closed by `RaftStorage.close`. */
  readonly store: KeyValueStore
  /** Undefined for a store that is not meant to survive its process. */
  readonly quorumState: QuorumStateStore | undefined
  readonly timers: Timers
  /**
   * The first voters, the same for all of them, for an empty store; without voters for a node that is to follow a quorum
   * that exists, as one whose disk was wiped must; undefined refuses an empty store. Without effect on one that has been formatted.
   */
  readonly bootstrap: Membership | undefined
  /** Left out: a full disk is a failure as any other. */
  readonly recovery?: FullDiskRecovery
}

/** The parts of a `Ready` that go to the disk. */
export type Persistable = Pick<Ready, 'entriesToPersist' | 'hardState' | 'snapshot' | 'snapshotChunks'>

/** How long the quorum-state file may lag behind the log, in time and in entries: what a damaged log can lose unnoticed. */
const quorumStateDelayMs = 100
const quorumStateMaxLag = 256

const deletesPerBatch = 1000

/**
 * The Raft state of one node on disk, mirrored in memory for the core.
 *
 * One queue: a write starts when the one before it is durable. A write or sync that failed poisons the storage: nothing
 * is written any more, every later call rejects with the first error. After a failed sync nobody knows what is on the disk.
 *
 * The one fault that may pass is a full disk. Where `setFullDiskPolicy` has it so, the write that found no room, and with it the queue, waits;
 * then the store is opened anew, all that is durable must be in it, and the very same write is made again. Nothing of it was
 * acknowledged before, and what of it is there already is written over with the same.
 */
export class RaftStorage {
  #store: KeyValueStore
  /** While it waits for room, and when that was in vain. */
  #isStoreClosed: boolean = false
  readonly #fullDisk: FullDisk
  readonly #quorumState: QuorumStateStore | undefined
  readonly #timers: Timers
  readonly #log: MemoryLog
  #hardState: HardState
  #notedHardState: HardState | undefined
  /** CRC of each stored entry, by index. */
  readonly #crcs: Map<LogIndex, number>
  /** CRC that the entry after the snapshot links to. */
  #chainCrc: number
  #chunkCount: number
  /** First entry in the store, which may be one that the log in memory uses only as its base. */
  #firstStoredIndex: LogIndex
  /** What is there of a snapshot from the leader, apart from all else until it is whole. */
  #partial: KeptPartial | undefined
  /** What the quorum-state file says. */
  #witnessed: QuorumState | undefined
  #witnessTimer: Timer | undefined
  #queue: Promise<void> = Promise.resolve()
  #failure: RaftStorageError | undefined
  #failureListener: ((error: RaftStorageError) => void) | undefined

  /**
   * Reads and checks everything. Throws `RaftStorageError` when the store is damaged, has lost what it once had, is newer than
   * this program, or is empty with nothing to bootstrap; the store is then closed.
   */
  static async open(options: RaftStorageOptions): Promise<RaftStorage> {
    const { store, quorumState, bootstrap } = options
    try {
      if (bootstrap !== undefined) await formatIfEmpty(store, quorumState, bootstrap)
      const loaded = await loadState(store, await quorumState?.read(), quorumState !== undefined)
      const storage = new RaftStorage(options, loaded)
      if (quorumState !== undefined && loaded.witnessed === undefined) await storage.#enqueue(() => storage.#witness())
      return storage
    } catch (error) {
      await store.close().catch(() => undefined) // the first error is the one to tell
      throw asStorageError(error, 'Cannot open the Raft log')
    }
  }

  private constructor(options: RaftStorageOptions, loaded: Awaited<ReturnType<typeof loadState>>) {
    this.#store = options.store
    this.#fullDisk = new FullDisk(options.recovery, options.timers)
    this.#quorumState = options.quorumState
    this.#timers = options.timers
    this.#log = new MemoryLog(loaded.snapshot, loaded.entries)
    this.#hardState = loaded.hardState
    this.#crcs = loaded.crcs
    this.#chainCrc = loaded.manifest.chainCrc
    this.#chunkCount = loaded.manifest.chunkCount
    this.#firstStoredIndex = loaded.entries[0]?.index ?? ((loaded.snapshot.index + 1) as LogIndex)
    this.#witnessed = loaded.witnessed
    this.#partial = loaded.partial
  }

  /** What is durable. */
  get log(): LogView {
    return this.#log
  }

  get hardState(): HardState {
    return this.#hardState
  }

  /** What the core may go on from. */
  get partialSnapshot(): PartialSnapshot | undefined {
    return this.#partial && { header: this.#partial.header, nextOffset: this.#partial.bytes }
  }

  /** Called at the first failure, also when it is one of a write that nobody waits for. */
  onFailure(listener: (error: RaftStorageError) => void): void {
    this.#failureListener = listener
  }

  /** Until it is called nothing waits for room. A member that may wait must replace no entries that it has: it leads alone. */
  setFullDiskPolicy(policy: FullDiskPolicy): void {
    this.#fullDisk.setPolicy(policy)
  }

  /** A write waits until the disk has room. */
  get waitsForRoom(): boolean {
    return this.#fullDisk.isWaiting
  }

  /** What waits for room fails, and nothing waits from now on. */
  stopWaiting(): void {
    this.#fullDisk.stop()
  }

  /** Durable when it resolves; `log` and `hardState` show it from then on. */
  persist(ready: Persistable): Promise<void> {
    return this.#enqueue(() => this.#persist(ready))
  }

  /** Only the commit index moved: it is written with the next batch, as losing it costs nothing. */
  noteCommit(hardState: HardState): void {
    this.#notedHardState = hardState
  }

  async #persist(ready: Persistable): Promise<void> {
    const { entriesToPersist, hardState, snapshot, snapshotChunks } = ready
    const hasState = entriesToPersist.length > 0 || hardState !== undefined || snapshot !== undefined
    if (hasState) await this.#persistState(entriesToPersist, hardState, snapshot)
    // After the snapshot, whose own chunks are there already: these may be the first of another one, and replace them.
    for (const chunk of snapshotChunks) await this.#keepChunk(chunk)
  }

  async #persistState(
    entriesToPersist: readonly Entry[],
    hardState: HardState | undefined = this.#notedHardState,
    snapshot?: Snapshot,
  ): Promise<void> {
    this.#notedHardState = undefined
    const firstReplaced = snapshot !== undefined ? this.#firstStoredIndex : (entriesToPersist[0]?.index ?? Infinity)
    if (firstReplaced <= this.#log.lastIndex)
      await this.#witnessBelow(firstReplaced as LogIndex, snapshot !== undefined)
    const operations: KeyValueOperation[] = []
    let lastIndex = this.#log.lastIndex
    let previousCrc = this.#crcAt(((entriesToPersist[0]?.index ?? lastIndex + 1) - 1) as LogIndex)
    const manifest = snapshot === undefined ? undefined : this.#manifestOfIncoming(snapshot)
    if (snapshot !== undefined && manifest !== undefined) {
      operations.push({ type: 'put', key: manifestKey, value: encodeManifest(manifest) })
      operations.push({ type: 'delete', key: partialKey })
      for (let i = 0; i < this.#chunkCount; i++) {
        operations.push({ type: 'delete', key: chunkKey(this.#log.snapshot.index, i) })
      }
      for (let index = this.#firstStoredIndex; index <= lastIndex; index++) {
        operations.push({ type: 'delete', key: entryKey(index) })
      }
      lastIndex = snapshot.index
      previousCrc = manifest.chainCrc
    }
    assert(previousCrc !== undefined, 'an entry follows one whose CRC is known')
    const newCrcs: number[] = []
    for (const entry of entriesToPersist) {
      const value = encodeEntry(entry, previousCrc)
      previousCrc = crcOf(value)
      newCrcs.push(previousCrc)
      operations.push({ type: 'put', key: entryKey(entry.index), value })
    }
    const newLastIndex = entriesToPersist.at(-1)?.index ?? lastIndex
    for (let index = newLastIndex + 1; index <= lastIndex; index++) {
      operations.push({ type: 'delete', key: entryKey(index as LogIndex) })
    }
    if (hardState !== undefined) operations.push({ type: 'put', key: hardStateKey, value: encodeHardState(hardState) })
    if (operations.length > 0) await this.#batch(operations, { sync: true })

    const isVoteChanged =
      hardState !== undefined &&
      (hardState.term !== this.#hardState.term || hardState.votedFor !== this.#hardState.votedFor)
    if (hardState !== undefined) this.#hardState = hardState
    if (snapshot !== undefined && manifest !== undefined) {
      this.#log.install(snapshot)
      this.#partial = undefined
      this.#crcs.clear()
      this.#chainCrc = manifest.chainCrc
      this.#chunkCount = manifest.chunkCount
      this.#firstStoredIndex = (snapshot.index + 1) as LogIndex
    }
    this.#log.append(entriesToPersist)
    for (let index = newLastIndex + 1; index <= lastIndex; index++) this.#crcs.delete(index as LogIndex)
    entriesToPersist.forEach((entry, i) => {
      this.#crcs.set(entry.index, newCrcs[i]!)
    })
    if (isVoteChanged || snapshot !== undefined) await this.#witness()
    else if (entriesToPersist.length > 0) await this.#witnessSoon()
  }

  /** The chunks of a snapshot to install were kept before it came: what makes them the snapshot is the manifest. */
  #manifestOfIncoming(snapshot: Snapshot): Manifest {
    const partial = this.#partial
    assert(partial?.header.index === snapshot.index, 'the chunks of a snapshot come before it')
    return { ...manifestOf(snapshot, undefined), chunkCount: partial.chunkCount }
  }

  /** Not synced: a crash may cost some of the last chunks, which are then asked for again. */
  async #keepChunk({ header, offset, data }: SnapshotChunk): Promise<void> {
    const operations: KeyValueOperation[] = []
    if (offset === 0) {
      operations.push(...this.#dropPartial(), { type: 'put', key: partialKey, value: encodePartialHeader(header) })
      this.#partial = { header, chunkCount: 0, bytes: 0 }
    }
    const partial = this.#partial
    assert(partial?.header.index === header.index && partial.bytes === offset, 'chunks come in order')
    const key = chunkKey(header.index, partial.chunkCount)
    // A snapshot without data has no chunk, but a header.
    if (data.length > 0) operations.push({ type: 'put', key, value: encodeChunkBytes(data) })
    await this.#batch(operations, { sync: false })
    const chunkCount = partial.chunkCount + (data.length > 0 ? 1 : 0)
    this.#partial = { header, chunkCount, bytes: offset + data.length }
  }

  /** What removes it from the store; in memory it is gone at once. */
  #dropPartial(): KeyValueOperation[] {
    const partial = this.#partial
    if (partial === undefined) return []
    this.#partial = undefined
    const operations: KeyValueOperation[] = [{ type: 'delete', key: partialKey }]
    for (let i = 0; i < partial.chunkCount; i++) {
      operations.push({ type: 'delete', key: chunkKey(partial.header.index, i) })
    }
    return operations
  }

  /**
   * Puts together the snapshot at `index`, all of whose chunks were persisted. Undefined when they aren't what the header says, or
   * not there any more: it has to be sent anew.
   */
  async assembleSnapshot(index: LogIndex): Promise<Snapshot | undefined> {
    let snapshot: Snapshot | undefined
    await this.#enqueue(async () => {
      const partial = this.#partial
      if (partial?.header.index !== index || partial.bytes !== partial.header.totalBytes) return
      const { header } = partial
      const chunks: Uint8Array[] = []
      for (let i = 0; i < partial.chunkCount; i++) {
        const value = await this.#store.get(chunkKey(index, i))
        if (value === undefined) throw new RaftStorageError(`Chunk ${i} of the snapshot at index ${index} is gone`)
        chunks.push(decodeChunk(value))
      }
      const data = Buffer.concat(chunks)
      if (crc32(data) === header.dataCrc) {
        snapshot = { index, term: header.term, membership: header.membership, data }
      } else {
        await this.#batch(this.#dropPartial(), { sync: false })
      }
    })
    return snapshot
  }

  /**
   * A snapshot of the own state machine, whose entries up to `index` (committed, in the log) `data` stands for. Of the entries in
   * it the last `keptEntries` stay in the log, for followers that are a little behind. Without effect when the log has a
   * snapshot as new. `data` must not change afterwards.
   */
  async saveSnapshot(index: LogIndex, data: Uint8Array, keptEntries: number): Promise<void> {
    const term = this.#log.term(index)
    if (index <= this.#log.snapshot.index) return
    assert(typeof term === 'number', 'a snapshot is of an entry in the log')
    const snapshot: Snapshot = { index, term, membership: this.#log.membershipAt(index), data }
    const manifest = manifestOf(snapshot, this.#crcAt(index))
    // What the leader sent up to here is of no use any more, and its chunks may have the same keys.
    await this.#enqueue(async () => {
      if (this.#partial === undefined || this.#partial.header.index > index) return
      await this.#batch(this.#dropPartial(), { sync: false })
    })
    // Each chunk waits in the queue by itself, so that votes and entries get in between.
    for (let chunk = 0; chunk < manifest.chunkCount; chunk++) {
      await this.#enqueue(() => this.#writeChunk(snapshot, chunk))
    }
    await this.#enqueue(async () => {
      const previous = this.#log.snapshot
      const isOvertaken = index <= previous.index // by one from the leader
      const [staleIndex, staleCount] = isOvertaken ? [index, manifest.chunkCount] : [previous.index, this.#chunkCount]
      const operations: KeyValueOperation[] = []
      if (!isOvertaken) operations.push({ type: 'put', key: manifestKey, value: encodeManifest(manifest) })
      if (staleIndex !== previous.index || !isOvertaken) {
        for (let i = 0; i < staleCount; i++) operations.push({ type: 'delete', key: chunkKey(staleIndex, i) })
      }
      await this.#batch(operations, { sync: true })
      if (isOvertaken) return
      this.#log.replaceSnapshot(snapshot)
      this.#chainCrc = manifest.chainCrc
      this.#chunkCount = manifest.chunkCount
    })
    await this.#compact((index - keptEntries) as LogIndex)
  }

  /** Entries below `index` go; the one at `index` stays in the store, since the term before the first entry must be known. */
  async #compact(index: LogIndex): Promise<void> {
    if (index < this.#log.firstIndex) return
    this.#log.compact(index)
    // Not synced and in ascending order: after a crash the log only starts a little earlier.
    while (this.#firstStoredIndex < index) {
      await this.#enqueue(async () => {
        const end = Math.min(index, this.#firstStoredIndex + deletesPerBatch) as LogIndex
        const operations: KeyValueOperation[] = []
        for (let at = this.#firstStoredIndex; at < end; at++) {
          operations.push({ type: 'delete', key: entryKey(at) })
          this.#crcs.delete(at)
        }
        if (operations.length > 0) await this.#batch(operations, { sync: false })
        this.#firstStoredIndex = Math.max(this.#firstStoredIndex, end) as LogIndex
      })
    }
  }

  /** Not synced: the batch with the manifest is, and batches are lost from the end only. */
  #writeChunk(snapshot: Snapshot, chunk: number): Promise<void> {
    const operation = {
      type: 'put',
      key: chunkKey(snapshot.index, chunk),
      value: encodeChunk(snapshot.data, chunk),
    } as const
    return this.#batch([operation], { sync: false })
  }

  /** Waits for what is queued, brings the quorum-state file up to date, closes the store. */
  async close(): Promise<void> {
    this.#witnessTimer?.cancel()
    this.#witnessTimer = undefined
    const flush = async (): Promise<void> => {
      if (this.#notedHardState !== undefined) await this.#persistState([])
      await this.#witness()
    }
    await this.#enqueue(flush).catch(() => undefined) // who made the failing call was told
    if (!this.#isStoreClosed) await this.#store.close()
  }

  #crcAt(index: LogIndex): number | undefined {
    return index === this.#log.snapshot.index ? this.#chainCrc : this.#crcs.get(index)
  }

  // ---- a full disk ----

  #batch(operations: readonly KeyValueOperation[], options: { readonly sync: boolean }): Promise<void> {
    return this.#withRoom(() => this.#store.batch(operations, options))
  }

  async #withRoom(write: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await write()
      } catch (error) {
        if (!this.#fullDisk.mayWaitAfter(error)) throw error
        this.#isStoreClosed = true
        this.#store = await this.#fullDisk.untilRoom(this.#store, error)
        this.#isStoreClosed = false
        await this.#checkReopened()
      }
    }
  }

  /** The store holds all that was durable, and perhaps what was being written. */
  async #checkReopened(): Promise<void> {
    const { lastIndex } = this.#log
    const hasWitness = this.#quorumState !== undefined
    const { manifest, crcs, hardState } = await loadState(this.#store, this.#witnessed, hasWitness, { tidies: false })
    const crc = lastIndex === manifest.index ? manifest.chainCrc : crcs.get(lastIndex)
    const { term, votedFor } = this.#hardState
    const hasVote = hardState.term > term || (hardState.term === term && hardState.votedFor === votedFor)
    if (crc === this.#crcAt(lastIndex) && hasVote) return
    throw new RaftStorageError(`The Raft log lost what it had up to entry ${lastIndex} when the disk was full`)
  }

  // ---- the quorum-state file ----

  /** The file says all that is durable now. */
  async #witness(): Promise<void> {
    this.#witnessTimer?.cancel()
    this.#witnessTimer = undefined
    const { lastIndex } = this.#log
    await this.#writeWitness(lastIndex, this.#crcAt(lastIndex))
  }

  /** Entries from `index` on are about to be replaced: the file must not claim them when a crash comes in between. */
  async #witnessBelow(index: LogIndex, isWholeLog: boolean): Promise<void> {
    if (this.#witnessed === undefined || this.#witnessed.lastDurableIndex < index) return
    const lowered = isWholeLog ? this.#log.snapshot.index : ((index - 1) as LogIndex)
    await this.#writeWitness(lowered, this.#crcAt(lowered))
  }

  async #writeWitness(lastDurableIndex: LogIndex, lastDurableCrc: number | undefined): Promise<void> {
    if (this.#quorumState === undefined) return
    assert(lastDurableCrc !== undefined, 'the CRC of a stored entry is known')
    const { term, votedFor } = this.#hardState
    const told = this.#witnessed
    if (
      told?.term === term &&
      told.votedFor === votedFor &&
      told.lastDurableIndex === lastDurableIndex &&
      told.lastDurableCrc === lastDurableCrc
    ) {
      return
    }
    const state: QuorumState = { term, votedFor, lastDurableIndex, lastDurableCrc }
    const file = this.#quorumState
    await this.#withRoom(() => file.write(state))
    this.#witnessed = state
  }

  /** Within `quorumStateDelayMs`, or now when the file is `quorumStateMaxLag` entries behind. */
  async #witnessSoon(): Promise<void> {
    if (this.#quorumState === undefined) return
    if (this.#log.lastIndex - (this.#witnessed?.lastDurableIndex ?? 0) >= quorumStateMaxLag)
      return await this.#witness()
    this.#witnessTimer ??= this.#timers.set(quorumStateDelayMs, () => {
      this.#witnessTimer = undefined
      this.#enqueue(() => this.#witness()).catch(() => undefined) // told to the listener, and by the next call
    })
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    const run = async (): Promise<void> => {
      if (this.#failure !== undefined) throw this.#failure
      try {
        await work()
      } catch (error) {
        this.#failure = asStorageError(error, isDiskFull(error) ? fullDiskText : 'Cannot write the Raft log')
        this.#failureListener?.(this.#failure)
        throw this.#failure
      }
    }
    const result = this.#queue.then(run)
    this.#queue = result.catch(() => undefined) // each caller handles its own result
    return result
  }
}

const fullDiskText =
  'The disk of the metadata log is full, and this node ends rather than go on without it: make room, then start it again'

function asStorageError(error: unknown, what: string): RaftStorageError {
  if (error instanceof RaftStorageError) return error
  return new RaftStorageError(`${what}: ${messageOf(error)}`, { cause: error })
}

/**
 * Writes the bootstrap snapshot (index 0: the voters and nothing else) and an empty hard state into a store that never held
 * anything. A quorum-state file beside an empty store is left for `loadState` to refuse.
 */
async function formatIfEmpty(
  store: KeyValueStore,
  quorumState: QuorumStateStore | undefined,
  membership: Membership,
): Promise<void> {
  for await (const _ of store.iterate(new Uint8Array(0), Uint8Array.of(255))) return
  if ((await quorumState?.read()) !== undefined) return
  const snapshot: Snapshot = { index: 0 as LogIndex, term: 0 as Term, membership, data: new Uint8Array(0) }
  const hardState: HardState = { term: 0 as Term, votedFor: null, votedDirectoryId: null, commitIndex: 0 as LogIndex }
  await store.batch(
    [
      { type: 'put', key: formatKey, value: seal([1, formatVersion]) },
      { type: 'put', key: manifestKey, value: encodeManifest(manifestOf(snapshot, undefined)) },
      { type: 'put', key: hardStateKey, value: encodeHardState(hardState) },
    ],
    { sync: true },
  )
}
