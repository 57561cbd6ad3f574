import { expect, test } from 'vitest'
import { apis } from '../../src/protocol/index.ts'
import type { BrokerProcess } from '../support/broker-process.ts'
import { type Authority, createAuthority, type Issued } from '../support/certificates.ts'
import { ClusterProcesses } from '../support/cluster-processes.ts'
import { ClusterWorkload } from '../support/cluster-workload.ts'
import { until } from '../support/condition.ts'
import { describeWithPeer } from '../support/peers.ts'

const topic = 'orders'
const partitionCount = 3
const withTls = 'PLAINTEXT:PLAINTEXT,CONTROLLER:SSL'

/** What a node needs that shows such a certificate, trusts the CA, and asks others for theirs. */
function tlsSettings(trusted: Authority, own: Issued): Record<string, string> {
  return {
    'listener.security.protocol.map': withTls,
    'listener.name.controller.ssl.keystore.type': 'PEM',
    'listener.name.controller.ssl.keystore.location': own.keyStoreFile,
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': trusted.file,
    'ssl.client.auth': 'required',
  }
}

async function createTopic(cluster: ClusterProcesses): Promise<void> {
  const { topics } = await cluster.with(cluster.brokerIds[0]!, (client) =>
    client.request(apis.CreateTopics, 7, {
      topics: [{ name: topic, numPartitions: partitionCount, replicationFactor: 2, assignments: [], configs: [] }],
      timeoutMs: 10_000,
    }),
  )
  expect(topics.map(({ errorCode, errorMessage }) => [errorCode, errorMessage])).toEqual([[0, null]])
}

function startWorkload(cluster: ClusterProcesses): Promise<ClusterWorkload> {
  const addresses = cluster.brokerIds.map((id) => cluster.address(id))
  return ClusterWorkload.start({ addresses, topic, partitionCount, groupId: 'followers' })
}

/** Waits for a line of the node's log with this message whose reason says `text`. */
async function untilTells(node: BrokerProcess, msg: string, text: RegExp): Promise<void> {
  const tells = () => node.logLines().some((line) => line.msg === msg && text.test(String(line.reason)))
  await until(tells, `${msg}: ${text}`).catch((error: unknown) => {
    throw new Error(`${(error as Error).message}:\n${node.program.stdout}\n${node.program.stderr}`)
  })
}

describeWithPeer('openssl', 'a cluster whose nodes talk over TLS', () => {
  test('serves, and goes on when its controller is killed and when it comes back', async () => {
    await using cluster = await ClusterProcesses.prepare({ config: { 'group.initial.rebalance.delay.ms': 0 } })
    const ca = createAuthority(cluster.folder, 'ca')
    const settings = new Map(cluster.ids.map((id) => [id, tlsSettings(ca, ca.issue(`node-${id}`))]))
    for (const id of cluster.ids) cluster.launch(id, settings.get(id))
    await Promise.all(cluster.ids.map((id) => cluster.node(id).whenServing()))
    await createTopic(cluster)
    await cluster.untilInSync([topic], [1, 2])
    const workload = await startWorkload(cluster)
    const controller = await cluster.controller(1)
    await cluster.node(controller).kill()
    await workload.untilAllProgress()
    await cluster.launch(controller, settings.get(controller)).whenServing()
    await cluster.untilInSync([topic], [1, 2])
    await workload.untilAllProgress()
    await workload.stop()
    await workload.verify()
  })

  test('keeps out whom it does not trust, says so at both ends, loses nothing, and takes it back once it is trusted', async () => {
    await using cluster = await ClusterProcesses.prepare({ config: { 'group.initial.rebalance.delay.ms': 0 } })
    const ca = createAuthority(cluster.folder, 'ca')
    const settings = new Map(cluster.ids.map((id) => [id, tlsSettings(ca, ca.issue(`node-${id}`))]))
    for (const id of cluster.ids) cluster.launch(id, settings.get(id))
    await Promise.all(cluster.ids.map((id) => cluster.node(id).whenServing()))
    await createTopic(cluster)
    const workload = await startWorkload(cluster)
    const own = settings.get(3)!
    const stranger = createAuthority(cluster.folder, 'strangers').issue('stranger')
    const elsewhere = ca.issue('elsewhere', { names: 'DNS:elsewhere.example' })
    const keyStore = 'listener.name.controller.ssl.keystore.location'
    const wrongs: readonly (readonly [settings: Record<string, string>, at3: RegExp, at1: RegExp])[] = [
      [
        { 'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT' },
        /this listener has the protocol SSL/,
        /No TLS there/,
      ],
      [{ ...own, [keyStore]: stranger.keyStoreFile }, /CN=stranger, is not accepted/, /unable to verify|issuer/],
      // Only who connects looks at names: this node reaches the others, and they don't reach it.
      [{ ...own, [keyStore]: elsewhere.keyStoreFile }, /^$/, /does not match certificate's altnames/],
    ]
    for (const [wrong, at3, at1] of wrongs) {
      await cluster.node(3).kill()
      const node = cluster.launch(3, wrong)
      await untilTells(cluster.node(1), 'peer not connected', at1)
      if (at3.source === '^$') await untilTells(node, 'connection refused', /It ended the handshake/)
      else {
        await untilTells(node, 'peer not connected', at3)
        await untilTells(cluster.node(1), 'connection refused', /./)
      }
      await workload.untilAllProgress()
    }
    await cluster.node(3).kill()
    await cluster.launch(3, own).whenServing()
    await workload.untilAllProgress()
    await workload.stop()
    await workload.verify()
  }, 180_000)

  test('refuses to start with a certificate that cannot be used, and names the key', async () => {
    await using cluster = await ClusterProcesses.prepare({ nodeCount: 1 })
    const ca = createAuthority(cluster.folder, 'ca')
    const late = ca.issue('late', { validFrom: '20200101000000Z', validUntil: '20200201000000Z' })
    const more = { 'controller.quorum.bootstrap.servers': '127.0.0.1:1' }
    const { exitCode, output } = await cluster.launch(1, { ...tlsSettings(ca, late), ...more }).program.ended()
    expect(exitCode, output).toBe(2)
    const key = 'listener.name.controller.ssl.keystore.location'
    expect(output).toContain(`rookery: ${key}=${late.keyStoreFile}: its certificate CN=late has expired, on 2020-02-01`)
  })
})
