import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  configSource,
  configType,
  describeBrokerConfig,
  describeTopicConfig,
  isThrottledReplica,
  parseConfig,
  resolveTopicConfig,
  topicKeys,
  validateTopicOverrides,
} from '../../../src/config/index.ts'

const config = parseConfig()
const overrides = (values: Record<string, string>) => new Map(Object.entries(values))
const describedTopic = (values: Record<string, string>, name: string, of = config) =>
  describeTopicConfig(overrides(values), of).find((entry) => entry.name === name)

describe('validateTopicOverrides', () => {
  test('takes keys of topics with values in their range', () => {
    const good = {
      'retention.ms': '-1',
      'cleanup.policy': 'compact,delete',
      'segment.bytes': '1048576',
      'flush.ms': '0',
    }
    expect(validateTopicOverrides(overrides(good))).toBeUndefined()
    expect(validateTopicOverrides(overrides({ 'internal.segment.bytes': '100' }))).toBeUndefined()
    expect(validateTopicOverrides(new Map())).toBeUndefined()
  })

  test('names an unknown key and the nearest one', () => {
    expect(validateTopicOverrides(overrides({ 'retention.sm': '1' }))).toEqual({
      key: 'retention.sm',
      message: 'Unknown topic config retention.sm; did you mean retention.ms?',
    })
  })

  test('says what is allowed instead of a bad value', () => {
    expect(validateTopicOverrides(overrides({ 'segment.bytes': '12' }))?.message).toBe(
      'segment.bytes=12: allowed is a whole number from 1048576 to 2147483647',
    )
    expect(validateTopicOverrides(overrides({ 'cleanup.policy': 'shred' }))?.key).toBe('cleanup.policy')
    expect(validateTopicOverrides(new Map([['retention.ms', null]]))?.message).toContain('Null is no value')
    expect(validateTopicOverrides(overrides({ 'remote.storage.enable': 'true' }))?.message).toContain('not built')
    expect(
      validateTopicOverrides(overrides({ 'min.compaction.lag.ms': '5', 'max.compaction.lag.ms': '4' }))?.message,
    ).toContain('at most max.compaction.lag.ms')
  })

  test('answers any text with a fault or with nothing, and what it lets pass can be resolved', () => {
    const name = fc.oneof(fc.constantFrom(...Object.values(topicKeys).map((key) => key.name)), fc.string())
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.integer().map(String),
      fc.constantFrom('true', 'delete', ''),
    )
    fc.assert(
      fc.property(fc.dictionary(name, text), (values) => {
        const given = overrides(values)
        const fault = validateTopicOverrides(given)
        if (fault !== undefined) expect(fault.message).not.toBe('')
        else {
          resolveTopicConfig(given, config)
          describeTopicConfig(given, config)
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('resolveTopicConfig', () => {
  test("has the topic's value, or else the broker's, or else the default", () => {
    const broker = parseConfig({ file: 'log.segment.bytes=2097152\nmin.insync.replicas=2' })
    const topic = resolveTopicConfig(overrides({ 'min.insync.replicas': '3' }), broker)
    expect(topic).toMatchObject({ minInSyncReplicas: 3, segmentBytes: 2_097_152, maxMessageBytes: 1_048_588 })
    expect(resolveTopicConfig(new Map(), broker)).toBe(broker.topicDefaults)
    expect(Object.isFrozen(topic)).toBe(true)
  })

  test('syncs every record by default, and in the background when the key says so', () => {
    expect(config.topicDefaults.flushMessages).toBe(1)
    const background = overrides({ 'flush.messages': '9223372036854775807' })
    expect(resolveTopicConfig(background, config).flushMessages).toBe(Number.POSITIVE_INFINITY)
  })

  test('reads -1 as no limit', () => {
    const topic = resolveTopicConfig(overrides({ 'retention.ms': '-1', 'retention.bytes': '-1' }), config)
    expect(topic.retentionMs).toBe(Number.POSITIVE_INFINITY)
    expect(topic.retentionBytes).toBe(Number.POSITIVE_INFINITY)
  })

  test('tells what becomes of old data', () => {
    const policy = (text: string) => resolveTopicConfig(overrides({ 'cleanup.policy': text }), config).cleanupPolicy
    expect(policy('compact')).toEqual({ delete: false, compact: true })
    expect(policy('delete, compact')).toEqual({ delete: true, compact: true })
    expect(policy('')).toEqual({ delete: false, compact: false })
  })

  test('lets internal.segment.bytes win', () => {
    expect(resolveTopicConfig(overrides({ 'internal.segment.bytes': '100' }), config).segmentBytes).toBe(100)
  })
})

describe('describeTopicConfig', () => {
  test('lists the 33 settings that Kafka lists, sorted', () => {
    const names = describeTopicConfig(new Map(), config).map((entry) => entry.name)
    expect(names).toHaveLength(33)
    expect(names).toEqual(names.toSorted())
    expect(names).not.toContain('internal.segment.bytes')
  })

  test("lists synonyms from the topic's value to the default, without those that have none", () => {
    const broker = parseConfig({ file: 'log.retention.minutes=5' })
    expect(describedTopic({ 'retention.ms': '1000' }, 'retention.ms', broker)).toMatchObject({
      value: '1000',
      source: configSource.topic,
      type: configType.LONG,
      readOnly: false,
      sensitive: false,
      synonyms: [{ name: 'retention.ms', value: '1000', source: 1 }],
    })
    const ms = parseConfig({ file: 'log.retention.minutes=5\nlog.retention.ms=7' })
    expect(describedTopic({}, 'retention.ms', ms)).toMatchObject({
      value: '7',
      source: configSource.staticBroker,
      synonyms: [
        { name: 'log.retention.ms', value: '7', source: 4 },
        { name: 'log.retention.minutes', value: '5', source: 4 },
        { name: 'log.retention.hours', value: '168', source: 5 },
      ],
    })
    expect(describedTopic({}, 'retention.ms', broker)).toMatchObject({
      value: '300000',
      source: configSource.staticBroker,
      synonyms: [],
    })
    expect(describedTopic({}, 'retention.ms')).toMatchObject({ value: '604800000', source: configSource.default })
  })

  test('keeps every digit of a LONG', () => {
    const text = '9223372036854775806'
    expect(describedTopic({ 'retention.bytes': text }, 'retention.bytes')?.value).toBe(text)
    expect(describedTopic({}, 'flush.ms')?.value).toBe('9223372036854775807')
  })

  test('has a default where the broker has no name for the setting', () => {
    expect(describedTopic({}, 'remote.storage.enable')).toMatchObject({ value: 'false', source: 5, synonyms: [] })
    const set = describedTopic(
      { 'leader.replication.throttled.replicas': '*' },
      'leader.replication.throttled.replicas',
    )
    expect(set).toMatchObject({ value: '*', source: 1 })
  })
})

test('throttled replicas are pairs of partition and broker, or * alone', () => {
  const key = 'follower.replication.throttled.replicas'
  const isTaken = (text: string) => validateTopicOverrides(new Map([[key, text]])) === undefined
  expect(['', '*', ' * ', '0:1', '0:1,2:3', '0:1, 0:2'].filter((text) => !isTaken(text))).toEqual([])
  expect(['**', '*,0:1', '0', '0:', ':1', '0:1:2', '0:a', '-1:1', '0:1,'].filter(isTaken)).toEqual([])
  const lists = [[], ['*'], ['0:1', '10:2']]
  expect(lists.map((list) => [isThrottledReplica(list, 0, 1), isThrottledReplica(list, 10, 2)])).toEqual([
    [false, false],
    [true, true],
    [true, true],
  ])
  expect(isThrottledReplica(['0:1', '10:2'], 0, 2)).toBe(false)
  expect(isThrottledReplica(['0:1', '10:2'], 1, 0)).toBe(false)
})

describe('describeBrokerConfig', () => {
  test('lists each setting with its source, sorted, and none that is internal', () => {
    const described = describeBrokerConfig(parseConfig({ file: 'num.partitions=4' }))
    const names = described.map((entry) => entry.name)
    expect(names).toEqual(names.toSorted())
    expect(names).not.toContain('log.initial.task.delay.ms')
    expect(described.find((entry) => entry.name === 'num.partitions')).toMatchObject({
      value: '4',
      source: configSource.staticBroker,
      synonyms: [
        { name: 'num.partitions', value: '4', source: 4 },
        { name: 'num.partitions', value: '1', source: 5 },
      ],
    })
    expect(described.find((entry) => entry.name === 'broker.rack')).toMatchObject({
      value: null,
      source: 5,
      synonyms: [],
    })
  })
})
