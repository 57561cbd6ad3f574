import { expect, test } from 'vitest'
import { Gate } from '../../../src/coordination/gate.ts'
import { CoordinationError } from '../../../src/coordination/index.ts'
import { createSimulation } from '../../../src/platform/simulated/index.ts'

function setUp() {
  const simulation = createSimulation({ seed: 1 })
  const { platform } = simulation.host('a')
  const gate = new Gate(platform)
  const inMs = (delayMs: number) => platform.clock.monotonic() + delayMs
  return { simulation, platform, gate, inMs }
}

test('a gate opens when what is waited for is so and somebody says so', async () => {
  const { simulation, gate, inMs } = setUp()
  let isDue = false
  let passed = false
  const waiting = gate
    .until(() => isDue, inMs(1000), 'it')
    .then(() => {
      passed = true
    })
  gate.notify()
  await simulation.runFor(10)
  expect(passed).toBe(false)
  isDue = true
  gate.notify()
  await simulation.run(waiting)
  expect(passed).toBe(true)
})

test('a gate gives up at the deadline, and says what it waited for', async () => {
  const { simulation, gate, inMs } = setUp()
  await expect(simulation.run(gate.until(() => false, inMs(1000), 'a leader'))).rejects.toMatchObject({
    reason: 'timed-out',
    message: 'Timed out waiting for a leader',
  })
  expect(simulation.nowMs).toBeGreaterThanOrEqual(1000)
})

test('a gate that closes fails who waits and who comes later, with what closed it first', async () => {
  const { simulation, gate, inMs } = setUp()
  const waiting = gate.until(() => false, inMs(1000), 'it')
  const stopped = new CoordinationError('stopped', 'Stopped')
  gate.close(stopped)
  gate.close(new CoordinationError('timed-out', 'Another'))
  await expect(simulation.run(waiting)).rejects.toBe(stopped)
  await expect(simulation.run(gate.until(() => true, inMs(1000), 'it'))).rejects.toBe(stopped)
})

test('a gate gives the value of a promise, or its error, within the deadline', async () => {
  const { simulation, gate, inMs } = setUp()
  expect(await simulation.run(gate.valueOf(Promise.resolve(7), inMs(10), 'it'))).toBe(7)
  const failed = new Error('failed')
  await expect(simulation.run(gate.valueOf(Promise.reject(failed), inMs(10), 'it'))).rejects.toBe(failed)
  const never = new Promise<never>(() => {})
  await expect(simulation.run(gate.valueOf(never, inMs(10), 'it'))).rejects.toMatchObject({ reason: 'timed-out' })
})
