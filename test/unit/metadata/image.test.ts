import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AssertionError } from '../../../src/base/index.ts'
import {
  decodeRecords,
  emptyImage,
  encodeRecords,
  imageOfSnapshot,
  type MetadataImage,
  snapshotDelta,
  snapshotRecords,
} from '../../../src/metadata/index.ts'
import {
  brokerEpoch,
  brokerId,
  brokerIds,
  describeDelta,
  describeImage,
  draws,
  imageOf,
  registration,
  replayDraws,
  step,
  topicRecords,
  uuid,
} from './support.ts'

describe('the image', () => {
  test('is the same after its own snapshot', () => {
    fc.assert(
      fc.property(draws, (list) => {
        const { images } = replayDraws(list)
        const image = images.at(-1) as MetadataImage
        const bytes = encodeRecords([...snapshotRecords(image)])
        const again = imageOfSnapshot(decodeRecords(bytes), image.index, image.term)
        expect(describeImage(again)).toEqual(describeImage(image))
        expect(describeDelta(snapshotDelta(image, again))).toMatchObject({
          isSnapshot: true,
          changedTopics: {},
          deletedTopics: [],
          changedBrokers: [],
          changedConfigs: { topics: [], brokers: [] },
        })
      }),
      { numRuns: 300 },
    )
  })

  test('is the same whether records come one at a time or in one step, and no step changes an earlier image', () => {
    fc.assert(
      fc.property(draws, fc.nat(120), (list, cut) => {
        const { records, images } = replayDraws(list)
        const middle = Math.min(cut, records.length)
        const before = images.map(describeImage)
        const { image, delta } = step(images[middle]!, records.slice(middle), records.length)
        const last = images.at(-1) as MetadataImage
        expect(describeImage(image)).toEqual({ ...describeImage(last), term: image.term })
        expect(delta.base).toBe(images[middle])
        expect(images.map(describeImage)).toEqual(before)
      }),
      { numRuns: 200 },
    )
  })

  test('a delta says what differs between its base and the image, and nothing that does not', () => {
    fc.assert(
      fc.property(draws, fc.nat(120), (list, cut) => {
        const { records, images } = replayDraws(list)
        const middle = Math.min(cut, records.length)
        const base = images[middle]!
        const { image, delta } = step(base, records.slice(middle))
        for (const topic of image.topics.all()) {
          const changed = delta.changedTopics.get(topic.topicId)
          const before = base.topics.byId(topic.topicId)
          expect(changed === undefined).toBe(before === topic)
          for (const partition of topic.partitions) {
            const isSame = before?.partitions[partition.partition] === partition
            expect(changed?.partitions.has(partition.partition) ?? false).toBe(!isSame)
          }
        }
        const gone = [...base.topics.all()].filter((topic) => image.topics.byId(topic.topicId) === undefined)
        expect(new Set(delta.deletedTopics.values())).toEqual(new Set(gone))
        for (const { topic } of delta.changedTopics.values()) expect(image.topics.byId(topic.topicId)).toBe(topic)
        for (let id = 0; id < 5; id++) {
          const isSame = base.cluster.broker(brokerId(id)) === image.cluster.broker(brokerId(id))
          expect(isSame || delta.changedBrokers.has(brokerId(id))).toBe(true)
        }
      }),
      { numRuns: 200 },
    )
  })

  test('shares what did not change', () => {
    const base = imageOf(
      registration(1),
      ...topicRecords('orders', uuid(1), [[1], [1]]),
      ...topicRecords('other', uuid(2), [[1]]),
    )
    const { image } = step(base, [{ type: 'PartitionChange', topicId: uuid(1), partition: 1, leader: brokerId(1) }])
    expect(image.topics.byName('other')).toBe(base.topics.byName('other'))
    expect(image.topics.byName('orders')?.partitions[0]).toBe(base.topics.byName('orders')?.partitions[0])
    expect(image.cluster).toBe(base.cluster)
    expect(image.configs).toBe(base.configs)
    expect(step(base, [{ type: 'NoOp' }]).image.topics).toBe(base.topics)
  })

  test('one change among 20,000 topics takes far less than a copy of them', () => {
    const records = []
    for (let i = 0; i < 20_000; i++) records.push(...topicRecords(`topic-${i}`, uuid(i), [[1]]))
    let image = imageOf(registration(1), ...records)
    const changes = 2000
    const started = performance.now()
    for (let i = 0; i < changes; i++) {
      image = step(image, [{ type: 'PartitionChange', topicId: uuid(i), partition: 0, leader: brokerId(1) }]).image
    }
    const perChangeMs = (performance.now() - started) / changes
    const copyStarted = performance.now()
    for (let i = 0; i < 10; i++) new Map([...image.topics.all()].map((topic) => [topic.topicId, topic]))
    const perCopyMs = (performance.now() - copyStarted) / 10
    expect(perChangeMs).toBeLessThan(perCopyMs)
  })

  test('a change of a leader moves both epochs, also to the same leader; a change of the ISR only one', () => {
    const base = imageOf(registration(1), ...topicRecords('orders', uuid(1), [[1, 2]]))
    const led = step(base, [{ type: 'PartitionChange', topicId: uuid(1), partition: 0, leader: brokerId(1) }]).image
    expect(led.topics.byName('orders')?.partitions[0]).toMatchObject({ leaderEpoch: 1, partitionEpoch: 1, leader: 1 })
    const shrunk = step(led, [{ type: 'PartitionChange', topicId: uuid(1), partition: 0, isr: brokerIds(1) }]).image
    expect(shrunk.topics.byName('orders')?.partitions[0]).toMatchObject({ leaderEpoch: 1, partitionEpoch: 2, isr: [1] })
  })

  test('a topic that is made and removed in one step is in neither the delta nor the image', () => {
    const { image, delta } = step(emptyImage, [
      ...topicRecords('a.b', uuid(1), [[1]]),
      { type: 'Config', resourceType: 'topic', resourceName: 'a.b', key: 'k', value: 'v' },
      { type: 'RemoveTopic', topicId: uuid(1) },
    ])
    expect(describeDelta(delta)).toMatchObject({ changedTopics: {}, deletedTopics: [] })
    expect(describeImage(image)).toEqual({ ...describeImage(emptyImage), index: 1, term: 1 })
  })

  test('a topic that is replaced under its name is deleted and new', () => {
    const base = imageOf(...topicRecords('orders', uuid(1), [[1], [1]]))
    const { image, delta } = step(base, [
      { type: 'RemoveTopic', topicId: uuid(1) },
      ...topicRecords('orders', uuid(2), [[1]]),
    ])
    expect([...delta.deletedTopics.keys()]).toEqual([uuid(1)])
    expect([...delta.changedTopics.keys()]).toEqual([uuid(2)])
    expect(image.topics.byName('orders')?.topicId).toBe(uuid(2))
    expect(image.topics.size).toBe(1)
  })

  test('finds the topics on a broker, and those that it leads', () => {
    const image = imageOf(
      ...topicRecords('one', uuid(1), [
        [1, 2],
        [2, 3],
      ]),
      ...topicRecords('two', uuid(2), [[3]]),
    )
    const names = (id: number) => [...image.topics.onBroker(brokerId(id))].map((topic) => topic.name)
    expect(names(2)).toEqual(['one'])
    expect(new Set(names(3))).toEqual(new Set(['one', 'two']))
    expect(names(4)).toEqual([])
    expect(image.topics.ledBy(brokerId(2)).map(({ topic, partition }) => [topic.name, partition.partition])).toEqual([
      ['one', 1],
    ])
  })

  test('a new run of a broker is not in the controlled shutdown of the run before', () => {
    const going = { type: 'BrokerRegistrationChange', brokerId: brokerId(1), brokerEpoch: brokerEpoch(1) } as const
    const base = imageOf(registration(1), { ...going, inControlledShutdown: true })
    expect(step(base, [registration(1)]).image.cluster.broker(brokerId(1))?.inControlledShutdown).toBe(true)
    const next = step(base, [registration(1, { epoch: 2 })]).image
    expect(next.cluster.broker(brokerId(1))?.inControlledShutdown).toBe(false)
  })

  test.each([
    ['a topic id twice', [...topicRecords('a', uuid(1), [[1]]), ...topicRecords('b', uuid(1), [[1]])]],
    ['a topic name twice', [...topicRecords('a', uuid(1), [[1]]), ...topicRecords('a', uuid(2), [[1]])]],
    ['a partition of no topic', [{ type: 'PartitionChange', topicId: uuid(1), partition: 0 }]],
    ['a topic that is not there', [{ type: 'RemoveTopic', topicId: uuid(1) }]],
    [
      'a run that is not registered',
      [{ type: 'UnregisterBroker', brokerId: brokerId(1), brokerEpoch: brokerEpoch(1) }],
    ],
    ['an older broker epoch', [registration(1, { epoch: 5 }), registration(1, { epoch: 4 })]],
    [
      'a second cluster id',
      [
        { type: 'ClusterId', clusterId: 'a' },
        { type: 'ClusterId', clusterId: 'b' },
      ],
    ],
  ] as const)('a record that contradicts the image is a bug: %s', (_what, records) => {
    expect(() => step(emptyImage, records)).toThrow(AssertionError)
  })
})
