import type { errors } from '../../src/protocol/index.ts'

export type ErrorName = keyof typeof errors

/** The error codes that an API is documented to answer, or that Apache Kafka's broker code can answer for it. */
export interface DocumentedErrors {
  /** Both brokers answer them in a scenario. */
  readonly reached: readonly ErrorName[]
  /** What no request can bring a single node to answer, with what it would take. Of NONE too, which is answered where it isn't here. */
  readonly unreachable: Partial<Readonly<Record<ErrorName, string>>>
}

const acls = 'needs an authorizer, and one that refuses'
const followers = 'needs a second broker that leads or follows'
const tiers = 'needs tiered storage'
const brokenDisk = 'needs a disk that fails; Kafka halts with its last one'
const transactions = 'needs transactions'
const quotas = 'needs a quota on changes of metadata'
const otherController = 'needs a controller that is elsewhere'
const otherVoters = 'needs a quorum whose voters change, which one that was begun with a single node is not'
const moving = 'needs a coordinator that moves or loads while it is asked, which nothing can hold it at'
const newGroups = 'needs a group of the newer protocol'
const oldFormat = 'no broker of version 4 answers it: there are no older formats of records'

/** Of the coordinator of a group, whatever it is asked. */
const coordinator = {
  COORDINATOR_NOT_AVAILABLE: moving,
  COORDINATOR_LOAD_IN_PROGRESS: moving,
  NOT_COORDINATOR: moving,
  GROUP_AUTHORIZATION_FAILED: acls,
} as const

/** Of the leader of a partition, whatever it is asked. */
const leader = {
  TOPIC_AUTHORIZATION_FAILED: acls,
  KAFKA_STORAGE_ERROR: brokenDisk,
  UNKNOWN_SERVER_ERROR: 'stands for a bug of the broker',
} as const

