import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PersistentMap } from '../../../src/base/index.ts'

type Change = { readonly key: string | number; readonly value: number | undefined }

/** Few keys, so that they meet; numbers 2^32 apart have one hash. */
const changes = fc.array(
  fc.record({
    key: fc.oneof(fc.integer({ min: 0, max: 40 }), fc.string({ maxLength: 2 }), fc.constantFrom(0, 2 ** 32, 2 ** 33)),
    value: fc.option(fc.integer(), { nil: undefined }),
  }),
  { maxLength: 200 },
)

function apply(map: PersistentMap<string | number, number>, { key, value }: Change) {
  return value === undefined ? map.delete(key) : map.set(key, value)
}

function applyToMap(map: Map<string | number, number>, { key, value }: Change) {
  if (value === undefined) map.delete(key)
  else map.set(key, value)
}

function expectSame(map: PersistentMap<string | number, number>, expected: Map<string | number, number>) {
  expect(map.size).toBe(expected.size)
  expect(new Map(map.entries())).toEqual(expected)
  expect(new Set(map.keys())).toEqual(new Set(expected.keys()))
  expect([...map.values()].sort((a, b) => a - b)).toEqual([...expected.values()].sort((a, b) => a - b))
  for (const [key, value] of expected) expect(map.get(key)).toBe(value)
}

describe('PersistentMap', () => {
  test('holds what a Map holds after the same changes, and keeps every earlier state', () => {
    fc.assert(
      fc.property(changes, (list) => {
        const expected = new Map<string | number, number>()
        const states = [{ map: PersistentMap.empty<string | number, number>(), expected: new Map(expected) }]
        for (const change of list) {
          applyToMap(expected, change)
          states.push({ map: apply(states.at(-1)!.map, change), expected: new Map(expected) })
        }
        for (const state of states) expectSame(state.map, state.expected)
      }),
    )
  })

  test('an edit holds what a Map holds, and leaves its base and its earlier results as they were', () => {
    fc.assert(
      fc.property(changes, changes, (first, second) => {
        const expected = new Map<string | number, number>()
        const edit = PersistentMap.empty<string | number, number>().edit()
        const run = (list: Change[]) => {
          for (const change of list) {
            applyToMap(expected, change)
            if (change.value === undefined) edit.delete(change.key)
            else edit.set(change.key, change.value)
            expect(edit.get(change.key)).toBe(change.value)
          }
          return { map: edit.finish(), expected: new Map(expected) }
        }
        const results = [run(first), run(second)]
        for (const result of results) expectSame(result.map, result.expected)
      }),
    )
  })

  test('keys of one hash are told apart, and removed one by one', () => {
    // A number's low 32 bits are its hash.
    const keys = [7, 7 + 2 ** 32, 7 + 2 ** 33]
    let map = PersistentMap.empty<number, string>()
    for (const key of keys) map = map.set(key, `v${key}`)
    expect(keys.map((key) => map.get(key))).toEqual(keys.map((key) => `v${key}`))
    expect(map.get(7 + 2 ** 34)).toBeUndefined()
    for (const [removed, key] of keys.entries()) {
      map = map.delete(key)
      expect(map.size).toBe(keys.length - removed - 1)
      expect(map.get(key)).toBeUndefined()
      for (const other of keys.slice(removed + 1)) expect(map.get(other)).toBe(`v${other}`)
    }
  })

  test('one change among 100,000 copies only the path to it', () => {
    const edit = PersistentMap.empty<string, number>().edit()
    for (let i = 0; i < 100_000; i++) edit.set(`topic-${i}`, i)
    const large = edit.finish()
    const change = large.edit().set('topic-500', -1)
    expect(change.copiedBranches).toBeLessThanOrEqual(7)
    expect(change.finish().get('topic-500')).toBe(-1)
    expect(large.get('topic-500')).toBe(500)
    expect(large.edit().delete('topic-500').copiedBranches).toBeLessThanOrEqual(7)
  })

  test('a change that changes nothing gives the same map', () => {
    const map = PersistentMap.empty<string, number>().set('a', 1)
    expect(map.set('a', 1)).toBe(map)
    expect(map.delete('b')).toBe(map)
    expect(map.edit().finish()).toBe(map)
  })

  test('a walk may stop and go on', () => {
    const edit = PersistentMap.empty<number, number>().edit()
    for (let i = 0; i < 1000; i++) edit.set(i, i)
    const walk = edit.finish().keys()
    const seen = new Set<number>()
    for (let turn = 0; turn < 10; turn++) for (let i = 0; i < 100; i++) seen.add(walk.next().value as number)
    expect(seen.size).toBe(1000)
    expect(walk.next().done).toBe(true)
  })
})
