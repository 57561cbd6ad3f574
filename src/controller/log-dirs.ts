import { type BrokerId, type LeaderEpoch, type PartitionEpoch, type Uuid, zeroUuid } from '../base/index.ts'
import {
  directoryOf,
  type MetadataImage,
  type MetadataRecord,
  noLeader,
  type PartitionImage,
} from '../metadata/index.ts'
import { registeredRun } from './brokers.ts'
import type { ControllerSettings, Decision } from './decision.ts'
import { knowsSeveralBrokers, PartitionRules } from './partition-change.ts'
import type { AssignReplicaResult, AssignReplicasRequest, AssignReplicasResult } from './requests.ts'

/**
 * Notes in which log directories a broker has its replicas (KIP-858): where a directory fails later, the controller knows
 * what fails with it. A replica that is put into a directory that doesn't work gives up ISR and leadership at once. Where there
 * was no leader because of a directory that is no more, one is elected.
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
  const without = new PartitionRules(image, settings, { gone: brokerId })
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
    if (directoryOf(partition, brokerId) === directory) return { ok: true }
    const directories = assigned(partition, brokerId, directory)
    const isr = partition.isr.filter((member) => member !== brokerId)
    const worked = directory === zeroUuid || broker.logDirs.includes(directory)
    const found = partition.leader === noLeader ? rules.change(topic, { ...partition, directories }, {}) : undefined
    const change = worked ? found : without.change(topic, partition, { isr })
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
