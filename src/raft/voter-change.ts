import { type Deferred, deferred } from '../base/index.ts'
import type { MembershipRefusal } from './core/outcomes.ts'
import type { RaftCore } from './core/raft.ts'
import type { LogIndex, Membership, Term, Voter } from './core/types.ts'

export type MembershipResult =
  /** Committed with the entry at `index`. */
  | { readonly ok: true; readonly index: LogIndex }
  | {
      readonly ok: false
      /**
       * 'not-leader', 'busy' (another change of voters runs), 'duplicate-voter' (the id has a vote: remove it first),
       * 'voter-not-found', 'last-voter', 'no-transport', and 'timeout' or 'stopped' before it was appended: it will not happen.
       * 'leadership-lost', and 'timeout' or 'stopped' afterwards: it may or may not be committed, by the next leader.
       */
      readonly reason:
        | 'not-leader'
        | 'busy'
        | 'duplicate-voter'
        | 'voter-not-found'
        | 'last-voter'
        | 'too-many'
        | 'no-transport'
        | 'timeout'
        | 'leadership-lost'
        | 'stopped'
    }

type PassingRefusal = Extract<MembershipRefusal, 'not-ready' | 'in-flight' | 'transferring' | 'not-caught-up'>

const passing: ReadonlySet<MembershipRefusal> = new Set<PassingRefusal>([
  'not-ready',
  'in-flight',
  'transferring',
  'not-caught-up',
])

/** What time alone can change. */
function isPassing(reason: MembershipRefusal): reason is PassingRefusal {
  return passing.has(reason)
}

/**
 * One change of voters, driven by the node's loop until it is committed. A voter to be follows first, in rounds: each copies
 * what the leader had when it began; who does one within an election timeout is near enough to be counted (thesis §4.2.1).
 */
export class VoterChange {
  readonly #core: RaftCore
  readonly #electionTicks: number
  readonly #deadlineTick: number
  readonly #next: (membership: Membership) => Membership | 'duplicate-voter' | 'voter-not-found'
  readonly #joining: Voter | undefined
  readonly #result: Deferred<MembershipResult> = deferred()
  #round: { readonly target: LogIndex; readonly startTick: number } | undefined
  #isAppended: boolean = false
  #isDone: boolean = false

  /** `joining` is the voter that `next` adds, if it adds one. */
  constructor(
    core: RaftCore,
    electionTicks: number,
    deadlineTick: number,
    next: (membership: Membership) => Membership | 'duplicate-voter' | 'voter-not-found',
    joining: Voter | undefined,
  ) {
    this.#core = core
    this.#electionTicks = electionTicks
    this.#deadlineTick = deadlineTick
    this.#next = next
    this.#joining = joining
  }

  get result(): Promise<MembershipResult> {
    return this.#result.promise
  }

  get isDone(): boolean {
    return this.#isDone
  }

  /** After anything that may have moved it on. The entry, at the moment when it is appended. */
  drive(): { readonly index: LogIndex; readonly term: Term } | undefined {
    if (this.#isDone) return undefined
    if (this.#core.ticks >= this.#deadlineTick) {
      this.finish({ ok: false, reason: 'timeout' })
      return undefined
    }
    if (this.#isAppended) return undefined
    if (this.#core.role !== 'leader') {
      this.finish({ ok: false, reason: 'not-leader' })
      return undefined
    }
    const next = this.#next(this.#core.membership)
    if (typeof next === 'string') {
      this.finish({ ok: false, reason: next })
      return undefined
    }
    if (this.#joining !== undefined && !this.#isCaughtUp(this.#joining)) return undefined
    const outcome = this.#core.changeMembership(next)
    if (outcome.ok) {
      this.#isAppended = true
      return outcome
    }
    if (!isPassing(outcome.reason)) this.finish({ ok: false, reason: outcome.reason })
    return undefined
  }

  #isCaughtUp({ id, directoryId }: Voter): boolean {
    this.#core.admit(id, directoryId)
    const progress = this.#core.progressOf(id)
    const { ticks, lastIndex } = this.#core
    if (progress?.directoryId !== directoryId || progress.state !== 'replicate') return false
    this.#round ??= { target: lastIndex, startTick: ticks }
    if (progress.matchIndex < this.#round.target) return false
    if (ticks - this.#round.startTick <= this.#electionTicks) return true
    this.#round = { target: lastIndex, startTick: ticks }
    return false
  }

  /** Ends it; only the first end counts. */
  finish(result: MembershipResult | { readonly ok: false; readonly reason: 'busy' }): void {
    this.#isDone = true
    this.#result.resolve(result.ok ? { ok: true, index: result.index } : result)
  }
}
