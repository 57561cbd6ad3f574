import { join } from 'node:path'
import { type BrokerId, isEveryAddress, type Uuid } from '../base/index.ts'
import { listDefaultOf, type ParsedConfig, validateDynamicConfig, validateTopicOverrides } from '../config/index.ts'
import {
  answerController,
  type CommitListener,
  ControllerCalls,
  CoordinationError,
  LocalQuorum,
  type LocalQuorumOptions,
  type MetadataQuorum,
  type PeerContact,
  type RemoteControllers,
} from '../coordination/index.ts'
import { groupTopic } from '../group/index.ts'
import { type Endpoint, type MetadataImage, supportedFeatures } from '../metadata/index.ts'
import type { Platform } from '../platform/index.ts'
import { type Membership, type NodeId, RaftNode, type Voter } from '../raft/index.ts'
import { loadGrpcNetwork, loadNodeMessages, loadTls, RpcError } from '../rpc/index.ts'
import type { Logger } from '../telemetry/index.ts'
import { NodePeers, type PeerServices, type StartingIdentity } from './node-peers.ts'
import type { NodeOptions } from './running-node.ts'

/**
 * A node's part in the metadata quorum and all that it takes: the CONTROLLER listener, streams to other nodes, formation,
 * Raft with its log, the controller. In the order of its calls: what `identify` says is put into the node's folders, which
 * `open` is told of. It is on the node's event loop, or in a thread (`ControlThread`), and the node can't tell which.
 */
export interface ControlPlane {
  /**
   * Listens for other nodes, and says who this one is; undefined where it is alone, and its folders say. Throws `RpcError`,
   * `CoordinationError`, `StorageError`, `FileError`.
   */
  identify(): Promise<StartingIdentity | undefined>
  /** Once. Opens the log, not started yet. Throws `RaftStorageError`, `CoordinationError`, `FileError`. */
  open(folders: NodeFolders): Promise<MetadataQuorum>
  /** The voters that this node isn't connected to, each with the reason, for people. */
  unreached(): Promise<readonly string[]>
  /** `identify` rejects with a `CoordinationError` ('stopped'). */
  giveUp(): void
  /** After the quorum that it opened. Whatever of it is there ends. */
  stop(): Promise<void>
}

/** The node's folders, which are open and locked by now. */
export interface NodeFolders {
  readonly clusterId: string
  /** The one of its log directories with the metadata log. */
  readonly metadataDirectory: string
  readonly metadataDirectoryId: Uuid
  /** None of them holds a partition. */
  readonly areEmpty: boolean
}

/** What of a node's settings is its control plane's: plain data, fit to be sent to a thread. */
export interface ControlConfig
  extends Pick<
    ParsedConfig,
    | 'values'
    | 'nodeId'
    | 'roles'
    | 'isAlone'
    | 'metadataLogDir'
    | 'quorumVoters'
    | 'quorumBootstrapServers'
    | 'controllerListeners'
    | 'controllerTls'
  > {
  /** The topic of the groups gets more replicas when there are more brokers: nobody has said how many. */
  readonly growsGroupTopic: boolean
}

export function controlConfigOf(config: ParsedConfig): ControlConfig {
  const { values, nodeId, roles, isAlone, metadataLogDir } = config
  const { quorumVoters, quorumBootstrapServers, controllerListeners, controllerTls } = config
  const quorum = { quorumVoters, quorumBootstrapServers, controllerListeners, controllerTls }
  const growsGroupTopic = config.entries.get('offsets.topic.replication.factor')?.source === 'default'
  return { values, nodeId, roles, isAlone, metadataLogDir, ...quorum, growsGroupTopic }
}

export interface LocalControlPlaneOptions extends Pick<NodeOptions, 'openRaftStorage' | 'onRaft'> {
  readonly config: ControlConfig
  readonly platform: Platform
  readonly logger: Logger
  /** Of this run of the process. */
  readonly incarnationId: Uuid
  /** gRPC, loaded now, when left out. */
  readonly loadPeerServices?: NodeOptions['loadPeerServices'] | undefined
  readonly scheduleSync: (work: () => Promise<void>) => Promise<void>
  /** See `LocalQuorumOptions`. */
  readonly isBrokerApart?: boolean
  /** See `LocalQuorum`. */
  readonly commits?: CommitListener
}

