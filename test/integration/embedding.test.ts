import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'
import kafkajs from 'kafkajs'
import { afterEach, describe, expect, test } from 'vitest'
import { type Broker, type BrokerOptions, ConfigError, ObservationError, startBroker } from '../../src/index.ts'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis, buildBatch, type Codec, ErrorCode } from '../../src/protocol/index.ts'
import { until } from '../support/condition.ts'
import { connect } from '../support/kafka-connection.ts'
import { initProducerId, produceBatch } from '../support/producing.ts'
import { commitOffset, committedOffset, joinGroup } from '../support/raw-group.ts'
import { recordsOfAnyAge } from '../support/records-of-any-age.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { msOf, shortestMs } from '../support/timing.ts'

// What an embedding program has beside a broker to connect to: reset, waits, records, a clock, faults.

const { Kafka, logLevel, Partitioners } = kafkajs
const createPartitioner = Partitioners.DefaultPartitioner
const storages = ['memory', 'temporary'] as const
/** The 4 s of the default are for who has nothing else on the machine. */
const inTime = { timeoutMs: 60_000 }

const open: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

function started(options: BrokerOptions & { clock: NonNullable<BrokerOptions['clock']> }): ReturnType<typeof manual>
function started(options?: BrokerOptions): Promise<Broker>
async function started(options: BrokerOptions = {}): Promise<Broker> {
  const broker = await startBroker({ ...options, config: { ...recordsOfAnyAge, ...options.config } })
  open.push(() => broker.stop())
  return broker
}

async function manual(options: BrokerOptions = {}) {
  const broker = await startBroker({ clock: 'manual', ...options } as BrokerOptions & { clock: 'manual' })
  open.push(() => broker.stop())
  return broker
}

async function connected({ bootstrapServers }: Broker): Promise<KafkaClient> {
  const client = await connect(bootstrapServers)
  open.push(() => client.close())
  return client
}

const kafkaOf = ({ bootstrapServers }: Broker) => new Kafka({ brokers: [bootstrapServers], logLevel: logLevel.NOTHING })

async function producerOf(broker: Broker, options: { idempotent?: boolean } = {}) {
  const producer = kafkaOf(broker).producer({ createPartitioner, maxInFlightRequests: 1, ...options })
  await producer.connect()
  open.push(() => producer.disconnect())
  return producer
}

/** What a running consumer was given: `topic-partition@offset=value`. */
async function consumerOf(broker: Broker, groupId: string, topics: string[]): Promise<string[]> {
  const consumer = kafkaOf(broker).consumer({ groupId, maxWaitTimeInMs: 200 })
  await consumer.connect()
  open.push(() => consumer.disconnect())
  await consumer.subscribe({ topics, fromBeginning: true })
  const received: string[] = []
  await consumer.run({
    eachMessage: async ({ topic, partition, message }) => {
      received.push(`${topic}-${partition}@${message.offset}=${message.value}`)
    },
  })
  return received
}

const textBatch = (...values: string[]) => ({
  records: values.map((value) => ({ timestamp: 1, value: Buffer.from(value) })),
})
const topicNames = async (client: KafkaClient) =>
  (await client.request(apis.Metadata, 9, { topics: null })).topics.map(({ name }) => name).sort()
const groupIds = async (client: KafkaClient) =>
  (await client.request(apis.ListGroups, 4, { statesFilter: [] })).groups.map(({ groupId }) => groupId)

