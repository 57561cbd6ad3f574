import { addRaftVoter } from './add-raft-voter.ts'
import { alterConfigs } from './alter-configs.ts'
import { alterPartitionReassignments } from './alter-partition-reassignments.ts'
import { alterReplicaLogDirs } from './alter-replica-log-dirs.ts'
import type { ServedApi } from './api.ts'
import { apiVersions } from './api-versions.ts'
import { createPartitions } from './create-partitions.ts'
import { createTopics } from './create-topics.ts'
import { deleteGroups } from './delete-groups.ts'
import { deleteRecords } from './delete-records.ts'
import { deleteTopics } from './delete-topics.ts'
import { describeCluster } from './describe-cluster.ts'
import { describeConfigs } from './describe-configs.ts'
import { describeGroups } from './describe-groups.ts'
import { describeLogDirs } from './describe-log-dirs.ts'
import { describeProducers } from './describe-producers.ts'
import { describeQuorum } from './describe-quorum.ts'
import { describeTopicPartitions } from './describe-topic-partitions.ts'
import { electLeaders } from './elect-leaders.ts'
import { fetch } from './fetch.ts'
import { findCoordinator } from './find-coordinator.ts'
import { heartbeat } from './heartbeat.ts'
import { incrementalAlterConfigs } from './incremental-alter-configs.ts'
import { initProducerId } from './init-producer-id.ts'
import { joinGroup } from './join-group.ts'
import { leaveGroup } from './leave-group.ts'
import { listConfigResources } from './list-config-resources.ts'
import { listGroups } from './list-groups.ts'
import { listOffsets } from './list-offsets.ts'
import { listPartitionReassignments } from './list-partition-reassignments.ts'
import { metadata } from './metadata.ts'
import { offsetCommit } from './offset-commit.ts'
import { offsetDelete } from './offset-delete.ts'
import { offsetFetch } from './offset-fetch.ts'
import { offsetForLeaderEpoch } from './offset-for-leader-epoch.ts'
import { produce } from './produce.ts'
import { removeRaftVoter } from './remove-raft-voter.ts'
import { syncGroup } from './sync-group.ts'
import { unregisterBroker } from './unregister-broker.ts'
import { updateFeatures } from './update-features.ts'

/** Every API that is served, by key: what ApiVersions answers and the table in the README is made of. */
export const servedApis: readonly ServedApi[] = [
  produce,
  fetch,
  listOffsets,
  metadata,
  offsetCommit,
  offsetFetch,
  findCoordinator,
  joinGroup,
  heartbeat,
  leaveGroup,
  syncGroup,
  describeGroups,
  listGroups,
  apiVersions(() => servedApis),
  createTopics,
  createPartitions,
  deleteTopics,
  deleteRecords,
  initProducerId,
  describeConfigs,
  alterConfigs,
  incrementalAlterConfigs,
  describeCluster,
  offsetForLeaderEpoch,
  describeLogDirs,
  deleteGroups,
  offsetDelete,
  describeQuorum,
  describeProducers,
  listConfigResources,
  describeTopicPartitions,
  addRaftVoter,
  alterPartitionReassignments,
  alterReplicaLogDirs,
  electLeaders,
  listPartitionReassignments,
  removeRaftVoter,
  unregisterBroker,
  updateFeatures,
].sort((left, right) => left.api.key - right.api.key)
