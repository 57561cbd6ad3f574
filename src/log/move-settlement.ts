import type { Uuid } from '../base/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { StorageError } from './errors.ts'
import type { LocalLog } from './local-log.ts'
import type { LogDirectory } from './log-directory.ts'

interface Scope {
  readonly directories: readonly LogDirectory[]
  /** No directory is missing. */
  readonly knowsAll: boolean
  readonly logger: Logger
}

/**
 * A start finds logs that had been about to switch from one directory to another, or had switched, and both of them, or one while
 * the other's directory is missing or the other damaged.
 *
 * Of several of one topic that are there the one that was appended to last stays, whatever was noted: as long as both folders are
 * there nothing was told durable that only the other has. (So it is with two of which nothing is noted: a directory was not in
 * `log.dirs` while the partition was made anew.) Where they are the same, the one that is least in doubt stays. One that is alone
 * counts when `MoveNotes` say that no other can have more; where they can't tell, it is withheld, since it would be taken for
 * the partition and go on without what was acknowledged. Two of one name and different topics both stay: who knows the topics says
 * which.
 *
 * A directory that fails meanwhile is offline, with its logs.
 */
export async function settleLogs(scope: Scope): Promise<void> {
  const { directories } = scope
  const names = new Set(directories.flatMap(({ logs }) => [...logs.keys()]))
  for (const name of names) {
    const holders = directories.filter(({ logs }) => logs.has(name))
    const isInDoubt = holders.some(({ moves }) => !moves.isSettled(name))
    if (holders.length === 1 && !isInDoubt) continue
    for (const group of Map.groupBy(holders, ({ logs }) => logs.get(name)!.topicId).values()) {
      await settle(scope, name, group)
    }
  }
  for (const directory of directories) {
    const { moves, logs, faults } = directory
    moves.dropArrivals((name) => logs.has(name) || faults.has(name))
    await unlessFailed(directory, () => directory.saveMoves())
  }
}

/** `holders`: all that have a log of the partition, of one topic. */
async function settle(scope: Scope, name: string, holders: readonly LogDirectory[]): Promise<void> {
  const { logger } = scope
  const chosen = holders.reduce((best, each) => (isBetter(name, each, best) ? each : best))
  const isRight = chosen.moves.isSettled(name) || hasAll(scope, name, chosen, holders)
  for (const directory of holders) {
    if (directory === chosen) continue
    logger.warn({ partition: name, removedFrom: directory.path, kept: chosen.path }, 'partition is in two directories')
    await unlessFailed(directory, () => directory.supersede(name))
  }
  if (isRight) chosen.moves.settle(name)
  else chosen.withhold(name, mayLack(name, chosen))
}

function isBetter(name: string, directory: LogDirectory, other: LogDirectory): boolean {
  const [log, otherLog] = [directory.logs.get(name)!, other.logs.get(name)!]
  if (isBehind(log, otherLog)) return false
  return isBehind(otherLog, log) || doubtOf(directory, name) < doubtOf(other, name)
}

function isBehind(log: LocalLog, other: LocalLog): boolean {
  if (log.latestEpoch !== other.latestEpoch) return log.latestEpoch < other.latestEpoch
  if (log.logEndOffset !== other.logEndOffset) return log.logEndOffset < other.logEndOffset
  return log.logStartOffset < other.logStartOffset
}

/** Among logs that are the same. */
function doubtOf({ moves }: LogDirectory, name: string): number {
  if (moves.isSettled(name)) return 0
  if (moves.arrivalOf(name) !== undefined) return 1
  return moves.departureOf(name)?.copy === undefined ? 3 : 2
}

/** Whether the log of `directory`, which is in doubt, can't lack what another has, that isn't among `holders`. */
function hasAll(
  { directories, knowsAll }: Scope,
  name: string,
  directory: LogDirectory,
  holders: readonly LogDirectory[],
): boolean {
  const { moves } = directory
  const directoryOf = (id: Uuid) => directories.find(({ directoryId }) => directoryId === id)
  const arrival = moves.arrivalOf(name)
  if (arrival !== undefined) {
    const source = directoryOf(arrival.from)
    if (source === undefined) return knowsAll
    const departure = source.moves.departureOf(name)
    if (holders.includes(source) || (departure?.to !== undefined && departure.copy === arrival.copy)) return true
    return !source.faults.has(name) && knowsAll
  }
  const { copy, to } = moves.departureOf(name) ?? {}
  // That it has moved from here is all that is known of it.
  if (copy === undefined || to === undefined) return knowsAll
  const target = directoryOf(to)
  if (target === undefined) return knowsAll
  if (holders.includes(target)) return true
  if (target.faults.has(name)) return false
  const isThere = target.moves.arrivalOf(name)?.copy === copy
  // Without the arrival it may have gone on from there.
  return isThere || target.moves.departureOf(name) === undefined || knowsAll
}

/** The directory tells of its fault, and is offline. */
async function unlessFailed(directory: LogDirectory, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (directory.isOnline) throw error
  }
}

function mayLack(name: string, { path }: LogDirectory): StorageError {
  const message =
    `Partition ${name} was being moved when the node ended, and its log in ${path} may lack records that are in another log ` +
    'directory, where it is damaged or which cannot be opened: it is offline until the node starts with that one, or goes on with ' +
    'what is here when that is taken out of log.dirs'
  return new StorageError(message, path)
}
