import type { ApiMessage } from './message.ts'
import { AddRaftVoterRequest, AddRaftVoterResponse } from './messages/add-raft-voter.ts'
import { AlterConfigsRequest, AlterConfigsResponse } from './messages/alter-configs.ts'
import {
  AlterPartitionReassignmentsRequest,
  AlterPartitionReassignmentsResponse,
} from './messages/alter-partition-reassignments.ts'
import { AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse } from './messages/alter-replica-log-dirs.ts'
import { ApiVersionsRequest, ApiVersionsResponse } from './messages/api-versions.ts'
import { CreatePartitionsRequest, CreatePartitionsResponse } from './messages/create-partitions.ts'
import { CreateTopicsRequest, CreateTopicsResponse } from './messages/create-topics.ts'
import { DeleteGroupsRequest, DeleteGroupsResponse } from './messages/delete-groups.ts'
import { DeleteRecordsRequest, DeleteRecordsResponse } from './messages/delete-records.ts'
import { DeleteTopicsRequest, DeleteTopicsResponse } from './messages/delete-topics.ts'
import { DescribeClusterRequest, DescribeClusterResponse } from './messages/describe-cluster.ts'
import { DescribeConfigsRequest, DescribeConfigsResponse } from './messages/describe-configs.ts'
import { DescribeGroupsRequest, DescribeGroupsResponse } from './messages/describe-groups.ts'
import { DescribeLogDirsRequest, DescribeLogDirsResponse } from './messages/describe-log-dirs.ts'
import { DescribeProducersRequest, DescribeProducersResponse } from './messages/describe-producers.ts'
import { DescribeQuorumRequest, DescribeQuorumResponse } from './messages/describe-quorum.ts'
import {
  DescribeTopicPartitionsRequest,
  DescribeTopicPartitionsResponse,
} from './messages/describe-topic-partitions.ts'
import { ElectLeadersRequest, ElectLeadersResponse } from './messages/elect-leaders.ts'
import { FetchRequest, FetchResponse } from './messages/fetch.ts'
import { FindCoordinatorRequest, FindCoordinatorResponse } from './messages/find-coordinator.ts'
import { HeartbeatRequest, HeartbeatResponse } from './messages/heartbeat.ts'
import {
  IncrementalAlterConfigsRequest,
  IncrementalAlterConfigsResponse,
} from './messages/incremental-alter-configs.ts'
import { InitProducerIdRequest, InitProducerIdResponse } from './messages/init-producer-id.ts'
import { JoinGroupRequest, JoinGroupResponse } from './messages/join-group.ts'
import { LeaveGroupRequest, LeaveGroupResponse } from './messages/leave-group.ts'
import { ListConfigResourcesRequest, ListConfigResourcesResponse } from './messages/list-config-resources.ts'
import { ListGroupsRequest, ListGroupsResponse } from './messages/list-groups.ts'
import { ListOffsetsRequest, ListOffsetsResponse } from './messages/list-offsets.ts'
import {
  ListPartitionReassignmentsRequest,
  ListPartitionReassignmentsResponse,
} from './messages/list-partition-reassignments.ts'
import { MetadataRequest, MetadataResponse } from './messages/metadata.ts'
import { OffsetCommitRequest, OffsetCommitResponse } from './messages/offset-commit.ts'
import { OffsetDeleteRequest, OffsetDeleteResponse } from './messages/offset-delete.ts'
import { OffsetFetchRequest, OffsetFetchResponse } from './messages/offset-fetch.ts'
import { OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse } from './messages/offset-for-leader-epoch.ts'
import { ProduceRequest, ProduceResponse } from './messages/produce.ts'
import { RemoveRaftVoterRequest, RemoveRaftVoterResponse } from './messages/remove-raft-voter.ts'
import { SaslAuthenticateRequest, SaslAuthenticateResponse } from './messages/sasl-authenticate.ts'
import { SaslHandshakeRequest, SaslHandshakeResponse } from './messages/sasl-handshake.ts'
import { SyncGroupRequest, SyncGroupResponse } from './messages/sync-group.ts'
import { UnregisterBrokerRequest, UnregisterBrokerResponse } from './messages/unregister-broker.ts'
import { UpdateFeaturesRequest, UpdateFeaturesResponse } from './messages/update-features.ts'

/** One Kafka API: its key, its name, and what travels each way. */
export interface Api<Request extends ApiMessage = ApiMessage, Response extends ApiMessage = ApiMessage> {
  readonly key: number
  readonly name: string
  readonly request: Request
  readonly response: Response
}

