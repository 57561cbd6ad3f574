import type { BrokerId } from '../base/index.ts'
import { partitionFor } from '../group/index.ts'
import { noLeader } from '../metadata/index.ts'
import { pause } from '../platform/index.ts'
import {
  apis,
  ErrorCode,
  type FindCoordinatorRequest,
  type FindCoordinatorResponse,
  type MessageInput,
} from '../protocol/index.ts'
import { defineApi, type RequestContext } from './api.ts'
import { endpointOf, type NodeEndpoint } from './endpoints.ts'
import { errorMessageOf } from './errors.ts'
import { inTurns } from './in-turns.ts'
import { offsetsTopic } from './topic-names.ts'

/**
 * FindCoordinator, 0 to 6.
 *
 *   1  key types: 0 group, 1 transaction, 2 share     3  flexible     4  many keys, an error for each; the key is echoed
 *
 * Differs from Kafka, for who tries it for the first time: the internal topic is created and its leader waited for, where
 * Kafka answers COORDINATOR_NOT_AVAILABLE and the client asks again. A coordinator that is still loading is waited for too;
 * after that the client is sent to it all the same, where it is told COORDINATOR_LOAD_IN_PROGRESS: clients expect the code
 * there, and one of them gives up on getting it here.
 *
 * Transactions are not built. The code must stop every client: in versions 0 to 2 that is
 * TRANSACTIONAL_ID_AUTHORIZATION_FAILED, since librdkafka, which speaks 2, asks again for a minute after any other. From 3 on it
 * is UNSUPPORTED_VERSION, after which Java shows the message that stands beside it.
 */
export const findCoordinator = defineApi({
  api: apis.FindCoordinator,
  versions: { min: 0, max: 6 },
  brief: true,
  async handle(request, context) {
    const keys = keysOf(request, context.apiVersion)
    const found = await inTurns(keys, context.services.platform.timers, (key) => find(key, request.keyType, context))
    return { body: answer(keys, found, context.apiVersion) }
  },
  fault(request, errorCode, apiVersion) {
    const keys = keysOf(request, apiVersion)
    return answer(
      keys,
      keys.map(() => refused(errorCode)),
      apiVersion,
    )
  },
})

type Body = MessageInput<typeof FindCoordinatorResponse>
interface Found {
  readonly errorCode: ErrorCode
  readonly errorMessage: string | null
  readonly nodeId: BrokerId
  readonly host: string
  readonly port: number
}

const groupKey = 0
const transactionKey = 1

/** How long a client waits here for a coordinator that is on its way, and how often that is looked at. */
const patienceMs = 3000
const lookAgainMs = 10

/** What a coordinator answers that this broker is about to be, or that loads. */
const notYetThere: ReadonlySet<string> = new Set(['not-coordinator', 'coordinator-load-in-progress'])

function keysOf(request: FindCoordinatorRequest, apiVersion: number): readonly string[] {
  return apiVersion >= 4 ? request.coordinatorKeys : [request.key]
}

function answer(keys: readonly string[], found: readonly Found[], apiVersion: number): Body {
  if (apiVersion >= 4) return { coordinators: keys.map((key, i) => ({ key, ...found[i]! })) }
  return found[0]!
}

function refused(errorCode: ErrorCode, errorMessage: string | null = errorMessageOf(errorCode)): Found {
  return { errorCode, errorMessage, nodeId: noLeader, host: '', port: -1 }
}

function find(key: string, keyType: number, context: RequestContext): Found | Promise<Found> {
  switch (keyType) {
    case groupKey:
      return findGroupCoordinator(key, context)
    case transactionKey:
      return refused(
        context.apiVersion <= 2 ? ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED : ErrorCode.UNSUPPORTED_VERSION,
        'This broker has no transactions',
      )
    default:
      return refused(ErrorCode.INVALID_REQUEST, `There are no coordinators of type ${keyType} here`)
  }
}

async function findGroupCoordinator(groupId: string, context: RequestContext): Promise<Found> {
  const { clock } = context.services.platform
  const deadlineMs = clock.monotonic() + patienceMs
  if (!(await hasOffsetsTopic(context))) return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
  for (;;) {
    const leader = leaderFor(groupId, context)
    const isOver = clock.monotonic() >= deadlineMs || context.connection.signal.aborted
    if (leader !== undefined && (isOver || (await isReady(groupId, leader.nodeId, context)))) {
      const { nodeId, host, port } = leader
      // Kafka's words, which some clients show.
      return { errorCode: ErrorCode.NONE, errorMessage: context.apiVersion >= 4 ? '' : 'NONE', nodeId, host, port }
    }
    if (isOver) return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    await pause(context.services.platform.timers, lookAgainMs)
  }
}

async function hasOffsetsTopic(context: RequestContext): Promise<boolean> {
  const { topicCreator, log } = context.services
  try {
    const created = await topicCreator.ensure(offsetsTopic)
    if (!('reason' in created)) return true
    // Another broker's request is creating it: this broker's image will have it in a moment.
    if (created.reason === 'topic-exists') return true
    log.warn({ topic: offsetsTopic, reason: created.reason, detail: created.message }, 'topic not created')
  } catch (error) {
    log.warn({ topic: offsetsTopic, error }, 'topic not created')
  }
  return false
}

/** The live leader of the group's partition, where this client reaches it. */
function leaderFor(groupId: string, context: RequestContext): NodeEndpoint | undefined {
  const { topics, cluster } = context.services.coordination.image
  const topic = topics.byName(offsetsTopic)
  if (topic === undefined) return undefined
  const { leader } = topic.partitions[partitionFor(groupId, topic.partitions.length)]!
  const broker = cluster.broker(leader)
  return broker === undefined || broker.fenced ? undefined : endpointOf(broker, context)
}

/** False while the coordinator is this broker and has not loaded the group. Of another broker it isn't known. */
async function isReady(groupId: string, leader: BrokerId, context: RequestContext): Promise<boolean> {
  const { brokerId, groups } = context.services
  if (leader !== brokerId) return true
  const [described] = await groups.describeGroups([groupId])
  // Any other refusal (a write of the group takes too long) comes from one that is loaded: waiting here would not mend it.
  return described!.ok || !notYetThere.has(described!.reason)
}
