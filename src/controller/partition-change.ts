import { type BrokerId, zeroUuid } from '../base/index.ts'
import {
  directoryOf,
  eligibleLeaderReplicas,
  type LeaderRecoveryState,
  type MetadataImage,
  type MetadataRecord,
  metadataVersion,
  noLeader,
  type PartitionImage,
  type TopicImage,
} from '../metadata/index.ts'
import type { ControllerSettings } from './decision.ts'
import { completedReassignment } from './reassignment-plan.ts'

export type PartitionChange = Extract<MetadataRecord, { type: 'PartitionChange' }>

/**
 * Who may become leader, in the order in which they are asked:
 *
 *   online      the leader of now; replicas in the ISR; then those in the ELR. Nothing acknowledged is lost.
 *   preferred   the first replica before the leader of now, and then as online.
 *   unclean     as online; then any replica, which may lack what was acknowledged.
 */
export type Election = 'online' | 'preferred' | 'unclean'

/** What a partition is to become; what is absent is to stay. The rest (leader, ELR, epochs) follows from it. */
export interface PartitionTarget {
  /** Empty where nobody of it is left. */
  readonly isr?: readonly BrokerId[]
  readonly replicas?: readonly BrokerId[]
  readonly addingReplicas?: readonly BrokerId[]
  readonly removingReplicas?: readonly BrokerId[]
  readonly leaderRecoveryState?: LeaderRecoveryState
  /** 'unclean' or 'online' when absent, as the topic's unclean.leader.election.enable says. */
  readonly election?: Election
  /** A replica that may have lost what it acknowledged: in the ISR and the ELR it counts no more. */
  readonly lost?: BrokerId
  /** The leader epoch moves, also where the leader stays. */
  readonly bumpsLeaderEpoch?: boolean
}

/** Brokers that count as something else than what they are registered as, because the decision will make them so. */
export interface Presumed {
  /** Does not lead, and can't. */
  readonly gone?: BrokerId
  /** May lead. */
  readonly active?: BrokerId
}

/** May lead, and may join an ISR: registered, not fenced, not shutting down. */
export function isActive(image: MetadataImage, brokerId: BrokerId): boolean {
  const broker = image.cluster.broker(brokerId)
  return broker !== undefined && !broker.fenced && !broker.inControlledShutdown
}

/**
 * Turns what one partition is to become into the record that makes it so. After Kafka's PartitionChangeBuilder, but for one
 * thing: the ISR is never empty. Where Kafka moves its last member to the ELR, it stays here, without being leader; both
 * elect the same replicas. If that last member may have lost records and no eligible replica is left, the last leader takes
 * its place, and the partition is 'recovering'.
 */
export class PartitionRules {
  readonly #image: MetadataImage
  readonly #active: ReadonlySet<BrokerId>
  readonly #keepsElr: boolean
  readonly #keepsRecovery: boolean
  readonly #minInSyncOfCluster: string | undefined
  /** Where a topic says nothing. */
  readonly #uncleanElection: boolean
  #latest: { readonly topic: string; readonly configs: ReadonlyMap<string, string> } | undefined

  constructor(image: MetadataImage, settings: ControllerSettings, presumed: Presumed = {}) {
    this.#image = image
    const { configs } = image
    const cluster = configs.of('broker', '')
    this.#minInSyncOfCluster = cluster.get(minInSyncKey)
    const unclean = configs.of('broker', `${settings.nodeId}`).get(uncleanKey) ?? cluster.get(uncleanKey)
    this.#uncleanElection = unclean === undefined ? settings.uncleanLeaderElectionEnabled : isTrue(unclean)
    const active = new Set<BrokerId>()
    for (const { brokerId } of image.cluster.brokers()) if (isActive(image, brokerId)) active.add(brokerId)
    if (presumed.active !== undefined) active.add(presumed.active)
    if (presumed.gone !== undefined) active.delete(presumed.gone)
    this.#active = active
    this.#keepsRecovery = knowsSeveralBrokers(image)
    this.#keepsElr = this.#keepsRecovery && (image.features.get(eligibleLeaderReplicas.feature) ?? 0) > 0
  }

