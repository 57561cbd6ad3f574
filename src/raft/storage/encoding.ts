import { crc32 } from 'node:zlib'
import { Packr } from 'msgpackr'
import type { Uuid } from '../../base/index.ts'
import type {
  Entry,
  EntryType,
  HardState,
  LogIndex,
  Membership,
  NodeId,
  Snapshot,
  SnapshotHeader,
  Term,
  Voter,
} from '../core/types.ts'
import { RaftStorageError } from './errors.ts'

/**
 * What is written where. A value is the CRC-32 of its body (4 bytes, big-endian), then the body: a msgpack array that starts
 * with its version. Fields are only ever added, under a new version.
 *
 *     key                         body
 *     'f'                         [1, formatVersion]
 *     'h'                         [1, term, votedFor | -1, commitIndex], or
 *                                 [2, term, votedFor, commitIndex, votedDirectoryId]
 *     'l' index:u64               [1, index, term, type, previousCrc, data]; type: 0 noop, 1 data, 2 config
 *     'm'                         [1, index, term, [[voterId, directoryId] ...], chainCrc, dataBytes, dataCrc, chunkCount], or
 *                                 [2, ...] with [voterId, directoryId, endpoint ('' for none)]
 *     's' index:u64 chunk:u32     [1, bytes]
 *     'p'                         [1, index, term, [[voterId, directoryId, endpoint] ...], dataBytes, dataCrc]
 *
 * 'p' is the header of a snapshot that is still coming from the leader; its chunks lie beside those of the snapshot under 'm'.
 *
 * `previousCrc` is the CRC of the entry before: each entry so vouches for all before it. The first entry after a snapshot links
 * to the snapshot's `chainCrc`, which is the CRC of the snapshot's last entry where that is known.
 */
export const formatVersion = 1

const packr = new Packr({ useRecords: false, variableMapSize: true })

export const formatKey = Buffer.from('f')
export const hardStateKey = Buffer.from('h')
export const manifestKey = Buffer.from('m')
export const partialKey = Buffer.from('p')
export const entryKeys = { from: Buffer.from('l'), end: Buffer.from('m') }
export const chunkKeys = { from: Buffer.from('s'), end: Buffer.from('t') }

export function entryKey(index: LogIndex): Buffer {
  const key = Buffer.allocUnsafe(9)
  key[0] = 0x6c
  writeU64(key, index, 1)
  return key
}

export function chunkKey(snapshotIndex: LogIndex, chunk: number): Buffer {
  const key = Buffer.allocUnsafe(13)
  key[0] = 0x73
  writeU64(key, snapshotIndex, 1)
  key.writeUInt32BE(chunk, 9)
  return key
}

function writeU64(key: Buffer, value: number, position: number): void {
  key.writeUInt32BE(Math.floor(value / 2 ** 32), position)
  key.writeUInt32BE(value % 2 ** 32, position + 4)
}

/** CRC and body. */
export function seal(fields: readonly unknown[]): Buffer {
  const body = packr.pack(fields)
  const sealed = Buffer.allocUnsafe(4 + body.length)
  sealed.set(body, 4)
  sealed.writeUInt32BE(crc32(body), 0)
  return sealed
}

/** The CRC that a sealed value begins with. */
export function crcOf(sealed: Uint8Array): number {
  return viewOf(sealed).getUint32(0)
}

