import type { MetadataImage, MetadataRecord, PartitionImage, TopicImage } from '../metadata/index.ts'
import { noLeader } from '../metadata/index.ts'
import { type ControllerSettings, type Decision, maxRecordsPerRequest } from './decision.ts'
import { isActive, type PartitionChange, PartitionRules } from './partition-change.ts'
import type { ElectLeaderResult, ElectLeadersRequest } from './requests.ts'

type Refusal = Extract<ElectLeaderResult, { ok: false }>

/**
 * Elects as an operator asks. Each partition by itself, so there is no limit to how many. Where all partitions are asked
 * for, those that need no election aren't in the answer.
 */
export function electLeaders(
  image: MetadataImage,
  { electionType, partitions }: ElectLeadersRequest,
  settings: ControllerSettings,
): Decision<readonly ElectLeaderResult[]> {
  const rules = new PartitionRules(image, settings)
  const records: PartitionChange[] = []
  const elect = (topic: TopicImage, partition: PartitionImage): ElectLeaderResult => {
    const result = electionOf(rules, topic, partition, electionType)
    if (!('type' in result)) return result
    records.push(result)
    return { topic: topic.name, partition: partition.partition, ok: true }
  }
  if (partitions === null) {
    const response = [...image.topics.all()].flatMap((topic) =>
      topic.partitions.map((partition) => elect(topic, partition)).filter(isWorthTelling),
    )
    return { records, response }
  }
  const results = new Map<string, ElectLeaderResult>()
  const response = partitions.map(({ topic: name, partition: index }): ElectLeaderResult => {
    const key = `${name}-${index}`
    const topic = image.topics.byName(name)
    const partition = topic?.partitions[index]
    if (topic === undefined || partition === undefined) {
      return refuse(name, index, 'unknown-partition', `There is no partition ${key}`)
    }
    const result = results.get(key) ?? elect(topic, partition)
    results.set(key, result)
    return result
  })
  return { records, response }
}

function electionOf(
  rules: PartitionRules,
  topic: TopicImage,
  partition: PartitionImage,
  electionType: ElectLeadersRequest['electionType'],
): PartitionChange | Refusal {
  const { leader, replicas, partition: index } = partition
  const isPreferred = electionType === 'preferred'
  if (isPreferred ? leader === replicas[0] : leader !== noLeader) {
    return refuse(topic.name, index, 'election-not-needed', `Broker ${leader} leads it already`)
  }
  // A preferred election may bring a leader where there was none, even if it is not the first replica.
  const change = rules.change(topic, partition, { election: isPreferred ? 'preferred' : 'unclean' })
  if (change?.leader !== undefined && change.leader !== noLeader) return change
  return isPreferred
    ? refuse(topic.name, index, 'preferred-leader-not-available', `Broker ${replicas[0]} is not active or not in sync`)
    : refuse(topic.name, index, 'eligible-leaders-not-available', 'None of its replicas is active')
}

function isWorthTelling(result: ElectLeaderResult): boolean {
  return result.ok || result.reason !== 'election-not-needed'
}

/** As `leader.imbalance.per.broker.percentage`. */
export interface BalanceContext {
  /** 0 to 100: how many of 100 partitions that prefer a broker may be led by others before it gets them back. */
  readonly maxImbalancePercentage: number
}

/**
 * Gives leaderships back to the replicas that are preferred, where a broker lacks too many of those that prefer it
 * (`auto.leader.rebalance.enable`). At most as many as one request may change; `response` says whether more are left to do.
 */
export function balanceLeaders(
  image: MetadataImage,
  { maxImbalancePercentage }: BalanceContext,
  settings: ControllerSettings,
): Decision<{ readonly isUnfinished: boolean }> {
  const rules = new PartitionRules(image, settings)
  const records: PartitionChange[] = []
  for (const { brokerId } of image.cluster.brokers()) {
    if (!isActive(image, brokerId)) continue
    let preferring = 0
    const misplaced: { readonly topic: TopicImage; readonly partition: PartitionImage }[] = []
    for (const topic of image.topics.onBroker(brokerId)) {
      for (const partition of topic.partitions) {
        if (partition.replicas[0] !== brokerId) continue
        preferring++
        if (partition.leader !== brokerId) misplaced.push({ topic, partition })
      }
    }
    if (misplaced.length * 100 <= maxImbalancePercentage * preferring) continue
    for (const { topic, partition } of misplaced) {
      if (records.length === maxRecordsPerRequest) return { records, response: { isUnfinished: true } }
      const change = rules.change(topic, partition, { election: 'preferred' })
      if (change?.leader === brokerId) records.push(change)
    }
  }
  return { records, response: { isUnfinished: false } }
}

/**
 * Elects replicas that may lack records, for partitions without a leader whose topics allow that: when they came to allow
 * it after they lost their leader, nothing else would. Costs a walk over all partitions.
 */
export function electUncleanLeaders(image: MetadataImage, settings: ControllerSettings): MetadataRecord[] {
  const rules = new PartitionRules(image, settings)
  const records: MetadataRecord[] = []
  for (const topic of image.topics.all()) {
    const leaderless = topic.partitions.filter(({ leader }) => leader === noLeader)
    if (leaderless.length === 0 || !rules.uncleanElection(topic.name)) continue
    for (const partition of leaderless) {
      const change = rules.change(topic, partition, { election: 'unclean' })
      if (change !== undefined) records.push(change)
    }
  }
  return records
}

function refuse(topic: string, partition: number, reason: Refusal['reason'], message: string): Refusal {
  return { topic, partition, ok: false, reason, message }
}
