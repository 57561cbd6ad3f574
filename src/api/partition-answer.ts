import { type BrokerId, zeroUuid } from '../base/index.ts'
import { type BrokerImage, directoryOf, noLeader, type PartitionImage } from '../metadata/index.ts'
import { ErrorCode } from '../protocol/index.ts'
import type { RequestContext } from './api.ts'

/**
 * A partition as clients are told of it. `reachable`: live brokers that are on the client's listener. `knowsListeners`: this
 * client knows the code for a leader that isn't; others look for another leader, which comes to the same.
 */
export function partitionAnswer(
  partition: PartitionImage,
  reachable: ReadonlySet<BrokerId>,
  { services }: RequestContext,
  knowsListeners: boolean,
) {
  const { leader, leaderEpoch, replicas, isr } = partition
  const { cluster } = services.coordination.image
  let errorCode: ErrorCode = ErrorCode.NONE
  if (leader === noLeader || cluster.broker(leader) === undefined) errorCode = ErrorCode.LEADER_NOT_AVAILABLE
  else if (!reachable.has(leader)) {
    errorCode = knowsListeners ? ErrorCode.LISTENER_NOT_FOUND : ErrorCode.LEADER_NOT_AVAILABLE
  }
  return {
    errorCode,
    partitionIndex: partition.partition,
    leaderId: errorCode === ErrorCode.NONE ? leader : noLeader,
    leaderEpoch,
    replicaNodes: replicas,
    isrNodes: isr,
    offlineReplicas: replicas.filter((id) => !reachable.has(id) || isDirectoryOffline(partition, cluster.broker(id))),
  }
}

/** Whether the replica on `broker` is known to be in a log directory that failed. */
function isDirectoryOffline(partition: PartitionImage, broker: BrokerImage | undefined): boolean {
  if (broker === undefined) return true
  const directory = directoryOf(partition, broker.brokerId)
  return directory !== zeroUuid && !broker.logDirs.includes(directory)
}
