import type { QuorumMemberFacts } from '../coordination/index.ts'
import { apis, type DescribeQuorumResponse, ErrorCode, type MessageInput } from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { errorMessageOf } from './errors.ts'
import { metadataTopic } from './topic-names.ts'

/**
 * DescribeQuorum, 0 to 2.
 *
 *   1  times of fetches     2  directory ids, error messages, endpoints of the voters
 *
 * The quorum speaks Raft of its own, so a voter has no endpoint that a Kafka client could use: its list is empty. Offsets are
 * those of the metadata log as Kafka counts them, exclusive. Only the leader knows how far the others are. A request that asks
 * for anything beside partition 0 of the metadata topic is told about nothing.
 */
export const describeQuorum = defineApi({
  api: apis.DescribeQuorum,
  versions: { min: 0, max: 2 },
  handle({ topics }, context) {
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
    return { body: answer(context) }
  },
  fault: (_request, errorCode, apiVersion) => ({ ...top(errorCode, apiVersion), topics: [] }),
})

type Body = MessageInput<typeof DescribeQuorumResponse>
type PartitionAnswer = Body['topics'][number]['partitions'][number]

function answer(context: RequestContext): Body {
  const { apiVersion, services } = context
  const { coordination, platform } = services
  const quorum = coordination.quorum()
  if (quorum === undefined || quorum.leaderId !== services.brokerId) {
    return { ...top(ErrorCode.NOT_LEADER_OR_FOLLOWER, apiVersion), topics: [] }
  }
  const nowMs = platform.clock.now()
  const since = (ms: number | undefined) => (ms === undefined ? -1 : Math.round(nowMs - ms))
  const replica = ({ id, directoryId, logEndOffset, lastContactMs, lastCaughtUpMs }: QuorumMemberFacts) => ({
    replicaId: id,
    logEndOffset: logEndOffset ?? -1,
    lastFetchTimestamp: since(lastContactMs),
    lastCaughtUpTimestamp: since(lastCaughtUpMs),
    ...(apiVersion >= 2 ? { replicaDirectoryId: directoryId } : {}),
  })
  const partition = {
    ...none(0, ErrorCode.NONE, apiVersion),
    leaderId: quorum.leaderId,
    leaderEpoch: quorum.term,
    highWatermark: quorum.highWatermark,
    currentVoters: quorum.voters.map(replica),
    observers: quorum.observers.map(replica),
  }
  const nodes = apiVersion >= 2 ? { nodes: quorum.voters.map(({ id }) => ({ nodeId: id, listeners: [] })) } : {}
  const topics = [{ topicName: metadataTopic, partitions: [partition] }]
  return { ...top(ErrorCode.NONE, apiVersion), topics, ...nodes }
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
