import { describe, expect, test } from 'vitest'
import { apis } from '../../../src/protocol/index.ts'
import { brokerImage, harness } from './harness.ts'

describe('InitProducerId', () => {
  const body = { transactionalId: null, transactionTimeoutMs: 1000 }

  test.each([0, 1, 2, 3, 4, 5])('%i gives each producer an id of its own with epoch 0', async (version) => {
    const { ask } = harness()
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(apis.InitProducerId, version, body)))
    expect(answers.every(({ errorCode, producerEpoch }) => errorCode === 0 && producerEpoch === 0)).toBe(true)
    expect(new Set(answers.map(({ producerId }) => producerId)).size).toBe(8)
  })

  test.each([
    [5, -1],
    [-1, 5],
  ])('id %i with epoch %i is half of a current id and refused', async (producerId, producerEpoch) => {
    const { ask } = harness()
    const body = { transactionalId: null, transactionTimeoutMs: 1000, producerId, producerEpoch }
    expect(await ask(apis.InitProducerId, 3, body)).toMatchObject({ errorCode: 42, producerId: -1, producerEpoch: -1 })
  })

  test('a current id in the request changes nothing', async () => {
    const { ask } = harness()
    const response = await ask(apis.InitProducerId, 3, { ...body, producerId: 5, producerEpoch: 7 })
    expect(response).toMatchObject({ errorCode: 0, producerId: 1000, producerEpoch: 0 })
  })

  test('a current id without its epoch, or the reverse, is refused', async () => {
    const { ask } = harness()
    for (const half of [{ producerId: 5 }, { producerEpoch: 7 }]) {
      const response = await ask(apis.InitProducerId, 3, { ...body, ...half })
      expect(response).toMatchObject({ errorCode: 42, producerId: -1, producerEpoch: -1 })
    }
  })

  test('a transactional id is refused for good', async () => {
    const { ask } = harness()
    const code = async (transactionalId: string) =>
      (await ask(apis.InitProducerId, 4, { ...body, transactionalId })).errorCode
    expect(await code('t')).toBe(53)
    expect(await code('')).toBe(42)
  })

  test('without a controller clients are told to ask again', async () => {
    const { ask, coordination } = harness()
    coordination.fault = new Error('No controller')
    expect(await ask(apis.InitProducerId, 4, body)).toMatchObject({ errorCode: 14, producerId: -1 })
    coordination.fault = undefined
    expect(await ask(apis.InitProducerId, 4, body)).toMatchObject({ errorCode: 0, producerId: 1000 })
  })
})

