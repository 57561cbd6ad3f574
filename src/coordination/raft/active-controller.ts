import type { BrokerId } from '../../base/index.ts'
import {
  allocateProducerIds,
  alterConfigs,
  alterPartition,
  alterPartitionReassignments,
  assignReplicasToDirs,
  BrokerSessions,
  balanceLeaders,
  type ConfigRules,
  type ControllerAnswer,
  ControllerLoop,
  type ControllerSettings,
  clusterStart,
  createPartitions,
  createTopics,
  type Decide,
  deleteTopics,
  electLeaders,
  electUncleanLeaders,
  fenceBroker,
  growInternalTopics,
  handleHeartbeat,
  isActive,
  listPartitionReassignments,
  type RecordSink,
  registerBroker,
  registerController,
  unregisterBroker,
  updateFeatures,
} from '../../controller/index.ts'
import type { MetadataImage, MetadataRecord } from '../../metadata/index.ts'
import type { Clock, Random } from '../../platform/index.ts'
import type { ControllerRequestKind, ControllerRequests } from '../controller-channel.ts'

export interface ActiveControllerOptions {
  readonly sink: RecordSink
  readonly platform: { readonly clock: Clock; readonly random: Random }
  readonly settings: ControllerSettings
  readonly configRules: ConfigRules
  readonly clusterId: string
  /** The broker on this very event loop: it lives as long as the controller does. Undefined where they have a thread each. */
  readonly localBrokerId: BrokerId | undefined
  readonly sessionTimeoutMs: number
  /** A decision that nobody asked for has a bug: there is no request to reject with it. */
  readonly onFault: (error: unknown) => void
}

/** What this node knows of another from before it was the controller. */
export interface PeerContact {
  readonly brokerId: BrokerId
  /** When it was last heard from, or its stream closed; of the monotonic clock. */
  readonly lastHeardMs: number
  readonly isConnected: boolean
}

/** Requests that may wait while the log is slow. One that finds the queue full is told so. */
const maxQueuedRequests = 10_000
/** A few MB: well below what the Raft log takes before it refuses. */
const maxUnstoredRecords = 50_000

/** Requests that are about metadata. The others are about the quorum, which Raft answers. */
export type DecisionKind = Exclude<ControllerRequestKind, 'describeQuorum' | 'addVoter' | 'updateVoter' | 'removeVoter'>

type Handlers = {
  readonly [Kind in DecisionKind]: (
    request: ControllerRequests[Kind]['request'],
  ) => Decide<ControllerRequests[Kind]['response']>
}

/**
 * The controller, where this node is it: each request becomes a decision with all that decisions may not take for
 * themselves (ids, a random start, who is alive), and the loop does the rest.
 */
export class ActiveController {
  readonly loop: ControllerLoop
  readonly #options: ActiveControllerOptions
  readonly #handlers: Handlers
  #sessions: BrokerSessions
  /** Those that `electUncleanLeaders` last went by. */
  #configsOfElection: MetadataImage['configs'] | undefined

  constructor(options: ActiveControllerOptions) {
    this.#options = options
    this.loop = new ControllerLoop({ sink: options.sink, maxQueuedRequests, maxUnstoredRecords })
    this.#sessions = new BrokerSessions(options.sessionTimeoutMs)
    this.#handlers = this.#makeHandlers()
  }

  /**
   * This node leads the quorum, and `image` holds all that was before. A new cluster gets its first entry. The silence of a
   * broker counts from what `contacts` say of it; from now where they say nothing.
   */
  activate(image: MetadataImage, contacts: Iterable<PeerContact> = []): void {
    this.#sessions = new BrokerSessions(this.#options.sessionTimeoutMs)
    for (const { brokerId, lastHeardMs, isConnected } of contacts) {
      const run = image.cluster.broker(brokerId)
      if (run !== undefined) this.#sessions.seed(run, lastHeardMs, isConnected)
    }
    this.#configsOfElection = undefined
    this.loop.activate(image)
    const { clusterId, settings } = this.#options
    if (clusterStart(image, clusterId, settings).length === 0) return
    this.#decide((head) => clusterStart(head, clusterId, settings))
  }

  ask<Kind extends DecisionKind>(
    kind: Kind,
    request: ControllerRequests[Kind]['request'],
  ): Promise<ControllerAnswer<ControllerRequests[Kind]['response']>> {
    const handler: Handlers[Kind] = this.#handlers[kind]
    return this.loop.submit(handler(request))
  }

  /** Fences the brokers that were silent for the session timeout; gives their ids. */
  fenceSilentBrokers(): readonly BrokerId[] {
    const { head } = this.loop
    if (head === undefined) return []
    const { localBrokerId, platform, settings } = this.#options
    const others = [...head.cluster.brokers()].filter((broker) => !broker.fenced && broker.brokerId !== localBrokerId)
    const silent = this.#sessions.expired(others, platform.clock.monotonic()).map((broker) => broker.brokerId)
    for (const brokerId of silent) this.#decide((image) => fenceBroker(image, brokerId, settings))
    return silent
  }

