import kafkajs, { type IHeaders } from 'kafkajs'
import { until } from '../../support/condition.ts'
import type { Transcript } from './transcript.ts'

const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel, Partitioners } = kafkajs

/** What a kafkajs client does; `topic` is the script's own. */
export type KafkajsScript = (run: KafkajsRun) => Promise<void>

interface ConfigEntry {
  readonly name: string
  readonly value: string
}

export class KafkajsRun implements AsyncDisposable {
  readonly kafka: InstanceType<typeof Kafka>
  readonly admin: ReturnType<InstanceType<typeof Kafka>['admin']>
  readonly topic: string
  readonly transcript: Transcript

  private constructor(port: number, topic: string, transcript: Transcript) {
    this.kafka = new Kafka({ brokers: [`127.0.0.1:${port}`], logLevel: logLevel.NOTHING, retry: { retries: 2 } })
    this.admin = this.kafka.admin()
    this.topic = topic
    this.transcript = transcript
  }

  static async start(port: number, topic: string, transcript: Transcript): Promise<KafkajsRun> {
    const run = new KafkajsRun(port, topic, transcript)
    await run.admin.connect()
    return run
  }

  attempt(what: string, call: () => unknown): Promise<void> {
    return this.transcript.attempt(what, call)
  }

  /** Makes a topic, and waits until it is served: a broker of Kafka's may not know the topic yet that kafkajs would look for. */
  async create(numPartitions = 1, configEntries: ConfigEntry[] = [], topic = this.topic): Promise<void> {
    await this.admin.createTopics({ topics: [{ topic, numPartitions, configEntries }], waitForLeaders: false })
    const isServed = async () => (await this.admin.fetchTopicOffsets(topic).catch(() => [])).length === numPartitions
    await until(isServed, `${topic} is served`)
  }

  async fill(count: number): Promise<void> {
    await this.produce(
      Array.from({ length: count }, (_, i) => ({
        key: `k${i}`,
        value: `v${i}`,
        timestamp: `${1_700_000_000_000 + i}`,
      })),
    )
  }

  async produce(
    messages: readonly { key?: string | null; value: string | Buffer | null; timestamp?: string; headers?: IHeaders }[],
    options: { acks?: number; compression?: number; idempotent?: boolean; topic?: string } = {},
  ): Promise<unknown> {
    const { idempotent = false, topic = this.topic, ...rest } = options
    const producer = this.kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, idempotent })
    await producer.connect()
    try {
      return await producer.send({ topic, messages: messages.map((each) => ({ partition: 0, ...each })), ...rest })
    } finally {
      await producer.disconnect()
    }
  }

  /** Says the first `count` records, in the order of their offsets. */
  async read(count: number): Promise<void> {
    const consumer = this.kafka.consumer({ groupId: `${this.topic}-reader`, maxWaitTimeInMs: 100 })
    await consumer.connect()
    try {
      const received: unknown[] = []
      await consumer.subscribe({ topic: this.topic, fromBeginning: true })
      await consumer.run({
        eachMessage: async ({ partition, message: { offset, timestamp, key, value, headers } }) =>
          void received.push([partition, offset, timestamp, key, value, headers]),
      })
      await until(() => received.length >= count, `${count} records of ${this.topic}`)
      for (const each of received) this.transcript.say('record', each)
    } finally {
      await consumer.disconnect()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.admin.disconnect()
  }
}