/** Every API that is declared; whether a broker serves it is its own decision. */
export const apis = {
  Produce: api(0, 'Produce', ProduceRequest, ProduceResponse),
  Fetch: api(1, 'Fetch', FetchRequest, FetchResponse),
  ListOffsets: api(2, 'ListOffsets', ListOffsetsRequest, ListOffsetsResponse),
  Metadata: api(3, 'Metadata', MetadataRequest, MetadataResponse),
  OffsetCommit: api(8, 'OffsetCommit', OffsetCommitRequest, OffsetCommitResponse),
  OffsetFetch: api(9, 'OffsetFetch', OffsetFetchRequest, OffsetFetchResponse),
  FindCoordinator: api(10, 'FindCoordinator', FindCoordinatorRequest, FindCoordinatorResponse),
  JoinGroup: api(11, 'JoinGroup', JoinGroupRequest, JoinGroupResponse),
  Heartbeat: api(12, 'Heartbeat', HeartbeatRequest, HeartbeatResponse),
  LeaveGroup: api(13, 'LeaveGroup', LeaveGroupRequest, LeaveGroupResponse),
  SyncGroup: api(14, 'SyncGroup', SyncGroupRequest, SyncGroupResponse),
  DescribeGroups: api(15, 'DescribeGroups', DescribeGroupsRequest, DescribeGroupsResponse),
  ListGroups: api(16, 'ListGroups', ListGroupsRequest, ListGroupsResponse),
  SaslHandshake: api(17, 'SaslHandshake', SaslHandshakeRequest, SaslHandshakeResponse),
  ApiVersions: api(18, 'ApiVersions', ApiVersionsRequest, ApiVersionsResponse),
  CreateTopics: api(19, 'CreateTopics', CreateTopicsRequest, CreateTopicsResponse),
  DeleteTopics: api(20, 'DeleteTopics', DeleteTopicsRequest, DeleteTopicsResponse),
  DeleteRecords: api(21, 'DeleteRecords', DeleteRecordsRequest, DeleteRecordsResponse),
  InitProducerId: api(22, 'InitProducerId', InitProducerIdRequest, InitProducerIdResponse),
  OffsetForLeaderEpoch: api(23, 'OffsetForLeaderEpoch', OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
  DescribeConfigs: api(32, 'DescribeConfigs', DescribeConfigsRequest, DescribeConfigsResponse),
  AlterConfigs: api(33, 'AlterConfigs', AlterConfigsRequest, AlterConfigsResponse),
  AlterReplicaLogDirs: api(34, 'AlterReplicaLogDirs', AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse),
  DescribeLogDirs: api(35, 'DescribeLogDirs', DescribeLogDirsRequest, DescribeLogDirsResponse),
  SaslAuthenticate: api(36, 'SaslAuthenticate', SaslAuthenticateRequest, SaslAuthenticateResponse),
  CreatePartitions: api(37, 'CreatePartitions', CreatePartitionsRequest, CreatePartitionsResponse),
  DeleteGroups: api(42, 'DeleteGroups', DeleteGroupsRequest, DeleteGroupsResponse),
  ElectLeaders: api(43, 'ElectLeaders', ElectLeadersRequest, ElectLeadersResponse),
  IncrementalAlterConfigs: api(
    44,
    'IncrementalAlterConfigs',
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
  ),
  AlterPartitionReassignments: api(
    45,
    'AlterPartitionReassignments',
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
  ),
  ListPartitionReassignments: api(
    46,
    'ListPartitionReassignments',
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
  ),
  OffsetDelete: api(47, 'OffsetDelete', OffsetDeleteRequest, OffsetDeleteResponse),
  DescribeQuorum: api(55, 'DescribeQuorum', DescribeQuorumRequest, DescribeQuorumResponse),
  UpdateFeatures: api(57, 'UpdateFeatures', UpdateFeaturesRequest, UpdateFeaturesResponse),
  DescribeCluster: api(60, 'DescribeCluster', DescribeClusterRequest, DescribeClusterResponse),
  DescribeProducers: api(61, 'DescribeProducers', DescribeProducersRequest, DescribeProducersResponse),
  UnregisterBroker: api(64, 'UnregisterBroker', UnregisterBrokerRequest, UnregisterBrokerResponse),
  ListConfigResources: api(74, 'ListConfigResources', ListConfigResourcesRequest, ListConfigResourcesResponse),
  DescribeTopicPartitions: api(
    75,
    'DescribeTopicPartitions',
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
  ),
  AddRaftVoter: api(80, 'AddRaftVoter', AddRaftVoterRequest, AddRaftVoterResponse),
  RemoveRaftVoter: api(81, 'RemoveRaftVoter', RemoveRaftVoterRequest, RemoveRaftVoterResponse),
} as const

const byKey = new Map<number, Api>(Object.values(apis).map((each) => [each.key, each]))

/** Undefined for a key that isn't declared. */
export function apiByKey(key: number): Api | undefined {
  return byKey.get(key)
}

/** The API's name for logs: `Fetch`, or the number when it isn't declared. */
export function apiName(key: number): string {
  return byKey.get(key)?.name ?? String(key)
}

function api<Request extends ApiMessage, Response extends ApiMessage>(
  key: number,
  name: string,
  request: Request,
  response: Response,
): Api<Request, Response> {
  return { key, name, request, response }
}
