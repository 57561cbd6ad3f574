import { describe, expect, test } from 'vitest'
import { PropertyViolation } from './checkers/checker.ts'
import { bugs } from './node/bugs.ts'
import { type RunOptions, type RunResult, runNode } from './node/run.ts'

/** Seeds with all kinds of faults, from 1 on; CI runs more. */
const seedCount = Number(process.env.ROOKERY_NODE_SEEDS ?? 8)
/** Power losses in all, in seeds that have no other faults. */
const powerLossCount = Number(process.env.ROOKERY_POWER_LOSSES ?? 50)
/** Within so many seeds each injected bug shows. */
const seedsForABug = 60

async function run(options: RunOptions): Promise<RunResult> {
  try {
    return await runNode(options)
  } catch (cause) {
    const flag = options.powerLossesOnly === true ? ' --power-losses' : ''
    const replay = `npm run simulate -- --seeds 1 --from ${options.seed}${flag}`
    throw new Error(`Seed ${options.seed} failed: ${(cause as Error).message}\nReplay it alone: ${replay}`, { cause })
  }
}

describe('a simulated node', () => {
  test('keeps its promises under faults of every kind, and serves after them', { timeout: 3_600_000 }, async () => {
    const results: RunResult[] = []
    for (let seed = 1; seed <= seedCount; seed++) results.push(await run({ seed }))
    // A run in which nothing happens shows nothing.
    const total = (value: (result: RunResult) => number) => results.reduce((sum, result) => sum + value(result), 0)
    expect(total((result) => result.acked)).toBeGreaterThan(seedCount * 100)
    expect(total((result) => result.resumes)).toBeGreaterThan(seedCount * 2)
    if (seedCount < 8) return
    expect(total((result) => result.refused)).toBeGreaterThan(0)
    expect(total((result) => result.commits)).toBeGreaterThan(0)
    expect(total((result) => result.topicsDeleted)).toBeGreaterThan(0)
    expect(total((result) => result.compactedAway)).toBeGreaterThan(0)
  })

  test('keeps all that it acknowledged through power losses', { timeout: 3_600_000 }, async () => {
    let powerLosses = 0
    for (let seed = 1; powerLosses < powerLossCount; seed++) {
      powerLosses += (await run({ seed, powerLossesOnly: true })).powerLosses
    }
  })

  test('does the same again for the same seed', async () => {
    for (const seed of [2, 5]) {
      const first = await run({ seed, recordTrace: true })
      const second = await run({ seed, recordTrace: true })
      const at = first.traceLines.findIndex((line, i) => line !== second.traceLines[i])
      expect(second.traceLines[at], `the first call that differs, ${at}`).toBe(first.traceLines[at])
      expect({ ...second, traceLines: [] }).toEqual({ ...first, traceLines: [] })
    }
    expect((await run({ seed: 2 })).traceHash).not.toBe((await run({ seed: 5 })).traceHash)
  })
})

describe('the simulation finds the bug when', () => {
  test.each(Object.entries(bugs))('%s', { timeout: 300_000 }, async (_name, bug) => {
    for (let seed = 1; seed <= seedsForABug; seed++) {
      try {
        await runNode({ seed, powerLossesOnly: true, ...bug })
      } catch (error) {
        expect(error).toBeInstanceOf(PropertyViolation)
        return
      }
    }
    expect.fail(`not within ${seedsForABug} seeds`)
  })
})
