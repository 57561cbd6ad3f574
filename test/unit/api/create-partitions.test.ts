import { describe, expect, test } from 'vitest'
import { CoordinationError, type CreatePartitionsResult } from '../../../src/coordination/index.ts'
import { apis } from '../../../src/protocol/index.ts'
import { harness } from './harness.ts'

const more = (name: string, count: number, assignments: { brokerIds: number[] }[] | null = null) => ({
  name,
  count,
  assignments,
})

describe('CreatePartitions', () => {
  test.each([0, 1, 2, 3])('%i asks for the total and answers each topic', async (version) => {
    const { ask, coordination } = harness()
    const topics = [more('a', 3), more('b', 4, [{ brokerIds: [1] }, { brokerIds: [2] }])]
    const { results } = await ask(apis.CreatePartitions, version, { topics, timeoutMs: 1000, validateOnly: false })
    expect(results).toEqual([
      { name: 'a', errorCode: 0, errorMessage: null },
      { name: 'b', errorCode: 0, errorMessage: null },
    ])
    expect(coordination.partitionsAsked).toEqual([
      { name: 'a', totalCount: 3 },
      { name: 'b', totalCount: 4, assignments: [[1], [2]] },
    ])
    expect(coordination.validateOnly).toBe(false)
  })

  test('an empty assignment is one, and a request may only validate', async () => {
    const { ask, coordination } = harness()
    await ask(apis.CreatePartitions, 3, { topics: [more('a', 3, [])], timeoutMs: -1, validateOnly: true })
    expect(coordination.partitionsAsked).toEqual([{ name: 'a', totalCount: 3, assignments: [] }])
    expect(coordination.validateOnly).toBe(true)
  })

  const reasons: [Extract<CreatePartitionsResult, { ok: false }>['reason'], number][] = [
    ['unknown-topic', 3],
    ['invalid-partitions', 37],
    ['invalid-replica-assignment', 39],
    ['invalid-replication-factor', 38],
    ['invalid-request', 42],
    ['policy-violation', 44],
  ]

  test.each(reasons)('%s is error %i, for its topic only', async (reason, errorCode) => {
    const { ask, coordination } = harness()
    coordination.refusePartitions = ({ name }) =>
      name === 'b' ? { ok: false, name, reason, message: 'Why' } : undefined
    const topics = [more('a', 3), more('b', 3)]
    const { results } = await ask(apis.CreatePartitions, 3, { topics, timeoutMs: 1000, validateOnly: false })
    expect(results).toMatchObject([
      { name: 'a', errorCode: 0 },
      { name: 'b', errorCode, errorMessage: 'Why' },
    ])
  })

  test('a topic that stands twice is refused once, the others get their partitions', async () => {
    const { ask, coordination } = harness()
    const topics = [more('a', 3), more('b', 3), more('a', 4)]
    const { results } = await ask(apis.CreatePartitions, 3, { topics, timeoutMs: 1000, validateOnly: false })
    expect(results.map(({ name, errorCode }) => [name, errorCode])).toEqual([
      ['a', 42],
      ['b', 0],
    ])
    expect(coordination.partitionsAsked.map(({ name }) => name)).toEqual(['b'])
  })

  test('without a controller in time every topic gets error 7', async () => {
    const { ask, coordination } = harness()
    coordination.fault = new CoordinationError('timed-out', 'No controller')
    const topics = [more('a', 3), more('b', 3)]
    const { results } = await ask(apis.CreatePartitions, 3, { topics, timeoutMs: 1000, validateOnly: false })
    expect(results.map(({ errorCode }) => errorCode)).toEqual([7, 7])
  })
})
