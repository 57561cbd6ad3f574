import { assert } from '../base/index.ts'
import type { Entry, LogIndex, Term } from '../raft/index.ts'

/** Entries that follow on each other, as a few blocks of memory that can be moved to another thread. */
export interface SentEntries {
  readonly firstIndex: number
  /** One for each entry. */
  readonly terms: Float64Array<ArrayBuffer>
  /** Bytes of each entry in `data`; -1 for one that is not data: what else it holds is Raft's alone, and not sent. */
  readonly lengths: Int32Array<ArrayBuffer>
  readonly data: Uint8Array<ArrayBuffer>
}

/** `entries`, at least one, copied once: the log's own memory stays, and so does what lies around it. */
export function packEntries(entries: readonly Entry[]): SentEntries {
  const first = entries[0]
  assert(first !== undefined, 'there are entries to be sent')
  const terms = new Float64Array(entries.length)
  const lengths = new Int32Array(entries.length)
  let size = 0
  for (const [i, { index, term, type, data }] of entries.entries()) {
    assert(index === first.index + i, 'entries follow on each other')
    terms[i] = term
    lengths[i] = type === 'data' ? data.length : -1
    if (type === 'data') size += data.length
  }
  const data = new Uint8Array(size)
  let position = 0
  for (const entry of entries) {
    if (entry.type !== 'data') continue
    data.set(entry.data, position)
    position += entry.data.length
  }
  return { firstIndex: first.index, terms, lengths, data }
}

/** What is in `sent`, whose memory the entries keep. Those that are not data come as 'noop'. */
export function unpackEntries({ firstIndex, terms, lengths, data }: SentEntries): Entry[] {
  const entries: Entry[] = []
  let position = 0
  for (const [i, length] of lengths.entries()) {
    const end = position + Math.max(0, length)
    entries.push({
      index: (firstIndex + i) as LogIndex,
      term: terms[i] as Term,
      type: length < 0 ? 'noop' : 'data',
      data: data.subarray(position, end),
    })
    position = end
  }
  assert(position === data.length, 'entries take all of their bytes')
  return entries
}

/** What of it is moved in place of being copied again. */
export function memoryOf({ terms, lengths, data }: SentEntries): ArrayBuffer[] {
  return [terms.buffer, lengths.buffer, data.buffer]
}
