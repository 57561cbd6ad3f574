import { createApiServices, Dispatcher, type Faults, servedApis } from '../api/index.ts'
import {
  assert,
  type BrokerId,
  type Deferred,
  deferred,
  isEveryAddress,
  messageOf,
  type Uuid,
  zeroUuid,
} from '../base/index.ts'
import { type BrokerValues, DynamicConfig, type ParsedConfig, resolveTopicConfig } from '../config/index.ts'
import { type Admin, type Coordination, CoordinationError, createRaftCoordination } from '../coordination/index.ts'
import { GroupCoordinator, groupTopic } from '../group/index.ts'
import { FlushScheduler, HandlePool, type LogManager, openLogManager } from '../log/index.ts'
import { directoryOf, type Endpoint, type MetadataImage, supportedFeatures } from '../metadata/index.ts'
import { type ConnectionFacts, type ConnectionLimits, KafkaServer, type RequestHandler } from '../network/index.ts'
import type { Clock, Platform, Timer } from '../platform/index.ts'
import { ReplicaManager, ReplicationQuotas } from '../replication/index.ts'
import { Metrics } from '../telemetry/index.ts'
import { type ControlPlane, controlConfigOf, LocalControlPlane } from './control-plane.ts'
import { ControlThread } from './control-thread.ts'
import { DirectoryAssignments } from './directory-assignments.ts'
import { askForIsrs } from './isr-answers.ts'
import type { StartingIdentity } from './node-peers.ts'
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
/** When a node that waits for a controller says so first, and then how often. */
const waitReportDelayMs = 3_000
const waitReportIntervalMs = 10_000

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
  readonly control: ControlPlane
  readonly coordination: Coordination
  /** Of this run of the process. */
  readonly incarnationId: Uuid
  /** Where other nodes reach it as a controller. */
  readonly endpoint: string | undefined
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
  #control: ControlPlane | undefined
  #coordination: Coordination | undefined
  #openFiles = shareOpenFiles(Number.POSITIVE_INFINITY)
  /** What only a node that serves has. */
  #serving: Serving | undefined
  /** Why it can't go on. */
  #fault: Error | undefined
  #pendingResets = 0
  #lastReset: Promise<void> = Promise.resolve()
  #hasStarted = false
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
      this.#control?.giveUp()
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
    this.#checkGoesOn()
    const control = this.#openControlPlane(incarnationId)
    const identity = await control.identify()
    this.#checkGoesOn()
    const logs = await this.#openLogs(identity)
    this.#checkGoesOn()
    const coordination = await this.#openCoordination(control, logs)
    this.#checkGoesOn()
    const parts = { logs, control, coordination, incarnationId, endpoint: identity?.endpoint }
    await (this.#config.roles.broker ? this.#startBroker(parts) : this.#startController(parts))
    this.#hasStarted = true
  }

  /** A node that only votes, and leads. */
  async #startController({ control, coordination, endpoint }: Parts): Promise<void> {
    const reports = this.#reportWaiting(control)
    await coordination.startWithoutBroker().finally(() => reports.stop())
    this.#stops.push(() => coordination.handOver())
    this.#options.logger.info({ nodeId: this.brokerId, clusterId: this.#clusterId, endpoint }, 'controller started')
  }

  async #startBroker({ logs, control, coordination, incarnationId }: Parts): Promise<void> {
    const { platform, logger, topics = [], time } = this.#options
    const { values } = this.#config
    const waitPlatform = time === undefined ? platform : { ...platform, ...time.waits }
    const windows = { count: values.replicationQuotaWindowNum, sizeMs: values.replicationQuotaWindowSizeSeconds * 1000 }
    const quotas = new ReplicationQuotas(waitPlatform.clock, windows, this.metrics)
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
      quotas,
    })
    this.#stops.push(async () => replicas.stop())
    this.#options.onAssembled?.({ coordination, replicas, logs })
    let observation: Observation | undefined
    const groups = this.#createGroups(coordination, replicas, () => observation?.onChange())
    observation = new Observation({ coordination, replicas, groups, platform })
    coordination.onMetadata((delta, image) => replicas.applyDelta(delta, image))
    const assignments = new DirectoryAssignments({
      coordination,
      brokerId: this.brokerId,
      timers: platform.timers,
      logger,
    })
    this.#stops.push(async () => assignments.stop())
    coordination.onMetadata((delta, image) => assignments.applyDelta(delta, image))
    logs.setListener({
      onDirectoryOffline: (path, error) => logger.error({ path, error: error.message }, 'log directory offline'),
      onDirectoryOnline: (path) => {
        logger.info({ path }, 'log directory online')
        replicas.reopenFailed(coordination.image)
        void replicas.deleteStrays()
      },
      // With one directory it fails as a whole, and the controller need not know what is in it, unless it knows another.
      onPlaced: ({ topicId, partition }, directoryId) => {
        const known = coordination.image.topics.byId(topicId)?.partitions[partition]
        const isAssigned = known !== undefined && directoryOf(known, this.brokerId) !== zeroUuid
        if (logs.directories().length > 1 || isAssigned) assignments.tell(topicId, partition, directoryId)
      },
    })
    const services = createApiServices({
      brokerId: this.brokerId,
      clusterId: this.#clusterId,
      config: this.#config,
      dynamicConfig: this.#dynamicConfig,
      replicas,
      logDirectories: {
        all: () => logs.directories(),
        move: (topic, partition, path) => logs.move(topic, partition, path),
        space: (path) => platform.files.space(path),
      },
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
      this.#applyConfig(image, server, logs, quotas)
      observation.onChange()
    })
    const reports = this.#reportWaiting(control)
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
    await replicas.deleteStrays()
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
  #reportWaiting(control: ControlPlane): { stop(): void } {
    const { platform, logger } = this.#options
    let isOver = false
    const report = async (): Promise<void> => {
      const waitsFor = await control.unreached()
      if (!isOver) logger.info({ waitsFor }, 'node waits for a controller')
    }
    const schedule = (delayMs: number): Timer =>
      platform.timers.set(delayMs, () => {
        report().catch(() => undefined) // its fault is told elsewhere
        timer = schedule(waitReportIntervalMs)
      })
    let timer = schedule(waitReportDelayMs)
    return {
      stop: () => {
        isOver = true
        timer.cancel()
      },
    }
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
    // Of one that never served, whoever started it tells why.
    if (this.#hasStarted) this.#options.logger.info({ brokerId: this.brokerId }, 'node stopped')
  }

  async #shareOpenFiles(): Promise<void> {
    const { platform, logger } = this.#options
    this.#openFiles = shareOpenFiles(await platform.files.maxOpen())
    const { isTight, limit, maxFiles, maxConnections } = this.#openFiles
    const advice = 'ulimit -n 65536 allows more'
    if (isTight) logger.warn({ limit, maxFiles, maxConnections, advice }, 'few files may be open at a time')
  }

  #openControlPlane(incarnationId: Uuid): ControlPlane {
    const { platform, logger, openRaftStorage, loadPeerServices, onRaft, threads } = this.#options
    const config = controlConfigOf(this.#config)
    const control =
      threads !== undefined && !config.isAlone
        ? new ControlThread({ config, threads, logger, incarnationId })
        : new LocalControlPlane({
            config,
            platform,
            logger,
            incarnationId,
            openRaftStorage,
            loadPeerServices,
            ...(onRaft === undefined ? {} : { onRaft }),
            scheduleSync: (work) => this.#scheduler.run('raft', work),
          })
    this.#control = control
    this.#stops.push(() => control.stop())
    return control
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

  async #openCoordination(control: ControlPlane, logs: LogManager): Promise<Coordination> {
    const { platform, logger } = this.#options
    const { values } = this.#config
    const { clusterId, metadataDirectory, metadataDirectoryId, isEmpty } = logs
    const quorum = await control.open({ clusterId, metadataDirectory, metadataDirectoryId, areEmpty: isEmpty })
    const coordination = createRaftCoordination({
      quorum,
      platform,
      logger: logger.child({ part: 'coordination' }),
      brokerId: this.brokerId,
      heartbeatIntervalMs: values.brokerHeartbeatIntervalMs,
      sessionTimeoutMs: values.brokerSessionTimeoutMs,
      logDirectories: () => directoryStates(logs, this.#config.isAlone),
    })
    this.#coordination = coordination
    coordination.onFault((error) => this.#fail(error))
    this.#stops.push(() => coordination.stop())
    return coordination
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
  #applyConfig(image: MetadataImage, server: KafkaServer, logs: LogManager, quotas: ReplicationQuotas): void {
    const { values } = this.#dynamicConfig.at(image.configs)
    quotas.leader.bytesPerSecond = values.leaderReplicationThrottledRate
    quotas.follower.bytesPerSecond = values.followerReplicationThrottledRate
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
  return isEveryAddress(host) ? 'localhost' : host
}
