import type { Uuid } from '../../../src/base/index.ts'
import { zeroUuid } from '../../../src/base/index.ts'
import { apis } from '../../../src/protocol/index.ts'
import { until } from '../../support/condition.ts'
import type { Recorder } from '../recorder.ts'
import type { Scenarios } from '../scenario.ts'
import { versionsOf } from '../versions.ts'

const unknownId = 'c29tZS11bmtub3duLWlkIQ' as Uuid

export const metadataScenarios: Scenarios = {
  'topics by name, every version': async (broker) => {
    const name = broker.named('a')
    await broker.createTopic(name, { partitions: 3 })
    const missing = broker.named('missing')
    for (const version of versionsOf(apis.Metadata, 4)) {
      const flags = { includeClusterAuthorizedOperations: true, includeTopicAuthorizedOperations: true }
      const topics = [{ name }, { name: missing }, { name }]
      await broker.ask(apis.Metadata, version, { topics, allowAutoTopicCreation: false })
      await broker.ask(apis.Metadata, version, { topics: [{ name }], allowAutoTopicCreation: true, ...flags })
    }
    for (const version of versionsOf(apis.Metadata, 0, 3))
      await broker.ask(apis.Metadata, version, { topics: [{ name }] })
  },

  'no topics and all topics, every version': async (broker) => {
    await broker.createTopic(broker.named('a'), { partitions: 2 })
    await broker.createTopic(broker.named('b'))
    for (const version of versionsOf(apis.Metadata)) {
      await broker.ask(apis.Metadata, version, { topics: [] })
      if (version >= 1) await broker.ask(apis.Metadata, version, { topics: null })
    }
  },

  'names that are illegal': async (broker) => {
    const names = ['', '.', '..', 'a b', 'a/b', 'ä', 'x'.repeat(249), 'x'.repeat(250), `${broker.named('ok')}:`]
    for (const version of versionsOf(apis.Metadata)) {
      for (const name of names) {
        if (name.length === 249 && version < 4) continue
        await broker.ask(apis.Metadata, version, { topics: [{ name }], allowAutoTopicCreation: name.length !== 249 })
      }
    }
  },

  'topics by id': async (broker) => {
    const name = broker.named('a')
    const topicId = await broker.createTopic(name, { partitions: 2 })
    for (const version of versionsOf(apis.Metadata, 10)) {
      await attempt(broker, version, [{ name: null, topicId }])
      await attempt(broker, version, [{ name: null, topicId: unknownId }])
      await attempt(broker, version, [{ name: null, topicId: zeroUuid }])
      await attempt(broker, version, [{ name, topicId: unknownId }])
      await attempt(broker, version, [
        { name, topicId: zeroUuid },
        { name: null, topicId },
      ])
      await attempt(broker, version, [
        { name: null, topicId },
        { name: null, topicId: unknownId },
      ])
    }
  },

  'topics that are created when asked for': async (broker) => {
    for (const version of [...versionsOf(apis.Metadata, 0, 13)]) {
      const name = broker.named(`auto-${version}`)
      // The first answer tells whether the topic is there already; Kafka says no.
      await broker.unrecorded(apis.Metadata, version, { topics: [{ name }] })
      await untilThere(broker, name)
      await broker.ask(apis.Metadata, version, { topics: [{ name }], allowAutoTopicCreation: false === version >= 4 })
      await broker.ask(apis.ListOffsets, 4, {
        replicaId: -1,
        topics: [{ name, partitions: [{ partitionIndex: 0, timestamp: -1n }] }],
      })
    }
  },

  'internal topics': async (broker) => {
    for (const version of versionsOf(apis.Metadata)) {
      await broker.ask(apis.Metadata, version, {
        topics: [{ name: '__consumer_offsets' }],
        allowAutoTopicCreation: true,
      })
    }
  },

  'a name that collides with another': async (broker) => {
    await broker.createTopic(broker.named('col.a'))
    const name = broker.named('col_a')
    await broker.ask(apis.Metadata, 9, { topics: [{ name }], allowAutoTopicCreation: true })
    await broker.ask(apis.Metadata, 9, { topics: [{ name }], allowAutoTopicCreation: false })
  },

  'DescribeCluster, every version': async (broker) => {
    for (const version of versionsOf(apis.DescribeCluster)) {
      await broker.ask(apis.DescribeCluster, version, { includeClusterAuthorizedOperations: false })
      await broker.ask(apis.DescribeCluster, version, { includeClusterAuthorizedOperations: true })
      if (version >= 1) {
        for (const endpointType of [0, 2, 3, 127, -1]) {
          await broker.ask(apis.DescribeCluster, version, { includeClusterAuthorizedOperations: false, endpointType })
        }
      }
      if (version >= 2) {
        const includeFencedBrokers = true
        await broker.ask(apis.DescribeCluster, version, {
          includeClusterAuthorizedOperations: false,
          includeFencedBrokers,
        })
      }
    }
  },
}

function attempt(broker: Recorder, version: number, topics: { name: string | null; topicId: Uuid }[]) {
  return broker.attempt(apis.Metadata, version, { topics, allowAutoTopicCreation: false })
}

async function untilThere(broker: Recorder, name: string): Promise<void> {
  const isThere = async () => {
    const answer = await broker.unrecorded(apis.Metadata, 4, { topics: [{ name }], allowAutoTopicCreation: false })
    return answer.topics[0]?.errorCode === 0
  }
  await until(isThere, `${name} is there`)
  await broker.untilServed(name)
}
