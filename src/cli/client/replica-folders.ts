import { apis, ErrorCode } from '../../protocol/index.ts'
import type { Cluster } from './cluster.ts'
import { RequestRefusedError } from './errors.ts'
import type { PartitionName } from './reassignments.ts'

/** A replica of a partition is to be in that folder of its broker. */
export interface ReplicaFolder extends PartitionName {
  readonly broker: number
  /** Absolute. */
  readonly path: string
}

/**
 * Moves replicas that are on their brokers already; the others will be made in their folders. Throws `RequestRefusedError` for the
 * first that can't be.
 */
export async function moveToFolders(cluster: Cluster, folders: readonly ReplicaFolder[]): Promise<void> {
  for (const [broker, own] of byBroker(folders)) {
    const connection = await cluster.broker(broker)
    const dirs = own.map(({ topic, partition, path }) => ({ path, topics: [{ name: topic, partitions: [partition] }] }))
    const { results } = await connection.call(apis.AlterReplicaLogDirs, { dirs }, { timeoutMs: cluster.timeoutMs })
    for (const { topicName, partitions } of results) {
      for (const { partitionIndex, errorCode } of partitions) {
        if (errorCode === ErrorCode.NONE || errorCode === ErrorCode.REPLICA_NOT_AVAILABLE) continue
        throw new RequestRefusedError(`Replica of ${topicName}-${partitionIndex} on broker ${broker}`, errorCode, null)
      }
    }
  }
}

/** Those that are not in their folders yet. */
export async function notInFolders(cluster: Cluster, folders: readonly ReplicaFolder[]): Promise<ReplicaFolder[]> {
  const left: ReplicaFolder[] = []
  for (const [broker, own] of byBroker(folders)) {
    const connection = await cluster.broker(broker)
    const topics = [...new Set(own.map(({ topic }) => topic))].map((topic) => ({
      topic,
      partitions: own.filter((each) => each.topic === topic).map(({ partition }) => partition),
    }))
    const { results } = await connection.call(apis.DescribeLogDirs, { topics }, { timeoutMs: cluster.timeoutMs })
    const isThere = ({ topic, partition, path }: ReplicaFolder) =>
      results
        .filter(({ logDir }) => logDir === path)
        .flatMap((folder) => folder.topics.filter(({ name }) => name === topic))
        .some(({ partitions }) => partitions.some((each) => each.partitionIndex === partition && !each.isFutureKey))
    left.push(...own.filter((each) => !isThere(each)))
  }
  return left
}

function byBroker(folders: readonly ReplicaFolder[]): Map<number, ReplicaFolder[]> {
  const brokers = new Map<number, ReplicaFolder[]>()
  for (const folder of folders) {
    const own = brokers.get(folder.broker)
    if (own === undefined) brokers.set(folder.broker, [folder])
    else own.push(folder)
  }
  return brokers
}
