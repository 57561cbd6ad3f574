import { expect, test } from 'vitest'
import type { Uuid } from '../../../src/base/index.ts'
import { parseConfig } from '../../../src/config/index.ts'
import { NodePeers } from '../../../src/node/node-peers.ts'
import { createSimulation } from '../../../src/platform/simulated/index.ts'
import { loadNodeMessages } from '../../../src/rpc/index.ts'
import { silentLogger } from '../../../src/telemetry/index.ts'
import { createSocketRpc } from '../../support/socket-rpc.ts'

const messages = await loadNodeMessages()

test('a node tells nothing of itself before it knows what its folders hold', async () => {
  const simulation = createSimulation({ seed: 1 })
  const { platform } = simulation.host('n1')
  const config = parseConfig({
    overrides: [
      'node.id=1',
      'controller.quorum.voters=1@n1:9093,2@n2:9093',
      'listeners=PLAINTEXT://n1:9092,CONTROLLER://n1:9093',
      'controller.listener.names=CONTROLLER',
      'log.dirs=/data/kafka',
    ],
  })
  const services = { network: createSocketRpc(platform), messages }
  const peers = new NodePeers(config, platform, silentLogger, services, 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid)
  const network = createSocketRpc(simulation.host('n2').platform)
  const describe = async () => {
    const channel = network.connect({ host: 'n1', port: 9093 })
    try {
      const request = messages.describeRequest.encode({ clusterId: '', nodeId: 2 })
      return messages.nodeDescription.decode(await channel.call('Describe', request, 1000))
    } finally {
      channel.close()
    }
  }

  await simulation.run(peers.listen())
  await expect(simulation.run(describe())).rejects.toMatchObject({ reason: 'unavailable' })
  const identity = peers.identify()
  identity.catch(() => undefined) // there is no node 2: it waits until it is stopped
  await simulation.runFor(100)
  const empty = await simulation.run(describe())
  expect(empty.clusterId).toBe('')
  expect(empty.directoryId).toMatch(/^[\w-]{22}$/)
  peers.formatted('cluster', [])
  expect((await simulation.run(describe())).clusterId).toBe('cluster')
  await simulation.run(peers.stop())
})
