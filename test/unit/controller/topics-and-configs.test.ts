import { describe, expect, test } from 'vitest'
import {
  type AlterConfigRequest,
  allocateProducerIds,
  alterConfigs,
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
    alterConfigs(image, requests, { configRules: anyConfig, validateOnly: false, ...fields })
  const request = (resourceType: 'topic' | 'broker', resourceName: string, changes: [string, string | null][]) => ({
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
    ['invalid-request', request('topic', 'a b', [])],
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
  const records = clusterStart(imageOf(), 'a-cluster')
  expect(records).toEqual([
    { type: 'FeatureLevel', name: 'metadata.version', level: 1 },
    { type: 'ClusterId', clusterId: 'a-cluster' },
  ])
  const started = imageOf(...records)
  expect(clusterStart(started, 'a-cluster')).toEqual([])
  expect([...snapshotRecords(started)]).toEqual(records)
})
