import type { Uuid } from '../../../src/base/index.ts'
import { apis, buildBatch, type FetchRequest, type MessageInput } from '../../../src/protocol/index.ts'
import { batchOf, recordsOf, someTime } from '../batches.ts'
import type { Recorder } from '../recorder.ts'
import type { Scenarios } from '../scenario.ts'
import { versionsOf } from '../versions.ts'

type Body = Partial<MessageInput<typeof FetchRequest>>
const unknownId = 'c29tZS11bmtub3duLWlkIQ' as Uuid

interface Wanted {
  readonly topic: string
  readonly topicId?: Uuid
  readonly partition?: number
  readonly fetchOffset?: number
  readonly partitionMaxBytes?: number
  readonly currentLeaderEpoch?: number
  readonly lastFetchedEpoch?: number
}

export const fetchScenarios: Scenarios = {
  'from every offset, every version': async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of versionsOf(apis.Fetch)) {
      for (const fetchOffset of [0, 1, 2, 3, 5, 9, 10, 11, -1, -2, 1_000_000, Number.MAX_SAFE_INTEGER]) {
        for (const isolationLevel of [0, 1]) await fetch(broker, version, [{ topic, fetchOffset }], { isolationLevel })
      }
    }
  },

  'limits in bytes': async (broker) => {
    const topic = await filled(broker, 'a')
    const other = await filled(broker, 'b')
    const empty = broker.named('empty')
    await broker.createTopic(empty)
    const batchBytes = batchOf(2).length
    for (const version of versionsOf(apis.Fetch)) {
      for (const maxBytes of [
        0,
        1,
        10,
        batchBytes - 1,
        batchBytes,
        batchBytes + 1,
        2 * batchBytes,
        100_000,
        2147483647,
      ]) {
        await fetch(broker, version, [{ topic }], { maxBytes })
        await fetch(broker, version, [{ topic, partitionMaxBytes: maxBytes }])
        await fetch(broker, version, [{ topic, fetchOffset: 3, partitionMaxBytes: maxBytes }])
        await fetch(
          broker,
          version,
          [{ topic: empty }, { topic, partitionMaxBytes: 1 }, { topic: other, partitionMaxBytes: 1 }],
          {
            maxBytes,
          },
        )
        await fetch(broker, version, [{ topic, fetchOffset: 8 }, { topic: other }], { maxBytes })
      }
      await fetch(broker, version, [{ topic }], { maxBytes: -1 })
      await fetch(broker, version, [{ topic, partitionMaxBytes: -1 }])
    }
  },

  'what is not there': async (broker) => {
    const topic = await filled(broker, 'a')
    const missing = broker.named('missing')
    for (const version of versionsOf(apis.Fetch)) {
      await fetch(broker, version, [{ topic: missing, topicId: unknownId }])
      await fetch(broker, version, [
        { topic, partition: 1 },
        { topic, partition: -1 },
      ])
      await fetch(broker, version, [{ topic: missing, topicId: unknownId }, { topic }])
      await fetch(broker, version, [{ topic }, { topic }])
      await fetch(broker, version, [])
      await fetch(broker, version, [], { maxWaitMs: 2000, minBytes: 1000 })
      for (const name of ['', 'a b']) await fetch(broker, version, [{ topic: name, topicId: unknownId }])
    }
  },

  waiting: async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of versionsOf(apis.Fetch)) {
      const wait = (maxWaitMs: number, minBytes: number, fetchOffset: number) =>
        fetch(broker, version, [{ topic, fetchOffset }], { maxWaitMs, minBytes })
      await wait(50, 1, 10)
      await wait(50, 1_000_000, 0)
      await wait(-1, 1_000_000, 0)
      await wait(3000, 1, 0)
      await wait(3000, 0, 10)
      await wait(3000, -1, 10)
      await wait(3000, 1_000_000, 77)
    }
  },

  'a fetch that waits is answered by what comes': async (broker) => {
    const topic = broker.named('a')
    await broker.createTopic(topic)
    for (const version of versionsOf(apis.Fetch)) {
      const fetchOffset = version - 4
      const waiting = fetch(broker, version, [{ topic, fetchOffset }], { maxWaitMs: 8000, minBytes: 1 }, 'waiting')
      await new Promise((resolve) => setTimeout(resolve, 20))
      const topicData = [{ name: topic, partitionData: [{ index: 0, records: batchOf(1) }] }]
      await broker.ask(apis.Produce, 9, { acks: -1, timeoutMs: 5000, topicData })
      await waiting
    }
  },

  'leader epochs': async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of versionsOf(apis.Fetch, 9)) {
      for (const currentLeaderEpoch of [-1, 0, 1, 7, -2]) await fetch(broker, version, [{ topic, currentLeaderEpoch }])
      if (version < 12) continue
      for (const lastFetchedEpoch of [-1, 0, 1, 5]) {
        for (const fetchOffset of [0, 4, 10, 12])
          await fetch(broker, version, [{ topic, lastFetchedEpoch, fetchOffset }])
      }
    }
  },

  'isolation levels that nobody knows': async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of [4, 11, 13, 16, 18]) {
      for (const isolationLevel of [2, -1, 127]) await fetch(broker, version, [{ topic }], { isolationLevel })
    }
  },

  'topic ids': async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of versionsOf(apis.Fetch, 13)) {
      await fetch(broker, version, [{ topic, topicId: unknownId }, { topic }])
      await fetch(broker, version, [{ topic, topicId: 'AAAAAAAAAAAAAAAAAAAAAA' as Uuid }])
    }
  },

  'sessions that are not there': async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of versionsOf(apis.Fetch, 7)) {
      const session = (sessionId: number, sessionEpoch: number, topics: Wanted[] = [{ topic }]) =>
        fetch(broker, version, topics, { sessionId, sessionEpoch })
      await session(0, -1)
      await session(77, 1)
      await session(77, 5, [])
      await session(77, -1)
      await session(77, 0)
      await session(0, 5)
    }
  },

  sessions: async (broker) => {
    for (const version of versionsOf(apis.Fetch, 7, 16)) {
      const [topic, other] = [await filled(broker, `a${version}`), await filled(broker, `b${version}`)]
      const go = (
        sessionId: number,
        sessionEpoch: number,
        topics: Wanted[] = [],
        forgotten: readonly string[] = [],
      ) => {
        const forgottenTopicsData = forgotten.map((name) => ({
          topic: name,
          topicId: broker.topicIds.get(name) as Uuid,
          partitions: [0],
        }))
        return fetch(broker, version, topics, { sessionId, sessionEpoch, forgottenTopicsData })
      }
      const made = await go(0, 0, [
        { topic, fetchOffset: 10 },
        { topic: other, fetchOffset: 8 },
      ])
      const id = made?.sessionId ?? 0
      await go(id, 1)
      await go(id, 2, [{ topic: other, fetchOffset: 10 }])
      await go(id, 3)
      await produceTo(broker, topic)
      await go(id, 4)
      await go(id, 4)
      await go(id, 6)
      await go(id, 5, [{ topic, fetchOffset: 12 }])
      await go(id, 6, [{ topic, fetchOffset: 99 }])
      await go(id, 7)
      await go(id, 8, [
        { topic, fetchOffset: 12 },
        { topic: broker.named('missing'), topicId: unknownId },
      ])
      await go(id, 9)
      await go(id, 10, [], [broker.named('missing'), other])
      await fetch(broker, version < 13 ? 13 : 12, [], { sessionId: id, sessionEpoch: 11 })
      await go(id, 11, [{ topic, partition: 5 }])
      await go(id, 12, [], [topic])
      const next = await go(id, 0, [{ topic }])
      await go(id, 13)
      await go(next?.sessionId ?? 0, 1, [], [topic])
      await go(next?.sessionId ?? 0, 2)
      const last = await go(0, 0, [{ topic }])
      await go(last?.sessionId ?? 0, -1, [{ topic }])
      await go(last?.sessionId ?? 0, 1)
      await go(0, 0)
    }
  },

  'sessions of topics that are deleted and made anew': async (broker) => {
    for (const version of [12, 13, 16]) {
      const topic = await filled(broker, `gone${version}`)
      const stays = await filled(broker, `stays${version}`)
      const wanted = [topic, stays].map((name) => ({ topic: name, fetchOffset: 10 }))
      const id = (await fetch(broker, version, wanted, { sessionId: 0, sessionEpoch: 0 }))?.sessionId ?? 0
      await broker.ask(apis.DeleteTopics, 5, { topicNames: [topic], timeoutMs: 5000 })
      await broker.untilGone(topic)
      await fetch(broker, version, [], { sessionId: id, sessionEpoch: 1 })
      await fetch(broker, version, [], { sessionId: id, sessionEpoch: 2 })
      await broker.createTopic(topic)
      await fetch(broker, version, [], { sessionId: id, sessionEpoch: 3 })
      await fetch(broker, version, [], { sessionId: id, sessionEpoch: 4 })
    }
  },

  'sessions take turns among busy partitions': async (broker) => {
    const topics = [await filled(broker, 'a'), await filled(broker, 'b'), await filled(broker, 'c')]
    for (const version of [7, 12, 13, 16]) {
      const one = { maxBytes: 1, sessionId: 0, sessionEpoch: 0 }
      const wanted = topics.map((topic) => ({ topic }))
      const id = (await fetch(broker, version, wanted, one))?.sessionId ?? 0
      for (let epoch = 1; epoch < 8; epoch++) {
        await fetch(broker, version, [], { maxBytes: 1, sessionId: id, sessionEpoch: epoch })
      }
    }
  },

  racks: async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of versionsOf(apis.Fetch, 11)) await fetch(broker, version, [{ topic }], { rackId: 'somewhere' })
  },

  'packed batches as they were produced': async (broker) => {
    const topic = broker.named('packed')
    await broker.createTopic(topic)
    for (const codec of ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const) {
      const topicData = [{ name: topic, partitionData: [{ index: 0, records: batchOf(3, { codec }) }] }]
      await broker.ask(apis.Produce, 9, { acks: -1, timeoutMs: 5000, topicData })
    }
    for (const version of versionsOf(apis.Fetch)) {
      for (const fetchOffset of [0, 4, 13]) await fetch(broker, version, [{ topic, fetchOffset }])
    }
  },
}

