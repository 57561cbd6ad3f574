import { readdirSync } from 'node:fs'
import { Kafka, logLevel } from 'kafkajs'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Cluster, startCluster } from '../../src/index.ts'
import { ClusterWorkload } from '../support/cluster-workload.ts'
import { until } from '../support/condition.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { shortestMs } from '../support/timing.ts'

const topic = 'orders'
const partitionCount = 3
const declared = { name: topic, partitions: partitionCount, configs: { 'min.insync.replicas': 2 } }

function startWorkload(cluster: Cluster): Promise<ClusterWorkload> {
  const addresses = cluster.nodes.map(({ port }) => `127.0.0.1:${port}`)
  return ClusterWorkload.start({ addresses, topic, partitionCount, groupId: 'followers' })
}

const pem = (name: string) => ({ [`ssl.${name}.type`]: 'PEM', [`ssl.${name}.location`]: 'any.pem' })
const withTls = {
  'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:SSL',
  ...pem('keystore'),
  ...pem('truststore'),
}

const inTime = { timeoutMs: 60_000 }

describe('startCluster', () => {
  test('starts three nodes in well under three seconds, with replicated topics', async () => {
    const topics = [declared, { name: 'single', replicationFactor: 1 }]
    const startMs = async () => {
      const beganMs = performance.now()
      await using _started = await startCluster({ topics })
      return performance.now() - beganMs
    }
    await startMs() // what is loaded once
    expect(await shortestMs(2500, startMs)).toBeLessThan(2500)
    await using cluster = await startCluster({ topics })
    await cluster.waitForInSync(inTime)
    const leaders = [0, 1, 2].map((partition) => cluster.leaderOf(topic, partition))
    expect(leaders.toSorted()).toEqual([1, 2, 3])
    expect(cluster.bootstrapServers.split(',')).toHaveLength(3)
    expect(cluster.controllerId).toBe(1)
  })

  test('tells who leads a partition as soon as there is somebody', async () => {
    await using cluster = await startCluster({ topics: [declared] })
    const leader = await cluster.waitForLeader(topic, 0, inTime)
    await leader.kill()
    expect((await cluster.waitForLeader(topic, 0, inTime)).id).not.toBe(leader.id)
    await expect(cluster.waitForLeader(topic, 3)).rejects.toThrow(
      'Topic orders has no partition 3: it has partitions 0 to 2',
    )
    await expect(cluster.waitForLeader('order', 0, { timeoutMs: 10 })).rejects.toThrow(
      'Partition order-0 had no leader within 10 ms: there is no such topic',
    )
  })

  test('leaves nothing behind, in memory and on disk', async () => {
    await using folder = await temporaryFolder()
    vi.stubEnv('TMPDIR', folder.path) // of its own: other tests make and remove folders meanwhile
    onTestFinished(() => void vi.unstubAllEnvs())
    const cluster = await startCluster({ storage: 'temporary', topics: [topic] })
    expect(readdirSync(folder.path)).not.toEqual([])
    await cluster.node(2).kill()
    await cluster.stop()
    await cluster.stop()
    expect(readdirSync(folder.path)).toEqual([])
    await expect(fetch(`http://localhost:${cluster.nodes[0]!.port}`)).rejects.toThrow()
  })

  test.each(['memory', 'temporary'] as const)(
    'loses nothing to a node that is killed, stopped or paused, in %s',
    async (storage) => {
      await using cluster = await startCluster({ topics: [declared], storage })
      const workload = await startWorkload(cluster)
      for (const id of [cluster.leaderOf(topic, 0)!, cluster.controllerId!]) {
        const node = cluster.node(id)
        await node.kill()
        expect(node.state).toBe('stopped')
        await workload.untilAllProgress()
        await node.start()
        await cluster.waitForInSync(inTime)
        await node.stop()
        await workload.untilAllProgress()
        await node.start()
        await cluster.waitForInSync(inTime)
        node.pause()
        expect(node.state).toBe('paused')
        await workload.untilAllProgress()
        node.resume()
        await cluster.waitForInSync(inTime)
        await workload.untilAllProgress()
      }
      await workload.stop()
      await workload.verify()
    },
  )

  test('tells what the nodes know that are not cut off', async () => {
    await using cluster = await startCluster({ topics: [declared] })
    await cluster.waitForInSync(inTime)
    const partition = Array.from({ length: partitionCount }, (_, i) => i).find((i) => cluster.leaderOf(topic, i) === 1)!
    cluster.isolate(1)
    await until(() => cluster.leaderOf(topic, partition) !== 1, 'another node leads')
    await expect(cluster.waitForInSync({ timeoutMs: 1 })).rejects.toThrow('not in sync')
    cluster.healLinks()
    await cluster.waitForInSync(inTime)
  })

  test('goes on without a node whose links are cut, and takes it back when they are healed', async () => {
    // Where both ends of a cut link still reach the controller, only the leader sees that a replica doesn't follow.
    await using cluster = await startCluster({ topics: [declared], config: { 'replica.lag.time.max.ms': 2000 } })
    const workload = await startWorkload(cluster)
    const lone = cluster.leaderOf(topic, 0)!
    cluster.isolate(lone)
    await workload.untilAllProgress()
    const other = cluster.nodes.find(({ id }) => id !== lone)!
    cluster.healLinks()
    await cluster.waitForInSync(inTime)
    cluster.cutLink(lone, other.id)
    await workload.untilAllProgress()
    cluster.healLink(lone, other.id)
    await cluster.waitForInSync(inTime)
    await workload.stop()
    await workload.verify()
  })

  test('has brokers and controllers apart, and goes on when the active controller is killed', async () => {
    await using cluster = await startCluster({ brokers: 2, controllers: 3, topics: [topic] })
    expect(cluster.nodes.map(({ id, roles }) => [id, ...roles])).toEqual([
      [1, 'broker'],
      [2, 'broker'],
      [3, 'controller'],
      [4, 'controller'],
      [5, 'controller'],
    ])
    expect(cluster.bootstrapServers.split(',')).toHaveLength(2)
    await cluster.waitForInSync(inTime)
    const active = cluster.controllerId!
    expect([3, 4, 5]).toContain(active)
    await cluster.node(active).kill()
    await until(() => cluster.controllerId !== active && cluster.controllerId !== undefined, 'another is active')
    await cluster.waitForInSync(inTime) // who takes over next has to be
    const leader = cluster.leaderOf(topic, 0)!
    await cluster.node(leader).kill()
    await until(() => cluster.leaderOf(topic, 0) === 3 - leader, 'the other broker leads')
    await Promise.all([cluster.node(active).start(), cluster.node(leader).start()])
    await cluster.waitForInSync(inTime)
  })

  test('replaces a killed broker that has no vote long before its session ends', async () => {
    const config = { 'broker.session.timeout.ms': 60_000 }
    await using cluster = await startCluster({ brokers: 3, controllers: 1, topics: [topic], config })
    await cluster.waitForInSync(inTime)
    const leader = cluster.leaderOf(topic, 0)!
    await cluster.node(leader).kill()
    await until(() => ![leader, null, undefined].includes(cluster.leaderOf(topic, 0)), 'another broker leads', 30_000)
    await cluster.node(leader).start()
    await cluster.waitForInSync(inTime)
  })

  test('serves a client of kafkajs through the death of a leader', async () => {
    await using cluster = await startCluster({ topics: [topic] })
    const retry = { initialRetryTime: 50, maxRetryTime: 500, retries: 20 }
    const brokers = cluster.bootstrapServers.split(',')
    const producer = new Kafka({ brokers, logLevel: logLevel.NOTHING, retry }).producer({ idempotent: true })
    await producer.connect()
    await producer.send({ topic, messages: [{ value: 'before' }] })
    const leader = cluster.node(cluster.leaderOf(topic, 0)!)
    await leader.kill()
    await producer.send({ topic, messages: [{ value: 'after' }] })
    await until(() => cluster.leaderOf(topic, 0) !== leader.id, 'another node leads')
    await producer.disconnect()
  })

  test.each([
    [{ nodes: 3, controllers: 1 }, 'nodes: each is broker and controller'],
    [{ brokers: 2 }, 'controllers says how many'],
    [{ brokers: 0, controllers: 1 }, 'brokers: 0: allowed is 1 to 9'],
    [{ nodes: 1 }, 'nodes: 1: allowed is 2 to 9'],
    [{ config: { 'node.id': 3 } }, 'node.id: a cluster in one process sets it'],
    [{ config: { 'log.dirs': '/data' } }, 'log.dirs: the folder for data is the option storage'],
    [{ config: withTls }, 'CONTROLLER:SSL: nodes in one process talk without TLS'],
    [{ config: { 'num.partition': 3 } }, 'did you mean num.partitions'],
    [{ topics: [{ name: 'one', replicationFactor: 0 }] }, '0 replicas: allowed is 1 or more'],
    [{ topics: [{ name: 'one', replicationFactor: 4 }] }, 'one'],
  ])('refuses %j', async (options, message) => {
    await expect(startCluster(options)).rejects.toThrow(message)
  })
})
