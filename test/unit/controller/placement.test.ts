import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Placement, placePartitions } from '../../../src/controller/index.ts'
import { imageOf, registration } from '../metadata/support.ts'

function replicasOf(placement: Placement): readonly (readonly number[])[] {
  if (!placement.ok) throw new Error(placement.message)
  return placement.replicas
}

function countBy<T>(values: Iterable<T>): Map<T, number> {
  const counts = new Map<T, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return counts
}

const clusters = fc
  .array(fc.record({ rack: fc.constantFrom(undefined, '', 'a', 'b', 'c'), fenced: fc.boolean() }), {
    minLength: 1,
    maxLength: 9,
  })
  .filter((brokers) => brokers.some(({ fenced }) => !fenced))

describe('placePartitions()', () => {
  test('gives every partition different registered brokers, an active leader, and fenced ones only for want of others', () => {
    fc.assert(
      fc.property(clusters, fc.integer({ min: 1, max: 30 }), fc.nat(2 ** 31), fc.nat(8), (brokers, count, start, r) => {
        const factor = 1 + (r % brokers.length)
        const image = imageOf(
          ...brokers.map(({ rack, fenced }, id) =>
            registration(id, { fenced, ...(rack === undefined ? {} : { rack }) }),
          ),
        )
        const isActive = (id: number) => brokers[id]?.fenced === false
        const activeCount = brokers.filter(({ fenced }) => !fenced).length
        for (const replicas of replicasOf(placePartitions(image, count, factor, start))) {
          expect(new Set(replicas).size).toBe(factor)
          expect(replicas.every((id) => id in brokers)).toBe(true)
          expect(isActive(replicas[0] as number)).toBe(true)
          expect(replicas.filter(isActive)).toHaveLength(Math.min(factor, activeCount))
        }
      }),
    )
  })

  test('replicas are in as many racks as there are', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 3 }), fc.nat(99), (racks, size, start) => {
        const brokers = racks * size
        const ids = [...Array(brokers).keys()]
        const image = imageOf(...ids.map((id) => registration(id, { rack: `r${id % racks}` })))
        for (let factor = 1; factor <= brokers; factor++) {
          for (const replicas of replicasOf(placePartitions(image, 20, factor, start))) {
            expect(new Set(replicas.map((id) => id % racks)).size).toBe(Math.min(factor, racks))
          }
        }
      }),
    )
  })

  test('leaders and replicas are spread evenly, and the followers of one leader too', () => {
    const image = imageOf(...[1, 2, 3, 4, 5].map((id) => registration(id)))
    const placed = replicasOf(placePartitions(image, 100, 3, 3))
    expect(new Set(countBy(placed.map(([leader]) => leader)).values())).toEqual(new Set([20]))
    expect(new Set(countBy(placed.flat()).values())).toEqual(new Set([60]))
    const followersOfOne = countBy(placed.filter(([leader]) => leader === 1).flatMap(([, ...rest]) => rest))
    expect(followersOfOne.size).toBe(4)
  })

  test('begins at the start that it is given', () => {
    const image = imageOf(...[1, 2, 3].map((id) => registration(id)))
    const leaders = [0, 1, 2, 3].map((start) => replicasOf(placePartitions(image, 1, 1, start))[0]?.[0])
    expect(leaders).toEqual([1, 2, 3, 1])
  })
})
