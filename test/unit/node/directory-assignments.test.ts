import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { BrokerId, LeaderEpoch, PartitionEpoch, Uuid } from '../../../src/base/index.ts'
import type { AssignReplicasResult, ReplicaAssignment } from '../../../src/coordination/index.ts'
import type { TopicImage } from '../../../src/metadata/index.ts'
import { DirectoryAssignments } from '../../../src/node/directory-assignments.ts'
import { silentLogger } from '../../../src/telemetry/index.ts'
import { turn } from '../../support/condition.ts'
import { ManualTime } from '../../support/manual-time.ts'
import { deltaOn, imageOfTopics, settledReplicas } from '../../support/partition-image.ts'

const [self, other] = [1 as BrokerId, 2 as BrokerId]
const topicId = 'AAAAAAAAAAAAAAAAAAAAAQ' as Uuid
const [a, b] = ['AAAAAAAAAAAAAAAAAAAAAg' as Uuid, 'AAAAAAAAAAAAAAAAAAAAAw' as Uuid]

/** A broker with as many partitions, and a controller whose answers the test gives. `directories`: what the metadata says. */
function setUp(partitions = 3) {
  const time = new ManualTime()
  const directories = new Map<number, Uuid>()
  let replicas: readonly BrokerId[] = [other, self]
  let hasTopic = true
  let features: ReadonlyMap<string, number> = new Map()
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
  const imageNow = () => ({ ...imageOfTopics(hasTopic ? [topic] : []), features })
  const assignments = new DirectoryAssignments({
    coordination: {
      get image() {
        return imageNow()
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
  /** The metadata is another from here on. */
  const publish = (change: () => void, isSnapshot = false) => {
    const base = imageNow()
    change()
    const image = imageNow()
    const changed = new Map([[topicId, { topic, partitions: new Set(topic.partitions.keys()) }]])
    const step = hasTopic ? { changedTopics: changed } : { deletedTopics: new Map([[topicId, topic]]) }
    assignments.applyDelta(deltaOn(base, isSnapshot ? { isSnapshot } : step), image)
  }
  return {
    time,
    assignments,
    publish,
    setFeatures: () => {
      features = new Map([['metadata.version', 2]])
    },
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

/** It was in `a`, and is again; the request that said `b` failed, and the next one is asked. */
async function thereAndBack() {
  const parts = setUp()
  parts.directories.set(0, a)
  parts.assignments.tell(topicId, 0, b)
  await parts.pass(0)
  parts.asked[0]!.fail()
  await parts.pass(0)
  parts.assignments.tell(topicId, 0, a)
  await parts.pass(1100)
  return parts
}

test('a request that failed and is acted on afterwards is not the last word', async () => {
  const { assignments, asked, told, done, pass, directories } = await thereAndBack()
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

test.each([false, true])(
  'a request that is acted on after a later one is corrected (told by a snapshot: %s)',
  async (isSnapshot) => {
    const { assignments, asked, told, done, pass, directories, publish } = setUp()
    directories.set(0, a)
    assignments.tell(topicId, 0, b)
    await pass(0)
    asked[0]!.fail()
    assignments.tell(topicId, 0, a)
    await pass(1100)
    await done(1)
    publish(() => directories.set(0, b), isSnapshot)
    await pass(0)
    expect(told(2)).toEqual(['0 a'])
    await done(2)
    publish(() => {}, isSnapshot)
    await pass(60_000)
    expect(asked).toHaveLength(3)
  },
)

test('of a replica that went and came back in one step the directory is told again', async () => {
  const { assignments, asked, told, done, pass, directories, publish } = setUp()
  assignments.tell(topicId, 0, b)
  await pass(0)
  await done(0)
  publish(() => directories.delete(0))
  await pass(0)
  expect(told(1)).toEqual(['0 b'])
  await done(1)
  await pass(60_000)
  expect(asked).toHaveLength(2)
})

test.each(['deleted', 'moved to other brokers'] as const)(
  'of what is %s while a request fails nothing is told',
  async (what) => {
    const { assignments, asked, pass, publish, deleteTopic, setReplicas, time, directories } = setUp()
    assignments.tell(topicId, 0, b)
    await pass(0)
    publish(() => (what === 'deleted' ? deleteTopic() : setReplicas([other])))
    asked[0]!.fail()
    await pass(60_000)
    expect(asked).toHaveLength(1)
    expect(time.pendingCount).toBe(0)
    publish(() => {
      setReplicas([other, self])
      directories.set(0, a)
    })
    await pass(60_000)
    expect(asked).toHaveLength(1) // that one is placed anew
  },
)

test('a partition that is refused holds up no other, and is not asked for again and again', async () => {
  const { assignments, asked, told, pass, directories } = setUp()
  assignments.tell(topicId, 0, a)
  assignments.tell(topicId, 1, b)
  await pass(0)
  directories.set(1, b)
  asked[0]!.answer({ ok: true, results: [{ ok: false, reason: 'unknown-topic-id' }, { ok: true }] })
  assignments.tell(topicId, 2, a)
  await pass(0)
  expect(told(1)).toEqual(['2 a'])
  directories.set(2, a)
  asked[1]!.answer({ ok: true, results: [{ ok: true }] })
  await pass(60_000)
  expect(asked).toHaveLength(2)
})

test.each(['before', 'after'] as const)(
  'a controller that learns to keep directories %s its refusal is told them all',
  async (when) => {
    const { assignments, asked, told, done, pass, publish, setFeatures } = setUp()
    assignments.tell(topicId, 0, a)
    await pass(0)
    if (when === 'before') publish(setFeatures)
    asked[0]!.answer({ ok: false, reason: 'unsupported-version' })
    await pass(60)
    assignments.tell(topicId, 1, b)
    await pass(0)
    if (when === 'after') {
      expect(asked).toHaveLength(1)
      publish(setFeatures)
    }
    await pass(1100)
    expect(told(1)).toEqual(['0 a', '1 b'])
    await done(1)
    await pass(60_000)
    expect(asked).toHaveLength(2)
  },
)

test('whatever fails, and whenever it is acted on, the controller ends with where each replica is', async () => {
  const partitions = 3
  const step = fc.record({
    kind: fc.constantFrom(
      'tell',
      'tell',
      'answer',
      'lose',
      'act and lose',
      'act late',
      'refuse',
      'wait',
      'leave and return',
    ),
    partition: fc.nat(partitions - 1),
    directory: fc.constantFrom(a, b),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { assignments, asked, pass, directories, publish, time } = setUp(partitions)
      const truth = new Map<number, Uuid>()
      let answered = 0
      /** Requests that were given up, and that some controller may yet act on. */
      const late: (readonly ReplicaAssignment[])[] = []
      const act = (all: readonly ReplicaAssignment[]) =>
        publish(() => {
          for (const { partition, directory } of all) directories.set(partition, directory)
        })
      for (const { kind, partition, directory } of steps) {
        const request = asked[answered]
        if (kind === 'tell') {
          truth.set(partition, directory)
          assignments.tell(topicId, partition, directory)
        } else if (kind === 'act late') {
          act(late.splice(partition % Math.max(1, late.length), 1)[0] ?? [])
        } else if (kind === 'leave and return') {
          publish(() => directories.delete(partition))
        } else if (kind !== 'wait' && request !== undefined) {
          answered++
          if (kind === 'answer' || kind === 'act and lose') act(request.assignments)
          if (kind === 'answer') request.answer({ ok: true, results: request.assignments.map(() => ({ ok: true })) })
          else if (kind === 'refuse') request.answer({ ok: false, reason: 'stale-broker-epoch' })
          else request.fail()
          if (kind === 'lose') late.push(request.assignments)
        }
        await pass(kind === 'wait' ? 1000 : 0)
      }
      for (const all of late) act(all)
      for (let round = 0; round < 20; round++) {
        for (; answered < asked.length; answered++) {
          const { assignments: all, answer } = asked[answered]!
          act(all)
          answer({ ok: true, results: all.map(() => ({ ok: true })) })
        }
        await pass(1000)
      }
      expect(Object.fromEntries(directories)).toEqual(expect.objectContaining(Object.fromEntries(truth)))
      expect(time.pendingCount).toBe(0)
    }),
    { numRuns: 300 },
  )
})

test('a replica is told again when a late request was acted on before the answer to a later one came', async () => {
  const { asked, pass, directories, publish } = await thereAndBack()
  publish(() => directories.set(0, a)) // the later one is decided
  publish(() => directories.set(0, b)) // and then the late one
  asked[1]!.answer({ ok: true, results: [{ ok: true }] })
  await pass(2000)
  expect(asked[2]?.assignments).toMatchObject([{ directory: a }])
})
