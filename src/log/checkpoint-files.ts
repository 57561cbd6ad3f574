import { join } from 'node:path'
import { isUuid, type LeaderEpoch, type Offset, type Uuid, zeroUuid } from '../base/index.ts'
import { type Files, replaceFile } from '../platform/index.ts'
import type { EpochEntry } from './epoch-cache.ts'
import { StorageError } from './errors.ts'

export const recoveryPointFile = 'recovery-point-offset-checkpoint'
export const highWatermarkFile = 'replication-offset-checkpoint'
export const logStartFile = 'log-start-offset-checkpoint'
export const cleanerFile = 'cleaner-offset-checkpoint'
/** Rookery's own. */
export const moveFile = 'log-move-checkpoint'
const leaderEpochFile = 'leader-epoch-checkpoint'
export const partitionMetadataFile = 'partition.metadata'

const maxCheckpointBytes = 256 * 1024 * 1024

/** Lines of a checkpoint: version 0, how many follow, then the lines. Empty when there is no file. */
async function readLines(files: Files, path: string): Promise<readonly string[]> {
  const content = await files.readFile(path, maxCheckpointBytes)
  if (content === undefined) return []
  const [version, count, ...lines] = content.toString('utf8').split('\n')
  if (lines.at(-1) === '') lines.pop()
  if (version !== '0' || count !== String(lines.length)) {
    throw new StorageError(`Checkpoint ${path} is damaged: its line count or version is wrong`, path)
  }
  return lines
}

function checkpointText(lines: readonly string[]): Buffer {
  return Buffer.from(`0\n${lines.length}\n${lines.map((line) => `${line}\n`).join('')}`)
}

/** Offsets by partition name (`orders-0`), as `topic partition offset` lines. Throws `StorageError` on a damaged file. */
export async function readOffsets(files: Files, directory: string, name: string): Promise<Map<string, Offset>> {
  const path = join(directory, name)
  const offsets = new Map<string, Offset>()
  for (const line of await readLines(files, path)) {
    const match = /^(\S+) (\d{1,10}) (\d{1,16})$/.exec(line)
    if (match === null) throw new StorageError(`Checkpoint ${path} is damaged at line '${line.slice(0, 100)}'`, path)
    offsets.set(`${match[1]}-${match[2]}`, Number(match[3]))
  }
  return offsets
}

export async function writeOffsets(
  files: Files,
  directory: string,
  name: string,
  offsets: ReadonlyMap<string, Offset>,
): Promise<void> {
  await replaceFile(files, directory, name, checkpointText(linesOf(offsets)))
}

function linesOf(values: ReadonlyMap<string, Offset | string>): string[] {
  return [...values].map(([partition, value]) => {
    const dash = partition.lastIndexOf('-')
    return `${partition.slice(0, dash)} ${partition.slice(dash + 1)} ${value}`
  })
}

/** See `MoveNotes`. Without a copy: the partition has moved. `to`: the directory in which the copy may be in its place. */
export interface Departure {
  readonly copy?: string
  readonly to?: Uuid
}

/** See `MoveNotes`. */
export interface Arrival {
  readonly copy: string
  readonly from: Uuid
}

interface StoredMoves {
  readonly departures: ReadonlyMap<string, Departure>
  readonly arrivals: ReadonlyMap<string, Arrival>
}

/** In place of a copy's name. */
const hasMoved = '-'

/**
 * By partition name, as lines `topic partition copy`, with ` to <directory id>` or ` from <directory id>` behind where that is
 * noted. Throws `StorageError` on a damaged file.
 */
export async function readMoves(files: Files, directory: string): Promise<StoredMoves> {
  const path = join(directory, moveFile)
  const departures = new Map<string, Departure>()
  const arrivals = new Map<string, Arrival>()
  for (const line of await readLines(files, path)) {
    const match = /^(\S+) (\d{1,10}) (\S+)(?: (to|from) (\S{22}))?$/.exec(line)
    if (match === null) throw new StorageError(`Checkpoint ${path} is damaged at line '${line.slice(0, 100)}'`, path)
    const name = `${match[1]}-${match[2]}`
    const copy = match[3]!
    const other = match[5] as Uuid | undefined
    if (other !== undefined && match[4] === 'from') arrivals.set(name, { copy, from: other })
    else if (other !== undefined) departures.set(name, { copy, to: other })
    else departures.set(name, copy === hasMoved ? {} : { copy })
  }
  return { departures, arrivals }
}

export async function writeMoves(files: Files, directory: string, moves: StoredMoves): Promise<void> {
  const lines = [
    ...linesOf(mapped(moves.departures, ({ copy = hasMoved, to }) => (to === undefined ? copy : `${copy} to ${to}`))),
    ...linesOf(mapped(moves.arrivals, ({ copy, from }) => `${copy} from ${from}`)),
  ]
  await replaceFile(files, directory, moveFile, checkpointText(lines))
}

function mapped<From>(values: ReadonlyMap<string, From>, to: (value: From) => string): Map<string, string> {
  return new Map([...values].map(([name, value]) => [name, to(value)]))
}

/** Epochs of one partition, as `epoch startOffset` lines. */
export async function readEpochs(files: Files, directory: string): Promise<readonly EpochEntry[]> {
  const path = join(directory, leaderEpochFile)
  const entries: EpochEntry[] = []
  for (const line of await readLines(files, path)) {
    const match = /^(\d{1,10}) (\d{1,16})$/.exec(line)
    if (match === null) throw new StorageError(`Checkpoint ${path} is damaged at line '${line.slice(0, 100)}'`, path)
    entries.push({ epoch: Number(match[1]) as LeaderEpoch, startOffset: Number(match[2]) })
  }
  return entries
}

export async function writeEpochs(files: Files, directory: string, entries: readonly EpochEntry[]): Promise<void> {
  const lines = entries.map((entry) => `${entry.epoch} ${entry.startOffset}`)
  await replaceFile(files, directory, leaderEpochFile, checkpointText(lines))
}

/** What `partition.metadata` holds: whose partition this folder is. */
export function partitionMetadataText(topicId: Uuid): Buffer {
  return Buffer.from(`version: 0\ntopic_id: ${topicId}\n`)
}

/** Undefined when there is no such file, or when a crash tore it while it was written first. */
export async function readPartitionMetadata(files: Files, directory: string): Promise<Uuid | undefined> {
  const path = join(directory, partitionMetadataFile)
  const content = await files.readFile(path, 64 * 1024)
  if (content === undefined || content.length < partitionMetadataText(zeroUuid).length || content.includes(0)) {
    return undefined
  }
  const match = /^version: 0\ntopic_id: (\S{22})\n$/.exec(content.toString('utf8'))
  const topicId = match?.[1]
  if (topicId === undefined || !isUuid(topicId) || topicId === zeroUuid) {
    throw new StorageError(`File ${path} is damaged: it names no topic id`, path)
  }
  return topicId
}
