import { apis } from '../../../src/protocol/index.ts'
import type { Recorder } from '../recorder.ts'
import type { Scenarios } from '../scenario.ts'
import { versionsOf } from '../versions.ts'

const topicType = 2
const brokerType = 4

export const configScenarios: Scenarios = {
  'DescribeConfigs of a topic, every version': async (broker) => {
    const plain = broker.named('plain')
    await broker.createTopic(plain)
    const own = broker.named('own')
    await broker.createTopic(own, {
      configs: {
        'retention.ms': '1000',
        'cleanup.policy': 'compact',
        'min.insync.replicas': '1',
        'max.message.bytes': '2000000',
        'compression.type': 'lz4',
        'flush.messages': '10',
      },
    })
    for (const version of versionsOf(apis.DescribeConfigs)) {
      for (const includeSynonyms of [false, true]) {
        for (const name of [plain, own]) {
          await describe(broker, version, [[topicType, name, null]], includeSynonyms)
          await describe(
            broker,
            version,
            [[topicType, name, ['retention.ms', 'segment.bytes', 'no.such.key', 'retention.ms']]],
            includeSynonyms,
          )
          await describe(broker, version, [[topicType, name, []]], includeSynonyms)
        }
      }
    }
  },

  'DescribeConfigs that is refused, every version': async (broker) => {
    const plain = broker.named('plain')
    await broker.createTopic(plain)
    for (const version of versionsOf(apis.DescribeConfigs)) {
      await describe(broker, version, [[topicType, broker.named('missing'), null]])
      for (const name of ['', 'a b', '.']) await describe(broker, version, [[topicType, name, null]])
      for (const name of ['2', 'x', '-1']) await describe(broker, version, [[brokerType, name, ['num.partitions']]])
      for (const type of [0, 1, 3, 5, 9, -1]) await describe(broker, version, [[type, plain, null]])
      await describe(broker, version, [])
      await describe(broker, version, [
        [topicType, plain, ['retention.ms']],
        [topicType, broker.named('missing'), null],
        [brokerType, '1', ['num.partitions']],
      ])
    }
  },

  'DescribeConfigs of a broker, every version': async (broker) => {
    // The keys that both have, those apart that say where a broker is.
    const keys = [
      'num.partitions',
      'default.replication.factor',
      'auto.create.topics.enable',
      'message.max.bytes',
      'log.retention.ms',
      'log.retention.minutes',
      'log.retention.hours',
      'log.retention.bytes',
      'log.segment.bytes',
      'log.roll.ms',
      'log.roll.hours',
      'log.cleanup.policy',
      'log.message.timestamp.type',
      'compression.type',
      'min.insync.replicas',
      'fetch.max.bytes',
      'group.max.size',
      'group.initial.rebalance.delay.ms',
      'group.min.session.timeout.ms',
      'offsets.retention.minutes',
      'offsets.topic.num.partitions',
      'delete.topic.enable',
      'node.id',
      'socket.request.max.bytes',
      'connections.max.idle.ms',
      'unclean.leader.election.enable',
      'producer.id.expiration.ms',
      'no.such.key',
    ]
    for (const version of versionsOf(apis.DescribeConfigs)) {
      for (const includeSynonyms of [false, true])
        await describe(broker, version, [[brokerType, '1', keys]], includeSynonyms)
      await describe(broker, version, [[brokerType, '', null]])
    }
  },
}

function describe(
  broker: Recorder,
  version: number,
  resources: readonly (readonly [number, string, string[] | null])[],
  includeSynonyms = false,
) {
  return broker.attempt(apis.DescribeConfigs, version, {
    resources: resources.map(([resourceType, resourceName, configurationKeys]) => ({
      resourceType,
      resourceName,
      configurationKeys,
    })),
    includeSynonyms,
    includeDocumentation: version >= 3,
  })
}
