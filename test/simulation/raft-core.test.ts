import { describe, expect, test } from 'vitest'
import { mutations } from './raft-core/mutations.ts'
import { runQuietly } from './raft-core/quiet.ts'
import { type RunResult, Simulator } from './raft-core/simulator.ts'

/** Seeds to run, from 1 on; CI runs more. */
const seedCount = Number(process.env.ROOKERY_RAFT_SEEDS ?? 200)
/** One seed to run alone: how a failure is looked at. */
const onlySeed = process.env.ROOKERY_RAFT_SEED

const eventsPerSeed = 5000

function run(seed: number): RunResult {
  try {
    return new Simulator(seed).run(eventsPerSeed)
  } catch (cause) {
    const replay = `ROOKERY_RAFT_SEED=${seed} npx vitest run test/simulation/raft-core.test.ts`
    throw new Error(`Seed ${seed} failed: ${(cause as Error).message}\nReplay it alone: ${replay}`, { cause })
  }
}

describe('simulated Raft cores', () => {
  test('keep every safety property under faults, and come together after them', { timeout: 600_000 }, () => {
    const seeds = onlySeed !== undefined ? [Number(onlySeed)] : Array.from({ length: seedCount }, (_, i) => i + 1)
    const results = seeds.map(run)
    // A run in which nothing happens shows nothing.
    const total = (value: (result: RunResult) => number) => results.reduce((sum, result) => sum + value(result), 0)
    expect(total((result) => result.events)).toBeGreaterThanOrEqual(seeds.length * eventsPerSeed)
    if (onlySeed !== undefined) return
    expect(total((result) => result.committed)).toBeGreaterThan(seeds.length * 100)
    expect(total((result) => result.maxTerm)).toBeGreaterThan(seeds.length * 3)
    expect(total((result) => result.snapshotsInstalled)).toBeGreaterThan(seeds.length / 2)
    expect(total((result) => result.membershipsCommitted)).toBeGreaterThan(seeds.length)
    expect(total((result) => result.readsConfirmed)).toBeGreaterThan(seeds.length * 20)
    expect(total((result) => result.handovers)).toBeGreaterThan(seeds.length / 2)
    expect(total((result) => result.wipes)).toBeGreaterThan(seeds.length / 10)
  })

  test('do the same again for the same seed', () => {
    for (const seed of [3, 5, 8]) expect(run(seed)).toEqual(run(seed))
    expect(run(3).traceHash).not.toBe(run(4).traceHash)
  })
})

test('three voters and an observer keep their leader for 24 hours without faults', { timeout: 600_000 }, () => {
  const result = runQuietly({ hours: 24, seed: 7 })
  expect(result).toMatchObject({ leaders: 1, term: 1, observerIndex: result.commitIndex })
  expect(result.commitIndex).toBeGreaterThan(24 * 60)
})

describe('the simulation finds the bug when', () => {
  test.each(Object.entries(mutations))('%s', { timeout: 300_000 }, (_name, mutation) => {
    const maxSeeds = 2000
    for (let seed = 1; seed <= maxSeeds; seed++) {
      try {
        new Simulator(seed, mutation()).run(eventsPerSeed)
      } catch (error) {
        // That they don't come together again is what some bugs do.
        expect(`${error}`).toMatch(/InvariantViolation|AssertionError|No convergence/)
        return
      }
    }
    expect.fail(`not within ${maxSeeds} seeds`)
  })
})
