/**
 * protocol: Kafka's wire and record formats, as data and as code. It opens no socket, keeps no state between calls and
 * decides nothing: which versions are served, who may ask and what is stored are questions for the layers above.
 *
 * Messages, in reading order:
 * - `messages/*.ts`   one file for each API: its request and response, declared as data with the functions of schema.ts.
 *                     `FetchRequest` is both the declaration and the type of what decoding it gives.
 * - `message.ts`      `decodeMessage`, `encodeMessage`; a codec is generated (compile.ts) for each (message, version)
 *                     when it is first used.
 * - `frames.ts`       request and response headers, whole frames.
 * - `apis.ts`         every declared API by name and by key.
 * - `stored.ts`       messages in internal topics and in consumers' group metadata.
 * - `reader.ts`, `writer.ts`  primitive types, for formats that are no declared message.
 * - `errors.ts`       Kafka's error codes.
 *
 * Record batches:
 * - `BatchView`       the header of a batch, read and stamped where it lies (layout in batch-view.ts).
 * - `checkBatch`      is this a whole, undamaged batch? Before anything else is believed.
 * - `walkRecords`     are its records framed as a producer must frame them? Makes no object for a record.
 * - `openRecordBytes`, `readRecords`  unpack, and iterate.
 * - `RecordCursor`    walks stored records without an object for any, and copies them.
 * - `buildBatch`, `buildControlBatch`  for coordinators, the command line and tests.
 *
 * Invariants:
 * - Nothing is allocated for what a peer merely claims. A length or count is checked against the bytes that are left, the
 *   objects of one message are bounded by its size, and unpacking has a bound in bytes: otherwise one small request could
 *   take all the memory of the broker.
 * - Whatever the bytes are, decoding throws `MalformedRequestError` and batches throw `CorruptBatchError` or
 *   `BatchTooLargeError`, and nothing else. So one connection can be closed, and nobody else notices.
 * - Byte strings and records are slices of what was read, and record data is written as the slices it is: a batch is
 *   never copied on its way from socket to log to socket. Who keeps a slice keeps the whole buffer alive.
 * - int64 is a number, exact within 2^53. What lies beyond becomes `tooHighInt64` or `tooLowInt64`, which
 *   `Number.isSafeInteger` refuses, so a field out of range is answered with its error code. Only fields in which such
 *   values have a meaning (ListOffsets timestamps) are bigints.
 *
 * All of it runs on the event loop when called, except `openRecordBytesOff`, which unpacks in a worker.
 *
 * Sources: Kafka's message definitions; KIP-482 (flexible versions), KIP-98 (batch format 2); the LZ4 frame format.
 */
export { type Api, apiName, apis } from './apis.ts'
export { type BatchOptions, buildBatch, type RecordInput } from './batch-builder.ts'
export {
  type BatchCheck,
  BatchView,
  batchHeaderBytes,
  batchPrefixBytes,
  checkBatch,
  checkBatchShape,
} from './batch-view.ts'
export { type Codec, type CompressionCodec, codecById, codecId, compress } from './compression.ts'
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
  type RecordKey,
} from './message.ts'
export { ApiVersionsRequest, ApiVersionsResponse } from './messages/api-versions.ts'
export { ConsumerProtocolAssignment, ConsumerProtocolSubscription } from './messages/consumer-protocol.ts'
export { CreatePartitionsRequest, CreatePartitionsResponse } from './messages/create-partitions.ts'
export { CreateTopicsRequest, CreateTopicsResponse } from './messages/create-topics.ts'
export { DeleteRecordsRequest, DeleteRecordsResponse } from './messages/delete-records.ts'
export { DeleteTopicsRequest, DeleteTopicsResponse } from './messages/delete-topics.ts'
export { DescribeClusterResponse } from './messages/describe-cluster.ts'
export { DescribeConfigsRequest, DescribeConfigsResponse } from './messages/describe-configs.ts'
export { DescribeGroupsResponse } from './messages/describe-groups.ts'
export { DescribeLogDirsRequest, DescribeLogDirsResponse } from './messages/describe-log-dirs.ts'
export { DescribeProducersResponse } from './messages/describe-producers.ts'
export { DescribeQuorumResponse } from './messages/describe-quorum.ts'
export {
  DescribeTopicPartitionsRequest,
  DescribeTopicPartitionsResponse,
} from './messages/describe-topic-partitions.ts'
export { FetchRequest, FetchResponse } from './messages/fetch.ts'
export { FindCoordinatorRequest, FindCoordinatorResponse } from './messages/find-coordinator.ts'
export { GroupMetadataKey, GroupMetadataValue } from './messages/group-metadata-record.ts'
export { HeartbeatRequest, HeartbeatResponse } from './messages/heartbeat.ts'
export { InitProducerIdRequest } from './messages/init-producer-id.ts'
export { JoinGroupResponse } from './messages/join-group.ts'
export { LeaveGroupRequest } from './messages/leave-group.ts'
export { ListOffsetsRequest, ListOffsetsResponse } from './messages/list-offsets.ts'
export { MetadataRequest, MetadataResponse } from './messages/metadata.ts'
export { OffsetCommitRequest, OffsetCommitResponse } from './messages/offset-commit.ts'
export { OffsetCommitKey, OffsetCommitValue } from './messages/offset-commit-record.ts'
export { OffsetDeleteResponse } from './messages/offset-delete.ts'
export { OffsetFetchRequest, OffsetFetchResponse } from './messages/offset-fetch.ts'
export { OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse } from './messages/offset-for-leader-epoch.ts'
export { ProduceRequest, ProduceResponse } from './messages/produce.ts'
export { Reader } from './reader.ts'
export { maxRebaseGrowthBytes, RecordCursor } from './record-cursor.ts'
export {
  type KafkaRecord,
  openRecordBytes,
  openRecordBytesOff,
  type RecordHeader,
  type RecordWalk,
  readRecords,
  walkRecords,
} from './records.ts'
export { decodeRecordKey, decodeVersioned, encodeRecordKey, encodeVersioned, readRecordType } from './stored.ts'
export type { VersionRange } from './versions.ts'
export { Writer } from './writer.ts'
