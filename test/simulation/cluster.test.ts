import { describe, expect, test } from 'vitest'
import { PropertyViolation } from './checkers/checker.ts'
import { clusterBugs } from './cluster/bugs.ts'
import { type ClusterRunOptions, type ClusterRunResult, runCluster } from './cluster/run.ts'

/** Seeds from 1 on; CI runs more. */
const seedCount = Number(process.env.ROOKERY_CLUSTER_SEEDS ?? 6)
const separateSeedCount = Math.ceil(seedCount / 2)
/** Within so many seeds each injected bug shows. */
const seedsForABug = 120

async function run(options: ClusterRunOptions): Promise<ClusterRunResult> {
  try {
    return await runCluster(options)
  } catch (cause) {
    const roles = options.separateRoles ? ' --separate-roles' : ''
    const replay = `npm run simulate -- --cluster${roles} --seeds 1 --from ${options.seed}`
    throw new Error(`Seed ${options.seed} failed: ${(cause as Error).message}\nReplay it alone: ${replay}`, { cause })
  }
}

describe('a simulated cluster', () => {
  test('keeps its promises under faults of every kind, and is whole after them', { timeout: 3_600_000 }, async () => {
    const results: ClusterRunResult[] = []
    for (let seed = 1; seed <= seedCount; seed++) results.push(await run({ seed }))
    // A run in which nothing happens shows nothing.
    const total = (value: (result: ClusterRunResult) => number) =>
      results.reduce((sum, result) => sum + value(result), 0)
    expect(total((result) => result.acked)).toBeGreaterThan(seedCount * 50)
    expect(total((result) => result.fetched)).toBeGreaterThan(seedCount * 20)
    expect(total((result) => result.resumes)).toBeGreaterThan(seedCount * 4)
    if (seedCount >= 6) expect(total((result) => result.commits)).toBeGreaterThan(0)
  })

  test('keeps them with brokers that are no controllers, too', { timeout: 600_000 }, async () => {
    const results: ClusterRunResult[] = []
    for (let seed = 1; seed <= separateSeedCount; seed++) results.push(await run({ seed, separateRoles: true }))
    expect(results.reduce((sum, { acked }) => sum + acked, 0)).toBeGreaterThan(separateSeedCount * 50)
  })

  test('does the same again for the same seed', async () => {
    const first = await run({ seed: 3, recordTrace: true })
    const second = await run({ seed: 3, recordTrace: true })
    const at = first.traceLines.findIndex((line, i) => line !== second.traceLines[i])
    expect(second.traceLines[at], `the first call that differs, ${at}`).toBe(first.traceLines[at])
    expect({ ...second, traceLines: [] }).toEqual({ ...first, traceLines: [] })
  })
})

describe('the simulation of a cluster finds the bug when', () => {
  test.each(Object.entries(clusterBugs))('%s', { timeout: 600_000 }, async (_name, bug) => {
    const takeBack = bug.install?.()
    try {
      for (let seed = bug.firstSeed; seed < bug.firstSeed + seedsForABug; seed++) {
        try {
          await runCluster({ ...bug.options, seed })
        } catch (error) {
          expect(error).toBeInstanceOf(PropertyViolation)
          return
        }
      }
    } finally {
      takeBack?.()
    }
    expect.fail(`not within ${seedsForABug} seeds`)
  })
})
