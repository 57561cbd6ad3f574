import { describe, expect, test } from 'vitest'
import type { BrokerEpoch, Uuid } from '../../../src/base/index.ts'
import type { BrokerHeartbeat, BrokerRegistration } from '../../../src/controller/index.ts'
import { CoordinationError, type CoordinationFailure } from '../../../src/coordination/coordination-error.ts'
import { type AskController, BrokerLifecycle } from '../../../src/coordination/lifecycle/broker-lifecycle.ts'
import { createSimulation } from '../../../src/platform/simulated/index.ts'
import { silentLogger } from '../../../src/telemetry/index.ts'
import { newRun } from './support.ts'

const intervalMs = 1000

/** A broker and a controller that answers what the test says: the next of its answers, and the last one for good. */
function setUp(answers: { registerBroker?: unknown[]; heartbeat?: unknown[] }) {
  const simulation = createSimulation({ seed: 1 })
  const { platform } = simulation.host('a')
  const asked: string[] = []
  const faults: Error[] = []
  const heartbeats: BrokerHeartbeat[] = []
  const directories = { online: [] as Uuid[], offline: [] as Uuid[] }
  const registrations: BrokerRegistration[] = []
  const left = {
    registerBroker: answers.registerBroker ?? [{ ok: true, brokerEpoch: 5 }],
    heartbeat: answers.heartbeat ?? [active],
  }
  const ask = async (kind: 'registerBroker' | 'heartbeat', request: unknown) => {
    asked.push(kind)
    if (kind === 'heartbeat') heartbeats.push(request as BrokerHeartbeat)
    else registrations.push(request as BrokerRegistration)
    const list = left[kind]
    const answer = list.length > 1 ? list.shift() : list[0]
    if (answer instanceof Error) throw answer
    return answer
  }
  const lifecycle = new BrokerLifecycle({
    ask: ask as AskController,
    platform,
    logger: silentLogger,
    registration: newRun(platform),
    heartbeatIntervalMs: intervalMs,
    heartbeatTimeoutMs: 500,
    appliedIndex: () => 42,
    logDirectories: () => directories,
    onFault: (error) => faults.push(error),
  })
  return { simulation, lifecycle, asked, faults, heartbeats, directories, registrations }
}

const active = { ok: true, fenced: false, inControlledShutdown: false }
const fenced = { ok: true, fenced: true, inControlledShutdown: false }
const going = { ok: true, fenced: false, inControlledShutdown: true, mayStop: false }
const mayStop = { ok: true, fenced: true, inControlledShutdown: true, mayStop: true }
const stale = { ok: false, reason: 'stale-broker-epoch' }
const duplicate = { ok: false, reason: 'duplicate-registration', message: 'Another run is alive' }
const failure = (reason: CoordinationFailure) => new CoordinationError(reason, reason)

