import { describe, expect, test } from 'vitest'
import { zeroUuid } from '../../../src/base/index.ts'
import type { CreateTopicRefusal } from '../../../src/coordination/index.ts'
import { apis } from '../../../src/protocol/index.ts'
import { msOf, shortestMs } from '../../support/timing.ts'
import { harness, topicId } from './harness.ts'

function topic(name: string, changes: object = {}) {
  return { name, numPartitions: 3, replicationFactor: 1, assignments: [], configs: [], ...changes }
}

describe('CreateTopics', () => {
  test.each([2, 3, 4, 5, 6, 7])('%i creates and answers', async (version) => {
    const { ask, coordination } = harness()
    const configs = [{ name: 'retention.ms', value: '1000' }]
    const { topics } = await ask(apis.CreateTopics, version, { topics: [topic('orders', { configs })] })
    expect(coordination.created).toEqual([
      {
        name: 'orders',
        partitionCount: 3,
        replicationFactor: 1,
        configs: new Map([['retention.ms', '1000']]),
      },
    ])
    expect(topics).toMatchObject([{ name: 'orders', errorCode: 0, errorMessage: null }])
    if (version >= 5) {
      expect(topics[0]).toMatchObject({ numPartitions: 3, replicationFactor: 1 })
      expect(topics[0]!.configs).toContainEqual(
        expect.objectContaining({ name: 'retention.ms', value: '1000', configSource: 1 }),
      )
      expect(topics[0]!.configs!.length).toBeGreaterThan(25)
    }
    expect(topics[0]!.topicId).toBe(version >= 7 ? coordination.topics.get('orders')!.topicId : zeroUuid)
  })

  const reasons: [CreateTopicRefusal, number][] = [
    ['topic-exists', 36],
    ['invalid-topic', 17],
    ['invalid-partitions', 37],
    ['invalid-replication-factor', 38],
    ['invalid-replica-assignment', 39],
    ['invalid-config', 40],
    ['invalid-request', 42],
  ]

  test.each(reasons)('%s is error %i, for its topic only', async (reason, errorCode) => {
    const { ask, coordination } = harness()
    coordination.refuseCreation = ({ name }) => (name === 'b' ? { ok: false, name, reason, message: 'Why' } : undefined)
    const { topics } = await ask(apis.CreateTopics, 7, { topics: [topic('a'), topic('b')] })
    expect(topics).toMatchObject([
      { name: 'a', errorCode: 0 },
      { name: 'b', errorCode, errorMessage: 'Why' },
    ])
  })

  test('a partition that stands twice in an assignment is refused', async () => {
    const { ask, coordination } = harness()
    const assignments = [0, 1, 0].map((partitionIndex) => ({ partitionIndex, brokerIds: [1] }))
    const asked = topic('a', { numPartitions: -1, replicationFactor: -1, assignments })
    expect((await ask(apis.CreateTopics, 5, { topics: [asked] })).topics).toMatchObject([{ name: 'a', errorCode: 39 }])
    expect(coordination.created).toEqual([])
  })

  test('a name that stands twice is refused once, the others are created', async () => {
    const { ask, coordination } = harness()
    const { topics } = await ask(apis.CreateTopics, 5, { topics: [topic('a'), topic('b'), topic('a')] })
    expect(topics.map(({ name, errorCode }) => [name, errorCode])).toEqual([
      ['b', 0],
      ['a', 42],
    ])
    expect(coordination.created.map(({ name }) => name)).toEqual(['b'])
  })

  test('assigned replicas go with counts of -1 only', async () => {
    const { ask, coordination } = harness()
    const assignments = [{ partitionIndex: 0, brokerIds: [1] }]
    const topics = [topic('a', { assignments }), topic('b', { assignments, numPartitions: -1, replicationFactor: -1 })]
    const response = await ask(apis.CreateTopics, 5, { topics })
    expect(response.topics.map(({ name, errorCode }) => [name, errorCode])).toEqual([
      ['b', 0],
      ['a', 42],
    ])
    expect(coordination.created[0]!.assignments).toEqual(new Map([[0, [1]]]))
  })

  test('the metadata log is no topic to be created', async () => {
    const { ask } = harness()
    const { topics } = await ask(apis.CreateTopics, 5, { topics: [topic('__cluster_metadata')] })
    expect(topics).toMatchObject([{ errorCode: 42 }])
  })
})

describe('DeleteTopics', () => {
  test.each([1, 2, 3, 4, 5])('%i deletes by name', async (version) => {
    const { ask, coordination } = harness()
    coordination.addTopic('orders')
    const { responses } = await ask(apis.DeleteTopics, version, { topicNames: ['orders', 'none'], timeoutMs: 1000 })
    expect(responses.map(({ name, errorCode }) => [name, errorCode])).toEqual([
      ['orders', 0],
      ['none', 3],
    ])
    expect(coordination.topics.size).toBe(0)
  })

  test('6 deletes by name or by id and tells both', async () => {
    const { ask, coordination } = harness()
    const a = coordination.addTopic('a')
    const b = coordination.addTopic('b')
    const topics = [{ name: 'a' }, { name: null, topicId: b.topicId }, { name: null, topicId: topicId(900) }]
    const { responses } = await ask(apis.DeleteTopics, 6, {
      topics: topics.map((each) => ({ topicId: zeroUuid, ...each })),
      timeoutMs: 1000,
    })
    expect(responses).toMatchObject([
      { name: 'a', topicId: a.topicId, errorCode: 0 },
      { name: 'b', topicId: b.topicId, errorCode: 0 },
      { name: null, topicId: topicId(900), errorCode: 100 },
    ])
  })

  test('a topic named twice, or by both or neither, is refused once', async () => {
    const { ask, coordination } = harness()
    const a = coordination.addTopic('a')
    coordination.addTopic('b')
    const topics = [
      { name: 'a', topicId: zeroUuid },
      { name: null, topicId: a.topicId },
      { name: 'b', topicId: topicId(1) },
      { name: null, topicId: zeroUuid },
    ]
    const { responses } = await ask(apis.DeleteTopics, 6, { topics, timeoutMs: 1000 })
    expect(responses.map(({ name, errorCode }) => [name, errorCode])).toEqual([
      ['a', 42], // for both
      ['b', 42],
      [null, 42],
    ])
    expect(coordination.topics.size).toBe(2)
  })

  test('very many names take no longer than their number', async () => {
    const { ask } = harness()
    const topicNames = Array.from({ length: 60_000 }, (_, i) => `t${i}`)
    const twice = [...topicNames, ...topicNames]
    const askAll = async () => {
      for (const names of [topicNames, twice]) {
        const { responses } = await ask(apis.DeleteTopics, 1, { topicNames: names, timeoutMs: 1 })
        expect(responses).toHaveLength(60_000)
      }
    }
    expect(await shortestMs(3000, () => msOf(askAll))).toBeLessThan(3000)
  })

  test('switched off, it says so in words that the client’s version knows', async () => {
    const { ask, coordination } = harness()
    coordination.admin.deleteTopics = () =>
      Promise.resolve([{ ok: false, reason: 'topic-deletion-disabled', message: 'It is off' }])
    const code = async (version: number) =>
      (await ask(apis.DeleteTopics, version, { topicNames: ['a'], timeoutMs: 1 })).responses[0]!.errorCode
    expect(await code(2)).toBe(42)
    expect(await code(3)).toBe(73)
  })
})
