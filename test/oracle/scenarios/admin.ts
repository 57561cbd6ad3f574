import { apis } from '../../../src/protocol/index.ts'
import { batchOf } from '../batches.ts'
import type { Recorder } from '../recorder.ts'
import type { Scenarios } from '../scenario.ts'
import { versionsOf } from '../versions.ts'

const topicType = 2
const brokerType = 4
const operations = { set: 0, delete: 1, append: 2, subtract: 3 } as const

export const adminScenarios: Scenarios = {
  'CreatePartitions, every version': async (broker) => {
    for (const version of versionsOf(apis.CreatePartitions)) {
      const name = broker.named(`t${version}`)
      await broker.createTopic(name, { partitions: 2 })
      const grow = (count: number, assignments: { brokerIds: number[] }[] | null = null, validateOnly = false) =>
        partitions(broker, version, [{ name, count, assignments }], validateOnly)
      for (const count of [2, 1, 0, -1, -2]) await grow(count)
      await grow(3, null, true)
      await grow(3, [])
      await grow(3, [{ brokerIds: [9] }])
      await grow(3, [{ brokerIds: [] }])
      await grow(3, [{ brokerIds: [1, 1] }])
      await grow(3, [{ brokerIds: [-1] }])
      await grow(3, [{ brokerIds: [1] }, { brokerIds: [1] }])
      await grow(4, [{ brokerIds: [1] }])
      await grow(3, [{ brokerIds: [1] }])
      await grow(5)
      await broker.untilServed(name, 5)
      await broker.ask(apis.Metadata, 9, { topics: [{ name }] })
      await partitions(broker, version, [{ name: broker.named('missing'), count: 3, assignments: null }])
      await partitions(broker, version, [{ name: 'a b', count: 3, assignments: null }])
      await partitions(broker, version, [{ name: '', count: 3, assignments: null }])
      await partitions(broker, version, [
        { name, count: 6, assignments: null },
        { name, count: 7, assignments: null },
      ])
      await partitions(broker, version, [])
    }
  },

  'DeleteRecords, every version': async (broker) => {
    const compact = broker.named('compact')
    await broker.createTopic(compact, { configs: { 'cleanup.policy': 'compact' } })
    for (const version of versionsOf(apis.DeleteRecords)) {
      const topic = broker.named(`t${version}`)
      await broker.createTopic(topic)
      for (let i = 0; i < 4; i++) {
        const topicData = [{ name: topic, partitionData: [{ index: 0, records: batchOf(3) }] }]
        await broker.ask(apis.Produce, 9, { acks: -1, timeoutMs: 5000, topicData })
      }
      const remove = (offset: number, name = topic, partitionIndex = 0) =>
        broker.attempt(apis.DeleteRecords, version, {
          topics: [{ name, partitions: [{ partitionIndex, offset }] }],
          timeoutMs: 10_000,
        })
      for (const offset of [0, 4, 2, 13, -2, Number.MAX_SAFE_INTEGER]) await remove(offset)
      await remove(1, topic, 1)
      await remove(1, topic, -1)
      await remove(1, broker.named('missing'))
      await remove(0, compact)
      await remove(0, 'a b')
      await readFrom(broker, topic, [0, 3, 4, 5])
      await remove(-1)
      await readFrom(broker, topic, [4, 12])
      for (const timestamp of [-1n, -2n, 0n]) {
        const topics = [{ name: topic, partitions: [{ partitionIndex: 0, timestamp }] }]
        await broker.ask(apis.ListOffsets, 7, { replicaId: -1, topics })
      }
      const topicData = [{ name: topic, partitionData: [{ index: 0, records: batchOf(3) }] }]
      await broker.ask(apis.Produce, 9, { acks: -1, timeoutMs: 5000, topicData })
      await broker.ask(apis.DeleteRecords, version, { topics: [], timeoutMs: 1000 })
    }
  },

  'IncrementalAlterConfigs of a topic, every version': async (broker) => {
    for (const version of versionsOf(apis.IncrementalAlterConfigs)) {
      const name = broker.named(`t${version}`)
      await broker.createTopic(name, { configs: { 'retention.ms': '1000' } })
      const alter = async (key: string, operation: number, value: string | null, validateOnly = false) => {
        const configs = [{ name: key, configOperation: operation, value }]
        const resources = [{ resourceType: topicType, resourceName: name, configs }]
        await broker.attempt(apis.IncrementalAlterConfigs, version, { resources, validateOnly })
      }
      await alter('retention.ms', operations.set, '5000')
      await alter('retention.ms', operations.set, 'soon')
      await alter('retention.ms', operations.set, null)
      await alter('no.such.key', operations.set, '1')
      await alter('no.such.key', operations.delete, null)
      await alter('segment.ms', operations.set, '7000', true)
      await alter('retention.ms', operations.append, '1')
      await alter('retention.ms', operations.subtract, '1')
      await alter('cleanup.policy', operations.append, 'compact')
      await alter('cleanup.policy', operations.append, 'compact')
      await alter('cleanup.policy', operations.append, 'burn')
      await describeWhenSettled(broker, name)
      await alter('cleanup.policy', operations.subtract, 'delete')
      await alter('cleanup.policy', operations.subtract, 'delete')
      await alter('retention.ms', operations.delete, null)
      await alter('retention.ms', operations.delete, null)
      await alter('segment.ms', 9, '1')
      await alter('segment.ms', -1, '1')
      await describeWhenSettled(broker, name)
      const change = { name: 'retention.ms', configOperation: operations.set, value: '9000' }
      const resource = { resourceType: topicType, resourceName: name, configs: [change] }
      await broker.attempt(apis.IncrementalAlterConfigs, version, { resources: [], validateOnly: false })
      await broker.attempt(apis.IncrementalAlterConfigs, version, {
        resources: [resource, resource],
        validateOnly: false,
      })
      const twice = { ...resource, configs: [change, change] }
      await broker.attempt(apis.IncrementalAlterConfigs, version, { resources: [twice], validateOnly: false })
      for (const resourceName of [broker.named('missing'), 'a b', '']) {
        await broker.attempt(apis.IncrementalAlterConfigs, version, {
          resources: [{ ...resource, resourceName }],
          validateOnly: false,
        })
      }
      for (const resourceType of [0, 1, 3, -1]) {
        await broker.attempt(apis.IncrementalAlterConfigs, version, {
          resources: [{ ...resource, resourceType }],
          validateOnly: false,
        })
      }
      for (const resourceName of ['9', 'x']) {
        await broker.attempt(apis.IncrementalAlterConfigs, version, {
          resources: [{ resourceType: brokerType, resourceName, configs: [{ ...change, name: 'log.retention.ms' }] }],
          validateOnly: true,
        })
      }
    }
  },

  'AlterConfigs of a topic, every version': async (broker) => {
    for (const version of versionsOf(apis.AlterConfigs)) {
      const name = broker.named(`t${version}`)
      await broker.createTopic(name, { configs: { 'retention.ms': '1000', 'segment.ms': '2000' } })
      const alter = (configs: { name: string; value: string | null }[], resourceName = name, validateOnly = false) =>
        broker.attempt(apis.AlterConfigs, version, {
          resources: [{ resourceType: topicType, resourceName, configs }],
          validateOnly,
        })
      await alter([{ name: 'retention.ms', value: '3000' }], name, true)
      await alter([{ name: 'retention.ms', value: 'soon' }])
      await alter([{ name: 'retention.ms', value: null }])
      await alter([{ name: 'no.such.key', value: '1' }])
      await describeWhenSettled(broker, name)
      await alter([{ name: 'retention.ms', value: '3000' }])
      await describeWhenSettled(broker, name)
      await alter([])
      await describeWhenSettled(broker, name)
      await alter([{ name: 'retention.ms', value: '3000' }], broker.named('missing'))
      await alter([], 'a b')
      await alter([], '')
    }
  },
}

interface Growth {
  readonly name: string
  readonly count: number
  readonly assignments: { brokerIds: number[] }[] | null
}

function partitions(broker: Recorder, version: number, topics: readonly Growth[], validateOnly = false) {
  return broker.attempt(apis.CreatePartitions, version, { topics, timeoutMs: 10_000, validateOnly })
}

async function readFrom(broker: Recorder, topic: string, offsets: readonly number[]): Promise<void> {
  for (const fetchOffset of offsets) {
    await broker.ask(apis.Fetch, 11, {
      maxWaitMs: 0,
      minBytes: 0,
      topics: [{ topic, partitions: [{ partition: 0, fetchOffset, partitionMaxBytes: 1_000_000 }] }],
    })
  }
}

/** Kafka answers before the broker has seen the change, but a broker sees changes in their order: a later one is waited for. */
async function describeWhenSettled(broker: Recorder, name: string): Promise<void> {
  await broker.createTopic(broker.named(`settled-${broker.topicIds.size}`))
  await broker.ask(apis.DescribeConfigs, 4, {
    resources: [{ resourceType: topicType, resourceName: name, configurationKeys: null }],
  })
}
