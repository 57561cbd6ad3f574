import type { ConfigRules, ControllerSettings } from '../../../src/controller/index.ts'

export const settings: ControllerSettings = {
  defaultPartitionCount: 1,
  defaultReplicationFactor: 1,
  topicDeletionEnabled: true,
  fixedTopics: new Set(['__consumer_offsets']),
}

export const anyConfig: ConfigRules = {
  topicFault: () => undefined,
  brokerFault: () => undefined,
  listDefault: (_resourceType, key) => (key === 'cleanup.policy' ? ['delete'] : undefined),
}
