import { describe, expect, test } from 'vitest'
import type { PartitionLog } from '../../../src/log/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { BatchView } from '../../../src/protocol/index.ts'
import { append, appended, batchOf, directory, idempotent, openLog, openLogs, readAll } from './support.ts'

async function start(host: SimulatedHost, simulation: Simulation) {
  const logs = await simulation.run(openLogs(host.platform))
  return { logs, log: await simulation.run(openLog(logs, { 'internal.segment.bytes': 500 })) }
}

async function fresh() {
  const simulation = createSimulation({ seed: 5 })
  const host = simulation.host('a')
  return { simulation, host, ...(await start(host, simulation)) }
}

const send = (log: PartitionLog, sequence: number, count = 1, producerEpoch = 0) =>
  append(log, batchOf(count, `s${sequence}`, idempotent(7, producerEpoch, sequence)))

describe('an idempotent producer', () => {
  test('gets the original offsets for a batch it sends again, and nothing is appended', async () => {
    const { log } = await fresh()
    for (let i = 0; i < 5; i++) await send(log, i * 2, 2)
    for (let i = 0; i < 5; i++) {
      expect(await send(log, i * 2, 2)).toMatchObject({
        ok: true,
        duplicate: true,
        baseOffset: i * 2,
        lastOffset: i * 2 + 1,
        logAppendTimeMs: 1_735_689_600_000,
      })
    }
    expect(log.logEndOffset).toBe(10)
  })

  test('is told a duplicate before the original is on disk, with the offset to wait for', async () => {
    const { log } = await fresh()
    await send(log, 0)
    const again = await send(log, 0)
    expect(again).toMatchObject({ duplicate: true, lastOffset: 0 })
    expect(log.flushedOffset).toBe(0)
  })

  test('is refused a gap, a repetition older than five batches, and other bounds', async () => {
    const { log } = await fresh()
    for (let i = 0; i < 6; i++) await send(log, i)
    for (const [sequence, count] of [
      [7, 1],
      [0, 1],
      [4, 2],
      [5, 2],
    ] as const) {
      expect(await send(log, sequence, count)).toMatchObject({ ok: false, reason: 'out-of-order-sequence' })
    }
    expect(await send(log, 1)).toMatchObject({ duplicate: true })
    expect(await send(log, 6)).toMatchObject({ duplicate: false, baseOffset: 6 })
  })

  test('may begin with any sequence when nothing is known of it', async () => {
    const { log } = await fresh()
    expect(await send(log, 1000)).toMatchObject({ ok: true, baseOffset: 0 })
  })

  test('goes on with 0 after 2147483647', async () => {
    const { log } = await fresh()
    await send(log, 2 ** 31 - 2, 3)
    expect(await send(log, 1)).toMatchObject({ ok: true, baseOffset: 3 })
    expect(await send(log, 2 ** 31 - 2, 3)).toMatchObject({ ok: true, duplicate: true, baseOffset: 0 })
  })

  test('begins a new epoch with sequence 0, and the old one is fenced', async () => {
    const { log } = await fresh()
    await send(log, 0)
    expect(await send(log, 1, 1, 1)).toMatchObject({ ok: false, reason: 'out-of-order-sequence' })
    expect(await send(log, 0, 1, 1)).toMatchObject({ ok: true })
    expect(await send(log, 1, 1, 0)).toMatchObject({ ok: false, reason: 'invalid-producer-epoch' })
    expect(await send(log, 1, 1, 1)).toMatchObject({ ok: true })
  })
})

