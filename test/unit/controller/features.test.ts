import { describe, expect, test } from 'vitest'
import { type FeatureUpdate, registerController, updateFeatures } from '../../../src/controller/index.ts'
import type { MetadataImage, MetadataRecord, SupportedFeature } from '../../../src/metadata/index.ts'
import { supportedFeatures } from '../../../src/metadata/index.ts'
import { brokerId, brokerIds, imageOf, registration, step, topicRecords, uuid } from '../metadata/support.ts'
import { clusterRecords, orders, ordersChange, settings } from './support.ts'

const elr = 'eligible.leader.replicas.version'
const version = 'metadata.version'
const features = (minLevel: number, maxLevel: number): SupportedFeature[] => [
  { name: version, minLevel: 1, maxLevel: 2 },
  { name: elr, minLevel, maxLevel },
]
const broker = (id: number, supported = features(0, 1)): MetadataRecord => ({
  ...registration(id),
  features: supported,
})
const levels = (versionLevel: number, elrLevel: number): MetadataRecord[] => [
  { type: 'FeatureLevel', name: version, level: versionLevel },
  { type: 'FeatureLevel', name: elr, level: elrLevel },
]

function update(image: MetadataImage, updates: FeatureUpdate[], fields = {}) {
  const decided = updateFeatures(image, updates, { settings, validateOnly: false, ...fields })
  return { ...decided, after: step(image, decided.records).image }
}
const to = (feature: string, level: number, upgradeType: FeatureUpdate['upgradeType'] = 'upgrade') => ({
  feature,
  level,
  upgradeType,
})

describe('updateFeatures()', () => {
  test('raises a level that all nodes support, and with validateOnly only says so', () => {
    const image = imageOf(...levels(2, 0), broker(1), broker(2))
    const { records, response, after } = update(image, [to(elr, 1)])
    expect(response).toEqual({ ok: true })
    expect(records).toEqual([{ type: 'FeatureLevel', name: elr, level: 1 }])
    expect(after.features.get(elr)).toBe(1)
    expect(update(image, [to(elr, 1)], { validateOnly: true })).toMatchObject({ records: [], response: { ok: true } })
    expect(update(after, [to(elr, 1)])).toMatchObject({ records: [], response: { ok: true } })
  })

  test('eligible replicas come with the min.insync.replicas that the controller has for the cluster, and for no broker', () => {
    const config = { type: 'Config', resourceType: 'broker', key: 'min.insync.replicas' } as const
    const image = imageOf(...levels(2, 0), broker(1), { ...config, resourceName: '1', value: '3' })
    const decided = updateFeatures(image, [to(elr, 1)], {
      settings: { ...settings, defaultMinInSyncReplicas: 2 },
      validateOnly: false,
    })
    const { configs } = step(image, decided.records).image
    expect(configs.of('broker', '1').size).toBe(0)
    expect(configs.of('broker', '').get('min.insync.replicas')).toBe('2')
  })

  test('a removed feature takes what it kept with it', () => {
    const image = imageOf(
      ...levels(2, 1),
      broker(1),
      ...topicRecords('orders', uuid(1), [[1, 2]]),
      ordersChange(0, { isr: brokerIds(1), elr: brokerIds(2) }),
    )
    const { response, after } = update(image, [to(elr, 0, 'safe-downgrade')])
    expect(response).toEqual({ ok: true })
    expect(after.features.has(elr)).toBe(false)
    expect(orders(after).elr).toEqual([])
  })

  test.each<[string, FeatureUpdate]>([
    ['a level that this node does not know', to(elr, 2)],
    ['a feature that nobody knows', to('kraft.version', 1)],
    ['a negative level', to(elr, -1)],
    ['a level that is no whole number', to(elr, 0.5)],
    ['a downgrade that is called an upgrade', to(elr, 0)],
    ['an upgrade that is called a downgrade', to(version, 3, 'safe-downgrade')],
    ['a downgrade that loses metadata', to(version, 1, 'safe-downgrade')],
    ['a downgrade that would lose metadata', to(version, 1, 'unsafe-downgrade')],
    ['the removal of metadata.version', to(version, 0, 'unsafe-downgrade')],
  ])('refuses %s', (_what, refused) => {
    const image = imageOf(...levels(2, 1), broker(1))
    expect(update(image, [refused])).toMatchObject({
      records: [],
      response: { ok: false, feature: refused.feature, reason: 'invalid-update-version' },
    })
  })

  test('changes all or none, and names what can not be', () => {
    const image = imageOf(...levels(2, 0), broker(1))
    const { records, response } = update(image, [to(elr, 1), to(version, 7)])
    expect({ records, response }).toMatchObject({ records: [], response: { ok: false, feature: version } })
    expect(update(image, [to(elr, 1), to(elr, 1)]).response).toMatchObject({ ok: false, reason: 'invalid-request' })
  })

  test('a broker or controller that does not support a level keeps it out, fenced or not', () => {
    const old = imageOf(...levels(2, 0), broker(1), { ...broker(2, features(0, 0)), fenced: true } as MetadataRecord)
    expect(update(old, [to(elr, 1)]).response).toMatchObject({
      ok: false,
      message: expect.stringContaining('Broker 2'),
    })
    const controller = {
      type: 'RegisterController',
      controllerId: brokerId(7),
      incarnationId: uuid(7),
      endpoints: [],
      features: [{ name: version, minLevel: 1, maxLevel: 2 }],
    } as const
    expect(update(imageOf(...levels(2, 0), broker(1), controller), [to(elr, 1)]).response).toMatchObject({
      ok: false,
      message: expect.stringContaining('Controller 7'),
    })
  })

  test('a cluster of the first version is raised, its features with it, metadata.version first', () => {
    const image = imageOf({ type: 'FeatureLevel', name: version, level: 1 }, registration(1))
    expect(update(image, [to(elr, 1)]).response).toMatchObject({ ok: false, feature: elr })
    const { records, response } = update(image, [to(elr, 1), to(version, 2)])
    expect(response).toEqual({ ok: true })
    expect(records.map((record) => (record.type === 'FeatureLevel' ? record.name : record.type))).toEqual([
      version,
      elr,
    ])
  })
})

describe('registerController()', () => {
  const registered = { controllerId: brokerId(3), incarnationId: uuid(3), endpoints: [], features: supportedFeatures }
  const image = imageOf(...clusterRecords())

  test('keeps what a controller says of itself, once', () => {
    const request = { ...registered, clusterId: 'a-cluster' }
    const { records, response } = registerController(image, request)
    expect(response).toEqual({ ok: true })
    const after = step(image, records).image
    expect([...after.cluster.controllers()]).toEqual([registered])
    expect(registerController(after, request).records).toEqual([])
    expect(registerController(after, { ...request, incarnationId: uuid(4) }).records).toHaveLength(1)
  })

  test('refuses one of another cluster, or that lacks a feature which is in use', () => {
    const other = registerController(image, { ...registered, clusterId: 'another' })
    expect(other).toMatchObject({ records: [], response: { ok: false, reason: 'inconsistent-cluster-id' } })
    const old = registerController(image, { ...registered, clusterId: 'a-cluster', features: [] })
    expect(old).toMatchObject({ records: [], response: { ok: false, reason: 'unsupported-version' } })
  })

  test('writes nothing where the metadata.version does not know it', () => {
    const first = imageOf({ type: 'FeatureLevel', name: version, level: 1 })
    expect(registerController(first, { ...registered, clusterId: '' })).toEqual({ records: [], response: { ok: true } })
  })
})
