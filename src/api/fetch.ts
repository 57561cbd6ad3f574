import { type BrokerEpoch, type BrokerId, type LeaderEpoch, type Uuid, zeroUuid } from '../base/index.ts'
import { apis, ErrorCode, type FetchRequest, type FetchResponse, type MessageInput } from '../protocol/index.ts'
import type {
  AskedPartition,
  FetchedPartition,
  FetchPartition,
  FetchSession,
  FetchSessionId,
} from '../replication/index.ts'
import { defineApi, type Reply, type RequestContext } from './api.ts'
import { LeaderHints } from './endpoints.ts'
import { errorCodeOf } from './errors.ts'
import { PreferredReplicas } from './preferred-replicas.ts'

/**
 * Fetch, 4 to 18.
 *
 *    5  log start offset                  12  flexible; epochs of what was fetched before
 *    7  sessions, top-level error         13  topics by id
 *    9  current leader epoch (KIP-320)    15  replica state instead of replica id
 *   10  zstd                              16  who leads instead (KIP-951)
 *   11  rack id (KIP-392)                17, 18  fields between replicas only
 *
 * Trips clients: records are never null, an empty set has length 0; sets are whole batches, so never of 1 to 16 bytes, which
 * one client would read past. `abortedTransactions` is null for read-uncommitted and an array for read-committed. The first
 * partition with data gives its first batch whole whatever the limits. A partition error answers at once.
 *
 * Sessions (KIP-227), by id and epoch: (0, -1) is a fetch without one, (id, -1) is that too and ends a session; (any, 0) lists
 * all its partitions, ends a session and makes another, where there is room; (id, 1 and up) says what changed and is told
 * what changed. In a session by topic ids a topic that was deleted is UNKNOWN_TOPIC_OR_PARTITION and one that was made anew
 * INCONSISTENT_TOPIC_ID; UNKNOWN_TOPIC_ID is only for what has not been there at all.
 */
export const fetch = defineApi({
  api: apis.Fetch,
  versions: { min: 4, max: 18 },
  handle(request, context) {
    const { sessionId, sessionEpoch } = request
    const { fetchSessions } = context.services
    const isFull = sessionEpoch === initialEpoch || sessionEpoch === finalEpoch
    if (!isFull) return resumeSession(request, context)
    if (sessionId !== noSession) fetchSessions.close(sessionId)
    return answerFull(request, context, sessionEpoch === initialEpoch)
  },
  fault: faultAnswer,
})

const noSession = 0
const initialEpoch = 0
const finalEpoch = -1

type Body = MessageInput<typeof FetchResponse>
type PartitionAnswer = Body['responses'][number]['partitions'][number]
type RequestedPartition = FetchRequest['topics'][number]['partitions'][number]

/** Answers about every partition that is asked for, in the order asked; `wantsSession`: and remembers them. */
async function answerFull(request: FetchRequest, context: RequestContext, wantsSession: boolean): Promise<Reply<Body>> {
  const { services, apiVersion } = context
  const { image } = services.coordination
  const topics = withoutRepeats(request.topics, usesTopicIds(context))
  const known: FetchPartition[] = []
  // By topic of the request: its name, undefined when its id is unknown.
  const names = topics.map(({ topic, topicId, partitions }) => {
    const name = usesTopicIds(context) ? image.topics.byId(topicId)?.name : topic
    if (name !== undefined) for (const each of partitions) known.push(fetchPartition(name, topicId, each))
    return name
  })
  const preferred = preferredReplicas(request, context)
  const endsNow = names.includes(undefined) || preferred?.concern(known) === true
  const answered = await services.replicas.fetch(readRequest(request, context, known, endsNow))
  const answers = new PartitionAnswers(request, context)
  let next = 0
  const responses = topics.map(({ topic, topicId, partitions }, t) => {
    const name = names[t]
    const each = partitions.map(({ partition }) => {
      if (name === undefined) return answers.of(name, partition, unknownTopicId)
      const asked = known[next]!
      const fetched = answered.partitions[next++]!
      return answers.of(name, partition, fetched, preferred?.for(asked, fetched))
    })
    return { topic, topicId, partitions: each }
  })
  const sessionId = wantsSession ? createSession(topics, context, names, answered.partitions) : noSession
  const nodeEndpoints = apiVersion >= 16 ? { nodeEndpoints: answers.nodeEndpoints } : {}
  const body = { throttleTimeMs: 0, errorCode: ErrorCode.NONE, sessionId, responses, ...nodeEndpoints }
  return { body, release: () => answered.release() }
}

/** Each partition once: otherwise a client gets the same records twice in one answer. */
function withoutRepeats(topics: FetchRequest['topics'], byId: boolean): FetchRequest['topics'] {
  const seen = new Set<string>()
  const isNew = (name: string, partition: number): boolean => {
    const before = seen.size
    return seen.add(`${partition}/${name}`).size > before
  }
  return topics.map((topic) => {
    const name = byId ? topic.topicId : topic.topic
    return { ...topic, partitions: topic.partitions.filter(({ partition }) => isNew(name, partition)) }
  })
}

