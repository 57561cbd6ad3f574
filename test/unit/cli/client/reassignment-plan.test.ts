import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Placement, planReassignments } from '../../../../src/cli/client/reassignment-plan.ts'

function topic(...replicas: readonly number[][]): Placement[] {
  return replicas.map((each, partition) => ({ topic: 'orders', partition, replicas: each }))
}

/** The placements as they are after `plan`. */
function after(placements: readonly Placement[], plan: readonly Placement[]): Placement[] {
  return placements.map((each) => plan.find(({ partition }) => partition === each.partition) ?? each)
}

function counts(brokers: readonly number[], values: readonly number[]): number[] {
  return brokers.map((broker) => values.filter((value) => value === broker).length)
}

test('what is spread already is left as it is', () => {
  expect(planReassignments(topic([1, 2], [2, 3], [3, 1]), [1, 2, 3])).toEqual([])
})

test('a broker that is new gets its share, and nothing moves between the others', () => {
  const plan = planReassignments(topic([1], [2], [1], [2], [1], [2]), [1, 2, 3])
  expect(plan.map(({ replicas }) => replicas)).toEqual([[3], [3]])
})

test('brokers that are left out lose all, more replicas are added, and fewer taken', () => {
  const placements = topic([1, 2], [2, 3], [3, 1])
  const away = after(placements, planReassignments(placements, [1, 2]))
  expect(away.map(({ replicas }) => [...replicas].sort())).toEqual([
    [1, 2],
    [1, 2],
    [1, 2],
  ])
  const more = after(placements, planReassignments(placements, [1, 2, 3], 3))
  expect(more.map(({ replicas }) => replicas.length)).toEqual([3, 3, 3])
  const fewer = after(placements, planReassignments(placements, [1, 2, 3], 1))
  expect(fewer.map(({ replicas }) => replicas)).toEqual([[1], [2], [3]])
})

test('replicas are on brokers that were named, each once, and evenly, and so are the leaders', () => {
  const ids = [1, 2, 3, 4, 5]
  const replicaList = fc.shuffledSubarray(ids, { minLength: 1, maxLength: 3 })
  const cases = fc.record({
    replicas: fc.array(replicaList, { minLength: 1, maxLength: 30 }),
    brokers: fc.shuffledSubarray(ids, { minLength: 1 }),
    factor: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
  })
  fc.assert(
    fc.property(cases, ({ replicas, brokers, factor }) => {
      const placements = topic(...replicas)
      const plan = planReassignments(placements, brokers, factor)
      const placed = after(placements, plan)
      for (const [i, { replicas: planned }] of placed.entries()) {
        expect(new Set(planned).size).toBe(Math.min(factor ?? replicas[i]!.length, brokers.length))
        expect(planned.every((broker) => brokers.includes(broker))).toBe(true)
      }
      const all = placed.flatMap((each) => each.replicas)
      // More than the share only where every broker with room holds a replica of the partition already.
      const share = Math.ceil(all.length / brokers.length)
      const most = Math.max(...counts(brokers, all))
      expect(most).toBeLessThanOrEqual(share + 2)
    }),
  )
})
