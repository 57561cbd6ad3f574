import { assert, type BrokerEpoch, type BrokerId, type Offset, type PartitionEpoch } from '../base/index.ts'
import type { PartitionImage } from '../metadata/index.ts'

/** What a follower's fetch tells of it. */
export interface FollowerFetch {
  readonly replica: BrokerId
  /** Of the run of the broker that fetches; -1 when it doesn't say. */
  readonly brokerEpoch: BrokerEpoch | -1
  /** Everything below is on its disk, where acknowledgements wait for syncs. Exclusive. */
  readonly fetchOffset: Offset
  readonly logStartOffset: Offset
}

/** Another ISR that this leader wants the controller to make so. */
export interface WantedIsr {
  readonly isr: readonly BrokerId[]
  /** Of the state that it was made from. */
  readonly partitionEpoch: PartitionEpoch
}

/** What the controller said of a wanted ISR. */
export type IsrAnswer =
  | { readonly ok: true; readonly isr: readonly BrokerId[]; readonly partitionEpoch: PartitionEpoch }
  /**
   * 'outdated': the partition has changed since, and the metadata will say how; what was asked for may be part of it.
   * 'refused': it is not so and will not be.
   */
  | { readonly ok: false; readonly reason: 'outdated' | 'refused' }

interface Follower {
  readonly brokerEpoch: BrokerEpoch | -1
  readonly offset: Offset
  readonly logStartOffset: Offset
  /** When it last had everything that the leader had at the time of that fetch or of the one before. */
  readonly caughtUpMs: number
  readonly fetchedMs: number
  /** The leader's LEO at its last fetch. */
  readonly leaderEndOffset: Offset
}

/**
 * The in-sync replicas of one partition as its leader sees them, for one leader epoch: what each follower has, and which ISR
 * follows from it. Pure: time comes in.
 *
 * There is the *committed* ISR, which the metadata says, and at most one *wanted* one under way. Until its answer is known
 * either may be true, so that the high watermark counts the *maximal* ISR, the union of both: a record is committed only
 * when every replica has it that may be elected (KIP-497).
 */
export class InSyncReplicas {
  readonly #localId: BrokerId
  /** First offset of this leader epoch. A follower below it may hold what another leader's epoch left behind. */
  readonly #epochStartOffset: Offset
  #replicas: readonly BrokerId[]
  #committed: readonly BrokerId[]
  /** Out of the ISR, and may be elected all the same: they have all that is committed (KIP-966). */
  #eligible: readonly BrokerId[]
  #partitionEpoch: PartitionEpoch
  /** Elected though it may lack what was acknowledged; over once the controller knows that this leader took that on. */
  #isRecovering: boolean
  #wanted: WantedIsr | undefined
  readonly #followers = new Map<BrokerId, Follower>()

  /** `asked`: wanted before the log was opened anew. It may be the ISR until a later state is known. */
  constructor(image: PartitionImage, localId: BrokerId, epochStartOffset: Offset, nowMs: number, asked?: WantedIsr) {
    this.#localId = localId
    this.#epochStartOffset = epochStartOffset
    this.#replicas = image.replicas
    this.#committed = image.isr
    this.#eligible = image.elr
    this.#partitionEpoch = image.partitionEpoch
    this.#isRecovering = image.leaderRecoveryState === 'recovering'
    if (asked !== undefined && asked.partitionEpoch >= image.partitionEpoch) {
      this.#wanted = asked
      this.#partitionEpoch = asked.partitionEpoch
    }
    // Members begin with a whole lag time to show themselves.
    for (const replica of image.isr) if (replica !== localId) this.#followers.set(replica, unknownFollower(nowMs))
  }

  get committed(): readonly BrokerId[] {
    return this.#committed
  }

  get partitionEpoch(): PartitionEpoch {
    return this.#partitionEpoch
  }

