import { describe, expect, test } from 'vitest'
import type { History } from './history.ts'
import { assignment, commit, committed } from './made-history.ts'
import { judgeOffsets } from './offsets.ts'

function broken(history: Partial<History>): readonly string[] {
  const found = judgeOffsets({ commits: [], committed: [], assignments: [], ...history })
  return [...new Set(found.map(({ property }) => property))]
}

describe('the judge of committed offsets', () => {
  test('accepts the last that was acknowledged, what came later, and what overlaps', () => {
    const commits = [commit('a', [1, 2], 10), commit('a', [3, 4], 20), commit('a', [5], 30)]
    const looks = [committed([0, 1], -1), committed([2.5, 3.5], 20), committed([6, 7], 20), committed([8, 9], 30)]
    expect(broken({ commits, committed: looks })).toEqual([])
  })

  test('accepts an older offset where another committer went back to it', () => {
    const commits = [commit('a', [1, 2], 10), commit('a', [3, 4], 20), commit('b', [5, 6], 10)]
    expect(broken({ commits, committed: [committed([7, 8], 10)] })).toEqual([])
  })

  test('accepts a commit of unknown outcome that takes effect late', () => {
    const commits = [commit('a', [1], 10), commit('a', [3, 4], 20)]
    expect(broken({ commits, committed: [committed([7, 8], 10)] })).toEqual([])
  })

  test('refuses an offset that nobody committed', () => {
    const commits = [commit('a', [1, 2], 10), commit('a', [3, 4], 20, { outcome: 'fail' }), commit('a', [9, 10], 30)]
    for (const offset of [11, 20, 30]) {
      expect(broken({ commits, committed: [committed([5, 6], offset)] }), `${offset}`).toEqual(['offset from nowhere'])
    }
  })

  test('refuses an older offset than was acknowledged before, and none', () => {
    const commits = [commit('a', [1, 2], 10), commit('a', [3, 4], 20)]
    expect(broken({ commits, committed: [committed([5, 6], 10)] })).toEqual(['stale committed offset'])
    expect(broken({ commits, committed: [committed([5, 6], -1)] })).toEqual(['stale committed offset'])
  })

  test('lets whoever may be out of date tell an older offset, but none from nowhere', () => {
    const commits = [commit('a', [1, 2], 10), commit('a', [3, 4], 20)]
    expect(broken({ commits, committed: [committed([5, 6], 10, { mayBeStale: true })] })).toEqual([])
    expect(broken({ commits, committed: [committed([5, 6], 11, { mayBeStale: true })] })).toEqual([
      'offset from nowhere',
    ])
  })

  test('refuses a partition with two owners in one generation', () => {
    expect(broken({ assignments: [assignment('a', 1, [0, 1]), assignment('b', 1, [2])] })).toEqual([])
    expect(broken({ assignments: [assignment('a', 1, [0]), assignment('b', 2, [0])] })).toEqual([])
    expect(broken({ assignments: [assignment('a', 1, [0, 1]), assignment('b', 1, [1])] })).toEqual(['two owners'])
  })
})
