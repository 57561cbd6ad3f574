import {
  assert,
  type BrokerEpoch,
  type BrokerId,
  type ControllerEpoch,
  errorOf,
  type ProducerId,
} from '../../base/index.ts'
import type {
  AlterPartitionResult,
  AssignReplicasResult,
  BrokerRegistration,
  IsrChange,
  ReplicaAssignment,
} from '../../controller/index.ts'
import { emptyImage, type MetadataDelta, type MetadataImage, snapshotDelta } from '../../metadata/index.ts'
import type { Clock, Timers } from '../../platform/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { ControllerRequestKind, ControllerRequests } from '../controller-channel.ts'
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
import { ControllerClient } from './controller-client.ts'
import type { MetadataQuorum } from './metadata-quorum.ts'

export interface RaftCoordinationOptions {
  /** Not started yet: the coordination starts and stops it. */
  readonly quorum: MetadataQuorum
  readonly platform: { readonly clock: Clock; readonly timers: Timers }
  readonly logger: Logger
  /** The node's id, also of one that is no broker. */
  readonly brokerId: BrokerId
  /** `broker.heartbeat.interval.ms`. */
  readonly heartbeatIntervalMs: number
  /** `broker.session.timeout.ms`. */
  readonly sessionTimeoutMs: number
  /** None where it is left out: those of the registration stay as they are. */
  readonly logDirectories?: () => DirectoryStates
}

/** How long `start` waits for a controller, and for another run of this broker to be given up. Kafka's is the same. */
const registrationTimeoutMs = 60_000
/** A longer one would be due at once. */
const longestTimerMs = 2 ** 31 - 1
/** How long a node that stops waits until its leaderships are handed over. */
const shutdownTimeoutMs = 5_000
/** How long it waits for a controller to hand them over: longer than an election takes where there is a quorum. */
const shutdownControllerMs = 2_000
/** How long a change of ISRs may take before it is asked for again. */
const alterPartitionTimeoutMs = 30_000
/** How long a block of producer ids may take. */
const producerIdsTimeoutMs = 30_000

export function createRaftCoordination(options: RaftCoordinationOptions): Coordination {
  return new RaftCoordination(options)
}

/**
 * A broker's part in a cluster whose metadata is the log of a Raft quorum: it publishes what the quorum's member on this node
 * gives it, registers, says that it lives, and asks. What happens when an entry is committed, in this order: image and delta,
 * listeners, the controller's answers (where this node is it), requests that waited for the image.
 *
 * Images are published from `start`'s registration on; before, the node catches up, and what its last run left is not to be
 * acted on.
 */
class RaftCoordination implements Coordination {
  readonly #options: RaftCoordinationOptions
  readonly #quorum: MetadataQuorum
  readonly #logger: Logger
  readonly #gate: Gate
  readonly #client: ControllerClient
  readonly #listeners: MetadataListener[] = []
  readonly #faultListeners: ((error: Error) => void)[] = []
  #published: MetadataImage = emptyImage
  #isPublishing: boolean = false
  #lifecycle: BrokerLifecycle | undefined
  /** The node is about to stop, and so waits for nothing. */
  #leaves = false
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
    const { quorum, platform, logger, brokerId } = options
    this.#options = options
    this.#quorum = quorum
    this.#logger = logger
    this.#gate = new Gate(platform)
    this.#client = new ControllerClient({ quorum, brokerId, gate: this.#gate, platform })
    quorum.listen({
      onStep: (delta, image) => {
        if (this.#isPublishing) this.#publish(delta, image)
      },
      onChange: () => {
        this.#giveUpWithoutRoom()
        this.#gate.notify()
      },
      onFault: (error) => this.#onFault(error),
    })
  }

  get image(): MetadataImage {
    return this.#published
  }

