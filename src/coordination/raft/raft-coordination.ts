import {
  assert,
  type BrokerEpoch,
  type BrokerId,
  type ControllerEpoch,
  messageOf,
  type ProducerId,
} from '../../base/index.ts'
import type {
  AlterPartitionResult,
  BrokerRegistration,
  ConfigRules,
  ControllerAnswer,
  ControllerSettings,
  IsrChange,
  RecordSink,
} from '../../controller/index.ts'
import { encodeRecords, type MetadataDelta, type MetadataImage } from '../../metadata/index.ts'
import { type Clock, pause, type Random, type Timer, type Timers } from '../../platform/index.ts'
import type { Entry, Leadership, RaftNode, Snapshot } from '../../raft/index.ts'
import { RpcError } from '../../rpc/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { ControllerChannel, ControllerRequestKind, ControllerRequests } from '../controller-channel.ts'
import type {
  Admin,
  AdminOptions,
  Coordination,
  CoordinationState,
  MetadataListener,
  TimeLimit,
} from '../coordination.ts'
import { CoordinationError } from '../coordination-error.ts'
import { Gate } from '../gate.ts'
import { BrokerLifecycle, type DirectoryStates } from '../lifecycle/broker-lifecycle.ts'
import { ControllerLifecycle, type ControllerLifecycleOptions } from '../lifecycle/controller-lifecycle.ts'
import { ActiveController, type PeerContact } from './active-controller.ts'
import { MetadataLoader } from './metadata-loader.ts'
import { LeaderChannel } from './quorum-requests.ts'
import { SnapshotSchedule } from './snapshot-schedule.ts'

/** The way to controllers on other nodes. */
export interface RemoteControllers {
  /** Throws `RpcError`: nobody knows whether the request got there. */
  ask<Kind extends ControllerRequestKind>(
    controller: BrokerId,
    kind: Kind,
    request: ControllerRequests[Kind]['request'],
    timeoutMs: number,
  ): Promise<ControllerAnswer<ControllerRequests[Kind]['response']>>
}

export interface RaftCoordinationOptions {
  /** Not started yet: the coordination starts and stops it. */
  readonly raft: RaftNode
  readonly platform: { readonly clock: Clock; readonly timers: Timers; readonly random: Random }
  readonly logger: Logger
  /** Undefined where this node is the whole quorum. */
  readonly remote?: RemoteControllers
  /** What this node knows of others when it becomes the controller: their silence counts from then on. */
  readonly contacts?: () => Iterable<PeerContact>
  /** The node's id, also of one that is no broker. */
  readonly brokerId: BrokerId
  /** What a node with the role of a controller, and others around it, tells of itself. */
  readonly asController?: Pick<ControllerLifecycleOptions, 'registration' | 'directoryId' | 'endpoint' | 'joins'>
  /** Of this node's meta.properties. A new log gets it in its first entry; one that has another is refused. */
  readonly clusterId: string
  readonly controller: ControllerSettings
  readonly configRules: ConfigRules
  /** `broker.heartbeat.interval.ms`. */
  readonly heartbeatIntervalMs: number
  /** `broker.session.timeout.ms`. */
  readonly sessionTimeoutMs: number
  /** None where it is left out: those of the registration stay as they are. */
  readonly logDirectories?: () => DirectoryStates
  /**
   * `leader.imbalance.check.interval.seconds`, in ms. Undefined: leaderships are not given back to preferred replicas by
   * themselves (`auto.leader.rebalance.enable`).
   */
  readonly leaderBalanceIntervalMs?: number | undefined
  /** `metadata.log.max.record.bytes.between.snapshots`. */
  readonly maxBytesBetweenSnapshots: number
  /** `metadata.log.max.snapshot.interval.ms`; 0 for any. */
  readonly maxSnapshotIntervalMs: number
  /** 10,000 unless given: each is replayed at a start. */
  readonly maxEntriesBetweenSnapshots?: number
}

/** How long `start` waits for a controller, and for another run of this broker to be given up. Kafka's is the same. */
const registrationTimeoutMs = 60_000
/** A longer one would be due at once. */
const longestTimerMs = 2 ** 31 - 1
/** How long a node that stops waits until its leaderships are handed over. */
const shutdownTimeoutMs = 5_000
/** How long it waits for a controller to hand them over: longer than an election takes where there is a quorum. */
const shutdownControllerMs = 2_000
/** How often brokers are looked at: one that hangs is fenced later than its session by as much as passes between two. */
const looksPerSession = 8
/** How long a change of ISRs may take before it is asked for again. */
const alterPartitionTimeoutMs = 30_000
/** Before another attempt, where the controller was another one than was believed, or could not be reached. */
const controllerRetryMs = 20
/** How long a block of producer ids may take. */
const producerIdsTimeoutMs = 30_000

