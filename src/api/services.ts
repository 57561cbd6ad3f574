import type { BrokerId } from '../base/index.ts'
import type { DynamicConfig, ParsedConfig } from '../config/index.ts'
import type { Coordination } from '../coordination/index.ts'
import type { GroupCoordinator } from '../group/index.ts'
import type { Platform } from '../platform/index.ts'
import type { ReplicaService } from '../replication/index.ts'
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
>

/** What the node gives to the APIs. */
export interface ApiServicesOptions {
  readonly brokerId: BrokerId
  readonly clusterId: string
  /** As it was at the start. */
  readonly config: ParsedConfig
  /** The same under what was set since. */
  readonly dynamicConfig: DynamicConfig
  readonly replicas: ReplicaService
  readonly coordination: Coordination
  readonly groups: GroupService
  readonly platform: Pick<Platform, 'clock' | 'timers'>
  readonly log: Logger
  readonly metrics: Metrics
}

/** What the APIs call. */
export interface ApiServices extends ApiServicesOptions {
  readonly topicCreator: TopicCreator
  readonly producerIds: ProducerIds
}

export function createApiServices(options: ApiServicesOptions): ApiServices {
  const { coordination, config } = options
  return {
    ...options,
    topicCreator: new TopicCreator(coordination, config),
    producerIds: new ProducerIds(coordination),
  }
}
