import fc from 'fast-check'
import { expect, test } from 'vitest'
import { majority, reachedByMajority, tally } from '../../../../src/raft/core/quorum.ts'
import type { LogIndex } from '../../../../src/raft/index.ts'

test('reachedByMajority() is the highest index that more than half of the voters have (R13)', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(8), { minLength: 1, maxLength: 9 }), (matchIndexes) => {
      const has = (index: number) => matchIndexes.filter((match) => match >= index).length
      const byCounting = Math.max(...[0, ...matchIndexes].filter((index) => has(index) * 2 > matchIndexes.length))
      expect(reachedByMajority(matchIndexes as LogIndex[])).toBe(byCounting)
    }),
  )
})

test('two majorities share a voter', () => {
  for (let voters = 1; voters < 20; voters++) {
    expect(2 * majority(voters)).toBeGreaterThan(voters)
    expect(2 * (majority(voters) - 1)).toBeLessThanOrEqual(voters)
  }
})

test('tally() is decided as soon as no open vote can change it', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 7 }), fc.nat(4), (votes, open) => {
      const voters = votes.length + open
      fc.pre(voters > 0)
      const granted = votes.filter(Boolean).length
      const outcome = granted * 2 > voters ? 'won' : (granted + open) * 2 > voters ? 'open' : 'lost'
      expect(tally(votes, voters)).toBe(outcome)
    }),
  )
})
