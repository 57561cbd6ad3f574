import { Kafka, logLevel } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { apis } from '../../src/protocol/index.ts'
import { ClusterProcesses } from '../support/cluster-processes.ts'
import { until } from '../support/condition.ts'
import { describeWithPeer } from '../support/peers.ts'
import { runPeer, startProgram } from '../support/programs.ts'

const topic = 'orders'

async function startCluster(partitions: number): Promise<ClusterProcesses> {
  const cluster = await ClusterProcesses.start({ config: { 'group.initial.rebalance.delay.ms': 0 } })
  const { topics } = await cluster.with(2, (client) =>
    client.request(apis.CreateTopics, 7, {
      topics: [{ name: topic, numPartitions: partitions, replicationFactor: 3, assignments: [], configs: [] }],
      timeoutMs: 10_000,
    }),
  )
  expect(topics.map(({ errorCode }) => errorCode)).toEqual([0])
  await cluster.untilInSync([topic])
  return cluster
}

/** Kills who leads partition 0, and starts it again once somebody else does. */
async function replaceLeader(cluster: ClusterProcesses): Promise<void> {
  const [partition] = await cluster.partitions(1, topic)
  const leader = partition!.leader
  await cluster.node(leader).kill()
  const other = cluster.ids.find((id) => id !== leader)!
  const isMoved = async () => (await cluster.partitions(other, topic))[0]!.leader !== leader
  await until(isMoved, 'partition 0 has another leader')
  await cluster.launch(leader).whenServing()
}

describe('kafkajs', () => {
  test('produces and consumes through the death of a leader', async () => {
    await using cluster = await startCluster(3)
    const kafka = new Kafka({
      brokers: cluster.ids.map((id) => cluster.address(id)),
      logLevel: logLevel.NOTHING,
      retry: { initialRetryTime: 50, retries: 20, maxRetryTime: 500 },
    })
    const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
    const consumer = kafka.consumer({ groupId: 'survivors', sessionTimeout: 6000, heartbeatInterval: 500 })
    const received: string[] = []
    try {
      await producer.connect()
      await consumer.connect()
      await consumer.subscribe({ topic, fromBeginning: true })
      await consumer.run({
        eachMessage: async ({ message }) => {
          received.push(`${message.value}`)
        },
      })
      let sent = 0
      let isDone = false
      const producing = (async () => {
        while (!isDone) {
          await producer.send({ topic, acks: -1, messages: [{ key: `${sent}`, value: `${sent}` }] })
          sent++
        }
      })()
      await until(() => received.length > 20, 'the consumer reads')
      await replaceLeader(cluster)
      const before = received.length
      await until(() => received.length > before + 20, 'the consumer reads on')
      isDone = true
      await producing
      await until(() => new Set(received).size === sent, 'all is read')
    } finally {
      await Promise.all([producer.disconnect(), consumer.disconnect()])
    }
  })
})

describeWithPeer('kcat', 'kcat', (kcat) => {
  test('produces through the death of a leader, each record once and in order', async () => {
    await using cluster = await startCluster(1)
    const servers = ['-b', cluster.bootstrapServers]
    const idempotent = ['-X', 'enable.idempotence=true', '-X', 'acks=all', '-X', 'linger.ms=1']
    const producer = startProgram(kcat.command, [...kcat.args, '-P', ...servers, '-t', topic, '-p', '0', ...idempotent])
    let written = 0
    const timer = setInterval(() => producer.write(`record ${written++}\n`), 2)
    try {
      await until(() => written > 100, 'records are written')
      await replaceLeader(cluster)
      const before = written
      await until(() => written > before + 100, 'records are written on')
    } finally {
      clearInterval(timer)
      producer.endInput()
    }
    const { exitCode, output } = await producer.ended()
    expect(exitCode, output).toBe(0)
    const read = await runPeer(kcat, ['-C', ...servers, '-m', '30', '-t', topic, '-o', 'beginning', '-e', '-q'])
    expect(read.stdout.trimEnd().split('\n')).toEqual(Array.from({ length: written }, (_, index) => `record ${index}`))
  })
})
