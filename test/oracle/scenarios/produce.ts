import type { Uuid } from '../../../src/base/index.ts'
import { apis, buildBatch, type Codec, type RecordInput } from '../../../src/protocol/index.ts'
import { batchOf, patched, recordsOf, someTime } from '../batches.ts'
import type { Recorder } from '../recorder.ts'
import type { Scenarios } from '../scenario.ts'
import { versionsOf } from '../versions.ts'

const codecs: readonly Codec[] = ['none', 'gzip', 'snappy', 'lz4', 'zstd']

export const produceScenarios: Scenarios = {
  'records of every codec, every version': async (broker) => {
    const topic = broker.named('a')
    await broker.createTopic(topic)
    for (const version of versionsOf(apis.Produce)) {
      for (const codec of codecs) await produce(broker, version, topic, batchOf(3, { codec }))
    }
    await readBack(broker, topic)
  },

  'several topics and partitions, good and bad': async (broker) => {
    const [a, b] = [broker.named('a'), broker.named('b')]
    await broker.createTopic(a, { partitions: 2 })
    await broker.createTopic(b)
    for (const version of versionsOf(apis.Produce)) {
      const data = (index: number, records: Buffer | null) => ({ index, records })
      const damaged = Buffer.from(batchOf(1))
      damaged[damaged.length - 1]! ^= 1
      await broker.ask(apis.Produce, version, {
        acks: -1,
        timeoutMs: 5000,
        topicData: [
          { name: a, partitionData: [data(1, batchOf(1)), data(0, damaged), data(2, batchOf(1))] },
          { name: broker.named('missing'), partitionData: [data(0, batchOf(1))] },
          { name: b, partitionData: [data(0, batchOf(2))] },
        ],
      })
      await broker.ask(apis.Produce, version, { acks: -1, timeoutMs: 5000, topicData: [] })
      await broker.ask(apis.Produce, version, { acks: 1, timeoutMs: 5000, topicData: [{ name: a, partitionData: [] }] })
    }
    await readBack(broker, a)
  },

  'acks that nobody knows, and none': async (broker) => {
    const topic = broker.named('a')
    await broker.createTopic(topic)
    for (const version of versionsOf(apis.Produce)) {
      for (const acks of [2, -2, 32767, 1]) await produce(broker, version, topic, batchOf(1), { acks })
      await produce(broker, version, broker.named('missing'), batchOf(1), { acks: 3 })
      await silent(broker, version, topic, batchOf(1))
    }
    await readBack(broker, topic)
  },

  'faults that nobody is told of close the connection': async (broker) => {
    const topic = broker.named('a')
    await broker.createTopic(topic)
    const damaged = Buffer.from(batchOf(1))
    damaged[damaged.length - 1]! ^= 1
    for (const version of versionsOf(apis.Produce)) {
      await silent(broker, version, broker.named('missing'), batchOf(1))
      await silent(broker, version, topic, damaged)
      await silent(broker, version, topic, Buffer.concat([batchOf(1), batchOf(1)]))
    }
    await readBack(broker, topic)
  },

  'a partition number that is none': async (broker) => {
    const topic = broker.named('a')
    await broker.createTopic(topic)
    for (const index of [-1, 1, 2147483647, -2147483648]) {
      for (const version of versionsOf(apis.Produce)) await produce(broker, version, topic, batchOf(1), { index })
    }
    for (const name of ['', 'a b', 'x'.repeat(300)]) await produce(broker, 9, name, batchOf(1))
  },

  'batches that are none, every version': async (broker) => {
    const topic = broker.named('a')
    await broker.createTopic(topic)
    const good = batchOf(3)
    const damaged = Buffer.from(good)
    damaged[damaged.length - 1]! ^= 1
    const magic = (value: number) => patched(good, 16, [value])
    const bad: Record<string, Buffer> = {
      empty: Buffer.alloc(0),
      'a few bytes': Buffer.from([1, 2, 3]),
      'a header alone': good.subarray(0, 61),
      'half a header': good.subarray(0, 30),
      'the length alone': good.subarray(0, 12),
      'cut off': good.subarray(0, good.length - 1),
      'a byte too many': Buffer.concat([good, Buffer.from([0])]),
      'a byte too many in the batch': longer(good),
      two: Buffer.concat([good, good]),
      damaged,
      'magic 0': magic(0),
      'magic 1': magic(1),
      'magic 3': magic(3),
      'magic -1': magic(255),
      'length 0': patchedLength(good, 0),
      'length -1': patchedLength(good, -1),
      'length 48': patchedLength(good, 48),
      'length 2^31-1': patchedLength(good, 2147483647),
      control: patched(good, 21, [0, 0x20]),
      'control of a producer': patched(batchOf(1, { producerId: 5, producerEpoch: 0, baseSequence: 0 }), 21, [0, 0x20]),
      'base offset 5': buildBatch({ records: recordsOf(3), baseOffset: 5 }),
      'base offset -1': patched(good, 0, [255, 255, 255, 255, 255, 255, 255, 255]),
      'leader epoch 77': buildBatch({ records: recordsOf(3), leaderEpoch: 77 }),
      'codec 5': patched(good, 21, [0, 5]),
      'codec 7': patched(good, 21, [0, 7]),
      'attribute 0x80': patched(good, 21, [0, 0x80]),
      'LogAppendTime by the producer': patched(good, 21, [0, 8]),
      'count 2 of 3': patched(good, 57, [0, 0, 0, 2]),
      'count 4 of 3': patched(good, 57, [0, 0, 0, 4]),
      'count 0': patched(good, 57, [0, 0, 0, 0]),
      'count -1': patched(good, 57, [255, 255, 255, 255]),
      'last delta 1 of 3': patched(good, 23, [0, 0, 0, 1]),
      'last delta 9 of 3': patched(good, 23, [0, 0, 0, 9]),
      'last delta -1': patched(good, 23, [255, 255, 255, 255]),
      'count and last delta 4': patched(patched(good, 57, [0, 0, 0, 4]), 23, [0, 0, 0, 3]),
      'count and last delta 2': patched(patched(good, 57, [0, 0, 0, 2]), 23, [0, 0, 0, 1]),
      'no records': withoutRecords(good),
      'record length 0': patched(good, 61, [0]),
      'record length too long': patched(good, 61, [0x7e]),
      'record length -1': patched(good, 61, [1]),
      'record attributes 1': patched(good, 62, [1]),
      'key length -2': patched(good, 65, [3]),
      'key length too long': patched(good, 65, [0x7e]),
      'max timestamp lower than a record': patched(good, 35, [0, 0, 0, 0, 0, 0, 0, 1]),
      'max timestamp -1': patched(good, 35, [255, 255, 255, 255, 255, 255, 255, 255]),
    }
    for (const version of [3, 7, 8, 9, 11]) {
      for (const [what, records] of Object.entries(bad)) {
        await produce(broker, version, topic, records, { client: what.replaceAll(' ', '-') })
      }
      await readBack(broker, topic)
    }
  },

  'batches that only one of the two takes': async (broker) => {
    const good = batchOf(3)
    const bad: Record<string, Buffer> = {
      'a delete horizon': patched(good, 21, [0, 0x40]),
      'record offset delta 1 of 0': patched(good, 64, [2]),
      'snappy, no block': packed(2, Buffer.from('not snappy at all')),
      'gzip, no stream': packed(1, Buffer.from('not gzip at all')),
      'lz4, no frame': packed(3, Buffer.from('not lz4 at all')),
      'zstd, no frame': packed(4, Buffer.from('not zstd at all')),
    }
    for (const codec of codecs.slice(1)) {
      bad[`${codec}, 3 of 4 records`] = patched(patched(batchOf(3, { codec }), 57, [0, 0, 0, 4]), 23, [0, 0, 0, 3])
    }
    for (const [i, [what, records]] of Object.entries(bad).entries()) {
      const topic = broker.named(`t${i}`)
      await broker.createTopic(topic)
      await produce(broker, 9, topic, records, { client: what.replaceAll(' ', '-') })
    }
  },

  'packed records that are wrong inside': async (broker) => {
    const [topic, compact] = [broker.named('a'), broker.named('compact')]
    await broker.createTopic(topic)
    await broker.createTopic(compact, { configs: { 'cleanup.policy': 'compact' } })
    for (const codec of codecs) {
      const good = batchOf(3, { codec })
      for (const name of [topic, compact]) {
        await produce(broker, 9, name, patched(good, 57, [0, 0, 0, 2]), { client: `count-${codec}` })
        await produce(broker, 9, name, patched(good, 23, [0, 0, 0, 7]), { client: `delta-${codec}` })
      }
      const tooMany = patched(patched(good, 57, [0, 0, 0, 4]), 23, [0, 0, 0, 3])
      await produce(broker, 9, compact, tooMany, { client: `more-${codec}` })
    }
    for (const [codec, bytes] of [
      'not gzip at all',
      'not snappy at all',
      'not lz4 at all',
      'not zstd at all',
    ].entries()) {
      await produce(broker, 9, compact, packed(codec + 1, Buffer.from(bytes)), { client: `no-${codec + 1}` })
    }
    await readBack(broker, topic)
    await readBack(broker, compact)
  },

  sizes: async (broker) => {
    const topic = broker.named('a')
    await broker.createTopic(topic, { configs: { 'max.message.bytes': '1000' } })
    const small = broker.named('small')
    await broker.createTopic(small, { configs: { 'max.message.bytes': '3000000', 'segment.bytes': '1048576' } })
    for (const version of versionsOf(apis.Produce)) {
      const sized = (bytes: number) => {
        const overhead = buildBatch({ records: [record({ value: Buffer.alloc(bytes - 200) })] }).length - (bytes - 200)
        return buildBatch({ records: [record({ value: Buffer.alloc(bytes - overhead) })] })
      }
      await produce(broker, version, topic, sized(1000))
      await produce(broker, version, topic, sized(1001))
      await produce(
        broker,
        version,
        topic,
        buildBatch({ records: [record({ value: Buffer.alloc(5000) })], codec: 'gzip' }),
      )
      await produce(broker, version, small, buildBatch({ records: [record({ value: Buffer.alloc(1_100_000) })] }))
    }
    await readBack(broker, topic)
    await readBack(broker, small)
  },

  'keys on a compacted topic': async (broker) => {
    const topic = broker.named('compact')
    await broker.createTopic(topic, { configs: { 'cleanup.policy': 'compact' } })
    const both = broker.named('both')
    await broker.createTopic(both, { configs: { 'cleanup.policy': 'compact,delete' } })
    const mixed = [record({ key: Buffer.from('k') }), record({ key: null }), record({ key: null }), record({})]
    for (const version of versionsOf(apis.Produce)) {
      for (const codec of version >= 7 ? codecs : codecs.slice(0, 4)) {
        await produce(broker, version, topic, buildBatch({ records: mixed, codec }))
        await produce(
          broker,
          version,
          topic,
          buildBatch({ records: [record({ key: Buffer.alloc(0), value: null })], codec }),
        )
      }
      await produce(broker, version, both, buildBatch({ records: mixed }))
    }
    await readBack(broker, topic)
  },

  timestamps: async (broker) => {
    const strict = broker.named('strict')
    await broker.createTopic(strict, {
      configs: { 'message.timestamp.before.max.ms': '1000', 'message.timestamp.after.max.ms': '1000' },
    })
    const plain = broker.named('plain')
    await broker.createTopic(plain)
    const appended = broker.named('appended')
    await broker.createTopic(appended, { configs: { 'message.timestamp.type': 'LogAppendTime' } })
    for (const version of versionsOf(apis.Produce)) {
      for (const topic of [strict, plain, appended]) {
        for (const timestamp of [someTime, 4_000_000_000_000, -1, 0, -2]) {
          const records = [record({ timestamp }), record({ timestamp: someTime })]
          await produce(broker, version, topic, buildBatch({ records }))
          if (version === 9) await produce(broker, version, topic, buildBatch({ records, codec: 'lz4' }))
        }
      }
    }
    await readBack(broker, plain)
    await readBack(broker, appended)
  },

  'a sequence of an idempotent producer, every version': async (broker) => {
    for (const version of versionsOf(apis.Produce)) {
      const topic = broker.named(`a-${version}`)
      await broker.createTopic(topic)
      const send = (baseSequence: number, count = 1, producerEpoch = 0, producerId = 90_000) =>
        produce(broker, version, topic, batchOf(count, { producerId, producerEpoch, baseSequence }))
      await send(0)
      await send(1, 3)
      await send(1, 3) // again
      await send(1, 2) // starts alike
      await send(2, 2) // ends alike
      await send(5)
      await send(4)
      for (let sequence = 5; sequence < 10; sequence++) await send(sequence)
      for (const sequence of [9, 8, 7, 6, 5, 4, 1, 0]) await send(sequence)
      await send(12)
      await send(3, 1, 1)
      await send(0, 1, 1)
      await send(0, 1, 1)
      await send(1, 1, 0)
      await send(1, 1, 3)
      await send(0, 2, 3)
      await send(2, 1, 2)
      await send(77, 1, 5, 90_001)
      await send(78, 1, 5, 90_001)
      await send(2147483645, 2, 0, 90_002)
      await send(2147483647, 3, 0, 90_002)
      await send(2, 1, 0, 90_002)
      await send(2147483647, 3, 0, 90_002)
      await send(-1, 1, 0, 90_003)
      await send(0, 1, -1, 90_003)
      await send(0, 1, 32767, 90_003)
      await send(5, 1, 0, -1)
      await send(-1, 1, 3, -1)
      await readBack(broker, topic)
    }
  },

  'an idempotent producer and LogAppendTime': async (broker) => {
    const topic = broker.named('a')
    await broker.createTopic(topic, { configs: { 'message.timestamp.type': 'LogAppendTime' } })
    for (const version of versionsOf(apis.Produce)) {
      const send = (baseSequence: number) =>
        produce(broker, version, topic, batchOf(1, { producerId: 91_000 + version, producerEpoch: 0, baseSequence }))
      await send(0)
      await send(0)
      await send(2)
      await send(1)
    }
  },

  'internal topics': async (broker) => {
    for (const version of versionsOf(apis.Produce)) {
      await produce(broker, version, '__consumer_offsets', batchOf(1))
    }
  },

  'a min ISR that one broker can not reach': async (broker) => {
    const topic = broker.named('a')
    await broker.createTopic(topic, { configs: { 'min.insync.replicas': '2' } })
    for (const version of versionsOf(apis.Produce)) {
      for (const acks of [-1, 1]) await produce(broker, version, topic, batchOf(1), { acks })
      await silent(broker, version, topic, batchOf(1))
    }
    await readBack(broker, topic)
  },

  'InitProducerId without a transactional id, every version': async (broker) => {
    for (const version of versionsOf(apis.InitProducerId)) {
      const init = (body: { transactionTimeoutMs?: number; producerId?: number; producerEpoch?: number } = {}) =>
        broker.ask(apis.InitProducerId, version, { transactionalId: null, transactionTimeoutMs: 60_000, ...body })
      await init()
      await init({ transactionTimeoutMs: -1 })
      await init({ transactionTimeoutMs: 2147483647 })
      if (version < 3) continue
      await init({ producerId: 900_005, producerEpoch: 0 })
      await init({ producerId: 900_005, producerEpoch: -1 })
      await init({ producerId: -1, producerEpoch: 3 })
      await init({ producerId: -2, producerEpoch: -2 })
    }
  },
}

