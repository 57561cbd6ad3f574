import type { MetadataRecord } from '../metadata/index.ts'

/** What a decision comes to: the records that make it so, none when nothing changes, and the answer once they are stored. */
export interface Decision<Response> {
  readonly records: readonly MetadataRecord[]
  readonly response: Response
}

/**
 * Most records of one entry, and so the most that become visible together. A request of a client that needs more is
 * refused; what the controller itself decides is cut, and is such that it can be decided again after any of its entries.
 */
export const maxRecordsPerEntry = 10_000

/** What the controller takes from the node's configuration. */
export interface ControllerSettings {
  /** `num.partitions`. */
  readonly defaultPartitionCount: number
  /** `default.replication.factor`. */
  readonly defaultReplicationFactor: number
  /** `delete.topic.enable`. */
  readonly topicDeletionEnabled: boolean
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
