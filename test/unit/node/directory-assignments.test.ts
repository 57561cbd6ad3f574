import { expect, test } from 'vitest'
import type { BrokerId, LeaderEpoch, PartitionEpoch, Uuid } from '../../../src/base/index.ts'
import type { AssignReplicasResult, ReplicaAssignment } from '../../../src/coordination/index.ts'
import type { TopicImage } from '../../../src/metadata/index.ts'
import { DirectoryAssignments } from '../../../src/node/directory-assignments.ts'
import { silentLogger } from '../../../src/telemetry/index.ts'
import { turn } from '../../support/condition.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { imageOfTopics, settledReplicas } from '../../support/partition-image.ts'

const [self, other] = [1 as BrokerId, 2 as BrokerId]
const topicId = 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid
const [a, b] = ['AAAAAAAAAAAAAAAAAAAAAg' as Uuid, 'AAAAAAAAAAAAAAAAAAAAAw' as Uuid]

/** A broker with as many partitions, and a controller whose answers the test gives. `directories`: what the metadata says. */
function setUp(partitions = 3) {
  const time = new ManualTime()
  const directories = new Map<number, Uuid>()
  let replicas: readonly BrokerId[] = [other, self]
  let hasTopic = true
  const topic: TopicImage = {
    name: 'orders',
    topicId,
    partitions: Array.from({ length: partitions }, (_, partition) => ({
      partition,
      isr: [other],
      leader: other,
      leaderEpoch: 0 as LeaderEpoch,
      partitionEpoch: 0 as PartitionEpoch,
      ...settledReplicas,
      get replicas() {
        return replicas
      },
      get directories() {
        const directory = directories.get(partition)
        return directory === undefined ? [] : [a, directory]
      },
    })),
  }
  const asked: {
    assignments: readonly ReplicaAssignment[]
    answer: (result: AssignReplicasResult) => void
    fail: () => void
  }[] = []
  const assignments = new DirectoryAssignments({
    coordination: {
      get image() {
        return imageOfTopics(hasTopic ? [topic] : [])
      },
      assignReplicas: (each) =>
        new Promise((resolve, reject) => {
          asked.push({ assignments: each, answer: resolve, fail: () => reject(new Error('no controller')) })
        }),
    },
    brokerId: self,
    timers: time,
    logger: silentLogger,
  })
  const pass = async (ms: number) => {
    await turn()
    time.advance(ms)
    await turn()
  }
  /** What the request of that number says, `0 a` for each. */
  const told = (request: number) =>
    asked[request]?.assignments.map((each) => `${each.partition} ${each.directory === a ? 'a' : 'b'}`)
  /** The controller has done what the request asks for. */
  const done = async (request: number) => {
    const { assignments: each, answer } = asked[request]!
    for (const { partition, directory } of each) directories.set(partition, directory)
    answer({ ok: true, results: each.map(() => ({ ok: true })) })
    await pass(0)
  }
  return {
    time,
    assignments,
    asked,
    told,
    done,
    pass,
    directories,
    setReplicas: (now: readonly BrokerId[]) => {
      replicas = now
    },
    deleteTopic: () => {
      hasTopic = false
    },
  }
}

test('what is placed in one turn is told in one request, and what comes meanwhile in the next', async () => {
  const { assignments, asked, told, done, pass } = setUp()
  assignments.tell(topicId, 0, a)
  assignments.tell(topicId, 1, b)
  await pass(0)
  assignments.tell(topicId, 2, b)
  await pass(5000)
  expect(asked.map((_, i) => told(i))).toEqual([['0 a', '1 b']])
  await done(0)
  expect(told(1)).toEqual(['2 b'])
  await done(1)
  await pass(60_000)
  expect(asked).toHaveLength(2)
})

