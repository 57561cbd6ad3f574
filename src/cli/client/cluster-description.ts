import { type Uuid, zeroUuid } from '../../base/index.ts'
import { apis, errorName } from '../../protocol/index.ts'
import type { Cluster, TopicMetadata } from './cluster.ts'
import type { BrokerConnection } from './connection.ts'
import { connectionFaultText, RequestRefusedError } from './errors.ts'
import { latest, type Place, probeOffsets } from './offsets.ts'

export interface ClusterDescription {
  /** Null when the broker doesn't tell. */
  readonly clusterId: string | null
  /** Null when there is none, or it hides. */
  readonly controllerId: number | null
  /** Sorted by id. */
  readonly nodes: readonly NodeDescription[]
  readonly partitions: PartitionHealth
  /** Null for a cluster without a quorum, or one that doesn't tell. */
  readonly quorum: QuorumDescription | null
}

export interface NodeDescription {
  readonly id: number
  readonly host: string
  readonly port: number
  readonly rack: string | null
  /** Partitions that it leads. */
  readonly leads: number
  /** Partitions that it has a replica of. */
  readonly replicas: number
  /** Why it can't be reached from here; null when it answers. */
  readonly fault: string | null
  /** What it serves: by the name of the API, or its number, the oldest and the newest version. */
  readonly versions: Readonly<Record<string, readonly [min: number, max: number]>>
  /** `metadata.version`: 30; empty when it tells none. */
  readonly features: Readonly<Record<string, number>>
}

export interface PartitionHealth {
  readonly topics: number
  readonly partitions: number
  /** `orders-0`: without a leader. */
  readonly offline: readonly string[]
  /** With a leader that refuses to serve them: a damaged log, a disk that failed. */
  readonly failed: readonly { readonly partition: string; readonly errorName: string; readonly error: string }[]
  /** With fewer replicas in sync than there are. */
  readonly underReplicated: readonly string[]
}

export interface QuorumDescription {
  readonly leaderId: number
  readonly leaderEpoch: number
  readonly highWatermark: number
  readonly voters: readonly QuorumMember[]
  readonly observers: readonly QuorumMember[]
  /** When the leader answered, by its clock; -1 when it doesn't tell. */
  readonly leaderTimestamp: number
}

export interface QuorumMember {
  readonly id: number
  /** Of its metadata log; null when the broker doesn't tell. */
  readonly directoryId: Uuid | null
  /** Where the nodes of the quorum reach it; null when the broker doesn't tell, and of one that is no controller. */
  readonly address: { readonly host: string; readonly port: number } | null
  /** -1: not known. */
  readonly logEndOffset: number
  /** Milliseconds since 1970, by the leader's clock; -1: not known. */
  readonly lastFetchTimestamp: number
  readonly lastCaughtUpTimestamp: number
}

/** Throws `ClusterUnreachableError` when no broker answers at all. */
export async function describeCluster(cluster: Cluster): Promise<ClusterDescription> {
  const metadata = await cluster.refresh(null)
  const topics = await cluster.allTopics()
  const quorum = await describeQuorum(cluster)
  const nodes = await Promise.all(
    metadata.brokers.map(async ({ nodeId: id, host, port, rack }): Promise<NodeDescription> => {
      const all = topics.flatMap(({ partitions }) => partitions)
      const leads = all.filter(({ leaderId }) => leaderId === id).length
      const replicas = all.filter((each) => each.replicas.includes(id)).length
      const place = { id, host, port, rack, leads, replicas }
      try {
        const connection = await cluster.broker(id)
        return { ...place, fault: null, versions: versionsOf(connection), features: await featuresOf(connection) }
      } catch (error) {
        return { ...place, fault: connectionFaultText(error), versions: {}, features: {} }
      }
    }),
  )
  const controllerId = quorum?.leaderId ?? metadata.controllerId
  return {
    clusterId: metadata.clusterId,
    // A broker of a cluster with separate controllers names any broker, which passes requests on.
    controllerId: controllerId < 0 ? null : controllerId,
    nodes: nodes.sort((left, right) => left.id - right.id),
    partitions: await describeHealth(cluster, topics),
    quorum,
  }
}

