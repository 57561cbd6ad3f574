import { describe, expect, test } from 'vitest'
import { distinct } from '../../../src/api/distinct.ts'
import { apis } from '../../../src/protocol/index.ts'
import { harness } from './harness.ts'

test('distinct() keeps the first of each key, in order', () => {
  const asked = ['b', 'a', 'b', 'c', 'a']
  expect(distinct(asked, (each) => each)).toEqual(['b', 'a', 'c'])
})

describe('what stands many times in a request is answered once', () => {
  const times = <T>(each: T): T[] => Array.from({ length: 1000 }, () => each)

  test('Metadata', async () => {
    const { ask, coordination } = harness()
    coordination.addTopic('orders')
    const response = await ask(apis.Metadata, 9, { topics: [...times({ name: 'orders' }), { name: 'new' }] })
    expect(response.topics.map(({ name }) => name)).toEqual(['orders', 'new'])
  })

  test('DescribeConfigs', async () => {
    const { ask } = harness()
    const resources = times({ resourceType: 4, resourceName: '1', configurationKeys: null })
    expect((await ask(apis.DescribeConfigs, 4, { resources })).results).toHaveLength(1)
  })

  test('DescribeGroups', async () => {
    const { ask } = harness()
    expect((await ask(apis.DescribeGroups, 5, { groups: times('g') })).groups).toHaveLength(1)
  })

  test('OffsetFetch', async () => {
    const { ask, groups } = harness()
    const response = await ask(apis.OffsetFetch, 8, { groups: times({ groupId: 'g', topics: null }) })
    expect(response.groups).toHaveLength(1)
    expect(groups.asked[0]!.request).toEqual([{ groupId: 'g', topics: null }])
  })
})