function createSession(
  topics: FetchRequest['topics'],
  context: RequestContext,
  names: readonly (string | undefined)[],
  answered: readonly FetchedPartition[],
): FetchSessionId | typeof noSession {
  let next = 0
  const fetched: FetchedPartition[] = []
  const asked = topics.flatMap((topic, t) =>
    topic.partitions.map((partition) => {
      fetched.push(names[t] === undefined ? unknownTopicId : answered[next++]!)
      return askedPartition(names[t], topic.topicId, partition)
    }),
  )
  return context.services.fetchSessions.create(usesTopicIds(context), asked, fetched)
}

/** Goes on with a session: the request has what changed for the client, the answer what changed for its partitions. */
function resumeSession(request: FetchRequest, context: RequestContext): Reply<Body> | Promise<Reply<Body>> {
  const { topics } = context.services.coordination.image
  const byId = usesTopicIds(context)
  const nameOf = (topic: string, topicId: Uuid) => (byId ? topics.byId(topicId)?.name : topic)
  const resumed = context.services.fetchSessions.resume({
    sessionId: request.sessionId,
    epoch: request.sessionEpoch,
    usesTopicIds: byId,
    changed: request.topics.flatMap(({ topic, topicId, partitions }) =>
      partitions.map((partition) => askedPartition(nameOf(topic, topicId), topicId, partition)),
    ),
    forgotten: request.forgottenTopicsData.flatMap(({ topic, topicId, partitions }) =>
      partitions.map((partition) => ({ topic, topicId, partition })),
    ),
  })
  if (!resumed.ok) return { body: faultAnswer(request, errorCodeOf(resumed.reason)) }
  if (resumed.session === undefined) return answerFull(request, context, false)
  return answerIncremental(request, context, resumed.session, resumed.nextEpoch)
}

async function answerIncremental(
  request: FetchRequest,
  context: RequestContext,
  session: FetchSession,
  nextEpoch: number,
): Promise<Reply<Body>> {
  const { topics } = context.services.coordination.image
  const partitions = [...session.partitions]
  for (const each of partitions) {
    if (each.topic === '' && each.topicId !== undefined) each.topic = topics.byId(each.topicId)?.name ?? ''
  }
  const isKnown = (each: FetchPartition) => each.topic !== '' || each.topicId === undefined
  const known = partitions.every(isKnown) ? partitions : partitions.filter(isKnown)
  const preferred = preferredReplicas(request, context)
  const endsNow = known !== partitions || preferred?.concern(known) === true
  const read = readRequest(request, context, known, endsNow)
  const answered = await context.services.replicas.fetch(read)
  const release = () => answered.release()
  if (session.epoch !== nextEpoch) {
    // Another connection went on with the session meanwhile: what this one was to be told is no longer known.
    const errorCode = ErrorCode.INVALID_FETCH_SESSION_EPOCH
    return { body: { errorCode, sessionId: session.id, responses: [] }, release }
  }
  const answers = new PartitionAnswers(request, context)
  const responses: TopicAnswer[] = []
  let last: TopicAnswer | undefined
  let lastName = ''
  let next = 0
  for (const each of partitions) {
    const isFound = isKnown(each)
    const fetched = isFound ? answered.partitions[next++]! : unknownTopicId
    const readReplica = preferred?.for(each, fetched)
    if (!session.tell(each, fetched) && readReplica === undefined) continue
    const { topic, topicId = zeroUuid, partition } = each
    if (last === undefined || lastName !== topic || last.topicId !== topicId) {
      last = { topic, topicId, partitions: [] }
      lastName = topic
      responses.push(last)
    }
    last.partitions.push(answers.of(isFound ? topic : undefined, partition, fetched, readReplica))
  }
  const nodeEndpoints = context.apiVersion >= 16 ? { nodeEndpoints: answers.nodeEndpoints } : {}
  const body = { throttleTimeMs: 0, errorCode: ErrorCode.NONE, sessionId: session.id, responses, ...nodeEndpoints }
  return { body, release }
}

interface TopicAnswer {
  readonly topic: string
  readonly topicId: Uuid
  readonly partitions: PartitionAnswer[]
}

function usesTopicIds({ apiVersion }: RequestContext): boolean {
  return apiVersion >= 13
}

/** `endsNow`: there is something to answer beside records, so nothing is waited for. */
function readRequest(
  request: FetchRequest,
  { services, connection, apiVersion }: RequestContext,
  partitions: readonly FetchPartition[],
  endsNow: boolean,
) {
  return {
    maxWaitMs: endsNow ? 0 : Math.max(0, request.maxWaitMs),
    minBytes: request.minBytes,
    maxBytes: Math.min(request.maxBytes, services.config.values.fetchMaxBytes),
    lend: (maxBytes: number) => connection.lendResponseBytes(maxBytes),
    isolation: isReadCommitted(request) ? 'read-committed' : 'read-uncommitted',
    ...readerOf(request, apiVersion),
    partitions,
    signal: connection.signal,
  } as const
}