/** What metadata tells, and what each leader says when it is asked: it may lead a partition that it can't read. */
export async function describeHealth(cluster: Cluster, topics: readonly TopicMetadata[]): Promise<PartitionHealth> {
  const offline: string[] = []
  const underReplicated: string[] = []
  const led: Place[] = []
  let count = 0
  for (const { name, partitions } of topics) {
    count += partitions.length
    for (const { partition, leaderId, isr, replicas } of partitions) {
      if (leaderId < 0) offline.push(`${name}-${partition}`)
      else led.push({ topic: name, partition })
      if (isr.length < replicas.length) underReplicated.push(`${name}-${partition}`)
    }
  }
  const answers = await probeOffsets(cluster, led, latest)
  // A broker that isn't reached is told as such, once.
  const failed = [...answers].flatMap(([partition, answer]) =>
    answer instanceof RequestRefusedError
      ? [{ partition, errorName: errorName(answer.errorCode), error: answer.message }]
      : [],
  )
  return { topics: topics.length, partitions: count, offline, failed, underReplicated }
}

/** Null where nobody tells. */
export async function describeQuorum(cluster: Cluster): Promise<QuorumDescription | null> {
  // The one that leads the quorum, where nobody passes the question on; one that can't be reached says nothing.
  const connection = await cluster.controller().catch(() => cluster.any())
  if (!connection.serves(apis.DescribeQuorum)) return null
  const topics = [{ topicName: '__cluster_metadata', partitions: [{ partitionIndex: 0 }] }]
  const { topics: answers, nodes } = await connection.call(apis.DescribeQuorum, { topics })
  const answer = answers[0]?.partitions[0]
  if (answer === undefined || answer.errorCode !== 0) return null
  const { leaderId, leaderEpoch, highWatermark, currentVoters, observers } = answer
  const memberOf = (member: (typeof currentVoters)[number]): QuorumMember => {
    const { replicaId: id, replicaDirectoryId, logEndOffset, lastFetchTimestamp, lastCaughtUpTimestamp } = member
    const directoryId = replicaDirectoryId === zeroUuid ? null : replicaDirectoryId
    const listener = nodes.find(({ nodeId }) => nodeId === id)?.listeners[0]
    const address = listener === undefined ? null : { host: listener.host, port: listener.port }
    return { id, directoryId, address, logEndOffset, lastFetchTimestamp, lastCaughtUpTimestamp }
  }
  const voters = currentVoters.map(memberOf)
  const leaderTimestamp = voters.find(({ id }) => id === leaderId)?.lastCaughtUpTimestamp ?? -1
  return { leaderId, leaderEpoch, highWatermark, voters, observers: observers.map(memberOf), leaderTimestamp }
}

function versionsOf(connection: BrokerConnection): NodeDescription['versions'] {
  const names = new Map(Object.values(apis).map(({ key, name }) => [key, name]))
  const sorted = [...connection.served].sort(([left], [right]) => left - right)
  return Object.fromEntries(sorted.map(([key, { min, max }]) => [names.get(key) ?? `api ${key}`, [min, max]]))
}

async function featuresOf(connection: BrokerConnection): Promise<NodeDescription['features']> {
  const request = { clientSoftwareName: 'rookery-cli', clientSoftwareVersion: '1' }
  const { errorCode, finalizedFeatures } = await connection.call(apis.ApiVersions, request)
  if (errorCode !== 0) throw new Error(`ApiVersions: ${errorName(errorCode)}`)
  return Object.fromEntries(finalizedFeatures.map(({ name, maxVersionLevel }) => [name, maxVersionLevel]))
}