interface ProduceOptions {
  readonly acks?: number
  readonly index?: number
  readonly client?: string
}

function produce(
  broker: Recorder,
  version: number,
  name: string,
  records: Buffer | null,
  { acks = -1, index = 0, client = 'oracle' }: ProduceOptions = {},
) {
  const topicData = [{ name, topicId: broker.topicIds.get(name) as Uuid, partitionData: [{ index, records }] }]
  return broker.attempt(apis.Produce, version, { acks, timeoutMs: 5000, topicData }, { client })
}

function silent(broker: Recorder, version: number, name: string, records: Buffer) {
  const topicData = [{ name, partitionData: [{ index: 0, records }] }]
  return broker.tell(apis.Produce, version, { acks: 0, timeoutMs: 5000, topicData })
}

/** What lies in the log in the end. */
async function readBack(broker: Recorder, topic: string): Promise<void> {
  await broker.ask(apis.Fetch, 11, {
    maxWaitMs: 0,
    minBytes: 0,
    topics: [{ topic, partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 10_000_000 }] }],
  })
}

function record(from: Partial<RecordInput>): RecordInput {
  return { timestamp: someTime, key: null, value: Buffer.from('v'), ...from }
}

/** The batch's own length set to `length`, whatever the bytes are. */
function patchedLength(batch: Buffer, length: number): Buffer {
  const copy = Buffer.from(batch)
  copy.writeInt32BE(length, 8)
  return copy
}

/** A byte behind the last record that belongs to the batch. */
function longer(batch: Buffer): Buffer {
  const copy = Buffer.concat([batch, Buffer.from([0])])
  copy.writeInt32BE(copy.length - 12, 8)
  return patched(copy, 0, [0])
}

function withoutRecords(batch: Buffer): Buffer {
  const copy = Buffer.from(batch.subarray(0, 61))
  copy.writeInt32BE(49, 8)
  copy.writeInt32BE(0, 57)
  return patched(copy, 23, [255, 255, 255, 255])
}

/** A batch that says that `bytes` are its records, packed by a codec. */
function packed(codec: number, bytes: Buffer): Buffer {
  const copy = Buffer.concat([batchOf(1).subarray(0, 61), bytes])
  copy.writeInt32BE(copy.length - 12, 8)
  return patched(copy, 21, [0, codec])
}