describe.each(storages)('reset() in storage %s', (storage) => {
  const topics = ['orders', { name: 'prices', partitions: 3, configs: { 'retention.ms': 60_000 } }]

  test('leaves declared topics, empty and as they were declared, and nothing else', async () => {
    const broker = await started({ storage, topics: [...topics, 'deleted-by-a-test'] })
    const client = await connected(broker)
    await produceBatch(client, 'orders', 0, textBatch('a', 'b'))
    await produceBatch(client, 'prices', 2, textBatch('c'))
    await client.request(apis.DeleteTopics, 4, { topicNames: ['deleted-by-a-test'], timeoutMs: 5000 })
    await client.request(apis.Metadata, 9, { topics: [{ name: 'made-by-a-test' }] })
    await client.request(apis.CreatePartitions, 1, {
      topics: [{ name: 'prices', count: 5, assignments: null }],
      timeoutMs: 5000,
      validateOnly: false,
    })
    const setConfig = (resourceType: number, resourceName: string, name: string, value: string) => ({
      resourceType,
      resourceName,
      configs: [{ name, configOperation: 0, value }],
    })
    const resources = [
      setConfig(2, 'orders', 'retention.ms', '5'),
      setConfig(4, '', 'log.retention.ms', '7'),
      setConfig(4, '1', 'max.connections', '77'),
    ]
    await client.request(apis.IncrementalAlterConfigs, 1, { resources, validateOnly: false })
    await joinGroup(client, 'readers', 10_000)
    await commitOffset(client, 'committers', 'orders', 1)
    broker.faults.failNext({ error: 'UNKNOWN_SERVER_ERROR', api: 'ListGroups' })

    await broker.reset()

    expect(await topicNames(client)).toEqual(['__consumer_offsets', 'deleted-by-a-test', 'orders', 'prices'])
    expect(await broker.records('orders')).toEqual([])
    expect(await broker.records('prices')).toEqual([])
    expect(await groupIds(client)).toEqual([])
    expect(await committedOffset(client, 'committers', 'orders')).toBe(-1)
    expect(await produceBatch(client, 'orders', 0, textBatch('d'))).toBe(0)
    const { results } = await client.request(apis.DescribeConfigs, 4, {
      resources: [
        { resourceType: 2, resourceName: 'orders', configurationKeys: ['retention.ms'] },
        { resourceType: 2, resourceName: 'prices', configurationKeys: ['retention.ms'] },
        { resourceType: 4, resourceName: '1', configurationKeys: ['max.connections'] },
      ],
      includeDocumentation: false,
    })
    expect(results.map(({ configs }) => configs[0]!.value)).toEqual(['604800000', '60000', '2147483647'])
    const metadata = await client.request(apis.Metadata, 9, { topics: [{ name: 'prices' }] })
    expect(metadata.topics[0]!.partitions).toHaveLength(3)
  })

  test('keeps topics of others, empty, when it is told to', async () => {
    const broker = await started({ storage, topics: ['orders'] })
    const client = await connected(broker)
    const made = {
      name: 'made',
      numPartitions: 2,
      replicationFactor: 1,
      assignments: [],
      configs: [{ name: 'retention.ms', value: '9' }],
    }
    await client.request(apis.CreateTopics, 5, { topics: [made], timeoutMs: 5000, validateOnly: false })
    await produceBatch(client, 'made', 1, textBatch('a'))
    await broker.reset({ topics: 'keep' })
    expect(await topicNames(client)).toEqual(['made', 'orders'])
    expect(await broker.records('made')).toEqual([])
    expect(await produceBatch(client, 'made', 1, textBatch('b'))).toBe(0)
  })

  test('lets running clients go on: a producer, an idempotent one, a consumer', async () => {
    const broker = await started({ storage, topics })
    const plain = await producerOf(broker)
    const idempotent = await producerOf(broker, { idempotent: true })
    const received = await consumerOf(broker, 'readers', ['orders', 'prices'])
    const send = async (value: string) => {
      await plain.send({ topic: 'orders', messages: [{ value }] })
      await idempotent.send({ topic: 'prices', messages: [{ partition: 1, value }] })
    }
    for (const round of ['one', 'two', 'three']) {
      await send(`${round} a`)
      await send(`${round} b`)
      const wanted = ['a', 'b'].flatMap((each, i) => [
        `orders-0@${i}=${round} ${each}`,
        `prices-1@${i}=${round} ${each}`,
      ])
      await until(() => wanted.every((each) => received.includes(each)), `all of round ${round}: ${received}`)
      await broker.reset()
    }
    expect(await broker.records('orders')).toEqual([])
  })

  test('lets running clients of @platformatic/kafka go on', async () => {
    const broker = await started({ storage, topics })
    const client = { clientId: 'platformatic', bootstrapBrokers: [broker.bootstrapServers] }
    const producer = new Producer({ ...client, serializers: stringSerializers, idempotent: true })
    open.push(() => producer.close())
    const consumer = new Consumer({
      ...client,
      groupId: 'readers',
      deserializers: stringDeserializers,
      maxWaitTime: 100,
      heartbeatInterval: 200,
    })
    open.push(() => consumer.close(true))
    const stream = await consumer.consume({ topics: ['orders'], mode: 'committed', fallbackMode: 'earliest' })
    const received: string[] = []
    stream.on('data', ({ offset, value }) => received.push(`${offset}=${value}`))
    stream.on('error', (error) => received.push(String(error)))
    for (const round of ['one', 'two', 'three']) {
      if (round !== 'one') await broker.reset()
      await producer.send({ messages: [{ topic: 'orders', value: round }] })
      await until(() => received.includes(`0=${round}`), `round ${round}: ${received}`)
      await broker.waitForGroup('readers', 'Stable', { members: 1, ...inTime })
    }
  })

  test('tells those who wait, and starts requests that come meanwhile afterwards', async () => {
    const broker = await started({ storage, topics: ['orders'] })
    const [polling, joining, producing] = [await connected(broker), await connected(broker), await connected(broker)]
    await produceBatch(polling, 'orders', 0, textBatch('a'))
    const { memberId } = await joinGroup(joining, 'readers', 10_000)
    const ask = { partition: 0, fetchOffset: 1, partitionMaxBytes: 1000 }
    const poll = polling.request(
      apis.Fetch,
      12,
      { maxWaitMs: 30_000, minBytes: 1, topics: [{ topic: 'orders', partitions: [ask] }], forgottenTopicsData: [] },
      { timeoutMs: 20_000 },
    )
    const resets = [broker.reset(), broker.reset(), broker.reset()]
    const produced = Promise.all([produceBatch(producing, 'orders', 0, textBatch('b')), topicNames(joining)])
    const heartbeat = polling.request(apis.Heartbeat, 3, { groupId: 'readers', generationId: 1, memberId })
    await Promise.all(resets)
    const retriable: number[] = [
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
      ErrorCode.NOT_LEADER_OR_FOLLOWER,
      ErrorCode.OFFSET_OUT_OF_RANGE,
    ]
    expect(retriable).toContain((await poll).responses[0]!.partitions[0]!.errorCode)
    expect(await produced).toEqual([0, expect.arrayContaining(['orders'])])
    expect((await heartbeat).errorCode).toBe(ErrorCode.UNKNOWN_MEMBER_ID)
  })

  test('forgets producers, but never gives an id out twice', async () => {
    const broker = await started({ storage, topics: ['orders'] })
    const client = await connected(broker)
    const producer = await initProducerId(client)
    const batch = (baseSequence: number) => ({ ...textBatch('a'), ...producer, baseSequence })
    for (const sequence of [0, 1, 2]) await produceBatch(client, 'orders', 0, batch(sequence))
    await broker.reset()
    const { topics: described } = await client.request(apis.DescribeProducers, 0, {
      topics: [{ name: 'orders', partitionIndexes: [0] }],
    })
    expect(described[0]!.partitions[0]!.activeProducers).toEqual([])
    expect(await produceBatch(client, 'orders', 0, batch(3))).toBe(0)
    expect(await produceBatch(client, 'orders', 0, batch(3))).toBe(0) // the same again
    expect((await initProducerId(client)).producerId).toBeGreaterThan(producer.producerId)
  })

  test('under load leaves nothing of before it, and never half of it', async () => {
    const broker = await started({ storage, topics })
    const client = await connected(broker)
    let isOver = false
    let round = 0
    const load = (async () => {
      while (!isOver) await produceBatch(client, 'orders', 0, textBatch(`${round}`)).catch(() => undefined)
    })()
    for (round = 1; round <= 10; round++) {
      await broker.reset()
      const records = await broker.records('orders')
      expect(records.map(({ offset }) => offset)).toEqual(records.map((_each, i) => i))
      for (const { valueText } of records) expect(Number(valueText)).toBeGreaterThanOrEqual(round - 1)
      await broker.waitForRecords('orders', 3, inTime)
    }
    isOver = true
    await load
  })

  test('is refused what it does not know', async () => {
    await using broker = await startBroker({ topics: ['orders'] })
    await expect(broker.reset({ topics: 'all' as 'keep' })).rejects.toThrow('topics: all: allowed is declared or keep')
    await broker.reset()
  })

  test('says so when a topic may not be deleted, and serves on', async () => {
    const broker = await started({ storage, topics: ['orders'], config: { 'delete.topic.enable': false } })
    const client = await connected(broker)
    await broker.reset()
    await client.request(apis.Metadata, 9, { topics: [{ name: 'made' }] })
    await expect(broker.reset()).rejects.toThrow('Topics stay: delete.topic.enable is false')
    expect(await topicNames(client)).toEqual(['made', 'orders'])
  })
})

