import type { Logger } from '../telemetry/index.ts'
import { StorageError } from './errors.ts'
import type { LocalLog } from './local-log.ts'
import type { LogDirectory } from './log-directory.ts'

/** A log that is in doubt: it is the partition's; or another is; or that isn't known as long as some directory can't be read. */
type Verdict = 'right' | 'outdated' | 'unknown'

interface Scope {
  readonly directories: readonly LogDirectory[]
  /** No directory is missing. */
  readonly knowsAll: boolean
  readonly logger: Logger
}

/**
 * A start finds logs that had been about to switch from one directory to another, or had switched, and both of them, or one while
 * the other's directory is missing or the other damaged. What `MoveNotes` say decides which one has all that was told durable; one
 * of which they can't tell is withheld, since it would be taken for the partition and go on without what was acknowledged.
 * Two without notes (a directory was not in `log.dirs` while the partition was made anew): the one that was appended to last stays. Two of
 * one name and different topics both stay: who knows the topics says which.
 *
 * A directory that fails meanwhile is offline, with its logs.
 */
export async function settleLogs(scope: Scope): Promise<void> {
  const { directories, logger } = scope
  const inDoubt = directories.flatMap((directory) =>
    [...directory.logs.keys()].filter((name) => !directory.moves.isSettled(name)).map((name) => ({ directory, name })),
  )
  // All of them before anything changes.
  const verdicts = inDoubt.map(({ directory, name }) => verdictOn(scope, directory, name))
  for (const [i, { directory, name }] of inDoubt.entries()) {
    const verdict = verdicts[i]!
    logger.warn({ partition: name, directory: directory.path, verdict }, 'log was being moved when the node ended')
    if (verdict === 'unknown') directory.withhold(name, mayLack(name, directory))
    else if (verdict === 'outdated') await unlessFailed(directory, () => directory.supersede(name))
    else directory.moves.settle(name)
  }
  for (const directory of directories) await keepNewest(scope, directory)
  for (const directory of directories) {
    const { moves, logs, faults } = directory
    moves.dropArrivals((name) => logs.has(name) || faults.has(name))
    await unlessFailed(directory, () => directory.saveMoves())
  }
}

function verdictOn(scope: Scope, directory: LogDirectory, name: string): Verdict {
  const { topicId } = directory.logs.get(name)!
  const isOther = (other: LogDirectory) => other !== directory && other.logs.get(name)?.topicId === topicId
  if (scope.directories.some((other) => isOther(other) && other.moves.isSettled(name))) return 'outdated'
  const { copy, to } = directory.moves.departureOf(name) ?? {}
  if (copy !== undefined && to !== undefined) {
    const target = scope.directories.find(({ directoryId }) => directoryId === to)
    const arrived = target?.moves.arrivalOf(name)?.copy === copy
    if (target === undefined) return whenAllIsKnown(scope)
    if (isOther(target)) return arrived ? 'outdated' : 'unknown'
    if (target.faults.has(name)) return 'unknown'
    // It was there, and has gone on from there.
    return target.moves.departureOf(name) !== undefined && !arrived ? whenAllIsKnown(scope) : 'right'
  }
  const arrival = directory.moves.arrivalOf(name)!
  const source = scope.directories.find(({ directoryId }) => directoryId === arrival.from)
  const departure = source?.moves.departureOf(name)
  if (source === undefined) return whenAllIsKnown(scope)
  if (departure?.to !== undefined && departure.copy === arrival.copy) return 'right'
  if (isOther(source)) return 'outdated'
  return source.faults.has(name) ? 'unknown' : whenAllIsKnown(scope)
}

/** A directory that isn't in `log.dirs` any more was given up: what is here is what there is. */
function whenAllIsKnown({ knowsAll }: Scope): Verdict {
  return knowsAll ? 'right' : 'unknown'
}

async function keepNewest({ directories, logger }: Scope, directory: LogDirectory): Promise<void> {
  for (const [name, log] of [...directory.logs]) {
    const other = directories.find(({ logs }) => logs !== directory.logs && logs.get(name)?.topicId === log.topicId)
    if (other === undefined) continue
    const outdated = isBehind(other.logs.get(name)!, log) ? other : directory
    logger.warn({ partition: name, removedFrom: outdated.path }, 'partition is in two directories')
    await unlessFailed(outdated, () => outdated.supersede(name))
  }
}

function isBehind(log: LocalLog, other: LocalLog): boolean {
  if (log.latestEpoch !== other.latestEpoch) return log.latestEpoch < other.latestEpoch
  if (log.logEndOffset !== other.logEndOffset) return log.logEndOffset < other.logEndOffset
  return log.logStartOffset < other.logStartOffset
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
