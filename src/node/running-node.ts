import type { Faults } from '../api/index.ts'
import type { BrokerId, Uuid } from '../base/index.ts'
import type { ParsedConfig } from '../config/index.ts'
import type { Admin, Coordination, CreateTopicRequest } from '../coordination/index.ts'
import type { LogManager, LogManagerOptions } from '../log/index.ts'
import type { Platform, Threads, Time } from '../platform/index.ts'
import type { Membership, RaftNode, RaftStorage } from '../raft/index.ts'
import type { ReplicaManager } from '../replication/index.ts'
import type { Logger, Metrics } from '../telemetry/index.ts'
import type { PeerServices } from './node-peers.ts'
import type { Observation } from './observation.ts'
import type { ResetOptions } from './reset.ts'

export interface NodeOptions {
  readonly config: ParsedConfig
  /** Real or simulated. Its files hold all that the node keeps. */
  readonly platform: Platform
  /** Where not all goes by the platform's time. */
  readonly time?: NodeTime
  readonly logger: Logger
  /** Aborted while the node starts: what it waits for is given up, and the start rejects with a `CoordinationError` ('stopped'). */
  readonly signal?: AbortSignal
  readonly metrics?: Metrics
  /** Threads of libuv's pool (`UV_THREADPOOL_SIZE`), 2 or more; 4 when left out. */
  readonly poolThreads?: number
  /** Topics that are to be there when the node serves; those that exist stay as they are. */
  readonly topics?: readonly CreateTopicRequest[]
  /** Opens the Raft log in `directory`: Level on a disk, a map in memory, a store over simulated files. */
  readonly openRaftStorage: (options: RaftStorageRequest) => Promise<RaftStorage>
  /** What it takes to talk to other nodes, where the settings name some. Called once, before anything is opened. */
  readonly loadPeerServices?: () => Promise<PeerServices>
  /**
   * Where they are given, and the settings name other nodes, the node's part in the metadata quorum runs in a thread of its own:
   * on the real disk and over gRPC, whatever `openRaftStorage` and `loadPeerServices` say.
   */
  readonly threads?: Threads
  /** `openLogManager` when left out. For tests that put something between the node and its logs. */
  readonly openLogs?: (options: LogManagerOptions) => Promise<LogManager>
  /** Called when its parts are made and before they start. For tests that look into a node. */
  readonly onAssembled?: (parts: NodeParts) => void
  /** Called when its part of the quorum is made and before it starts, on nodes that are no brokers too. For the same tests. */
  readonly onRaft?: (raft: Pick<RaftNode, 'state'>, directoryId: Uuid) => void
}

/** What a node is made of, for who looks into it. */
export interface NodeParts {
  readonly coordination: Coordination
  readonly replicas: ReplicaManager
  readonly logs: LogManager
}

export interface NodeTime {
  /** Ages of records, retention, sessions, rebalances, expiration of offsets and producers; what the broker stamps. */
  readonly rules: Time
  /** Long polls and other waits of clients, who measure them with their own clocks. */
  readonly waits: Time
}

export interface RaftStorageRequest {
  readonly directory: string
  readonly platform: Platform
  /** Decides when a sync of the Raft log may run: before those of partitions, but not all at once. */
  readonly scheduleSync: (work: () => Promise<void>) => Promise<void>
  /** The first voters; undefined when there must be a log already. */
  readonly bootstrap: Membership | undefined
}

/** A node that serves. */
export interface RunningNode {
  readonly brokerId: BrokerId
  readonly clusterId: string
  /** Where clients connect: `host:port` of the first listener, as it is advertised. */
  readonly bootstrapServers: string
  readonly metrics: Metrics
  /** Changes of the cluster, as an administrator makes them. */
  readonly admin: Admin
  /** The active controller, as far as this node knows; null: none. */
  readonly controllerId: BrokerId | null
  /** Faults that it makes when asked to. */
  readonly faults: Faults
  /** What is in its topics and groups. */
  readonly observation: Observation
  /**
   * Empties it, with its connections kept; see `ResetOptions`. Requests that come meanwhile are carried out afterwards. Several are carried
   * out one after the other. Throws `ResetError`.
   */
  reset(options?: ResetOptions): Promise<void>
  /** Settles when the node has to end because of a fault (rejects), or was stopped (resolves). */
  readonly ended: Promise<void>
  /** Hands leaderships over, answers what is under way, closes every log cleanly. Harmless when called again. */
  stop(): Promise<void>
}
