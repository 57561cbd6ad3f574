import { crc32 } from 'node:zlib'
import { Packr } from 'msgpackr'
import type { Uuid } from '../../base/index.ts'
import type { Entry, EntryType, HardState, LogIndex, Membership, NodeId, Snapshot, Term, Voter } from '../core/types.ts'
import { RaftStorageError } from './errors.ts'

/**
 * What is written where. A value is the CRC-32 of its body (4 bytes, big-endian), then the body: a msgpack array that starts
 * with its version. Fields are only ever added, under a new version.
 *
 *     key                         body
 *     'f'                         [1, formatVersion]
 *     'h'                         [1, term, votedFor | -1, commitIndex]
 *     'l' index:u64               [1, index, term, type, previousCrc, data]
 *     'm'                         [1, index, term, [[voterId, directoryId] ...], chainCrc, dataBytes, dataCrc, chunkCount]
 *     's' index:u64 chunk:u32     [1, bytes]
 *
 * `previousCrc` is the CRC of the entry before: each entry so vouches for all before it. The first entry after a snapshot links
 * to the snapshot's `chainCrc`, which is the CRC of the snapshot's last entry where that is known.
 */
export const formatVersion = 1

const packr = new Packr({ useRecords: false, variableMapSize: true })

export const formatKey = Buffer.from('f')
export const hardStateKey = Buffer.from('h')
export const manifestKey = Buffer.from('m')
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

/** The fields after the version. `name` is for the error. Byte fields are views of `sealed`. */
export function unseal(sealed: Uint8Array, name: string): Fields {
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
  if (body[0] !== 1)
    throw new RaftStorageError(`Version ${String(body[0])} of ${name} is not known; this program reads 1`)
  return new Fields(body.slice(1), name)
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Reads fields in order and checks each. */
export class Fields {
  readonly #values: readonly unknown[]
  readonly #name: string
  #next = 0

  constructor(values: readonly unknown[], name: string) {
    this.#values = values
    this.#name = name
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
      return new Fields(row as unknown[], this.#name)
    })
  }

  #refuse(): never {
    throw new RaftStorageError(`Field ${this.#next} of ${this.#name} is not valid`)
  }
}

const entryTypes: readonly EntryType[] = ['noop', 'data']

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

export function encodeHardState({ term, votedFor, commitIndex }: HardState): Buffer {
  return seal([1, term, votedFor ?? -1, commitIndex])
}

export function decodeHardState(sealed: Uint8Array): HardState {
  const fields = unseal(sealed, 'the hard state')
  const term = fields.integer() as Term
  const votedFor = fields.integer(-1)
  const commitIndex = fields.integer() as LogIndex
  return { term, votedFor: votedFor === -1 ? null : (votedFor as NodeId), commitIndex }
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
  const voters = membership.voters.map(({ id, directoryId }) => [id, directoryId])
  return seal([1, index, term, voters, chainCrc, dataBytes, dataCrc, chunkCount])
}

export function decodeManifest(sealed: Uint8Array): Manifest {
  const fields = unseal(sealed, 'the snapshot manifest')
  return {
    index: fields.integer() as LogIndex,
    term: fields.integer() as Term,
    membership: {
      voters: fields.rows().map((row): Voter => ({ id: row.integer() as NodeId, directoryId: row.text() as Uuid })),
    },
    chainCrc: fields.integer(),
    dataBytes: fields.integer(),
    dataCrc: fields.integer(),
    chunkCount: fields.integer(),
  }
}

export function encodeChunk(data: Uint8Array, chunk: number): Buffer {
  return seal([1, data.subarray(chunk * chunkBytes, (chunk + 1) * chunkBytes)])
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