test('a reset is still there after a restart', async () => {
  const folder = await temporaryFolder()
  open.push(() => folder[Symbol.asyncDispose]())
  const options = { storage: folder.path, topics: ['orders'] }
  const first = await started(options)
  await produceBatch(await connected(first), 'orders', 0, textBatch('a'))
  await first.reset()
  await produceBatch(await connected(first), 'orders', 0, textBatch('b'))
  await first.stop()
  const second = await started(options)
  expect((await second.records('orders')).map(({ offset, valueText }) => [offset, valueText])).toEqual([[0, 'b']])
})

test('a reset that comes with a stop or after it leaves the data alone', async () => {
  const folder = await temporaryFolder()
  open.push(() => folder[Symbol.asyncDispose]())
  const options = { storage: folder.path, topics: ['orders'] }
  const first = await startBroker(options)
  await produceBatch(await connected(first), 'orders', 0, textBatch('a'))
  const stopped = first.stop()
  await expect(first.reset()).rejects.toThrow('The broker was not reset: it is stopped')
  await stopped
  const second = await startBroker(options)
  await expect(first.reset()).rejects.toThrow('The broker was not reset: it is stopped')
  expect(await second.records('orders')).toHaveLength(1)
  // One that has begun is carried out before the stop.
  const begun = second.reset()
  await Promise.all([begun, second.stop()])
  const third = await started(options)
  expect(await third.records('orders')).toEqual([])
})

