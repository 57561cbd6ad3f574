import { join } from 'node:path'
import { createApiServices, Dispatcher, type Faults, servedApis } from '../api/index.ts'
import { assert, type BrokerId, type Deferred, deferred, messageOf, type Uuid } from '../base/index.ts'
import {
  type BrokerValues,
  DynamicConfig,
  listDefaultOf,
  type ParsedConfig,
  resolveTopicConfig,
  validateDynamicConfig,
  validateTopicOverrides,
} from '../config/index.ts'
import {
  type Admin,
  answerController,
  ControllerCalls,
  type Coordination,
  CoordinationError,
  createRaftCoordination,
  type PeerContact,
  type RaftCoordination,
  type RaftCoordinationOptions,
  type RemoteControllers,
} from '../coordination/index.ts'
import { GroupCoordinator, groupTopic } from '../group/index.ts'
import { FlushScheduler, HandlePool, type LogManager, openLogManager } from '../log/index.ts'
import { type Endpoint, type MetadataImage, supportedFeatures } from '../metadata/index.ts'
import { type ConnectionFacts, type ConnectionLimits, KafkaServer, type RequestHandler } from '../network/index.ts'
import type { Clock, Platform, Timer } from '../platform/index.ts'
import { type Membership, type NodeId, RaftNode, type Voter } from '../raft/index.ts'
import { ReplicaManager } from '../replication/index.ts'
import { loadGrpcNetwork, loadNodeMessages, RpcError } from '../rpc/index.ts'
import { Metrics } from '../telemetry/index.ts'
import { askForIsrs } from './isr-answers.ts'
import { NodePeers, type PeerServices, type StartingIdentity } from './node-peers.ts'
import { Observation } from './observation.ts'
import { shareOpenFiles } from './open-files.ts'
import { LedPartitionStore } from './partition-store.ts'
import { ResetError, type ResetOptions, type ResetParts, resetNode, startStateOf } from './reset.ts'
import type { NodeOptions, NodeTime, RunningNode } from './running-node.ts'
import { createDeclaredTopics } from './topic-declarations.ts'

/** How long requests that are under way may take to be answered when the node stops. */
const shutdownGraceMs = 5_000
/** Threads of libuv's pool where the program didn't say; syncs leave one of them to everything else. */
const defaultPoolThreads = 4
/** Replicas of the groups' topic when there are as many brokers, unless offsets.topic.replication.factor is set. */
const grownReplicationFactor = 3
/** How often the node that formed a cluster asks to be elected, until the others are so far. */
const firstElectionRetryMs = 100
const maxFirstElections = 20
/** When a node that waits for a controller says so first, and then how often. */
const waitReportDelayMs = 3_000
const waitReportIntervalMs = 10_000
/** A longer timer would be due at once. */
const maxTimerMs = 2 ** 31 - 1
const raftTickMs = 50
const minElectionTicks = 4
/** Where the metadata log lies in its log directory; Kafka's name for it. */
const metadataLogFolder = '__cluster_metadata-0'

/**
 * Puts a node together and starts it: folders and logs, the metadata quorum, replicas, coordinators, listeners. Resolves
 * when clients are served. When anything fails on the way, what was started is stopped again and the fault is thrown:
 * `ConfigError`, `OpenFilesError`, `StorageError`, `RaftStorageError`, `DirectoryLockedError`, `NetworkError`, `CoordinationError`.
 */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const node = new Node(options)
  try {
    await node.start()
  } catch (error) {
    await node.stop().catch((fault: unknown) => {
      options.logger.warn({ error: fault }, 'node that could not start cannot be stopped cleanly')
    })
    throw error
  }
  return node
}

interface Serving {
  readonly faults: Faults
  readonly observation: Observation
  readonly gate: Gate
  readonly reset: ResetParts
}

/** What nodes of all roles have. */
interface Parts {
  readonly logs: LogManager
  readonly peers: NodePeers | undefined
  readonly coordination: RaftCoordination
  /** Of this run of the process. */
  readonly incarnationId: Uuid
}

/** Stops a part that was started; kept in order of starting, run in the reverse. */
type Stop = () => Promise<void>

