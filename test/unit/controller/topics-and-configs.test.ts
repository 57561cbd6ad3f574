import { describe, expect, test } from 'vitest'
import {
  type AlterConfigRequest,
  allocateProducerIds,
  alterConfigs,
  type ConfigChange,
  clusterStart,
  deleteTopics,
} from '../../../src/controller/index.ts'
import { type MetadataImage, snapshotRecords } from '../../../src/metadata/index.ts'
import { brokerEpoch, brokerId, imageOf, registration, step, topicRecords, uuid } from '../metadata/support.ts'
import { anyConfig, settings } from './support.ts'

const image = imageOf(
  registration(1),
  ...topicRecords('orders', uuid(1), [[1]]),
  ...topicRecords('other', uuid(2), [[1]]),
  { type: 'Config', resourceType: 'topic', resourceName: 'orders', key: 'retention.ms', value: '5' },
)

describe('deleteTopics()', () => {
  const context = { settings, validateOnly: false }

  test('by name and by id, each once; the others are told why not', () => {
    const requests = [
      { name: 'orders' },
      { topicId: uuid(2) },
      { name: 'other' },
      { name: 'missing' },
      { topicId: uuid(9) },
    ]
    const { records, response } = deleteTopics(image, requests, context)
    expect(response.map((result) => (result.ok ? result.name : result.reason))).toEqual([
      'orders',
      'other',
      'invalid-request',
      'unknown-topic',
      'unknown-topic-id',
    ])
    const after = step(image, records).image
    expect(after.topics.size).toBe(0)
    expect(after.configs.of('topic', 'orders').size).toBe(0)
  })

  test('is refused when it is disabled, and does nothing when it only validates', () => {
    const disabled = { ...context, settings: { ...settings, topicDeletionEnabled: false } }
    expect(deleteTopics(image, [{ name: 'orders' }], disabled)).toMatchObject({
      records: [],
      response: [{ ok: false, reason: 'topic-deletion-disabled' }],
    })
    const validated = deleteTopics(image, [{ name: 'orders' }], { ...context, validateOnly: true })
    expect(validated).toMatchObject({ records: [], response: [{ ok: true, topicId: uuid(1) }] })
  })
})