export const kafkajsScripts: Readonly<Record<string, KafkajsScript>> = {
  'administers topics': async (run) => {
    const { admin, topic } = run
    await run.attempt('create', () => run.create(2))
    await run.attempt('create again', () => admin.createTopics({ topics: [{ topic }] }))
    await run.attempt('create what is wrong', () => admin.createTopics({ topics: [{ topic: 'a b' }] }))
    await run.attempt('three replicas', () =>
      admin.createTopics({ topics: [{ topic: `${topic}-n`, replicationFactor: 3 }] }),
    )
    await run.attempt('describe', () => admin.fetchTopicMetadata({ topics: [topic] }))
    await run.attempt('list', async () => (await admin.listTopics()).filter((each) => each.startsWith(topic)))
    await run.attempt('more partitions', () => admin.createPartitions({ topicPartitions: [{ topic, count: 4 }] }))
    await run.attempt('fewer partitions', () => admin.createPartitions({ topicPartitions: [{ topic, count: 1 }] }))
    await run.attempt('cluster', async () => {
      const { brokers, controller } = await admin.describeCluster()
      return [brokers.map(({ nodeId }) => nodeId), controller]
    })
    await run.attempt('delete', () => admin.deleteTopics({ topics: [topic] }))
    await run.attempt('delete again', () => admin.deleteTopics({ topics: [topic], timeout: 3000 }))
  },

  'reads and changes settings': async (run) => {
    const { admin, topic } = run
    await run.create(1, [{ name: 'retention.ms', value: '77777' }])
    const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
    const told = async (configNames?: string[]) => {
      const { resources } = await admin.describeConfigs({
        resources: [configNames === undefined ? resource : { ...resource, configNames }],
        includeSynonyms: true,
      })
      return resources.map(({ configEntries }) =>
        configEntries
          .filter(({ configName }) => configName.startsWith('retention') || configName.startsWith('segment'))
          .sort((left, right) => (left.configName < right.configName ? -1 : 1)),
      )
    }
    await run.attempt('describe', () => told())
    await run.attempt('describe one', () => told(['retention.ms']))
    const alter = (name: string, value: string) =>
      admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries: [{ name, value }] }] })
    await run.attempt('alter', () => alter('segment.ms', '99999'))
    await run.attempt('alter what is unknown', () => alter('no.such.key', '1'))
    await run.attempt('alter what is wrong', () => alter('retention.ms', 'soon'))
    await run.create(1, [], `${topic}-settled`)
    await run.attempt('describe then', () => told())
  },

  'finds and deletes offsets': async (run) => {
    const { admin, topic } = run
    await run.create()
    await run.fill(10)
    await run.attempt('offsets', () => admin.fetchTopicOffsets(topic))
    for (const time of [0, 1_700_000_000_004, 9_000_000_000_000]) {
      await run.attempt(`offsets at ${time}`, () => admin.fetchTopicOffsetsByTimestamp(topic, time))
    }
    const remove = (offset: string) => admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset }] })
    for (const offset of ['4', '2', '99', '-1']) await run.attempt(`delete below ${offset}`, () => remove(offset))
    await run.attempt('offsets then', () => admin.fetchTopicOffsets(topic))
    await run.attempt('offsets of what is missing', () => admin.fetchTopicOffsets(`${topic}-missing`))
  },

  'writes and reads records': async (run) => {
    await run.create()
    const messages = [
      { key: 'k', value: 'v', timestamp: '1700000000000', headers: { a: '1', b: ['2', '3'] } },
      { key: null, value: 'no key', timestamp: '1700000000001' },
      { key: 'no value', value: null, timestamp: '1700000000002' },
      { key: '', value: '', timestamp: '1700000000003' },
    ]
    await run.attempt('send', () => run.produce(messages))
    await run.attempt('send packed', () => run.produce(messages, { compression: CompressionTypes.GZIP }))
    await run.attempt('send with acks 1', () => run.produce(messages, { acks: 1 }))
    await run.attempt('send with acks 0', () => run.produce(messages, { acks: 0 }))
    await run.attempt('send as an idempotent producer', () => run.produce(messages, { idempotent: true }))
    await run.read(20)
  },

  'is told what is refused': async (run) => {
    await run.create(1, [
      { name: 'cleanup.policy', value: 'compact' },
      { name: 'max.message.bytes', value: '1000' },
    ])
    await run.attempt('no key', () => run.produce([{ value: 'v' }]))
    await run.attempt('too large', () => run.produce([{ key: 'k', value: Buffer.alloc(2000) }]))
    await run.attempt('good', () => run.produce([{ key: 'k', value: 'v' }]))
    await run.attempt('acks that are none', () => run.produce([{ key: 'k', value: 'v' }], { acks: 5 }))
    await run.attempt('a name that is none', () => run.produce([{ value: 'v' }], { topic: 'a b' }))
  },

  'administers groups': async (run) => {
    const { admin, topic, kafka } = run
    const groupId = `${topic}-group`
    await run.create(2)
    await run.fill(5)
    const offsets = (resolveOffsets = false) => admin.fetchOffsets({ groupId, topics: [topic], resolveOffsets })
    await run.attempt('offsets of no group', () => offsets())
    await run.attempt('set', () => admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '3' }] }))
    await run.attempt('offsets', () => offsets())
    await run.attempt('offsets resolved', () => offsets(true))
    await run.attempt('reset', () => admin.resetOffsets({ groupId, topic, earliest: true }))
    await run.attempt('offsets then', () => offsets())
    const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 100 })
    await consumer.connect()
    let read = 0
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({ eachMessage: async () => void read++ })
    await until(() => read === 5, 'all records are read')
    await run.attempt('describe', async () => {
      const { groups } = await admin.describeGroups([groupId])
      return groups.map(({ protocol, protocolType, state, members }) => [
        [protocol, protocolType, state],
        members.map(({ clientId, clientHost, memberAssignment }) => [clientId, clientHost, memberAssignment]),
      ])
    })
    await run.attempt('list', async () => (await admin.listGroups()).groups.filter((each) => each.groupId === groupId))
    await run.attempt('set while it is used', () =>
      admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '1' }] }),
    )
    await run.attempt('delete while it is used', () => admin.deleteGroups([groupId]))
    await consumer.disconnect()
    await run.attempt('offsets in the end', () => offsets())
    await run.attempt('delete', () => admin.deleteGroups([groupId]))
    await run.attempt('delete again', () => admin.deleteGroups([groupId]))
    await run.attempt('describe what is gone', async () => (await admin.describeGroups([groupId])).groups)
  },
}
