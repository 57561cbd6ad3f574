import { type Uuid, zeroUuid } from '../base/index.ts'
import type { TopicImage } from '../metadata/index.ts'

import { apis, ErrorCode, type MessageInput, type MetadataRequest, type MetadataResponse } from '../protocol/index.ts'
import { defineApi, type Reply, type RequestContext } from './api.ts'
import { clusterOperations, operationsNotAsked, topicOperations } from './authorized-operations.ts'
import { distinct } from './distinct.ts'
import { controllerIdOf, liveEndpoints } from './endpoints.ts'
import { partitionAnswer } from './partition-answer.ts'
import type { TopicCreator } from './topic-creator.ts'
import { isInternalTopic, isLegalTopicName } from './topic-names.ts'

/**
 * Metadata, 0 to 13.
 *
 *   1  controller, racks, internal topics; null is all topics, an empty list none (in 0 an empty list is all)
 *   2  cluster id                               8  authorized operations (of the cluster up to 10)
 *   4  the client says whether to create       9  flexible
 *   5  offline replicas                        10  topic ids           12  topics by id alone
 *   7  leader epochs                           13  top-level error
 *
 * Trips clients: the addresses are those of the listener that the request came in on. The controller is any broker that takes
 * admin requests, and all do. A topic keeps its id over restarts. A request that names an id is about ids alone, each once;
 * names in it are passed over. Up to 11 such a request fails as a whole, with neither brokers nor cluster.
 *
 * Differs from Kafka: it answers UNKNOWN_TOPIC_OR_PARTITION while a topic is auto-created and lets the client ask again; here
 * the answer waits for the topic and has its leaders.
 */
export const metadata = defineApi({
  api: apis.Metadata,
  versions: { min: 0, max: 13 },
  handle(request, context) {
    const { topics } = request
    const { image } = context.services.coordination
    if (topics === null || (topics.length === 0 && context.apiVersion === 0)) {
      return { body: answer(request, context, [...image.topics.all()].map(found)) }
    }
    const byId = topics.filter(({ topicId }) => topicId !== zeroUuid)
    if (context.apiVersion < 12 && (byId.length > 0 || topics.some(({ name }) => name === null))) {
      return { body: fault(request, ErrorCode.INVALID_REQUEST) }
    }
    const asked =
      byId.length > 0
        ? distinct(byId, ({ topicId }) => topicId).map(({ topicId }) => ({ topicId, name: null }))
        : distinct(topics, ({ name }) => String(name))
    const answers = asked.map((topic) => lookUp(topic, request, context))
    const isWhole = (all: typeof answers): all is TopicAnswer[] => !all.includes('create')
    return isWhole(answers)
      ? { body: answer(request, context, answers) }
      : createMissing(request, context, asked, answers)
  },
  fault,
})

type Body = MessageInput<typeof MetadataResponse>
type AskedTopic = NonNullable<MetadataRequest['topics']>[number]
/** A topic that is there, or what the client is told instead. */
type TopicAnswer =
  | { readonly topic: TopicImage }
  | { readonly topic: undefined; readonly asked: AskedTopic; readonly errorCode: ErrorCode }

function fault(request: MetadataRequest, errorCode: ErrorCode): Body {
  return {
    brokers: [],
    topics: (request.topics ?? []).map(({ name, topicId }) => ({
      errorCode,
      name: name ?? '',
      topicId,
      partitions: [],
    })),
    errorCode,
  }
}

/** More topics than the controller creates at once: it isn't asked. */
const maxCreatedAtOnce = 10_000

