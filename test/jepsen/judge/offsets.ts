import { type Commit, type Committed, type History, told, type Violation, Violations } from './history.ts'

/**
 * Judges what groups commit. A committed offset is a register with one writer at a time, the member that owns the partition:
 *
 * - **offset from nowhere**: what is told was committed by somebody, or is nothing.
 * - **stale committed offset**: what is told is no older than what was acknowledged before it was asked for: an older one makes a
 *   consumer read again what its group is done with. Where `mayBeStale` a coordinator that was cut off may have answered with what it knew
 *   last: Kafka's do as well. It counts at once after a member was given its generation, which only a true coordinator can store, and in the end.
 * - **two owners**: in one generation of a group a partition has one owner.
 */
export function judgeOffsets(history: Pick<History, 'commits' | 'committed' | 'assignments'>): readonly Violation[] {
  const violations = new Violations()
  const commits = new Map<string, Commit[]>()
  for (const commit of history.commits) {
    const key = placeOf(commit)
    const list = commits.get(key)
    if (list === undefined) commits.set(key, [commit])
    else list.push(commit)
  }
  for (const committed of history.committed) {
    if (committed.outcome === 'ok') judgeCommitted(committed, commits.get(placeOf(committed)) ?? [], violations)
  }
  judgeOwners(history.assignments, violations)
  return violations.found
}

function judgeCommitted(committed: Committed, commits: readonly Commit[], violations: Violations): void {
  const place = placeOf(committed)
  const same = commits.filter(({ offset, outcome }) => offset === committed.offset && outcome !== 'fail')
  if (committed.offset !== -1 && !same.some(({ invokedMs }) => invokedMs <= committed.completedMs)) {
    violations.add('offset from nowhere', `${committed.offset} of ${place} was told to ${told(committed)}`)
    return
  }
  if (committed.mayBeStale) return
  // The value is right if one of its commits may have taken effect after all that were over before it.
  const lastCompletedMs = same.reduce((last, { completedMs }) => Math.max(last, completedMs), Number.NEGATIVE_INFINITY)
  const newer = commits.find(
    ({ outcome, offset, invokedMs, completedMs }) =>
      outcome === 'ok' &&
      offset !== committed.offset &&
      completedMs < committed.invokedMs &&
      invokedMs > lastCompletedMs,
  )
  if (newer === undefined) return
  violations.add(
    'stale committed offset',
    `${committed.offset} of ${place} was told to ${told(committed)}; ${newer.offset} was acknowledged to ${told(newer)}`,
  )
}

function judgeOwners(assignments: History['assignments'], violations: Violations): void {
  const owners = new Map<string, string>()
  for (const { group, generation, process, partitions } of assignments) {
    for (const partition of partitions) {
      const key = `partition ${partition} in generation ${generation} of ${group}`
      const owner = owners.get(key)
      if (owner !== undefined && owner !== process) violations.add('two owners', `${key}: ${owner} and ${process}`)
      owners.set(key, process)
    }
  }
}

function placeOf({ group, partition }: { readonly group: string; readonly partition: number }): string {
  return `partition ${partition} for ${group}`
}
