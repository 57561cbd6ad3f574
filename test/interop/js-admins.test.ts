import {
  AclOperations,
  AclPermissionTypes,
  Admin,
  ClientQuotaMatchTypes,
  ConfigResourceTypes,
  Consumer,
  IncrementalAlterConfigOperationTypes,
  type IncrementalAlterConfigsOptions,
  ResourcePatternTypes,
  ResourceTypes,
  stringDeserializers,
} from '@platformatic/kafka'
import kafkajs, { type Admin as KafkajsAdmin } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { KafkaClient } from '../../src/network/index.ts'
import { apis } from '../../src/protocol/index.ts'
import { connect } from '../support/kafka-connection.ts'
import { type LoggedBroker, startLoggedBroker } from '../support/logged-broker.ts'
import { produceBatch } from '../support/producing.ts'

/** What each method of a client does here: it works, with the effect that is looked for, or it is refused. */
type Cases = Readonly<Record<string, () => Promise<unknown> | unknown>>

let node: LoggedBroker
let wire: KafkaClient
beforeAll(async () => {
  node = await startLoggedBroker({ topics: [{ name: 'kept', partitions: 2 }] })
  wire = await connect(node.bootstrapServers)
  for (const timestamp of [1000, 3000, 2000]) {
    await produceBatch(wire, 'kept', 0, { records: [{ timestamp, value: Buffer.from('v') }] })
  }
})
afterAll(async () => {
  wire.close()
  await node[Symbol.asyncDispose]()
  expect(node.complaints()).toEqual([])
})

const topicNames = async () => {
  const { topics } = await wire.request(apis.Metadata, 12, { topics: null })
  return topics.map(({ name }) => name)
}
const partitionsOf = async (topic: string) => {
  const { topics } = await wire.request(apis.Metadata, 12, { topics: [{ name: topic }] })
  return topics[0]?.partitions.length
}
const settingOf = async (topic: string, key: string) => {
  const { results } = await wire.request(apis.DescribeConfigs, 4, {
    resources: [{ resourceType: 2, resourceName: topic, configurationKeys: [key] }],
  })
  return results[0]?.configs[0]?.value
}
const commit = async (groupId: string, offset: number) => {
  const topics = [
    { name: 'kept', partitions: [{ partitionIndex: 0, committedOffset: offset, committedMetadata: 'm' }] },
  ]
  await wire.request(apis.OffsetCommit, 9, { groupId, generationIdOrMemberEpoch: -1, memberId: '', topics })
}
const committed = async (groupId: string) => {
  const { groups } = await wire.request(apis.OffsetFetch, 8, { groups: [{ groupId, topics: null }] })
  return Object.fromEntries(
    (groups[0]?.topics ?? []).flatMap(({ partitions }) =>
      partitions.map((each) => [each.partitionIndex, each.committedOffset]),
    ),
  )
}
const groupNames = async () => (await wire.request(apis.ListGroups, 4, {})).groups.map(({ groupId }) => groupId)
const coveredBy = (cases: Cases) => Object.keys(cases).toSorted()

