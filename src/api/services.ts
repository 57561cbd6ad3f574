import type { BrokerId } from '../base/index.ts'
import type { DynamicConfig, ParsedConfig } from '../config/index.ts'
import type { Coordination } from '../coordination/index.ts'
import type { GroupCoordinator } from '../group/index.ts'
import type { LogManager, PartitionCopy, PartitionLog } from '../log/index.ts'
import type { Platform } from '../platform/index.ts'
import { FetchSessions, type ReplicaService } from '../replication/index.ts'
import type { Logger, Metrics } from '../telemetry/index.ts'
import { ProducerIds } from './producer-ids.ts'
import { TopicCreator } from './topic-creator.ts'

/** What the APIs ask of the group coordinator on this broker. */
export type GroupService = Pick<
  GroupCoordinator,
  | 'joinGroup'
  | 'syncGroup'
  | 'heartbeat'
  | 'leaveGroup'
  | 'offsetCommit'
  | 'offsetFetch'
  | 'describeGroups'
  | 'listGroups'
  | 'deleteGroups'
  | 'offsetDelete'
>

/** A folder for data and what is in it. */
export interface LogDirectoryFacts {
  /** Absolute. */
  readonly path: string
  /** Undefined: it is in use. */
  readonly error: Error | undefined
  readonly partitions: readonly Pick<
    PartitionLog,
    'topic' | 'partition' | 'sizeBytes' | 'highWatermark' | 'logEndOffset'
  >[]
  /** Of partitions that move here. */
  readonly copies: readonly PartitionCopy[]
}

/** What the APIs ask of the folders for data on this broker. */
export interface LogDirectories {
  all(): readonly LogDirectoryFacts[]
  /** Moves a partition that is on this broker, or will be, into another folder. */
  readonly move: LogManager['move']
  /** Of the disk that a folder is on. Throws `FileError`. */
  space(path: string): Promise<{ readonly freeBytes: number; readonly totalBytes: number }>
}

/** What the node gives to the APIs. */
export interface ApiServicesOptions {
  readonly brokerId: BrokerId
  readonly clusterId: string
  /** As it was at the start. */
  readonly config: ParsedConfig
  /** The same under what was set since. */
  readonly dynamicConfig: DynamicConfig
  readonly replicas: ReplicaService
  readonly logDirectories: LogDirectories
  readonly coordination: Coordination
  readonly groups: GroupService
  readonly platform: Pick<Platform, 'clock' | 'timers' | 'random'>
  readonly log: Logger
  readonly metrics: Metrics
}

/** What the APIs call. */
export interface ApiServices extends ApiServicesOptions {
  readonly topicCreator: TopicCreator
  readonly producerIds: ProducerIds
  readonly fetchSessions: FetchSessions
}

export function createApiServices(options: ApiServicesOptions): ApiServices {
  const { coordination, config, platform, metrics } = options
  return {
    ...options,
    topicCreator: new TopicCreator(coordination, config),
    producerIds: new ProducerIds(coordination),
    fetchSessions: new FetchSessions({
      maxSessions: config.values.maxIncrementalFetchSessionCacheSlots,
      clock: platform.clock,
      random: platform.random,
      metrics,
    }),
  }
}