/** By the name of the API; UNSUPPORTED_VERSION where it is an answer, since another version closes the connection. */
export const documentedErrors: Readonly<Record<string, DocumentedErrors>> = {
  Produce: {
    reached: [
      'CORRUPT_MESSAGE',
      'INVALID_PRODUCER_EPOCH',
      'INVALID_RECORD',
      'INVALID_REQUIRED_ACKS',
      'INVALID_TIMESTAMP',
      'INVALID_TOPIC_EXCEPTION',
      'MESSAGE_TOO_LARGE',
      'OUT_OF_ORDER_SEQUENCE_NUMBER',
      'RECORD_LIST_TOO_LARGE',
      'TRANSACTIONAL_ID_AUTHORIZATION_FAILED',
      'UNKNOWN_TOPIC_OR_PARTITION',
      'UNSUPPORTED_COMPRESSION_TYPE',
    ],
    unreachable: {
      ...leader,
      CLUSTER_AUTHORIZATION_FAILED: acls,
      DUPLICATE_SEQUENCE_NUMBER: 'no broker of version 4 answers it: a duplicate gets its first answer',
      INVALID_PRODUCER_ID_MAPPING: transactions,
      INVALID_TXN_STATE: transactions,
      LEADER_NOT_AVAILABLE: followers,
      NOT_ENOUGH_REPLICAS: 'of one replica no more than one has to be in sync, whatever min.insync.replicas is',
      NOT_ENOUGH_REPLICAS_AFTER_APPEND: followers,
      NOT_LEADER_OR_FOLLOWER: followers,
      REQUEST_TIMED_OUT: followers,
      TRANSACTION_ABORTABLE: transactions,
      UNKNOWN_PRODUCER_ID: 'no broker of version 4 answers it',
      UNKNOWN_TOPIC_ID: 'needs version 13, which comes with transactions of version 2',
      UNSUPPORTED_FOR_MESSAGE_FORMAT: oldFormat,
    },
  },
  Fetch: {
    reached: [
      'FENCED_LEADER_EPOCH',
      'FETCH_SESSION_ID_NOT_FOUND',
      'FETCH_SESSION_TOPIC_ID_ERROR',
      'INCONSISTENT_TOPIC_ID',
      'INVALID_FETCH_SESSION_EPOCH',
      'NOT_LEADER_OR_FOLLOWER',
      'OFFSET_OUT_OF_RANGE',
      'UNKNOWN_LEADER_EPOCH',
      'UNKNOWN_TOPIC_ID',
      'UNKNOWN_TOPIC_OR_PARTITION',
    ],
    unreachable: {
      ...leader,
      CLUSTER_AUTHORIZATION_FAILED: acls,
      CORRUPT_MESSAGE: 'needs bytes on the disk that were changed behind the broker',
      INVALID_TOPIC_EXCEPTION: 'answered by brokers that know no topic of that name otherwise, never by version 4',
      OFFSET_MOVED_TO_TIERED_STORAGE: tiers,
      OFFSET_NOT_AVAILABLE: followers,
      REPLICA_NOT_AVAILABLE: followers,
      UNSUPPORTED_COMPRESSION_TYPE: 'needs a broker that packs records anew for old clients, which version 4 does not',
    },
  },
  ListOffsets: {
    reached: [
      'FENCED_LEADER_EPOCH',
      'INVALID_REQUEST',
      'UNKNOWN_LEADER_EPOCH',
      'UNKNOWN_TOPIC_OR_PARTITION',
      'UNSUPPORTED_VERSION',
    ],
    unreachable: {
      ...leader,
      LEADER_NOT_AVAILABLE: followers,
      NOT_LEADER_OR_FOLLOWER: followers,
      OFFSET_NOT_AVAILABLE: followers,
      REPLICA_NOT_AVAILABLE: followers,
      REQUEST_TIMED_OUT: tiers,
      UNSUPPORTED_FOR_MESSAGE_FORMAT: oldFormat,
    },
  },
  Metadata: {
    reached: ['INVALID_REQUEST', 'INVALID_TOPIC_EXCEPTION', 'UNKNOWN_TOPIC_ID', 'UNKNOWN_TOPIC_OR_PARTITION'],
    unreachable: {
      CLUSTER_AUTHORIZATION_FAILED: acls,
      TOPIC_AUTHORIZATION_FAILED: acls,
      INVALID_REPLICATION_FACTOR:
        'was answered by brokers that made topics by themselves; the controller tells nobody who asks for metadata',
      LEADER_NOT_AVAILABLE: followers,
      LISTENER_NOT_FOUND: followers,
      REBOOTSTRAP_REQUIRED: 'is asked for by clients, never answered by a broker',
      REPLICA_NOT_AVAILABLE: followers,
      UNKNOWN_SERVER_ERROR: 'stands for a bug of the broker',
    },
  },
  OffsetCommit: {
    reached: [
      'FENCED_INSTANCE_ID',
      'GROUP_ID_NOT_FOUND',
      'ILLEGAL_GENERATION',
      'OFFSET_METADATA_TOO_LARGE',
      'REBALANCE_IN_PROGRESS',
      'UNKNOWN_MEMBER_ID',
      'UNKNOWN_SERVER_ERROR',
      'UNKNOWN_TOPIC_ID',
      'UNKNOWN_TOPIC_OR_PARTITION',
    ],
    unreachable: {
      ...coordinator,
      INVALID_COMMIT_OFFSET_SIZE: 'no broker of version 4 answers it, but UNKNOWN_SERVER_ERROR',
      INVALID_GROUP_ID: 'the empty name is that of a group here, as of old',
      REQUEST_TIMED_OUT: followers,
      STALE_MEMBER_EPOCH: newGroups,
      TOPIC_AUTHORIZATION_FAILED: acls,
    },
  },
  OffsetFetch: {
    reached: ['UNKNOWN_TOPIC_ID'],
    unreachable: {
      ...coordinator,
      GROUP_ID_NOT_FOUND: newGroups,
      INVALID_GROUP_ID: 'the empty name is that of a group here, as of old',
      STALE_MEMBER_EPOCH: newGroups,
      TOPIC_AUTHORIZATION_FAILED: acls,
      UNKNOWN_MEMBER_ID: newGroups,
      UNKNOWN_TOPIC_OR_PARTITION: 'answered only for topics that the authorizer hides',
      UNSTABLE_OFFSET_COMMIT: transactions,
    },
  },
  FindCoordinator: {
    reached: ['INVALID_REQUEST'],
    unreachable: {
      COORDINATOR_NOT_AVAILABLE: 'answered by Kafka until its internal topic is there, where Rookery waits',
      COORDINATOR_LOAD_IN_PROGRESS: 'no broker of version 4 answers it',
      GROUP_AUTHORIZATION_FAILED: acls,
      TRANSACTIONAL_ID_AUTHORIZATION_FAILED: acls,
    },
  },
  JoinGroup: {
    reached: [
      'FENCED_INSTANCE_ID',
      'GROUP_MAX_SIZE_REACHED',
      'INCONSISTENT_GROUP_PROTOCOL',
      'INVALID_GROUP_ID',
      'INVALID_SESSION_TIMEOUT',
      'MEMBER_ID_REQUIRED',
      'UNKNOWN_MEMBER_ID',
    ],
    unreachable: {
      ...coordinator,
      REBALANCE_IN_PROGRESS: 'answered when the write of an assignment fails',
      UNSUPPORTED_VERSION: 'answered to static members in versions that have none; no client can write such a request',
    },
  },
  Heartbeat: {
    reached: [
      'FENCED_INSTANCE_ID',
      'ILLEGAL_GENERATION',
      'INVALID_GROUP_ID',
      'REBALANCE_IN_PROGRESS',
      'UNKNOWN_MEMBER_ID',
    ],
    unreachable: { ...coordinator, UNSUPPORTED_VERSION: 'answered to what no client can write in that version' },
  },
  LeaveGroup: {
    reached: ['FENCED_INSTANCE_ID', 'INVALID_GROUP_ID', 'UNKNOWN_MEMBER_ID'],
    unreachable: coordinator,
  },
  SyncGroup: {
    reached: [
      'FENCED_INSTANCE_ID',
      'ILLEGAL_GENERATION',
      'INCONSISTENT_GROUP_PROTOCOL',
      'INVALID_GROUP_ID',
      'REBALANCE_IN_PROGRESS',
      'UNKNOWN_MEMBER_ID',
      'UNKNOWN_SERVER_ERROR',
    ],
    unreachable: { ...coordinator, UNSUPPORTED_VERSION: 'answered to what no client can write in that version' },
  },
  DescribeGroups: {
    reached: ['GROUP_ID_NOT_FOUND'],
    unreachable: { ...coordinator, INVALID_GROUP_ID: 'a group without a name is one that is not there' },
  },
  ListGroups: { reached: [], unreachable: coordinator },
  ApiVersions: {
    reached: ['INVALID_REQUEST', 'UNSUPPORTED_VERSION'],
    unreachable: { REBOOTSTRAP_REQUIRED: 'needs version 5' },
  },
  CreateTopics: {
    reached: [
      'INVALID_CONFIG',
      'INVALID_PARTITIONS',
      'INVALID_REPLICATION_FACTOR',
      'INVALID_REPLICA_ASSIGNMENT',
      'INVALID_REQUEST',
      'INVALID_TOPIC_EXCEPTION',
      'REQUEST_TIMED_OUT',
      'TOPIC_ALREADY_EXISTS',
    ],
    unreachable: {
      CLUSTER_AUTHORIZATION_FAILED: acls,
      NOT_CONTROLLER: otherController,
      POLICY_VIOLATION: 'needs a policy, which is a Java class',
      THROTTLING_QUOTA_EXCEEDED: quotas,
      TOPIC_AUTHORIZATION_FAILED: acls,
    },
  },
  DeleteTopics: {
    reached: [
      'INVALID_REQUEST',
      'REQUEST_TIMED_OUT',
      'TOPIC_DELETION_DISABLED',
      'UNKNOWN_TOPIC_ID',
      'UNKNOWN_TOPIC_OR_PARTITION',
    ],
    unreachable: {
      INVALID_TOPIC_EXCEPTION: 'no broker of version 4 answers it',
      NOT_CONTROLLER: otherController,
      THROTTLING_QUOTA_EXCEEDED: quotas,
      TOPIC_AUTHORIZATION_FAILED: acls,
    },
  },
  DeleteRecords: {
    reached: ['INVALID_TOPIC_EXCEPTION', 'OFFSET_OUT_OF_RANGE', 'POLICY_VIOLATION', 'UNKNOWN_TOPIC_OR_PARTITION'],
    unreachable: { ...leader, NOT_LEADER_OR_FOLLOWER: followers, REQUEST_TIMED_OUT: followers },
  },
  InitProducerId: {
    reached: ['INVALID_REQUEST'],
    unreachable: {
      CLUSTER_AUTHORIZATION_FAILED: acls,
      CONCURRENT_TRANSACTIONS: transactions,
      COORDINATOR_LOAD_IN_PROGRESS: 'needs a controller that gives no ids',
      COORDINATOR_NOT_AVAILABLE: transactions,
      INVALID_PRODUCER_EPOCH: transactions,
      INVALID_PRODUCER_ID_MAPPING: transactions,
      INVALID_TRANSACTION_TIMEOUT: transactions,
      NOT_COORDINATOR: transactions,
      PRODUCER_FENCED: transactions,
      TRANSACTIONAL_ID_AUTHORIZATION_FAILED: acls,
    },
  },
  OffsetForLeaderEpoch: {
    reached: ['FENCED_LEADER_EPOCH', 'UNKNOWN_LEADER_EPOCH', 'UNKNOWN_TOPIC_OR_PARTITION'],
    unreachable: { ...leader, NOT_LEADER_OR_FOLLOWER: followers, REPLICA_NOT_AVAILABLE: followers },
  },
  DescribeConfigs: {
    reached: ['INVALID_REQUEST', 'INVALID_TOPIC_EXCEPTION', 'UNKNOWN_TOPIC_OR_PARTITION'],
    unreachable: {
      CLUSTER_AUTHORIZATION_FAILED: acls,
      GROUP_AUTHORIZATION_FAILED: acls,
      TOPIC_AUTHORIZATION_FAILED: acls,
    },
  },
  AlterConfigs: {
    reached: ['INVALID_CONFIG', 'INVALID_REQUEST', 'INVALID_TOPIC_EXCEPTION', 'UNKNOWN_TOPIC_OR_PARTITION'],
    unreachable: {
      CLUSTER_AUTHORIZATION_FAILED: acls,
      GROUP_AUTHORIZATION_FAILED: acls,
      NOT_CONTROLLER: otherController,
      POLICY_VIOLATION: 'needs a policy, which is a Java class',
      TOPIC_AUTHORIZATION_FAILED: acls,
    },
  },
  IncrementalAlterConfigs: {
    reached: ['INVALID_CONFIG', 'INVALID_REQUEST', 'INVALID_TOPIC_EXCEPTION', 'UNKNOWN_TOPIC_OR_PARTITION'],
    unreachable: {
      CLUSTER_AUTHORIZATION_FAILED: acls,
      GROUP_AUTHORIZATION_FAILED: acls,
      NOT_CONTROLLER: otherController,
      POLICY_VIOLATION: 'needs a policy, which is a Java class',
      TOPIC_AUTHORIZATION_FAILED: acls,
    },
  },
  DescribeLogDirs: {
    reached: [],
    unreachable: { CLUSTER_AUTHORIZATION_FAILED: acls, KAFKA_STORAGE_ERROR: brokenDisk, LOG_DIR_NOT_FOUND: brokenDisk },
  },
  CreatePartitions: {
    reached: [
      'INVALID_PARTITIONS',
      'INVALID_REPLICA_ASSIGNMENT',
      'INVALID_REQUEST',
      'REQUEST_TIMED_OUT',
      'UNKNOWN_TOPIC_OR_PARTITION',
    ],
    unreachable: {
      INVALID_REPLICATION_FACTOR: followers,
      INVALID_TOPIC_EXCEPTION: 'no broker of version 4 answers it',
      NOT_CONTROLLER: otherController,
      REASSIGNMENT_IN_PROGRESS: 'no broker of version 4 answers it',
      THROTTLING_QUOTA_EXCEEDED: quotas,
      TOPIC_AUTHORIZATION_FAILED: acls,
    },
  },
  DeleteGroups: {
    reached: ['GROUP_ID_NOT_FOUND', 'NON_EMPTY_GROUP'],
    unreachable: { ...coordinator, INVALID_GROUP_ID: 'a group without a name is one that is not there' },
  },
  OffsetDelete: {
    reached: [
      'GROUP_ID_NOT_FOUND',
      'GROUP_SUBSCRIBED_TO_TOPIC',
      'INVALID_GROUP_ID',
      'NON_EMPTY_GROUP',
      'UNKNOWN_TOPIC_OR_PARTITION',
    ],
    unreachable: { ...coordinator, TOPIC_AUTHORIZATION_FAILED: acls },
  },
  DescribeQuorum: {
    reached: ['UNKNOWN_TOPIC_OR_PARTITION'],
    unreachable: { CLUSTER_AUTHORIZATION_FAILED: acls, NOT_LEADER_OR_FOLLOWER: otherController },
  },
  DescribeCluster: {
    reached: ['MISMATCHED_ENDPOINT_TYPE', 'UNSUPPORTED_ENDPOINT_TYPE'],
    unreachable: { CLUSTER_AUTHORIZATION_FAILED: acls },
  },
  DescribeProducers: {
    reached: ['INVALID_TOPIC_EXCEPTION', 'UNKNOWN_TOPIC_OR_PARTITION'],
    unreachable: { NOT_LEADER_OR_FOLLOWER: followers, TOPIC_AUTHORIZATION_FAILED: acls },
  },
  ListConfigResources: {
    reached: ['UNSUPPORTED_VERSION'],
    unreachable: { CLUSTER_AUTHORIZATION_FAILED: acls },
  },
  DescribeTopicPartitions: {
    reached: ['INVALID_REQUEST', 'INVALID_TOPIC_EXCEPTION', 'UNKNOWN_TOPIC_OR_PARTITION'],
    unreachable: { LEADER_NOT_AVAILABLE: followers, TOPIC_AUTHORIZATION_FAILED: acls },
  },
  AlterReplicaLogDirs: {
    reached: ['LOG_DIR_NOT_FOUND', 'UNKNOWN_TOPIC_OR_PARTITION'],
    unreachable: {
      CLUSTER_AUTHORIZATION_FAILED: acls,
      KAFKA_STORAGE_ERROR: brokenDisk,
      NOT_LEADER_OR_FOLLOWER: followers,
      REPLICA_NOT_AVAILABLE: followers,
      UNKNOWN_SERVER_ERROR: 'stands for a bug of the broker',
    },
  },
  ElectLeaders: {
    reached: ['ELECTION_NOT_NEEDED', 'INVALID_REQUEST', 'UNKNOWN_TOPIC_OR_PARTITION'],
    unreachable: {
      CLUSTER_AUTHORIZATION_FAILED: acls,
      ELIGIBLE_LEADERS_NOT_AVAILABLE: followers,
      NOT_CONTROLLER: otherController,
      PREFERRED_LEADER_NOT_AVAILABLE: followers,
      REQUEST_TIMED_OUT: otherController,
    },
  },
  AlterPartitionReassignments: {
    reached: ['INVALID_REPLICA_ASSIGNMENT', 'NO_REASSIGNMENT_IN_PROGRESS', 'UNKNOWN_TOPIC_OR_PARTITION'],
    unreachable: {
      CLUSTER_AUTHORIZATION_FAILED: acls,
      INVALID_REPLICATION_FACTOR: followers,
      NOT_CONTROLLER: otherController,
      REQUEST_TIMED_OUT: otherController,
    },
  },
  ListPartitionReassignments: {
    reached: [],
    unreachable: {
      CLUSTER_AUTHORIZATION_FAILED: acls,
      NOT_CONTROLLER: otherController,
      REQUEST_TIMED_OUT: otherController,
    },
  },
  UpdateFeatures: {
    reached: ['INVALID_UPDATE_VERSION'],
    unreachable: {
      CLUSTER_AUTHORIZATION_FAILED: acls,
      FEATURE_UPDATE_FAILED: 'no broker of version 4 answers it',
      NOT_CONTROLLER: otherController,
      REQUEST_TIMED_OUT: otherController,
    },
  },
  UnregisterBroker: {
    reached: ['BROKER_ID_NOT_REGISTERED'],
    unreachable: {
      NONE: 'needs a second broker, which is gone for good: the one that answers would lose its own registration',
      CLUSTER_AUTHORIZATION_FAILED: acls,
      NOT_CONTROLLER: otherController,
      REQUEST_TIMED_OUT: otherController,
    },
  },
  AddRaftVoter: {
    reached: ['INCONSISTENT_CLUSTER_ID', 'INVALID_REQUEST', 'UNSUPPORTED_VERSION'],
    unreachable: {
      NONE: otherVoters,
      CLUSTER_AUTHORIZATION_FAILED: acls,
      DUPLICATE_VOTER: otherVoters,
      NOT_LEADER_OR_FOLLOWER: otherController,
      REQUEST_TIMED_OUT: 'needs a voter that does not follow',
    },
  },
  RemoveRaftVoter: {
    reached: ['INCONSISTENT_CLUSTER_ID', 'INVALID_REQUEST', 'UNSUPPORTED_VERSION'],
    unreachable: {
      NONE: otherVoters,
      CLUSTER_AUTHORIZATION_FAILED: acls,
      NOT_LEADER_OR_FOLLOWER: otherController,
      REQUEST_TIMED_OUT: otherController,
      VOTER_NOT_FOUND: otherVoters,
    },
  },
}
