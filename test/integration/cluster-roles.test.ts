import { describe, expect, test } from 'vitest'
import type { QuorumDescription } from '../../src/cli/client/cluster-description.ts'
import { apis } from '../../src/protocol/index.ts'
import { ClusterProcesses } from '../support/cluster-processes.ts'
import { ClusterWorkload } from '../support/cluster-workload.ts'
import { until } from '../support/condition.ts'
import { rookery } from '../support/rookery-process.ts'

const topic = 'orders'
const partitionCount = 3

async function createTopic(cluster: ClusterProcesses, replicationFactor: number): Promise<void> {
  const { topics } = await cluster.with(cluster.brokerIds[0]!, (client) =>
    client.request(apis.CreateTopics, 7, {
      topics: [{ name: topic, numPartitions: partitionCount, replicationFactor, assignments: [], configs: [] }],
      timeoutMs: 10_000,
    }),
  )
  expect(topics.map(({ errorCode, errorMessage }) => [errorCode, errorMessage])).toEqual([[0, null]])
}

function startWorkload(cluster: ClusterProcesses): Promise<ClusterWorkload> {
  const addresses = cluster.brokerIds.map((id) => cluster.address(id))
  return ClusterWorkload.start({ addresses, topic, partitionCount, groupId: 'followers' })
}

async function quorumOf(cluster: ClusterProcesses): Promise<QuorumDescription> {
  const { code, stdout, stderr } = await rookery(['quorum', 'status', '--json', '-b', cluster.bootstrapServers])
  expect(code, stderr).toBe(0) // it may say that it waits for an election
  return JSON.parse(stdout) as QuorumDescription
}

const idsOf = (members: readonly { readonly id: number }[]) => members.map(({ id }) => id)

describe('separate roles', () => {
  test('one controller and two brokers serve, and the brokers follow the quorum without a vote', async () => {
    await using cluster = await ClusterProcesses.start({ controllerCount: 1 })
    await createTopic(cluster, 2)
    await cluster.untilInSync([topic])
    await until(async () => (await quorumOf(cluster)).observers.length === 2, 'both brokers are observers')
    const quorum = await quorumOf(cluster)
    expect(quorum.leaderId).toBe(1)
    expect(idsOf(quorum.voters)).toEqual([1])
    expect(idsOf(quorum.observers).toSorted()).toEqual([2, 3])
    const metadata = await cluster.with(2, (client) => client.request(apis.Metadata, 12, { topics: [] }))
    expect(metadata.brokers.map(({ nodeId }) => nodeId).sort()).toEqual([2, 3])
    expect([2, 3]).toContain(metadata.controllerId) // clients can't reach the controller itself
    await expect(cluster.connect(1, 500)).rejects.toThrow()
  })

  test('with three controllers nothing is lost while each node in turn is killed and stopped', async () => {
    await using cluster = await ClusterProcesses.start({
      nodeCount: 5,
      controllerCount: 3,
      config: { 'group.initial.rebalance.delay.ms': 0 },
    })
    await createTopic(cluster, 2)
    await cluster.untilInSync([topic])
    const workload = await startWorkload(cluster)
    for (const id of cluster.ids) {
      await cluster.node(id).kill()
      await workload.untilAllProgress()
      await cluster.launch(id).whenServing()
      await cluster.untilInSync([topic, '__consumer_offsets'])
      const { exitCode, output } = await cluster.node(id).stop()
      expect(exitCode, output).toBe(0)
      await workload.untilAllProgress()
      await cluster.launch(id).whenServing()
      await cluster.untilInSync([topic, '__consumer_offsets'])
    }
    await workload.stop()
    await workload.verify()
    expect(idsOf((await quorumOf(cluster)).voters)).toEqual([1, 2, 3])
  }, 240_000)

  test('all of them restart from their folders, brokers first', async () => {
    await using cluster = await ClusterProcesses.start({ controllerCount: 1, bootstrapIds: [1] })
    await createTopic(cluster, 2)
    await cluster.untilInSync([topic])
    for (const id of cluster.ids) await cluster.node(id).kill()
    for (const id of [2, 3]) cluster.launch(id)
    cluster.launch(1)
    await Promise.all(cluster.ids.map((id) => cluster.node(id).whenServing()))
    await cluster.untilInSync([topic])
  })
})
