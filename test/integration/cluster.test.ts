import { describe, expect, test } from 'vitest'
import type { QuorumDescription } from '../../src/cli/client/cluster-description.ts'
import { apis } from '../../src/protocol/index.ts'
import { ClusterProcesses } from '../support/cluster-processes.ts'
import { ClusterWorkload } from '../support/cluster-workload.ts'
import { until } from '../support/condition.ts'
import { rookery } from '../support/rookery-process.ts'

const topic = 'orders'
const partitionCount = 3

async function createTopic(cluster: ClusterProcesses): Promise<void> {
  const { topics } = await cluster.with(1, (client) =>
    client.request(apis.CreateTopics, 7, {
      topics: [
        {
          name: topic,
          numPartitions: partitionCount,
          replicationFactor: 3,
          assignments: [],
          configs: [{ name: 'min.insync.replicas', value: '2' }],
        },
      ],
      timeoutMs: 10_000,
    }),
  )
  expect(topics.map(({ errorCode, errorMessage }) => [errorCode, errorMessage])).toEqual([[0, null]])
}

function startWorkload(cluster: ClusterProcesses): Promise<ClusterWorkload> {
  const addresses = cluster.ids.map((id) => cluster.address(id))
  return ClusterWorkload.start({ addresses, topic, partitionCount, groupId: 'followers' })
}

describe('a cluster of three processes', () => {
  test('is told with leader, voters and how far each is, by rookery quorum', async () => {
    await using cluster = await ClusterProcesses.start()
    const ask = () => rookery(['quorum', 'status', '--json', '-b', cluster.bootstrapServers])
    const areCurrent = async () => {
      const { code, stdout, stderr } = await ask()
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      const { leaderId, highWatermark, voters, observers } = JSON.parse(stdout) as QuorumDescription
      expect(voters.map(({ id }) => id)).toEqual([1, 2, 3])
      expect(voters.map(({ id }) => id)).toContain(leaderId)
      expect(observers).toEqual([])
      for (const { directoryId } of voters) expect(directoryId).toMatch(/^[\w-]{22}$/)
      return voters.every(({ logEndOffset }) => logEndOffset >= highWatermark)
    }
    await until(areCurrent, 'all voters have all entries')
    const { stdout } = await rookery(['quorum', '-b', cluster.bootstrapServers])
    expect(stdout).toMatch(/^Leader [123] in epoch \d+; [123] of 3 voters have all \d+ entries$/m)
    expect(stdout).toMatch(/^ *[123] +leader +[\w-]{22} +\d+ +0 +0 +0$/m)
  })

  test('forms itself from empty folders, and each node tells the same of it', async () => {
    await using cluster = await ClusterProcesses.start()
    const whatTellsEach = () =>
      Promise.all(
        cluster.ids.map((id) =>
          cluster.with(id, async (client) => {
            const { clusterId, brokers } = await client.request(apis.Metadata, 12, { topics: [] })
            return { clusterId, brokers: brokers.map(({ nodeId }) => nodeId).sort() }
          }),
        ),
      )
    const haveAll = async () => (await whatTellsEach()).every(({ brokers }) => brokers.length === 3)
    await until(haveAll, 'each node knows three brokers')
    const [first, ...others] = await whatTellsEach()
    expect(first!.brokers).toEqual([1, 2, 3])
    expect(others).toEqual([first, first])
  })

  test('loses nothing, and doubles nothing, while each node in turn is killed, stopped and suspended', async () => {
    await using cluster = await ClusterProcesses.start({ config: { 'group.initial.rebalance.delay.ms': 0 } })
    await createTopic(cluster)
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

      cluster.node(id).program.kill('SIGSTOP')
      await workload.untilAllProgress()
      cluster.node(id).program.kill('SIGCONT')
      await cluster.untilInSync([topic, '__consumer_offsets'])
      await workload.untilAllProgress()
    }
    await workload.stop()
    await workload.verify()
  }, 300_000)

  test('gives leaderships back to the first replica of each partition', async () => {
    await using cluster = await ClusterProcesses.start({ config: { 'leader.imbalance.check.interval.seconds': 1 } })
    await createTopic(cluster)
    await cluster.untilInSync([topic])
    const leaders = async () => (await cluster.partitions(1, topic)).map(({ leader }) => leader)
    const atFirst = await leaders()
    await cluster.node(3).stop()
    await until(async () => !(await leaders()).includes(3), 'node 1 has heard that node 3 leads nothing') // as node 2 has
    await cluster.launch(3).whenServing()
    await until(async () => `${await leaders()}` === `${atFirst}`, 'the leaders are those of before')
  })
})
