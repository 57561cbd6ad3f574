import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type AnyKey,
  brokerKeys,
  configSource,
  DynamicConfig,
  describeBrokerConfig,
  describeClusterDefaults,
  describeTopicConfig,
  listDefaultOf,
  parseConfig,
  resolveTopicConfig,
  validateDynamicConfig,
} from '../../../src/config/index.ts'

const texts = (values: Readonly<Record<string, string>>) => new Map(Object.entries(values))

/** The settings of node 1 with this file, and these dynamic settings of its own and of all brokers. */
function configWith(file: string, own: Record<string, string>, all: Record<string, string> = {}) {
  const sets: Record<string, ReadonlyMap<string, string>> = { '1': texts(own), '': texts(all) }
  return new DynamicConfig(parseConfig({ file })).at({ of: (_type, name) => sets[name] ?? new Map() })
}

describe('DynamicConfig', () => {
  test("a broker's own setting wins over that of the cluster, and both over the file", () => {
    const file = 'message.max.bytes=1'
    const key = 'message.max.bytes'
    const value = (own: Record<string, string>, all: Record<string, string>) =>
      configWith(file, own, all).values.messageMaxBytes
    expect(value({}, {})).toBe(1)
    expect(value({}, { [key]: '2' })).toBe(2)
    expect(value({ [key]: '3' }, { [key]: '2' })).toBe(3)
    expect(value({ [key]: '3' }, {})).toBe(3)
  })

  test('topics inherit it, in the unit that counts most', () => {
    const config = configWith('log.retention.hours=1', {}, { 'log.retention.ms': '77', 'min.insync.replicas': '2' })
    expect(config.topicDefaults).toMatchObject({ retentionMs: 77, minInSyncReplicas: 2 })
    expect(resolveTopicConfig(texts({ 'retention.ms': '5' }), config)).toMatchObject({
      retentionMs: 5,
      minInSyncReplicas: 2,
    })
    expect(Object.isFrozen(config)).toBe(true)
  })

  test('gives the same object as long as the metadata does', () => {
    const own = texts({ 'log.retention.ms': '1' })
    let all = texts({})
    const dynamic = new DynamicConfig(parseConfig())
    const configs = { of: (_type: 'broker', name: string) => (name === '1' ? own : name === '' ? all : new Map()) }
    const first = dynamic.at(configs)
    expect(dynamic.at(configs)).toBe(first)
    all = texts({ 'log.retention.bytes': '5' })
    expect(dynamic.at(configs).topicDefaults).toMatchObject({ retentionMs: 1, retentionBytes: 5 })
  })

  test("leaves out what it can't read, and keys that are read at the start only", () => {
    const config = configWith('', { 'log.retention.ms': 'x', 'num.partitions': '9', 'of.a.later.version': '1' })
    expect(config.values.numPartitions).toBe(1)
    expect(config.topicDefaults.retentionMs).toBe(604_800_000)
  })
})

describe('validateDynamicConfig', () => {
  test.each<[string, string, RegExp]>([
    ['num.partitions', '2', /Cannot update num.partitions dynamically/],
    ['listeners', 'PLAINTEXT://:1', /Cannot update listeners dynamically/],
    ['background.threads', '2', /Rookery does not act on background.threads/],
    ['log.retention.sm', '2', /Unknown broker config log.retention.sm; did you mean log.retention.ms\?/],
    ['retention.ms', '2', /Unknown broker config retention.ms/],
    ['log.retention.ms', 'x', /log.retention.ms=x: allowed is a whole number/],
    ['log.retention.ms', '-5', /allowed is/],
  ])('%s=%s is refused', (name, text, message) => {
    expect(validateDynamicConfig(texts({ 'message.max.bytes': '1', [name]: text }))?.message).toMatch(message)
  })

  test('takes every key that is dynamic, and what it takes can be used and described', () => {
    const dynamic = Object.values<AnyKey>(brokerKeys).filter((key) => key.dynamic)
    expect(dynamic.length).toBeGreaterThan(25)
    const value = fc.oneof(fc.constantFrom('true', 'delete', 'gzip', 'CreateTime', '0.5', ''), fc.integer().map(String))
    const names = fc.constantFrom(...dynamic.map((key) => key.name))
    fc.assert(
      fc.property(fc.dictionary(names, value), fc.dictionary(names, value), (own, all) => {
        if (validateDynamicConfig(texts(own)) !== undefined || validateDynamicConfig(texts(all)) !== undefined) return
        const config = configWith('', own, all)
        for (const [name, text] of Object.entries({ ...all, ...own })) {
          expect(config.entries.get(name)?.text).toBe(brokerKeyOf(name)?.parse(text)?.text)
        }
        describeTopicConfig(new Map(), config)
      }),
      { numRuns: 300 },
    )
  })
})