describe('DescribeConfigs', () => {
  const resource = (resourceType: number, resourceName: string, configurationKeys: string[] | null = null) => ({
    resources: [{ resourceType, resourceName, configurationKeys }],
    includeSynonyms: true,
  })

  test.each([1, 2, 3, 4])('%i tells every setting of a topic with where it comes from', async (version) => {
    const { ask, coordination } = harness()
    coordination.addTopic('orders')
    coordination.topicConfigs.set('orders', new Map([['retention.ms', '1000']]))
    const { results } = await ask(apis.DescribeConfigs, version, resource(2, 'orders'))
    expect(results).toMatchObject([{ errorCode: 0, resourceType: 2, resourceName: 'orders' }])
    const { configs } = results[0]!
    expect(configs.length).toBeGreaterThan(25)
    expect(configs).toContainEqual(
      expect.objectContaining({ name: 'retention.ms', value: '1000', configSource: 1, readOnly: false }),
    )
    expect(configs).toContainEqual(
      expect.objectContaining({ name: 'max.message.bytes', value: '1048588', configSource: 5 }),
    )
  })

  test('it tells the keys asked for, documentation and synonyms on demand', async () => {
    const { ask, coordination } = harness()
    coordination.addTopic('orders')
    const asked = resource(2, 'orders', ['cleanup.policy', 'no.such.key'])
    const all = await ask(apis.DescribeConfigs, 3, { ...asked, includeDocumentation: true })
    expect(all.results[0]!.configs).toMatchObject([{ name: 'cleanup.policy', configType: 7 }])
    expect(all.results[0]!.configs[0]!.documentation).not.toBeNull()
    expect(all.results[0]!.configs[0]!.synonyms).not.toEqual([])
    const bare = await ask(apis.DescribeConfigs, 3, { ...asked, includeSynonyms: false })
    expect(bare.results[0]!.configs[0]).toMatchObject({ documentation: null, synonyms: [] })
  })

  test('an empty list of keys is all keys', async () => {
    const { ask, coordination } = harness()
    coordination.addTopic('orders')
    const count = async (keys: string[] | null) =>
      (await ask(apis.DescribeConfigs, 4, resource(2, 'orders', keys))).results[0]!.configs.length
    expect(await count([])).toBe(await count(null))
  })

  test('it tells this broker’s settings', async () => {
    const { ask } = harness({ overrides: { 'num.partitions': '5' } })
    const { results } = await ask(apis.DescribeConfigs, 4, resource(4, '1', ['num.partitions']))
    expect(results[0]!.configs).toMatchObject([{ name: 'num.partitions', value: '5', configSource: 4, readOnly: true }])
    expect((await ask(apis.DescribeConfigs, 4, resource(4, ''))).results).toMatchObject([{ errorCode: 0, configs: [] }])
  })

  test('it tells what was set while the broker runs, of this one and of all', async () => {
    const { ask, coordination } = harness({ overrides: { 'message.max.bytes': '7' } })
    coordination.addTopic('orders')
    coordination.brokerConfigs.set('1', new Map([['log.retention.ms', '7777']]))
    coordination.brokerConfigs.set('', new Map([['message.max.bytes', '8888']]))
    const of = async (type: number, name: string, keys: string[] | null) =>
      (await ask(apis.DescribeConfigs, 4, resource(type, name, keys))).results[0]!.configs
    expect(await of(4, '1', ['log.retention.ms'])).toMatchObject([{ value: '7777', configSource: 2, readOnly: false }])
    expect(await of(4, '', null)).toMatchObject([
      { name: 'message.max.bytes', value: '8888', configSource: 3, synonyms: [{ value: '8888', source: 3 }] },
    ])
    expect(await of(2, 'orders', ['max.message.bytes'])).toMatchObject([
      {
        value: '8888',
        configSource: 3,
        synonyms: [
          { name: 'message.max.bytes', value: '8888', source: 3 },
          { name: 'message.max.bytes', value: '7', source: 4 },
          { name: 'message.max.bytes', value: '1048588', source: 5 },
        ],
      },
    ])
  })

  test('no keys are all keys, and a resource that stands twice is told with the keys of both', async () => {
    const { ask, coordination } = harness()
    coordination.addTopic('orders')
    const [all, none] = [resource(2, 'orders'), resource(2, 'orders', [])]
    const count = async (body: typeof all) => (await ask(apis.DescribeConfigs, 4, body)).results[0]!.configs.length
    expect(await count(none)).toBe(await count(all))
    const keys = [['retention.ms'], ['segment.ms', 'retention.ms']]
    const twice = keys.flatMap((each) => resource(2, 'orders', each).resources)
    const { results } = await ask(apis.DescribeConfigs, 4, { resources: twice })
    expect(results).toHaveLength(1)
    expect(results[0]!.configs.map(({ name }) => name)).toEqual(['retention.ms', 'segment.ms'])
    expect(await count({ ...all, resources: [...twice, ...all.resources] })).toBe(await count(all))
  })

  test('where Kafka lists no place, the source is the default whatever it is', async () => {
    const { ask, coordination } = harness({ overrides: { 'log.retention.hours': '1' } })
    coordination.addTopic('orders')
    const { results } = await ask(apis.DescribeConfigs, 4, resource(2, 'orders', ['retention.ms']))
    expect(results[0]!.configs).toMatchObject([{ value: '3600000', configSource: 5, synonyms: [] }])
  })

  test.each([
    ['the loggers of the broker', 8, '1'],
    ['client metrics', 16, 'any'],
    ['a group', 32, 'any'],
  ])('%s: described, without any setting', async (_name, type, name) => {
    const { ask } = harness()
    expect((await ask(apis.DescribeConfigs, 4, resource(type, name))).results).toMatchObject([
      { errorCode: 0, resourceType: type, resourceName: name, configs: [] },
    ])
  })

  test.each([
    ['an unknown topic', 2, 'none', 3],
    ['a broker whose name is no number', 4, 'one', 42],
    ['an illegal topic name', 2, 'a b', 17],
    ['another broker', 4, '2', 42],
    ['a kind of resource that is none', 3, '1', 42],
    ['the loggers of another broker', 8, '2', 42],
    ['a group without a name', 32, '', 42],
    ['client metrics without a name', 16, '', 42],
  ])('%s is refused', async (_name, type, name, errorCode) => {
    const { ask } = harness()
    expect((await ask(apis.DescribeConfigs, 4, resource(type, name))).results).toMatchObject([
      { errorCode, resourceType: type, resourceName: name, configs: [] },
    ])
  })
})

describe('DescribeCluster', () => {
  const body = { includeClusterAuthorizedOperations: true }

  test.each([0, 1, 2])('%i tells the brokers', async (version) => {
    const { ask, coordination } = harness()
    coordination.brokers.push(brokerImage(2, { fenced: true }))
    expect(await ask(apis.DescribeCluster, version, body)).toMatchObject({
      errorCode: 0,
      clusterId: 'CLUSTERCLUSTERCLUSTERC',
      controllerId: 1,
      brokers: [{ brokerId: 1, host: 'broker1', port: 9092, rack: null }],
      clusterAuthorizedOperations: 8096,
    })
  })

  test('fenced brokers are told on demand', async () => {
    const { ask, coordination } = harness()
    coordination.brokers.push(brokerImage(2, { fenced: true }))
    const { brokers } = await ask(apis.DescribeCluster, 2, { ...body, includeFencedBrokers: true })
    expect(brokers.map(({ brokerId, isFenced }) => [brokerId, isFenced])).toEqual([
      [1, false],
      [2, true],
    ])
  })

  test.each([
    [2, 114],
    [3, 115],
  ])('endpoint type %i is error %i', async (endpointType, errorCode) => {
    const { ask } = harness()
    expect(await ask(apis.DescribeCluster, 1, { ...body, endpointType })).toMatchObject({ errorCode, brokers: [] })
  })
})
