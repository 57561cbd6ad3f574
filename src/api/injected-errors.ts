import { type Uuid, zeroUuid } from '../base/index.ts'
import { type ApiMessage, ErrorCode, type MessageInput } from '../protocol/index.ts'
import type { Reply, RequestContext, ServedApi } from './api.ts'
import { type Fields, joinAnswers, type Split, type TopicNames, topicOf } from './request-subjects.ts'

/** An error that was asked for and the part of a request that it is about; `topic`: all of it that is about one topic. */
export interface InjectedError {
  readonly part: Fields
  readonly errorCode: ErrorCode
  readonly topic: string | undefined
  /** How it comes into an answer of which the rest has to be whole; undefined: the part has an answer of its own. */
  readonly put: PutError | undefined
}

type PutError = (body: Fields, error: InjectedError, context: RequestContext, topicName: TopicNames) => Fields

/** The error for a part of a request, and what of the request is still carried out; undefined for nothing. */
export function injectedError(
  api: string,
  { part, rest }: Split,
  errorCode: ErrorCode,
  topic: string | undefined,
  apiVersion: number,
): { readonly error: InjectedError; readonly rest: Fields | undefined } {
  const put = putterOf(api, errorCode, topic, apiVersion)
  const error = { part, errorCode, topic, put }
  if (put === undefined) return { error, rest }
  const whole = rest === undefined ? part : joined(part, rest)
  return { error, rest: api === 'Fetch' ? { ...whole, maxWaitMs: 0 } : whole }
}

/**
 * Some APIs only read, and their answer has to be whole around an error: the brokers beside a topic, the session that goes on, the
 * other topics of a group. They are carried out, and the error is put into their answer.
 */
function putterOf(
  api: string,
  errorCode: ErrorCode,
  topic: string | undefined,
  apiVersion: number,
): PutError | undefined {
  switch (api) {
    case 'Fetch':
      return sessionErrors.has(errorCode) && apiVersion >= 7 ? undefined : fetchAnswer
    case 'OffsetFetch':
      return topic === undefined ? undefined : offsetFetchAnswer
    case 'Metadata':
    case 'DescribeTopicPartitions':
      return topicListAnswer
    default:
      return undefined
  }
}

/** The request that was split. Both parts have all fields of it; only one list of each is shorter. */
function joined(part: Fields, rest: Fields): Fields {
  const whole: Record<string, unknown> = { ...rest }
  for (const [field, value] of Object.entries(part)) {
    const other = rest[field]
    if (value !== other && Array.isArray(value) && Array.isArray(other)) whole[field] = [...value, ...other]
  }
  return whole
}

/** The answer to a request of which `reply` answers what was carried out, undefined when nothing was. */
export function answerWithErrors(
  reply: Reply<MessageInput<ApiMessage>> | undefined,
  errors: readonly InjectedError[],
  served: ServedApi,
  context: RequestContext,
  topicName: TopicNames,
): Reply<MessageInput<ApiMessage>> {
  if (reply !== undefined && (reply === 'none' || 'close' in reply)) return reply
  const { name } = served.api
  const answers: Fields[] = reply === undefined ? [] : [reply.body]
  for (const error of errors) {
    const { put, part, errorCode } = error
    if (put !== undefined) answers[0] = put(answers[0]!, error, context, topicName)
    else answers.push(partAnswer(name, error) ?? served.fault(part as never, errorCode, context.apiVersion))
  }
  const body = joinAnswers(name, answers)
  return reply === undefined ? { body } : { ...reply, body }
}

/** OffsetDelete has room for an error of the group, which its own fault is, and for one of each partition. */
function partAnswer(api: string, { part, errorCode, topic }: InjectedError): Fields | undefined {
  if (api !== 'OffsetDelete' || topic === undefined) return undefined
  const topics = part.topics as readonly { name: string; partitions: readonly { partitionIndex: number }[] }[]
  return {
    errorCode: ErrorCode.NONE,
    topics: topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode })),
    })),
  }
}

/** What stands at the top of a fetch. Any other error is one of its partitions: clients look for it there. */
const sessionErrors: ReadonlySet<ErrorCode> = new Set([
  ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
  ErrorCode.INVALID_FETCH_SESSION_EPOCH,
  ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
])

interface AnsweredTopic {
  readonly topic: string
  readonly topicId: Uuid
  readonly partitions: readonly { readonly partitionIndex: number }[]
}

/** Partitions of the session that had nothing to tell are in the answer too. */
function fetchAnswer(body: Fields, error: InjectedError, { services }: RequestContext, topicName: TopicNames): Fields {
  const { errorCode, topic } = error
  const isHit = (each: object) => topic === undefined || topicOf(each, topicName) === topic
  const told = body.responses as readonly AnsweredTopic[]
  const responses = told.map((each) =>
    isHit(each)
      ? { ...each, partitions: each.partitions.map(({ partitionIndex }) => refusedFetch(partitionIndex, errorCode)) }
      : each,
  )
  const keyOf = (name: string, topicId: Uuid, partition: number) =>
    `${topicId}/${partition}/${topicId === zeroUuid ? name : ''}`
  const seen = new Set(
    told.flatMap((each) => each.partitions.map((one) => keyOf(each.topic, each.topicId, one.partitionIndex))),
  )
  for (const each of services.fetchSessions.partitionsOf(body.sessionId as number)) {
    const { topicId = zeroUuid, partition } = each
    if (!isHit(each) || seen.has(keyOf(each.topic, topicId, partition))) continue
    responses.push({ topic: each.topic, topicId, partitions: [refusedFetch(partition, errorCode)] })
  }
  return { ...body, responses }
}

function refusedFetch(partitionIndex: number, errorCode: ErrorCode) {
  const unknown = { highWatermark: -1, lastStableOffset: -1, logStartOffset: -1 }
  return { partitionIndex, errorCode, ...unknown, abortedTransactions: null, records: [] }
}

interface AnsweredOffsets {
  readonly topics: readonly (object & { readonly partitions: readonly object[] })[]
}

function offsetFetchAnswer(
  body: Fields,
  error: InjectedError,
  _context: RequestContext,
  topicName: TopicNames,
): Fields {
  const { errorCode, topic, part } = error
  const refuse = ({ topics }: AnsweredOffsets) =>
    topics.map((each) =>
      topicOf(each, topicName) === topic
        ? {
            ...each,
            partitions: each.partitions.map((one) => ({ ...one, committedOffset: -1, metadata: '', errorCode })),
          }
        : each,
    )
  if (body.groups === undefined) return { ...body, topics: refuse(body as unknown as AnsweredOffsets) }
  const hit = new Set((part.groups as readonly { groupId: string }[]).map(({ groupId }) => groupId))
  const groups = body.groups as readonly (AnsweredOffsets & { readonly groupId: string })[]
  return { ...body, groups: groups.map((each) => (hit.has(each.groupId) ? { ...each, topics: refuse(each) } : each)) }
}

/** A topic with an error has no partitions. Where all topics were asked for, each has it, or the answer if there are none. */
function topicListAnswer(body: Fields, error: InjectedError, _context: RequestContext, topicName: TopicNames): Fields {
  const { errorCode, topic } = error
  const topics = body.topics as readonly object[]
  if (topics.length === 0) return { ...body, errorCode }
  return {
    ...body,
    topics: topics.map((each) =>
      topic === undefined || topicOf(each, topicName) === topic ? { ...each, errorCode, partitions: [] } : each,
    ),
  }
}