class Node implements RunningNode {
  readonly metrics: Metrics
  readonly #options: NodeOptions
  readonly #config: ParsedConfig
  readonly #dynamicConfig: DynamicConfig
  readonly #scheduler: FlushScheduler
  readonly #ended = deferred<void>()
  readonly #stops: Stop[] = []
  #peers: NodePeers | undefined
  #coordination: Coordination | undefined
  #openFiles = shareOpenFiles(Number.POSITIVE_INFINITY)
  /** What only a node that serves has. */
  #serving: Serving | undefined
  /** Why it can't go on. */
  #fault: Error | undefined
  #pendingResets = 0
  #lastReset: Promise<void> = Promise.resolve()
  #stopping: Promise<void> | undefined
  #clusterId = ''
  #bootstrapServers = ''

  constructor(options: NodeOptions) {
    this.#options = options
    this.#config = options.config
    this.#dynamicConfig = new DynamicConfig(options.config)
    this.metrics = options.metrics ?? new Metrics()
    this.#scheduler = new FlushScheduler({ maxConcurrent: (options.poolThreads ?? defaultPoolThreads) - 1 })
    this.#ended.promise.catch(() => undefined) // who doesn't listen has the log line
  }

  get brokerId(): BrokerId {
    return this.#config.nodeId
  }

  get clusterId(): string {
    return this.#clusterId
  }

  get bootstrapServers(): string {
    return this.#bootstrapServers
  }

  get ended(): Promise<void> {
    return this.#ended.promise
  }

  get faults(): Faults {
    return this.#served.faults
  }

  get admin(): Admin {
    return this.#started.admin
  }

  get controllerId(): BrokerId | null {
    return this.#started.state.controllerId
  }

  get observation(): Observation {
    return this.#served.observation
  }

  get #started(): Coordination {
    assert(this.#coordination !== undefined, 'the node was started')
    return this.#coordination
  }

  get #served(): Serving {
    assert(this.#serving !== undefined, 'the node was started, and is a broker')
    return this.#serving
  }

  async start(): Promise<void> {
    const { signal } = this.#options
    const giveUp = () => {
      this.#peers?.giveUp()
      this.#coordination?.giveUp()
    }
    signal?.addEventListener('abort', giveUp)
    try {
      await this.#start()
    } finally {
      signal?.removeEventListener('abort', giveUp)
    }
  }

  /** Between two steps of the start. */
  #checkGoesOn(): void {
    if (this.#options.signal?.aborted) throw new CoordinationError('stopped', 'The node was stopped while it started')
  }

  async #start(): Promise<void> {
    const { platform } = this.#options
    await this.#shareOpenFiles()
    const incarnationId = platform.random.uuid()
    const peers = await this.#openPeers(incarnationId)
    this.#checkGoesOn()
    const identity = await peers?.identify()
    this.#checkGoesOn()
    const logs = await this.#openLogs(identity)
    this.#checkGoesOn()
    const coordination = await this.#openCoordination({ logs, peers, identity, incarnationId })
    this.#checkGoesOn()
    const parts = { logs, peers, coordination, incarnationId }
    await (this.#config.roles.broker ? this.#startBroker(parts) : this.#startController(parts))
  }