describe('records() and waitForRecords()', () => {
  test('give keys, values, headers and timestamps of every codec, by partition and offset', async () => {
    const broker = await started({ topics: [{ name: 'orders', partitions: 2 }] })
    const client = await connected(broker)
    const codecs: readonly Codec[] = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
    for (const codec of codecs) {
      const record = {
        timestamp: 1234,
        key: Buffer.from('k'),
        value: Buffer.from(codec),
        headers: [
          { key: 'trace', value: Buffer.from('1') },
          { key: 'none', value: null },
        ],
      }
      await produceBatch(client, 'orders', 1, { records: [record, { ...record, key: null, value: null }], codec })
    }
    await produceBatch(client, 'orders', 0, textBatch('first'))
    const [first, ...rest] = await broker.records('orders')
    expect(first).toMatchObject({
      topic: 'orders',
      partition: 0,
      offset: 0,
      valueText: 'first',
      keyText: null,
      headers: [],
    })
    expect(rest.map(({ partition, offset }) => [partition, offset])).toEqual(rest.map((_each, i) => [1, i]))
    expect(rest.filter((_each, i) => i % 2 === 0).map(({ valueText }) => valueText)).toEqual(codecs)
    expect(rest[0]).toMatchObject({ key: Buffer.from('k'), keyText: 'k', timestamp: 1234 })
    expect([rest[0]!.header('trace'), rest[0]!.header('none'), rest[0]!.header('other')]).toEqual([
      '1',
      undefined,
      undefined,
    ])
    expect([rest[1]!.key, rest[1]!.value, rest[1]!.valueText]).toEqual([null, null, null])
  })

  test('give what retention and DeleteRecords left', async () => {
    const broker = await started({ topics: ['orders'] })
    const client = await connected(broker)
    await produceBatch(client, 'orders', 0, textBatch('a', 'b', 'c'))
    const partitions = [{ partitionIndex: 0, offset: 2 }]
    await client.request(apis.DeleteRecords, 1, { topics: [{ name: 'orders', partitions }], timeoutMs: 5000 })
    expect((await broker.records('orders')).map(({ valueText }) => valueText)).toEqual(['c'])
  })

  test('resolve at once, or when enough has come, also to a topic that is made meanwhile', async () => {
    const broker = await started()
    const client = await connected(broker)
    const waiting = broker.waitForRecords('later', 3, inTime)
    await client.request(apis.Metadata, 9, { topics: [{ name: 'later' }] })
    await produceBatch(client, 'later', 0, textBatch('a'))
    await produceBatch(client, 'later', 0, textBatch('b', 'c', 'd'))
    expect((await waiting).map(({ valueText }) => valueText)).toEqual(['a', 'b', 'c', 'd'])
    expect(await broker.waitForRecords('later', 4, { timeoutMs: 0 })).toHaveLength(4)
  })

  test('count one partition when they are asked for it', async () => {
    const broker = await started({ topics: [{ name: 'orders', partitions: 2 }] })
    const client = await connected(broker)
    await produceBatch(client, 'orders', 0, textBatch('a', 'b'))
    const waiting = broker.waitForRecords('orders', 1, { partition: 1, ...inTime })
    await produceBatch(client, 'orders', 1, textBatch('c'))
    expect((await waiting).map(({ valueText }) => valueText)).toEqual(['c'])
  })

  test('wait over a reset, for records of after it', async () => {
    const broker = await started({ topics: ['orders'] })
    const client = await connected(broker)
    await produceBatch(client, 'orders', 0, textBatch('before'))
    // So long that the last look, at the end of the time, is too late for this test.
    const waiting = broker.waitForRecords('orders', 2, { timeoutMs: 1_000_000 })
    await broker.reset()
    await produceBatch(client, 'orders', 0, textBatch('a', 'b'))
    expect((await waiting).map(({ valueText }) => valueText)).toEqual(['a', 'b'])
  })

  test('say what was there when it was not enough', async () => {
    const broker = await started({ topics: [{ name: 'orders', partitions: 2 }] })
    await produceBatch(await connected(broker), 'orders', 1, textBatch('a', 'b'))
    const failed = broker.waitForRecords('orders', 3, { timeoutMs: 20 })
    await expect(failed).rejects.toMatchObject({ name: 'ObservationError', code: 'WAIT_TIMED_OUT' })
    await expect(failed).rejects.toThrow(
      'Topic orders did not have 3 records within 20 ms: partition 0 has 0; partition 1 has 2, offsets 0 to 1',
    )
    await expect(broker.waitForRecords('odrers', 1, { timeoutMs: 1 })).rejects.toThrow(
      'there is no such topic; topics are orders',
    )
    await expect(broker.records('odrers')).rejects.toThrow('There is no topic odrers; topics are orders')
  })

  test('are refused what makes no sense', async () => {
    const broker = await started({ topics: ['orders'] })
    for (const wrong of [
      broker.waitForRecords('orders', 0),
      broker.waitForRecords('orders', 1.5),
      broker.waitForRecords('orders', 1, { timeoutMs: -1 }),
      broker.waitForRecords('orders', 1, { partition: -1 }),
      broker.waitForRecords('orders', 1, { partition: 9, timeoutMs: 100_000 }),
      broker.waitForGroup('g', 'Steady' as never),
      broker.waitForGroup('g', 'Stable', { members: -1 }),
    ]) {
      await expect(wrong).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    }
  })

  test('end when the broker does', async () => {
    const broker = await startBroker({ topics: ['orders'] })
    const waiting = Promise.allSettled([
      broker.waitForRecords('orders', 1, inTime),
      broker.waitForGroup('g', 'Stable', inTime),
    ])
    await broker.stop()
    const reasons = (await waiting).map((each) => each.status === 'rejected' && each.reason)
    expect(reasons).toEqual([expect.any(ObservationError), expect.any(ObservationError)])
    await expect(broker.waitForRecords('orders', 1)).rejects.toMatchObject({ code: 'BROKER_ENDED' })
  })
})