/** As Kafka's since it has Raft: no partition is too few to be put right. */
const maxImbalancePercentage = 0
/** Requests that may be made twice: a second one finds what the first did, or does no harm. */
const repeatable: ReadonlySet<ControllerRequestKind> = new Set([
  'registerBroker',
  'heartbeat',
  'allocateProducerIds',
  'alterPartition',
  'listPartitionReassignments',
  'describeQuorum',
  'registerController',
  'updateVoter',
])

export function createRaftCoordination(options: RaftCoordinationOptions): RaftCoordination {
  return new RaftCoordination(options)
}

/**
 * One node's part in a cluster whose metadata is the log of a Raft quorum. What happens when an entry is committed, in
 * this order: image and delta, listeners, the controller's answers (where this node is it), requests that waited for the image.
 */
export class RaftCoordination implements Coordination {
  readonly #options: RaftCoordinationOptions
  readonly #raft: RaftNode
  readonly #logger: Logger
  readonly #loader: MetadataLoader
  readonly #controller: ActiveController
  readonly #leader: LeaderChannel
  readonly #snapshots: SnapshotSchedule
  readonly #gate: Gate
  readonly #listeners: MetadataListener[] = []
  readonly #faultListeners: ((error: Error) => void)[] = []
  #lifecycle: BrokerLifecycle | undefined
  #controllerLifecycle: ControllerLifecycle | undefined
  #sessionTimer: Timer | undefined
  #balanceTimer: Timer | undefined
  /** Term in which this node is the active controller. */
  #controllerTerm: number | undefined
  /** Nodes whose processes have ended, as far as this node sees; what a new controller begins with. */
  readonly #crashed = new Set<BrokerId>()
  /** Whether the node is about to stop ('soon': it hands over what it leads), and so waits for nothing. */
  #leaves: 'no' | 'soon' | 'now' = 'no'
  #fault: Error | undefined

  readonly admin: Admin = {
    createTopics: (requests, options) => this.#change('createTopics', requests, options),
    deleteTopics: (requests, options) => this.#change('deleteTopics', requests, options),
    createPartitions: (requests, options) => this.#change('createPartitions', requests, options),
    alterConfigs: (requests, options) => this.#change('alterConfigs', requests, options),
    electLeaders: (request, options) => this.#askWithin('electLeaders', request, options),
    alterPartitionReassignments: (request, options) => this.#askWithin('alterPartitionReassignments', request, options),
    listPartitionReassignments: (partitions, options) =>
      this.#askWithin('listPartitionReassignments', { partitions }, options),
    updateFeatures: (updates, options) =>
      this.#askWithin('updateFeatures', { updates, validateOnly: options.validateOnly ?? false }, options),
    unregisterBroker: (brokerId, options) => this.#askWithin('unregisterBroker', { brokerId }, options),
    describeQuorum: (options) => this.#askWithin('describeQuorum', {}, options),
    addVoter: ({ id, directoryId, endpoint }, options) =>
      this.#askWithin('addVoter', { id, directoryId, endpoint, timeoutMs: options.timeoutMs }, options),
    removeVoter: ({ id, directoryId }, options) =>
      this.#askWithin('removeVoter', { id, directoryId, timeoutMs: options.timeoutMs }, options),
  }

