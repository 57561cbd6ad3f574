import { describe, expect, test } from 'vitest'
import type { Uuid } from '../../../../src/base/index.ts'
import { BrokerWatch } from '../../../../src/coordination/index.ts'
import { pause } from '../../../../src/platform/index.ts'
import { createSimulation, type SimulatedHost } from '../../../../src/platform/simulated/index.ts'

const node = 7
const run = 'AAAAAAAAAAAAAAAAAAAAAA' as Uuid
const otherRun = 'BBBBBBBBBBBBBBBBBBBBBB' as Uuid
const place = { host: 'broker', port: 9092 }

interface Scene {
  readonly watch: BrokerWatch
  readonly broker: SimulatedHost
  /** Node ids, as they are told. */
  readonly connected: number[]
  readonly crashed: number[]
  /** What the registration of the run says. */
  registered: { place: { host: string; port: number }; run: Uuid } | undefined
  pass(ms: number): Promise<void>
}

/** A watching node and a broker that listens and is registered, from several seeds. */
async function within(body: (scene: Scene) => Promise<void>): Promise<void> {
  for (const seed of [1, 2, 3, 4, 5]) {
    const simulation = createSimulation({ seed })
    const [watching, broker] = [simulation.host('controller'), simulation.host('broker')]
    const scene: Scene = {
      watch: new BrokerWatch({
        platform: watching.platform,
        placeOf: (nodeId, incarnationId) =>
          nodeId === node && scene.registered?.run === incarnationId ? scene.registered.place : undefined,
        onConnected: (nodeId) => scene.connected.push(nodeId),
        onCrashed: (nodeId) => scene.crashed.push(nodeId),
      }),
      broker,
      connected: [],
      crashed: [],
      registered: { place, run },
      pass: (ms) => pause(watching.platform.timers, ms),
    }
    const all = async () => {
      await listen(broker)
      await body(scene)
      scene.watch.stop()
    }
    await simulation.run(all(), { maxVirtualMs: 3_600_000 })
  }
}

const listen = (host: SimulatedHost) =>
  host.platform.network.listen({ host: '0.0.0.0', port: place.port }, () => undefined)

describe('the watch over brokers that only call', () => {
  test('tells within a moment that a process has ended, once', () =>
    within(async ({ watch, broker, connected, crashed, pass }) => {
      watch.opened(node, run)
      expect(connected).toEqual([node])
      await pass(500)
      broker.kill()
      watch.closed(node)
      await pass(250)
      expect(crashed).toEqual([node])
      await pass(10_000)
      expect(crashed).toEqual([node])
    }))

  test('says nothing of one whose stream is opened anew, were it before the second look', () =>
    within(async ({ watch, broker, connected, crashed, pass }) => {
      watch.opened(node, run)
      await pass(500)
      broker.kill() // its listener is away for a moment
      watch.closed(node)
      await pass(30)
      watch.opened(node, run)
      await pass(10_000)
      expect(connected).toEqual([node, node])
      expect(crashed).toEqual([])
    }))

  test('says nothing of one that still listens, and gives up after a while', () =>
    within(async ({ watch, broker, crashed, pass }) => {
      watch.opened(node, run)
      await pass(500)
      watch.closed(node)
      await pass(5000)
      broker.kill()
      await pass(10_000)
      expect(crashed).toEqual([])
    }))

  test('goes on looking where the listener outlives the stream for a moment', () =>
    within(async ({ watch, broker, crashed, pass }) => {
      watch.opened(node, run)
      await pass(500)
      watch.closed(node)
      await pass(100)
      broker.kill()
      await pass(1000)
      expect(crashed).toEqual([node])
    }))

  test('believes no refusal where no connection was made before', () =>
    within(async (scene) => {
      const { watch, broker, crashed, pass } = scene
      scene.registered = { run, place: { host: 'broker', port: 1 } } // as one that advertises `localhost`
      watch.opened(node, run)
      await pass(500)
      broker.kill()
      watch.closed(node)
      await pass(10_000)
      expect(crashed).toEqual([])
    }))

  test('finds the place when the broker is registered after its stream was opened, and when it moves', () =>
    within(async (scene) => {
      const { watch, broker, crashed, pass } = scene
      scene.registered = { run, place: { host: 'broker', port: 1 } }
      watch.opened(node, run)
      await pass(500)
      scene.registered = { run, place }
      watch.look()
      await pass(500)
      broker.kill()
      watch.closed(node)
      await pass(1000)
      expect(crashed).toEqual([node])
    }))

  test('says nothing of a run when another is registered, whose end would be told by its own stream', () =>
    within(async (scene) => {
      const { watch, broker, crashed, pass } = scene
      watch.opened(node, run)
      await pass(500)
      broker.kill()
      scene.registered = { run: otherRun, place }
      watch.closed(node)
      await pass(10_000)
      expect(crashed).toEqual([])
    }))

  test('says nothing after it was stopped', () =>
    within(async ({ watch, broker, connected, crashed, pass }) => {
      watch.opened(node, run)
      await pass(500)
      broker.kill()
      watch.closed(node)
      watch.stop()
      watch.opened(node, run)
      await pass(10_000)
      expect([connected, crashed]).toEqual([[node], []])
    }))
})
