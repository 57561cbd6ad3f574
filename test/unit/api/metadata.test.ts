import { describe, expect, test } from 'vitest'
import type { BrokerId, LeaderEpoch } from '../../../src/base/index.ts'
import { noLeader } from '../../../src/metadata/index.ts'
import { apis } from '../../../src/protocol/index.ts'
import { brokerImage, harness, partitionImage, topicId } from './harness.ts'

const versions = Array.from({ length: 14 }, (_, version) => version)

test.each(versions)('Metadata %i names brokers, topics and leaders', async (version) => {
  const { ask, coordination } = harness()
  const { topicId: id } = coordination.addTopic('orders', [partitionImage(0, { leaderEpoch: 4 as LeaderEpoch })])
  const response = await ask(apis.Metadata, version, { topics: [{ name: 'orders' }] })
  expect(response).toMatchObject({
    brokers: [{ nodeId: 1, host: 'broker1', port: 9092 }],
    clusterId: version >= 2 ? 'CLUSTERCLUSTERCLUSTERC' : null,
    controllerId: version >= 1 ? 1 : -1,
    topics: [
      {
        errorCode: 0,
        name: 'orders',
        isInternal: false,
        partitions: [
          {
            errorCode: 0,
            partitionIndex: 0,
            leaderId: 1,
            leaderEpoch: version >= 7 ? 4 : -1,
            replicaNodes: [1],
            isrNodes: [1],
            offlineReplicas: [],
          },
        ],
        topicAuthorizedOperations: -2147483648,
      },
    ],
  })
  if (version >= 10) expect(response.topics[0]!.topicId).toBe(id)
})

test('null is all topics; an empty list is none, and all in version 0', async () => {
  const { ask, coordination } = harness()
  coordination.addTopic('a')
  coordination.addTopic('b')
  const names = async (version: number, topics: [] | null) =>
    (await ask(apis.Metadata, version, { topics })).topics.map(({ name }) => name)
  expect(await names(0, [])).toEqual(['a', 'b'])
  expect(await names(1, [])).toEqual([])
  expect(await names(1, null)).toEqual(['a', 'b'])
  expect(await names(12, null)).toEqual(['a', 'b'])
})

describe('auto-creation', () => {
  test('a missing topic is created and has its leader in the same answer', async () => {
    const { ask, coordination } = harness()
    const { topics } = await ask(apis.Metadata, 4, { topics: [{ name: 'new' }], allowAutoTopicCreation: true })
    expect(topics).toMatchObject([{ errorCode: 0, name: 'new', partitions: [{ errorCode: 0, leaderId: 1 }] }])
    expect(coordination.created).toEqual([
      { name: 'new', partitionCount: -1, replicationFactor: -1, configs: new Map() },
    ])
  })

  test('clients before version 4 always allow it', async () => {
    const { ask } = harness()
    expect((await ask(apis.Metadata, 1, { topics: [{ name: 'new' }] })).topics[0]!.errorCode).toBe(0)
  })

  test('a topic that several clients ask for at a time is created once', async () => {
    const { ask, coordination } = harness()
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => ask(apis.Metadata, 9, { topics: [{ name: 'new' }, { name: 'newer' }] })),
    )
    for (const { topics } of answers) expect(topics).toMatchObject([{ errorCode: 0 }, { errorCode: 0 }])
    expect(coordination.created.map(({ name }) => name).sort()).toEqual(['new', 'newer'])
  })

  test('all topics that a request misses are one request to the controller', async () => {
    const { ask, coordination } = harness()
    const names = Array.from({ length: 300 }, (_, i) => ({ name: `new-${i}` }))
    const { topics } = await ask(apis.Metadata, 9, { topics: [...names, { name: 'new-7' }] })
    expect(topics.map(({ name, errorCode }) => [name, errorCode])).toEqual(names.map(({ name }) => [name, 0]))
    expect(coordination.creations).toBe(1)
  })

  test('more topics than the controller takes at once are unknown, and none is created', async () => {
    const { ask, coordination } = harness()
    const names = Array.from({ length: 10_001 }, (_, i) => ({ name: `new-${i}` }))
    const { topics } = await ask(apis.Metadata, 9, { topics: names })
    expect(new Set(topics.map(({ errorCode }) => errorCode))).toEqual(new Set([3]))
    expect(coordination.creations).toBe(0)
    coordination.refuseCreation = ({ name }) => ({ ok: false, name, reason: 'policy-violation', message: 'Too many' })
    expect((await ask(apis.Metadata, 9, { topics: [{ name: 'new' }] })).topics[0]!.errorCode).toBe(3)
  })

  test.each([
    ['the client does not allow it', {}, false],
    ['the broker does not', { 'auto.create.topics.enable': 'false' }, true],
  ])('nothing is created when %s', async (_name, overrides, allowAutoTopicCreation) => {
    const { ask, coordination } = harness({ overrides })
    const { topics } = await ask(apis.Metadata, 9, { topics: [{ name: 'new' }], allowAutoTopicCreation })
    expect(topics).toMatchObject([{ errorCode: 3, name: 'new', partitions: [] }])
    expect(coordination.created).toEqual([])
  })

  test('the offsets topic is created as coordinators need it', async () => {
    const { ask, coordination } = harness({ overrides: { 'offsets.topic.num.partitions': '7' } })
    const { topics } = await ask(apis.Metadata, 9, { topics: [{ name: '__consumer_offsets' }] })
    expect(topics).toMatchObject([{ errorCode: 0, isInternal: true }])
    expect(coordination.created).toMatchObject([{ partitionCount: 7, replicationFactor: 1 }])
    expect(coordination.created[0]!.configs.get('cleanup.policy')).toBe('compact')
  })

  test('the offsets topic gets no more replicas than there are brokers yet, unless a setting says how many', async () => {
    const cluster = {
      'process.roles': 'broker',
      'controller.quorum.bootstrap.servers': 'a:9093',
      'controller.listener.names': 'CONTROLLER',
    }
    const created = async (overrides: Record<string, string>) => {
      const { ask, coordination } = harness({ overrides })
      coordination.brokers.push(brokerImage(2))
      await ask(apis.Metadata, 9, { topics: [{ name: '__consumer_offsets' }] })
      return coordination.created[0]!.replicationFactor
    }
    expect(await created(cluster)).toBe(2)
    expect(await created({ ...cluster, 'offsets.topic.replication.factor': '3' })).toBe(3)
  })

  test('a refusal, and a controller that does not answer, are told as an unknown topic', async () => {
    const { ask, coordination } = harness()
    coordination.refuseCreation = ({ name }) => ({
      ok: false,
      name,
      reason: 'invalid-replication-factor',
      message: 'Too few brokers',
    })
    const code = async () => (await ask(apis.Metadata, 9, { topics: [{ name: 'new' }] })).topics[0]!.errorCode
    expect(await code()).toBe(3)
    coordination.fault = new Error('No controller')
    expect(await code()).toBe(3)
  })

  test.each(['', '.', '..', 'a b', 'ü', 'x'.repeat(250)])('the name %j is illegal', async (name) => {
    const { ask, coordination } = harness()
    expect((await ask(apis.Metadata, 9, { topics: [{ name }] })).topics[0]!.errorCode).toBe(17)
    expect(coordination.created).toEqual([])
  })
})

