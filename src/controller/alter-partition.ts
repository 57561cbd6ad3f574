import type { BrokerId, LeaderEpoch, PartitionEpoch } from '../base/index.ts'
import type { MetadataImage, MetadataRecord, PartitionImage, TopicImage } from '../metadata/index.ts'
import { registeredRun } from './brokers.ts'
import type { ControllerSettings, Decision } from './decision.ts'
import { type PartitionChange, PartitionRules, sameMembers } from './partition-change.ts'
import type {
  AlterPartitionRequest,
  AlterPartitionResult,
  IsrChange,
  IsrChangeRefusal,
  IsrChangeResult,
} from './requests.ts'

type Refusal = Extract<IsrChangeResult, { ok: false }>

/**
 * ISRs as their leaders see them (KIP-497, KIP-841, KIP-903). Checks in Kafka's order, each partition by itself. A change
 * whose answer was lost is answered again when it is repeated. An ISR that holds all that a reassignment waits for completes
 * it, and may so take the leadership from the broker that asks.
 */
export function alterPartition(
  image: MetadataImage,
  request: AlterPartitionRequest,
  settings: ControllerSettings,
): Decision<AlterPartitionResult> {
  if (registeredRun(image, request) === undefined) {
    return { records: [], response: { ok: false, reason: 'stale-broker-epoch' } }
  }
  const rules = new PartitionRules(image, settings)
  const changed = new Map<string, PartitionImage>()
  const records: MetadataRecord[] = []
  const results = request.changes.map((change): IsrChangeResult => {
    const topic = image.topics.byId(change.topicId)
    if (topic === undefined) return refuse('unknown-topic-id', `There is no topic with id ${change.topicId}`)
    const key = `${change.topicId}-${change.partition}`
    const partition = changed.get(key) ?? topic.partitions[change.partition]
    if (partition === undefined)
      return refuse('unknown-partition', `${topic.name} has no partition ${change.partition}`)
    if (isRepeated(request.brokerId, partition, change)) return stateOf(partition)
    const refusal = epochRefusal(request.brokerId, partition, change) ?? isrRefusal(image, partition, change)
    if (refusal !== undefined) return refusal
    const record = recordOf(rules, topic, partition, change)
    if (record === undefined) return stateOf(partition)
    records.push(record)
    const after = afterChange(partition, record)
    changed.set(key, after)
    if (after.leader === request.brokerId) return stateOf(after)
    return refuse('new-leader-elected', `The reassignment is complete, and broker ${after.leader} leads`)
  })
  return { records, response: { ok: true, results } }
}

function recordOf(rules: PartitionRules, topic: TopicImage, partition: PartitionImage, change: IsrChange) {
  const { leaderRecoveryState } = change
  return rules.change(topic, partition, { isr: change.isr.map(({ brokerId }) => brokerId), leaderRecoveryState })
}

/** What the change asks for is what the partition is, one partition epoch later, under the same leader. */
function isRepeated(brokerId: BrokerId, partition: PartitionImage, change: IsrChange): boolean {
  return (
    partition.leader === brokerId &&
    partition.leaderEpoch === change.leaderEpoch &&
    partition.partitionEpoch === change.partitionEpoch + 1 &&
    partition.leaderRecoveryState === change.leaderRecoveryState &&
    sameMembers(
      partition.isr,
      change.isr.map((member) => member.brokerId),
    )
  )
}

function epochRefusal(brokerId: BrokerId, partition: PartitionImage, change: IsrChange): Refusal | undefined {
  const { leader, leaderEpoch, partitionEpoch } = partition
  if (change.leaderEpoch > leaderEpoch) {
    return refuse('not-controller', `The leader epoch is ${leaderEpoch} here, before ${change.leaderEpoch}`)
  }
  if (change.partitionEpoch > partitionEpoch) {
    return refuse('not-controller', `The partition epoch is ${partitionEpoch} here, before ${change.partitionEpoch}`)
  }
  if (change.leaderEpoch < leaderEpoch) {
    return refuse('fenced-leader-epoch', `The leader epoch is ${leaderEpoch}, after ${change.leaderEpoch}`)
  }
  if (brokerId !== leader) return refuse('invalid-request', `The leader is ${leader}, not ${brokerId}`)
  if (change.partitionEpoch < partitionEpoch) {
    return refuse('invalid-update-version', `The partition epoch is ${partitionEpoch}, after ${change.partitionEpoch}`)
  }
  return undefined
}

function isrRefusal(image: MetadataImage, partition: PartitionImage, change: IsrChange): Refusal | undefined {
  const isr = change.isr.map(({ brokerId }) => brokerId)
  const { leader, replicas } = partition
  const text = `ISR [${isr.join(', ')}]`
  if (isr.length === 0) return refuse('invalid-request', 'The ISR is empty')
  if (new Set(isr).size < isr.length) return refuse('invalid-request', `${text} has a broker twice`)
  const stranger = isr.find((brokerId) => !replicas.includes(brokerId))
  if (stranger !== undefined) return refuse('invalid-request', `${text} has ${stranger}, which is no replica`)
  if (!isr.includes(leader)) return refuse('invalid-request', `${text} lacks the leader, ${leader}`)
  if (change.leaderRecoveryState === 'recovering') {
    if (isr.length > 1) return refuse('invalid-request', `${text} has others than a leader that is recovering`)
    if (partition.leaderRecoveryState === 'recovered') {
      return refuse('invalid-request', 'A leader that has recovered does not recover again')
    }
  }
  for (const member of change.isr) {
    const fault = memberFault(image, member)
    if (fault !== undefined) return refuse('ineligible-replica', `Broker ${member.brokerId} ${fault}`)
  }
  return undefined
}

function memberFault(image: MetadataImage, { brokerId, brokerEpoch }: IsrChange['isr'][number]): string | undefined {
  const broker = image.cluster.broker(brokerId)
  if (broker === undefined) return 'is not registered'
  if (broker.inControlledShutdown) return 'is shutting down'
  if (broker.fenced) return 'is fenced'
  if (brokerEpoch !== null && brokerEpoch !== broker.brokerEpoch) {
    return `was in sync in run ${brokerEpoch}, and is in run ${broker.brokerEpoch}`
  }
  return undefined
}

/** As the record will be replayed. */
function afterChange(before: PartitionImage, record: PartitionChange): PartitionImage {
  const { type: _type, topicId: _topicId, ...fields } = record
  return {
    ...before,
    ...fields,
    leaderEpoch: (before.leaderEpoch + (record.leader === undefined ? 0 : 1)) as LeaderEpoch,
    partitionEpoch: (before.partitionEpoch + 1) as PartitionEpoch,
  }
}

function stateOf({ leader, leaderEpoch, isr, leaderRecoveryState, partitionEpoch }: PartitionImage): IsrChangeResult {
  return { ok: true, leader, leaderEpoch, isr, leaderRecoveryState, partitionEpoch }
}

function refuse(reason: IsrChangeRefusal, message: string): Refusal {
  return { ok: false, reason, message }
}
