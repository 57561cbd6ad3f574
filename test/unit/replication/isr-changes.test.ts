import { expect, test } from 'vitest'
import type { BrokerId, LeaderEpoch, PartitionEpoch, Uuid } from '../../../src/base/index.ts'
import type { IsrAnswer } from '../../../src/replication/in-sync-replicas.ts'
import { type IsrChangeRequest, IsrChanges } from '../../../src/replication/isr-changes.ts'
import { silentLogger } from '../../../src/telemetry/index.ts'
import { turn } from '../../support/condition.ts'
import { ManualTime } from '../../support/manual-time.ts'

const leaderEpoch = 1 as LeaderEpoch

function change(partition: number, partitionEpoch = 0): IsrChangeRequest {
  return {
    topicId: 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid,
    partition,
    leaderEpoch,
    partitionEpoch: partitionEpoch as PartitionEpoch,
    isr: [{ brokerId: 1 as BrokerId, brokerEpoch: null }],
  }
}

const accepted: IsrAnswer = { ok: true, isr: [1 as BrokerId], partitionEpoch: 1 as PartitionEpoch }

/** A controller whose answers the test gives. */
function setUp() {
  const time = new ManualTime()
  const asked: {
    changes: readonly IsrChangeRequest[]
    answer: (answers: (IsrAnswer | 'retry')[]) => void
    fail: () => void
  }[] = []
  const changes = new IsrChanges(
    (all) =>
      new Promise((resolve, reject) => {
        asked.push({ changes: all, answer: resolve, fail: () => reject(new Error('no controller')) })
      }),
    time,
    silentLogger,
  )
  const answers: [partition: number, answer: IsrAnswer][] = []
  const request = (partition: number, partitionEpoch = 0) =>
    changes.request(change(partition, partitionEpoch), (answer) => answers.push([partition, answer]))
  const pass = async (ms: number) => {
    time.advance(ms)
    await turn()
  }
  return { changes, asked, answers, request, pass }
}

test('IsrChanges asks for all changes of a turn in one request, and for those that come meanwhile in the next', async () => {
  const { asked, answers, request, pass } = setUp()
  request(0)
  request(1)
  await pass(0)
  request(2)
  await pass(1000)
  expect(asked.map(({ changes }) => changes.map(({ partition }) => partition))).toEqual([[0, 1]])
  asked[0]!.answer([accepted, { ok: false, reason: 'refused' }])
  await pass(0)
  expect(answers).toEqual([
    [0, accepted],
    [1, { ok: false, reason: 'refused' }],
  ])
  await pass(0)
  expect(asked[1]!.changes.map(({ partition }) => partition)).toEqual([2])
})

test('IsrChanges asks again for what could not be told, or was not decided, and for nothing that was', async () => {
  const { asked, answers, request, pass } = setUp()
  request(0)
  request(1)
  await pass(0)
  asked[0]!.fail()
  await pass(0)
  expect(asked).toHaveLength(1)
  await pass(50)
  asked[1]!.answer(['retry', accepted])
  await pass(0)
  await pass(50)
  expect(asked[2]!.changes.map(({ partition }) => partition)).toEqual([0])
  expect(answers).toEqual([[1, accepted]])
})

test('IsrChanges asks for the latest change of a partition only', async () => {
  const { asked, request, pass } = setUp()
  request(0, 1)
  request(0, 2)
  await pass(0)
  expect(asked[0]!.changes.map(({ partitionEpoch }) => partitionEpoch)).toEqual([2])
  request(0, 3)
  asked[0]!.answer([accepted])
  await pass(0)
  await pass(0)
  expect(asked[1]!.changes.map(({ partitionEpoch }) => partitionEpoch)).toEqual([3])
})

test('IsrChanges forgets a partition that is not led any more, and everything when it stops', async () => {
  const { changes, asked, answers, request, pass } = setUp()
  request(0)
  changes.forget(change(0).topicId, 0, leaderEpoch)
  await pass(1000)
  expect(asked).toEqual([])
  request(1)
  await pass(0)
  changes.stop()
  asked[0]!.answer([accepted])
  request(2)
  await pass(1000)
  expect([asked.length, answers]).toEqual([1, []])
})

test('IsrChanges keeps what a later leadership asked for when it hears that the one before has ended', async () => {
  const { changes, asked, request, pass } = setUp()
  request(0)
  changes.forget(change(0).topicId, 0, (leaderEpoch - 1) as LeaderEpoch)
  await pass(0)
  expect(asked.map((each) => each.changes)).toEqual([[change(0)]])
})