function brokerKeyOf(name: string): AnyKey | undefined {
  return Object.values<AnyKey>(brokerKeys).find((key) => key.name === name)
}

describe('what is described', () => {
  const config = configWith(
    'log.retention.hours=2\nmessage.max.bytes=9',
    { 'log.retention.ms': '7777' },
    { 'log.retention.ms': '8888', 'message.max.bytes': '5' },
  )
  const of = (list: ReturnType<typeof describeBrokerConfig>, name: string) => list.find((each) => each.name === name)

  test('the rates of a throttled reassignment are listed only where they were set', () => {
    const rate = 'leader.replication.throttled.rate'
    expect(validateDynamicConfig(texts({ [rate]: '1000', 'follower.replication.throttled.rate': '0' }))).toBeUndefined()
    expect(validateDynamicConfig(texts({ [rate]: '-1' }))).toBeDefined()
    expect(of(describeBrokerConfig(configWith('', {})), rate)).toBeUndefined()
    const set = configWith('', { [rate]: '1000' })
    expect(set.values.leaderReplicationThrottledRate).toBe(1000)
    expect(of(describeBrokerConfig(set), rate)).toMatchObject({ value: '1000' })
    expect(of(describeClusterDefaults(configWith('', {}, { [rate]: '5' })), rate)).toMatchObject({ value: '5' })
  })

  test('of a topic: every place, from the one that counts on', () => {
    const described = describeTopicConfig(new Map(), config)
    expect(of(described, 'retention.ms')).toMatchObject({
      value: '7777',
      source: configSource.dynamicBroker,
      synonyms: [
        { name: 'log.retention.ms', value: '7777', source: 2 },
        { name: 'log.retention.ms', value: '8888', source: 3 },
        { name: 'log.retention.hours', value: '2', source: 4 },
        { name: 'log.retention.hours', value: '168', source: 5 },
      ],
    })
    expect(of(described, 'max.message.bytes')).toMatchObject({ value: '5', source: configSource.clusterDefault })
  })

  test('of a broker: a key lists other names only behind its own', () => {
    const described = describeBrokerConfig(config)
    expect(of(described, 'log.retention.ms')?.synonyms).toHaveLength(4)
    expect(of(described, 'log.retention.ms')).toMatchObject({ value: '7777', source: 2, readOnly: false })
    expect(of(described, 'log.retention.hours')).toMatchObject({
      value: '2',
      source: 4,
      readOnly: true,
      synonyms: [
        { name: 'log.retention.hours', value: '2', source: 4 },
        { name: 'log.retention.hours', value: '168', source: 5 },
      ],
    })
    expect(of(described, 'log.retention.minutes')).toMatchObject({ value: null, source: 5, synonyms: [] })
  })

  test('of the cluster: what is set for all brokers', () => {
    expect(describeClusterDefaults(config)).toMatchObject([
      { name: 'log.retention.ms', value: '8888', source: 3, synonyms: [{ value: '8888', source: 3 }] },
      { name: 'message.max.bytes', value: '5', source: 3 },
    ])
    expect(describeClusterDefaults(parseConfig())).toEqual([])
  })
})

test('listDefaultOf() is for lists only', () => {
  expect(listDefaultOf('topic', 'cleanup.policy')).toEqual(['delete'])
  expect(listDefaultOf('topic', 'leader.replication.throttled.replicas')).toEqual([])
  expect(listDefaultOf('broker', 'log.cleanup.policy')).toEqual(['delete'])
  for (const name of ['retention.ms', 'log.cleanup.policy', 'nope'])
    expect(listDefaultOf('topic', name)).toBeUndefined()
})