test('what the metadata says already is not told, nor of what is gone, or of another broker', async () => {
  const { assignments, asked, directories, pass, setReplicas, deleteTopic, time } = setUp()
  directories.set(0, a)
  assignments.tell(topicId, 0, a)
  assignments.tell(topicId, 99, a)
  assignments.tell(b, 0, a)
  await pass(0)
  setReplicas([other])
  assignments.tell(topicId, 1, b)
  await pass(0)
  deleteTopic()
  assignments.tell(topicId, 2, b)
  await pass(60_000)
  expect(asked).toEqual([])
  expect(time.pendingCount).toBe(0)
})

test('of a replica that goes on to another directory only the last is told', async () => {
  const { assignments, asked, told, done, pass, directories } = setUp()
  assignments.tell(topicId, 0, a)
  assignments.tell(topicId, 0, b)
  await pass(0)
  expect(told(0)).toEqual(['0 b'])
  assignments.tell(topicId, 0, a)
  await done(0)
  expect(told(1)).toEqual(['0 a'])
  await done(1)
  await pass(60_000)
  expect(asked).toHaveLength(2)
  expect(directories.get(0)).toBe(a)
})

test('a request that fails, or is refused, is sent again after a second, as it is then', async () => {
  const { assignments, asked, told, done, pass } = setUp()
  assignments.tell(topicId, 0, a)
  assignments.tell(topicId, 1, a)
  await pass(0)
  asked[0]!.fail()
  await pass(900)
  assignments.tell(topicId, 1, b)
  expect(asked).toHaveLength(1)
  await pass(200)
  expect(told(1)).toEqual(['0 a', '1 b'])
  asked[1]!.answer({ ok: false, reason: 'stale-broker-epoch' })
  await pass(900)
  expect(asked).toHaveLength(2)
  await pass(200)
  expect(told(2)).toEqual(['0 a', '1 b'])
  await done(2)
  await pass(60_000)
  expect(asked).toHaveLength(3)
})

test('a request that failed and is acted on afterwards is not the last word', async () => {
  const { assignments, asked, told, done, pass, directories } = setUp()
  directories.set(0, a)
  assignments.tell(topicId, 0, b)
  await pass(0)
  asked[0]!.fail()
  await pass(0)
  assignments.tell(topicId, 0, a)
  await pass(1100)
  expect(told(1), 'the metadata says so, but may not for long').toEqual(['0 a'])
  directories.set(0, b)
  await done(1)
  expect(directories.get(0)).toBe(a)
  assignments.tell(topicId, 0, a)
  await pass(60_000)
  expect(asked).toHaveLength(2)
})

test('a controller that keeps no directories is not asked again', async () => {
  const { assignments, asked, pass, time } = setUp()
  assignments.tell(topicId, 0, a)
  await pass(0)
  asked[0]!.answer({ ok: false, reason: 'unsupported-version' })
  await pass(60_000)
  expect(asked).toHaveLength(1)
  expect(time.pendingCount).toBe(0)
})

test('thousands of replicas are told in several requests, each once', async () => {
  const { assignments, asked, done, pass, directories } = setUp(4500)
  for (let partition = 0; partition < 4500; partition++) assignments.tell(topicId, partition, a)
  await pass(0)
  for (let request = 0; request < asked.length; request++) await done(request)
  expect(asked.map(({ assignments: each }) => each.length)).toEqual([2000, 2000, 500])
  expect(directories.size).toBe(4500)
})

test('nothing is asked after the end, not even again', async () => {
  const { assignments, asked, pass, time } = setUp()
  assignments.tell(topicId, 0, a)
  assignments.stop()
  await pass(60_000)
  expect(asked).toEqual([])
  const second = setUp()
  second.assignments.tell(topicId, 0, a)
  await second.pass(0)
  second.assignments.stop()
  second.asked[0]!.fail()
  second.assignments.tell(topicId, 1, a)
  await second.pass(60_000)
  expect(second.asked).toHaveLength(1)
  expect(time.pendingCount + second.time.pendingCount).toBe(0)
})
