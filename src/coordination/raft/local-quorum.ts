import { assert, type BrokerId, errorOf } from '../../base/index.ts'
import type { ConfigRules, ControllerAnswer, ControllerSettings, RecordSink } from '../../controller/index.ts'
import { encodeRecords, type MetadataImage } from '../../metadata/index.ts'
import type { Clock, Random, Timer, Timers } from '../../platform/index.ts'
import type { Entry, Leadership, RaftNode, Snapshot } from '../../raft/index.ts'
import { RpcError } from '../../rpc/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { ControllerChannel, ControllerRequestKind, ControllerRequests } from '../controller-channel.ts'
import { CoordinationError } from '../coordination-error.ts'
import { Gate } from '../gate.ts'
import { ControllerLifecycle, type ControllerLifecycleOptions } from '../lifecycle/controller-lifecycle.ts'
import { ActiveController, type PeerContact } from './active-controller.ts'
import { ControllerClient } from './controller-client.ts'
import { MetadataLoader } from './metadata-loader.ts'
import type { MetadataQuorum, QuorumListener, QuorumState } from './metadata-quorum.ts'
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

export interface LocalQuorumOptions {
  /** Not started yet: it is started and stopped here. */
  readonly raft: RaftNode
  readonly platform: { readonly clock: Clock; readonly timers: Timers; readonly random: Random }
  readonly logger: Logger
  /** Undefined where this node is the whole quorum. */
  readonly remote?: RemoteControllers
  /** What this node knows of others when it becomes the controller: their silence counts from then on. */
  readonly contacts?: () => Iterable<PeerContact>
  /** The node's id, also of one that is no broker. */
  readonly brokerId: BrokerId
  /**
   * The node's broker has an event loop of its own: it may hang while this goes on, so that its silence counts as that of
   * any other broker.
   */
  readonly isBrokerApart?: boolean
  /** What a node with the role of a controller, and others around it, tells of itself. */
  readonly asController?: Pick<ControllerLifecycleOptions, 'registration' | 'directoryId' | 'endpoint' | 'joins'>
  /** Of this node's meta.properties. A new log gets it in its first entry; one that has another is refused. */
  readonly clusterId: string
  readonly controller: ControllerSettings
  readonly configRules: ConfigRules
  /** `broker.session.timeout.ms`. */
  readonly sessionTimeoutMs: number
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

/** How often brokers are looked at: one that hangs is fenced later than its session by as much as passes between two. */
const looksPerSession = 8
/** As Kafka's since it has Raft: no partition is too few to be put right. */
const maxImbalancePercentage = 0

/** What Raft delivers, for who has its bytes in place of its images. */
export interface CommitListener {
  onCommitted(entries: readonly Entry[]): void
  onSnapshot(snapshot: Snapshot): void
}

/**
 * The member of the metadata quorum itself: Raft, and beside it, so that a decision gets its index at once, the controller with its
 * sessions, timers and snapshots. What happens when an entry is committed, in this order: image and delta, the listener, the
 * controller's answers (where this node is it), requests that waited for the image.
 */
export class LocalQuorum implements MetadataQuorum {
  readonly #options: LocalQuorumOptions
  readonly #raft: RaftNode
  readonly #logger: Logger
  readonly #loader: MetadataLoader
  readonly #controller: ActiveController
  readonly #leader: LeaderChannel
  readonly #snapshots: SnapshotSchedule
  readonly #gate: Gate
  #listener: QuorumListener | undefined
  #onBrokersChanged: (() => void) | undefined
  #controllerLifecycle: ControllerLifecycle | undefined
  #sessionTimer: Timer | undefined
  #balanceTimer: Timer | undefined
  /** Term in which this node is the active controller. */
  #controllerTerm: number | undefined
  /** Nodes whose processes have ended, as far as this node sees; what a new controller begins with. */
  readonly #crashed = new Set<BrokerId>()
  #isStopping = false
  #fault: Error | undefined

