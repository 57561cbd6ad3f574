import { apis } from '../../../src/protocol/index.ts'
import { batchOf } from '../batches.ts'
import type { Scenarios } from '../scenario.ts'
import { versionsOf } from '../versions.ts'

const noDirectory = 'AAAAAAAAAAAAAAAAAAAAAA'
/** No disk has it. */
const someDirectory = 'b3JhY2xlIG9mIGJyb2tlcg'

/** What is for clusters, as one node answers it. */
export const clusterScenarios: Scenarios = {
  'elections of leaders': async (broker) => {
    const topic = broker.named('elected')
    await broker.createTopic(topic, { partitions: 2 })
    for (const version of versionsOf(apis.ElectLeaders)) {
      for (const electionType of version === 0 ? [0] : [0, 1, 2, -1]) {
        const elect = (topicPartitions: readonly { topic: string; partitions: number[] }[]) =>
          broker.attempt(apis.ElectLeaders, version, {
            electionType,
            topicPartitions,
            timeoutMs: 5000,
          })
        await elect([{ topic, partitions: [0, 1] }])
        await elect([{ topic, partitions: [1, 5, -1] }])
        await elect([{ topic, partitions: [] }])
        await elect([{ topic: broker.named('missing'), partitions: [0] }])
        await elect([{ topic: 'a b', partitions: [0] }])
        await elect([])
      }
    }
  },

  'reassignments of partitions': async (broker) => {
    const topic = broker.named('moved')
    await broker.createTopic(topic, { partitions: 2 })
    for (const version of versionsOf(apis.AlterPartitionReassignments)) {
      for (const allowReplicationFactorChange of version === 0 ? [true] : [true, false]) {
        const alter = (partitionIndex: number, replicas: number[] | null, name = topic) =>
          broker.attempt(apis.AlterPartitionReassignments, version, {
            timeoutMs: 5000,
            allowReplicationFactorChange,
            topics: [{ name, partitions: [{ partitionIndex, replicas }] }],
          })
        await alter(0, [1])
        await alter(0, null)
        for (const replicas of [[], [9], [1, 9], [1, 1], [-1]]) await alter(0, replicas)
        for (const partition of [2, -1]) await alter(partition, [1])
        await alter(2, null)
        await alter(0, [1], broker.named('missing'))
        await alter(0, null, broker.named('missing'))
        await broker.ask(apis.AlterPartitionReassignments, version, { topics: [] })
        await broker.ask(apis.AlterPartitionReassignments, version, {
          topics: [
            {
              name: topic,
              partitions: [
                { partitionIndex: 0, replicas: [1] },
                { partitionIndex: 1, replicas: [9] },
              ],
            },
            { name: broker.named('missing'), partitions: [] },
          ],
        })
      }
    }
  },

  'reassignments that run, of which there are none': async (broker) => {
    const topic = broker.named('still')
    await broker.createTopic(topic)
    const list = (topics: { name: string; partitionIndexes: number[] }[] | null) =>
      broker.attempt(apis.ListPartitionReassignments, 0, { topics, timeoutMs: 5000 })
    await list(null)
    await list([])
    await list([{ name: topic, partitionIndexes: [0, 5, -1] }])
    await list([{ name: topic, partitionIndexes: [] }])
    await list([{ name: broker.named('missing'), partitionIndexes: [0] }])
  },

  'levels of features': async (broker) => {
    // It is on in a new cluster of one and not of the other.
    const off = { feature: 'eligible.leader.replicas.version', maxVersionLevel: 0, upgradeType: 2 }
    await broker.unrecorded(apis.UpdateFeatures, 1, { featureUpdates: [off] })
    for (const version of versionsOf(apis.UpdateFeatures)) {
      const update = (featureUpdates: { feature: string; maxVersionLevel: number; upgradeType?: number }[]) =>
        broker.attempt(apis.UpdateFeatures, version, {
          timeoutMs: 5000,
          featureUpdates: featureUpdates.map(({ upgradeType = 1, ...each }) => ({
            ...each,
            upgradeType,
            allowDowngrade: upgradeType !== 1,
          })),
        })
      const elr = (maxVersionLevel: number, upgradeType = 1) => ({
        feature: 'eligible.leader.replicas.version',
        maxVersionLevel,
        upgradeType,
      })
      await update([])
      await update([elr(0)])
      await update([elr(9)])
      await update([elr(-1)])
      for (const upgradeType of version === 0 ? [1, 2] : [1, 2, 3, 0, 7]) await update([elr(0, upgradeType)])
      for (const upgradeType of version === 0 ? [1, 2] : [1, 2, 3]) await update([elr(1, upgradeType), elr(9)])
      await update([{ feature: 'unheard.of', maxVersionLevel: 1 }])
      await update([{ feature: 'unheard.of', maxVersionLevel: 0, upgradeType: 2 }])
      await update([{ feature: '', maxVersionLevel: 1 }])
      await update([elr(0), { feature: 'unheard.of', maxVersionLevel: 1 }])
      await update([{ feature: 'metadata.version', maxVersionLevel: 99 }])
      await update([{ feature: 'metadata.version', maxVersionLevel: 0, upgradeType: 2 }])
    }
  },

  'brokers that are not registered': async (broker) => {
    for (const brokerId of [9, 0, -1]) await broker.attempt(apis.UnregisterBroker, 0, { brokerId })
  },

  'folders of replicas': async (broker) => {
    const topic = broker.named('foldered')
    await broker.createTopic(topic)
    for (const version of versionsOf(apis.AlterReplicaLogDirs)) {
      const alter = (path: string, name = topic, partitions = [0]) =>
        broker.attempt(apis.AlterReplicaLogDirs, version, { dirs: [{ path, topics: [{ name, partitions }] }] })
      await alter('/nowhere/at/all')
      await alter('')
      await alter('relative')
      await alter('/nowhere/at/all', broker.named('missing'), [0, 1])
      await broker.ask(apis.AlterReplicaLogDirs, version, { dirs: [] })
      await broker.ask(apis.AlterReplicaLogDirs, version, { dirs: [{ path: '/nowhere', topics: [] }] })
    }
  },

  'folders where replicas are': async (broker) => {
    const topic = broker.named('housed')
    await broker.createTopic(topic)
    await broker.ask(apis.Produce, 9, {
      acks: -1,
      timeoutMs: 5000,
      topicData: [{ name: topic, partitionData: [{ index: 0, records: batchOf(1) }] }],
    })
    const topics = [{ topic, partitions: [0] }]
    const { results } = await broker.ask(apis.DescribeLogDirs, 1, { topics })
    const path = results.find((each) => each.topics.length > 0)?.logDir ?? ''
    for (const version of versionsOf(apis.AlterReplicaLogDirs)) {
      const alter = (name: string, partitions: number[]) =>
        broker.attempt(apis.AlterReplicaLogDirs, version, { dirs: [{ path, topics: [{ name, partitions }] }] })
      await alter(topic, [0])
      await alter(topic, [0, 1, -1])
      await alter(broker.named('missing'), [0])
    }
    // Of two folders for one partition the last counts.
    const both = [path, '/nowhere/at/all', path].map((each) => ({
      path: each,
      topics: [{ name: topic, partitions: [0] }],
    }))
    await broker.attempt(apis.AlterReplicaLogDirs, 2, { dirs: both })
    await broker.attempt(apis.AlterReplicaLogDirs, 2, { dirs: both.slice(0, 2) })
  },

  'voters that are none': async (broker) => {
    // Both quorums are of the kind whose voters stay.
    for (const voterId of [9, 1]) {
      const voter = { clusterId: null, voterId, voterDirectoryId: someDirectory as never }
      await broker.attempt(apis.RemoveRaftVoter, 0, voter)
      for (const version of versionsOf(apis.AddRaftVoter)) {
        const listeners = [{ name: 'CONTROLLER', host: 'nowhere', port: 9 }]
        await broker.attempt(apis.AddRaftVoter, version, { ...voter, timeoutMs: 3000, listeners })
      }
    }
    for (const clusterId of [null, 'another', '']) {
      for (const voterId of [9, 1, -1]) {
        const voter = { clusterId, voterId, voterDirectoryId: noDirectory as never }
        await broker.attempt(apis.RemoveRaftVoter, 0, voter)
        for (const version of versionsOf(apis.AddRaftVoter)) {
          const listeners = [{ name: 'CONTROLLER', host: 'nowhere', port: 9 }]
          await broker.attempt(apis.AddRaftVoter, version, { ...voter, timeoutMs: 3000, listeners })
          await broker.attempt(apis.AddRaftVoter, version, { ...voter, timeoutMs: 3000, listeners: [] })
        }
      }
    }
  },
}
