import { type LeaderEpoch, zeroUuid } from '../base/index.ts'
import { apis, ErrorCode, type FetchRequest, type FetchResponse, type MessageInput } from '../protocol/index.ts'
import type { FetchedPartition, FetchPartition } from '../replication/index.ts'
import { defineApi, type Reply, type RequestContext } from './api.ts'
import { LeaderHints } from './endpoints.ts'
import { errorCodeOf } from './errors.ts'

/**
 * Fetch, 4 to 18.
 *
 *    5  log start offset                  12  flexible; epochs of what was fetched before
 *    7  sessions, top-level error         13  topics by id
 *    9  current leader epoch (KIP-320)    15  replica state instead of replica id
 *   10  zstd                              16  who leads instead (KIP-951)
 *   11  rack id                           17, 18  fields between replicas only
 *
 * Trips clients: records are never null, an empty set has length 0; sets are whole batches, so never of 1 to 16 bytes, which
 * one client would read past. `abortedTransactions` is null for read-uncommitted and an array for read-committed. The first
 * partition with data gives its first batch whole whatever the limits. A partition error answers at once.
 *
 * Differs from Kafka: no session is ever made. Answering session id 0 to a full fetch is what a broker whose session cache is
 * full does, and clients go on without.
 */
export const fetch = defineApi({
  api: apis.Fetch,
  versions: { min: 4, max: 18 },
  handle(request, context) {
    // Only sessions that the client thinks it has are incremental: no such session.
    if (request.sessionEpoch > 0) return { body: faultAnswer(request, ErrorCode.FETCH_SESSION_ID_NOT_FOUND) }
    return answer(request, context)
  },
  fault: faultAnswer,
})

type Body = MessageInput<typeof FetchResponse>
type PartitionAnswer = Body['responses'][number]['partitions'][number]
type AskedPartition = FetchRequest['topics'][number]['partitions'][number]

async function answer(request: FetchRequest, context: RequestContext): Promise<Reply<Body>> {
  const { services, connection, apiVersion } = context
  const { image } = services.coordination
  const asked: FetchPartition[] = []
  let hasUnknown = false
  // By topic of the request: its name, undefined when its id is unknown.
  const topics = withoutRepeats(request.topics, apiVersion)
  const names = topics.map((topic) => {
    const name = apiVersion >= 13 ? image.topics.byId(topic.topicId)?.name : topic.topic
    if (name === undefined) hasUnknown = true
    else for (const partition of topic.partitions) asked.push(fetchPartition(name, topic.topicId, partition))
    return name
  })
  const isReadCommitted = request.isolationLevel === 1
  const answered = await services.replicas.fetch({
    maxWaitMs: hasUnknown ? 0 : Math.max(0, request.maxWaitMs),
    minBytes: request.minBytes,
    maxBytes: Math.min(request.maxBytes, services.config.values.fetchMaxBytes),
    lend: (maxBytes) => connection.lendResponseBytes(maxBytes),
    isolation: isReadCommitted ? 'read-committed' : 'read-uncommitted',
    partitions: asked,
    signal: connection.signal,
  })
  const hints = new LeaderHints(context)
  const abortedTransactions = isReadCommitted ? [] : null
  let next = 0
  const responses = topics.map((topic, t) => {
    const name = names[t]
    const partitions = topic.partitions.map(({ partition }) =>
      name === undefined
        ? refusedPartition(partition, ErrorCode.UNKNOWN_TOPIC_ID)
        : partitionAnswer(name, partition, answered.partitions[next++]!, abortedTransactions, hints, apiVersion),
    )
    return { topic: topic.topic, topicId: topic.topicId, partitions }
  })
  const nodeEndpoints = apiVersion >= 16 ? { nodeEndpoints: hints.nodeEndpoints } : {}
  const body = { throttleTimeMs: 0, errorCode: ErrorCode.NONE, sessionId: 0, responses, ...nodeEndpoints }
  return { body, release: () => answered.release() }
}

/** Each partition once: otherwise a client gets the same records twice in one answer. */
function withoutRepeats(topics: FetchRequest['topics'], apiVersion: number): FetchRequest['topics'] {
  const seen = new Set<string>()
  const isNew = (name: string, partition: number): boolean => {
    const before = seen.size
    return seen.add(`${partition}/${name}`).size > before
  }
  return topics.map((topic) => {
    const name = apiVersion >= 13 ? topic.topicId : topic.topic
    return { ...topic, partitions: topic.partitions.filter(({ partition }) => isNew(name, partition)) }
  })
}

function fetchPartition(topic: string, topicId: FetchRequest['topics'][number]['topicId'], asked: AskedPartition) {
  return {
    topic,
    partition: asked.partition,
    fetchOffset: asked.fetchOffset,
    maxBytes: asked.partitionMaxBytes,
    currentLeaderEpoch: epochOf(asked.currentLeaderEpoch),
    lastFetchedEpoch: epochOf(asked.lastFetchedEpoch),
    ...(topicId === zeroUuid ? {} : { topicId }),
  }
}

/** Every negative number is "none". */
function epochOf(value: number): LeaderEpoch | -1 {
  return value < 0 ? -1 : (value as LeaderEpoch)
}

function partitionAnswer(
  topic: string,
  partitionIndex: number,
  fetched: FetchedPartition,
  abortedTransactions: never[] | null,
  hints: LeaderHints,
  apiVersion: number,
): PartitionAnswer {
  const { outcome, highWatermark, lastStableOffset, logStartOffset, divergingEpoch, chunks } = fetched
  if (outcome.ok) {
    return {
      partitionIndex,
      errorCode: ErrorCode.NONE,
      highWatermark,
      lastStableOffset,
      logStartOffset,
      abortedTransactions,
      records: chunks,
      ...(divergingEpoch === undefined || apiVersion < 12 ? {} : { divergingEpoch }),
    }
  }
  let errorCode = errorCodeOf(outcome.reason)
  // A client of that age doesn't know the code; looking for another leader is what it should do.
  if (errorCode === ErrorCode.KAFKA_STORAGE_ERROR && apiVersion <= 5) errorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER
  const isMoved = errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER || errorCode === ErrorCode.FENCED_LEADER_EPOCH
  const currentLeader = apiVersion >= 16 && isMoved ? hints.leaderOf(topic, partitionIndex) : undefined
  return { ...refusedPartition(partitionIndex, errorCode), ...(currentLeader === undefined ? {} : { currentLeader }) }
}

function refusedPartition(partitionIndex: number, errorCode: ErrorCode): PartitionAnswer {
  return {
    partitionIndex,
    errorCode,
    highWatermark: -1,
    lastStableOffset: -1,
    logStartOffset: -1,
    // An array of none where nothing could be read at all, as in Kafka.
    abortedTransactions: isMissing(errorCode) ? [] : null,
    records: [],
  }
}

function isMissing(errorCode: ErrorCode): boolean {
  return errorCode === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION || errorCode === ErrorCode.UNKNOWN_TOPIC_ID
}

/** From version 7 on the error stands at the top, with no topics. */
function faultAnswer(request: FetchRequest, errorCode: ErrorCode, apiVersion = 7): Body {
  const responses = request.topics.map((topic) => ({
    topic: topic.topic,
    topicId: topic.topicId,
    partitions: topic.partitions.map(({ partition }) => refusedPartition(partition, errorCode)),
  }))
  return apiVersion >= 7
    ? { throttleTimeMs: 0, errorCode, sessionId: 0, responses: [] }
    : { throttleTimeMs: 0, errorCode, sessionId: 0, responses }
}