describe('waitForGroup()', () => {
  test('follows a group through its states', async () => {
    const broker = await started({ topics: [{ name: 'orders', partitions: 2 }] })
    expect(await broker.waitForGroup('readers', 'Dead', inTime)).toMatchObject({ state: 'Dead', members: [] })
    const stable = broker.waitForGroup('readers', 'Stable', { members: 1, ...inTime })
    const consumer = kafkaOf(broker).consumer({ groupId: 'readers', maxWaitTimeInMs: 200 })
    await consumer.connect()
    await consumer.subscribe({ topics: ['orders'], fromBeginning: true })
    await consumer.run({ eachMessage: async () => undefined })
    expect(await stable).toMatchObject({
      groupId: 'readers',
      state: 'Stable',
      protocolType: 'consumer',
      protocol: 'RoundRobinAssigner',
      members: [{ clientId: 'kafkajs', groupInstanceId: null, assignment: [{ topic: 'orders', partitions: [0, 1] }] }],
    })
    const left = broker.waitForGroup('readers', 'Empty', inTime)
    await consumer.disconnect()
    expect(await left).toMatchObject({ state: 'Empty', members: [] })
  })

  test('says what the group was instead', async () => {
    const broker = await started({ topics: ['orders'] })
    await expect(broker.waitForGroup('readers', 'Stable', { timeoutMs: 1 })).rejects.toThrow(
      'Group readers was not Stable within 1 ms: there are no groups',
    )
    const { memberId } = await joinGroup(await connected(broker), 'readers', 10_000)
    await expect(broker.waitForGroup('readers', 'Stable', { timeoutMs: 1, members: 2 })).rejects.toThrow(
      `Group readers was not Stable with 2 members within 1 ms: it is Stable with 1 member: ${memberId}`,
    )
    await expect(broker.waitForGroup('raeders', 'Stable', { timeoutMs: 1 })).rejects.toThrow(
      'there is no such group, but readers',
    )
  })
})

