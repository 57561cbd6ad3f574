import { describe, expect, test } from 'vitest'
import { PeerLink } from '../../../../src/coordination/peers/peer-link.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../../src/platform/simulated/index.ts'
import type { RpcError, RpcListener } from '../../../../src/rpc/index.ts'
import { createSocketRpc } from '../../../support/socket-rpc.ts'

const port = 9093

/** Answers a hello with 'hello', a ping with 'pong', and notes the rest. */
function serve(host: SimulatedHost, received: string[] = []): Promise<RpcListener> {
  return createSocketRpc(host.platform).listen(
    { host: '0.0.0.0', port },
    {
      call: () => Promise.reject(new Error('no calls here')),
      stream: (_method, stream) => ({
        onMessage(message) {
          const text = message.toString()
          if (text === 'ping') stream.send(Buffer.from('pong'))
          else if (text === 'hello') stream.send(message)
          else received.push(text)
        },
        onClose() {},
      }),
    },
  )
}

interface Events {
  readonly link: PeerLink
  opened: number
  crashed: number
  readonly down: RpcError[]
}

function linkFrom(host: SimulatedHost, to: string): Events {
  const events = { opened: 0, crashed: 0, down: [] as RpcError[] }
  const link = new PeerLink({
    network: createSocketRpc(host.platform),
    target: { host: to, port },
    method: 'Converse',
    platform: host.platform,
    hello: () => Buffer.from('hello'),
    ping: Buffer.from('ping'),
    listener: {
      onOpen: () => events.opened++,
      onMessage() {},
      onDown: (error) => events.down.push(error),
      onCrashed: () => events.crashed++,
    },
  })
  link.start()
  return Object.assign(events, { link })
}

async function within(body: (simulation: Simulation, a: SimulatedHost, b: SimulatedHost) => Promise<void>) {
  for (const seed of [1, 2, 3, 4, 5]) {
    const simulation = createSimulation({ seed })
    const [a, b] = [simulation.host('a'), simulation.host('b')]
    await simulation.run(body(simulation, a, b), { maxVirtualMs: 3_600_000 })
  }
}

/** Virtual time until `isSo`; fails after a minute. */
async function until({ platform }: SimulatedHost, isSo: () => boolean): Promise<number> {
  const startMs = platform.clock.monotonic()
  for (;;) {
    const passedMs = platform.clock.monotonic() - startMs
    if (isSo()) return passedMs
    if (passedMs > 60_000) expect.fail('not within a minute')
    await pass(platform, 1)
  }
}

function pass({ timers }: SimulatedHost['platform'], ms: number): Promise<void> {
  return new Promise((resolve) => timers.set(ms, resolve))
}

describe('a link to a peer', () => {
  test('opens when the peer is up, however late, and carries messages in order', () =>
    within(async (_simulation, a, b) => {
      const events = linkFrom(a, 'b')
      await pass(a.platform, 3000)
      expect(events.opened).toBe(0)
      const received: string[] = []
      await serve(b, received)
      expect(await until(a, () => events.opened === 1)).toBeLessThan(800)
      for (let i = 0; i < 100; i++) events.link.send(Buffer.from(`${i}`))
      await until(a, () => received.length === 100)
      expect(received).toEqual(Array.from({ length: 100 }, (_, i) => `${i}`))
    }))

  test('stays open while nothing is sent', () =>
    within(async (_simulation, a, b) => {
      await serve(b)
      const events = linkFrom(a, 'b')
      await pass(a.platform, 600_000)
      expect(events).toMatchObject({ opened: 1, crashed: 0, down: [] })
      events.link.stop()
    }))

  test('tells a process that ended at once, and only once', () =>
    within(async (_simulation, a, b) => {
      await serve(b)
      const events = linkFrom(a, 'b')
      await until(a, () => events.opened === 1)
      b.kill()
      b.restart()
      expect(await until(a, () => events.crashed === 1)).toBeLessThan(200)
      await pass(a.platform, 10_000)
      expect(events.crashed).toBe(1)
    }))

  test('tells a process that ended also over a way, or from a machine, that is slow', () =>
    within(async (simulation, a, b) => {
      simulation.network.latencyUs = [80_000, 100_000]
      await serve(b)
      const events = linkFrom(a, 'b')
      await until(a, () => events.opened === 1)
      b.kill()
      b.restart()
      expect(await until(a, () => events.crashed === 1)).toBeLessThan(1000)
    }))

  test('takes a peer that is stopped or cut off for gone, but not for crashed', () =>
    within(async (simulation, a, b) => {
      await serve(b)
      const events = linkFrom(a, 'b')
      await until(a, () => events.opened === 1)
      simulation.network.cut('a', 'b')
      expect(await until(a, () => !events.link.isOpen)).toBeLessThan(2600)
      await pass(a.platform, 5000)
      expect(events.crashed).toBe(0)
      simulation.network.healAll()
      expect(await until(a, () => events.link.isOpen)).toBeLessThan(2000)
    }))

  test('does not take its own standstill for silence of the peer', () =>
    within(async (_simulation, a, b) => {
      await serve(b)
      const events = linkFrom(a, 'b')
      await until(a, () => events.opened === 1)
      a.pause()
      await pass(b.platform, 20_000)
      a.resume()
      await pass(b.platform, 10_000)
      expect(events).toMatchObject({ opened: 1, down: [] })
    }))

  test('drops what is sent while it is down, and is silent once stopped', () =>
    within(async (_simulation, a, b) => {
      const events = linkFrom(a, 'b')
      events.link.send(Buffer.from('lost'))
      events.link.stop()
      const received: string[] = []
      await serve(b, received)
      await pass(a.platform, 5000)
      expect({ received, opened: events.opened, down: events.down }).toEqual({ received: [], opened: 0, down: [] })
    }))
})
