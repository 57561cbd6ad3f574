import { describe, expect, test } from 'vitest'
import type { BrokerId, LeaderEpoch } from '../../../src/base/index.ts'
import { apis, buildBatch } from '../../../src/protocol/index.ts'
import type { AppendOutcome } from '../../../src/replication/index.ts'
import { brokerImage, harness, partitionImage } from './harness.ts'

const records = Buffer.from('a record batch')

function produceBody(acks: number, topic = 'orders', partitions = [0]) {
  const partitionData = partitions.map((index) => ({ index, records }))
  return { acks, timeoutMs: 1500, topicData: [{ name: topic, partitionData }] }
}

test.each([3, 4, 5, 6, 7, 8, 9, 10, 11])('Produce %i appends and answers', async (version) => {
  const { ask, replicas } = harness()
  const response = await ask(apis.Produce, version, produceBody(-1))
  expect(replicas.appends).toEqual([
    {
      topic: 'orders',
      partition: 0,
      records,
      requiredAcks: -1,
      timeoutMs: 1500,
      origin: 'client',
      produceVersion: version,
    },
  ])
  expect(response.responses).toMatchObject([
    {
      name: 'orders',
      partitionResponses: [
        { index: 0, errorCode: 0, baseOffset: 40, logAppendTimeMs: -1, logStartOffset: version >= 5 ? 3 : -1 },
      ],
    },
  ])
})

test.each([3, 9, 11])('Produce %i appends nothing of a request with a batch of a transaction', async (version) => {
  const inTransaction = buildBatch({ records: [{ timestamp: 0, key: null, value: Buffer.from('v') }] })
  inTransaction.writeInt16BE(0x10, 21)
  const topicData = ['a', 'b'].map((name, i) => ({
    name,
    partitionData: [{ index: 0, records: i === 0 ? records : inTransaction }],
  }))
  const { ask, replicas } = harness()
  const { responses } = await ask(apis.Produce, version, { acks: -1, timeoutMs: 1500, topicData })
  expect(responses.map(({ partitionResponses }) => partitionResponses[0]?.errorCode)).toEqual([53, 53])
  expect(replicas.appends).toEqual([])
})

test('all partitions are appended before the first answer, in the order of the request', async () => {
  const { ask, replicas } = harness()
  const answered: number[] = []
  replicas.appendOutcome = async ({ partition }) => {
    expect(answered).toEqual([])
    await Promise.resolve()
    answered.push(partition)
    return { ok: true, baseOffset: partition, lastOffset: partition, logAppendTimeMs: -1, logStartOffset: 0 }
  }
  const { responses } = await ask(apis.Produce, 9, produceBody(1, 'orders', [5, 2, 7]))
  expect(replicas.appends.map(({ partition }) => partition)).toEqual([5, 2, 7])
  expect(responses[0]!.partitionResponses.map(({ baseOffset }) => baseOffset)).toEqual([5, 2, 7])
})

describe('acks=0', () => {
  test('has no response', async () => {
    const { send, replicas } = harness()
    expect(await send(apis.Produce, 9, produceBody(0))).toBe('none')
    expect(replicas.appends).toHaveLength(1)
  })

  test('closes the connection when any partition is refused', async () => {
    const { send, replicas } = harness()
    replicas.appendOutcome = ({ partition }) =>
      partition === 1
        ? { ok: false, reason: 'not-leader-or-follower' }
        : { ok: true, baseOffset: 0, lastOffset: 0, logAppendTimeMs: -1, logStartOffset: 0 }
    expect(await send(apis.Produce, 9, produceBody(0, 'orders', [0, 1]))).toMatchObject({
      close: expect.stringContaining('not-leader-or-follower'),
    })
    expect(replicas.appends).toHaveLength(2)
  })
})

test.each([2, -2, 32767])(
  'acks %i are INVALID_REQUIRED_ACKS for every partition that is there and append nothing',
  async (acks) => {
    const { ask, replicas, coordination } = harness()
    coordination.addTopic('orders')
    const { responses } = await ask(apis.Produce, 9, produceBody(acks, 'orders', [0, 1]))
    expect(responses[0]!.partitionResponses).toMatchObject([
      { index: 0, errorCode: 21, baseOffset: -1 },
      { index: 1, errorCode: 3, baseOffset: -1 },
    ])
    expect(replicas.appends).toEqual([])
  },
)

