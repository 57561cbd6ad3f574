import { expect, test } from 'vitest'
import type { Uuid } from '../../../../src/base/index.ts'
import { AcceptedStreams, PeerTransport } from '../../../../src/coordination/index.ts'
import { createSimulation, type SimulatedHost } from '../../../../src/platform/simulated/index.ts'
import type { RaftReceiver } from '../../../../src/raft/index.ts'
import { loadNodeMessages } from '../../../../src/rpc/index.ts'
import { silentLogger } from '../../../../src/telemetry/index.ts'
import { createSocketRpc } from '../../../support/socket-rpc.ts'

const port = 9093
const messages = await loadNodeMessages()

function peersOf({ platform }: SimulatedHost, nodeId: number) {
  const id = `AAAAAAAAAAAAAAAAAAAAA${nodeId === 1 ? 'Q' : 'g'}` as Uuid
  const identity = () => ({ clusterId: 'c1', nodeId, directoryId: id, incarnationId: id })
  const network = createSocketRpc(platform)
  const common = { platform, messages, logger: silentLogger, identity }
  const accepted = new AcceptedStreams({ ...common, onRaft() {} })
  const configured = new Map([1, 2].map((each) => [each, { host: `node-${each}`, port }]))
  return { network, accepted, transport: new PeerTransport({ ...common, network, configured, accepted }) }
}

test('Raft is told of a peer that is reached, each time, and of one that is not', async () => {
  const simulation = createSimulation({ seed: 1 })
  const [one, two] = [simulation.host('node-1'), simulation.host('node-2')]
  const told: string[] = []
  const receiver: RaftReceiver = {
    onMessage() {},
    onUnreachable: (node) => told.push(`${node} unreachable`),
    onReachable: (node) => told.push(`${node} reachable`),
    onSnapshotFailed() {},
    onCrashed: (node) => told.push(`${node} crashed`),
  }
  const serve = (): Promise<unknown> => {
    const { network, accepted } = peersOf(two, 2)
    return network.listen(
      { host: '0.0.0.0', port },
      {
        call: () => Promise.reject(new Error('no calls here')),
        stream: (method, stream, peer) => accepted.accept(method, stream, peer),
      },
    )
  }
  const { transport } = peersOf(one, 1)
  transport.start(receiver)
  await simulation.runUntil(() => told.includes('2 crashed'))
  expect(new Set(told)).toEqual(new Set(['2 unreachable', '2 crashed']))
  for (let run = 1; run <= 2; run++) {
    told.length = 0
    await simulation.run(serve())
    await simulation.runUntil(() => told.at(-1) === '2 reachable')
    two.kill()
    two.restart()
    await simulation.runUntil(() => told.includes('2 crashed'))
    expect(told.filter((each) => each === '2 reachable')).toHaveLength(1)
  }
  transport.stop()
})
