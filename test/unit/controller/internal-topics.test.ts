import { expect, test } from 'vitest'
import { growInternalTopics } from '../../../src/controller/index.ts'
import type { MetadataImage, MetadataRecord } from '../../../src/metadata/index.ts'
import { brokerIds, imageOf, registration, step, topicRecords, uuid } from '../metadata/support.ts'
import { clusterRecords, fencing, orders, ordersChange, settings } from './support.ts'

const growing = { ...settings, growingTopics: new Map([['orders', 3]]) }
const cluster = (brokers: number, replicas: number[][], ...records: MetadataRecord[]) =>
  imageOf(
    ...clusterRecords(),
    ...Array.from({ length: brokers }, (_, i) => registration(i + 1)),
    ...topicRecords('orders', uuid(1), replicas),
    ...records,
  )
const grown = (image: MetadataImage) => step(image, growInternalTopics(image, growing)).image
const replicas = (image: MetadataImage) => image.topics.byName('orders')!.partitions.map((each) => each.replicas)
const minInSync = (image: MetadataImage) => image.configs.of('topic', 'orders').get('min.insync.replicas')

test('a topic of one replica grows with the brokers, up to its target, and its leaderships are to be spread', () => {
  const alone = cluster(1, [[1], [1], [1]])
  expect(growInternalTopics(alone, growing)).toEqual([])
  const two = grown(step(alone, [registration(2)]).image)
  expect(replicas(two).map((each) => each.toSorted())).toEqual([
    [1, 2],
    [1, 2],
    [1, 2],
  ])
  expect(orders(two)).toMatchObject({ leader: 1, isr: [1], addingReplicas: [2], removingReplicas: [], leaderEpoch: 0 })
  expect(new Set(replicas(two).map((each) => each[0])).size).toBe(2)
})

test('nothing is begun while a reassignment of the topic runs', () => {
  const two = grown(cluster(2, [[1], [1]]))
  expect(growInternalTopics(step(two, [registration(3)]).image, growing)).toEqual([])
})

test('with three replicas everywhere, two must be in sync; not where the topic or the cluster already says so', () => {
  const three = cluster(3, [
    [1, 2, 3],
    [2, 3, 1],
  ])
  const after = grown(three)
  expect(minInSync(after)).toBe('2')
  expect(growInternalTopics(after, growing)).toEqual([])
  const config = { type: 'Config', key: 'min.insync.replicas' } as const
  const own = { ...config, resourceType: 'topic', resourceName: 'orders', value: '1' } as const
  const all = { ...config, resourceType: 'broker', resourceName: '', value: '3' } as const
  expect(growInternalTopics(step(three, [own]).image, growing)).toEqual([])
  expect(growInternalTopics(step(three, [all]).image, growing)).toEqual([])
})

test('not while some partition has fewer in sync', () => {
  expect(growInternalTopics(cluster(3, [[1, 2, 3]], ordersChange(0, { isr: brokerIds(1) })), growing)).toEqual([])
})

test('fenced brokers do not count, and more than the target are never taken away', () => {
  expect(growInternalTopics(cluster(2, [[1]], fencing(2, true)), growing)).toEqual([])
  const four = cluster(4, [[1, 2, 3, 4]], {
    type: 'Config',
    resourceType: 'topic',
    resourceName: 'orders',
    key: 'min.insync.replicas',
    value: '1',
  })
  expect(growInternalTopics(four, growing)).toEqual([])
})

test('replicas that are there stay where there are more brokers than replicas', () => {
  const image = grown(cluster(5, [[5], [4, 5], [1, 2, 3]]))
  const [first, second, third] = replicas(image)
  expect(first).toHaveLength(3)
  expect(first).toContain(5)
  expect(second).toEqual(expect.arrayContaining([4, 5]))
  expect(new Set(second).size).toBe(3)
  expect(third).toEqual([1, 2, 3])
})

test('nothing grows where the operator chose the factor, or the metadata.version is the first', () => {
  expect(growInternalTopics(cluster(3, [[1]]), settings)).toEqual([])
  const first = cluster(3, [[1]], { type: 'FeatureLevel', name: 'metadata.version', level: 1 })
  expect(growInternalTopics(first, growing)).toEqual([])
})
