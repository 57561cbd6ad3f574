import type { QuorumFacts, QuorumMember } from '../coordination/index.ts'
import type { MetadataImage } from '../metadata/index.ts'
import { apis, type DescribeQuorumResponse, ErrorCode, type MessageInput } from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { errorMessageOf } from './errors.ts'
import { metadataTopic } from './topic-names.ts'

/**
 * DescribeQuorum, 0 to 2.
 *
 *   1  times of fetches     2  directory ids, error messages, endpoints of the voters
 *
 * Any broker takes it and asks the leader, who alone knows how far the others are. Offsets are those of the metadata log as
 * Kafka counts them, exclusive; times are of this broker's clock. The endpoints of voters are for people and for other nodes: the
 * quorum speaks Raft of its own there, which no Kafka client does. A request that asks for anything beside partition 0 of the
 * metadata topic is told about nothing.
 */
export const describeQuorum = defineApi({
  api: apis.DescribeQuorum,
  versions: { min: 0, max: 2 },
  async handle({ topics }, context) {
    const [topic, ...others] = topics
    const asksThisAlone =
      others.length === 0 &&
      topic?.topicName === metadataTopic &&
      topic.partitions.length === 1 &&
      topic.partitions[0]?.partitionIndex === 0
    if (!asksThisAlone) {
      const errorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
      const refusedTopics = topics.map(({ topicName, partitions }) => ({
        topicName,
        partitions: partitions.map(({ partitionIndex }) => refusedPartition(partitionIndex, errorCode, context)),
      }))
      return { body: { ...top(ErrorCode.NONE, context.apiVersion), topics: refusedTopics } }
    }
    const { coordination, config } = context.services
    const quorum = await coordination.admin.describeQuorum({ timeoutMs: config.values.requestTimeoutMs })
    return { body: answer(quorum, context) }
  },
  fault: (_request, errorCode, apiVersion) => ({ ...top(errorCode, apiVersion), topics: [] }),
})

type Body = MessageInput<typeof DescribeQuorumResponse>
type PartitionAnswer = Body['topics'][number]['partitions'][number]

function answer(quorum: QuorumFacts, { apiVersion, services }: RequestContext): Body {
  const nowMs = services.platform.clock.now()
  const memberAnswer = ({ id, directoryId, logEndOffset, lastContactMs, lastCaughtUpMs }: QuorumMember) => ({
    replicaId: id,
    logEndOffset,
    lastFetchTimestamp: timeOf(lastContactMs, nowMs),
    lastCaughtUpTimestamp: timeOf(lastCaughtUpMs, nowMs),
    ...(apiVersion >= 2 ? { replicaDirectoryId: directoryId } : {}),
  })
  const partition = {
    ...none(0, ErrorCode.NONE, apiVersion),
    leaderId: quorum.leaderId,
    leaderEpoch: quorum.term,
    highWatermark: quorum.highWatermark,
    currentVoters: quorum.voters.map(memberAnswer),
    observers: quorum.observers.map(memberAnswer),
  }
  const nodes = apiVersion >= 2 ? { nodes: nodesOf(quorum, services.coordination.image) } : {}
  const topics = [{ topicName: metadataTopic, partitions: [partition] }]
  return { ...top(ErrorCode.NONE, apiVersion), topics, ...nodes }
}

/** The voters, where the membership has them, and the controllers that follow and registered. */
function nodesOf({ voters, observers }: QuorumFacts, image: MetadataImage): NonNullable<Body['nodes']> {
  const nodes = voters.map(({ id, endpoint }) => ({ nodeId: id as number, listeners: listenersOf(endpoint) }))
  for (const { controllerId, endpoints } of image.cluster.controllers()) {
    if (!observers.some(({ id }) => id === controllerId) || nodes.some(({ nodeId }) => nodeId === controllerId))
      continue
    nodes.push({ nodeId: controllerId, listeners: endpoints.map(({ name, host, port }) => ({ name, host, port })) })
  }
  return nodes
}

function timeOf(agoMs: number | null, nowMs: number): number {
  return agoMs === null ? -1 : nowMs - agoMs
}

/** `host:port`, an IPv6 address in brackets. */
function listenersOf(endpoint: string | null) {
  const colon = endpoint?.lastIndexOf(':') ?? -1
  if (endpoint === null || colon < 0) return []
  const host = endpoint.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
  return [{ name: 'CONTROLLER', host, port: Number(endpoint.slice(colon + 1)) }]
}

function top(errorCode: ErrorCode, apiVersion: number) {
  return { errorCode, ...(apiVersion >= 2 ? { errorMessage: errorMessageOf(errorCode) ?? '' } : {}) }
}

function refusedPartition(partitionIndex: number, errorCode: ErrorCode, { apiVersion }: RequestContext) {
  return none(partitionIndex, errorCode, apiVersion)
}

function none(partitionIndex: number, errorCode: ErrorCode, apiVersion: number): PartitionAnswer {
  return {
    partitionIndex,
    ...top(errorCode, apiVersion),
    leaderId: 0,
    leaderEpoch: 0,
    highWatermark: 0,
    currentVoters: [],
    observers: [],
  }
}