  /** What changes; undefined when nothing does. */
  change(topic: TopicImage, partition: PartitionImage, target: PartitionTarget): PartitionChange | undefined {
    const wanted = completedReassignment({
      isr: target.isr ?? partition.isr,
      replicas: target.replicas ?? partition.replicas,
      addingReplicas: target.addingReplicas ?? partition.addingReplicas,
      removingReplicas: target.removingReplicas ?? partition.removingReplicas,
    })
    const kept = this.#keptReplicas(topic, partition, wanted, target.lost)
    const elected = this.#elect(topic, partition, wanted.replicas, kept, target.election)
    const leaderMoves =
      elected.leader !== partition.leader ||
      target.bumpsLeaderEpoch === true ||
      partition.replicas.some((brokerId) => !wanted.replicas.includes(brokerId))
    const recovery = elected.isUnclean ? 'recovering' : (kept.recovery ?? target.leaderRecoveryState)
    const lastKnownElr = this.#lastKnownElr(partition, elected.leader)
    const change: PartitionChange = {
      type: 'PartitionChange',
      topicId: topic.topicId,
      partition: partition.partition,
      ...(sameList(wanted.replicas, partition.replicas) ? {} : { replicas: wanted.replicas }),
      ...(sameMembers(elected.isr, partition.isr) ? {} : { isr: elected.isr }),
      ...(leaderMoves ? { leader: elected.leader } : {}),
      ...(sameList(wanted.addingReplicas, partition.addingReplicas) ? {} : { addingReplicas: wanted.addingReplicas }),
      ...(sameList(wanted.removingReplicas, partition.removingReplicas)
        ? {}
        : { removingReplicas: wanted.removingReplicas }),
      ...(sameMembers(elected.elr, partition.elr) ? {} : { elr: elected.elr }),
      ...(sameList(lastKnownElr, partition.lastKnownElr) ? {} : { lastKnownElr }),
      ...(this.#keepsRecovery && recovery !== undefined && recovery !== partition.leaderRecoveryState
        ? { leaderRecoveryState: recovery }
        : {}),
    }
    for (const field in change) if (!identity.has(field)) return change
    return undefined
  }

  uncleanElection(topic: string): boolean {
    const text = this.#configsOf(topic).get(uncleanKey)
    return text === undefined ? this.#uncleanElection : isTrue(text)
  }

  /** Whether `brokerId` is active, and the log directory of its replica works. */
  mayLead(partition: PartitionImage, brokerId: BrokerId): boolean {
    if (!this.#active.has(brokerId)) return false
    if (partition.directories.length === 0) return true
    const directory = directoryOf(partition, brokerId)
    return directory === zeroUuid || this.#image.cluster.broker(brokerId)?.logDirs.includes(directory) === true
  }

  /**
   * So many at least as the leader goes by, or 1: below it the high watermark stands still. Never more than the partition
   * has replicas.
   */
  #minInSyncReplicas(topic: string, replicaCount: number): number {
    const text = this.#configsOf(topic).get(minInSyncKey) ?? this.#minInSyncOfCluster
    return text === undefined ? 1 : Math.min(Number(text), replicaCount)
  }

  /** A decision goes from topic to topic, and through all partitions of one. */
  #configsOf(topic: string): ReadonlyMap<string, string> {
    if (this.#latest?.topic !== topic) this.#latest = { topic, configs: this.#image.configs.of('topic', topic) }
    return this.#latest.configs
  }

