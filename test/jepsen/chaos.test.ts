import { describe, expect, test } from 'vitest'
import { until } from '../support/condition.ts'
import { describeWithPeer } from '../support/peers.ts'
import { runPeer, startProgram } from '../support/programs.ts'
import { FaultyCluster, nodeIds } from './cluster.ts'
import { runChaos, topic } from './run.ts'

/** Of all nodes; 10 are what an hour-long run asks for. */
const rolls = Number(process.env.ROOKERY_ROLLING_RESTARTS ?? 1)

describe('three processes', () => {
  test('lose nothing, double nothing and tell nothing twice differently, under faults of each kind', async () => {
    const faults = ['kill one', 'one hears nobody', 'suspend one', 'disk errors', 'kill all']
    const { violations, history, logs } = await runChaos({ seed: 1, faults, maxFaults: faults.length })
    expect(violations).toEqual([])
    // Disks did fail.
    expect([...logs.values()].join()).toContain('injected')
    expect(history.appends.filter(({ outcome }) => outcome === 'ok').length).toBeGreaterThan(500)
    expect(history.logs.length).toBe(12)
  }, 180_000)

  test('keep what was acknowledged while votes move and a disk is lost', async () => {
    const faults = ['vote taken and given', 'wiped disk', 'vote taken before the disk is wiped']
    const { violations, logs } = await runChaos({ seed: 4, faults, maxFaults: faults.length })
    expect(violations).toEqual([])
    expect([...logs.values()].join()).toContain('following without a vote')
  }, 180_000)

  test('are seen to lose what a leader that is cut off acknowledges alone', async () => {
    const { violations } = await runChaos({ seed: 3, faults: ['cut one off'], maxFaults: 2, acks: 1 })
    expect(violations.map(({ property }) => property)).toContain('lost write')
  })

  test(
    'show producers no error while each in turn is restarted',
    async () => {
      const { violations, history } = await runChaos({ seed: 2, faults: ['rolling restart'], maxFaults: rolls })
      expect(violations).toEqual([])
      expect(history.appends.filter(({ outcome }) => outcome === 'ok').length).toBeGreaterThan(200)
    },
    120_000 * rolls,
  )
})

describeWithPeer('kcat', 'kcat', (kcat) => {
  test(
    'delivers each record once and in order while each node in turn is restarted',
    async () => {
      await using cluster = await FaultyCluster.start()
      await cluster.createTopic(topic, 1)
      const servers = ['-b', [...cluster.addresses.values()].join(',')]
      const idempotent = ['-X', 'enable.idempotence=true', '-X', 'acks=all', '-X', 'linger.ms=1']
      // kcat gives up when no broker is connected. By itself it connects to one again only when it has to, and slowly.
      const connected = ['-X', 'enable.sparse.connections=false', '-X', 'reconnect.backoff.max.ms=200']
      const producer = startProgram(kcat.command, [
        ...kcat.args,
        '-P',
        ...servers,
        '-t',
        topic,
        '-p',
        '0',
        ...idempotent,
        ...connected,
      ])
      let written = 0
      const timer = setInterval(() => producer.write(`record ${written++}\n`), 5)
      try {
        for (let roll = 0; roll < rolls; roll++) {
          for (const id of nodeIds) {
            const before = written
            await until(() => written > before + 50, 'records are written')
            await cluster.stop(id)
            await cluster.launch(id).whenServing()
            await until(() => cluster.isInSync([topic]), 'all replicas are in sync')
          }
        }
      } finally {
        clearInterval(timer)
        producer.endInput()
      }
      const { exitCode, output, stderr } = await producer.ended()
      expect(exitCode, output).toBe(0)
      expect(stderr).not.toMatch(/delivery failed/i)
      expect(cluster.endings.filter(({ isExpected }) => !isExpected)).toEqual([])
      const read = await runPeer(kcat, ['-C', ...servers, '-m', '30', '-t', topic, '-o', 'beginning', '-e', '-q'])
      expect(read.stdout.trimEnd().split('\n')).toEqual(
        Array.from({ length: written }, (_, index) => `record ${index}`),
      )
    },
    120_000 * rolls,
  )
})
