import {
  apis,
  BatchView,
  batchHeaderBytes,
  ErrorCode,
  type MessageInput,
  type ProduceRequest,
  type ProduceResponse,
} from '../protocol/index.ts'
import type { AppendOutcome } from '../replication/index.ts'
import { defineApi, type Reply, type RequestContext } from './api.ts'
import { LeaderHints } from './endpoints.ts'
import { errorCodeOf, type Refusal } from './errors.ts'
import { isInternalTopic } from './topic-names.ts'

/**
 * Produce, 3 to 11; advertised from 0, since older librdkafka compresses nothing when 0 isn't in the range. 0 to 2 close the
 * connection, as in Kafka.
 *
 *   5  log start offset        8  which records are at fault, with a message
 *   7  zstd                    9  flexible         10  who leads instead (KIP-951)
 *
 * 12 would mean transactions of version 2, which aren't there; 13 (topics by id) comes with it.
 *
 * Trips clients: acks=0 has no response, and a fault closes the connection so that the client notices. Faults are per
 * partition: the others are appended. Produce never creates a topic. Internal topics are refused but for Kafka's own tools.
 * Transactions are not built: a batch of one makes all of its request TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
 */
export const produce = defineApi({
  api: apis.Produce,
  versions: { min: 3, max: 11, advertisedMin: 0 },
  brief: true,
  overlaps: true, // appends keep their order, and one sync covers all that wait
  handle(request, context) {
    const { acks } = request
    if (holdsTransaction(request)) {
      if (acks === 0) return { close: 'Produce with acks=0 was refused: transactions are not supported' }
      return { body: faultAnswer(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) }
    }
    if (acks !== 0 && acks !== 1 && acks !== -1) {
      return { body: invalidAcks(request, context) }
    }
    return answer(request, acks, context)
  },
  fault: faultAnswer,
})

type PartitionAnswer = MessageInput<typeof ProduceResponse>['responses'][number]['partitionResponses'][number]

async function answer(
  request: ProduceRequest,
  acks: 0 | 1 | -1,
  context: RequestContext,
): Promise<Reply<MessageInput<typeof ProduceResponse>>> {
  // All appends begin now, in the order of the request; awaiting one before the next would change it among requests.
  const pending = request.topicData.map((topic) =>
    topic.partitionData.map((partition) => append(topic.name, partition, request.timeoutMs, acks, context)),
  )
  const outcomes = await Promise.all(pending.map((partitions) => Promise.all(partitions)))
  if (acks === 0) {
    const refused = outcomes.flat().find((outcome) => !outcome.ok)
    if (refused === undefined || refused.ok) return 'none'
    return { close: `Produce with acks=0 was refused: ${refused.reason}` }
  }
  const hints = new LeaderHints(context)
  const answers = request.topicData.map(({ name, partitionData }, t) => ({
    name,
    partitionResponses: partitionData.map(({ index }, p) =>
      partitionAnswer(name, index, outcomes[t]![p]!, hints, context.apiVersion),
    ),
  }))
  const responses = answers.filter(({ partitionResponses }) => partitionResponses.length > 0)
  return { body: { responses, ...(context.apiVersion >= 10 ? { nodeEndpoints: hints.nodeEndpoints } : {}) } }
}

/**
 * A batch of a transaction, first of a partition's. All of the request is refused for it, whatever else is wrong: as by Kafka
 * where the transactional id is missing or not allowed.
 */
function holdsTransaction({ topicData }: ProduceRequest): boolean {
  return topicData.some(({ partitionData }) =>
    partitionData.some(({ records }) => {
      if (records === null || records.length < batchHeaderBytes) return false
      const view = new BatchView(records)
      return view.magic === 2 && view.isTransactional
    }),
  )
}

/** A partition that isn't there is told before what is wrong with the request. */
function invalidAcks(request: ProduceRequest, { services }: RequestContext): MessageInput<typeof ProduceResponse> {
  const { topics } = services.coordination.image
  const responses = request.topicData.map(({ name, partitionData }) => ({
    name,
    partitionResponses: partitionData.map(({ index }) => {
      const isThere = topics.byName(name)?.partitions[index] !== undefined
      const { INVALID_REQUIRED_ACKS, UNKNOWN_TOPIC_OR_PARTITION } = ErrorCode
      return refusedPartition(index, isThere ? INVALID_REQUIRED_ACKS : UNKNOWN_TOPIC_OR_PARTITION)
    }),
  }))
  return { responses }
}

type Refused = { readonly ok: false; readonly reason: 'internal-topic' }

async function append(
  topic: string,
  { index, records }: ProduceRequest['topicData'][number]['partitionData'][number],
  timeoutMs: number,
  requiredAcks: 0 | 1 | -1,
  context: RequestContext,
): Promise<AppendOutcome | Refused> {
  const { clientId, apiVersion, services } = context
  if (isInternalTopic(topic) && clientId !== '__admin_client') return { ok: false, reason: 'internal-topic' }
  if (records === null) return { ok: false, reason: 'invalid-record', message: 'A partition needs one record batch' }
  return services.replicas.append({
    topic,
    partition: index,
    records,
    requiredAcks,
    timeoutMs: Math.max(0, timeoutMs),
    origin: 'client',
    produceVersion: apiVersion,
  })
}

function partitionAnswer(
  topic: string,
  index: number,
  outcome: AppendOutcome | Refused,
  hints: LeaderHints,
  apiVersion: number,
): PartitionAnswer {
  if (outcome.ok) {
    const { baseOffset, logAppendTimeMs, logStartOffset } = outcome
    return { index, errorCode: ErrorCode.NONE, baseOffset, logAppendTimeMs, logStartOffset }
  }
  if (outcome.reason === 'internal-topic') return refusedPartition(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
  let errorCode = errorCodeOf(outcome.reason)
  // A client of that age doesn't know the code; looking for another leader is what it should do.
  if (errorCode === ErrorCode.KAFKA_STORAGE_ERROR && apiVersion <= 3) errorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER
  const currentLeader =
    apiVersion >= 10 && errorCode === ErrorCode.NOT_LEADER_OR_FOLLOWER ? hints.leaderOf(topic, index) : undefined
  return {
    ...refusedPartition(index, errorCode),
    ...('logStartOffset' in outcome && tellsLogStart(outcome.reason) ? { logStartOffset: outcome.logStartOffset } : {}),
    errorMessage: outcome.message ?? null,
    ...('recordErrors' in outcome && outcome.recordErrors !== undefined
      ? {
          recordErrors: outcome.recordErrors.map(({ batchIndex, message }) => ({
            batchIndex,
            batchIndexErrorMessage: message,
          })),
        }
      : {}),
    ...(currentLeader === undefined ? {} : { currentLeader }),
  }
}

const unseen: ReadonlySet<string> = new Set<Refusal>([
  'not-one-batch',
  'corrupt-message',
  'message-too-large',
  'record-list-too-large',
  'unsupported-compression-type',
])

/** The log start offset stands in every refusal of the log but in those of batches that Kafka doesn't show to it. */
function tellsLogStart(reason: string): boolean {
  return !unseen.has(reason)
}

function refusedPartition(index: number, errorCode: ErrorCode): PartitionAnswer {
  return { index, errorCode, baseOffset: -1, logAppendTimeMs: -1, logStartOffset: -1 }
}

function faultAnswer(request: ProduceRequest, errorCode: ErrorCode): MessageInput<typeof ProduceResponse> {
  const responses = request.topicData.map(({ name, partitionData }) => ({
    name,
    partitionResponses: partitionData.map(({ index }) => refusedPartition(index, errorCode)),
  }))
  return { responses }
}