describe('a clock that is moved', () => {
  const dayMs = 86_400_000

  test.each(storages)('deletes by retention when it was moved, in storage %s', async (storage) => {
    const config = { 'log.retention.check.interval.ms': 60_000, 'log.initial.task.delay.ms': 60_000 }
    const topics = [{ name: 'orders', configs: { 'retention.ms': 5 * 60_000 } }]
    const broker = await manual({ storage, config, topics })
    const client = await connected(broker)
    const timestamp = broker.clock.now()
    await produceBatch(client, 'orders', 0, { records: [{ timestamp, value: Buffer.from('a') }] })
    await broker.clock.advance(4 * 60_000)
    expect(await broker.records('orders')).toHaveLength(1)
    await broker.clock.advance(2 * 60_000)
    expect(await broker.records('orders')).toHaveLength(0)
  })

  test('expels a member at the end of its session, to the millisecond', async () => {
    const broker = await manual({ topics: ['orders'] })
    await joinGroup(await connected(broker), 'readers', 10_000)
    await broker.clock.advance(9_999)
    expect((await broker.waitForGroup('readers', 'Stable', { timeoutMs: 0 })).members).toHaveLength(1)
    await broker.clock.advance(1)
    await broker.waitForGroup('readers', 'Empty', { timeoutMs: 0, members: 0 })
  })

  test('leaves everything as it is without being moved', async () => {
    const config = { 'group.min.session.timeout.ms': 1 }
    const [still, running] = [await manual({ config }), await started({ config })]
    for (const broker of [still, running]) await joinGroup(await connected(broker), 'readers', 20)
    await running.waitForGroup('readers', 'Empty', inTime)
    await still.waitForGroup('readers', 'Stable', { timeoutMs: 0 })
  })

  test('expires offsets, a week in a moment', async () => {
    const broker = await manual({ topics: ['orders'], config: { 'offsets.retention.minutes': 7 * 24 * 60 } })
    const client = await connected(broker)
    await commitOffset(client, 'readers', 'orders', 3)
    await broker.clock.advance(6 * dayMs)
    expect(await committedOffset(client, 'readers', 'orders')).toBe(3)
    await broker.clock.advance(2 * dayMs)
    expect(await committedOffset(client, 'readers', 'orders')).toBe(-1)
  })

  test('is what LogAppendTime stamps, and begins where it is told to', async () => {
    const startAt = new Date('2001-02-03T04:05:06Z')
    const topics = [{ name: 'stamped', configs: { 'message.timestamp.type': 'LogAppendTime' } }, 'given']
    const broker = await manual({ clock: { startAt }, topics })
    const client = await connected(broker)
    await broker.clock.advance(1000)
    await produceBatch(client, 'stamped', 0, textBatch('a'))
    expect(broker.clock.now()).toBe(startAt.getTime() + 1000)
    expect((await broker.records('stamped'))[0]!.timestamp).toBe(broker.clock.now())
    // Clients go by their own clocks, which are decades ahead of this one.
    const now = Date.now()
    await produceBatch(client, 'given', 0, { records: [{ timestamp: now, value: null }] })
    expect((await broker.records('given'))[0]!.timestamp).toBe(now)
  })

  test('answers long polls when it is moved; in real time they end too', async () => {
    const broker = await manual({ topics: ['orders'] })
    const client = await connected(broker)
    const poll = (maxWaitMs: number) =>
      client.request(apis.Fetch, 12, {
        maxWaitMs,
        minBytes: 1,
        topics: [{ topic: 'orders', partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1000 }] }],
        forgottenTopicsData: [],
      })
    await poll(20)
    let isAnswered = false
    const long = poll(600_000).then(() => {
      isAnswered = true
    })
    await until(async () => {
      if (!isAnswered) await broker.clock.advance(600_000)
      return isAnswered
    }, 'the poll is over')
    await long
  })

  test('lets a consumer of kafkajs read, and go, while it stands still', async () => {
    const broker = await manual({ topics: ['orders'] })
    const received = await consumerOf(broker, 'readers', ['orders'])
    await (await producerOf(broker)).send({ topic: 'orders', messages: [{ value: 'a' }] })
    await until(() => received.length === 1, 'the record')
    await broker.clock.advance(1000)
    for (const close of open.splice(1).reverse()) await close()
    await broker.waitForGroup('readers', 'Empty', inTime)
  })

  test('is refused what makes no sense', async () => {
    const broker = await manual()
    await expect(broker.clock.advance(-1)).rejects.toThrow(ConfigError)
    await expect(broker.clock.advance(Number.NaN)).rejects.toThrow(ConfigError)
    await expect(startBroker({ clock: { startAt: new Date('never') } })).rejects.toThrow('startAt')
    await expect(startBroker({ clock: 'fast' as never })).rejects.toThrow('startAt')
  })
})