describe('the state of producers survives', () => {
  const repeatLastFive = async (log: PartitionLog) => {
    const end = log.logEndOffset
    for (let i = end - 5; i < end; i++) expect(await send(log, i)).toMatchObject({ duplicate: true, baseOffset: i })
    for (const i of [end - 6, end + 1]) expect(await send(log, i)).toMatchObject({ reason: 'out-of-order-sequence' })
    expect(await send(log, end)).toMatchObject({ ok: true, duplicate: false, baseOffset: end })
  }

  test('a clean restart, with the last five batches as duplicates', async () => {
    const { simulation, host, logs, log } = await fresh()
    for (let i = 0; i < 12; i++) await send(log, i)
    await simulation.run(logs.close())
    await repeatLastFive((await start(host, simulation)).log)
  })

  test('a crash, with the last five batches as duplicates however many came after the newest snapshot', async () => {
    for (let count = 12; count < 20; count++) {
      const { simulation, host, log } = await fresh()
      for (let i = 0; i < count; i++) await send(log, i)
      await simulation.run(log.flush())
      host.crash()
      host.restart()
      const again = await start(host, simulation)
      expect(again.log.logEndOffset).toBe(count)
      await repeatLastFive(again.log)
    }
  })

  test('a truncation, which takes back what it cuts', async () => {
    const { simulation, log } = await fresh()
    for (let i = 0; i < 12; i++) await send(log, i)
    await simulation.run(log.flush())
    await simulation.run(log.truncateTo(5))
    expect(log.activeProducers()).toEqual([
      { producerId: 7, producerEpoch: 0, lastSequence: 4, lastTimestampMs: 1_735_689_600_000 },
    ])
    expect(await send(log, 5)).toMatchObject({ ok: true, duplicate: false, baseOffset: 5 })
  })

  test('a kill after the last of its records were deleted, behind the newest snapshot', async () => {
    for (let count = 6; count < 20; count++) {
      const { simulation, host, log } = await fresh()
      for (let i = 0; i < count; i++) await send(log, i)
      await append(log, batchOf(1, 'of another', idempotent(8, 0, 0)))
      await simulation.run(log.flush())
      await simulation.run(log.deleteRecordsBefore(count, count + 1))
      host.kill()
      host.restart()
      const again = await start(host, simulation)
      expect(again.log.logStartOffset).toBe(count)
      expect(await send(again.log, count - 1)).toMatchObject({ duplicate: true, baseOffset: count - 1 })
      expect(await send(again.log, count)).toMatchObject({ ok: true, duplicate: false, baseOffset: count + 1 })
    }
  })

  test('a truncation to where the first segment begins, from which older ones were deleted', async () => {
    const { simulation, host, logs, log } = await fresh()
    for (let i = 0; i < 12; i++) await send(log, i)
    await simulation.run(log.flush())
    log.setHighWatermark(12)
    await simulation.run(log.deleteRecordsBefore(9, 12))
    await simulation.run(logs.enforceRetention())
    const files = await simulation.run(host.platform.files.list(`${directory}/orders-0`))
    const firstOffset = Math.min(
      ...files!.filter(({ name }) => /^\d+\.log$/.test(name)).map(({ name }) => Number.parseInt(name, 10)),
    )
    expect(firstOffset).toBeGreaterThan(0)
    await simulation.run(log.truncateTo(firstOffset))
    expect(log.logEndOffset).toBe(firstOffset)
    expect(log.activeProducers()).toMatchObject([{ producerId: 7, lastSequence: firstOffset - 1 }])
  })

  test('being a follower', async () => {
    const leader = await fresh()
    for (let i = 0; i < 6; i++) appended(leader.log, batchOf(1, `s${i}`, idempotent(7, 0, i)))
    const follower = await fresh()
    follower.log.appendAsFollower(Buffer.concat(await leader.simulation.run(readAll(leader.log))))
    expect(await send(follower.log, 5)).toMatchObject({ duplicate: true, baseOffset: 5 })
    expect(await send(follower.log, 6)).toMatchObject({ ok: true, baseOffset: 6 })
  })
})

test('what a crash took together with its deletion leaves no older state of its producer', async () => {
  let lost = 0
  for (let seed = 0; seed < 20; seed++) {
    const simulation = createSimulation({ seed })
    const host = simulation.host('a')
    const keys = { 'internal.segment.bytes': 500, 'flush.messages': 1_000_000 }
    const log = await simulation.run(openLog(await simulation.run(openLogs(host.platform)), keys))
    for (let i = 0; i < 7; i++) await send(log, i)
    await simulation.run(log.flush())
    for (let i = 7; i < 12; i++) await send(log, i)
    await simulation.run(log.deleteRecordsBefore(12, 12))
    host.crash()
    host.restart()
    const again = await simulation.run(openLog(await simulation.run(openLogs(host.platform)), keys))
    expect([again.logStartOffset, again.logEndOffset]).toEqual([12, 12])
    if (again.activeProducers().length === 0) lost++
    expect(await send(again, 12), `seed ${seed}`).toMatchObject({ ok: true, baseOffset: 12 })
  }
  expect(lost).toBeGreaterThan(0)
})

test('a producer that wrote nothing for producer.id.expiration.ms is forgotten', async () => {
  const simulation = createSimulation({ seed: 6 })
  const { platform } = simulation.host('a')
  const keys = { 'producer.id.expiration.ms': 1000, 'producer.id.expiration.check.interval.ms': 100 }
  const logs = await simulation.run(openLogs(platform, { keys }))
  const log = await simulation.run(openLog(logs))
  appended(log, batchOf(1, 'v', { ...idempotent(7, 0, 0), timestamp: platform.clock.now() }))
  await simulation.runFor(500)
  expect(log.activeProducers()).toHaveLength(1)
  await simulation.runFor(1000)
  expect(log.activeProducers()).toHaveLength(0)
})

test('a batch keeps its producer fields as they were sent', async () => {
  const { simulation, log } = await fresh()
  appended(log, batchOf(2, 'v', idempotent(7, 3, 11)))
  const view = new BatchView((await simulation.run(readAll(log)))[0]!)
  expect([view.producerId, view.producerEpoch, view.baseSequence]).toEqual([7, 3, 11])
})
