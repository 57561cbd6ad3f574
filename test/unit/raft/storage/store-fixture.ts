import { crc32 } from 'node:zlib'
import { zeroUuid } from '../../../../src/base/index.ts'
import type { Platform } from '../../../../src/platform/index.ts'
import {
  type Entry,
  type EntryType,
  type HardState,
  type KeyValueStore,
  type LogIndex,
  type Membership,
  type NodeId,
  quorumStateFile,
  RaftStorage,
  type Snapshot,
  type SnapshotChunk,
  type Term,
} from '../../../../src/raft/index.ts'
import { openSimulatedStore } from '../../../support/simulated-kv.ts'

export const membership: Membership = { voters: [1, 2, 3].map((id) => ({ id: id as NodeId, directoryId: zeroUuid })) }

export function entry(
  index: number,
  term: number,
  text = `entry ${index} of ${term}`,
  type: EntryType = 'data',
): Entry {
  return { index: index as LogIndex, term: term as Term, type, data: Buffer.from(text) }
}

export function hardState(term: number, votedFor: number | null, commitIndex = 0): HardState {
  return {
    term: term as Term,
    votedFor: votedFor as NodeId | null,
    votedDirectoryId: null,
    commitIndex: commitIndex as LogIndex,
  }
}

export function snapshot(index: number, term: number, data: Uint8Array = Buffer.from(`state ${index}`)): Snapshot {
  return { index: index as LogIndex, term: term as Term, membership, data }
}

/** What `persist` takes, with what is left out unchanged. */
export function ready(parts: { entries?: Entry[]; hardState?: HardState; snapshot?: Snapshot }) {
  return {
    entriesToPersist: parts.entries ?? [],
    hardState: parts.hardState,
    snapshot: parts.snapshot,
    snapshotChunks: [],
  }
}

/** The chunks of a snapshot from a leader, which come before it; two, where there is something to cut. */
export async function keepChunksOf(storage: RaftStorage, { data, ...of }: Snapshot): Promise<void> {
  const header = { ...of, totalBytes: data.length, dataCrc: crc32(data) }
  const half = data.length >> 1
  const chunks: SnapshotChunk[] = [{ header, offset: 0, data: data.subarray(0, half) }]
  if (half < data.length) chunks.push({ header, offset: half, data: data.subarray(half) })
  await storage.persist({ ...ready({}), snapshotChunks: chunks })
}

export const directory = '/data/raft'

/** Storage on the simulated disk of a host. */
export async function openOn(
  platform: Platform,
  bootstrap: Membership | undefined = membership,
  openStore: (platform: Platform) => Promise<KeyValueStore> = ({ files }) => openSimulatedStore(files, directory),
): Promise<RaftStorage> {
  const { files, timers } = platform
  const store = await openStore(platform)
  return await RaftStorage.open({ store, quorumState: quorumStateFile(files, directory), timers, bootstrap })
}

/** All that a storage holds, to compare. */
export function contentOf({ log, hardState }: RaftStorage) {
  const entries: Entry[] = []
  for (let index = log.firstIndex; index <= log.lastIndex; index++) entries.push(plain(log.entry(index)))
  const { snapshot } = log
  return { entries, hardState, snapshot: { ...snapshot, data: Buffer.from(snapshot.data).toString('latin1') } }
}

/** With bytes that compare whatever class they came as. */
function plain(of: Entry): Entry {
  return { ...of, data: Uint8Array.from(of.data) }
}
