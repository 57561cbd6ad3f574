import type { Append, FinalLog, History, Read } from './history.ts'
import { told, type Violation, Violations } from './history.ts'

/**
 * Judges what readers were given. What Kafka promises to them, and so what is judged:
 *
 * - **inconsistent offset**: only what is committed is shown, and that never changes: what was read once at an offset is there in the end
 *   (so no two reads, at any time, from any replica, differ).
 * - **skipped records**: an answer has every record from the offset that was asked for. A position that was reached stays
 *   readable: OFFSET_OUT_OF_RANGE is one as well, as no log is cut here. (A leader that was cut off says so of what its successor has:
 *   readers don't ask one of an epoch before that of their position, which is committed with it; KIP-320.)
 * - **inconsistent epoch**: nor does the leader epoch of what was read ever change.
 * - **beyond the high watermark**: nothing above the high watermark of the same answer is shown.
 * - **read before it was written**: no value is seen before it was sent.
 * - **stale read**: reads are *not* linearizable in general: a leader that was cut off goes on to answer from what it had until it
 *   learns of its successor, and a new leader may know a lower high watermark than the one before told (KIP-207); both give a prefix
 *   of the log. But each fetch here names the leader epoch that it wants, and only the leader of that epoch answers it. Within one epoch
 *   there is one leader with one high watermark that only rises, and an acknowledgement of acks=all is given when it has passed the
 *   append. So reads and first-hand acknowledgements of one epoch are linearizable among themselves: a read in epoch e that began after an append of
 *   epoch e was acknowledged, or after another read of epoch e was answered, has no lower high watermark. An append that took several attempts may
 *   have been acknowledged by a later leader, who found it in its log: it says nothing of the epoch in which it is stored.
 */
export function judgeReads(history: Pick<History, 'appends' | 'reads' | 'logs'>): readonly Violation[] {
  const violations = new Violations()
  const logs = new Map<number, FinalLog>()
  for (const log of history.logs) if (!logs.has(log.partition)) logs.set(log.partition, log)
  const invokedMs = new Map<string, number>()
  for (const append of history.appends) for (const value of append.values) invokedMs.set(value, append.invokedMs)
  for (const read of history.reads) {
    const log = logs.get(read.partition)
    if (log !== undefined) judgeRead(read, log, invokedMs, violations)
  }
  for (const log of logs.values()) judgeFreshness(history, log, violations)
  return violations.found
}

function judgeRead(
  read: Read,
  { partition, records: logged }: FinalLog,
  invokedMs: ReadonlyMap<string, number>,
  violations: Violations,
): void {
  if (read.outcome !== 'ok') {
    if (read.note === outOfRange) violations.add('skipped records', `${describe(read)} is out of range`)
    return
  }
  let expected = read.fetchOffset
  for (const { offset, value, leaderEpoch } of read.records) {
    if (offset !== expected)
      violations.add('skipped records', `${describe(read)} has ${offset} where ${expected} is next`)
    expected = offset + 1
    const kept = logged[offset]
    if (kept?.value !== value) {
      violations.add(
        'inconsistent offset',
        `${describe(read)} had ${value} at ${offset} of partition ${partition}, where ${kept?.value ?? 'nothing'} is`,
      )
    }
    if (kept?.value === value && kept.leaderEpoch !== leaderEpoch) {
      violations.add(
        'inconsistent epoch',
        `${describe(read)} had ${value} in epoch ${leaderEpoch}, not ${kept.leaderEpoch}`,
      )
    }
    if (offset >= read.highWatermark) violations.add('beyond the high watermark', `${describe(read)} shows ${offset}`)
    if ((invokedMs.get(value) ?? Number.NEGATIVE_INFINITY) > read.completedMs) {
      violations.add('read before it was written', `${describe(read)} has ${value}`)
    }
  }
  // Whoever is not made to wait is given what there is.
  if (read.records.length === 0 && read.highWatermark > read.fetchOffset && read.note === early) {
    violations.add('skipped records', `${describe(read)} is empty`)
  }
}

/** In `Read.note`: the offset is not there. */
export const outOfRange = 'out of range'
/** In `Read.note`: the answer didn't wait for more. */
export const early = 'early'

/** Something that says that the high watermark of an epoch had come so far at a time. */
interface Mark {
  readonly atMs: number
  readonly offset: number
  readonly by: Append | Read
}

function judgeFreshness(history: Pick<History, 'appends' | 'reads'>, log: FinalLog, violations: Violations): void {
  const marks = new Map<number, Mark[]>()
  const add = (epoch: number, mark: Mark) => {
    const list = marks.get(epoch)
    if (list === undefined) marks.set(epoch, [mark])
    else list.push(mark)
  }
  for (const append of history.appends) {
    if (append.partition !== log.partition || append.outcome !== 'ok' || append.attempts > 1) continue
    const endOffset = append.baseOffset! + append.values.length
    const epoch = log.records[append.baseOffset!]?.leaderEpoch
    if (epoch !== undefined) add(epoch, { atMs: append.completedMs, offset: endOffset, by: append })
  }
  const reads = history.reads.filter(
    (read) => read.partition === log.partition && read.outcome === 'ok' && read.leaderEpoch >= 0,
  )
  for (const read of reads) add(read.leaderEpoch, { atMs: read.completedMs, offset: read.highWatermark, by: read })
  const rising = new Map([...marks].map(([epoch, list]) => [epoch, onlyRising(list)]))
  for (const read of reads) {
    const known = lastBefore(rising.get(read.leaderEpoch) ?? [], read.invokedMs)
    if (known === undefined || known.offset <= read.highWatermark) continue
    violations.add(
      'stale read',
      `${describe(read)} has a high watermark of ${read.highWatermark} in epoch ${read.leaderEpoch} of partition ${log.partition}, ` +
        `where ${known.offset} was known before by ${told(known.by)}`,
    )
  }
}

/** By time, those alone that are higher than all before. */
function onlyRising(marks: readonly Mark[]): Mark[] {
  const rising: Mark[] = []
  for (const mark of [...marks].sort((a, b) => a.atMs - b.atMs)) {
    if (mark.offset > (rising.at(-1)?.offset ?? -1)) rising.push(mark)
  }
  return rising
}

/** The last whose time is before `ms`. */
function lastBefore(marks: readonly Mark[], ms: number): Mark | undefined {
  let low = 0
  let high = marks.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (marks[middle]!.atMs < ms) low = middle + 1
    else high = middle
  }
  return marks[low - 1]
}

function describe(read: Read): string {
  return `The read from ${read.fetchOffset} of partition ${read.partition} by ${told(read)}`
}
