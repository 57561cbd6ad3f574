import { defineConfig } from 'vitest/config'
import { RunningTests } from './test/support/running-tests.ts'

/** Where `.ci/run` wants a report for programs, beside the one on the terminal. */
const report = process.env.ROOKERY_TEST_REPORT

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: report === undefined ? ['default'] : ['default', new RunningTests(), ['json', { outputFile: report }]],
  },
})
