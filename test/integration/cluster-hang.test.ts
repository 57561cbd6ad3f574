import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { apis } from '../../src/protocol/index.ts'
import { ClusterProcesses } from '../support/cluster-processes.ts'
import { until } from '../support/condition.ts'

// The control plane of a node has a thread of its own: what that keeps up, and what it must not keep up.

const topic = 'orders'
const partitionCount = 3
/** Longer than an election takes (4 to 8 s without the leader) and than the session, both of which are longer than a machine stands still. */
const hangMs = 25_000
const sessionTimeoutMs = 6000
const nodeOptions = ['--import', new URL('../support/hang-on-signal.ts', import.meta.url).href]
const config = {
  'broker.session.timeout.ms': sessionTimeoutMs,
  'broker.heartbeat.interval.ms': 500,
  'controller.quorum.election.timeout.ms': 4000,
  'controller.quorum.fetch.timeout.ms': 4000,
}

async function createTopic(cluster: ClusterProcesses): Promise<void> {
  const { topics } = await cluster.with(1, (client) =>
    client.request(apis.CreateTopics, 7, {
      topics: [{ name: topic, numPartitions: partitionCount, replicationFactor: 3, assignments: [], configs: [] }],
      timeoutMs: 10_000,
    }),
  )
  expect(topics.map(({ errorCode, errorMessage }) => [errorCode, errorMessage])).toEqual([[0, null]])
}

describe('a node whose event loop stands still', () => {
  test('leads the quorum on, in the same term, and fences its own broker as any other', async () => {
    const env = { ROOKERY_TEST_HANG_MS: `${hangMs}` }
    await using cluster = await ClusterProcesses.start({ config, nodeOptions, env })
    await createTopic(cluster)
    await cluster.untilInSync([topic])
    const before = await cluster.leadership(1)
    expect(before.leaderId).toBeGreaterThan(0)
    const hung = before.leaderId
    const others = cluster.ids.filter((id) => id !== hung)
    const witness = others[0]!

    cluster.node(hung).program.kill('SIGUSR2')
    const isOut = async () => (await cluster.partitions(witness, topic)).every(({ isr }) => !isr.includes(hung))
    await until(isOut, 'the broker that hangs is out of every ISR', hangMs)
    const led = await cluster.partitions(witness, topic)
    for (const { leader } of led) expect(others).toContain(leader)
    // All of that its own controller has decided, while nothing else of the node ran.
    expect(
      cluster
        .node(hung)
        .logLines()
        .map(({ msg }) => msg),
    ).not.toContain('broker silent, fencing it')
    expect(await cluster.leadership(witness)).toEqual(before)

    await cluster.untilInSync([topic])
    expect(cluster.node(hung).logLines()).toContainEqual(
      expect.objectContaining({ msg: 'broker silent, fencing it', brokerId: hung }),
    )
    for (const id of cluster.ids) expect(await cluster.leadership(id)).toEqual(before)
  })
})

describe('a node whose control plane has a fault', () => {
  test('ends with it, and says what it was', async () => {
    await using cluster = await ClusterProcesses.start({ config })
    const { leaderId } = await cluster.leadership(1)
    const follower = cluster.ids.find((id) => id !== leaderId)!
    const metadataLog = join(cluster.folder, `node-${follower}`, '__cluster_metadata-0')
    expect((await readFile(join(metadataLog, 'quorum-state'))).length).toBeGreaterThan(0)
    await rm(metadataLog, { recursive: true }) // the next witness is written into a folder that is gone
    await createTopic(cluster)
    const { exitCode, stderr } = await cluster.node(follower).program.ended(30_000)
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 1 })
    expect(stderr).toContain('quorum-state')
    expect(cluster.node(follower).logLines()).toContainEqual(expect.objectContaining({ msg: 'node has to end' }))
  })
})
