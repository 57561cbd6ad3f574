import type { Entry, HardState, LogIndex, Snapshot, SnapshotHeader } from '../core/types.ts'
import {
  chunkKey,
  chunkKeys,
  decodeChunk,
  decodeEntry,
  decodeHardState,
  decodeManifest,
  decodePartialHeader,
  entryKey,
  entryKeys,
  formatKey,
  formatVersion,
  hardStateKey,
  joinChunks,
  type Manifest,
  manifestKey,
  partialKey,
  unseal,
} from './encoding.ts'
import { RaftStorageError } from './errors.ts'
import type { KeyValueOperation, KeyValueStore } from './key-value-store.ts'
import type { QuorumState } from './quorum-state.ts'

const remedy =
  'The node must not take part with less than it once had. In a quorum of several voters: remove this voter, empty its ' +
  'metadata folder, start it and add it again. A single node: restore the folder from a backup'

/** Everything that a store holds, after every check that can be made. */
export interface LoadedState {
  readonly hardState: HardState
  readonly manifest: Manifest
  readonly snapshot: Snapshot
  /** Contiguous; begin at or before `snapshot.index + 1`. */
  readonly entries: Entry[]
  /** Of each entry. */
  readonly crcs: Map<LogIndex, number>
  readonly witnessed: QuorumState | undefined
  readonly partial: KeptPartial | undefined
}

/** The chunks of a snapshot from the leader that are there, apart from the log. */
export interface KeptPartial {
  readonly header: SnapshotHeader
  readonly chunkCount: number
  readonly bytes: number
}

/**
 * Damage is never repaired here, however much it looks like a torn end: the store below already dropped what
 * was really torn, and what else is missing was promised to somebody. Throws `RaftStorageError` with what to do. `tidies`: what a crash left of snapshots is removed.
 */
export async function loadState(
  store: KeyValueStore,
  witnessed: QuorumState | undefined,
  hasWitness: boolean,
  { tidies = true }: { readonly tidies?: boolean } = {},
): Promise<LoadedState> {
  await checkFormat(store, witnessed)
  const hardStateValue = await store.get(hardStateKey)
  const manifestValue = await store.get(manifestKey)
  const partialValue = await store.get(partialKey)
  if (hardStateValue === undefined) throw lost('The hard state (term and vote) is gone')
  if (manifestValue === undefined) throw lost('The snapshot manifest is gone')
  const hardState = decoded(() => decodeHardState(hardStateValue))
  const manifest = decoded(() => decodeManifest(manifestValue))
  const header = partialHeaderOf(partialValue, Math.max(hardState.commitIndex, manifest.index))
  const { data, partial } = await readChunks(store, manifest, header, tidies)
  if (tidies && partialValue !== undefined && partial === undefined) {
    await store.batch([{ type: 'delete', key: partialKey }], { sync: false })
  }
  const { index, term, membership } = manifest
  const snapshot: Snapshot = { index, term, membership, data }
  const crcs = new Map<LogIndex, number>()
  const entries = await readEntries(store, manifest, crcs)
  const state: LoadedState = { hardState, manifest, snapshot, entries, crcs, witnessed, partial }
  checkReach(state)
  if (hasWitness) checkWitness(state)
  return state
}

function lost(what: string): RaftStorageError {
  return new RaftStorageError(`${what}: the Raft log is damaged. ${remedy}`)
}

/** Adds what to do to what is wrong with one value. */
function decoded<T>(decode: () => T): T {
  try {
    return decode()
  } catch (error) {
    if (!(error instanceof RaftStorageError)) throw error
    throw new RaftStorageError(`${error.message}: the Raft log is damaged or newer. ${remedy}`, { cause: error })
  }
}

async function checkFormat(store: KeyValueStore, witnessed: QuorumState | undefined): Promise<void> {
  const value = await store.get(formatKey)
  if (value === undefined) {
    if (witnessed !== undefined) throw lost('The store is empty, but its quorum-state file says it was used')
    for await (const _ of store.iterate(new Uint8Array(0), Uint8Array.of(255))) throw lost('The format version is gone')
    throw new RaftStorageError('The Raft log is not formatted, and no voters to begin with are given')
  }
  const version = decoded(() => unseal(value, 'the format version').integer(1))
  if (version > formatVersion) {
    throw new RaftStorageError(
      `The Raft log has format version ${version}; this program reads up to ${formatVersion}. Start a newer one`,
    )
  }
}