  /** `commits`, where it is given, hears of everything before the listener does. */
  constructor(options: LocalQuorumOptions, commits?: CommitListener) {
    const { raft, platform, logger, clusterId, sessionTimeoutMs, configRules, isBrokerApart = false } = options
    this.#options = options
    this.#raft = raft
    this.#logger = logger
    this.#loader = new MetadataLoader(clusterId, (delta, image) => {
      this.#listener?.onStep(delta, image)
      if (delta.changedBrokers.size > 0) this.#onBrokersChanged?.()
    })
    this.#controller = new ActiveController({
      sink: this.#makeSink(),
      platform,
      settings: options.controller,
      configRules,
      clusterId,
      localBrokerId: isBrokerApart ? undefined : options.brokerId,
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
      image: () => this.#loader.image,
      save: (index, data) => raft.takeSnapshot(index, data),
    })
    raft.onCommitted((entries) => {
      commits?.onCommitted(entries)
      this.#onCommitted(entries)
    })
    raft.onSnapshot((snapshot) => {
      commits?.onSnapshot(snapshot)
      this.#onSnapshot(snapshot)
    })
    raft.onLeadership((leadership) => this.#onLeadership(leadership))
    raft.onLeaderChange(() => this.#changed())
    raft.onFault((error) => this.#onFault(error))
    raft.onFullDisk(() => {
      if (this.#isStopping) void raft.stop()
      this.#changed()
    })
  }

  get state(): QuorumState {
    const { term, leaderId } = this.#raft.state
    return {
      leaderId: leaderId as BrokerId | null,
      term,
      isActive: this.#controller.loop.head !== undefined,
      waitsForRoom: this.#raft.waitsForRoom,
    }
  }

  get image(): MetadataImage {
    return this.#loader.image
  }

  /** This node's controller, for requests of others: it refuses them while it isn't active. */
  get controller(): ControllerChannel {
    return this.#leader
  }

  listen(listener: QuorumListener): void {
    assert(this.#listener === undefined, 'a quorum has one listener')
    this.#listener = listener
  }

  /** Brokers were registered, or changed, as `image` shows. */
  onBrokersChanged(listener: () => void): void {
    this.#onBrokersChanged = listener
  }

  /** The process of a node was seen to have ended: the active controller, now or soon, fences its broker at once. */
  onNodeCrashed(node: BrokerId): void {
    this.#crashed.add(node)
    if (this.#controllerTerm !== undefined) this.#fenceCrashed(node)
  }

  onNodeConnected(node: BrokerId): void {
    this.#crashed.delete(node)
  }

  async start(): Promise<void> {
    const { platform, asController, brokerId } = this.#options
    await this.#raft.start()
    if (asController === undefined) return
    const client = new ControllerClient({ quorum: this, brokerId, gate: this.#gate, platform })
    this.#controllerLifecycle = new ControllerLifecycle({
      ...asController,
      ask: (kind, request, deadlineMs) => client.ask(kind, request, deadlineMs),
      platform,
      logger: this.#logger,
      raft: () => this.#raft.state,
    })
    this.#controllerLifecycle.start()
  }

  async ask<Kind extends ControllerRequestKind>(
    controller: BrokerId,
    kind: Kind,
    request: ControllerRequests[Kind]['request'],
    timeoutMs: number,
  ): Promise<ControllerAnswer<ControllerRequests[Kind]['response']>> {
    const { brokerId, remote } = this.#options
    if (controller === brokerId || remote === undefined) return await this.#leader.ask(kind, request)
    try {
      return await remote.ask(controller, kind, request, timeoutMs)
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      this.#logger.debug({ controller, kind, reason: error.message }, 'controller not reached')
      return { ok: false, reason: 'not-controller', mayBeStored: error.reason !== 'connection-refused' }
    }
  }

  async transferLeadership(): Promise<void> {
    await this.#raft.transferLeadership() // does nothing where there is nobody to take it
  }

  waitForRoom(): void {
    this.#raft.waitForRoom()
  }

  async stop(): Promise<void> {
    this.#giveUp(new CoordinationError('stopped', 'The node is stopping'))
    this.#isStopping = true
    if (this.#raft.waitsForRoom) await this.#raft.stop() // what waits there may be a snapshot
    await this.#snapshots.stop()
    await this.#raft.stop()
  }

  #giveUp(reason: Error): void {
    this.#controllerLifecycle?.stop()
    this.#gate.close(reason)
    this.#endLeadership()
  }

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
    if (this.#controllerTerm !== undefined) this.#controller.loop.onStored(this.#loader.image.index)
    this.#changed()
  }

  #changed(): void {
    this.#listener?.onChange()
    this.#gate.notify()
  }

  /** Raft says 'leader' only once all that was before is applied here: the image is then the head. */
  #onLeadership({ isLeader, term }: Leadership): void {
    if (isLeader) {
      this.#logger.info({ controllerEpoch: term }, 'became the controller')
      this.#controllerTerm = term
      this.#controller.activate(this.#loader.image, this.#options.contacts?.())
      for (const node of this.#crashed) this.#fenceCrashed(node)
      this.#watchSessions()
      this.#watchBalance()
    } else {
      this.#logger.info({ controllerEpoch: term }, 'no longer the controller')
      this.#endLeadership()
    }
    this.#changed()
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

  #onFault(cause: unknown): void {
    if (this.#fault !== undefined) return
    this.#fault = errorOf(cause)
    this.#giveUp(new CoordinationError('stopped', 'The metadata quorum has a fault on this node', { cause }))
    this.#listener?.onFault(this.#fault)
  }
}
