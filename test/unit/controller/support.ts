import type { BrokerId } from '../../../src/base/index.ts'
import type { ConfigRules, ControllerSettings } from '../../../src/controller/index.ts'

export const settings: ControllerSettings = {
  defaultPartitionCount: 1,
  defaultReplicationFactor: 1,
  topicDeletionEnabled: true,
  defaultMinInSyncReplicas: 1,
  uncleanLeaderElectionEnabled: false,
  nodeId: 1 as BrokerId,
  growingTopics: new Map(),
  fixedTopics: new Set(['__consumer_offsets']),
}

export const anyConfig: ConfigRules = {
  topicFault: () => undefined,
  brokerFault: () => undefined,
  listDefault: (_resourceType, key) => (key === 'cleanup.policy' ? ['delete'] : undefined),
}