  get state(): CoordinationState {
    const { term, leaderId } = this.#quorum.state
    return {
      mode: 'raft',
      controllerId: leaderId,
      controllerEpoch: term as ControllerEpoch,
      appliedIndex: this.#published.index,
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
      ask: (kind, request, deadlineMs) => this.#client.ask(kind, request, deadlineMs),
      platform,
      logger: this.#logger,
      registration,
      heartbeatIntervalMs,
      heartbeatTimeoutMs: sessionTimeoutMs,
      appliedIndex: () => this.#quorum.image.index,
      logDirectories: logDirectories ?? (() => ({ online: registration.logDirs, offline: [] })),
      onFault: (error) => this.#onFault(error),
    })
    this.#lifecycle = lifecycle
    await this.#quorum.start()
    const deadlineMs = platform.clock.monotonic() + registrationTimeoutMs
    await lifecycle.register(deadlineMs)
    this.#beginPublishing()
    await lifecycle.unfence(deadlineMs)
    lifecycle.beginHeartbeats()
    this.#quorum.waitForRoom()
    return { brokerEpoch: lifecycle.run.brokerEpoch }
  }

  async startWithoutBroker(): Promise<void> {
    await this.#quorum.start()
    this.#beginPublishing()
    await this.#client.whenThere(this.#options.platform.clock.monotonic() + longestTimerMs)
    this.#quorum.waitForRoom()
  }

  async handOver(): Promise<void> {
    if (this.#lifecycle !== undefined) await this.#handOverPartitions(this.#lifecycle)
    await this.#quorum.transferLeadership()
  }

  async #handOverPartitions(lifecycle: BrokerLifecycle): Promise<void> {
    const nowMs = this.#options.platform.clock.monotonic()
    this.#leaves = true
    this.#giveUpWithoutRoom()
    try {
      await this.#client.whenThere(nowMs + shutdownControllerMs)
      await lifecycle.shutDown(nowMs + shutdownTimeoutMs)
    } catch (error) {
      // The node goes in any case: what could not be handed over moves when it is fenced, or registers again.
      this.#logger.warn({ error }, 'leaderships not handed over')
    }
  }

  /** Where the metadata log waits for room nothing can be handed over, and nobody be answered. */
  #giveUpWithoutRoom(): void {
    if (this.#leaves && this.#quorum.state.waitsForRoom) this.giveUp()
  }

  giveUp(): void {
    this.#lifecycle?.stop()
    this.#gate.close(new CoordinationError('stopped', 'The node is stopping'))
  }

  async stop(): Promise<void> {
    this.giveUp()
    await this.#quorum.stop()
  }

  async allocateProducerIds(): Promise<{ readonly firstProducerId: ProducerId; readonly count: number }> {
    if (this.#lifecycle === undefined) throw new CoordinationError('not-registered', 'This broker is not started')
    const deadlineMs = this.#options.platform.clock.monotonic() + producerIdsTimeoutMs
    const result = await this.#client.ask('allocateProducerIds', this.#lifecycle.run, deadlineMs)
    if (result.ok) return result
    throw new CoordinationError('not-registered', 'The controller does not know this run of the broker')
  }

  async alterPartitions(changes: readonly IsrChange[]): Promise<AlterPartitionResult> {
    if (this.#lifecycle?.brokerEpoch === undefined) return { ok: false, reason: 'stale-broker-epoch' }
    const deadlineMs = this.#options.platform.clock.monotonic() + alterPartitionTimeoutMs
    return await this.#client.ask('alterPartition', { ...this.#lifecycle.run, changes }, deadlineMs)
  }

  async assignReplicas(assignments: readonly ReplicaAssignment[]): Promise<AssignReplicasResult> {
    if (this.#lifecycle?.brokerEpoch === undefined) return { ok: false, reason: 'stale-broker-epoch' }
    const deadlineMs = this.#options.platform.clock.monotonic() + alterPartitionTimeoutMs
    return await this.#client.ask('assignReplicasToDirs', { ...this.#lifecycle.run, assignments }, deadlineMs)
  }

  /** Hands on what is applied, as a whole, and from then on each step. */
  #beginPublishing(): void {
    this.#isPublishing = true
    const { image } = this.#quorum
    try {
      this.#publish(snapshotDelta(this.#published, image), image)
    } catch (error) {
      this.#onFault(error)
      throw error
    }
  }

  #publish(delta: MetadataDelta, image: MetadataImage): void {
    this.#published = image
    for (const listener of this.#listeners) listener(delta, image)
    if (this.#someoneLeaves(delta, image)) this.#lifecycle?.beatNow()
  }

  /** A broker that shuts down waits until all others have said that they know. */
  #someoneLeaves({ changedBrokers }: MetadataDelta, { cluster }: MetadataImage): boolean {
    const { brokerId } = this.#options
    return [...changedBrokers].some((id) => id !== brokerId && cluster.broker(id)?.inControlledShutdown === true)
  }

  #onFault(cause: unknown): void {
    if (this.#fault !== undefined) return
    this.#fault = errorOf(cause)
    this.#lifecycle?.stop()
    this.#gate.close(new CoordinationError('stopped', 'The metadata quorum has a fault on this node', { cause }))
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
    return this.#client.ask(kind, request, this.#options.platform.clock.monotonic() + timeoutMs)
  }
}
