import { apis } from '../../../src/protocol/index.ts'
import type { Scenarios } from '../scenario.ts'

export const twiceScenarios: Scenarios = {
  'what is asked twice in one request': async (broker) => {
    const topic = broker.named('t')
    await broker.createTopic(topic)
    const group = broker.named('g')
    await broker.ask(apis.DescribeGroups, 5, { groups: [group, group] })
    await broker.ask(apis.OffsetFetch, 9, {
      groups: [
        { groupId: group, topics: null },
        { groupId: group, topics: null },
      ],
    })
    const resource = { resourceType: 2, resourceName: topic }
    await broker.ask(apis.DescribeConfigs, 4, {
      resources: [
        { ...resource, configurationKeys: ['retention.ms'] },
        { ...resource, configurationKeys: ['retention.ms'] },
      ],
    })
  },
}
