/**
 * What clients did and saw, for the judges of this folder, which are pure functions of it:
 *
 *   appends.ts   what is in the logs against what was acknowledged: loss, doubles, order, real time
 *   reads.ts     what readers were given, against the logs and against each other
 *   offsets.ts   committed offsets, and who owned what in a group
 *   topics.ts    topics that were created and deleted
 *
 * Each operation is an interval from its invocation to its completion, in milliseconds of one monotonic clock. The outcome is 'ok', 'fail' (it had and
 * will have no effect) or 'unknown' (it may have its effect at any time after its invocation, or never).
 */
export interface Operation {
  /** Who did it; one does one after the other unless said otherwise. */
  readonly process: string
  readonly invokedMs: number
  /** Infinity while the outcome is unknown. */
  completedMs: number
  outcome: 'ok' | 'fail' | 'unknown'
  /** What the last answer said, for people. */
  note?: string
}

/** One batch to one partition. An idempotent producer sends it again and again as one append. */
export interface Append extends Operation {
  readonly kind: 'append'
  readonly partition: number
  /** In no other append. */
  readonly values: readonly string[]
  /** Those of one process in one partition are in the log in this order. */
  readonly sequence: number
  /** Otherwise what is unknown is not sent again. */
  readonly isIdempotent: boolean
  /** Requests that carried it. */
  attempts: number
  /** Of the first value; undefined unless it is 'ok'. */
  baseOffset?: number
}

export interface SeenRecord {
  readonly offset: number
  readonly value: string
  /** Of its batch. */
  readonly leaderEpoch: number
}

/** One answer to a fetch of one partition. */
export interface Read extends Operation {
  readonly kind: 'read'
  readonly partition: number
  /** The leader epoch in which it was to be answered: another leader refuses it. -1: any. */
  readonly leaderEpoch: number
  readonly fetchOffset: number
  /** At `fetchOffset` and above, in the order of the answer. */
  records: readonly SeenRecord[]
  /** -1 unless it is 'ok'. */
  highWatermark: number
}

/** One commit of one offset of a group. */
export interface Commit extends Operation {
  readonly kind: 'commit'
  readonly group: string
  readonly partition: number
  readonly offset: number
}

/** What a group has committed, as it was told. */
export interface Committed extends Operation {
  readonly kind: 'committed'
  readonly group: string
  readonly partition: number
  /** -1: nothing. */
  offset: number
  /** Whether a coordinator that is no longer one may have answered. */
  readonly mayBeStale: boolean
}

/** A member was given its partitions in a generation of its group. */
export interface Assignment {
  readonly kind: 'assignment'
  readonly atMs: number
  readonly process: string
  readonly group: string
  readonly generation: number
  readonly partitions: readonly number[]
}

/** A topic was created or deleted through a broker. */
export interface TopicChange extends Operation {
  readonly kind: 'topic-change'
  readonly node: number
  /** In no other creation. */
  readonly name: string
  readonly isDeletion: boolean
}

/** The topics that a broker knows. */
export interface TopicListing extends Operation {
  readonly kind: 'topic-listing'
  readonly node: number
  /** After the last fault and the last change. */
  readonly isFinal: boolean
  readonly names: readonly string[]
}

/** The log of a partition as one replica has it, after the last fault and when nothing is written any more. */
export interface FinalLog {
  readonly node: number
  readonly partition: number
  readonly records: readonly SeenRecord[]
}

export interface History {
  readonly appends: readonly Append[]
  readonly reads: readonly Read[]
  readonly commits: readonly Commit[]
  readonly committed: readonly Committed[]
  readonly assignments: readonly Assignment[]
  readonly topicChanges: readonly TopicChange[]
  readonly topicListings: readonly TopicListing[]
  /** The leader's of each partition, and those of its other replicas. */
  readonly logs: readonly FinalLog[]
}

/** A promise that was broken. */
export interface Violation {
  /** Which. */
  readonly property: string
  /** By what, for people. */
  readonly message: string
}

/** No more than this many of a kind are told: one fault breaks thousands of records. */
const maxOfKind = 10

/** Collects violations. */
export class Violations {
  readonly #found: Violation[] = []
  readonly #counts = new Map<string, number>()

  add(property: string, message: string): void {
    const count = (this.#counts.get(property) ?? 0) + 1
    this.#counts.set(property, count)
    if (count <= maxOfKind) this.#found.push({ property, message })
  }

  /** The first of each kind, with how many there are more. */
  get found(): readonly Violation[] {
    const more = [...this.#counts].filter(([, count]) => count > maxOfKind)
    return [
      ...this.#found,
      ...more.map(([property, count]) => ({ property, message: `and ${count - maxOfKind} more` })),
    ]
  }
}

/** The operation as one line, for people. */
export function told({ process, invokedMs, completedMs, outcome, note }: Operation): string {
  const end = Number.isFinite(completedMs) ? completedMs.toFixed(1) : 'open'
  return `${process} [${invokedMs.toFixed(1)}, ${end}] ${outcome}${note === undefined ? '' : ` (${note})`}`
}
