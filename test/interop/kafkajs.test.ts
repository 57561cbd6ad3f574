import kafkajs, { type Admin, type Consumer, type EachMessagePayload, type IHeaders, type ITopicConfig } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compress, decompress } from '../../src/protocol/compression.ts'
import { until } from '../support/condition.ts'
import { connect, readPartition } from '../support/kafka-connection.ts'
import { type LoggedBroker, startLoggedBroker } from '../support/logged-broker.ts'
import { msOf, shortestMs } from '../support/timing.ts'

const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel, Partitioners } = kafkajs

/** kafkajs brings gzip and takes the others from outside. */
for (const [type, codec] of [
  [CompressionTypes.Snappy, 'snappy'],
  [CompressionTypes.LZ4, 'lz4'],
  [CompressionTypes.ZSTD, 'zstd'],
] as const) {
  CompressionCodecs[type] = () => ({
    compress: async ({ buffer }: { buffer: Buffer }) => compress(codec, buffer),
    decompress: async (buffer: Buffer) => decompress(codec, buffer, 64 * 1024 * 1024),
  })
}

describe('kafkajs', () => {
  let node: LoggedBroker
  let kafka: InstanceType<typeof Kafka>
  let admin: Admin
  beforeAll(async () => {
    node = await startLoggedBroker()
    kafka = new Kafka({ brokers: [node.bootstrapServers], logLevel: logLevel.NOTHING })
    admin = kafka.admin()
    await admin.connect()
  })
  afterAll(async () => {
    await admin.disconnect()
    await node[Symbol.asyncDispose]()
    expect(node.complaints()).toEqual([])
  })

  const create = (topic: string, options: Partial<ITopicConfig> = {}) =>
    admin.createTopics({ topics: [{ topic, ...options }] })

  const withProducer = async <T>(
    use: (producer: ReturnType<typeof kafka.producer>) => Promise<T>,
    options: Parameters<typeof kafka.producer>[0] = {},
  ): Promise<T> => {
    const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, ...options })
    await producer.connect()
    try {
      return await use(producer)
    } finally {
      await producer.disconnect()
    }
  }

  /** The first `count` records of a topic, read by a group of their own. */
  const read = async (topic: string, count: number): Promise<EachMessagePayload[]> => {
    const consumer = kafka.consumer({ groupId: `reader-of-${topic}`, maxWaitTimeInMs: 100 })
    const received: EachMessagePayload[] = []
    await consumer.connect()
    try {
      await consumer.subscribe({ topic, fromBeginning: true })
      await consumer.run({ eachMessage: async (payload) => void received.push(payload) })
      await until(() => received.length >= count, `${count} records of ${topic}`)
    } finally {
      await consumer.disconnect()
    }
    return received
  }

  test('creates, describes and deletes topics, and lists offsets and settings', async () => {
    const configEntries = [{ name: 'retention.ms', value: '1000000' }]
    expect(await create('made', { numPartitions: 3, configEntries })).toBe(true)
    expect(await create('made')).toBe(false)
    const { topics } = await admin.fetchTopicMetadata({ topics: ['made'] })
    expect(topics[0]?.partitions.map(({ leader, replicas, isr }) => [leader, replicas, isr])).toEqual(
      Array.from({ length: 3 }, () => [1, [1], [1]]),
    )
    await withProducer((producer) =>
      producer.send({
        topic: 'made',
        messages: [1, 2].map((time) => ({ value: 'v', partition: 1, timestamp: `${time}` })),
      }),
    )
    const offsets = await admin.fetchTopicOffsets('made')
    expect(offsets.map(({ partition, low, high }) => [partition, low, high]).sort()).toEqual([
      [0, '0', '0'],
      [1, '0', '2'],
      [2, '0', '0'],
    ])
    expect((await admin.fetchTopicOffsetsByTimestamp('made', 2)).find(({ partition }) => partition === 1)?.offset).toBe(
      '1',
    )
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: 'made', configNames: ['retention.ms', 'cleanup.policy'] }],
    })
    expect(resources[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue]).sort()).toEqual([
      ['cleanup.policy', 'delete'],
      ['retention.ms', '1000000'],
    ])
    const { brokers, controller } = await admin.describeCluster()
    expect([brokers.length, controller]).toEqual([1, 1])
    await admin.deleteTopics({ topics: ['made'] })
    expect(await admin.listTopics()).not.toContain('made')
  })

  test('adds partitions, replaces settings and deletes records', async () => {
    await create('altered', { configEntries: [{ name: 'max.message.bytes', value: '12345' }] })
    await admin.createPartitions({ topicPartitions: [{ topic: 'altered', count: 3 }] })
    await expect(admin.createPartitions({ topicPartitions: [{ topic: 'altered', count: 2 }] })).rejects.toThrow(
      'Number of partitions is invalid',
    )
    const { topics } = await admin.fetchTopicMetadata({ topics: ['altered'] })
    expect(topics[0]?.partitions).toHaveLength(3)

    const type = ConfigResourceTypes.TOPIC
    const alter = (name: string, value: string) =>
      admin.alterConfigs({
        validateOnly: false,
        resources: [{ type, name: 'altered', configEntries: [{ name, value }] }],
      })
    await alter('retention.ms', '1000000')
    const configNames = ['retention.ms', 'max.message.bytes']
    const described = await admin.describeConfigs({
      includeSynonyms: true,
      resources: [{ type, name: 'altered', configNames }],
    })
    expect(
      Object.fromEntries(described.resources[0]!.configEntries.map((each) => [each.configName, each.configValue])),
    ).toEqual({ 'retention.ms': '1000000', 'max.message.bytes': '1048588' })
    await expect(alter('no.such.key', '1')).rejects.toThrow('Configuration is invalid')

    const messages = Array.from({ length: 5 }, (_, i) => ({ value: `${i}`, partition: 0 }))
    await withProducer((producer) => producer.send({ topic: 'altered', messages }))
    await admin.deleteTopicRecords({ topic: 'altered', partitions: [{ partition: 0, offset: '3' }] })
    const low = async () => (await admin.fetchTopicOffsets('altered')).find(({ partition }) => partition === 0)?.low
    expect(await low()).toBe('3')
    await admin.deleteTopicRecords({ topic: 'altered', partitions: [{ partition: 0, offset: '-1' }] })
    expect(await low()).toBe('5')
  })

  test.each([
    ['none', CompressionTypes.None],
    ['gzip', CompressionTypes.GZIP],
    ['snappy', CompressionTypes.Snappy],
    ['lz4', CompressionTypes.LZ4],
    ['zstd', CompressionTypes.ZSTD],
  ] as const)('writes and reads batches packed with %s', async (codec, compression) => {
    const topic = `codec-${codec}`
    await create(topic)
    const values = Array.from({ length: 100 }, (_, index) => `record ${index} ${'repeated '.repeat(20)}`)
    await withProducer((producer) =>
      producer.send({ topic, compression, messages: values.map((value) => ({ value })) }),
    )
    const client = await connect(node.bootstrapServers)
    expect((await readPartition(client, topic, 0)).map((batch) => batch.codec)).toEqual([codec])
    client.close()
    expect((await read(topic, 100)).map(({ message }) => `${message.value}`)).toEqual(values)
  })

  test('keeps null apart from empty, and headers', async () => {
    await create('edges')
    const headers: IHeaders = { one: 'a', several: ['b', 'c'], empty: '' }
    const messages = [
      { key: 'key', value: 'value', headers },
      { key: '', value: '' },
      { key: null, value: null },
      { key: 'no value', value: null },
    ]
    await withProducer((producer) => producer.send({ topic: 'edges', messages }))
    const records = await read('edges', messages.length)
    const text = (bytes: Buffer | null) => (bytes === null ? null : `${bytes}`)
    expect(records.map(({ message: { key, value } }) => [text(key), text(value)])).toEqual(
      messages.map(({ key, value }) => [key, value]),
    )
    expect(records[0]?.message.headers).toEqual({
      one: Buffer.from('a'),
      several: [Buffer.from('b'), Buffer.from('c')],
      empty: Buffer.from(''),
    })
  })

  test('writes a batch near max.message.bytes, and is told at once when it is larger', async () => {
    await create('near-limit')
    const send = (bytes: number) =>
      withProducer((producer) =>
        producer.send({ topic: 'near-limit', messages: [{ value: Buffer.alloc(bytes, 'x') }] }),
      )
    await send(1_048_588 - 61 - 11)
    await expect(send(1_048_588 - 61 - 10)).rejects.toThrow(/larger than the max message size/)
    expect(await read('near-limit', 1)).toHaveLength(1)
  })

  test('writes as an idempotent producer', async () => {
    await create('idempotent')
    await withProducer(
      async (producer) => {
        for (let index = 0; index < 20; index++) {
          await producer.send({ topic: 'idempotent', messages: [{ value: `${index}` }, { value: `${index} too` }] })
        }
      },
      { idempotent: true, maxInFlightRequests: 1 },
    )
    const client = await connect(node.bootstrapServers)
    const batches = await readPartition(client, 'idempotent', 0)
    client.close()
    expect(batches.map(({ baseSequence }) => baseSequence)).toEqual(Array.from({ length: 20 }, (_, index) => index * 2))
    expect(batches.every(({ producerId }) => producerId >= 0)).toBe(true)
  })

  test('members of a group share partitions when one joins and when one leaves, and later ones go on after them', async () => {
    await create('shared', { numPartitions: 2 })
    const received: { member: string; value: string }[] = []
    const assigned = new Map<string, number>()
    const start = async (member: string): Promise<Consumer> => {
      const consumer = kafka.consumer({ groupId: 'sharing', heartbeatInterval: 100, maxWaitTimeInMs: 100 })
      consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
        assigned.set(member, payload.memberAssignment.shared?.length ?? 0)
      })
      await consumer.connect()
      await consumer.subscribe({ topic: 'shared', fromBeginning: true })
      await consumer.run({
        eachMessage: async ({ message }) => void received.push({ member, value: `${message.value}` }),
      })
      return consumer
    }
    const send = (name: string) =>
      withProducer((producer) =>
        producer.send({
          topic: 'shared',
          messages: Array.from({ length: 20 }, (_, index) => ({ value: `${name} ${index}`, partition: index % 2 })),
        }),
      )
    const count = (member: string, name: string) =>
      received.filter((each) => each.member === member && each.value.startsWith(name)).length

    await send('first')
    const one = await start('one')
    await until(() => count('one', 'first') === 20, 'the first member reads both partitions')
    const other = await start('other')
    await until(() => assigned.get('one') === 1 && assigned.get('other') === 1, 'each has a partition')
    await send('second')
    await until(() => count('one', 'second') === 10 && count('other', 'second') === 10, 'each reads its partition')
    await one.disconnect()
    await until(() => assigned.get('other') === 2, 'the member that stays has both partitions')
    await send('third')
    await until(() => count('other', 'third') === 20, 'the member that stays reads both partitions')
    await other.disconnect()
    expect(received).toHaveLength(60)
    const committed = await admin.fetchOffsets({ groupId: 'sharing', topics: ['shared'] })
    expect(committed[0]?.partitions.map(({ offset }) => offset)).toEqual(['30', '30'])
    await send('fourth')
    const later = await start('later')
    await until(() => count('later', 'fourth') === 20, 'a later member reads what is new')
    await later.disconnect()
    expect(received).toHaveLength(80)
    const { groups } = await admin.listGroups()
    expect(groups.find(({ groupId }) => groupId === 'sharing')?.protocolType).toBe('consumer')
  })

  test('is told at once that there are no transactions', async () => {
    const options = { transactionalId: 'transactional', idempotent: true, maxInFlightRequests: 1 }
    const refuse = () =>
      expect(withProducer((producer) => producer.transaction(), options)).rejects.toThrow(
        'Failed to find group coordinator', // its words for every refusal
      )
    expect(await shortestMs(5000, () => msOf(refuse))).toBeLessThan(5000)
  })

  test('describes and deletes groups, and finds offsets by time', async () => {
    await create('by-time')
    await withProducer((producer) =>
      producer.send({
        topic: 'by-time',
        messages: [1000, 3000, 2000].map((time) => ({ value: 'v', timestamp: `${time}` })),
      }),
    )
    const at = async (time: number) =>
      (await admin.fetchTopicOffsetsByTimestamp('by-time', time)).map(({ offset }) => offset)
    expect(await at(1500)).toEqual(['1'])
    expect(await at(4000)).toEqual(['3'])
    await read('by-time', 3)
    const groupId = 'reader-of-by-time'
    expect((await admin.describeGroups([groupId])).groups).toMatchObject([{ groupId, state: 'Empty', errorCode: 0 }])
    expect(await admin.deleteGroups([groupId])).toMatchObject([{ groupId, errorCode: 0 }])
    await expect(admin.deleteGroups([groupId])).rejects.toThrow()
  })
})