/** A follower, told by its broker id, or a consumer; from version 11 on that one may read from any replica. */
function readerOf(request: FetchRequest, apiVersion: number) {
  const { replicaState } = request
  const replica = replicaOf(request, apiVersion)
  if (replica < 0) return { anyReplica: apiVersion >= 11 }
  const brokerEpoch = apiVersion >= 15 ? replicaState.replicaEpoch : -1
  return { follower: { replica: replica as BrokerId, brokerEpoch: brokerEpoch as BrokerEpoch | -1 } }
}

/** The broker that fetches; negative: a consumer. */
function replicaOf({ replicaId, replicaState }: FetchRequest, apiVersion: number): number {
  return apiVersion >= 15 ? replicaState.replicaId : replicaId
}

function preferredReplicas(request: FetchRequest, context: RequestContext): PreferredReplicas | undefined {
  if (context.apiVersion < 11 || replicaOf(request, context.apiVersion) >= 0) return undefined
  return PreferredReplicas.of(request.rackId, context)
}

function isReadCommitted({ isolationLevel }: FetchRequest): boolean {
  return isolationLevel === 1
}

function fetchPartition(topic: string, topicId: Uuid, asked: RequestedPartition): FetchPartition {
  return { topic, ...whatIsAsked(asked), ...(topicId === zeroUuid ? {} : { topicId }) }
}

function askedPartition(topic: string | undefined, topicId: Uuid, asked: RequestedPartition): AskedPartition {
  return { topic, topicId, ...whatIsAsked(asked) }
}

function whatIsAsked(asked: RequestedPartition) {
  return {
    partition: asked.partition,
    fetchOffset: asked.fetchOffset,
    maxBytes: asked.partitionMaxBytes,
    currentLeaderEpoch: epochOf(asked.currentLeaderEpoch),
    lastFetchedEpoch: epochOf(asked.lastFetchedEpoch),
    logStartOffset: Math.max(0, asked.logStartOffset),
  }
}

/** Every negative number is "none". */
function epochOf(value: number): LeaderEpoch | -1 {
  return value < 0 ? -1 : (value as LeaderEpoch)
}

/** Each partition's part of one answer, and the brokers that clients are sent to. */
class PartitionAnswers {
  readonly #apiVersion: number
  readonly #hints: LeaderHints
  readonly #abortedTransactions: never[] | null
  readonly #isOfConsumer: boolean

  constructor(request: FetchRequest, context: RequestContext) {
    this.#apiVersion = context.apiVersion
    this.#isOfConsumer = !('follower' in readerOf(request, context.apiVersion))
    this.#hints = new LeaderHints(context)
    this.#abortedTransactions = isReadCommitted(request) ? [] : null
  }

  /** Followers, which know where brokers are, are told none. */
  get nodeEndpoints() {
    return this.#isOfConsumer ? this.#hints.nodeEndpoints : []
  }

  /** `topic` undefined: no topic has the id that was asked for. `readReplica`: where to read instead, which is told without records. */
  of(
    topic: string | undefined,
    partitionIndex: number,
    fetched: FetchedPartition,
    readReplica?: BrokerId,
  ): PartitionAnswer {
    if (topic === undefined) return refusedPartition(partitionIndex, ErrorCode.UNKNOWN_TOPIC_ID)
    const { outcome, highWatermark, lastStableOffset, logStartOffset, divergingEpoch, chunks } = fetched
    if (outcome.ok) {
      return {
        partitionIndex,
        errorCode: ErrorCode.NONE,
        highWatermark,
        lastStableOffset,
        logStartOffset,
        abortedTransactions: this.#abortedTransactions,
        records: readReplica === undefined ? chunks : [],
        ...(readReplica === undefined ? {} : { preferredReadReplica: readReplica }),
        ...(divergingEpoch === undefined || this.#apiVersion < 12 ? {} : { divergingEpoch }),
      }
    }
    let errorCode = errorCodeOf(outcome.reason)
    // A client of that age doesn't know the code; looking for another leader is what it should do.
    if (errorCode === ErrorCode.KAFKA_STORAGE_ERROR && this.#apiVersion <= 5) {
      errorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER
    }
    const isMoved = errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER || errorCode === ErrorCode.FENCED_LEADER_EPOCH
    const currentLeader = this.#apiVersion >= 16 && isMoved ? this.#hints.leaderOf(topic, partitionIndex) : undefined
    return { ...refusedPartition(partitionIndex, errorCode), ...(currentLeader === undefined ? {} : { currentLeader }) }
  }
}

/** What a session is told of a partition whose topic id nobody knows. */
const unknownTopicId: FetchedPartition = {
  outcome: { ok: false, reason: 'unknown-topic-or-partition' },
  highWatermark: -1,
  lastStableOffset: -1,
  logStartOffset: -1,
  chunks: [],
  sizeBytes: 0,
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