  /** A node that only votes, and leads. */
  async #startController({ peers, coordination }: Parts): Promise<void> {
    const reports = this.#reportWaiting(peers)
    await coordination.startWithoutBroker().finally(() => reports.stop())
    this.#stops.push(() => coordination.handOver())
    const endpoint = peers?.endpoint
    this.#options.logger.info({ nodeId: this.brokerId, clusterId: this.#clusterId, endpoint }, 'controller started')
  }

  async #startBroker({ logs, peers, coordination, incarnationId }: Parts): Promise<void> {
    const { platform, logger, topics = [], time } = this.#options
    const { values } = this.#config
    const waitPlatform = time === undefined ? platform : { ...platform, ...time.waits }
    const replicas = new ReplicaManager({
      platform: waitPlatform,
      logger,
      localId: this.brokerId,
      logs,
      topicConfig: (topic, image) => this.#topicConfig(topic, image),
      brokerEpoch: () => coordination.brokerEpoch,
      askForIsrs: askForIsrs(coordination),
      maxLagMs: values.replicaLagTimeMaxMs,
      fetching: {
        listenerName: this.#config.interBrokerListenerName,
        settings: {
          maxWaitMs: values.replicaFetchWaitMaxMs,
          minBytes: values.replicaFetchMinBytes,
          maxPartitionBytes: values.replicaFetchMaxBytes,
          maxBytes: values.replicaFetchResponseMaxBytes,
          backoffMs: values.replicaFetchBackoffMs,
          requestTimeoutMs: values.replicaSocketTimeoutMs,
        },
      },
    })
    this.#stops.push(async () => replicas.stop())
    this.#options.onAssembled?.({ coordination, replicas, logs })
    let observation: Observation | undefined
    const groups = this.#createGroups(coordination, replicas, () => observation?.onChange())
    observation = new Observation({ coordination, replicas, groups, platform })
    coordination.onMetadata((delta, image) => replicas.applyDelta(delta, image))
    logs.setListener({
      onDirectoryOffline: (path, error) => logger.error({ path, error: error.message }, 'log directory offline'),
      onDirectoryOnline: (path) => {
        logger.info({ path }, 'log directory online')
        replicas.reopenFailed(coordination.image)
      },
    })
    const services = createApiServices({
      brokerId: this.brokerId,
      clusterId: this.#clusterId,
      config: this.#config,
      dynamicConfig: this.#dynamicConfig,
      replicas,
      logDirectories: { all: () => logs.directories(), space: (path) => platform.files.space(path) },
      coordination,
      groups,
      platform: waitPlatform,
      log: logger,
      metrics: this.metrics,
    })
    const dispatcher = new Dispatcher(services, servedApis)
    const gate = new Gate(dispatcher)
    const server = this.#createServer(gate)
    const endpoints = await this.#listen(server)
    coordination.onMetadata((_delta, image) => {
      this.#applyConfig(image, server, logs)
      observation.onChange()
    })
    const reports = this.#reportWaiting(peers)
    const started = coordination.start({
      brokerId: this.brokerId,
      incarnationId,
      clusterId: this.#clusterId,
      endpoints,
      rack: this.#config.values.brokerRack,
      logDirs: logs.directoryIds,
      features: supportedFeatures,
      previousBrokerEpoch: logs.cleanBrokerEpoch,
    })
    await started.finally(() => reports.stop())
    await replicas.whenOpened()
    this.#checkGoesOn()
    await replicas.deleteStrays(coordination.image)
    await createDeclaredTopics(coordination.admin, topics, logger)
    await replicas.whenOpened()
    const atStart = startStateOf(coordination.image, this.brokerId, topics)
    const reset = { coordination, replicas, groups, observation, atStart }
    this.#serving = { faults: dispatcher.faults, observation, gate, reset }
    this.#stops.push(async () => observation.end(undefined))
    this.#stops.push(() => coordination.handOver()) // first of all: everything else still serves
    gate.open()
    logger.info({ brokerId: this.brokerId, clusterId: this.#clusterId, endpoints }, 'node started')
  }

  /** Says, every few seconds until it is stopped, that this node waits for others. */
  #reportWaiting(peers: NodePeers | undefined): { stop(): void } {
    const { platform, logger } = this.#options
    const schedule = (delayMs: number): Timer =>
      platform.timers.set(delayMs, () => {
        logger.info({ waitsFor: peers?.unreached() }, 'node waits for a controller')
        timer = schedule(waitReportIntervalMs)
      })
    let timer = schedule(waitReportDelayMs)
    return { stop: () => timer.cancel() }
  }

  reset(options: ResetOptions = {}): Promise<void> {
    if (this.#stopping !== undefined) return Promise.reject(new ResetError('The broker was not reset: it is stopped'))
    const { gate, reset, faults } = this.#served
    this.#pendingResets++
    gate.close()
    const done = this.#lastReset.then(async () => {
      faults.clear()
      try {
        await resetNode(reset, options)
      } catch (error) {
        if (error instanceof ResetError) throw error
        throw new ResetError(`The broker was not reset: ${messageOf(error)}`, { cause: error })
      } finally {
        if (--this.#pendingResets === 0) gate.open()
      }
    })
    this.#lastReset = done.catch(() => undefined)
    return done
  }

  stop(): Promise<void> {
    // A reset that goes on would delete files in a folder that is another node's by then.
    this.#stopping ??= this.#lastReset.then(() => this.#stopAll())
    return this.#stopping
  }

  async #stopAll(): Promise<void> {
    let failure: { readonly error: unknown } | undefined
    for (const stop of this.#stops.splice(0).reverse()) {
      try {
        await stop()
      } catch (error) {
        failure ??= { error } // the other parts are stopped all the same
      }
    }
    this.#ended.resolve()
    if (failure !== undefined) throw failure.error
    this.#options.logger.info({ brokerId: this.brokerId }, 'node stopped')
  }

  async #shareOpenFiles(): Promise<void> {
    const { platform, logger } = this.#options
    this.#openFiles = shareOpenFiles(await platform.files.maxOpen())
    const { isTight, limit, maxFiles, maxConnections } = this.#openFiles
    const advice = 'ulimit -n 65536 allows more'
    if (isTight) logger.warn({ limit, maxFiles, maxConnections, advice }, 'few files may be open at a time')
  }

  /** Undefined for a node alone. It listens from now on: the voters of a new cluster have to find each other first. */
  async #openPeers(incarnationId: Uuid): Promise<NodePeers | undefined> {
    const { platform, logger, loadPeerServices = loadGrpcServices } = this.#options
    if (this.#config.isAlone) return undefined
    const peers = new NodePeers(this.#config, platform, logger, await loadPeerServices(), incarnationId)
    this.#peers = peers
    this.#stops.push(() => peers.stop())
    await peers.listen()
    return peers
  }

  async #openLogs(identity: StartingIdentity | undefined): Promise<LogManager> {
    const { platform, logger, openLogs = openLogManager, time } = this.#options
    const logs = await openLogs({
      platform: time === undefined ? platform : { ...platform, clock: stampingClock(time, platform) },
      retentionTimers: time?.rules.timers,
      logger,
      metrics: this.metrics,
      config: this.#config,
      scheduler: this.#scheduler,
      ...(identity === undefined ? {} : { identity }),
      handles: new HandlePool(platform.files, {
        maxOpen: this.#openFiles.maxIdleFiles,
        hardLimit: this.#openFiles.maxFiles,
      }),
    })
    this.#stops.push(() => logs.close(this.#coordination?.brokerEpoch))
    this.#clusterId = logs.clusterId
    return logs
  }

  async #openCoordination({
    logs,
    peers,
    identity,
    incarnationId,
  }: Omit<Parts, 'coordination'> & { readonly identity: StartingIdentity | undefined }): Promise<RaftCoordination> {
    const { platform, logger, openRaftStorage } = this.#options
    const { values } = this.#config
    const id = this.brokerId as number as NodeId
    const directoryId = logs.metadataDirectoryId
    const storage = await openRaftStorage({
      directory: join(logs.metadataDirectory, metadataLogFolder),
      platform,
      scheduleSync: (work) => this.#scheduler.run('raft', work),
      bootstrap: bootstrapOf(logs, identity, { id, directoryId }),
    })
    const raft = new RaftNode({
      id,
      directoryId,
      storage,
      transport: peers?.transport,
      platform,
      logger: logger.child({ part: 'raft' }),
      tickMs: raftTickMs,
      config: {
        electionTicks: ticksOf(values.controllerQuorumFetchTimeoutMs),
        campaignTicks: ticksOf(values.controllerQuorumElectionTimeoutMs),
      },
    })
    this.#stops.push(() => raft.stop())
    checkVoters(raft.state.membership, this.#config)
    const calls =
      peers === undefined
        ? undefined
        : new ControllerCalls({ ...peers.services, brokerId: this.brokerId, clusterId: () => this.#clusterId })
    const isDefault = this.#config.entries.get('offsets.topic.replication.factor')?.source === 'default'
    const coordination = createRaftCoordination({
      raft,
      ...(calls === undefined || peers === undefined
        ? {}
        : { remote: remoteControllers(peers, calls), contacts: () => contactsOf(peers) }),
      ...(peers?.endpoint === undefined
        ? {}
        : { asController: this.#asController(peers.endpoint, directoryId, incarnationId) }),
      platform,
      logger: logger.child({ part: 'coordination' }),
      brokerId: this.brokerId,
      clusterId: this.#clusterId,
      controller: {
        defaultPartitionCount: values.numPartitions,
        defaultReplicationFactor: values.defaultReplicationFactor,
        topicDeletionEnabled: values.deleteTopicEnable,
        defaultMinInSyncReplicas: values.minInsyncReplicas,
        uncleanLeaderElectionEnabled: values.uncleanLeaderElectionEnable,
        nodeId: this.brokerId,
        growingTopics: new Map(isDefault ? [[groupTopic, grownReplicationFactor]] : []),
        fixedTopics: new Set([groupTopic]),
      },
      configRules: {
        topicFault: validateTopicOverrides,
        brokerFault: validateDynamicConfig,
        listDefault: listDefaultOf,
      },
      heartbeatIntervalMs: values.brokerHeartbeatIntervalMs,
      sessionTimeoutMs: values.brokerSessionTimeoutMs,
      logDirectories: () => directoryStates(logs, this.#config.isAlone),
      leaderBalanceIntervalMs: values.autoLeaderRebalanceEnable
        ? Math.min(values.leaderImbalanceCheckIntervalSeconds * 1000, maxTimerMs)
        : undefined,
      maxBytesBetweenSnapshots: values.metadataLogMaxRecordBytesBetweenSnapshots,
      maxSnapshotIntervalMs: values.metadataLogMaxSnapshotIntervalMs,
    })
    this.#coordination = coordination
    coordination.onFault((error) => this.#fail(error))
    if (peers !== undefined) {
      peers.findLeaderFor(raft)
      await peers.forgetForming()
      peers.formatted(this.#clusterId, raft.state.membership.voters)
      peers.serve(
        (request) => answerController(request, peers.services.messages, coordination.controller, this.#clusterId),
        () => ({ ...raft.state, voters: raft.state.membership.voters }),
      )
      peers.transport.onPeers({
        onConnected: (node) => coordination.onNodeConnected(node as number as BrokerId),
        onCrashed: (node) => coordination.onNodeCrashed(node as number as BrokerId),
      })
    }
    this.#stops.push(() => coordination.stop())
    if (identity?.voters?.[0]?.id === id) this.#electFirst(raft)
    return coordination
  }

  #asController(
    endpoint: string,
    directoryId: Uuid,
    incarnationId: Uuid,
  ): NonNullable<RaftCoordinationOptions['asController']> {
    const { values, quorumVoters, controllerListeners } = this.#config
    const endpoints = controllerListeners.map(
      ({ name, host, port, advertisedHost, advertisedPort, securityProtocol }) => {
        return { name, host: advertisedHost ?? host, port: advertisedPort ?? port, securityProtocol }
      },
    )
    return {
      registration: {
        controllerId: this.brokerId,
        incarnationId,
        clusterId: this.#clusterId,
        endpoints,
        features: supportedFeatures,
      },
      directoryId,
      endpoint,
      joins: values.controllerQuorumAutoJoinEnable && quorumVoters.length === 0,
    }
  }

  /** Whoever formed the cluster need not wait for silence, since nobody leads it yet: it asks until the others are up. */
  #electFirst(raft: RaftNode, attempts = maxFirstElections): void {
    const { term, leaderId } = raft.state
    if (term > 0 || leaderId !== null || attempts === 0 || this.#stopping !== undefined) return
    raft.campaign()
    this.#options.platform.timers.set(firstElectionRetryMs, () => this.#electFirst(raft, attempts - 1))
  }

  #createGroups(coordination: Coordination, replicas: ReplicaManager, onChange: () => void): GroupCoordinator {
    const { platform, logger, time } = this.#options
    const { values } = this.#config
    const maxBatchBytes = (topic: string) => this.#topicConfig(topic, coordination.image).maxMessageBytes
    const groups = new GroupCoordinator({
      config: {
        minSessionTimeoutMs: values.groupMinSessionTimeoutMs,
        maxSessionTimeoutMs: values.groupMaxSessionTimeoutMs,
        initialRebalanceDelayMs: values.groupInitialRebalanceDelayMs,
        groupMaxSize: values.groupMaxSize,
        offsetMetadataMaxBytes: values.offsetMetadataMaxBytes,
        offsetsRetentionMs: values.offsetsRetentionMinutes * 60_000,
        offsetsRetentionCheckIntervalMs: values.offsetsRetentionCheckIntervalMs,
      },
      store: new LedPartitionStore(replicas, maxBatchBytes),
      platform,
      ruleTime: time?.rules,
      onChange,
      logger: logger.child({ part: 'group' }),
      metrics: this.metrics,
      partitionCount: () => coordination.image.topics.byName(groupTopic)?.partitions.length,
      writeTimeoutMs: values.offsetsCommitTimeoutMs,
    })
    replicas.onLeadership({
      onLeader: ({ topic, partition, leaderEpoch }) => {
        if (topic === groupTopic) groups.becomeLeader(partition, leaderEpoch)
      },
      onResigned: (topic, partition, leaderEpoch) => {
        if (topic === groupTopic) groups.resign(partition, leaderEpoch)
      },
      onTopicsDeleted: (topics) => {
        void groups.onTopicsDeleted(topics.map(({ name, topicId }) => ({ topic: name, topicId })))
      },
    })
    this.#stops.push(async () => groups.stop())
    return groups
  }

  #createServer(handler: RequestHandler): KafkaServer {
    const { platform, logger } = this.#options
    const { values, requestMemoryBytes } = this.#config
    const server = new KafkaServer({
      platform,
      handler,
      log: logger.child({ part: 'network' }),
      metrics: this.metrics,
      maxRequestBytes: values.socketRequestMaxBytes,
      maxQueuedBytes: requestMemoryBytes,
      maxIdleMs: values.connectionsMaxIdleMs,
      connectionLimits: this.#connectionLimits(values),
    })
    // With a fault nothing that waits for others is answered, and they go on only when this node is seen to be gone.
    this.#stops.push(() => server.close(this.#fault === undefined ? shutdownGraceMs : 0))
    return server
  }

  async #listen(server: KafkaServer): Promise<Endpoint[]> {
    const endpoints: Endpoint[] = []
    for (const { name, host, port, advertisedHost, advertisedPort, securityProtocol } of this.#config.listeners) {
      const bound = await server.listen({ name, host, port })
      const endpoint = { name, host: advertisedHost ?? host, port: advertisedPort ?? bound.port, securityProtocol }
      endpoints.push(endpoint)
    }
    const [first] = endpoints
    if (first !== undefined) this.#bootstrapServers = `${reachable(first.host)}:${first.port}`
    return endpoints
  }

  /** Settings of the cluster's metadata that are not those of a topic. */
  #applyConfig(image: MetadataImage, server: KafkaServer, logs: LogManager): void {
    const { values } = this.#dynamicConfig.at(image.configs)
    server.connectionLimits = this.#connectionLimits(values)
    logs.updateBrokerConfig(values)
  }

  #connectionLimits(values: BrokerValues): ConnectionLimits {
    return {
      max: Math.min(values.maxConnections, this.#openFiles.maxConnections),
      maxPerAddress: values.maxConnectionsPerIp,
      overrides: values.maxConnectionsPerIpOverrides,
    }
  }

  #topicConfig(topic: string, image: MetadataImage) {
    return resolveTopicConfig(image.configs.of('topic', topic), this.#dynamicConfig.at(image.configs))
  }

  /** The metadata quorum can't go on: what this node promised stands only if it ends now. */
  #fail(error: Error): void {
    this.#fault ??= error
    this.#options.logger.error({ error: messageOf(error) }, 'node has to end')
    this.#serving?.observation.end(error)
    this.#ended.reject(error)
  }
}

/** Connections are taken before the node serves, so that its ports are known, and while it is reset; their requests wait for it. */
class Gate implements RequestHandler {
  readonly #handler: RequestHandler
  /** Undefined while it is open. */
  #opening: Deferred<void> | undefined = deferred<void>()

  constructor(handler: RequestHandler) {
    this.#handler = handler
  }

  open(): void {
    this.#opening?.resolve()
    this.#opening = undefined
  }

  close(): void {
    this.#opening ??= deferred<void>()
  }

  mayOverlap(apiKey: number): boolean {
    return this.#handler.mayOverlap(apiKey)
  }

  isBrief(apiKey: number): boolean {
    return this.#handler.isBrief(apiKey)
  }

  handle(frame: Buffer, connection: ConnectionFacts): ReturnType<RequestHandler['handle']> {
    if (this.#opening === undefined) return this.#handler.handle(frame, connection)
    return this.#opening.promise.then(() => this.handle(frame, connection))
  }
}

/** The voters that an empty metadata log begins with; undefined where there must be a log already. */
function bootstrapOf(logs: LogManager, identity: StartingIdentity | undefined, self: Voter): Membership | undefined {
  if (identity !== undefined) return identity.voters === undefined ? undefined : { voters: identity.voters }
  // Partitions without the metadata that names them mean that the metadata log is lost: never start a new one beside them.
  return logs.isEmpty ? { voters: [self] } : undefined
}

/**
 * The log says who votes, and `controller.quorum.voters` where it is set, or a node is alone: they have to mean the same. A log without
 * voters is that of a node that follows until it is told. Throws `CoordinationError`.
 */
function checkVoters({ voters }: Membership, { quorumVoters, nodeId, isAlone }: ParsedConfig): void {
  if (voters.length === 0 || (quorumVoters.length === 0 && !isAlone)) return
  const inLog = voters.map(({ id }) => id as number).sort((a, b) => a - b)
  const named = quorumVoters.map((voter) => voter.nodeId)
  const inSettings = (named.length === 0 ? [nodeId as number] : named).sort((a, b) => a - b)
  if (inLog.join() === inSettings.join()) return
  const settings = `controller.quorum.voters ${named.length === 0 ? 'is not set, which means' : 'names'} ${inSettings.join(', ')}`
  const advice = 'controller.quorum.bootstrap.servers in its place is for a cluster whose voters change'
  throw new CoordinationError(
    'wrong-cluster',
    `${settings}, but the cluster has the voters ${inLog.join(', ')}; ${advice}`,
  )
}

/** Of the Raft clock; at least as many as let it tell a slow leader from none. */
function ticksOf(ms: number): number {
  return Math.max(minElectionTicks, Math.ceil(ms / raftTickMs))
}

async function loadGrpcServices(): Promise<PeerServices> {
  const [network, messages] = await Promise.all([loadGrpcNetwork(), loadNodeMessages()])
  return { network, messages }
}

function remoteControllers(peers: NodePeers, calls: ControllerCalls): RemoteControllers {
  return {
    async ask(controller, kind, request, timeoutMs) {
      const target = peers.targetOf(controller)
      if (target === undefined) throw new RpcError('unavailable', `Nobody knows where node ${controller} is`)
      return await calls.ask(target, kind, request, timeoutMs)
    },
  }
}

function contactsOf(peers: NodePeers): PeerContact[] {
  return peers.transport.signs.map(({ id, ...sign }) => ({ brokerId: id as number as BrokerId, ...sign }))
}

/**
 * Directories that could not even be opened have no id, and are not registered. A node alone tells nobody that one is full: nobody could lead in
 * its place, and it would not serve reads without leading.
 */
function directoryStates(
  logs: LogManager,
  isAlone: boolean,
): { readonly online: readonly Uuid[]; readonly offline: readonly Uuid[] } {
  const known = logs.directories().flatMap(({ directoryId, error }) => (directoryId ? [{ directoryId, error }] : []))
  const idsOf = (isOnline: boolean) =>
    known
      .filter(({ error }) => (error === undefined || (isAlone && error.isDiskFull)) === isOnline)
      .map(({ directoryId }) => directoryId)
  return { online: idsOf(true), offline: idsOf(false) }
}

/** The logs' clock: ages and stamps by the rules' time, while it measures how long the disk takes. */
function stampingClock({ rules }: NodeTime, { clock }: Platform): Clock {
  return { now: () => rules.clock.now(), monotonic: () => clock.monotonic() }
}

/** A host that this machine itself can connect to. */
function reachable(host: string): string {
  return host === '::' || host === '0.0.0.0' || host === '' ? 'localhost' : host
}
