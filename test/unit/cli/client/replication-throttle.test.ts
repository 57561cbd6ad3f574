import { expect, test } from 'vitest'
import { throttleOf } from '../../../../src/cli/client/replication-throttle.ts'

test('a throttle names who gives and who takes of each partition that gets a replica, and their brokers', () => {
  const at = (topic: string, partition: number, ...replicas: number[]) => ({ topic, partition, replicas })
  const before = [at('a', 0, 1, 2), at('a', 1, 1, 2), at('b', 0, 3), at('c', 0, 1)]
  const after = [at('a', 0, 2, 3), at('a', 1, 2, 1), at('b', 0, 3, 4, 5), at('c', 0, 1)]
  expect(throttleOf(before, after)).toEqual({
    topics: new Map([
      ['a', { leaders: ['0:1', '0:2'], followers: ['0:3'] }],
      ['b', { leaders: ['0:3'], followers: ['0:4', '0:5'] }],
    ]),
    brokers: [1, 2, 3, 4, 5],
  })
  expect(throttleOf([], [])).toEqual({ topics: new Map(), brokers: [] })
})