  /** ISR and ELR, before anybody is elected from them. */
  #keptReplicas(
    topic: TopicImage,
    partition: PartitionImage,
    { isr, replicas }: { readonly isr: readonly BrokerId[]; readonly replicas: readonly BrokerId[] },
    lost: BrokerId | undefined,
  ): Kept {
    if (isr.length > 0) return { isr, elr: this.#elr(topic, partition, isr, replicas, lost) }
    if (lost === undefined) {
      return { isr: partition.isr, elr: this.#elr(topic, partition, partition.isr, replicas, lost) }
    }
    const elr = this.#elr(topic, partition, isr, replicas, lost)
    const heir = elr.find((brokerId) => this.mayLead(partition, brokerId)) ?? elr[0]
    if (heir !== undefined) return { isr: [heir], elr: elr.filter((brokerId) => brokerId !== heir) }
    if (!this.#keepsElr) return { isr: partition.isr, elr }
    const lastLeader = partition.leader === noLeader ? partition.lastKnownElr[0] : partition.leader
    const last = lastLeader !== undefined && replicas.includes(lastLeader) ? lastLeader : lost
    return { isr: [last], elr, recovery: 'recovering' }
  }

  /** In order of preference. */
  #elr(
    topic: TopicImage,
    partition: PartitionImage,
    isr: readonly BrokerId[],
    replicas: readonly BrokerId[],
    lost: BrokerId | undefined,
  ): readonly BrokerId[] {
    if (!this.#keepsElr) return none
    if (isr.length >= this.#minInSyncReplicas(topic.name, replicas.length)) return none
    return replicas.filter(
      (brokerId) =>
        brokerId !== lost &&
        !isr.includes(brokerId) &&
        (partition.isr.includes(brokerId) || partition.elr.includes(brokerId)),
    )
  }

  #elect(
    topic: TopicImage,
    partition: PartitionImage,
    replicas: readonly BrokerId[],
    { isr, elr }: Kept,
    election: Election | undefined,
  ): Kept & { readonly leader: BrokerId; readonly isUnclean: boolean } {
    const mayLead = (brokerId: BrokerId) => this.mayLead(partition, brokerId)
    const first = replicas[0]
    const isClean = (brokerId: BrokerId) => isr.includes(brokerId) && mayLead(brokerId)
    if (election === 'preferred' && first !== undefined && isClean(first)) {
      return { isr, elr, leader: first, isUnclean: false }
    }
    const inSync = isClean(partition.leader) ? partition.leader : replicas.find(isClean)
    if (inSync !== undefined) return { isr, elr, leader: inSync, isUnclean: false }
    const eligible = elr.find(mayLead)
    if (eligible !== undefined) {
      // Below min.insync.replicas the ISR's members are as eligible as those of the ELR, and change places with them.
      const rest = replicas.filter((id) => id !== eligible && (isr.includes(id) || elr.includes(id)))
      return { isr: [eligible], elr: rest, leader: eligible, isUnclean: false }
    }
    const anyone = replicas.find(mayLead)
    const mayLose = election === undefined ? this.uncleanElection(topic.name) : election === 'unclean'
    if (anyone !== undefined && mayLose) return { isr: [anyone], elr: none, leader: anyone, isUnclean: true }
    return { isr, elr, leader: noLeader, isUnclean: false }
  }

  #lastKnownElr(partition: PartitionImage, leader: BrokerId): readonly BrokerId[] {
    if (!this.#keepsElr || leader !== noLeader) return none
    return partition.leader === noLeader ? partition.lastKnownElr : [partition.leader]
  }
}

const minInSyncKey = 'min.insync.replicas'
const uncleanKey = 'unclean.leader.election.enable'

interface Kept {
  readonly isr: readonly BrokerId[]
  readonly elr: readonly BrokerId[]
  readonly recovery?: LeaderRecoveryState
}

/** Whether records may say what clusters of several brokers need. */
export function knowsSeveralBrokers(image: MetadataImage): boolean {
  return (image.features.get(metadataVersion.feature) ?? 0) >= metadataVersion.severalBrokers
}

const none: readonly BrokerId[] = []
const identity: ReadonlySet<string> = new Set(['type', 'topicId', 'partition'])

function sameList(a: readonly BrokerId[], b: readonly BrokerId[]): boolean {
  return a === b || (a.length === b.length && a.every((brokerId, i) => b[i] === brokerId))
}

/** Neither list has anybody twice. */
export function sameMembers(a: readonly BrokerId[], b: readonly BrokerId[]): boolean {
  return a === b || (a.length === b.length && a.every((brokerId) => b.includes(brokerId)))
}

function isTrue(text: string): boolean {
  return text.trim().toLowerCase() === 'true'
}