/** The fields after the version, which is 1 to `maxVersion`. `name` is for the error. Byte fields are views of `sealed`. */
export function unseal(sealed: Uint8Array, name: string, maxVersion = 1): Fields {
  if (sealed.length < 5 || crcOf(sealed) !== crc32(sealed.subarray(4))) {
    throw new RaftStorageError(`Checksum of ${name} does not match`)
  }
  let body: unknown
  try {
    body = packr.unpack(sealed.subarray(4) as Buffer)
  } catch (cause) {
    throw new RaftStorageError(`Encoding of ${name} is not valid`, { cause })
  }
  if (!Array.isArray(body) || body.length === 0) throw new RaftStorageError(`Encoding of ${name} is not valid`)
  const version: unknown = body[0]
  if (!Number.isInteger(version) || (version as number) < 1 || (version as number) > maxVersion) {
    throw new RaftStorageError(`Version ${String(version)} of ${name} is not known; this program reads ${maxVersion}`)
  }
  return new Fields(body.slice(1), name, version as number)
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Reads fields in order and checks each. */
export class Fields {
  readonly #values: readonly unknown[]
  readonly #name: string
  /** Of the value. */
  readonly version: number
  #next = 0

  constructor(values: readonly unknown[], name: string, version: number) {
    this.#values = values
    this.#name = name
    this.version = version
  }

  /** A whole number from `min` on. */
  integer(min = 0): number {
    const value = this.#values[this.#next++]
    if (!Number.isSafeInteger(value) || (value as number) < min) this.#refuse()
    return value as number
  }

  text(): string {
    const value = this.#values[this.#next++]
    if (typeof value !== 'string') this.#refuse()
    return value as string
  }

  bytes(): Uint8Array {
    const value = this.#values[this.#next++]
    if (!(value instanceof Uint8Array)) this.#refuse()
    return value as Uint8Array
  }

  /** An array of arrays. */
  rows(): Fields[] {
    const value = this.#values[this.#next++]
    if (!Array.isArray(value)) this.#refuse()
    return (value as unknown[]).map((row) => {
      if (!Array.isArray(row)) this.#refuse()
      return new Fields(row as unknown[], this.#name, this.version)
    })
  }

  #refuse(): never {
    throw new RaftStorageError(`Field ${this.#next} of ${this.#name} is not valid`)
  }
}

const entryTypes: readonly EntryType[] = ['noop', 'data', 'config']

export function encodeEntry(entry: Entry, previousCrc: number): Buffer {
  return seal([1, entry.index, entry.term, entryTypes.indexOf(entry.type), previousCrc, entry.data])
}

export function decodeEntry(sealed: Uint8Array, name: string): { entry: Entry; previousCrc: number; crc: number } {
  const fields = unseal(sealed, name)
  const index = fields.integer(1) as LogIndex
  const term = fields.integer(1) as Term
  const typeCode = fields.integer()
  const previousCrc = fields.integer()
  const data = fields.bytes()
  const type = entryTypes[typeCode]
  if (type === undefined) throw new RaftStorageError(`Type ${typeCode} of ${name} is not known`)
  return { entry: { index, term, type, data }, previousCrc, crc: crcOf(sealed) }
}

export function encodeHardState({ term, votedFor, votedDirectoryId, commitIndex }: HardState): Buffer {
  if (votedFor === null || votedDirectoryId === null) return seal([1, term, votedFor ?? -1, commitIndex])
  return seal([2, term, votedFor, commitIndex, votedDirectoryId])
}

export function decodeHardState(sealed: Uint8Array): HardState {
  const fields = unseal(sealed, 'the hard state', 2)
  const term = fields.integer() as Term
  const votedFor = fields.integer(-1)
  const commitIndex = fields.integer() as LogIndex
  const votedDirectoryId = fields.version === 2 ? (fields.text() as Uuid) : null
  return { term, votedFor: votedFor === -1 ? null : (votedFor as NodeId), votedDirectoryId, commitIndex }
}

/** What is kept of a snapshot beside its data. */
export interface Manifest {
  readonly index: LogIndex
  readonly term: Term
  readonly membership: Membership
  readonly chainCrc: number
  readonly dataBytes: number
  readonly dataCrc: number
  readonly chunkCount: number
}

/** Small enough that writing one does not hold up a vote or an entry for long. */
const chunkBytes = 256 << 10

export function manifestOf(snapshot: Snapshot, chainCrc: number | undefined): Manifest {
  const { index, term, membership, data } = snapshot
  const dataCrc = crc32(data)
  return {
    index,
    term,
    membership,
    chainCrc: chainCrc ?? dataCrc,
    dataBytes: data.length,
    dataCrc,
    chunkCount: Math.ceil(data.length / chunkBytes),
  }
}

export function encodeManifest(manifest: Manifest): Buffer {
  const { index, term, membership, chainCrc, dataBytes, dataCrc, chunkCount } = manifest
  const hasEndpoints = membership.voters.some(({ endpoint }) => endpoint !== undefined)
  const voters = hasEndpoints
    ? votersWithEndpoints(membership)
    : membership.voters.map(({ id, directoryId }) => [id, directoryId])
  return seal([hasEndpoints ? 2 : 1, index, term, voters, chainCrc, dataBytes, dataCrc, chunkCount])
}

function votersWithEndpoints({ voters }: Membership): unknown[] {
  return voters.map(({ id, directoryId, endpoint }) => [id, directoryId, endpoint ?? ''])
}

function readVoters(fields: Fields, hasEndpoints: boolean): Membership {
  const voters = fields.rows().map((row): Voter => {
    const voter = { id: row.integer() as NodeId, directoryId: row.text() as Uuid }
    const endpoint = hasEndpoints ? row.text() : ''
    return endpoint === '' ? voter : { ...voter, endpoint }
  })
  return { voters }
}

export function encodePartialHeader({ index, term, membership, totalBytes, dataCrc }: SnapshotHeader): Buffer {
  return seal([1, index, term, votersWithEndpoints(membership), totalBytes, dataCrc])
}

export function decodePartialHeader(sealed: Uint8Array): SnapshotHeader {
  const fields = unseal(sealed, 'the header of the partial snapshot')
  return {
    index: fields.integer(1) as LogIndex,
    term: fields.integer(1) as Term,
    membership: readVoters(fields, true),
    totalBytes: fields.integer(),
    dataCrc: fields.integer(),
  }
}

export function decodeManifest(sealed: Uint8Array): Manifest {
  const fields = unseal(sealed, 'the snapshot manifest', 2)
  return {
    index: fields.integer() as LogIndex,
    term: fields.integer() as Term,
    membership: readVoters(fields, fields.version === 2),
    chainCrc: fields.integer(),
    dataBytes: fields.integer(),
    dataCrc: fields.integer(),
    chunkCount: fields.integer(),
  }
}

export function encodeChunk(data: Uint8Array, chunk: number): Buffer {
  return encodeChunkBytes(data.subarray(chunk * chunkBytes, (chunk + 1) * chunkBytes))
}

/** Chunks from a leader are stored as they come: of any size. */
export function encodeChunkBytes(bytes: Uint8Array): Buffer {
  return seal([1, bytes])
}

export function decodeChunk(sealed: Uint8Array): Uint8Array {
  return unseal(sealed, 'a chunk').bytes()
}

/** The data of a snapshot from its chunks, in order. */
export function joinChunks(manifest: Manifest, sealedChunks: readonly Uint8Array[]): Uint8Array {
  const name = `the snapshot at index ${manifest.index}`
  if (sealedChunks.length !== manifest.chunkCount) {
    throw new RaftStorageError(`${sealedChunks.length} of ${manifest.chunkCount} chunks of ${name} are there`)
  }
  const data = Buffer.concat(sealedChunks.map((sealed, i) => unseal(sealed, `chunk ${i} of ${name}`).bytes()))
  if (data.length !== manifest.dataBytes || crc32(data) !== manifest.dataCrc) {
    throw new RaftStorageError(`Checksum of ${name} does not match`)
  }
  return data
}
