import type {
  Append,
  Assignment,
  Commit,
  Committed,
  FinalLog,
  Operation,
  Read,
  TopicChange,
  TopicListing,
} from './history.ts'

/** Operations as a test writes them down: `[from, to]` in milliseconds; without `to` the outcome is unknown. */
type Span = readonly [fromMs: number, toMs?: number]

function operation(process: string, [invokedMs, completedMs = Number.POSITIVE_INFINITY]: Span): Operation {
  return { process, invokedMs, completedMs, outcome: Number.isFinite(completedMs) ? 'ok' : 'unknown' }
}

/** An append to partition 0; acknowledged at `baseOffset`, where the span ends. */
export function append(
  process: string,
  span: Span,
  values: string,
  baseOffset?: number,
  facts: Partial<Append> = {},
): Append {
  return {
    ...operation(process, span),
    kind: 'append',
    partition: 0,
    values: values.split(' '),
    sequence: span[0],
    isIdempotent: true,
    attempts: 1,
    ...(baseOffset === undefined ? {} : { baseOffset }),
    ...facts,
  }
}

/** A read of partition 0 in epoch 1, by r, of these values from `fetchOffset` on. */
export function read(span: Span, fetchOffset: number, values: string, facts: Partial<Read> = {}): Read {
  const list = values === '' ? [] : values.split(' ')
  return {
    ...operation('r', span),
    kind: 'read',
    partition: 0,
    leaderEpoch: 1,
    fetchOffset,
    records: list.map((value, index) => ({ offset: fetchOffset + index, value, leaderEpoch: 1 })),
    highWatermark: fetchOffset + list.length,
    ...facts,
  }
}

/** The log of partition 0 on a node, in epoch 1 but for values that say `value@epoch`. */
export function log(values: string, node = 1): FinalLog {
  const records = values.split(' ').map((text, offset) => {
    const [value = '', leaderEpoch = '1'] = text.split('@')
    return { offset, value, leaderEpoch: Number(leaderEpoch) }
  })
  return { node, partition: 0, records }
}

/** A commit for partition 0 of group g. */
export function commit(process: string, span: Span, offset: number, facts: Partial<Commit> = {}): Commit {
  return { ...operation(process, span), kind: 'commit', group: 'g', partition: 0, offset, ...facts }
}

/** What is committed for partition 0 of group g, as somebody was told who may count on it. */
export function committed(span: Span, offset: number, facts: Partial<Committed> = {}): Committed {
  return { ...operation('c', span), kind: 'committed', group: 'g', partition: 0, offset, mayBeStale: false, ...facts }
}

export function assignment(process: string, generation: number, partitions: readonly number[]): Assignment {
  return { kind: 'assignment', atMs: 0, process, group: 'g', generation, partitions }
}

/** The creation of a topic through node 1. */
export function topicChange(name: string, span: Span, facts: Partial<TopicChange> = {}): TopicChange {
  return { ...operation('t', span), kind: 'topic-change', node: 1, name, isDeletion: false, ...facts }
}

/** What node 1 tells of topics. */
export function listing(span: Span, names: string, facts: Partial<TopicListing> = {}): TopicListing {
  const list = names === '' ? [] : names.split(' ')
  return { ...operation('l', span), kind: 'topic-listing', node: 1, isFinal: false, names: list, ...facts }
}