export const listOffsetsScenarios: Scenarios = {
  'by time and special timestamps, every version': async (broker) => {
    const topic = broker.named('times')
    await broker.createTopic(topic, { partitions: 2 })
    const times = [[10, 20, 30], [25, 5], [40], [40, 41], [39, 60, 50]]
    for (const [i, batch] of times.entries()) {
      const records = recordsOf(batch.length).map((record, at) => ({ ...record, timestamp: someTime + batch[at]! }))
      const packed = buildBatch({ records, codec: i % 2 === 0 ? 'none' : 'gzip' })
      const topicData = [{ name: topic, partitionData: [{ index: 0, records: packed }] }]
      await broker.ask(apis.Produce, 9, { acks: -1, timeoutMs: 5000, topicData })
    }
    for (const version of versionsOf(apis.ListOffsets)) {
      for (const isolationLevel of [0, 1]) {
        const asked = [0, 1, 5, 9, 10, 11, 20, 21, 25, 26, 30, 31, 39, 40, 41, 42, 50, 51, 60, 61].map((each) =>
          BigInt(someTime + each),
        )
        for (const timestamp of [...asked, 0n, 1n, 9_000_000_000_000n, 9223372036854775807n]) {
          await list(broker, version, topic, timestamp, { isolationLevel })
        }
        for (const timestamp of [-1n, -2n, -3n, -4n, -5n, -6n, -7n, -100n, -9223372036854775808n]) {
          await list(broker, version, topic, timestamp, { isolationLevel })
          await list(broker, version, topic, timestamp, { isolationLevel, partitionIndex: 1 })
        }
        await list(broker, version, topic, 0n, { isolationLevel, partitionIndex: 1 })
      }
    }
  },

  'by the time of appending': async (broker) => {
    const topic = broker.named('appended')
    await broker.createTopic(topic, { configs: { 'message.timestamp.type': 'LogAppendTime' } })
    const topicData = [{ name: topic, partitionData: [{ index: 0, records: batchOf(3) }] }]
    await broker.ask(apis.Produce, 9, { acks: -1, timeoutMs: 5000, topicData })
    for (const version of versionsOf(apis.ListOffsets)) {
      for (const timestamp of [0n, BigInt(someTime), BigInt(someTime + 2), -3n, 9_000_000_000_000n]) {
        await list(broker, version, topic, timestamp)
      }
    }
  },

  'what is not there, and leader epochs': async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of versionsOf(apis.ListOffsets)) {
      await list(broker, version, broker.named('missing'), -1n)
      await list(broker, version, '', -1n)
      await list(broker, version, 'a b', -1n)
      for (const partitionIndex of [1, -1, 2147483647]) await list(broker, version, topic, -1n, { partitionIndex })
      await broker.ask(apis.ListOffsets, version, { replicaId: -1, topics: [] })
      await broker.ask(apis.ListOffsets, version, { replicaId: -1, topics: [{ name: topic, partitions: [] }] })
      const twice = { partitionIndex: 0, timestamp: -1n }
      await broker.ask(apis.ListOffsets, version, {
        replicaId: -1,
        topics: [{ name: topic, partitions: [twice, twice] }],
      })
      await broker.ask(apis.ListOffsets, version, {
        replicaId: -1,
        topics: [
          { name: topic, partitions: [twice, { ...twice, timestamp: -2n }] },
          { name: topic, partitions: [twice] },
        ],
      })
      if (version < 4) continue
      for (const currentLeaderEpoch of [-1, 0, 1, -2]) {
        for (const timestamp of [-1n, -2n, 0n]) await list(broker, version, topic, timestamp, { currentLeaderEpoch })
      }
    }
  },

  'isolation levels that nobody knows': async (broker) => {
    const topic = await filled(broker, 'a')
    for (const version of [2, 6, 11]) {
      for (const isolationLevel of [2, -1]) await list(broker, version, topic, -1n, { isolationLevel })
    }
  },
}