describe('the admin client of kafkajs', () => {
  const { AclOperationTypes, AclPermissionTypes: Permissions, AclResourceTypes, ConfigResourceTypes: Configs } = kafkajs
  let admin: KafkajsAdmin
  beforeAll(async () => {
    const options = {
      brokers: [node.bootstrapServers],
      logLevel: kafkajs.logLevel.NOTHING,
      retry: { retries: 0 },
      connectionTimeout: 20_000, // 1 s by default, of the event loop that the broker is on too
    }
    admin = new kafkajs.Kafka(options).admin()
    await admin.connect()
  })

  const acl = {
    resourceType: AclResourceTypes.TOPIC,
    resourceName: 'kept',
    resourcePatternType: kafkajs.ResourcePatternTypes.LITERAL,
    principal: 'User:a',
    host: '*',
    operation: AclOperationTypes.READ,
    permissionType: Permissions.ALLOW,
  }
  /** It looks for the API among those that the broker lists. */
  const unsupported = (call: Promise<unknown>) =>
    expect(call).rejects.toThrow(/does not support the requested API version/)

  /** To set offsets it is a member of the group until a sleep of five seconds is over: all three at once. */
  let moves: Promise<unknown> | undefined
  const moveOffsets = (): Promise<unknown> => {
    moves ??= Promise.all([
      admin.setOffsets({ groupId: 'kafkajs-set', topic: 'kept', partitions: [{ partition: 0, offset: '2' }] }),
      admin.resetOffsets({ groupId: 'kafkajs-first', topic: 'kept', earliest: true }),
      admin.resetOffsets({ groupId: 'kafkajs-last', topic: 'kept', earliest: false }),
    ])
    return moves
  }

  const cases: Cases = {
    connect: async () => {
      const other = new kafkajs.Kafka({ brokers: [node.bootstrapServers], logLevel: kafkajs.logLevel.NOTHING }).admin()
      let connected = 0
      other.on(other.events.CONNECT, () => connected++)
      await other.connect()
      expect(connected).toBe(1)
      await other.disconnect()
    },
    listTopics: async () => expect((await admin.listTopics()).filter((name) => name === 'kept')).toEqual(['kept']),
    createTopics: async () => {
      const topics = [
        { topic: 'kafkajs', numPartitions: 2, configEntries: [{ name: 'retention.ms', value: '5000' }] },
        { topic: 'kafkajs.assigned', replicaAssignment: [0, 1, 2].map((partition) => ({ partition, replicas: [1] })) },
      ]
      expect(await admin.createTopics({ topics, validateOnly: true, waitForLeaders: false })).toBe(true)
      expect(await topicNames()).not.toContain('kafkajs')
      expect(await admin.createTopics({ topics })).toBe(true)
      expect(await admin.createTopics({ topics })).toBe(false)
      expect([await partitionsOf('kafkajs'), await partitionsOf('kafkajs.assigned')]).toEqual([2, 3])
      expect(await settingOf('kafkajs', 'retention.ms')).toBe('5000')
    },
    createPartitions: async () => {
      await admin.createPartitions({ topicPartitions: [{ topic: 'kafkajs', count: 4, assignments: [[1], [1]] }] })
      expect(await partitionsOf('kafkajs')).toBe(4)
    },
    fetchTopicMetadata: async () => {
      const { topics } = await admin.fetchTopicMetadata({ topics: ['kept'] })
      expect(topics).toMatchObject([
        {
          name: 'kept',
          partitions: [
            { leader: 1, isr: [1] },
            { leader: 1, replicas: [1] },
          ],
        },
      ])
      await expect(admin.fetchTopicMetadata({ topics: ['none'] })).rejects.toThrow(/does not host this topic/)
    },
    describeCluster: async () => {
      const { brokers, controller, clusterId } = await admin.describeCluster()
      expect(`${brokers[0]?.host}:${brokers[0]?.port}`).toBe(node.bootstrapServers)
      expect([brokers.length, controller, clusterId.length]).toEqual([1, 1, 22])
    },
    setOffsets: async () => {
      await moveOffsets()
      expect(await committed('kafkajs-set')).toEqual({ 0: 2 })
    },
    resetOffsets: async () => {
      await moveOffsets()
      // It commits what stands for the first and the last offset, and its consumers look these up when they start.
      expect(await committed('kafkajs-first')).toEqual({ 0: -2, 1: -2 })
      expect(await committed('kafkajs-last')).toEqual({ 0: -1, 1: -1 })
    },
    fetchOffsets: async () => {
      await commit('kafkajs-offsets', 1)
      const one = await admin.fetchOffsets({ groupId: 'kafkajs-offsets', topics: ['kept'] })
      const [partition] = one[0]!.partitions.filter((each) => each.partition === 0)
      expect(partition).toEqual({ partition: 0, offset: '1', metadata: 'm' })
      expect(await admin.fetchOffsets({ groupId: 'kafkajs-offsets' })).toEqual([
        { topic: 'kept', partitions: [partition] },
      ])
    },
    fetchTopicOffsets: async () => {
      const [first] = (await admin.fetchTopicOffsets('kept')).filter(({ partition }) => partition === 0)
      expect(first).toMatchObject({ offset: '3', high: '3', low: '0' })
    },
    fetchTopicOffsetsByTimestamp: async () => {
      const at = async (time: number) =>
        (await admin.fetchTopicOffsetsByTimestamp('kept', time)).map((each) => each.offset)
      expect([await at(1500), await at(9000)]).toEqual([expect.arrayContaining(['1']), expect.arrayContaining(['3'])])
    },
    describeConfigs: async () => {
      const { resources } = await admin.describeConfigs({
        includeSynonyms: true,
        resources: [
          { type: Configs.TOPIC, name: 'kept', configNames: ['cleanup.policy'] },
          { type: Configs.BROKER, name: '1', configNames: ['group.max.size'] },
        ],
      })
      expect(resources.flatMap(({ configEntries }) => configEntries)).toMatchObject([
        { configName: 'cleanup.policy', configValue: 'delete', isDefault: true },
        { configName: 'group.max.size', configValue: '2147483647', readOnly: true },
      ])
    },
    alterConfigs: async () => {
      const alter = (name: string, value: string, validateOnly: boolean) =>
        admin.alterConfigs({
          validateOnly,
          resources: [{ type: Configs.TOPIC, name: 'kafkajs', configEntries: [{ name, value }] }],
        })
      await alter('segment.bytes', '2000000', true)
      expect(await settingOf('kafkajs', 'retention.ms')).toBe('5000')
      await alter('segment.bytes', '2000000', false)
      expect(await settingOf('kafkajs', 'segment.bytes')).toBe('2000000')
      expect(await settingOf('kafkajs', 'retention.ms')).toBe('604800000') // what is not named is reset
      await expect(alter('segment.bytes', 'x', false)).rejects.toThrow('Configuration is invalid')
    },
    listGroups: async () => {
      await commit('kafkajs-listed', 1)
      expect((await admin.listGroups()).groups).toContainEqual({ groupId: 'kafkajs-listed', protocolType: '' })
    },
    describeGroups: async () => {
      await commit('kafkajs-described', 1)
      const { groups } = await admin.describeGroups(['kafkajs-described', 'none'])
      expect(groups).toMatchObject([
        { groupId: 'kafkajs-described', state: 'Empty', members: [], errorCode: 0 },
        { groupId: 'none', state: 'Dead', members: [], errorCode: 0 },
      ])
    },
    deleteGroups: async () => {
      await commit('kafkajs-deleted', 1)
      expect(await admin.deleteGroups(['kafkajs-deleted'])).toEqual([{ groupId: 'kafkajs-deleted', errorCode: 0 }])
      expect(await groupNames()).not.toContain('kafkajs-deleted')
      await expect(admin.deleteGroups(['none'])).rejects.toMatchObject({ groups: [{ groupId: 'none', errorCode: 69 }] })
    },
    deleteTopicRecords: async () => {
      await produceBatch(wire, 'kafkajs', 1, { records: [1, 2].map(() => ({ timestamp: Date.now(), value: null })) })
      await admin.fetchTopicOffsets('kafkajs') // it must have seen the topic
      await admin.deleteTopicRecords({ topic: 'kafkajs', partitions: [{ partition: 1, offset: '1' }] })
      const [partition] = (await admin.fetchTopicOffsets('kafkajs')).filter((each) => each.partition === 1)
      expect(partition).toMatchObject({ low: '1', high: '2' })
      const beyond = admin.deleteTopicRecords({ topic: 'kafkajs', partitions: [{ partition: 1, offset: '9' }] })
      await expect(beyond).rejects.toThrow()
    },
    deleteTopics: async () => {
      await admin.deleteTopics({ topics: ['kafkajs', 'kafkajs.assigned'] })
      expect((await topicNames()).filter((name) => name?.startsWith('kafkajs'))).toEqual([])
      await expect(admin.deleteTopics({ topics: ['kafkajs'] })).rejects.toThrow(/does not host this topic/)
    },
    createAcls: () => unsupported(admin.createAcls({ acl: [acl] })),
    describeAcls: () => unsupported(admin.describeAcls(acl)),
    deleteAcls: () => unsupported(admin.deleteAcls({ filters: [acl] })),
    alterPartitionReassignments: async () => {
      const to = (replicas: number[]) =>
        admin.alterPartitionReassignments({
          topics: [{ topic: 'kept', partitionAssignment: [{ partition: 0, replicas }] }],
        })
      await to([1]) // where it is
      await expect(to([7])).rejects.toThrow('Errors altering partition reassignments')
    },
    listPartitionReassignments: async () => {
      expect(await admin.listPartitionReassignments({})).toEqual({ topics: [] })
    },
    on: async () => {
      const requests: string[] = []
      const remove = admin.on(admin.events.REQUEST, ({ payload }) => requests.push(payload.apiName))
      await admin.listGroups()
      remove()
      await admin.describeCluster()
      expect(requests.at(-1)).toBe('ListGroups')
    },
    events: () => expect(Object.values(admin.events)).toContain('admin.network.request'),
    logger: () => expect(typeof admin.logger().info).toBe('function'),
    disconnect: async () => {
      await admin.disconnect()
      await expect(admin.listTopics()).rejects.toThrow()
    },
  }

  test('has no method that is not exercised here', () => {
    expect(coveredBy(cases)).toEqual(Object.keys(admin).toSorted())
  })

  test.each(Object.entries(cases))('%s', async (_, run) => {
    await run()
  })
})