  constructor(options: RaftCoordinationOptions) {
    const { raft, platform, logger, clusterId, sessionTimeoutMs, configRules } = options
    this.#options = options
    this.#raft = raft
    this.#logger = logger
    this.#loader = new MetadataLoader(clusterId, (delta, image) => this.#publish(delta, image))
    this.#controller = new ActiveController({
      sink: this.#makeSink(),
      platform,
      settings: options.controller,
      configRules,
      clusterId,
      localBrokerId: options.brokerId,
      sessionTimeoutMs,
      onFault: (error) => this.#onFault(error),
    })
    this.#leader = new LeaderChannel(raft, this.#controller)
    this.#gate = new Gate(platform)
    this.#snapshots = new SnapshotSchedule({
      limits: {
        maxBytes: options.maxBytesBetweenSnapshots,
        maxIntervalMs: options.maxSnapshotIntervalMs,
        maxEntries: options.maxEntriesBetweenSnapshots ?? 10_000,
      },
      platform,
      image: () => this.#loader.applied,
      save: (index, data) => raft.takeSnapshot(index, data),
    })
    raft.onCommitted((entries) => this.#onCommitted(entries))
    raft.onSnapshot((snapshot) => this.#onSnapshot(snapshot))
    raft.onLeadership((leadership) => this.#onLeadership(leadership))
    raft.onLeaderChange(() => this.#gate.notify())
    raft.onFault((error) => this.#onFault(error))
    raft.onFullDisk(() => {
      if (this.#leaves !== 'no') this.giveUp()
      if (this.#leaves === 'now') void raft.stop()
    })
  }

  get image(): MetadataImage {
    return this.#loader.published
  }

  /** This node's controller, for requests of others: it refuses them while it isn't active. */
  get controller(): ControllerChannel {
    return this.#leader
  }

  /** The process of a node was seen to have ended: the active controller, now or soon, fences its broker at once. */
  onNodeCrashed(node: BrokerId): void {
    this.#crashed.add(node)
    if (this.#controllerTerm !== undefined) this.#fenceCrashed(node)
  }

  onNodeConnected(node: BrokerId): void {
    this.#crashed.delete(node)
  }

  get state(): CoordinationState {
    const { term, leaderId } = this.#raft.state
    return {
      mode: 'raft',
      controllerId: leaderId as BrokerId | null,
      controllerEpoch: term as number as ControllerEpoch,
      appliedIndex: this.#loader.published.index,
    }
  }

  get brokerEpoch(): BrokerEpoch | undefined {
    return this.#lifecycle?.brokerEpoch
  }

  onMetadata(listener: MetadataListener): void {
    this.#listeners.push(listener)
  }

  onFault(listener: (error: Error) => void): void {
    this.#faultListeners.push(listener)
  }

  async start(registration: BrokerRegistration): Promise<{ readonly brokerEpoch: BrokerEpoch }> {
    assert(this.#lifecycle === undefined, 'a coordination is started once')
    assert(registration.brokerId === this.#options.brokerId, 'a node registers its own broker')
    const { platform, heartbeatIntervalMs, sessionTimeoutMs, logDirectories } = this.#options
    const lifecycle = new BrokerLifecycle({
      ask: (kind, request, deadlineMs) => this.#ask(kind, request, deadlineMs),
      platform,
      logger: this.#logger,
      registration,
      heartbeatIntervalMs,
      heartbeatTimeoutMs: sessionTimeoutMs,
      appliedIndex: () => this.#loader.applied.index,
      logDirectories: logDirectories ?? (() => ({ online: registration.logDirs, offline: [] })),
      onFault: (error) => this.#onFault(error),
    })
    this.#lifecycle = lifecycle
    await this.#startRaft()
    const deadlineMs = platform.clock.monotonic() + registrationTimeoutMs
    await lifecycle.register(deadlineMs)
    this.#beginPublishing()
    await lifecycle.unfence(deadlineMs)
    lifecycle.beginHeartbeats()
    this.#raft.waitForRoom()
    return { brokerEpoch: lifecycle.run.brokerEpoch }
  }

  async startWithoutBroker(): Promise<void> {
    await this.#startRaft()
    this.#beginPublishing()
    const forever = this.#options.platform.clock.monotonic() + longestTimerMs
    await this.#gate.until(() => this.#controllerId() !== undefined, forever, 'an active controller')
    this.#raft.waitForRoom()
  }

  async #startRaft(): Promise<void> {
    const { platform, asController } = this.#options
    await this.#raft.start()
    if (asController === undefined) return
    this.#controllerLifecycle = new ControllerLifecycle({
      ...asController,
      ask: (kind, request, deadlineMs) => this.#ask(kind, request, deadlineMs),
      platform,
      logger: this.#logger,
      raft: () => this.#raft.state,
    })
    this.#controllerLifecycle.start()
  }

  async handOver(): Promise<void> {
    if (this.#lifecycle !== undefined) await this.#handOverPartitions(this.#lifecycle)
    await this.#raft.transferLeadership() // does nothing where there is nobody to take it
  }

  async #handOverPartitions(lifecycle: BrokerLifecycle): Promise<void> {
    const nowMs = this.#options.platform.clock.monotonic()
    const hasController = () => this.#controllerId() !== undefined
    this.#leaves = 'soon'
    // Where the log waits for room nothing can be handed over, and nobody be answered.
    if (this.#raft.waitsForRoom) this.giveUp()
    try {
      await this.#gate.until(hasController, nowMs + shutdownControllerMs, 'an active controller')
      await lifecycle.shutDown(nowMs + shutdownTimeoutMs)
    } catch (error) {
      // The node goes in any case: what could not be handed over moves when it is fenced, or registers again.
      this.#logger.warn({ error }, 'leaderships not handed over')
    }
  }

  giveUp(): void {
    this.#lifecycle?.stop()
    this.#controllerLifecycle?.stop()
    this.#gate.close(new CoordinationError('stopped', 'The node is stopping'))
  }

  async stop(): Promise<void> {
    this.giveUp()
    this.#endLeadership()
    this.#leaves = 'now'
    if (this.#raft.waitsForRoom) await this.#raft.stop() // what waits there may be a snapshot
    await this.#snapshots.stop()
    await this.#raft.stop()
  }

  async allocateProducerIds(): Promise<{ readonly firstProducerId: ProducerId; readonly count: number }> {
    if (this.#lifecycle === undefined) throw new CoordinationError('not-registered', 'This broker is not started')
    const deadlineMs = this.#options.platform.clock.monotonic() + producerIdsTimeoutMs
    const result = await this.#ask('allocateProducerIds', this.#lifecycle.run, deadlineMs)
    if (result.ok) return result
    throw new CoordinationError('not-registered', 'The controller does not know this run of the broker')
  }

  async alterPartitions(changes: readonly IsrChange[]): Promise<AlterPartitionResult> {
    if (this.#lifecycle?.brokerEpoch === undefined) return { ok: false, reason: 'stale-broker-epoch' }
    const deadlineMs = this.#options.platform.clock.monotonic() + alterPartitionTimeoutMs
    return await this.#ask('alterPartition', { ...this.#lifecycle.run, changes }, deadlineMs)
  }

  // ---- what the quorum says ----

  #onCommitted(entries: readonly Entry[]): void {
    this.#loader.onCommitted(entries)
    this.#snapshots.onCommitted(entries)
    this.#afterApply()
  }

  #onSnapshot(snapshot: Snapshot): void {
    this.#loader.onSnapshot(snapshot)
    this.#afterApply()
  }

  #afterApply(): void {
    if (this.#controllerTerm !== undefined) this.#controller.loop.onStored(this.#loader.applied.index)
    this.#gate.notify()
  }

  /** Raft says 'leader' only once all that was before is applied here: the image is then the head. */
  #onLeadership({ isLeader, term }: Leadership): void {
    if (!isLeader) {
      this.#logger.info({ controllerEpoch: term }, 'no longer the controller')
      this.#endLeadership()
      return
    }
    this.#logger.info({ controllerEpoch: term }, 'became the controller')
    this.#controllerTerm = term
    this.#controller.activate(this.#loader.applied, this.#options.contacts?.())
    for (const node of this.#crashed) this.#fenceCrashed(node)
    this.#watchSessions()
    this.#watchBalance()
    this.#gate.notify()
  }

  #fenceCrashed(node: BrokerId): void {
    if (this.#controller.brokerGone(node)) this.#logger.warn({ brokerId: node }, 'broker gone, fencing it')
  }

  #endLeadership(): void {
    this.#controllerTerm = undefined
    this.#sessionTimer?.cancel()
    this.#balanceTimer?.cancel()
    this.#controller.loop.deactivate()
  }

  #watchSessions(): void {
    const { platform, sessionTimeoutMs } = this.#options
    this.#sessionTimer = platform.timers.set(sessionTimeoutMs / looksPerSession, () => {
      for (const brokerId of this.#controller.fenceSilentBrokers()) {
        this.#logger.warn({ brokerId, sessionTimeoutMs }, 'broker silent, fencing it')
      }
      this.#controller.growInternalTopics()
      this.#controller.electUncleanLeaders()
      this.#watchSessions()
    })
  }

  #watchBalance(): void {
    const { platform, leaderBalanceIntervalMs } = this.#options
    if (leaderBalanceIntervalMs === undefined) return
    this.#balanceTimer = platform.timers.set(leaderBalanceIntervalMs, () => {
      this.#controller.balanceLeaders(maxImbalancePercentage)
      this.#watchBalance()
    })
  }

  /**
   * The head may be ahead of the log for a moment: when Raft has stepped down, and even leads again in a later term, before
   * it could say so. The term tells.
   */
  #makeSink(): RecordSink {
    const raft = this.#raft
    return {
      nextIndex: () => raft.state.lastIndex + 1,
      append: (records) => {
        const { role, term } = raft.state
        if (role !== 'leader' || term !== this.#controllerTerm) return 'not-controller'
        const proposed = raft.proposeNow(encodeRecords(records))
        if (proposed.ok) return 'appended'
        return proposed.reason === 'busy' ? 'full' : 'not-controller'
      },
    }
  }

  #beginPublishing(): void {
    try {
      this.#loader.beginPublishing()
    } catch (error) {
      this.#onFault(error)
      throw error
    }
  }

  #publish(delta: MetadataDelta, image: MetadataImage): void {
    for (const listener of this.#listeners) listener(delta, image)
  }

  #onFault(error: unknown): void {
    if (this.#fault !== undefined) return
    this.#fault = error instanceof Error ? error : new Error(messageOf(error))
    this.#lifecycle?.stop()
    this.#controllerLifecycle?.stop()
    this.#gate.close(new CoordinationError('stopped', 'The metadata quorum has a fault on this node', { cause: error }))
    this.#endLeadership()
    for (const listener of this.#faultListeners) listener(this.#fault)
  }

  // ---- what this node asks of the controller ----

  async #change<Kind extends 'createTopics' | 'deleteTopics' | 'createPartitions' | 'alterConfigs'>(
    kind: Kind,
    requests: ControllerRequests[Kind]['request']['requests'],
    options: AdminOptions,
  ): Promise<ControllerRequests[Kind]['response']> {
    // As in Kafka, nothing is done then; otherwise the answer would depend on who is first.
    if (options.timeoutMs <= 0) throw new CoordinationError('timed-out', `There is no time for ${kind}`)
    const request = { requests, validateOnly: options.validateOnly ?? false } as ControllerRequests[Kind]['request']
    return this.#askWithin(kind, request, options)
  }

  #askWithin<Kind extends ControllerRequestKind>(
    kind: Kind,
    request: ControllerRequests[Kind]['request'],
    { timeoutMs }: TimeLimit,
  ): Promise<ControllerRequests[Kind]['response']> {
    return this.#ask(kind, request, this.#options.platform.clock.monotonic() + timeoutMs)
  }

  async #ask<Kind extends ControllerRequestKind>(
    kind: Kind,
    request: ControllerRequests[Kind]['request'],
    deadlineMs: number,
  ): Promise<ControllerRequests[Kind]['response']> {
    for (;;) {
      await this.#gate.until(() => this.#controllerId() !== undefined, deadlineMs, 'an active controller')
      const asked = this.#askController(this.#controllerId()!, kind, request, deadlineMs)
      const answer = await this.#gate.valueOf(asked, deadlineMs, `the controller's answer to ${kind}`)
      if (answer.ok) {
        await this.#gate.until(() => this.#loader.applied.index >= answer.index, deadlineMs, `entry ${answer.index}`)
        return answer.response
      }
      if (answer.reason === 'overloaded') {
        throw new CoordinationError('overloaded', 'Too many requests wait at the controller')
      }
      if (answer.mayBeStored && !repeatable.has(kind)) {
        throw new CoordinationError('outcome-unknown', `The controller changed before ${kind} was stored`)
      }
      await pause(this.#options.platform.timers, controllerRetryMs)
    }
  }

  /** Who is believed to be active: this node once it is, else who leads the quorum. */
  #controllerId(): BrokerId | undefined {
    const { brokerId, remote } = this.#options
    if (this.#controller.loop.head !== undefined) return brokerId
    const { leaderId } = this.#raft.state
    if (remote === undefined || leaderId === null || (leaderId as number) === brokerId) return undefined
    return leaderId as number as BrokerId
  }

  async #askController<Kind extends ControllerRequestKind>(
    controller: BrokerId,
    kind: Kind,
    request: ControllerRequests[Kind]['request'],
    deadlineMs: number,
  ): Promise<ControllerAnswer<ControllerRequests[Kind]['response']>> {
    const { brokerId, remote, platform } = this.#options
    if (controller === brokerId || remote === undefined) return await this.#leader.ask(kind, request)
    try {
      return await remote.ask(controller, kind, request, Math.max(1, deadlineMs - platform.clock.monotonic()))
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      this.#logger.debug({ controller, kind, reason: error.message }, 'controller not reached')
      return { ok: false, reason: 'not-controller', mayBeStored: error.reason !== 'connection-refused' }
    }
  }
}
