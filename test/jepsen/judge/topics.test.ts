import { describe, expect, test } from 'vitest'
import type { TopicChange, TopicListing } from './history.ts'
import { listing, topicChange } from './made-history.ts'
import { judgeTopics } from './topics.ts'

function broken(changes: readonly TopicChange[], ...listings: readonly TopicListing[]): readonly string[] {
  return [...new Set(judgeTopics(changes, listings).map(({ property }) => property))]
}

const created = topicChange('t', [1, 2])
const deleted = topicChange('t', [5, 6], { isDeletion: true })

describe('the judge of topics', () => {
  test('accepts a topic from its creation to its deletion, and either while one is under way', () => {
    expect(broken([created, deleted], listing([3, 4], 't'), listing([7, 8], ''), listing([0, 1], ''))).toEqual([])
    for (const names of ['t', '']) {
      expect(broken([created, deleted], listing([1, 1.5], names), listing([5, 5.5], names))).toEqual([])
      expect(broken([topicChange('t', [1])], listing([8, 9], names))).toEqual([])
      expect(broken([created, topicChange('t', [5], { isDeletion: true })], listing([8, 9], names))).toEqual([])
    }
  })

  test('refuses that a created topic is not there, on the broker that said so', () => {
    expect(broken([created], listing([3, 4], ''))).toEqual(['lost change of topics'])
  })

  test('refuses that a deleted topic is there', () => {
    expect(broken([created, deleted], listing([7, 8], 't'))).toEqual(['lost change of topics'])
  })

  test('lets another broker be behind, but not in the end', () => {
    expect(broken([created], listing([3, 4], '', { node: 2 }))).toEqual([])
    expect(broken([created], listing([3, 4], '', { node: 2, isFinal: true }))).toEqual(['lost change of topics'])
  })

  test('refuses a topic that nobody created, or not yet', () => {
    expect(broken([created], listing([3, 4], 't u'))).toEqual(['topic from nowhere'])
    expect(broken([created], listing([0, 0.5], 't'))).toEqual(['topic from nowhere'])
  })
})
