import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { QuorumDescription } from '../../src/cli/client/cluster-description.ts'
import { apis } from '../../src/protocol/index.ts'
import { ClusterProcesses } from '../support/cluster-processes.ts'
import { ClusterWorkload } from '../support/cluster-workload.ts'
import { until } from '../support/condition.ts'
import { rookery } from '../support/rookery-process.ts'

const topic = 'orders'
const partitionCount = 3
const config = { 'group.initial.rebalance.delay.ms': 0 }

async function createTopic(cluster: ClusterProcesses, replicationFactor: number): Promise<void> {
  const { topics } = await cluster.with(1, (client) =>
    client.request(apis.CreateTopics, 7, {
      topics: [{ name: topic, numPartitions: partitionCount, replicationFactor, assignments: [], configs: [] }],
      timeoutMs: 10_000,
    }),
  )
  expect(topics.map(({ errorCode, errorMessage }) => [errorCode, errorMessage])).toEqual([[0, null]])
}

async function quorumOf(cluster: ClusterProcesses, id: number): Promise<QuorumDescription> {
  const { code, stdout, stderr } = await rookery(['quorum', 'status', '--json', '-b', cluster.address(id)])
  expect(code, stderr).toBe(0) // it may say that it waits for an election
  return JSON.parse(stdout) as QuorumDescription
}

async function votersAre(cluster: ClusterProcesses, by: number, ids: readonly number[]): Promise<void> {
  const areThey = async () => {
    const { voters, leaderId, highWatermark } = await quorumOf(cluster, by)
    const found = voters.map(({ id }) => id).sort((a, b) => a - b)
    return (
      `${found}` === `${ids}` &&
      ids.includes(leaderId) &&
      voters.every((each) => each.logEndOffset >= highWatermark - 1)
    )
  }
  await until(areThey, `the voters are ${ids}`)
}

async function changed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await rookery(args)
  expect(code, stderr).toBe(0) // it may say that it waits for an election
  return stdout
}

describe('voters that change', () => {
  test('a node alone grows to three voters and shrinks to one of the others, under load', async () => {
    await using cluster = await ClusterProcesses.prepare({ bootstrapIds: [1], config })
    await cluster.launch(1).whenServing()
    await createTopic(cluster, 1)
    const workload = await ClusterWorkload.start({
      addresses: [cluster.address(1)],
      topic,
      partitionCount,
      groupId: 'followers',
    })
    for (const id of [2, 3]) {
      await cluster.launch(id).whenServing()
      await until(
        async () => (await quorumOf(cluster, 1)).observers.some((each) => each.id === id && each.address),
        'it follows',
      )
      const said = await changed('quorum', 'add-voter', `${id}`, '-b', cluster.address(1))
      expect(said).toContain(`Voter ${id} added`)
      await workload.untilAllProgress()
    }
    await votersAre(cluster, 1, [1, 2, 3])
    // Groups' state now is on all three of them.
    await cluster.untilInSync(['__consumer_offsets'])
    const described = await changed('topics', 'describe', '__consumer_offsets', '--json', '-b', cluster.address(2))
    expect(described).toContain('min.insync.replicas')

    // The leader first: it goes on as a broker that follows.
    const { leaderId } = await quorumOf(cluster, 1)
    await changed('quorum', 'remove-voter', `${leaderId}`, '-b', cluster.address(leaderId))
    const left = [1, 2, 3].filter((id) => id !== leaderId)
    await votersAre(cluster, leaderId, left)
    await workload.untilAllProgress()
    const last = left[1]!
    await changed('quorum', 'remove-voter', `${left[0]}`, '-b', cluster.address(last))
    await votersAre(cluster, last, [last])
    await workload.untilAllProgress()
    const refused = await rookery(['quorum', 'remove-voter', `${last}`, '-b', cluster.address(last)])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('The last voter cannot be removed')
    await workload.stop()
    await workload.verify()
  }, 180_000)

  test('three controllers that are all new form a cluster, and a wiped one votes again when it is added', async () => {
    await using cluster = await ClusterProcesses.start({ bootstrapIds: [1, 2, 3], config })
    await votersAre(cluster, 1, [1, 2, 3])
    const before = (await quorumOf(cluster, 1)).voters.find(({ id }) => id === 3)!.directoryId
    await cluster.node(3).kill()
    const empty = join(cluster.folder, 'empty')
    await mkdir(empty)
    await writeFile(join(empty, '.keep'), '')
    const wiped = cluster.launch(3, { 'log.dirs': empty })
    await wiped.whenServing()
    expect(wiped.program.stdout).toContain('cluster knows another folder of this node as a voter')
    await until(async () => (await quorumOf(cluster, 1)).observers.some(({ id }) => id === 3), 'it follows')
    const refused = await rookery(['quorum', 'add-voter', '3', '-b', cluster.address(1)])
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain(`Node 3 has a vote with the folder ${before}: --replace takes that first`)
    await changed('quorum', 'add-voter', '3', '--replace', '-b', cluster.address(1))
    await votersAre(cluster, 1, [1, 2, 3])
    const after = (await quorumOf(cluster, 1)).voters.find(({ id }) => id === 3)!.directoryId
    expect(after).not.toBe(before)
    // Its vote counts: with it alone the other two can lose one.
    await cluster.node(1).kill()
    await until(async () => [2, 3].includes((await quorumOf(cluster, 2)).leaderId), 'one of the others leads')
  })

  test('joins by itself where it is to', async () => {
    const joining = { ...config, 'controller.quorum.auto.join.enable': 'true' }
    await using cluster = await ClusterProcesses.start({ bootstrapIds: [1], config: joining })
    await votersAre(cluster, 1, [1, 2, 3])
  })
})
