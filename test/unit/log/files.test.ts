import { beforeEach, expect, test } from 'vitest'
import type { LeaderEpoch, ProducerEpoch, ProducerId } from '../../../src/base/index.ts'
import type { LogManager } from '../../../src/log/index.ts'
import { decodeProducerSnapshot, encodeProducerSnapshot } from '../../../src/log/producer-snapshot.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { appended, batchOf, directory, idempotent, openLog, openLogs } from './support.ts'

let simulation: Simulation
let host: SimulatedHost
let logs: LogManager

beforeEach(async () => {
  simulation = createSimulation({ seed: 41 })
  host = simulation.host('a')
  logs = await simulation.run(openLogs(host.platform))
})

async function text(path: string): Promise<string | undefined> {
  return (await simulation.run(host.platform.files.readFile(`${directory}/${path}`, 1 << 20)))?.toString()
}

// Apache Kafka 4.4's DumpLogSegments (deep iteration, index sanity check) finds no fault in such files.
test('every file of a folder that was shut down cleanly has the bytes that Kafka would write', async () => {
  const log = await simulation.run(openLog(logs, { 'internal.segment.bytes': 250, 'index.interval.bytes': 0 }))
  for (let i = 0; i < 4; i++) {
    const leaderEpoch = (i < 2 ? 3 : 5) as LeaderEpoch
    appended(log, batchOf(2, `v${i}`, { timestamp: 1_735_689_600_000 + i, ...idempotent(7, 1, i * 2) }), {
      leaderEpoch,
    })
  }
  await simulation.run(log.deleteRecordsBefore(3, 8))
  log.setHighWatermark(6)
  await simulation.run(logs.close())
  const entries = (await simulation.run(host.platform.files.list(`${directory}/orders-0`)))!
  const contents: Record<string, string> = {}
  for (const { name } of entries) {
    const bytes = (await simulation.run(host.platform.files.readFile(`${directory}/orders-0/${name}`, 1 << 20)))!
    contents[name] = /\.(log|index|timeindex|snapshot)$/.test(name) ? bytes.toString('hex') : bytes.toString()
  }
  expect(contents).toMatchInlineSnapshot(`
    {
      "00000000000000000000.index": "0000000300000057",
      "00000000000000000000.log": "00000000000000000000004b00000003025eb4344c000000000001000001941f297c00000001941f297c0000000000000000070001000000000000000218000000046b300876302d300018000002046b310876302d310000000000000000020000004b00000003028ac6546a000000000001000001941f297c01000001941f297c0100000000000000070001000000020000000218000000046b300876312d300018000002046b310876312d3100",
      "00000000000000000000.timeindex": "000001941f297c0100000003",
      "00000000000000000004.index": "0000000300000057",
      "00000000000000000004.log": "00000000000000040000004b0000000502f3bc82f1000000000001000001941f297c02000001941f297c0200000000000000070001000000040000000218000000046b300876322d300018000002046b310876322d310000000000000000060000004b000000050227cee2d7000000000001000001941f297c03000001941f297c0300000000000000070001000000060000000218000000046b300876332d300018000002046b310876332d3100",
      "00000000000000000004.snapshot": "00011934062e000000020000000000000007000100000001000000000000000100000001000001941f297c00ffffffffffffffffffffffff0000000000000007000100000003000000000000000300000001000001941f297c01ffffffffffffffffffffffff",
      "00000000000000000004.timeindex": "000001941f297c0300000003",
      "00000000000000000008.snapshot": "000126d0d22c000000040000000000000007000100000001000000000000000100000001000001941f297c00ffffffffffffffffffffffff0000000000000007000100000003000000000000000300000001000001941f297c01ffffffffffffffffffffffff0000000000000007000100000005000000000000000500000001000001941f297c02ffffffffffffffffffffffff0000000000000007000100000007000000000000000700000001000001941f297c03ffffffffffffffffffffffff",
      "leader-epoch-checkpoint": "0
    2
    3 3
    5 4
    ",
      "partition.metadata": "version: 0
    topic_id: AAAAAAAAAAAAAAAAAAAAAQ
    ",
    }
  `)
  expect(await text('recovery-point-offset-checkpoint')).toBe('0\n1\norders 0 8\n')
  expect(await text('replication-offset-checkpoint')).toBe('0\n1\norders 0 6\n')
  expect(await text('log-start-offset-checkpoint')).toBe('0\n1\norders 0 3\n')
  expect(await text('.kafka_cleanshutdown')).toBe('{"version":0,"brokerEpoch":-1}')
})

test('a log start is told to nobody before it is durable', async () => {
  const log = await simulation.run(openLog(logs))
  appended(log, batchOf(3, 'v'))
  await simulation.run(log.flush())
  log.setHighWatermark(3)
  host.disk.failNext({ operation: 'rename', path: /log-start-offset-checkpoint/, code: 'EIO' })
  const deleted = log.deleteRecordsBefore(2, 3)
  expect(log.logStartOffset).toBe(0)
  await expect(simulation.run(deleted)).rejects.toThrow('EIO')
  expect(log.logStartOffset).toBe(0)
})

test('recovery points and high watermarks are stored from time to time, while they change', async () => {
  const log = await simulation.run(openLog(logs))
  appended(log, batchOf(3, 'v'))
  await simulation.run(log.flush())
  log.setHighWatermark(2)
  await simulation.runFor(6_000)
  expect(await text('replication-offset-checkpoint')).toBe('0\n1\norders 0 2\n')
  expect(await text('recovery-point-offset-checkpoint')).toBeUndefined()
  await simulation.runFor(90_000)
  expect(await text('recovery-point-offset-checkpoint')).toBe('0\n1\norders 0 3\n')
  const used = simulation.eventCount
  await simulation.runFor(600_000)
  // Timers only: an idle node writes nothing.
  expect(simulation.eventCount - used).toBeLessThan(400)
})

test('topics with a dash and a digit in their names keep their own checkpoints', async () => {
  const log = await simulation.run(openLog(logs, {}, 1, 'a-1'))
  const other = await simulation.run(openLog(logs, {}, 11, 'a'))
  appended(log, batchOf(3, 'v'))
  appended(other, batchOf(5, 'v'))
  await simulation.run(logs.close())
  expect(await text('recovery-point-offset-checkpoint')).toBe('0\n2\na-1 1 3\na 11 5\n')
  logs = await simulation.run(openLogs(host.platform))
  expect([logs.get('a-1', 1)?.logEndOffset, logs.get('a', 11)?.logEndOffset]).toEqual([3, 5])
})

test('a snapshot that is not whole is none', () => {
  const bytes = encodeProducerSnapshot([
    {
      producerId: 7 as ProducerId,
      producerEpoch: 1 as ProducerEpoch,
      lastSequence: 9,
      lastOffset: 123_456_789_012,
      offsetDelta: 1,
      timestamp: 1_735_689_600_000,
      coordinatorEpoch: -1,
      currentTxnFirstOffset: -1,
    },
  ])
  expect(decodeProducerSnapshot(bytes)).toHaveLength(1)
  for (let end = 0; end < bytes.length; end++) expect(decodeProducerSnapshot(bytes.subarray(0, end))).toBeUndefined()
  for (let at = 0; at < bytes.length; at++) {
    const wrong = Buffer.from(bytes)
    wrong[at]! ^= 1
    expect(decodeProducerSnapshot(wrong)).toBeUndefined()
  }
  const claim = Buffer.from(bytes)
  claim.writeInt32BE(0x7fffffff, 6)
  expect(decodeProducerSnapshot(claim)).toBeUndefined()
})
