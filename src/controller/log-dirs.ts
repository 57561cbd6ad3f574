import { type BrokerId, type LeaderEpoch, type PartitionEpoch, type Uuid, zeroUuid } from '../base/index.ts'
import { directoryOf, type MetadataImage, type MetadataRecord, type PartitionImage } from '../metadata/index.ts'
import { registeredRun } from './brokers.ts'
import type { ControllerSettings, Decision } from './decision.ts'
import { knowsSeveralBrokers, PartitionRules } from './partition-change.ts'
import type { AssignReplicaResult, AssignReplicasRequest, AssignReplicasResult } from './requests.ts'

/**
 * Notes in which log directories a broker has its replicas (KIP-858): where a directory fails later, the controller knows
 * what fails with it. A replica that is put into a directory that doesn't work gives up ISR and leadership at once.
 *
 * One that was in a directory that its broker has no more, and is in another one now, was made anew there: what it
 * acknowledged may be lost. Until it says where it is it can't lead; from then on it is in the ISR, or eligible, only where
 * nobody else is. One that had moved before its directory failed, and was not told yet, can't be told from it. A directory
 * that failed and is back has its replicas as before: nothing is assigned.
 */
export function assignReplicasToDirs(
  image: MetadataImage,
  request: AssignReplicasRequest,
  settings: ControllerSettings,
): Decision<AssignReplicasResult> {
  const broker = registeredRun(image, request)
  if (broker === undefined) return { records: [], response: { ok: false, reason: 'stale-broker-epoch' } }
  if (!knowsSeveralBrokers(image)) return { records: [], response: { ok: false, reason: 'unsupported-version' } }
  const { brokerId } = broker
  const works = (directory: Uuid) => directory === zeroUuid || broker.logDirs.includes(directory)
  const rules = new PartitionRules(image, settings)
  const changed = new Map<string, PartitionImage>()
  const records: MetadataRecord[] = []
  const results = request.assignments.map(({ topicId, partition: index, directory }): AssignReplicaResult => {
    const topic = image.topics.byId(topicId)
    if (topic === undefined) return { ok: false, reason: 'unknown-topic-id' }
    const key = `${topicId}-${index}`
    const partition = changed.get(key) ?? topic.partitions[index]
    if (partition === undefined) return { ok: false, reason: 'unknown-partition' }
    if (!partition.replicas.includes(brokerId)) return { ok: false, reason: 'not-a-replica' }
    const before = directoryOf(partition, brokerId)
    if (before === directory) return { ok: true }
    const directories = assigned(partition, brokerId, directory)
    const isLost = !works(before)
    const isr = partition.isr.filter((member) => member !== brokerId)
    const target = { isr, ...(isLost ? { lost: brokerId } : {}) }
    const change = isLost || !works(directory) ? rules.change(topic, { ...partition, directories }, target) : undefined
    const record = { ...change, type: 'PartitionChange', topicId, partition: index, directories } as const
    records.push(record)
    changed.set(key, {
      ...partition,
      ...change,
      partition: index,
      directories,
      leaderEpoch: (partition.leaderEpoch + (change?.leader === undefined ? 0 : 1)) as LeaderEpoch,
      partitionEpoch: (partition.partitionEpoch + 1) as PartitionEpoch,
    })
    return { ok: true }
  })
  return { records, response: { ok: true, results } }
}

function assigned(partition: PartitionImage, brokerId: BrokerId, directory: Uuid): Uuid[] {
  return partition.replicas.map((replica) => (replica === brokerId ? directory : directoryOf(partition, replica)))
}
