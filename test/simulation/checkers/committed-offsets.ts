import type { HistoryEvent, OffsetCommit } from '../node/history.ts'
import { type Checker, getOrMake, PropertyViolation } from './checker.ts'

interface Commit extends OffsetCommit {
  readonly sentAt: number
  /** Infinity while it is not acknowledged: it may be carried out at any time. */
  ackedAt: number
}

/**
 * Each committed offset is a register: what is fetched is the value of a commit after whose acknowledgement no other commit was
 * sent and acknowledged before the fetch was sent. So an acknowledged commit outlives every crash. Where several nodes coordinate
 * in turn, one that doesn't know yet that its time is over may answer with what was: that counts only while `isSettled`.
 */
export class CommittedOffsets implements Checker {
  readonly #commits = new Map<string, Commit[]>()
  readonly #isSettled: () => boolean

  constructor(isSettled: () => boolean = () => true) {
    this.#isSettled = isSettled
  }

  on(event: HistoryEvent, now: number): void {
    if (event.kind === 'commit-sent') {
      const commits = this.#of(event.commit.key)
      commits.push({ ...event.commit, sentAt: now, ackedAt: Number.POSITIVE_INFINITY })
    } else if (event.kind === 'commit-acked') {
      const { key, metadata } = event.commit
      const commit = this.#of(key).find((each) => each.metadata === metadata)
      if (commit !== undefined) commit.ackedAt = Math.min(commit.ackedAt, now)
    } else if (event.kind === 'commits-fetched') {
      this.#check(event)
    }
  }

  #of(key: string): Commit[] {
    return getOrMake(this.#commits, key, () => [])
  }

  #check({ key, offset, metadata, sentAt }: HistoryEvent & { readonly kind: 'commits-fetched' }): void {
    const commits = this.#of(key)
    const settled = commits.filter(({ ackedAt }) => ackedAt <= sentAt)
    const violation = (message: string) => new PropertyViolation('committed offsets stay', `${message} (${key})`)
    if (offset === -1) {
      if (this.#isSettled() && settled.length > 0)
        throw violation(`${settled.at(-1)!.metadata} was acknowledged, and nothing is committed`)
      return
    }
    const found = commits.find((each) => each.metadata === metadata)
    if (found === undefined || found.offset !== offset)
      throw violation(`${offset} with '${metadata}' was never committed`)
    const newer = settled.find((each) => each.sentAt > found.ackedAt)
    if (newer !== undefined && this.#isSettled())
      throw violation(`${newer.metadata} was acknowledged after ${metadata}, which is committed`)
  }
}