async function filled(broker: Recorder, text: string): Promise<string> {
  const name = broker.named(text)
  await broker.createTopic(name)
  for (let i = 0; i < 5; i++) await produceTo(broker, name)
  return name
}

async function produceTo(broker: Recorder, name: string): Promise<void> {
  const topicData = [{ name, partitionData: [{ index: 0, records: batchOf(2) }] }]
  await broker.ask(apis.Produce, 9, { acks: -1, timeoutMs: 5000, topicData })
}

function fetch(broker: Recorder, version: number, wanted: readonly Wanted[], body: Body = {}, client = 'oracle') {
  const topics = wanted.map(({ topic, topicId = broker.topicIds.get(topic) as Uuid, ...partition }) => ({
    topic,
    topicId,
    partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1_000_000, ...partition }],
  }))
  return broker.attempt(apis.Fetch, version, { maxWaitMs: 0, minBytes: 0, ...body, topics }, { client })
}

interface ListOptions {
  readonly partitionIndex?: number
  readonly isolationLevel?: number
  readonly currentLeaderEpoch?: number
}

function list(broker: Recorder, version: number, name: string, timestamp: bigint, options: ListOptions = {}) {
  const { partitionIndex = 0, isolationLevel = 0, currentLeaderEpoch = -1 } = options
  const topics = [{ name, partitions: [{ partitionIndex, timestamp, currentLeaderEpoch }] }]
  return broker.attempt(apis.ListOffsets, version, { replicaId: -1, isolationLevel, topics, timeoutMs: 5000 })
}