  /** The largest set that may be the ISR. */
  get maximal(): readonly BrokerId[] {
    if (this.#wanted === undefined) return this.#committed
    return [...new Set([...this.#committed, ...this.#wanted.isr])]
  }

  /** Sent to the controller, or to be sent, and not answered. */
  get wanted(): WantedIsr | undefined {
    return this.#wanted
  }

  /** Another broker that has a replica. */
  mayFollow(replica: BrokerId): boolean {
    return replica !== this.#localId && this.#replicas.includes(replica)
  }

  /** Counted offset of a follower: what it is known to have on disk; 0 when nothing is known. */
  offsetOf(replica: BrokerId): Offset {
    return this.#followers.get(replica)?.offset ?? 0
  }

  /** The run of the broker whose fetches showed what it has (KIP-903); undefined when it did not say. */
  brokerEpochOf(replica: BrokerId): BrokerEpoch | undefined {
    const epoch = this.#followers.get(replica)?.brokerEpoch ?? -1
    return epoch === -1 ? undefined : epoch
  }

  /**
   * The lowest log start over this leader and the followers that `isAlive`, or that may lead before they follow again: those
   * would bring back what was deleted.
   */
  lowWatermark(localLogStartOffset: Offset, isAlive: (replica: BrokerId) => boolean): Offset {
    const mayLead = [...this.maximal, ...this.#eligible]
    let lowest = localLogStartOffset
    for (const replica of this.#replicas) {
      if (replica === this.#localId || (!isAlive(replica) && !mayLead.includes(replica))) continue
      lowest = Math.min(lowest, this.#followers.get(replica)?.logStartOffset ?? 0)
    }
    return lowest
  }

  /** The metadata of the same leader epoch. What was wanted is decided once a later partition epoch is there. */
  applyImage(image: PartitionImage): void {
    this.#replicas = image.replicas
    if (image.partitionEpoch <= this.#partitionEpoch) return
    this.#partitionEpoch = image.partitionEpoch
    this.#committed = image.isr
    this.#eligible = image.elr
    this.#isRecovering = image.leaderRecoveryState === 'recovering'
    this.#wanted = undefined
  }

  /** Says that this leader, elected out of the ISR, leads with what it has (KIP-704). True when there is something new to ask for. */
  recover(): boolean {
    if (!this.#isRecovering || this.#wanted !== undefined) return false
    this.#want(this.#committed)
    return true
  }

  onFetch(fetch: FollowerFetch, leaderEndOffset: Offset, nowMs: number): void {
    const { replica, brokerEpoch, fetchOffset, logStartOffset } = fetch
    const before = this.#followers.get(replica) ?? unknownFollower(Number.NEGATIVE_INFINITY)
    if (brokerEpoch !== -1 && brokerEpoch < before.brokerEpoch) return // a request of a run that has ended
    let { caughtUpMs } = before
    if (fetchOffset >= leaderEndOffset) caughtUpMs = nowMs
    else if (fetchOffset >= before.leaderEndOffset) caughtUpMs = Math.max(caughtUpMs, before.fetchedMs)
    const follower = { brokerEpoch, offset: fetchOffset, logStartOffset, caughtUpMs, fetchedMs: nowMs, leaderEndOffset }
    this.#followers.set(replica, follower)
  }

  /**
   * Wants `replica` in the ISR if it has all that is committed, and this leader's epoch. `mayJoin`: it is registered with the
   * run that fetched, unfenced and not going (KIP-841). True when there is something new to ask for.
   */
  expand(replica: BrokerId, highWatermark: Offset, mayJoin: (replica: BrokerId) => boolean): boolean {
    if (this.#wanted !== undefined || this.#committed.includes(replica) || !this.mayFollow(replica)) return false
    const { offset } = this.#followers.get(replica) ?? unknownFollower(0)
    if (offset < highWatermark || offset < this.#epochStartOffset || !mayJoin(replica)) return false
    this.#want([...this.#committed, replica])
    return true
  }

  /** Wants those out who have not caught up for `maxLagMs`. True when there is something new to ask for. */
  shrink(leaderEndOffset: Offset, nowMs: number, maxLagMs: number): boolean {
    if (this.#wanted !== undefined) return false
    const isr = this.#committed.filter((replica) => !this.#lags(replica, leaderEndOffset, nowMs, maxLagMs))
    if (isr.length === this.#committed.length) return false
    assert(isr.includes(this.#localId), 'a leader is in its own ISR')
    this.#want(isr)
    return true
  }

  #lags(replica: BrokerId, leaderEndOffset: Offset, nowMs: number, maxLagMs: number): boolean {
    if (replica === this.#localId) return false
    const follower = this.#followers.get(replica)
    if (follower === undefined) return true
    return follower.offset < leaderEndOffset && nowMs - follower.caughtUpMs > maxLagMs
  }

  #want(isr: readonly BrokerId[]): void {
    this.#wanted = { isr, partitionEpoch: this.#partitionEpoch }
  }

  /** The answer to `asked`; of no effect when the metadata has said more meanwhile. */
  onAnswer(asked: WantedIsr, answer: IsrAnswer): void {
    if (this.#wanted !== asked) return
    if (answer.ok) {
      this.#wanted = undefined
      if (answer.partitionEpoch <= this.#partitionEpoch) return
      this.#partitionEpoch = answer.partitionEpoch
      this.#committed = answer.isr
      this.#isRecovering = false
    } else if (answer.reason === 'refused') {
      this.#wanted = undefined
    }
  }
}

function unknownFollower(caughtUpMs: number): Follower {
  return {
    brokerEpoch: -1,
    offset: 0,
    logStartOffset: 0,
    caughtUpMs,
    fetchedMs: caughtUpMs,
    leaderEndOffset: Number.POSITIVE_INFINITY,
  }
}