describe('faults', () => {
  test('of a leader are what a client of kafkajs tries again after', async () => {
    const broker = await started({ topics: ['orders', 'others'] })
    const producer = await producerOf(broker)
    await producer.send({ topic: 'orders', messages: [{ value: 'a' }] })
    const fault = broker.faults.failNext({ api: 'Produce', topic: 'orders', error: 'NOT_LEADER_OR_FOLLOWER', times: 2 })
    await producer.send({ topic: 'orders', messages: [{ value: 'b' }] })
    expect(fault.hits).toBe(2)
    expect((await broker.records('orders')).map(({ valueText }) => valueText)).toEqual(['a', 'b'])
  })

  test('that lose an answer make a plain producer write twice, and an idempotent one not', async () => {
    const broker = await started({ topics: ['plain', 'idempotent'] })
    for (const topic of ['plain', 'idempotent']) {
      const producer = await producerOf(broker, { idempotent: topic === 'idempotent' })
      broker.faults.disconnect({ api: 'Produce', topic, times: 1 }, { when: 'after' })
      await producer.send({ topic, messages: [{ value: 'once' }] })
    }
    expect(await broker.records('plain')).toHaveLength(2)
    expect(await broker.records('idempotent')).toHaveLength(1)
  })

  test('that delay keep the requests of a connection in order, when they are used up or removed too', async () => {
    const broker = await started({ topics: ['orders'] })
    const client = await connected(broker)
    const producer = await initProducerId(client)
    const send = (sequence: number) =>
      client.request(apis.Produce, 9, {
        acks: -1,
        timeoutMs: 5000,
        topicData: [
          {
            name: 'orders',
            partitionData: [
              { index: 0, records: buildBatch({ ...textBatch(`${sequence}`), ...producer, baseSequence: sequence }) },
            ],
          },
        ],
      })
    const fault = broker.faults.delay({ api: 'Produce', times: 2 }, 600_000)
    const sent = [0, 1, 2, 3].map(send)
    await until(() => fault.hits === 2, 'both are delayed')
    fault.remove()
    const codes = (await Promise.all(sent)).map(({ responses }) => responses[0]!.partitionResponses[0]!.errorCode)
    expect(codes).toEqual([0, 0, 0, 0])
    expect((await broker.records('orders')).map(({ valueText }) => valueText)).toEqual(['0', '1', '2', '3'])
  })

  test('of one broker are none of another', async () => {
    const [one, two] = [await started(), await started()]
    one.faults.failNext({ api: 'ListGroups', error: 'COORDINATOR_NOT_AVAILABLE' })
    await one.reset()
    one.faults.failNext({ api: 'ListGroups', error: 'COORDINATOR_NOT_AVAILABLE' })
    const errorOf = async (broker: Broker) =>
      (await (await connected(broker)).request(apis.ListGroups, 4, { statesFilter: [] })).errorCode
    expect([await errorOf(two), await errorOf(one), await errorOf(one)]).toEqual([
      0,
      ErrorCode.COORDINATOR_NOT_AVAILABLE,
      0,
    ])
  })

  test('that delay do not hold up the end of the broker', async () => {
    const endMs = async () => {
      const broker = await startBroker()
      const fault = broker.faults.delay({ api: 'ListGroups' }, 600_000)
      const client = await connected(broker)
      const asked = client.request(apis.ListGroups, 4, { statesFilter: [] }).catch(() => undefined)
      await until(() => fault.hits === 1, 'it is asked')
      return await msOf(() => Promise.all([broker.stop(), asked]))
    }
    expect(await shortestMs(4000, endMs)).toBeLessThan(4000) // who is not answered has 5 s
  })
})