async function readEntries(store: KeyValueStore, manifest: Manifest, crcs: Map<LogIndex, number>): Promise<Entry[]> {
  const entries: Entry[] = []
  let previousCrc: number | undefined
  for await (const [key, value] of store.iterate(entryKeys.from, entryKeys.end)) {
    const expectedIndex = entries.length > 0 ? ((entries.at(-1)!.index + 1) as LogIndex) : undefined
    const stored = decoded(() => decodeEntry(value, expectedIndex ? `entry ${expectedIndex}` : 'the first entry'))
    const { entry } = stored
    if (entryKey(entry.index).compare(key) !== 0 || (expectedIndex !== undefined && entry.index !== expectedIndex)) {
      throw lost(
        `Entry ${expectedIndex ?? manifest.index + 1} is missing or misplaced (entry ${entry.index} was found)`,
      )
    }
    if (expectedIndex === undefined && entry.index > manifest.index + 1) {
      throw lost(`Entries ${manifest.index + 1} to ${entry.index - 1} are missing`)
    }
    if (entry.index === manifest.index + 1) previousCrc ??= manifest.chainCrc
    if (previousCrc !== undefined && stored.previousCrc !== previousCrc) {
      throw lost(`Entry ${entry.index} does not follow the entry before it`)
    }
    if (entry.term < (entries.at(-1)?.term ?? 0))
      throw lost(`Entry ${entry.index} has a lower term than the one before`)
    if (entry.index === manifest.index && (entry.term !== manifest.term || stored.crc !== manifest.chainCrc)) {
      throw lost(`Entry ${entry.index} is not the one that the snapshot ends with`)
    }
    previousCrc = stored.crc
    crcs.set(entry.index, stored.crc)
    entries.push(entry)
  }
  const last = entries.at(-1)
  if (last !== undefined && last.index < manifest.index) {
    throw lost(`The log ends at entry ${last.index}, before its snapshot at ${manifest.index}`)
  }
  return entries
}

/** Undefined when there is nothing to go on from. Nothing was promised for a partial snapshot: one that is damaged is asked for anew. */
function partialHeaderOf(value: Uint8Array | undefined, knownIndex: number): SnapshotHeader | undefined {
  if (value === undefined) return undefined
  try {
    const header = decodePartialHeader(value)
    return header.index > knownIndex ? header : undefined
  } catch (error) {
    if (error instanceof RaftStorageError) return undefined
    throw error
  }
}

/**
 * The data of the snapshot, and what is there of the one with `header`; leftovers of others whose writing a crash cut short are
 * removed, where that is asked for.
 */
async function readChunks(
  store: KeyValueStore,
  manifest: Manifest,
  header: SnapshotHeader | undefined,
  tidies: boolean,
): Promise<{ data: Uint8Array; partial: KeptPartial | undefined }> {
  const chunks: Uint8Array[] = []
  const leftovers: KeyValueOperation[] = []
  let partial: KeptPartial | undefined = header && { header, chunkCount: 0, bytes: 0 }
  for await (const [key, value] of store.iterate(chunkKeys.from, chunkKeys.end)) {
    if (chunkKey(manifest.index, chunks.length).compare(key) === 0) {
      chunks.push(value)
      continue
    }
    const bytes = partial && bytesOfNext(partial, key, value)
    if (partial === undefined || bytes === undefined) leftovers.push({ type: 'delete', key })
    else partial = { ...partial, chunkCount: partial.chunkCount + 1, bytes: partial.bytes + bytes }
  }
  const data = decoded(() => joinChunks(manifest, chunks))
  if (tidies && leftovers.length > 0) await store.batch(leftovers, { sync: false })
  return { data, partial: partial?.chunkCount === 0 ? undefined : partial }
}

/** Undefined when it isn't the next chunk of `partial`, whole. */
function bytesOfNext(partial: KeptPartial, key: Uint8Array, value: Uint8Array): number | undefined {
  const { header, chunkCount, bytes } = partial
  if (chunkKey(header.index, chunkCount).compare(key) !== 0) return undefined
  try {
    const { length } = decodeChunk(value)
    return bytes + length <= header.totalBytes ? length : undefined
  } catch (error) {
    if (error instanceof RaftStorageError) return undefined
    throw error
  }
}

/** What the parts say of each other. */
function checkReach({ hardState, manifest, entries }: LoadedState): void {
  const lastIndex = entries.at(-1)?.index ?? manifest.index
  const lastTerm = entries.at(-1)?.term ?? manifest.term
  if (hardState.commitIndex > lastIndex) {
    throw lost(`Entries ${lastIndex + 1} to ${hardState.commitIndex}, which were committed, are missing`)
  }
  if (hardState.term < lastTerm) throw lost(`The term ${hardState.term} is older than the last entry's, ${lastTerm}`)
}

/** What the independent file says of the store. */
function checkWitness({ hardState, manifest, entries, crcs, witnessed }: LoadedState): void {
  if (witnessed === undefined) {
    // A crash between the two writes of the first start leaves this, with nothing to lose yet.
    if (hardState.term === 0 && entries.length === 0 && manifest.index === 0) return
    throw lost('The file quorum-state is gone')
  }
  const { term, votedFor, lastDurableIndex, lastDurableCrc } = witnessed
  if (hardState.term < term) throw lost(`The term is ${hardState.term}, and was ${term} before`)
  if (hardState.term === term && votedFor !== null && hardState.votedFor !== votedFor) {
    throw lost(`The vote of term ${term} is gone (it was for node ${votedFor})`)
  }
  const lastIndex = entries.at(-1)?.index ?? manifest.index
  if (lastDurableIndex > lastIndex) throw lost(`Entries ${lastIndex + 1} to ${lastDurableIndex} are missing`)
  const crc = lastDurableIndex === manifest.index ? manifest.chainCrc : crcs.get(lastDurableIndex)
  if (crc !== undefined && crc !== lastDurableCrc) {
    throw lost(`Entry ${lastDurableIndex} is an older one than was there before`)
  }
}
