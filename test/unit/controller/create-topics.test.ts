import { describe, expect, test } from 'vitest'
import type { BrokerId } from '../../../src/base/index.ts'
import {
  type CreateTopicRequest,
  type CreateTopicsContext,
  createTopics,
  topicNameFault,
} from '../../../src/controller/index.ts'
import type { MetadataImage } from '../../../src/metadata/index.ts'
import { settledReplicas } from '../../support/partition-image.ts'
import { brokerIds, imageOf, registration, step, topicRecords, uuid } from '../metadata/support.ts'
import { anyConfig, settings } from './support.ts'

const oneBroker = imageOf(registration(1))
const twoBrokers = imageOf(registration(1), registration(2), registration(3, { fenced: true }))

function request(name: string, fields: Partial<CreateTopicRequest> = {}): CreateTopicRequest {
  return { name, partitionCount: 1, replicationFactor: 1, configs: new Map(), ...fields }
}

function create(image: MetadataImage, requests: CreateTopicRequest[], fields: Partial<CreateTopicsContext> = {}) {
  const topicIds = requests.map((_request, i) => uuid(100 + i))
  const context = { settings, configRules: anyConfig, validateOnly: false, topicIds, placementStart: 0, ...fields }
  return createTopics(image, requests, context)
}

function refusal(image: MetadataImage, fields: Partial<CreateTopicRequest>, name = 'orders') {
  const { records, response } = create(image, [request(name, fields)])
  expect(records).toEqual([])
  const [result] = response
  return result?.ok === false ? [result.reason, result.message] : result
}

const assigned = (...replicas: number[][]) => ({
  partitionCount: -1,
  replicationFactor: -1,
  assignments: new Map(replicas.map((ids, partition) => [partition, ids as BrokerId[]])),
})

