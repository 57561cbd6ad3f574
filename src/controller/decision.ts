import type { BrokerId } from '../base/index.ts'
import type { MetadataRecord } from '../metadata/index.ts'

/** What a decision comes to: the records that make it so, none when nothing changes, and the answer once they are stored. */
export interface Decision<Response> {
  readonly records: readonly MetadataRecord[]
  readonly response: Response
}

/** Most records that one request of a client may come to. One that needs more is refused: it is one entry, or nothing. */
export const maxRecordsPerRequest = 10_000

/**
 * Most records of one entry, and so the most that become visible together: less than 3 MB. It holds what fencing a broker
 * takes that leads 10,000 partitions and follows 20,000 (measured: 30,001 records, 1 MB). What the controller itself decides is cut where it is longer, and is such that it can be decided
 * again after any of its entries.
 */
export const maxRecordsPerEntry = 50_000

/** What the controller takes from the node's configuration. */
export interface ControllerSettings {
  /** `num.partitions`. */
  readonly defaultPartitionCount: number
  /** `default.replication.factor`. */
  readonly defaultReplicationFactor: number
  /** `delete.topic.enable`. */
  readonly topicDeletionEnabled: boolean
  /** `min.insync.replicas` of this node's configuration, where neither the topic nor the cluster sets it. */
  readonly defaultMinInSyncReplicas: number
  /** `unclean.leader.election.enable`, where neither the topic, this node's broker nor the cluster sets it. */
  readonly uncleanLeaderElectionEnabled: boolean
  /** This node. */
  readonly nodeId: BrokerId
  /**
   * Topics that were created with fewer replicas because there were too few brokers, and the replication factor that they
   * are to have. None where the operator chose the factor.
   */
  readonly growingTopics: ReadonlyMap<string, number>
  /** Topics that never get further partitions: what lies in which of them is computed from their number. */
  readonly fixedTopics: ReadonlySet<string>
}

/** Which configs are valid is known elsewhere: undefined when all of `configs` are, else why the first bad one is not. */
export interface ConfigRules {
  /** A topic's own configs, whole. Null values are not valid. */
  topicFault(configs: ReadonlyMap<string, string | null>): { readonly message: string } | undefined
  /** Dynamic configs of one broker, or of all, whole. */
  brokerFault(configs: ReadonlyMap<string, string>): { readonly message: string } | undefined
  /** The elements of a LIST where it isn't set; undefined for a key that is no list. */
  listDefault(resourceType: 'topic' | 'broker', key: string): readonly string[] | undefined
}