/** Replicas of the groups' topic when there are as many brokers, unless offsets.topic.replication.factor is set. */
const grownReplicationFactor = 3
/** How often the node that formed a cluster asks to be elected, until the others are so far. */
const firstElectionRetryMs = 100
const maxFirstElections = 20
/** A longer timer would be due at once. */
const maxTimerMs = 2 ** 31 - 1
const raftTickMs = 50
const minElectionTicks = 4
/** Where the metadata log lies in its log directory; Kafka's name for it. */
const metadataLogFolder = '__cluster_metadata-0'

/** On the event loop of who calls it. */
export class LocalControlPlane implements ControlPlane {
  readonly #options: LocalControlPlaneOptions
  #peers: NodePeers | undefined
  #identity: StartingIdentity | undefined
  #isStopping = false

  constructor(options: LocalControlPlaneOptions) {
    this.#options = options
  }

  async identify(): Promise<StartingIdentity | undefined> {
    const { config, platform, logger, incarnationId } = this.#options
    const { loadPeerServices = () => loadGrpcServices(config, platform) } = this.#options
    if (config.isAlone) return undefined
    const peers = new NodePeers(config, platform, logger, await loadPeerServices(), incarnationId)
    this.#peers = peers
    await peers.listen()
    if (this.#isStopping) peers.giveUp()
    this.#identity = await peers.identify()
    return this.#identity
  }

  async open(folders: NodeFolders): Promise<MetadataQuorum> {
    const { config, platform, logger, openRaftStorage, scheduleSync } = this.#options
    const id = config.nodeId as number as NodeId
    const directoryId = folders.metadataDirectoryId
    const peers = this.#peers
    const storage = await openRaftStorage({
      directory: join(folders.metadataDirectory, metadataLogFolder),
      platform,
      scheduleSync,
      bootstrap: bootstrapOf(folders, this.#identity, { id, directoryId }),
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
        electionTicks: ticksOf(config.values.controllerQuorumFetchTimeoutMs),
        campaignTicks: ticksOf(config.values.controllerQuorumElectionTimeoutMs),
      },
    })
    try {
      checkVoters(raft.state.membership, config)
      this.#options.onRaft?.(raft, directoryId)
      const quorum = new LocalQuorum(this.#quorumOptions(raft, folders), this.#options.commits)
      if (peers !== undefined) await this.#join(peers, raft, quorum, folders.clusterId)
      if (this.#identity?.voters?.[0]?.id === id) this.#electFirst(raft)
      return quorum
    } catch (error) {
      await raft.stop() // nobody else would close the log
      throw error
    }
  }

  async unreached(): Promise<readonly string[]> {
    return this.#peers?.unreached() ?? []
  }

  giveUp(): void {
    this.#isStopping = true
    this.#peers?.giveUp()
  }

  async stop(): Promise<void> {
    this.giveUp()
    await this.#peers?.stop()
  }

  /** What others ask of this node, and what they are to it, reaches the quorum from now on. */
  async #join(peers: NodePeers, raft: RaftNode, quorum: LocalQuorum, clusterId: string): Promise<void> {
    peers.findLeaderFor(raft)
    await peers.forgetForming()
    peers.formatted(clusterId, raft.state.membership.voters)
    peers.serve(
      (request) => answerController(request, peers.services.messages, quorum.controller, clusterId),
      () => ({ ...raft.state, voters: raft.state.membership.voters }),
    )
    peers.transport.onPeers({
      onConnected: (node) => quorum.onNodeConnected(node as number as BrokerId),
      onCrashed: (node) => quorum.onNodeCrashed(node as number as BrokerId),
    })
    const { interBrokerListenerName } = this.#options.config.values
    const watch = peers.watchBrokers({
      placeOf: (node, run) => brokerPlaceOf(quorum.image, node, run, interBrokerListenerName),
      onConnected: (node) => quorum.onNodeConnected(node as BrokerId),
      onCrashed: (node) => quorum.onNodeCrashed(node as BrokerId),
    })
    quorum.onBrokersChanged(() => watch.look())
  }

  #quorumOptions(raft: RaftNode, { clusterId, metadataDirectoryId }: NodeFolders): LocalQuorumOptions {
    const { config, platform, logger, isBrokerApart = false } = this.#options
    const { values, nodeId } = config
    return {
      raft,
      ...this.#amongOthers(clusterId, metadataDirectoryId),
      platform,
      logger: logger.child({ part: 'coordination' }),
      brokerId: nodeId,
      isBrokerApart,
      clusterId,
      controller: {
        defaultPartitionCount: values.numPartitions,
        defaultReplicationFactor: values.defaultReplicationFactor,
        topicDeletionEnabled: values.deleteTopicEnable,
        defaultMinInSyncReplicas: values.minInsyncReplicas,
        uncleanLeaderElectionEnabled: values.uncleanLeaderElectionEnable,
        nodeId,
        growingTopics: new Map(config.growsGroupTopic ? [[groupTopic, grownReplicationFactor]] : []),
        fixedTopics: new Set([groupTopic]),
      },
      configRules: {
        topicFault: validateTopicOverrides,
        brokerFault: validateDynamicConfig,
        listDefault: listDefaultOf,
      },
      sessionTimeoutMs: values.brokerSessionTimeoutMs,
      leaderBalanceIntervalMs: values.autoLeaderRebalanceEnable
        ? Math.min(values.leaderImbalanceCheckIntervalSeconds * 1000, maxTimerMs)
        : undefined,
      maxBytesBetweenSnapshots: values.metadataLogMaxRecordBytesBetweenSnapshots,
      maxSnapshotIntervalMs: values.metadataLogMaxSnapshotIntervalMs,
    }
  }

  #amongOthers(clusterId: string, directoryId: Uuid): Pick<LocalQuorumOptions, 'remote' | 'contacts' | 'asController'> {
    const peers = this.#peers
    if (peers === undefined) return {}
    const { config, incarnationId } = this.#options
    const calls = new ControllerCalls({ ...peers.services, brokerId: config.nodeId, clusterId: () => clusterId })
    const ways = { remote: remoteControllers(peers, calls), contacts: () => contactsOf(peers) }
    const { endpoint } = peers
    if (endpoint === undefined) return ways
    const { values, quorumVoters, nodeId, controllerListeners } = config
    const endpoints = controllerListeners.map(
      ({ name, host, port, advertisedHost, advertisedPort, securityProtocol }) => {
        return { name, host: advertisedHost ?? host, port: advertisedPort ?? port, securityProtocol }
      },
    )
    const features = supportedFeatures
    return {
      ...ways,
      asController: {
        registration: { controllerId: nodeId, incarnationId, clusterId, endpoints, features },
        directoryId,
        endpoint,
        joins: values.controllerQuorumAutoJoinEnable && quorumVoters.length === 0,
      },
    }
  }

