/** One of Kafka's error codes. `retriable`: a client may send the same request again and hope. */
export interface KafkaError<Code extends number = number> {
  readonly code: Code
  readonly retriable: boolean
  readonly message: string
}

type Table = typeof errors
type ErrorName = keyof Table
type CodesByName = { readonly [Name in ErrorName]: Table[Name]['code'] }

/** Kafka's error codes by name. */
export const errors = {
  UNKNOWN_SERVER_ERROR: final(-1, 'The broker failed in an unexpected way'),
  NONE: final(0, 'No error'),
  OFFSET_OUT_OF_RANGE: final(1, 'The offset is outside the range the partition holds'),
  CORRUPT_MESSAGE: retriable(2, 'The record batch failed its checksum or is otherwise damaged'),
  UNKNOWN_TOPIC_OR_PARTITION: retriable(3, 'This broker hosts no such topic or partition'),
  INVALID_FETCH_SIZE: final(4, 'The fetch size is not valid'),
  LEADER_NOT_AVAILABLE: retriable(5, 'The partition has no leader at the moment'),
  NOT_LEADER_OR_FOLLOWER: retriable(6, 'This broker does not lead the partition, or holds no replica of it'),
  REQUEST_TIMED_OUT: retriable(7, 'The request did not complete in its time'),
  BROKER_NOT_AVAILABLE: final(8, 'The broker is not available'),
  REPLICA_NOT_AVAILABLE: retriable(9, 'The replica is not available here'),
  MESSAGE_TOO_LARGE: final(10, 'The record batch is larger than the topic allows'),
  STALE_CONTROLLER_EPOCH: final(11, 'A newer controller has taken over'),
  OFFSET_METADATA_TOO_LARGE: final(12, 'The metadata of a committed offset is too long'),
  NETWORK_EXCEPTION: retriable(13, 'The connection ended before an answer came'),
  COORDINATOR_LOAD_IN_PROGRESS: retriable(14, 'The coordinator is still loading its state'),
  COORDINATOR_NOT_AVAILABLE: retriable(15, 'The coordinator is not available'),
  NOT_COORDINATOR: retriable(16, 'This broker is not the coordinator asked for'),
  INVALID_TOPIC_EXCEPTION: final(17, 'The topic name is not valid, or the topic may not be used this way'),
  RECORD_LIST_TOO_LARGE: final(18, 'The record batches are larger than a log segment'),
  NOT_ENOUGH_REPLICAS: retriable(19, 'Fewer replicas are in sync than the topic requires'),
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: retriable(
    20,
    'The records were written, but to fewer in-sync replicas than required',
  ),
  INVALID_REQUIRED_ACKS: final(21, 'Acks must be -1, 0 or 1'),
  ILLEGAL_GENERATION: final(22, 'The group is in another generation'),
  INCONSISTENT_GROUP_PROTOCOL: final(23, 'The member shares no protocol with the rest of the group'),
  INVALID_GROUP_ID: final(24, 'The group id is not valid'),
  UNKNOWN_MEMBER_ID: final(25, 'The group has no such member'),
  INVALID_SESSION_TIMEOUT: final(26, 'The session timeout is outside the range the broker allows'),
  REBALANCE_IN_PROGRESS: final(27, 'The group is rebalancing: join again'),
  INVALID_COMMIT_OFFSET_SIZE: final(28, 'The offset to commit is too large'),
  TOPIC_AUTHORIZATION_FAILED: final(29, 'Not authorized for the topic'),
  GROUP_AUTHORIZATION_FAILED: final(30, 'Not authorized for the group'),
  CLUSTER_AUTHORIZATION_FAILED: final(31, 'Not authorized for the cluster'),
  INVALID_TIMESTAMP: final(32, 'The timestamp of a record is outside the range the topic allows'),
  UNSUPPORTED_SASL_MECHANISM: final(33, 'The broker does not offer this SASL mechanism'),
  ILLEGAL_SASL_STATE: final(34, 'The request does not fit the state of SASL authentication'),
  UNSUPPORTED_VERSION: final(35, 'The version of the API is not supported'),
  TOPIC_ALREADY_EXISTS: final(36, 'A topic of this name exists already'),
  INVALID_PARTITIONS: final(37, 'The number of partitions is not valid'),
  INVALID_REPLICATION_FACTOR: final(38, 'The replication factor is below 1 or above the number of brokers'),
  INVALID_REPLICA_ASSIGNMENT: final(39, 'The replica assignment is not valid'),
  INVALID_CONFIG: final(40, 'A configuration is not valid'),
  NOT_CONTROLLER: retriable(41, 'This node is not the controller'),
  INVALID_REQUEST: final(42, 'The request contradicts itself or what the protocol allows'),
  UNSUPPORTED_FOR_MESSAGE_FORMAT: final(43, 'The message format on the broker does not support the request'),
  POLICY_VIOLATION: final(44, 'A policy of the cluster forbids the request'),
  OUT_OF_ORDER_SEQUENCE_NUMBER: final(45, 'The sequence number does not follow the last one of this producer'),
  DUPLICATE_SEQUENCE_NUMBER: final(46, 'The sequence number was written before'),
  INVALID_PRODUCER_EPOCH: final(47, 'A newer run of this producer has taken over'),
  INVALID_TXN_STATE: final(48, 'The state of the transaction does not allow the operation'),
  INVALID_PRODUCER_ID_MAPPING: final(49, 'The producer id is not the one of this transactional id'),
  INVALID_TRANSACTION_TIMEOUT: final(50, 'The transaction timeout is above what the broker allows'),
  CONCURRENT_TRANSACTIONS: retriable(51, 'The previous transaction of this producer is not finished yet'),
  TRANSACTION_COORDINATOR_FENCED: final(52, 'A newer transaction coordinator has taken over'),
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: final(53, 'Not authorized for the transactional id'),
  SECURITY_DISABLED: final(54, 'Security is not enabled on the broker'),
  OPERATION_NOT_ATTEMPTED: final(55, 'The operation was not tried because an earlier one failed'),
  KAFKA_STORAGE_ERROR: retriable(56, 'The log of the partition is damaged, or its disk failed'),
  LOG_DIR_NOT_FOUND: final(57, 'The broker has no such log directory'),
  SASL_AUTHENTICATION_FAILED: final(58, 'SASL authentication failed'),
  UNKNOWN_PRODUCER_ID: final(59, 'The broker has no state of this producer id'),
  REASSIGNMENT_IN_PROGRESS: final(60, 'The partitions are being reassigned'),
  DELEGATION_TOKEN_AUTH_DISABLED: final(61, 'Delegation tokens are not enabled'),
  DELEGATION_TOKEN_NOT_FOUND: final(62, 'There is no such delegation token'),
  DELEGATION_TOKEN_OWNER_MISMATCH: final(63, 'The principal is neither owner nor renewer of the delegation token'),
  DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: final(64, 'Delegation token requests are not allowed on this connection'),
  DELEGATION_TOKEN_AUTHORIZATION_FAILED: final(65, 'Not authorized for the delegation token'),
  DELEGATION_TOKEN_EXPIRED: final(66, 'The delegation token has expired'),
  INVALID_PRINCIPAL_TYPE: final(67, 'The type of principal is not supported'),
  NON_EMPTY_GROUP: final(68, 'The group has members'),
  GROUP_ID_NOT_FOUND: final(69, 'There is no such group'),
  FETCH_SESSION_ID_NOT_FOUND: retriable(70, 'There is no such fetch session'),
  INVALID_FETCH_SESSION_EPOCH: retriable(71, 'The fetch session is at another epoch'),
  LISTENER_NOT_FOUND: retriable(72, 'The leader has no listener like the one the request came in on'),
  TOPIC_DELETION_DISABLED: final(73, 'Deleting topics is switched off'),
  FENCED_LEADER_EPOCH: retriable(74, "The leader epoch is older than the broker's"),
  UNKNOWN_LEADER_EPOCH: retriable(75, "The leader epoch is newer than the broker's"),
  UNSUPPORTED_COMPRESSION_TYPE: final(76, 'The codec is not allowed in this version of the request'),
  STALE_BROKER_EPOCH: final(77, 'The broker has registered again since'),
  OFFSET_NOT_AVAILABLE: retriable(78, 'The new leader does not know its high watermark yet'),
  MEMBER_ID_REQUIRED: final(79, 'Join again with the member id in this answer'),
  PREFERRED_LEADER_NOT_AVAILABLE: retriable(80, 'The preferred leader is not available'),
  GROUP_MAX_SIZE_REACHED: final(81, 'The group has as many members as it may'),
  FENCED_INSTANCE_ID: final(82, 'Another member has taken over this group instance id'),
  ELIGIBLE_LEADERS_NOT_AVAILABLE: retriable(83, 'No replica that may lead is available'),
  ELECTION_NOT_NEEDED: retriable(84, 'The partition has the right leader already'),
  NO_REASSIGNMENT_IN_PROGRESS: final(85, 'The partition is not being reassigned'),
  GROUP_SUBSCRIBED_TO_TOPIC: final(86, 'The group is subscribed to the topic'),
  INVALID_RECORD: final(87, 'A record breaks a rule of the broker or the topic'),
  UNSTABLE_OFFSET_COMMIT: retriable(88, 'Offsets of an open transaction are pending'),
  THROTTLING_QUOTA_EXCEEDED: retriable(89, 'The quota is used up'),
  PRODUCER_FENCED: final(90, 'A newer producer with this transactional id has taken over'),
  RESOURCE_NOT_FOUND: final(91, 'There is no such resource'),
  DUPLICATE_RESOURCE: final(92, 'The resource exists already or is named twice'),
  UNACCEPTABLE_CREDENTIAL: final(93, 'The credential does not meet the requirements'),
  INCONSISTENT_VOTER_SET: final(94, 'The sender has another set of voters'),
  INVALID_UPDATE_VERSION: final(95, 'The update does not follow the current version'),
  FEATURE_UPDATE_FAILED: final(96, 'The feature could not be updated'),
  PRINCIPAL_DESERIALIZATION_FAILURE: final(97, 'The forwarded principal could not be read'),
  SNAPSHOT_NOT_FOUND: final(98, 'There is no such snapshot'),
  POSITION_OUT_OF_RANGE: final(99, 'The position is outside the snapshot'),
  UNKNOWN_TOPIC_ID: retriable(100, 'This broker hosts no topic with this id'),
  DUPLICATE_BROKER_REGISTRATION: final(101, 'Another broker with this id is registered'),
  BROKER_ID_NOT_REGISTERED: final(102, 'No broker with this id is registered'),
  INCONSISTENT_TOPIC_ID: retriable(103, 'The topic has another id'),
  INCONSISTENT_CLUSTER_ID: final(104, 'The request is meant for another cluster'),
  TRANSACTIONAL_ID_NOT_FOUND: final(105, 'There is no such transactional id'),
  FETCH_SESSION_TOPIC_ID_ERROR: retriable(106, 'The fetch session mixes topic names and topic ids'),
  INELIGIBLE_REPLICA: final(107, 'The replica may not join the in-sync set'),
  NEW_LEADER_ELECTED: final(108, 'The change made another replica the leader'),
  OFFSET_MOVED_TO_TIERED_STORAGE: final(109, 'The offset is in tiered storage only'),
  FENCED_MEMBER_EPOCH: final(110, 'The member epoch was fenced: join again'),
  UNRELEASED_INSTANCE_ID: final(111, 'The group instance id is in use by another member'),
  UNSUPPORTED_ASSIGNOR: final(112, 'The group coordinator does not offer this assignor'),
  STALE_MEMBER_EPOCH: final(113, 'The member epoch is out of date'),
  MISMATCHED_ENDPOINT_TYPE: final(114, 'The request came to an endpoint of the wrong type'),
  UNSUPPORTED_ENDPOINT_TYPE: final(115, 'The type of endpoint is not supported'),
  UNKNOWN_CONTROLLER_ID: final(116, 'There is no such controller'),
  UNKNOWN_SUBSCRIPTION_ID: final(117, 'The telemetry subscription is out of date'),
  TELEMETRY_TOO_LARGE: final(118, 'The telemetry is larger than the broker takes'),
  INVALID_REGISTRATION: final(119, 'The registration is not valid'),
  TRANSACTION_ABORTABLE: final(120, 'The transaction must be aborted'),
  INVALID_RECORD_STATE: final(121, 'The state of the record does not allow the operation'),
  SHARE_SESSION_NOT_FOUND: retriable(122, 'There is no such share session'),
  INVALID_SHARE_SESSION_EPOCH: retriable(123, 'The share session is at another epoch'),
  FENCED_STATE_EPOCH: final(124, 'The state epoch of the share group is out of date'),
  INVALID_VOTER_KEY: final(125, "The voter's directory id is another"),
  DUPLICATE_VOTER: final(126, 'The voter is in the set already'),
  VOTER_NOT_FOUND: final(127, 'The voter is not in the set'),
  INVALID_REGULAR_EXPRESSION: final(128, 'The regular expression is not valid'),
  REBOOTSTRAP_REQUIRED: final(129, 'The client must start again from its bootstrap servers'),
  STREAMS_INVALID_TOPOLOGY: final(130, 'The streams topology is not valid'),
  STREAMS_INVALID_TOPOLOGY_EPOCH: final(131, 'The epoch of the streams topology is not valid'),
  STREAMS_TOPOLOGY_FENCED: final(132, 'The epoch of the streams topology is out of date'),
  SHARE_SESSION_LIMIT_REACHED: retriable(133, 'There are as many share sessions as there may be'),
} as const

/** `ErrorCode.NOT_LEADER_OR_FOLLOWER` is 6. */
export const ErrorCode = Object.fromEntries(
  Object.entries(errors).map(([name, { code }]) => [name, code]),
) as unknown as CodesByName
export type ErrorCode = CodesByName[ErrorName]

const namesByCode = new Map<number, ErrorName>(
  Object.entries(errors).map(([name, { code }]) => [code, name as ErrorName]),
)

/** `NOT_LEADER_OR_FOLLOWER` for 6; the number itself for a code that isn't known. */
export function errorName(code: number): string {
  return namesByCode.get(code) ?? String(code)
}

/** Undefined for a code that isn't known. */
export function errorByCode(code: number): KafkaError | undefined {
  const name = namesByCode.get(code)
  return name && errors[name]
}

function retriable<const Code extends number>(code: Code, message: string): KafkaError<Code> {
  return { code, retriable: true, message }
}

function final<const Code extends number>(code: Code, message: string): KafkaError<Code> {
  return { code, retriable: false, message }
}
