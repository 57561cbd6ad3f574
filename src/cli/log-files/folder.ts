import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { directoryLockHolder } from '../../platform/index.ts'
import { UsageError } from '../exit.ts'

/** One partition's folder, `orders-0/`. */
export interface PartitionFolder {
  readonly path: string
  /** `orders-0` */
  readonly name: string
  readonly topic: string
  readonly partition: number
  /** By base offset. */
  readonly segments: readonly SegmentFile[]
  /** All names of files inside, sorted. */
  readonly fileNames: readonly string[]
}

export interface SegmentFile {
  /** Of the `.log` file. */
  readonly path: string
  /** `orders-0/00000000000000000000.log` */
  readonly name: string
  /** As the file is named. */
  readonly baseOffset: number
}

/** What a path on the command line turned out to be. */
export type LogPath =
  | { readonly kind: 'directory'; readonly path: string; readonly partitions: readonly PartitionFolder[] }
  | { readonly kind: 'partition'; readonly path: string; readonly partition: PartitionFolder }
  | {
      readonly kind: 'segment'
      readonly path: string
      readonly partition: PartitionFolder
      readonly segment: SegmentFile
    }

/** Throws `UsageError` for what is neither a segment, nor a partition's folder, nor a folder of partitions. */
export async function openLogPath(given: string): Promise<LogPath> {
  const path = resolve(given)
  const found = await stat(path).catch(() => undefined)
  if (found === undefined) {
    const hint = /-\d+\/?$/.test(given) ? ": a partition's folder is made with its first record" : ''
    throw new UsageError(`There is no file or folder ${given}${hint}`)
  }
  if (found.isFile()) {
    const partition = await readPartitionFolder(dirname(path))
    const segment = partition?.segments.find((each) => each.path === path)
    if (partition !== undefined && segment !== undefined) return { kind: 'segment', path, partition, segment }
    throw new UsageError(`${given} is no segment: allowed is a file such as orders-0/00000000000000000000.log`)
  }
  const partition = await readPartitionFolder(path)
  if (partition !== undefined) return { kind: 'partition', path, partition }
  const names = await readdir(path)
  const partitions: PartitionFolder[] = []
  for (const name of names.sort()) {
    const each = await readPartitionFolder(join(path, name))
    if (each !== undefined) partitions.push(each)
  }
  const isKnown = names.includes('meta.properties') || partitions.some(({ fileNames }) => fileNames.length > 0)
  if (!isKnown) {
    throw new UsageError(`${given} holds no partitions: allowed is a folder of log.dirs, or a folder such as orders-0`)
  }
  return { kind: 'directory', path, partitions }
}

/** The folder of `log.dirs` in which a partition's folder, or a path itself, is. */
export function logDirectoryOf(log: LogPath): string {
  return log.kind === 'directory' ? log.path : dirname(log.partition.path)
}

/**
 * Who may be writing there now, for people: `process 4711`; undefined when nobody is known to. Rookery's lock names its
 * holder; Kafka's is one of the system's, which Linux lists.
 */
export async function lockHolderOf(logDirectory: string): Promise<string | undefined> {
  const ours = await directoryLockHolder(logDirectory).catch(() => undefined)
  if (ours !== undefined) return `process ${ours}`
  const lock = await stat(join(logDirectory, '.lock')).catch(() => undefined)
  const listed = await readFile('/proc/locks', 'utf8').catch(() => '')
  if (lock === undefined) return undefined
  // `1: POSIX  ADVISORY  WRITE 4711 fe:01:1234567 0 EOF`
  for (const line of listed.split('\n')) {
    const match = /WRITE\s+(-?\d+)\s+\w+:\w+:(\d+)\s/.exec(line)
    if (match === null || Number(match[2]) !== lock.ino) continue
    // In another container's namespace it has no number here.
    return Number(match[1]) > 0 ? `process ${match[1]}` : 'another program'
  }
  return undefined
}

/** Undefined for what is no folder of a partition: its name says otherwise, or it has files of something else. */
async function readPartitionFolder(path: string): Promise<PartitionFolder | undefined> {
  const name = basename(path)
  const parsed = parsePartitionName(name)
  if (parsed === undefined) return undefined
  const fileNames = await readdir(path).catch(() => undefined)
  if (fileNames === undefined) return undefined
  const segments = fileNames
    .filter((each) => /^\d{20}\.log$/.test(each))
    .map((each) => ({ path: join(path, each), name: `${name}/${each}`, baseOffset: Number(each.slice(0, 20)) }))
  segments.sort((left, right) => left.baseOffset - right.baseOffset)
  // A name with a number at its end is common: other folders have it too.
  const isMetadata = parsed.topic === '__cluster_metadata'
  const isKnown = segments.length > 0 || fileNames.length === 0 || isMetadata
  if (!isKnown && !fileNames.some((each) => ownFiles.has(each))) return undefined
  return { path, name, ...parsed, segments, fileNames: fileNames.sort() }
}

/** What a partition without segments has. */
const ownFiles: ReadonlySet<string> = new Set(['partition.metadata', 'leader-epoch-checkpoint'])

/** `orders-0`; not `orders-0.<uuid>-delete`, which is a partition on its way out. */
function parsePartitionName(name: string): { readonly topic: string; readonly partition: number } | undefined {
  const match = /^([\w.-]{1,249})-(\d{1,9})$/.exec(name)
  return match === null ? undefined : { topic: match[1]!, partition: Number(match[2]) }
}
