import { type Append, type FinalLog, type History, told, type Violation, Violations } from './history.ts'

/**
 * Judges the appends of acks=all to each partition against its log as it is in the end:
 *
 * - **lost write**: what was acknowledged is at its offset.
 * - **effect of a refused write**: of what failed for certain nothing is there.
 * - **unknown value**, **duplicate**, **torn batch**: nothing is there that was not sent, nothing twice, and of a batch all of it in one piece.
 * - **reordering**: appends of one process are in the order in which it sent them.
 * - **linearizability**: the log is a total order of the appends that took effect. It has to agree with real time: an append that
 *   was acknowledged before another was sent has the lower offset. As offsets are given with the answers, this order is the only
 *   one that there can be, so that no search for one is needed: one pass by offset with the latest invocation so far decides in n log n
 *   what is a search over all orders in general. An append of unknown outcome that is in the log took effect somewhere after its invocation
 *   (its completion is infinite); one that is not there never did.
 * - **diverged replicas**: all replicas have the same records at the same offsets.
 */
export function judgeAppends(history: Pick<History, 'appends' | 'logs'>): readonly Violation[] {
  const violations = new Violations()
  const byPartition = new Map<number, FinalLog>()
  for (const log of history.logs) {
    const first = byPartition.get(log.partition)
    if (first === undefined) byPartition.set(log.partition, log)
    else compareReplicas(first, log, violations)
  }
  for (const [partition, log] of byPartition) {
    const appends = history.appends.filter((append) => append.partition === partition)
    judgePartition(appends, log, violations)
  }
  const unread = history.appends.find(({ partition }) => !byPartition.has(partition))
  if (unread !== undefined) violations.add('lost write', `Partition ${unread.partition} has no log: ${told(unread)}`)
  return violations.found
}

/** An append that is in the log. */
interface Effect {
  readonly append: Append
  readonly baseOffset: number
}

function judgePartition(appends: readonly Append[], log: FinalLog, violations: Violations): void {
  const place = `partition ${log.partition}`
  const effects = effectsOf(appends, log, violations)
  for (const append of appends) {
    const effect = effects.get(append)
    if (append.outcome === 'ok' && effect?.baseOffset !== append.baseOffset) {
      const found = effect === undefined ? 'it is not in the log' : `it is at ${effect.baseOffset}`
      violations.add(
        'lost write',
        `${append.values[0]} was acknowledged at offset ${append.baseOffset} of ${place}, and ${found}: ${told(append)}`,
      )
    } else if (append.outcome === 'fail' && effect !== undefined) {
      violations.add(
        'effect of a refused write',
        `${append.values[0]} is at offset ${effect.baseOffset} of ${place}: ${told(append)}`,
      )
    }
  }
  const inOrder = [...effects.values()].sort((a, b) => a.baseOffset - b.baseOffset)
  const lastOf = new Map<string, Effect>()
  let latest: Effect | undefined
  for (const effect of inOrder) {
    const { append, baseOffset } = effect
    const before = lastOf.get(append.process)
    if (before !== undefined && before.append.sequence >= append.sequence) {
      violations.add(
        'reordering',
        `${append.process} sent batch ${append.sequence} before ${before.append.sequence}, and it is after it, at ${baseOffset} of ${place}`,
      )
    }
    lastOf.set(append.process, effect)
    if (latest !== undefined && append.completedMs < latest.append.invokedMs) {
      violations.add(
        'linearizability',
        `${append.values[0]} was acknowledged before ${latest.append.values[0]} was sent, and is after it in ${place}: ` +
          `offset ${baseOffset}, ${told(append)}; offset ${latest.baseOffset}, ${told(latest.append)}`,
      )
    }
    if (latest === undefined || append.invokedMs > latest.append.invokedMs) latest = effect
  }
}

/** Where each append is; what makes no sense in the log goes to `violations`. */
function effectsOf(appends: readonly Append[], log: FinalLog, violations: Violations): Map<Append, Effect> {
  const place = `partition ${log.partition}`
  const appendOf = new Map<string, Append>()
  for (const append of appends) for (const value of append.values) appendOf.set(value, append)
  const effects = new Map<Append, Effect>()
  let expectedOffset = 0
  let open: { readonly append: Append; next: number } | undefined
  for (const { offset, value } of log.records) {
    if (offset !== expectedOffset) violations.add('gap', `Offset ${offset} of ${place} where ${expectedOffset} is next`)
    expectedOffset = offset + 1
    const append = appendOf.get(value)
    if (append === undefined) {
      violations.add('unknown value', `'${value}' at offset ${offset} of ${place} was never sent there`)
      continue
    }
    const index = append.values.indexOf(value)
    const expected = open !== undefined && open.next < open.append.values.length ? open : undefined
    if (expected !== undefined && (expected.append !== append || expected.next !== index)) {
      violations.add('torn batch', `${value} at offset ${offset} of ${place} is inside ${expected.append.values[0]}`)
    }
    if (index === 0) {
      const before = effects.get(append)
      if (before === undefined) effects.set(append, { append, baseOffset: offset })
      else violations.add('duplicate', `${value} is at ${before.baseOffset} and ${offset} of ${place}: ${told(append)}`)
    } else if (expected === undefined) {
      violations.add('torn batch', `${value} at offset ${offset} of ${place} has lost the start of its batch`)
    }
    open = { append, next: index + 1 }
  }
  if (open !== undefined && open.next < open.append.values.length) {
    violations.add('torn batch', `The end of ${open.append.values[0]} is missing at the end of ${place}`)
  }
  return effects
}

function compareReplicas(one: FinalLog, other: FinalLog, violations: Violations): void {
  const count = Math.max(one.records.length, other.records.length)
  for (let index = 0; index < count; index++) {
    const a = one.records[index]
    const b = other.records[index]
    if (a?.offset === b?.offset && a?.value === b?.value && a?.leaderEpoch === b?.leaderEpoch) continue
    violations.add(
      'diverged replicas',
      `Partition ${one.partition}: node ${one.node} has ${JSON.stringify(a)}, node ${other.node} ${JSON.stringify(b)}`,
    )
    return
  }
}
