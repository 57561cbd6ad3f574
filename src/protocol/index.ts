/**
 * protocol: Kafka's wire formats as data and code. Messages, errors, framing. It opens no socket and decides nothing.
 */
export { type Api, apiByKey, apiName, apis } from './apis.ts'
export { type BatchOptions, buildBatch, type RecordInput } from './batch-builder.ts'
export {
  type BatchCheck,
  BatchView,
  batchHeaderBytes,
  batchPrefixBytes,
  checkBatch,
  checkBatchShape,
} from './batch-view.ts'
export { type Codec, codecById, codecId } from './compression.ts'
export {
  buildControlBatch,
  type ControlBatchOptions,
  type ControlRecord,
  parseControlRecord,
} from './control-record.ts'
export { crc32c } from './crc32c.ts'
export { ErrorCode, errorByCode, errorName, errors, type KafkaError } from './errors.ts'
export { BatchTooLargeError, CorruptBatchError, MalformedRequestError, UnsupportedFieldError } from './faults.ts'
export { encodeRequest, encodeResponse, type RequestHeader, readRequestHeader, readResponseHeader } from './frames.ts'
export { tooHighInt64, tooLowInt64 } from './int64.ts'
export {
  type ApiMessage,
  decodeMessage,
  encodeMessage,
  type Message,
  type MessageInput,
  type MessageType,
} from './message.ts'
export { AlterConfigsRequest, AlterConfigsResponse } from './messages/alter-configs.ts'
export { ApiVersionsRequest, ApiVersionsResponse } from './messages/api-versions.ts'
export { ConsumerProtocolAssignment, ConsumerProtocolSubscription } from './messages/consumer-protocol.ts'
export { CreatePartitionsRequest, CreatePartitionsResponse } from './messages/create-partitions.ts'
export { CreateTopicsRequest, CreateTopicsResponse } from './messages/create-topics.ts'
export { DeleteGroupsRequest, DeleteGroupsResponse } from './messages/delete-groups.ts'
export { DeleteRecordsRequest, DeleteRecordsResponse } from './messages/delete-records.ts'
export { DeleteTopicsRequest, DeleteTopicsResponse } from './messages/delete-topics.ts'
export { DescribeClusterRequest, DescribeClusterResponse } from './messages/describe-cluster.ts'
export { DescribeConfigsRequest, DescribeConfigsResponse } from './messages/describe-configs.ts'
export { DescribeGroupsRequest, DescribeGroupsResponse } from './messages/describe-groups.ts'
export { FetchRequest, FetchResponse } from './messages/fetch.ts'
export { FindCoordinatorRequest, FindCoordinatorResponse } from './messages/find-coordinator.ts'
export { GroupMetadataKey, GroupMetadataValue } from './messages/group-metadata-record.ts'
export { HeartbeatRequest, HeartbeatResponse } from './messages/heartbeat.ts'
export {
  IncrementalAlterConfigsRequest,
  IncrementalAlterConfigsResponse,
} from './messages/incremental-alter-configs.ts'
export { InitProducerIdRequest, InitProducerIdResponse } from './messages/init-producer-id.ts'
export { JoinGroupRequest, JoinGroupResponse } from './messages/join-group.ts'
export { LeaveGroupRequest, LeaveGroupResponse } from './messages/leave-group.ts'
export { ListGroupsRequest, ListGroupsResponse } from './messages/list-groups.ts'
export { ListOffsetsRequest, ListOffsetsResponse } from './messages/list-offsets.ts'
export { MetadataRequest, MetadataResponse } from './messages/metadata.ts'
export { OffsetCommitRequest, OffsetCommitResponse } from './messages/offset-commit.ts'
export { OffsetCommitKey, OffsetCommitValue } from './messages/offset-commit-record.ts'
export { OffsetFetchRequest, OffsetFetchResponse } from './messages/offset-fetch.ts'
export { OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse } from './messages/offset-for-leader-epoch.ts'
export { ProduceRequest, ProduceResponse } from './messages/produce.ts'
export { SaslAuthenticateRequest, SaslAuthenticateResponse } from './messages/sasl-authenticate.ts'
export { SaslHandshakeRequest, SaslHandshakeResponse } from './messages/sasl-handshake.ts'
export { SyncGroupRequest, SyncGroupResponse } from './messages/sync-group.ts'
export { Reader } from './reader.ts'
export {
  type KafkaRecord,
  openRecordBytes,
  openRecordBytesOff,
  type RecordHeader,
  type RecordWalk,
  readRecords,
  walkRecords,
} from './records.ts'
export type { VersionRange } from './versions.ts'
export { Writer } from './writer.ts'