  /** Whoever formed the cluster need not wait for silence, since nobody leads it yet: it asks until the others are up. */
  #electFirst(raft: RaftNode, attempts = maxFirstElections): void {
    const { term, leaderId } = raft.state
    if (term > 0 || leaderId !== null || attempts === 0 || this.#isStopping) return
    raft.campaign()
    this.#options.platform.timers.set(firstElectionRetryMs, () => this.#electFirst(raft, attempts - 1))
  }
}

/** The voters that an empty metadata log begins with; undefined where there must be a log already. */
function bootstrapOf(
  { areEmpty }: NodeFolders,
  identity: StartingIdentity | undefined,
  self: Voter,
): Membership | undefined {
  if (identity !== undefined) return identity.voters === undefined ? undefined : { voters: identity.voters }
  // Partitions without the metadata that names them mean that the metadata log is lost: never start a new one beside them.
  return areEmpty ? { voters: [self] } : undefined
}

/**
 * The log says who votes, and `controller.quorum.voters` where it is set, or a node is alone: they have to mean the same. A log without
 * voters is that of a node that follows until it is told. Throws `CoordinationError`.
 */
function checkVoters({ voters }: Membership, { quorumVoters, nodeId, isAlone }: ControlConfig): void {
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

/** Throws `ConfigError` for keys and certificates that can't be used. */
async function loadGrpcServices({ controllerTls, roles }: ControlConfig, platform: Platform): Promise<PeerServices> {
  const { files, clock } = platform
  const tls =
    controllerTls === undefined
      ? undefined
      : await loadTls(controllerTls, { files, nowMs: clock.now(), listens: roles.controller })
  const [network, messages] = await Promise.all([loadGrpcNetwork(tls), loadNodeMessages()])
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
 * Where a run of a broker listens for other brokers; undefined where that run is not registered, or is reached wherever it was dialled.
 * Controllers may not know which listener brokers use: then it is the first.
 */
function brokerPlaceOf(
  image: MetadataImage,
  node: number,
  run: Uuid,
  listenerName: string | null,
): Endpoint | undefined {
  const broker = image.cluster.broker(node as BrokerId)
  if (broker === undefined || broker.incarnationId !== run) return undefined
  const wanted = listenerName?.toUpperCase()
  const endpoint = broker.endpoints.find(({ name }) => name === wanted) ?? broker.endpoints[0]
  return endpoint === undefined || isEveryAddress(endpoint.host) ? undefined : endpoint
}
