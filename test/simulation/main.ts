/**
 * Runs simulated nodes from seeds until one breaks a promise, or all are done.
 *
 *     npm run simulate -- --seeds 1000 --from 1 [--power-losses] [--keep-going] [--twice] [--log]
 *
 * `--power-losses`: every fault is a power loss. `--keep-going`: doesn't end at the first failure. `--twice`: runs each seed
 * twice and compares the traces. `--log`: prints the node's log, its times in virtual time. A failure prints its seed and the
 * command that replays it.
 */
import { parseArgs } from 'node:util'
import { createLogger } from '../../src/telemetry/index.ts'
import { type RunOptions, type RunResult, runNode } from './node/run.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    'power-losses': { type: 'boolean', default: false },
    twice: { type: 'boolean', default: false },
    log: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
  },
})
const first = Number(values.from)
const count = Number(values.seeds)
const powerLossesOnly = values['power-losses']

const startedMs = performance.now()
const results: RunResult[] = []
let failures = 0
let slowestMs = 0
for (let seed = first; seed < first + count; seed++) {
  const seedStartedMs = performance.now()
  try {
    const result = await runNode(optionsOf(seed))
    results.push(result)
    if (values.twice) compare(result, await runNode(optionsOf(seed)), seed)
  } catch (error) {
    failures++
    console.error(`Seed ${seed} failed:`, error)
    console.error(
      `Replay it: npm run simulate -- --seeds 1 --from ${seed}${powerLossesOnly ? ' --power-losses' : ''} --log\n`,
    )
    process.exitCode = 1
    if (!values['keep-going']) break
  }
  slowestMs = Math.max(slowestMs, performance.now() - seedStartedMs)
}
report()

function optionsOf(seed: number): RunOptions {
  const options = { seed, powerLossesOnly, recordTrace: values.twice }
  if (!values.log) return options
  return {
    ...options,
    createLogger: (clock) =>
      createLogger({ level: 'info', destination: process.stdout, format: 'human', name: 'node', clock }),
  }
}

function compare(result: RunResult, again: RunResult, seed: number): void {
  if (result.traceHash === again.traceHash) return
  const at = result.traceLines.findIndex((line, i) => line !== again.traceLines[i])
  throw new Error(`Two runs of seed ${seed} part at call ${at}:\n  ${result.traceLines[at]}\n  ${again.traceLines[at]}`)
}

function report(): void {
  const seconds = (performance.now() - startedMs) / 1000
  const total = (value: (result: RunResult) => number) => results.reduce((sum, result) => sum + value(result), 0)
  const events = total((result) => result.events)
  console.log(
    [
      `${results.length} seeds passed, ${failures} failed, in ${seconds.toFixed(1)} s:`,
      `${(results.length / seconds).toFixed(1)} seeds/s (slowest ${slowestMs.toFixed(0)} ms), ${Math.round(events / seconds)} events/s,`,
      `${Math.round(total((result) => result.virtualMs) / 1000)} virtual s.`,
      `${total((result) => result.powerLosses)} power losses, ${total((result) => result.resumes)} resumes,`,
      `${total((result) => result.acked)} batches acknowledged, ${total((result) => result.refused)} refused,`,
      `${total((result) => result.fetched)} reads, ${total((result) => result.commits)} commits,`,
      `${total((result) => result.topicsDeleted)} topics deleted, ${total((result) => result.compactedAway)} records compacted away`,
    ].join(' '),
  )
}