describe('createTopics()', () => {
  test('makes topic, configs and partitions with a leader, in one entry', () => {
    const configs = new Map([['retention.ms', '1000']])
    const { records, response } = create(oneBroker, [request('orders', { partitionCount: 2, configs })])
    expect(response).toEqual([
      { ok: true, name: 'orders', topicId: uuid(100), partitionCount: 2, replicationFactor: 1 },
    ])
    const { image } = step(oneBroker, records)
    const [replicas, isr, leader] = [brokerIds(1), brokerIds(1), 1]
    const fresh = { replicas, isr, leader, leaderEpoch: 0, partitionEpoch: 0, ...settledReplicas }
    expect(image.topics.byName('orders')?.partitions).toEqual([
      { partition: 0, ...fresh },
      { partition: 1, ...fresh },
    ])
    expect(image.configs.of('topic', 'orders')).toEqual(configs)
  })

  test('counts of -1 are the defaults', () => {
    const { response } = create(twoBrokers, [request('orders', { partitionCount: -1, replicationFactor: -1 })], {
      settings: { ...settings, defaultPartitionCount: 3, defaultReplicationFactor: 2 },
    })
    expect(response).toMatchObject([{ ok: true, partitionCount: 3, replicationFactor: 2 }])
  })

  test('an assignment is taken as it is, and a fenced replica is not in the ISR', () => {
    const { records, response } = create(twoBrokers, [request('orders', assigned([3, 2], [1, 3]))])
    expect(response).toMatchObject([{ ok: true, partitionCount: 2, replicationFactor: 2 }])
    expect(step(twoBrokers, records).image.topics.byName('orders')?.partitions).toMatchObject([
      { replicas: [3, 2], isr: [2], leader: 2 },
      { replicas: [1, 3], isr: [1], leader: 1 },
    ])
  })

  test.each<[string, Partial<CreateTopicRequest>]>([
    ['invalid-partitions', { partitionCount: 0 }],
    ['invalid-partitions', { partitionCount: -2 }],
    ['invalid-replication-factor', { replicationFactor: 0 }],
    ['invalid-replication-factor', { replicationFactor: -2, partitionCount: 0 }],
    ['invalid-replication-factor', { replicationFactor: 4 }],
    ['invalid-request', { ...assigned([1]), partitionCount: 1 }],
    ['invalid-request', { ...assigned([1]), replicationFactor: 1 }],
    ['invalid-replica-assignment', assigned([])],
    ['invalid-replica-assignment', assigned([1, 1])],
    ['invalid-replica-assignment', assigned([-1])],
    ['invalid-replica-assignment', assigned([9])],
    ['invalid-replica-assignment', assigned([3])],
    ['invalid-replica-assignment', assigned([1, 2], [1])],
    ['invalid-replica-assignment', { ...assigned(), assignments: new Map([[1, brokerIds(1)]]) }],
  ])('refuses with %s: %j', (reason, fields) => {
    expect(refusal(twoBrokers, fields)).toEqual([reason, expect.stringMatching(/^[A-Z].*[^.]$/)])
  })

  test('no brokers, or only fenced ones, is a replication factor that cannot be', () => {
    expect(refusal(imageOf(), {})).toMatchObject(['invalid-replication-factor', expect.any(String)])
    expect(refusal(imageOf(registration(1, { fenced: true })), {})).toMatchObject([
      'invalid-replication-factor',
      /fenced/,
    ])
  })

  test('a name that exists, in the image or twice in the request, is refused before anything else', () => {
    const image = step(oneBroker, topicRecords('orders', uuid(1), [[1]])).image
    expect(refusal(image, { partitionCount: 0 })).toEqual(['topic-exists', expect.stringMatching(/already exists/)])
    const { records, response } = create(oneBroker, [request('a'), request('b'), request('a')])
    expect(response.map((result) => (result.ok ? 'ok' : result.reason))).toEqual([
      'invalid-request',
      'ok',
      'invalid-request',
    ])
    expect(records).toHaveLength(2)
  })

  test('names that differ only in dots and underscores collide with old topics, not within the request', () => {
    const image = step(oneBroker, topicRecords('a.b', uuid(1), [[1]])).image
    expect(refusal(image, {}, 'a_b')).toEqual(['invalid-topic', expect.stringMatching(/a\.b/)])
    const { response } = create(image, [request('x.y'), request('x_y'), request('a-b')])
    expect(response.map((result) => (result.ok ? 'ok' : result.reason))).toEqual(['ok', 'ok', 'ok'])
  })

  test.each(['', '.', '..', 'a b', 'ä', 'a/b', 'a\0', 'x'.repeat(250)])('the name %j is no topic name', (name) => {
    expect(refusal(oneBroker, {}, name)).toMatchObject(['invalid-topic', expect.any(String)])
  })

  test.each(['a', 'A-Z_0.9', '...', 'x'.repeat(249)])('the name %j is one', (name) => {
    expect(topicNameFault(name)).toBeUndefined()
  })

  test('configs are checked before counts, and those of one topic do not harm another', () => {
    const topicFault = (configs: ReadonlyMap<string, string | null>) =>
      configs.get('bad') === null ? { message: 'Null' } : undefined
    const { response } = create(
      oneBroker,
      [request('a', { configs: new Map([['bad', null]]), partitionCount: 0 }), request('b')],
      { configRules: { ...anyConfig, topicFault } },
    )
    expect(response).toMatchObject([{ ok: false, reason: 'invalid-config', message: 'Null' }, { ok: true }])
  })

  test('a request for more than one entry may hold is refused whole, whatever it claims', () => {
    const { records, response } = create(oneBroker, [request('a'), request('b', { partitionCount: 2 ** 31 - 1 })])
    expect(records).toEqual([])
    expect(response.map((result) => (result.ok ? 'ok' : result.reason))).toEqual([
      'policy-violation',
      'policy-violation',
    ])
    expect(create(oneBroker, [request('a', { partitionCount: 9999 })]).response).toMatchObject([{ ok: true }])
  })

  test('to validate only gives the answer and no records', () => {
    const { records, response } = create(oneBroker, [request('a')], { validateOnly: true })
    expect(records).toEqual([])
    expect(response).toMatchObject([{ ok: true, name: 'a' }])
  })
})