  /** The stream to that broker closed: its silence counts from now. */
  brokerDisconnected(brokerId: BrokerId): void {
    const run = this.loop.head?.cluster.broker(brokerId)
    if (run !== undefined) this.#sessions.disconnected(run, this.#options.platform.clock.monotonic())
  }

  /** The process of that broker was seen to be gone. It is fenced, unless the same was said of it lately and was wrong. */
  brokerGone(brokerId: BrokerId): boolean {
    const { localBrokerId, platform, settings } = this.#options
    const run = this.loop.head?.cluster.broker(brokerId)
    if (run === undefined || run.fenced || brokerId === localBrokerId) return false
    if (!this.#sessions.gone(run, platform.clock.monotonic())) return false
    this.#decide((image) => fenceBroker(image, brokerId, settings))
    return true
  }

  /** The `auto.leader.rebalance.enable` of a round; one that is unfinished goes on with the next. */
  balanceLeaders(maxImbalancePercentage: number): void {
    const { settings } = this.#options
    this.#decide((head) => balanceLeaders(head, { maxImbalancePercentage }, settings).records)
  }

  /** For partitions without a leader whose topics have come to allow it. Looks only when settings changed since it last did. */
  electUncleanLeaders(): void {
    const configs = this.loop.head?.configs
    if (configs === undefined || configs === this.#configsOfElection) return
    this.#configsOfElection = configs
    this.#decide((head) => electUncleanLeaders(head, this.#options.settings))
  }

  /** More replicas for internal topics, when there are more brokers. Asks nothing of the log when there is nothing to do. */
  growInternalTopics(): void {
    const { head } = this.loop
    const { settings } = this.#options
    if (head === undefined || growInternalTopics(head, settings).length === 0) return
    this.#decide((image) => growInternalTopics(image, settings))
  }

  /** Of the controller's own accord. Nobody waits for it: whatever is decided next comes after it in the log. */
  #decide(recordsFor: (head: MetadataImage) => readonly MetadataRecord[]): void {
    this.loop
      .submit((head) => ({ records: recordsFor(head), response: undefined }))
      .catch((error: unknown) => this.#options.onFault(error))
  }

  #makeHandlers(): Handlers {
    const { settings, configRules } = this.#options
    const { clock, random } = this.#options.platform
    return {
      createTopics: ({ requests, validateOnly }) => {
        const topicIds = requests.map(() => random.uuid())
        const placementStart = random.int(2 ** 31)
        const context = { settings, configRules, validateOnly, topicIds, placementStart }
        return (head) => createTopics(head, requests, context)
      },
      deleteTopics:
        ({ requests, validateOnly }) =>
        (head) =>
          deleteTopics(head, requests, { settings, validateOnly }),
      createPartitions: ({ requests, validateOnly }) => {
        const context = { settings, validateOnly, placementStart: random.int(2 ** 31) }
        return (head) => createPartitions(head, requests, context)
      },
      alterConfigs:
        ({ requests, validateOnly }) =>
        (head) =>
          alterConfigs(head, requests, { settings, configRules, validateOnly }),
      registerBroker: (registration) => (head, nextIndex) => {
        const registered = head.cluster.broker(registration.brokerId)
        const registeredRunIsAlive = registered !== undefined && this.#sessions.isAlive(registered, clock.monotonic())
        return registerBroker(head, registration, { settings, nextIndex, registeredRunIsAlive })
      },
      heartbeat: (heartbeat) => {
        const nowMs = clock.monotonic()
        const { brokerId, brokerEpoch } = heartbeat
        // Also when the queue is long: it did come in time. Only of the registered run: another's would take its place.
        if (this.loop.head?.cluster.broker(brokerId)?.brokerEpoch === brokerEpoch)
          this.#sessions.heard(heartbeat, nowMs)
        return (head) => {
          const othersKnowOfShutdown =
            head.cluster.broker(brokerId)?.inControlledShutdown === true &&
            this.#sessions.othersHave(heartbeat, otherActiveBrokers(head, brokerId), head.index, nowMs)
          return handleHeartbeat(head, heartbeat, { settings, othersKnowOfShutdown })
        }
      },
      unregisterBroker:
        ({ brokerId }) =>
        (head) =>
          unregisterBroker(head, brokerId, settings),
      registerController: (registration) => (head) => registerController(head, registration),
      alterPartition: (request) => (head) => alterPartition(head, request, settings),
      electLeaders: (request) => (head) => electLeaders(head, request, settings),
      alterPartitionReassignments: (request) => (head) => alterPartitionReassignments(head, request, settings),
      listPartitionReassignments:
        ({ partitions }) =>
        (head) => ({ records: [], response: listPartitionReassignments(head, partitions) }),
      assignReplicasToDirs: (request) => (head) => assignReplicasToDirs(head, request, settings),
      updateFeatures:
        ({ updates, validateOnly }) =>
        (head) =>
          updateFeatures(head, updates, { settings, validateOnly }),
      allocateProducerIds: (run) => (head) => allocateProducerIds(head, run),
    }
  }
}

function otherActiveBrokers(image: MetadataImage, brokerId: BrokerId) {
  return [...image.cluster.brokers()].filter((other) => other.brokerId !== brokerId && isActive(image, other.brokerId))
}