describe('ended', () => {
  test('resolves with the stop', async () => {
    const broker = await startBroker()
    let isOver = false
    const ended = broker.ended.then(() => {
      isOver = true
    })
    await broker.reset()
    expect(isOver).toBe(false)
    await broker.stop()
    await ended
    await expect(broker.reset()).rejects.toMatchObject({ name: 'ResetError', code: 'RESET_FAILED' })
    await expect(broker.records('orders')).rejects.toMatchObject({ code: 'BROKER_ENDED' })
  })

  test('rejects when the broker can not go on, which then closes its connections', async () => {
    const broker = await startBroker({ storage: 'temporary' })
    const client = await connected(broker)
    const waiting = broker.waitForRecords('orders', 1, inTime)
    await rm(join(broker.dataDirectory!, '__cluster_metadata-0'), { recursive: true })
    await client.request(apis.Metadata, 9, { topics: [{ name: 'orders' }] }).catch(() => undefined) // answered or not
    await expect(broker.ended).rejects.toThrow('Cannot write the Raft log')
    await expect(waiting).rejects.toThrow('The broker has ended: Cannot write the Raft log')
    await until(() => !client.isOpen, 'the connection is closed')
    await broker.stop().catch(() => undefined)
    expect(existsSync(broker.dataDirectory!)).toBe(false)
  })

  test('does not wait, when the broker can not go on, for requests that it will never answer', async () => {
    const endMs = async () => {
      const broker = await startBroker({ storage: 'temporary' })
      const [client, other] = [await connected(broker), await connected(broker)]
      await joinGroup(client, 'g', 30_000)
      // A second member waits for the first to join again, which it never does.
      const joining = joinGroup(other, 'g', 30_000).catch((error: Error) => error)
      const isRebalancing = async () => {
        const { groups } = await client.request(apis.DescribeGroups, 5, { groups: ['g'] })
        return groups[0]!.groupState === 'PreparingRebalance'
      }
      await until(isRebalancing, 'the second member waits')
      await rm(join(broker.dataDirectory!, '__cluster_metadata-0'), { recursive: true })
      await client.request(apis.Metadata, 9, { topics: [{ name: 'orders' }] }).catch(() => undefined) // answered or not
      await expect(broker.ended).rejects.toThrow('Cannot write the Raft log')
      return await msOf(async () => {
        expect(await joining).toBeInstanceOf(Error)
        await broker.stop().catch(() => undefined)
      })
    }
    expect(await shortestMs(3000, endMs)).toBeLessThan(3000)
  })
})
