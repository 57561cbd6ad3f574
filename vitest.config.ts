import { defineConfig } from 'vitest/config'
import { RunningTests } from './test/support/running-tests.ts'

/** Where `.ci/run` wants a report for programs, beside the one on the terminal. */
const report = process.env.ROOKERY_TEST_REPORT

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // What takes 3 s here takes ten times as long where four nodes share a processor that is busy already; only what hangs takes this long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: report === undefined ? ['default'] : ['default', new RunningTests(), ['json', { outputFile: report }]],
  },
})
