import {
  Admin,
  ConfigResourceTypes,
  Consumer,
  IncrementalAlterConfigOperationTypes,
  type IncrementalAlterConfigsOptions,
  type MessagesStream,
  Producer,
  type ProducerOptions,
  stringDeserializers,
  stringSerializers,
} from '@platformatic/kafka'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../support/condition.ts'
import { connect, readPartition } from '../support/kafka-connection.ts'
import { type LoggedBroker, startLoggedBroker } from '../support/logged-broker.ts'
import { msOf, shortestMs } from '../support/timing.ts'

const codecs = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const

type Options = Partial<ProducerOptions<string, string, string, string>>
type Message = Parameters<Producer<string, string, string, string>['send']>[0]['messages'][number]

describe('@platformatic/kafka', () => {
  let node: LoggedBroker
  let admin: Admin
  const client = () => ({ clientId: 'platformatic', bootstrapBrokers: [node.bootstrapServers] })
  beforeAll(async () => {
    node = await startLoggedBroker()
    admin = new Admin(client())
  })
  afterAll(async () => {
    await admin.close()
    await node[Symbol.asyncDispose]()
    expect(node.complaints()).toEqual([])
  })

  const send = async (messages: Message[], options: Options = {}) => {
    const producer = new Producer({ ...client(), serializers: stringSerializers, ...options })
    try {
      return await producer.send({ messages })
    } finally {
      await producer.close()
    }
  }

  const consumerOf = (groupId: string, options = {}) =>
    new Consumer({
      ...client(),
      groupId,
      deserializers: stringDeserializers,
      maxWaitTime: 100,
      sessionTimeout: 10_000,
      heartbeatInterval: 100,
      ...options,
    })

  /** The first `count` records of a topic, read by a group of their own. */
  const read = async (topic: string, count: number) => {
    const consumer = consumerOf(`reader-of-${topic}`)
    const stream = await consumer.consume({
      topics: [topic],
      mode: 'committed',
      fallbackMode: 'earliest',
      autocommit: false,
    })
    const received = []
    for await (const message of stream) {
      received.push(message)
      if (received.length === count) break
    }
    await consumer.close(true)
    return received
  }

  test('creates, describes and deletes topics, and lists offsets and settings', async () => {
    const [made] = await admin.createTopics({
      topics: ['made'],
      partitions: 3,
      replicas: 1,
      configs: [{ name: 'retention.ms', value: '1000000' }],
    })
    expect(made).toMatchObject({ name: 'made', partitions: 3, replicas: 1 })
    expect(made?.configuration['retention.ms']).toBe('1000000')
    await expect(admin.createTopics({ topics: ['made'] })).rejects.toThrow()
    await send([1n, 2n].map((timestamp) => ({ topic: 'made', value: 'v', partition: 1, timestamp })))
    const offsetAt = async (timestamp: bigint) => {
      const [topic] = await admin.listOffsets({
        topics: [{ name: 'made', partitions: [{ partitionIndex: 1, timestamp }] }],
      })
      return topic?.partitions[0]?.offset
    }
    expect([await offsetAt(-2n), await offsetAt(-1n), await offsetAt(2n)]).toEqual([0n, 2n, 1n])
    const [described] = await admin.describeConfigs({
      resources: [
        { resourceType: ConfigResourceTypes.TOPIC, resourceName: 'made', configurationKeys: ['retention.ms'] },
      ],
      includeSynonyms: true,
    })
    expect(described?.configs.map(({ name, value }) => [name, value])).toEqual([['retention.ms', '1000000']])
    const metadata = await admin.metadata({ topics: ['made'] })
    expect(metadata.topics.get('made')?.id).toBe(made?.id)
    expect(await admin.listTopics()).toContain('made')
    await admin.deleteTopics({ topics: ['made'] })
    expect(await admin.listTopics()).not.toContain('made')
  })

  test('adds partitions, alters settings and deletes records', async () => {
    await admin.createTopics({ topics: ['altered'], partitions: 1, replicas: 1 })
    await admin.createPartitions({ topics: [{ name: 'altered', count: 2, assignments: null }] })
    const metadata = await admin.metadata({ topics: ['altered'] })
    expect(metadata.topics.get('altered')?.partitionsCount).toBe(2)

    const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: 'altered' }
    const settings = async () => {
      const [described] = await admin.describeConfigs({ resources: [resource], includeDocumentation: true })
      return Object.fromEntries(described!.configs.map(({ name, value }) => [name, value]))
    }
    const { SET, DELETE, APPEND } = IncrementalAlterConfigOperationTypes
    const alter = (configs: IncrementalAlterConfigsOptions['resources'][number]['configs']) =>
      admin.incrementalAlterConfigs({ resources: [{ ...resource, configs }] })
    await alter([
      { name: 'retention.ms', configOperation: SET, value: '1000' },
      { name: 'cleanup.policy', configOperation: APPEND, value: 'compact' },
    ])
    expect(await settings()).toMatchObject({ 'retention.ms': '1000', 'cleanup.policy': 'delete,compact' })
    await alter([{ name: 'cleanup.policy', configOperation: DELETE }])
    await admin.alterConfigs({ resources: [{ ...resource, configs: [{ name: 'segment.bytes', value: '2000000' }] }] })
    expect(await settings()).toMatchObject({
      'retention.ms': '604800000',
      'cleanup.policy': 'delete',
      'segment.bytes': '2000000',
    })
    await expect(alter([{ name: 'retention.ms', configOperation: APPEND, value: '1' }])).rejects.toThrow()

    await send(Array.from({ length: 5 }, (_, i) => ({ topic: 'altered', partition: 0, value: `${i}` })))
    const deletion = (offset: bigint) => ({ topics: [{ name: 'altered', partitions: [{ partition: 0, offset }] }] })
    expect(await admin.deleteRecords(deletion(3n))).toEqual([
      { name: 'altered', partitions: [{ partition: 0, lowWatermark: 3n }] },
    ])
    await expect(admin.deleteRecords(deletion(9n))).rejects.toThrow()
  })

  test.each(codecs)('writes and reads batches packed with %s', async (compression) => {
    const topic = `codec-${compression}`
    await admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 })
    const values = Array.from({ length: 100 }, (_, index) => `record ${index} ${'repeated '.repeat(20)}`)
    await send(
      values.map((value) => ({ topic, value })),
      { compression },
    )
    const connection = await connect(node.bootstrapServers)
    expect((await readPartition(connection, topic, 0)).map(({ codec }) => codec)).toEqual([compression])
    connection.close()
    expect((await read(topic, 100)).map(({ value }) => value)).toEqual(values)
  })

  test('keeps empty keys and values and headers, and creates the topic for whom asks', async () => {
    const messages = [
      {
        topic: 'edges',
        key: 'key',
        value: 'value',
        headers: new Map([
          ['h', 'a'],
          ['empty', ''],
        ]),
      },
      { topic: 'edges', key: '', value: '' },
      { topic: 'edges', value: 'no key' },
      { topic: 'edges', key: 'no value' },
    ]
    for (const message of messages) await send([message], { autocreateTopics: true })
    const connection = await connect(node.bootstrapServers)
    const stored = (await readPartition(connection, 'edges', 0)).flatMap(({ records }) => records)
    connection.close()
    const text = (bytes: Buffer | null) => (bytes === null ? null : `${bytes}`)
    expect(stored.map(({ key, value }) => [text(key), text(value)])).toEqual([
      ['key', 'value'],
      ['', ''],
      [null, 'no key'],
      ['no value', null],
    ])
    const [first] = await read('edges', 1)
    expect([...(first?.headers ?? [])]).toEqual([
      ['h', 'a'],
      ['empty', ''],
    ])
  })

  test('writes a batch near max.message.bytes, and is told when it is larger', async () => {
    await admin.createTopics({ topics: ['near-limit'], partitions: 1, replicas: 1 })
    const value = (bytes: number) => [{ topic: 'near-limit', value: 'x'.repeat(bytes) }]
    await send(value(1_048_588 - 61 - 11))
    const refused = await send(value(1_048_588 - 61 - 10), { retries: 0 }).catch((error: unknown) => error)
    expect(codesIn(refused)).toContain('MESSAGE_TOO_LARGE')
    expect(await read('near-limit', 1)).toHaveLength(1)
  })

  test('writes as an idempotent producer', async () => {
    await admin.createTopics({ topics: ['idempotent'], partitions: 1, replicas: 1 })
    const producer = new Producer({ ...client(), serializers: stringSerializers, idempotent: true })
    for (let index = 0; index < 20; index++) {
      await producer.send({ messages: ['a', 'b'].map((value) => ({ topic: 'idempotent', value: `${index}${value}` })) })
    }
    await producer.close()
    const connection = await connect(node.bootstrapServers)
    const batches = await readPartition(connection, 'idempotent', 0)
    connection.close()
    expect(batches.map(({ baseSequence }) => baseSequence)).toEqual(Array.from({ length: 20 }, (_, index) => index * 2))
    expect(batches.every(({ producerId }) => producerId >= 0)).toBe(true)
  })

  test('members of a group share partitions when one joins and when one leaves, and later ones go on after them', async () => {
    await admin.createTopics({ topics: ['shared'], partitions: 2, replicas: 1 })
    const received: { member: string; value: string }[] = []
    const start = async (member: string) => {
      const consumer = consumerOf('sharing')
      const stream: MessagesStream<string, string, string, string> = await consumer.consume({
        topics: ['shared'],
        mode: 'committed',
        fallbackMode: 'earliest',
        autocommit: true,
      })
      stream.on('data', ({ value }) => received.push({ member, value }))
      return consumer
    }
    const sendTwenty = (name: string) =>
      send(
        Array.from({ length: 20 }, (_, index) => ({
          topic: 'shared',
          partition: index % 2,
          value: `${name} ${index}`,
        })),
      )
    const count = (member: string, name: string) =>
      new Set(
        received.filter((each) => each.member === member && each.value.startsWith(name)).map((each) => each.value),
      ).size
    const assigned = (consumer: Consumer<string, string, string, string>) =>
      (consumer.assignments ?? []).flatMap(({ partitions }) => partitions).length

    const committed = async () => {
      const [group] = await admin.listConsumerGroupOffsets({ groups: ['sharing'] })
      return group?.topics[0]?.partitions.map(({ committedOffset }) => committedOffset)
    }

    await sendTwenty('first')
    const one = await start('one')
    await until(() => count('one', 'first') === 20, 'the first member reads both partitions')
    // It commits after it has handed records out; members that come and go don't wait for it.
    const allCommitted = (each: number) =>
      until(async () => String(await committed()) === `${each},${each}`, 'everything is committed')
    await allCommitted(10)
    const other = await start('other')
    await until(() => assigned(one) === 1 && assigned(other) === 1, 'each has a partition')
    await sendTwenty('second')
    // A fetch of before the rebalance may still give the first member both partitions.
    await until(() => count('one', 'second') >= 10 && count('other', 'second') === 10, 'each reads its partition')
    await allCommitted(20)
    await one.close(true)
    await until(() => assigned(other) === 2, 'the member that stays has both partitions')
    await sendTwenty('third')
    await until(() => count('other', 'third') === 20, 'the member that stays reads both partitions')
    await allCommitted(30)
    await other.close(true)
    await sendTwenty('fourth')
    const later = await start('later')
    await until(() => count('later', 'fourth') === 20, 'a later member reads what is new')
    await later.close(true)
    expect(new Set(received.map(({ value }) => value)).size).toBe(80)
    expect(count('later', '')).toBe(20) // what the others committed was not read again
    expect((await admin.listGroups()).get('sharing')?.protocolType).toBe('consumer')
  })

  test('is told at once that there are no transactions', async () => {
    const refuse = async () => {
      const producer = new Producer({ ...client(), transactionalId: 'transactional', idempotent: true })
      const refused = await producer.beginTransaction().catch((error: unknown) => error)
      await producer.close()
      expect(codesIn(refused).join(' ')).toMatch(/UNSUPPORTED_VERSION|TRANSACTIONAL_ID_AUTHORIZATION_FAILED/)
    }
    expect(await shortestMs(5000, () => msOf(refuse))).toBeLessThan(5000)
  })
})

/** Kafka's names for what went wrong, anywhere inside an error. */
function codesIn(error: unknown): string[] {
  if (!(error instanceof Error)) return []
  const {
    apiId,
    errors = [],
    cause,
  } = error as Error & { readonly apiId?: string; readonly errors?: readonly unknown[] }
  return [...(apiId === undefined ? [] : [apiId]), ...[...errors, cause].flatMap(codesIn)]
}