describe('BrokerLifecycle', () => {
  test('registers, is unfenced when it may be, and says every interval that it lives', async () => {
    const { simulation, lifecycle, asked, heartbeats } = setUp({ heartbeat: [fenced, active] })
    expect(await simulation.run(lifecycle.register(60_000))).toBe(5)
    await simulation.run(lifecycle.unfence(60_000))
    expect(asked).toEqual(['registerBroker', 'heartbeat', 'heartbeat'])
    expect(heartbeats[0]).toEqual({
      ...{ brokerId: 1, brokerEpoch: 5, appliedIndex: 42 },
      ...{ wantFence: false, wantShutdown: false },
    })
    lifecycle.beginHeartbeats()
    await simulation.runFor(10 * intervalMs + 1)
    expect(heartbeats).toHaveLength(12)
    lifecycle.stop()
    await simulation.runFor(10 * intervalMs)
    expect(heartbeats).toHaveLength(12)
  })

  test('says at once what somebody waits for, and again where one was under way', async () => {
    const { simulation, lifecycle, heartbeats } = setUp({})
    await simulation.run(lifecycle.register(60_000))
    lifecycle.beatNow() // not before it has begun
    lifecycle.beginHeartbeats()
    expect(heartbeats).toHaveLength(0)
    await simulation.runFor(intervalMs / 2)
    lifecycle.beatNow()
    expect(heartbeats).toHaveLength(1)
    lifecycle.beatNow()
    lifecycle.beatNow()
    await simulation.runFor(1)
    expect(heartbeats).toHaveLength(2)
    await simulation.runFor(intervalMs)
    expect(heartbeats).toHaveLength(3) // the interval begins anew
    lifecycle.stop()
    lifecycle.beatNow()
    await simulation.runFor(10 * intervalMs)
    expect(heartbeats).toHaveLength(3)
  })

  test('asks again at intervals while it is fenced, and gives up at the deadline', async () => {
    const { simulation, lifecycle, heartbeats } = setUp({ heartbeat: [fenced] })
    await simulation.run(lifecycle.register(60_000))
    const unfenced = lifecycle.unfence(1000)
    await expect(simulation.run(unfenced)).rejects.toMatchObject({ reason: 'timed-out' })
    expect(simulation.nowMs).toBeLessThan(1000)
    expect(heartbeats.length).toBeGreaterThan(5)
    expect(heartbeats.length).toBeLessThan(50)
  })

  test('is fenced without a log directory that works, and registers again when it has one', async () => {
    const broken = setUp({ heartbeat: [fenced] })
    await broken.simulation.run(broken.lifecycle.register(60_000))
    await expect(broken.simulation.run(broken.lifecycle.unfence(300))).rejects.toThrow('none of its log directories')

    const { simulation, lifecycle, directories, registrations } = setUp({ heartbeat: [fenced, fenced, fenced, active] })
    const directory = 'A'.repeat(22) as Uuid
    directories.offline = [directory]
    await simulation.run(lifecycle.register(60_000))
    const unfenced = lifecycle.unfence(60_000)
    await simulation.runFor(60)
    Object.assign(directories, { online: [directory], offline: [] })
    await simulation.run(unfenced)
    expect(registrations.map(({ logDirs }) => logDirs)).toEqual([[], [directory]])
  })

  test('waits for the session of another run, as long as it may', async () => {
    const granted = { ok: true, brokerEpoch: 9 as BrokerEpoch }
    const { simulation, lifecycle } = setUp({ registerBroker: [duplicate, duplicate, granted] })
    expect(await simulation.run(lifecycle.register(60_000))).toBe(9)
    expect(simulation.nowMs).toBeGreaterThanOrEqual(2 * intervalMs)
    const refused = setUp({ registerBroker: [duplicate] })
    await expect(refused.simulation.run(refused.lifecycle.register(3500))).rejects.toMatchObject({
      reason: 'duplicate-registration',
      message: 'Another run is alive',
    })
  })

  test('registers again when the controller does not know it, and goes on', async () => {
    const again = { ok: true, brokerEpoch: 77 }
    const { simulation, lifecycle, heartbeats, faults } = setUp({
      registerBroker: [{ ok: true, brokerEpoch: 5 }, again],
      heartbeat: [stale, active],
    })
    await simulation.run(lifecycle.register(60_000))
    lifecycle.beginHeartbeats()
    await simulation.runFor(2 * intervalMs + 1)
    expect(heartbeats.map(({ brokerEpoch }) => brokerEpoch)).toEqual([5, 77])
    expect(lifecycle.run.brokerEpoch).toBe(77)
    expect(faults).toEqual([])
  })

  test('a controller that does not answer is no fault; another run that took its place is', async () => {
    const { simulation, lifecycle, heartbeats, faults } = setUp({
      registerBroker: [{ ok: true, brokerEpoch: 5 }, duplicate],
      heartbeat: [failure('timed-out'), failure('overloaded'), stale],
    })
    await simulation.run(lifecycle.register(60_000))
    lifecycle.beginHeartbeats()
    await simulation.runFor(2 * intervalMs + 1)
    expect(heartbeats).toHaveLength(2)
    expect(faults).toEqual([])
    await simulation.runFor(5 * intervalMs)
    expect(faults).toMatchObject([{ reason: 'duplicate-registration' }])
    expect(heartbeats).toHaveLength(3)
  })

  test('a fault while it stops is nobody’s business', async () => {
    const { simulation, lifecycle, faults } = setUp({ heartbeat: [failure('stopped')] })
    await simulation.run(lifecycle.register(60_000))
    lifecycle.beginHeartbeats()
    await simulation.runFor(intervalMs - 1)
    lifecycle.stop()
    await simulation.runFor(5 * intervalMs)
    expect(faults).toEqual([])
  })

  test('a broker that shuts down says so until it may stop, and in each heartbeat from then on', async () => {
    const { simulation, lifecycle, heartbeats } = setUp({ heartbeat: [going, going, mayStop] })
    await simulation.run(lifecycle.register(60_000))
    lifecycle.beginHeartbeats()
    await simulation.run(lifecycle.shutDown(60_000))
    expect(heartbeats.map(({ wantShutdown }) => wantShutdown)).toEqual([true, true, true])
    await simulation.runFor(intervalMs + 1)
    expect(heartbeats.map(({ wantShutdown }) => wantShutdown)).toEqual([true, true, true, true])
  })

  test('a broker that nobody lets go gives up waiting at the deadline', async () => {
    const { simulation, lifecycle } = setUp({ heartbeat: [going] })
    await simulation.run(lifecycle.register(60_000))
    const beganMs = simulation.nowMs
    await simulation.run(lifecycle.shutDown(beganMs + 5000))
    expect(simulation.nowMs - beganMs).toBeLessThan(5100)
  })

  test('tells of directories that fail, and registers again with those that are back', async () => {
    const { simulation, lifecycle, heartbeats, directories, registrations } = setUp({})
    const [failing, other] = ['A', 'B'].map((name) => name.repeat(22) as Uuid) as [Uuid, Uuid]
    directories.online = [failing, other]
    await simulation.run(lifecycle.register(60_000))
    lifecycle.beginHeartbeats()
    await simulation.runUntil(() => heartbeats.length === 1)
    expect(heartbeats[0]).not.toHaveProperty('offlineLogDirs')
    Object.assign(directories, { online: [other], offline: [failing] })
    await simulation.runUntil(() => heartbeats.length === 3)
    expect(heartbeats.slice(1).map(({ offlineLogDirs }) => offlineLogDirs)).toEqual([[failing], [failing]])
    expect(registrations).toHaveLength(1)
    Object.assign(directories, { online: [failing, other], offline: [] })
    await simulation.runUntil(() => heartbeats.length === 6)
    expect(registrations.map(({ logDirs }) => logDirs)).toEqual([
      [failing, other],
      [failing, other],
    ])
    lifecycle.stop()
  })
})