type Reason = Extract<AppendOutcome, { ok: false }>['reason']
const reasons: [Reason, number][] = [
  ['corrupt-message', 2],
  ['unknown-topic-or-partition', 3],
  ['not-leader-or-follower', 6],
  ['request-timed-out', 7],
  ['message-too-large', 10],
  ['record-list-too-large', 18],
  ['not-enough-replicas', 19],
  ['not-enough-replicas-after-append', 20],
  ['invalid-timestamp', 32],
  ['unsupported-for-message-format', 43],
  ['out-of-order-sequence', 45],
  ['invalid-producer-epoch', 47],
  ['storage-error', 56],
  ['fenced-leader-epoch', 74],
  ['unknown-leader-epoch', 75],
  ['unsupported-compression-type', 76],
  ['invalid-record', 87],
]

test.each(reasons)('%s is error %i, for its partition only', async (reason, errorCode) => {
  const { ask, replicas } = harness()
  replicas.appendOutcome = ({ partition }) =>
    partition === 1
      ? { ok: false, reason, message: 'Why' }
      : { ok: true, baseOffset: 0, lastOffset: 0, logAppendTimeMs: -1, logStartOffset: 0 }
  const { responses } = await ask(apis.Produce, 9, produceBody(-1, 'orders', [0, 1]))
  expect(responses[0]!.partitionResponses).toMatchObject([
    { errorCode: 0 },
    { errorCode, baseOffset: -1, logAppendTimeMs: -1, logStartOffset: -1, errorMessage: 'Why' },
  ])
})

test('a storage error is NOT_LEADER_OR_FOLLOWER for version 3, which does not know the code', async () => {
  const { ask, replicas } = harness()
  replicas.appendOutcome = () => ({ ok: false, reason: 'storage-error' })
  const { responses } = await ask(apis.Produce, 3, produceBody(1))
  expect(responses[0]!.partitionResponses[0]!.errorCode).toBe(6)
})

test('records at fault are told from version 8 on', async () => {
  const { ask, replicas } = harness()
  replicas.appendOutcome = () => ({
    ok: false,
    reason: 'invalid-record',
    recordErrors: [{ batchIndex: 2, message: 'No key' }],
  })
  const told = await ask(apis.Produce, 8, produceBody(1))
  expect(told.responses[0]!.partitionResponses[0]!.recordErrors).toEqual([
    { batchIndex: 2, batchIndexErrorMessage: 'No key' },
  ])
  const old = await ask(apis.Produce, 7, produceBody(1))
  expect(old.responses[0]!.partitionResponses[0]).toMatchObject({ errorCode: 87, recordErrors: [] })
})

test('from version 10 on who is turned away is told the leader and where it is', async () => {
  const { ask, replicas, coordination } = harness()
  coordination.brokers.push(brokerImage(2))
  coordination.addTopic('orders', [partitionImage(0, { leader: 2 as BrokerId, leaderEpoch: 9 as LeaderEpoch })])
  replicas.appendOutcome = () => ({ ok: false, reason: 'not-leader-or-follower' })
  const told = await ask(apis.Produce, 10, produceBody(1))
  expect(told.responses[0]!.partitionResponses[0]).toMatchObject({ currentLeader: { leaderId: 2, leaderEpoch: 9 } })
  expect(told.nodeEndpoints).toEqual([{ nodeId: 2, host: 'broker2', port: 9092, rack: null }])
  expect((await ask(apis.Produce, 9, produceBody(1))).nodeEndpoints).toEqual([])
})

test('internal topics are refused but for the admin client', async () => {
  const { ask, replicas } = harness()
  const body = produceBody(1, '__consumer_offsets')
  expect((await ask(apis.Produce, 9, body)).responses[0]!.partitionResponses[0]!.errorCode).toBe(17)
  expect(replicas.appends).toEqual([])
  const admin = await ask(apis.Produce, 9, body, { clientId: '__admin_client' })
  expect(admin.responses[0]!.partitionResponses[0]!.errorCode).toBe(0)
})

test('a partition without records is INVALID_RECORD', async () => {
  const { ask, replicas } = harness()
  const topicData = [{ name: 'orders', partitionData: [{ index: 0, records: null }] }]
  const { responses } = await ask(apis.Produce, 9, { acks: 1, timeoutMs: 1, topicData })
  expect(responses[0]!.partitionResponses[0]!.errorCode).toBe(87)
  expect(replicas.appends).toEqual([])
})
