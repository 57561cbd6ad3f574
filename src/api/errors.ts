import {
  type AlterConfigResult,
  CoordinationError,
  type CreatePartitionsResult,
  type CreateTopicRefusal,
  type DeleteTopicResult,
} from '../coordination/index.ts'
import type {
  CoordinatorRefusal,
  DeleteGroupResponse,
  JoinRefusal,
  OffsetCommitResponse,
  OffsetDeleteResponse,
} from '../group/index.ts'
import { ErrorCode, errorByCode } from '../protocol/index.ts'
import type { AppendOutcome, DeleteRecordsOutcome, FetchSessionRefusal, ReplicaRefusal } from '../replication/index.ts'

type ReasonOf<Outcome> = Outcome extends { readonly ok: false; readonly reason: infer Reason } ? Reason : never
/** Why a service did not do what was asked. */
export type Refusal =
  | ReasonOf<AppendOutcome>
  | ReplicaRefusal
  | FetchSessionRefusal
  | ReasonOf<DeleteRecordsOutcome>
  | CreateTopicRefusal
  | ReasonOf<DeleteTopicResult>
  | ReasonOf<CreatePartitionsResult>
  | ReasonOf<AlterConfigResult>
  | CoordinatorRefusal
  | JoinRefusal
  | ReasonOf<OffsetCommitResponse>
  | NonNullable<DeleteGroupResponse['reason']>
  | ReasonOf<OffsetDeleteResponse>
  | 'group-subscribed-to-topic'
  | 'offset-metadata-too-large'

/** The one place that turns an outcome into an error code. Where a code depends on the version of the API, its file says so. */
const codes: Readonly<Record<Refusal, ErrorCode>> = {
  'corrupt-message': ErrorCode.CORRUPT_MESSAGE,
  'not-one-batch': ErrorCode.INVALID_RECORD,
  'invalid-record': ErrorCode.INVALID_RECORD,
  'message-too-large': ErrorCode.MESSAGE_TOO_LARGE,
  'record-list-too-large': ErrorCode.RECORD_LIST_TOO_LARGE,
  'invalid-timestamp': ErrorCode.INVALID_TIMESTAMP,
  'unsupported-compression-type': ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
  'unsupported-for-message-format': ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
  'out-of-order-sequence': ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
  'invalid-producer-epoch': ErrorCode.INVALID_PRODUCER_EPOCH,
  'fenced-leader-epoch': ErrorCode.FENCED_LEADER_EPOCH,
  'unknown-leader-epoch': ErrorCode.UNKNOWN_LEADER_EPOCH,
  'unknown-topic-or-partition': ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  'inconsistent-topic-id': ErrorCode.INCONSISTENT_TOPIC_ID,
  'not-leader-or-follower': ErrorCode.NOT_LEADER_OR_FOLLOWER,
  'storage-error': ErrorCode.KAFKA_STORAGE_ERROR,
  'offset-out-of-range': ErrorCode.OFFSET_OUT_OF_RANGE,
  'offset-not-available': ErrorCode.OFFSET_NOT_AVAILABLE,
  'unsupported-version': ErrorCode.UNSUPPORTED_VERSION,
  'fetch-session-id-not-found': ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
  'invalid-fetch-session-epoch': ErrorCode.INVALID_FETCH_SESSION_EPOCH,
  'fetch-session-topic-id-error': ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
  'not-enough-replicas': ErrorCode.NOT_ENOUGH_REPLICAS,
  'not-enough-replicas-after-append': ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
  'request-timed-out': ErrorCode.REQUEST_TIMED_OUT,
  'topic-exists': ErrorCode.TOPIC_ALREADY_EXISTS,
  'invalid-topic': ErrorCode.INVALID_TOPIC_EXCEPTION,
  'invalid-partitions': ErrorCode.INVALID_PARTITIONS,
  'invalid-replication-factor': ErrorCode.INVALID_REPLICATION_FACTOR,
  'invalid-replica-assignment': ErrorCode.INVALID_REPLICA_ASSIGNMENT,
  'invalid-config': ErrorCode.INVALID_CONFIG,
  'invalid-request': ErrorCode.INVALID_REQUEST,
  'unknown-topic': ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  'unknown-topic-id': ErrorCode.UNKNOWN_TOPIC_ID,
  'topic-deletion-disabled': ErrorCode.TOPIC_DELETION_DISABLED,
  'policy-violation': ErrorCode.POLICY_VIOLATION,
  'not-coordinator': ErrorCode.NOT_COORDINATOR,
  'coordinator-load-in-progress': ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
  'coordinator-not-available': ErrorCode.COORDINATOR_NOT_AVAILABLE,
  'unknown-member-id': ErrorCode.UNKNOWN_MEMBER_ID,
  'illegal-generation': ErrorCode.ILLEGAL_GENERATION,
  'rebalance-in-progress': ErrorCode.REBALANCE_IN_PROGRESS,
  'inconsistent-group-protocol': ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
  'fenced-instance-id': ErrorCode.FENCED_INSTANCE_ID,
  'invalid-group-id': ErrorCode.INVALID_GROUP_ID,
  'invalid-session-timeout': ErrorCode.INVALID_SESSION_TIMEOUT,
  'member-id-required': ErrorCode.MEMBER_ID_REQUIRED,
  'group-max-size-reached': ErrorCode.GROUP_MAX_SIZE_REACHED,
  'group-id-not-found': ErrorCode.GROUP_ID_NOT_FOUND,
  'non-empty-group': ErrorCode.NON_EMPTY_GROUP,
  'group-subscribed-to-topic': ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
  'offset-metadata-too-large': ErrorCode.OFFSET_METADATA_TOO_LARGE,
  'unknown-server-error': ErrorCode.UNKNOWN_SERVER_ERROR,
}

export function errorCodeOf(refusal: Refusal): ErrorCode {
  return codes[refusal]
}

/** What to tell a client about something that was thrown. */
export function errorCodeOfFault(fault: unknown): ErrorCode {
  // No controller answered in time: the same request may succeed later, and may also have been carried out.
  return fault instanceof CoordinationError ? ErrorCode.REQUEST_TIMED_OUT : ErrorCode.UNKNOWN_SERVER_ERROR
}

/** A sentence for an answer that has room for one. */
export function errorMessageOf(errorCode: ErrorCode): string | null {
  return errorCode === ErrorCode.NONE ? null : (errorByCode(errorCode)?.message ?? null)
}
