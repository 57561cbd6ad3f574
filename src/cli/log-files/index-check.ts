import { readFile } from 'node:fs/promises'
import { offsetEntryBytes, timeEntryBytes } from '../../log/index.ts'
import type { BatchView } from '../../protocol/index.ts'
import type { Findings } from './findings.ts'

/** Says what is wrong with an entry; `position` is its own in the index file. */
type Report = (message: string, position: number) => void

/**
 * Compares `.index` with the batches as they come: each entry must point to where a batch begins that does not lie behind the
 * entry's offset, so that a look-up never passes over a record.
 */
export class OffsetIndexCheck {
  readonly #bytes: Buffer
  readonly #baseOffset: number
  readonly #report: Report
  #at = 0

  constructor(bytes: Buffer, baseOffset: number, report: Report) {
    this.#bytes = withoutRoom(bytes, offsetEntryBytes)
    reportRest(bytes, offsetEntryBytes, report)
    this.#baseOffset = baseOffset
    this.#report = report
    for (let at = offsetEntryBytes; at + offsetEntryBytes <= this.#bytes.length; at += offsetEntryBytes) {
      const isSorted = this.#bytes.readInt32BE(at) > this.#bytes.readInt32BE(at - offsetEntryBytes)
      const isForward = this.#bytes.readInt32BE(at + 4) > this.#bytes.readInt32BE(at - 4)
      if (!isSorted || !isForward) report('An entry is not above the one before it', at)
    }
  }

  /** Batches in the order of their positions. */
  onBatch(view: BatchView, position: number): void {
    for (; this.#hasEntry(); this.#at += offsetEntryBytes) {
      const entryPosition = this.#bytes.readInt32BE(this.#at + 4)
      if (entryPosition > position) return
      const offset = this.#baseOffset + this.#bytes.readInt32BE(this.#at)
      if (entryPosition < position) {
        this.#report(`The entry of offset ${offset} points to ${entryPosition}, where no batch begins`, this.#at)
      } else if (offset < view.baseOffset) {
        const found = `the batch there begins with ${view.baseOffset}`
        this.#report(`The entry of offset ${offset} points to ${entryPosition}, and ${found}`, this.#at)
      }
    }
  }

  /** `endPosition`: where the readable batches end. */
  onEnd(endPosition: number): void {
    if (!this.#hasEntry()) return
    const offset = this.#baseOffset + this.#bytes.readInt32BE(this.#at)
    const position = this.#bytes.readInt32BE(this.#at + 4)
    this.#report(
      `The entry of offset ${offset} points to ${position}, past the batches' end at ${endPosition}`,
      this.#at,
    )
  }

  #hasEntry(): boolean {
    return this.#at + offsetEntryBytes <= this.#bytes.length
  }
}

/**
 * Compares `.timeindex` with the batches as they come: no batch up to an entry's offset may be later than the entry's time,
 * or a look-up by time would pass over it.
 */
export class TimeIndexCheck {
  readonly #bytes: Buffer
  readonly #baseOffset: number
  readonly #report: Report
  #at = 0
  #maxTimestamp = -1
  #lastOffset = -1

  constructor(bytes: Buffer, baseOffset: number, report: Report) {
    this.#bytes = withoutRoom(bytes, timeEntryBytes)
    reportRest(bytes, timeEntryBytes, report)
    this.#baseOffset = baseOffset
    this.#report = report
    for (let at = timeEntryBytes; at + timeEntryBytes <= this.#bytes.length; at += timeEntryBytes) {
      const isLater = this.#bytes.readBigInt64BE(at) > this.#bytes.readBigInt64BE(at - timeEntryBytes)
      const isSorted = this.#bytes.readInt32BE(at + 8) >= this.#bytes.readInt32BE(at - 4)
      if (!isLater || !isSorted) report('An entry is not above the one before it', at)
    }
  }

  onBatch(view: BatchView): void {
    this.#passed(view.lastOffset)
    this.#maxTimestamp = Math.max(this.#maxTimestamp, view.maxTimestamp)
    this.#lastOffset = view.lastOffset
  }

  onEnd(): void {
    this.#passed(this.#lastOffset + 1)
    if (!this.#hasEntry()) return
    const offset = this.#baseOffset + this.#bytes.readInt32BE(this.#at + 8)
    this.#report(`An entry is about offset ${offset}, past the segment's last, ${this.#lastOffset}`, this.#at)
  }

  /** Entries of offsets below `nextOffset` have all their batches behind them. */
  #passed(nextOffset: number): void {
    for (; this.#hasEntry(); this.#at += timeEntryBytes) {
      const offset = this.#baseOffset + this.#bytes.readInt32BE(this.#at + 8)
      if (offset >= nextOffset) return
      const timestamp = Number(this.#bytes.readBigInt64BE(this.#at))
      if (timestamp < this.#maxTimestamp) {
        const found = `there is a batch of ${this.#maxTimestamp} at or before it`
        this.#report(`The entry of offset ${offset} says ${timestamp}, and ${found}`, this.#at)
      }
    }
  }

  #hasEntry(): boolean {
    return this.#at + timeEntryBytes <= this.#bytes.length
  }
}

/** version int16, producer id int64, first, last and last stable offset int64 each. */
const transactionEntryBytes = 34

/** `.txnindex`: the aborted transactions that end in the segment. */
export function checkTransactionIndex(bytes: Buffer, file: string, findings: Findings): void {
  let lastOffset = -1
  for (let at = 0; at < bytes.length; at += transactionEntryBytes) {
    const isWhole = at + transactionEntryBytes <= bytes.length
    if (!isWhole || bytes.readInt16BE(at) !== 0) {
      findings.fault(file, isWhole ? 'An entry has another version than 0' : 'The file ends within an entry', at)
      return
    }
    const first = Number(bytes.readBigInt64BE(at + 10))
    const last = Number(bytes.readBigInt64BE(at + 18))
    if (first > last || last <= lastOffset) findings.fault(file, 'An entry is not above the one before it', at)
    lastOffset = last
  }
}

/** Undefined when there is no such file. */
export async function readIndexFile(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function reportRest(bytes: Buffer, entryBytes: number, report: Report): void {
  const rest = bytes.length % entryBytes
  if (rest !== 0) report('The file ends within an entry', bytes.length - rest)
}

/** Kafka takes room for entries in advance while it appends: zero bytes at the end, which are no entries. */
function withoutRoom(bytes: Buffer, entryBytes: number): Buffer {
  let end = bytes.length
  while (end > 0 && bytes[end - 1] === 0) end--
  if (end === bytes.length) return bytes
  return bytes.subarray(0, Math.min(bytes.length, Math.ceil(end / entryBytes) * entryBytes))
}