describe('topics by id', () => {
  test('are found from version 12 on; an unknown id is told with it', async () => {
    const { ask, coordination } = harness()
    const { topicId: id } = coordination.addTopic('orders')
    const asked = [
      { topicId: id, name: null },
      { topicId: topicId(900), name: null },
    ]
    const { topics } = await ask(apis.Metadata, 12, { topics: asked })
    expect(topics).toMatchObject([
      { errorCode: 0, name: 'orders', topicId: id },
      { errorCode: 100, name: null, topicId: topicId(900), partitions: [] },
    ])
  })

  test('are invalid before', async () => {
    const { ask } = harness()
    const { topics } = await ask(apis.Metadata, 11, { topics: [{ topicId: topicId(1), name: null }] })
    expect(topics).toMatchObject([{ errorCode: 42, name: '' }])
  })
})

describe('addresses', () => {
  const wildcard = brokerImage(1, {
    endpoints: [{ name: 'PLAINTEXT', host: '0.0.0.0', port: 9092, securityProtocol: 'PLAINTEXT' }],
  })

  test('a broker on every address is where the client dialled it', async () => {
    const { ask, coordination } = harness()
    coordination.brokers[0] = wildcard
    for (const localAddress of ['127.0.0.1', '::1', '192.168.1.5']) {
      const { brokers } = await ask(apis.Metadata, 9, { topics: [] }, { connection: { localAddress } })
      expect(brokers).toMatchObject([{ nodeId: 1, host: localAddress, port: 9092 }])
    }
  })

  test('they are those of the listener that the request came in on', async () => {
    const { ask, coordination } = harness()
    coordination.brokers[0] = brokerImage(1, {
      endpoints: [
        { name: 'PLAINTEXT', host: 'inside', port: 9092, securityProtocol: 'PLAINTEXT' },
        { name: 'OUTSIDE', host: 'outside', port: 19092, securityProtocol: 'PLAINTEXT' },
      ],
    })
    const { brokers } = await ask(apis.Metadata, 9, { topics: [] }, { connection: { listenerName: 'OUTSIDE' } })
    expect(brokers).toMatchObject([{ host: 'outside', port: 19092 }])
  })

  test('a leader without this listener is told so, fenced brokers are left out', async () => {
    const { ask, coordination } = harness()
    coordination.brokers.push(brokerImage(2, { endpoints: [] }), brokerImage(3, { fenced: true }))
    const replicas = [1, 2, 3] as BrokerId[]
    coordination.addTopic('orders', [
      partitionImage(0, { leader: 2 as BrokerId, replicas }),
      partitionImage(1, { leader: noLeader, replicas }),
    ])
    const { brokers, topics } = await ask(apis.Metadata, 6, { topics: null })
    expect(brokers.map(({ nodeId }) => nodeId)).toEqual([1])
    expect(topics[0]!.partitions).toMatchObject([
      { errorCode: 72, leaderId: -1, replicaNodes: [1, 2, 3], offlineReplicas: [2, 3] },
      { errorCode: 5, leaderId: -1 },
    ])
    expect((await ask(apis.Metadata, 5, { topics: null })).topics[0]!.partitions[0]!.errorCode).toBe(5)
  })
})

test('operations are told when asked for', async () => {
  const { ask, coordination } = harness()
  coordination.addTopic('orders')
  const flags = { includeClusterAuthorizedOperations: true, includeTopicAuthorizedOperations: true }
  const response = await ask(apis.Metadata, 8, { topics: null, ...flags })
  expect(response.clusterAuthorizedOperations).toBe(8096)
  expect(response.topics[0]!.topicAuthorizedOperations).toBe(3576)
})
