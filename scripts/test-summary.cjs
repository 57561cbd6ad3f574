// Prints `N passed, N failed` of vitest's JSON report; exits with 1 when a test failed, none ran or there is no report.
// usage: node scripts/test-summary.cjs REPORT
'use strict'
const { readFileSync } = require('node:fs')

let passed = 0
let failed = 0
try {
  const report = JSON.parse(readFileSync(process.argv[2], 'utf8'))
  passed = report.numPassedTests
  failed = report.numFailedTests
  // A worker that died, or an error outside of every test.
  if (!report.success && failed === 0) failed = 1
} catch (error) {
  console.error(`The tests left no report: ${error.message}`)
}
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed > 0 || passed === 0 ? 1 : 0)