/** `answers` to `asked`, with those topics created that are to be. */
async function createMissing(
  request: MetadataRequest,
  context: RequestContext,
  asked: readonly AskedTopic[],
  answers: readonly (TopicAnswer | 'create')[],
): Promise<Reply<Body>> {
  const names = asked.flatMap(({ name }, i) => (answers[i] === 'create' ? [name!] : []))
  const isTooMuch = names.length > maxCreatedAtOnce
  if (isTooMuch) {
    const { peer } = context.connection
    context.services.log.warn(
      { peer, count: names.length, limit: maxCreatedAtOnce },
      'topics not auto-created: too many',
    )
  }
  const created = isTooMuch ? undefined : context.services.topicCreator.ensureAll(names).values()
  const topics = answers.map((each, i) => {
    if (each !== 'create') return each
    if (created === undefined) return missingFor(asked[i]!, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return whenCreated(asked[i]!, created.next().value!, context)
  })
  return { body: answer(request, context, await Promise.all(topics)) }
}

function lookUp(asked: AskedTopic, request: MetadataRequest, context: RequestContext): TopicAnswer | 'create' {
  const { coordination, config } = context.services
  const { topics } = coordination.image
  const { name, topicId } = asked
  const missing = (errorCode: ErrorCode) => missingFor(asked, errorCode)
  if (topicId !== zeroUuid) {
    const topic = topics.byId(topicId)
    return topic === undefined ? missing(ErrorCode.UNKNOWN_TOPIC_ID) : found(topic)
  }
  if (name === null) return missing(ErrorCode.INVALID_REQUEST)
  const topic = topics.byName(name)
  if (topic !== undefined) return found(topic)
  if (!isLegalTopicName(name)) return missing(ErrorCode.INVALID_TOPIC_EXCEPTION)
  const mayCreate = request.allowAutoTopicCreation && config.values.autoCreateTopicsEnable
  return mayCreate ? 'create' : missing(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
}

async function whenCreated(
  asked: AskedTopic,
  creation: ReturnType<TopicCreator['ensure']>,
  context: RequestContext,
): Promise<TopicAnswer> {
  const { log } = context.services
  const topic = asked.name
  try {
    const created = await creation
    if (!('reason' in created)) return found(created)
    const { reason, message } = created
    log.debug({ topic, reason, detail: message }, 'topic not auto-created')
  } catch (error) {
    // No controller in time; clients ask again.
    log.debug({ topic, error }, 'topic not auto-created')
  }
  // Whatever the reason, also for a name that collides with another: it isn't told as an error of the name.
  return missingFor(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
}

function missingFor(asked: AskedTopic, errorCode: ErrorCode): TopicAnswer {
  return { topic: undefined, asked, errorCode }
}

function found(topic: TopicImage): TopicAnswer {
  return { topic }
}

function answer(request: MetadataRequest, context: RequestContext, topics: readonly TopicAnswer[]): Body {
  const { apiVersion, services } = context
  const brokers = liveEndpoints(context)
  const reachable = new Set(brokers.map(({ nodeId }) => nodeId))
  const authorized = (asked: boolean, operations: number) => (asked ? operations : operationsNotAsked)
  return {
    brokers,
    clusterId: services.clusterId,
    controllerId: controllerIdOf(brokers, context),
    topics: topics.map((each) =>
      each.topic === undefined
        ? missingTopic(each.asked, each.errorCode, apiVersion)
        : {
            errorCode: ErrorCode.NONE,
            name: each.topic.name,
            topicId: each.topic.topicId,
            isInternal: isInternalTopic(each.topic.name),
            partitions: each.topic.partitions.map((partition) =>
              partitionAnswer(partition, reachable, context, apiVersion >= 6),
            ),
            topicAuthorizedOperations: authorized(request.includeTopicAuthorizedOperations, topicOperations),
          },
    ),
    clusterAuthorizedOperations: authorized(request.includeClusterAuthorizedOperations, clusterOperations),
  }
}

function missingTopic({ name, topicId }: AskedTopic, errorCode: ErrorCode, apiVersion: number) {
  return {
    errorCode,
    name: nameTold(name, topicId, apiVersion),
    topicId,
    isInternal: name !== null && isInternalTopic(name),
    partitions: [],
  }
}

/** Who asks by an id is not told the name that stood beside it: it may be that of another topic. */
function nameTold(name: string | null, topicId: Uuid, apiVersion: number): string | null {
  if (apiVersion < 12) return name ?? ''
  return topicId === zeroUuid ? name : null
}
