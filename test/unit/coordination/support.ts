import type { BrokerId, Uuid } from '../../../src/base/index.ts'
import type { ConfigRules } from '../../../src/controller/index.ts'
import {
  type Coordination,
  createRaftCoordination,
  type RaftCoordinationOptions,
} from '../../../src/coordination/index.ts'
import type { Platform } from '../../../src/platform/index.ts'
import { createRealPlatform } from '../../../src/platform/index.ts'
import { type NodeId, openMemoryStorage, RaftNode, type RaftStorage } from '../../../src/raft/index.ts'
import { silentLogger } from '../../../src/telemetry/index.ts'

export const anyConfig: ConfigRules = { topicFault: () => undefined, brokerFault: () => undefined }

export const nodeId = 1 as NodeId

export const endpoints = [{ name: 'PLAINTEXT', host: 'localhost', port: 9092, securityProtocol: 'PLAINTEXT' } as const]

/** Storage of a quorum of one. Opened again on the same store it has what was written. */
export function openStorage(platform: Platform): Promise<RaftStorage> {
  const directoryId = platform.random.uuid()
  return openMemoryStorage({ timers: platform.timers, bootstrap: { voters: [{ id: nodeId, directoryId }] } })
}

export function coordinationOver(
  storage: RaftStorage,
  platform: Platform,
  options: Partial<RaftCoordinationOptions> = {},
): { coordination: Coordination; raft: RaftNode } {
  const raft = new RaftNode({ id: nodeId, storage, transport: undefined, platform, logger: silentLogger })
  const coordination = createRaftCoordination({
    raft,
    platform,
    logger: silentLogger,
    brokerId: nodeId as number as BrokerId,
    clusterId: 'test-cluster',
    controller: { defaultPartitionCount: 1, defaultReplicationFactor: 1, topicDeletionEnabled: true },
    configRules: anyConfig,
    heartbeatIntervalMs: 2000,
    sessionTimeoutMs: 9000,
    maxBytesBetweenSnapshots: 20 << 20,
    maxSnapshotIntervalMs: 0,
    ...options,
  })
  return { coordination, raft }
}

export function registrationOf(platform: Platform, incarnationId: Uuid = platform.random.uuid()) {
  return { brokerId: nodeId as number as BrokerId, incarnationId, endpoints, rack: null, logDirs: [] }
}

export const platform = createRealPlatform()

export function newTopic(name: string, partitionCount = 1) {
  return { name, partitionCount, replicationFactor: 1, configs: new Map<string, string>() }
}