describe('the admin client of @platformatic/kafka', () => {
  let admin: Admin
  const options = () => ({ clientId: 'admin', bootstrapBrokers: [node.bootstrapServers], retries: 0 })
  beforeAll(() => {
    admin = new Admin(options())
  })

  /** Names of what went wrong, as the client found them anywhere inside its error. */
  const refused = async (call: Promise<unknown>, reason: RegExp) => {
    const error = await call.then(
      () => expect.unreachable('it is not refused'),
      (thrown: unknown) => thrown,
    )
    expect(reasonsOf(error)).toMatch(reason)
  }
  const unsupported = (call: Promise<unknown>) => refused(call, /unsupported|not supported/i)
  const configs = { resourceType: ConfigResourceTypes.TOPIC, resourceName: 'platformatic' }
  const acl = {
    resourceType: ResourceTypes.TOPIC,
    resourceName: 'kept',
    resourcePatternType: ResourcePatternTypes.LITERAL,
    principal: 'User:a',
    host: '*',
    operation: AclOperations.READ,
    permissionType: AclPermissionTypes.ALLOW,
  }

  const cases: Cases = {
    createTopics: async () => {
      const made = await admin.createTopics({
        topics: [
          { topic: 'platformatic', partitions: 2, replicas: 1 },
          {
            topic: 'platformatic.assigned',
            partitions: -1,
            replicas: -1,
            assignments: [{ partition: 0, brokers: [1] }],
          },
        ],
        configs: [{ name: 'retention.ms', value: '5000' }],
      })
      expect(made.map(({ name, partitions }) => [name, partitions])).toEqual([
        ['platformatic', 2],
        ['platformatic.assigned', 1],
      ])
      expect(await settingOf('platformatic', 'retention.ms')).toBe('5000')
      await refused(admin.createTopics({ topics: ['platformatic'] }), /TOPIC_ALREADY_EXISTS/)
    },
    listTopics: async () => {
      expect(await admin.listTopics()).toContain('platformatic')
      await commit('platformatic', 1)
      expect(await admin.listTopics()).not.toContain('__consumer_offsets')
      expect(await admin.listTopics({ includeInternals: true })).toContain('__consumer_offsets')
    },
    createPartitions: async () => {
      const grow = (count: number, validateOnly = false) =>
        admin.createPartitions({ topics: [{ name: 'platformatic', count, assignments: null }], validateOnly })
      await grow(3, true)
      expect(await partitionsOf('platformatic')).toBe(2)
      await grow(3)
      expect(await partitionsOf('platformatic')).toBe(3)
      await refused(grow(3), /INVALID_PARTITIONS/)
    },
    listGroups: async () => {
      await commit('platformatic-listed', 1)
      const listed = await admin.listGroups({ states: ['EMPTY'], types: ['classic'] })
      expect(listed.get('platformatic-listed')).toMatchObject({ state: 'Empty', protocolType: '' })
      expect((await admin.listGroups({ states: ['STABLE'] })).has('platformatic-listed')).toBe(false)
    },
    describeGroups: async () => {
      await commit('platformatic-described', 1)
      const described = await admin.describeGroups({
        groups: ['platformatic-described'],
        includeAuthorizedOperations: true,
      })
      expect(described.get('platformatic-described')).toMatchObject({ state: 'Empty', members: new Map() })
      // It asks in a version that knows no error for this.
      expect((await admin.describeGroups({ groups: ['none'] })).get('none')).toMatchObject({ state: 'Dead' })
    },
    findCoordinator: async () => {
      expect(await admin.findCoordinator({ keyType: 0, keys: ['a', 'b'] })).toMatchObject([
        { key: 'a', nodeId: 1 },
        { key: 'b', nodeId: 1 },
      ])
      await refused(admin.findCoordinator({ keyType: 1, keys: ['t'] }), /UNSUPPORTED_VERSION/)
    },
    deleteGroups: async () => {
      await commit('platformatic-deleted', 1)
      await admin.deleteGroups({ groups: ['platformatic-deleted'] })
      expect(await groupNames()).not.toContain('platformatic-deleted')
      await refused(admin.deleteGroups({ groups: ['none'] }), /GROUP_ID_NOT_FOUND/)
    },
    removeMembersFromConsumerGroup: async () => {
      const groupId = 'platformatic-members'
      const consumer = new Consumer({
        ...options(),
        groupId,
        deserializers: stringDeserializers,
        heartbeatInterval: 100,
      })
      consumer.topics.trackAll('kept')
      await consumer.joinGroup({ heartbeatInterval: 100 })
      const members = async () => [
        ...((await admin.describeGroups({ groups: [groupId] })).get(groupId)?.members.keys() ?? []),
      ]
      const [memberId = ''] = await members()
      await refused(
        admin.removeMembersFromConsumerGroup({ groupId, members: [{ memberId: 'ghost' }] }),
        /UNKNOWN_MEMBER_ID/,
      )
      await admin.removeMembersFromConsumerGroup({ groupId, members: [{ memberId, reason: 'asked to' }] })
      expect(await members()).not.toContain(memberId)
      expect(node.logLines).toContainEqual(
        expect.objectContaining({
          message: 'group rebalance began',
          fields: expect.objectContaining({ groupId, reason: 'member-left', memberId, clientReason: 'asked to' }),
        }),
      )
      await consumer.close(true)
    },
    describeClientQuotas: () =>
      unsupported(
        admin.describeClientQuotas({ components: [{ entityType: 'user', matchType: ClientQuotaMatchTypes.ANY }] }),
      ),
    alterClientQuotas: () =>
      unsupported(
        admin.alterClientQuotas({
          entries: [
            {
              entities: [{ entityType: 'user', entityName: 'u' }],
              ops: [{ key: 'producer_byte_rate', value: 1, remove: false }],
            },
          ],
        }),
      ),
    describeLogDirs: async () => {
      const [broker] = await admin.describeLogDirs({ topics: [{ name: 'kept', partitions: [0, 1] }] })
      expect(broker?.results).toMatchObject([
        { topics: [{ name: 'kept', partitions: [{ partitionSize: 3n * 69n }, {}] }] },
      ])
    },
    alterConsumerGroupOffsets: async () => {
      const partitionOffsets = [{ partition: 0, offset: 2n }]
      await admin.alterConsumerGroupOffsets({
        groupId: 'platformatic-set',
        topics: [{ name: 'kept', partitionOffsets }],
      })
      expect(await committed('platformatic-set')).toEqual({ 0: 2 })
    },
    listConsumerGroupOffsets: async () => {
      await commit('platformatic-offsets', 1)
      const wanted = {
        groupId: 'platformatic-offsets',
        topics: [
          {
            name: 'kept',
            partitions: [{ partitionIndex: 0, committedOffset: 1n, committedLeaderEpoch: -1, metadata: 'm' }],
          },
        ],
      }
      expect(await admin.listConsumerGroupOffsets({ groups: ['platformatic-offsets'] })).toMatchObject([wanted])
      const groups = [{ groupId: 'platformatic-offsets', topics: [{ name: 'kept', partitionIndexes: [0] }] }]
      expect(await admin.listConsumerGroupOffsets({ groups, requireStable: true })).toMatchObject([wanted])
    },
    deleteConsumerGroupOffsets: async () => {
      await commit('platformatic-cut', 1)
      const topics = [{ name: 'kept', partitionIndexes: [0] }]
      expect(await admin.deleteConsumerGroupOffsets({ groupId: 'platformatic-cut', topics })).toEqual(topics)
      expect(await committed('platformatic-cut')).toEqual({})
      await refused(admin.deleteConsumerGroupOffsets({ groupId: 'none', topics }), /GROUP_ID_NOT_FOUND/)
    },
    describeConfigs: async () => {
      const [described] = await admin.describeConfigs({
        resources: [{ ...configs, resourceName: 'kept', configurationKeys: ['cleanup.policy'] }],
        includeSynonyms: true,
        includeDocumentation: true,
      })
      expect(described?.configs).toMatchObject([
        {
          name: 'cleanup.policy',
          value: 'delete',
          synonyms: [{ name: 'log.cleanup.policy', value: 'delete' }],
          documentation: expect.stringMatching(/\w+ \w+/),
        },
      ])
    },
    alterConfigs: async () => {
      const alter = (validateOnly: boolean) =>
        admin.alterConfigs({
          validateOnly,
          resources: [{ ...configs, configs: [{ name: 'segment.bytes', value: '2000000' }] }],
        })
      await alter(true)
      expect(await settingOf('platformatic', 'retention.ms')).toBe('5000')
      await alter(false)
      expect(await settingOf('platformatic', 'segment.bytes')).toBe('2000000')
      expect(await settingOf('platformatic', 'retention.ms')).toBe('604800000')
    },
    incrementalAlterConfigs: async () => {
      const { SET, DELETE, APPEND, SUBTRACT } = IncrementalAlterConfigOperationTypes
      type Setting = IncrementalAlterConfigsOptions['resources'][number]['configs'][number]
      const alter = async (setting: Setting) => {
        await admin.incrementalAlterConfigs({ resources: [{ ...configs, configs: [setting] }] })
        return await settingOf('platformatic', 'cleanup.policy')
      }
      const name = 'cleanup.policy'
      expect(await alter({ name, configOperation: APPEND, value: 'compact' })).toBe('delete,compact')
      expect(await alter({ name, configOperation: SUBTRACT, value: 'delete' })).toBe('compact')
      expect(await alter({ name, configOperation: SET, value: 'compact,delete' })).toBe('compact,delete')
      expect(await alter({ name, configOperation: DELETE })).toBe('delete')
    },
    listOffsets: async () => {
      const at = async (timestamp: bigint) => {
        const topics = [{ name: 'kept', partitions: [{ partitionIndex: 0, timestamp }] }]
        return (await admin.listOffsets({ topics }))[0]?.partitions[0]?.offset
      }
      expect([await at(-2n), await at(-1n), await at(-3n), await at(1500n), await at(9000n)]).toEqual([
        0n,
        3n,
        1n,
        1n,
        -1n,
      ])
    },
    deleteRecords: async () => {
      await produceBatch(wire, 'platformatic', 1, {
        records: [1, 2].map(() => ({ timestamp: Date.now(), value: null })),
      })
      const cut = (offset: bigint) =>
        admin.deleteRecords({ topics: [{ name: 'platformatic', partitions: [{ partition: 1, offset }] }] })
      expect(await cut(1n)).toEqual([{ name: 'platformatic', partitions: [{ partition: 1, lowWatermark: 1n }] }])
      await refused(cut(9n), /OFFSET_OUT_OF_RANGE/)
    },
    deleteTopics: async () => {
      await admin.deleteTopics({ topics: ['platformatic', 'platformatic.assigned'] })
      expect((await topicNames()).filter((name) => name?.startsWith('platformatic'))).toEqual([])
      await refused(admin.deleteTopics({ topics: ['none'] }), /UNKNOWN_TOPIC_OR_PARTITION/)
    },
    createAcls: () => unsupported(admin.createAcls({ creations: [acl] })),
    describeAcls: () =>
      unsupported(admin.describeAcls({ filter: { ...acl, resourcePatternType: ResourcePatternTypes.ANY } })),
    deleteAcls: () => unsupported(admin.deleteAcls({ filters: [acl] })),
    listApis: async () => {
      const listed = await admin.listApis()
      expect(listed).toContainEqual(expect.objectContaining({ name: 'ListGroups', minVersion: 0, maxVersion: 5 }))
    },
    metadata: async () => {
      const { topics, brokers } = await admin.metadata({ topics: ['kept'] })
      expect([topics.get('kept')?.partitionsCount, brokers.size]).toEqual([2, 1])
      await refused(admin.metadata({ topics: ['none'], forceUpdate: true }), /Unknown topic none/)
    },
    clearMetadata: async () => {
      admin.clearMetadata()
      expect((await admin.metadata({ topics: ['kept'] })).topics.size).toBe(1)
    },
    connectToBrokers: async () => expect([...(await admin.connectToBrokers([1])).keys()]).toEqual([1]),
    isActive: () => expect(admin.isActive()).toBe(true),
    isConnected: () => expect(admin.isConnected()).toBe(true),
    close: async () => {
      await admin.close()
      expect(admin.closed).toBe(true)
      await expect(admin.listTopics()).rejects.toThrow()
    },
  }

  test('has no method that is not exercised here', () => {
    const methods = [Admin.prototype, Object.getPrototypeOf(Admin.prototype) as object].flatMap((prototype) =>
      Object.entries(Object.getOwnPropertyDescriptors(prototype))
        .filter(([name, { value }]) => typeof value === 'function' && !['constructor', 'emitWithDebug'].includes(name))
        .map(([name]) => name),
    )
    expect(coveredBy(cases)).toEqual(methods.toSorted())
  })

  test.each(Object.entries(cases))('%s', async (_, run) => {
    await run()
  })
})

/** Kafka's names, or the words, for what went wrong, anywhere inside an error. */
function reasonsOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  const { apiId, errors = [], cause, message } = error as Error & { apiId?: string; errors?: readonly unknown[] }
  return [apiId ?? '', message, ...[...errors, cause].map(reasonsOf)].join(' ')
}
