import { describe, expect, test } from 'vitest'
import { apis } from '../../../src/protocol/index.ts'
import type { DeleteRecordsOutcome } from '../../../src/replication/index.ts'
import { harness, partitionImage } from './harness.ts'

const of = (name: string, ...offsets: [number, number][]) => ({
  name,
  partitions: offsets.map(([partitionIndex, offset]) => ({ partitionIndex, offset })),
})

describe('DeleteRecords', () => {
  test.each([0, 1, 2])('%i deletes below the offsets and tells the low watermarks', async (version) => {
    const { ask, coordination, replicas } = harness()
    coordination.addTopic('a', [partitionImage(0), partitionImage(1)])
    const { topics } = await ask(apis.DeleteRecords, version, { topics: [of('a', [0, 7], [1, -1])], timeoutMs: 500 })
    expect(topics).toEqual([
      {
        name: 'a',
        partitions: [
          { partitionIndex: 0, lowWatermark: 9, errorCode: 0 },
          { partitionIndex: 1, lowWatermark: 9, errorCode: 0 },
        ],
      },
    ])
    expect(replicas.deletions).toEqual([
      { topic: 'a', partition: 0, beforeOffset: 7, timeoutMs: 500 },
      { topic: 'a', partition: 1, beforeOffset: -1, timeoutMs: 500 },
    ])
  })

  const reasons: [Extract<DeleteRecordsOutcome, { ok: false }>['reason'], number][] = [
    ['offset-out-of-range', 1],
    ['policy-violation', 44],
    ['request-timed-out', 7],
    ['not-leader-or-follower', 6],
    ['storage-error', 56],
  ]

  test.each(reasons)('%s is error %i, with low watermark -1, for its partition only', async (reason, errorCode) => {
    const { ask, coordination, replicas } = harness()
    coordination.addTopic('a', [partitionImage(0), partitionImage(1)])
    replicas.deleteOutcome = ({ partition }) =>
      partition === 0 ? { ok: false, reason } : { ok: true, lowWatermark: 4 }
    const { topics } = await ask(apis.DeleteRecords, 2, { topics: [of('a', [0, 7], [1, 4])], timeoutMs: 500 })
    expect(topics[0]!.partitions).toEqual([
      { partitionIndex: 0, lowWatermark: -1, errorCode },
      { partitionIndex: 1, lowWatermark: 4, errorCode: 0 },
    ])
  })

  test('what is not there, and what the broker keeps its own state in, is refused before it is asked for', async () => {
    const { ask, coordination, replicas } = harness()
    coordination.addTopic('a')
    coordination.addTopic('__consumer_offsets')
    const asked = [
      of('a', [1, 0], [-1, 0]),
      of('none', [0, 0]),
      of('a b', [0, 0]),
      of('__consumer_offsets', [0, 0], [9, 0]),
    ]
    const { topics } = await ask(apis.DeleteRecords, 2, { topics: asked, timeoutMs: 500 })
    expect(topics.map(({ partitions }) => partitions.map(({ errorCode }) => errorCode))).toEqual([
      [3, 3],
      [3],
      [3],
      [17, 3],
    ])
    expect(topics.every(({ partitions }) => partitions.every(({ lowWatermark }) => lowWatermark === -1))).toBe(true)
    expect(replicas.deletions).toEqual([])
  })

  test('a partition that is named twice is asked for once, with the later offset', async () => {
    const { ask, coordination, replicas } = harness()
    coordination.addTopic('a')
    const asked = [of('a', [0, 1], [0, 2]), of('a', [0, 3], [-1, 5]), of('a-', [1, 6])]
    const { topics } = await ask(apis.DeleteRecords, 2, { topics: asked, timeoutMs: -1 })
    expect(topics.map(({ name, partitions }) => [name, partitions.map(({ errorCode }) => errorCode)])).toEqual([
      ['a', [0, 3]],
      ['a-', [3]],
    ])
    expect(replicas.deletions).toEqual([{ topic: 'a', partition: 0, beforeOffset: 3, timeoutMs: 0 }])
  })
})