describe('alterConfigs()', () => {
  const alter = (requests: AlterConfigRequest[], fields = {}) =>
    alterConfigs(image, requests, { settings, configRules: anyConfig, validateOnly: false, ...fields })
  const request = (resourceType: 'topic' | 'broker', resourceName: string, changes: [string, ConfigChange][]) => ({
    resourceType,
    resourceName,
    changes: new Map(changes),
  })

  test('sets and removes keys, and writes nothing for what is so already', () => {
    const { records, response } = alter([
      request('topic', 'orders', [
        ['retention.ms', null],
        ['max.message.bytes', '10'],
      ]),
      request('topic', 'other', [['retention.ms', null]]),
      request('broker', '', [['log.retention.ms', '7']]),
      request('broker', '1', [['log.retention.ms', '8']]),
    ])
    expect(response).toEqual(Array(4).fill({ ok: true }))
    expect(records).toHaveLength(4)
    const after = step(image, records).image
    expect(after.configs.of('topic', 'orders')).toEqual(new Map([['max.message.bytes', '10']]))
    expect(after.configs.of('broker', '')).toEqual(new Map([['log.retention.ms', '7']]))
    expect(after.configs.of('broker', '1')).toEqual(new Map([['log.retention.ms', '8']]))
  })

  test.each([
    ['unknown-topic', request('topic', 'missing', [])],
    ['invalid-topic', request('topic', 'a b', [])],
    ['invalid-request', request('topic', '', [])],
    ['invalid-request', request('broker', '2', [])],
    ['invalid-request', request('broker', '01', [])],
    ['invalid-request', request('broker', 'one', [])],
  ])('refuses with %s: %j', (reason, bad) => {
    expect(alter([bad]).response).toMatchObject([{ ok: false, reason }])
  })

  test('the configs that would result are checked together, and those of one resource change all or not at all', () => {
    const topicFault = (configs: ReadonlyMap<string, string | null>) =>
      configs.get('retention.ms') === '5' && configs.has('x') ? { message: 'Not both' } : undefined
    const bad = request('topic', 'orders', [
      ['x', '1'],
      ['y', '2'],
    ])
    const good = request('topic', 'other', [['y', '2']])
    const { records, response } = alter([bad, good], { configRules: { ...anyConfig, topicFault } })
    expect(response).toMatchObject([{ ok: false, reason: 'invalid-config', message: 'Not both' }, { ok: true }])
    expect(records).toMatchObject([{ resourceName: 'other', key: 'y' }])
  })

  test('a request that replaces removes what it does not name', () => {
    const changes = new Map([['max.message.bytes', '10']])
    const { records } = alter([{ resourceType: 'topic', resourceName: 'orders', changes, replaces: true }])
    expect(step(image, records).image.configs.of('topic', 'orders')).toEqual(changes)
    const none = { resourceType: 'topic', resourceName: 'other', changes: new Map(), replaces: true } as const
    expect(alter([none])).toEqual({ records: [], response: [{ ok: true }] })
  })

  test('adds elements to a list once each, from the built-in default on, and takes some out', () => {
    const policyAfter = (from: MetadataImage, ...changes: ConfigChange[]) => {
      let head = from
      for (const change of changes) {
        const { records, response } = alterConfigs(head, [request('topic', 'other', [['cleanup.policy', change]])], {
          settings,
          configRules: anyConfig,
          validateOnly: false,
        })
        expect(response).toEqual([{ ok: true }])
        head = step(head, records).image
      }
      return head.configs.of('topic', 'other').get('cleanup.policy')
    }
    expect(policyAfter(image, { append: 'compact' })).toBe('delete,compact')
    expect(policyAfter(image, { append: ' compact ,delete,' })).toBe('delete,compact')
    expect(policyAfter(image, 'compact', { append: 'delete' })).toBe('compact,delete')
    expect(policyAfter(image, { append: 'compact' }, { subtract: 'delete' })).toBe('compact')
    expect(policyAfter(image, { subtract: 'delete,compact' })).toBe('')
    expect(policyAfter(image, 'compact', null, { subtract: 'x' })).toBe('delete')
  })

  test.each([{ append: '1' }, { subtract: '1' }])('%j is refused for a key that is no list', (change) => {
    const refused = alter([
      request('topic', 'orders', [['retention.ms', change]]),
      request('topic', 'missing', [['nope', change]]),
      request('broker', '1', [['log.retention.ms', change]]),
    ])
    expect(refused.response).toMatchObject(Array(3).fill({ ok: false, reason: 'invalid-config' }))
  })

  test('what a topic may not have is said before that there is no such topic; a broker is told of an invalid request', () => {
    const fault = () => ({ message: 'Bad' })
    const rules = { ...anyConfig, topicFault: fault, brokerFault: fault }
    const bad = [request('topic', 'missing', [['x', '1']]), request('broker', '', [['x', '1']])]
    expect(alter(bad, { configRules: rules }).response).toEqual([
      { ok: false, reason: 'invalid-config', message: 'Bad' },
      { ok: false, reason: 'invalid-request', message: 'Bad' },
    ])
  })

  test('validating changes nothing', () => {
    const one = request('topic', 'orders', [['x', '1']])
    expect(alter([one], { validateOnly: true })).toEqual({ records: [], response: [{ ok: true }] })
  })

  test('a resource that is in the request twice, and a request that is too large, are refused', () => {
    const twice = request('topic', 'orders', [['x', '1']])
    expect(alter([twice, twice]).response).toMatchObject(Array(2).fill({ ok: false, reason: 'invalid-request' }))
    const keys = [...Array(10_001).keys()].map((i): [string, string] => [`k${i}`, ''])
    expect(alter([request('topic', 'orders', keys)])).toMatchObject({ records: [], response: [{ ok: false }] })
  })
})

describe('allocateProducerIds()', () => {
  const run = { brokerId: brokerId(1), brokerEpoch: brokerEpoch(1) }

  test('gives blocks of 1000 that never overlap', () => {
    let head: MetadataImage = image
    const firsts = [0, 1, 2].map(() => {
      const { records, response } = allocateProducerIds(head, run)
      head = step(head, records).image
      return response.ok ? [response.firstProducerId, response.count] : response.reason
    })
    expect(firsts).toEqual([
      [0, 1000],
      [1000, 1000],
      [2000, 1000],
    ])
  })

  test('gives none to a run that is not registered', () => {
    expect(allocateProducerIds(image, { ...run, brokerEpoch: brokerEpoch(9) })).toEqual({
      records: [],
      response: { ok: false, reason: 'stale-broker-epoch' },
    })
  })
})

test('clusterStart() is the first entry of a cluster, metadata.version first, and is made once', () => {
  const records = clusterStart(imageOf(), 'a-cluster', settings)
  expect(records).toEqual([
    { type: 'FeatureLevel', name: 'metadata.version', level: 2 },
    { type: 'FeatureLevel', name: 'eligible.leader.replicas.version', level: 1 },
    { type: 'ClusterId', clusterId: 'a-cluster' },
  ])
  const started = imageOf(...records)
  expect(clusterStart(started, 'a-cluster', settings)).toEqual([])
  expect([...snapshotRecords(started)]).toEqual(records)
})
