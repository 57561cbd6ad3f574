/**
 * Runs simulated nodes, or clusters of them, from seeds until one breaks a promise, or all are done.
 *
 *     npm run simulate -- --seeds 1000 --from 1 [--cluster [--separate-roles]] [--power-losses] [--keep-going] [--state FILE] [--twice] [--log]
 *
 * `--cluster`: three nodes, and in a tenth of the seeds three brokers and three controllers; `--separate-roles`: in all. `--power-losses`: every fault is a
 * power loss (of one node). `--keep-going`: doesn't end at the first failure. `--state`: how far it came is kept there, and the same command
 * goes on from there. `--twice`: runs each seed twice and compares the traces. `--log`: prints the node's log, its times in virtual
 * time. A failure prints its seed and the command that replays it. Runs that take long tell now and then how far they are; SIGINT ends
 * them after the seed that runs.
 */
import { parseArgs } from 'node:util'
import type { Clock } from '../../src/platform/index.ts'
import { createLogger } from '../../src/telemetry/index.ts'
import { runCluster } from './cluster/run.ts'
import { runNode } from './node/run.ts'
import { addUp, progressLine, resumed, save, summary } from './progress.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    from: { type: 'string', default: '1' },
    cluster: { type: 'boolean', default: false },
    'separate-roles': { type: 'boolean', default: false },
    'power-losses': { type: 'boolean', default: false },
    twice: { type: 'boolean', default: false },
    log: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
    state: { type: 'string' },
  },
})
const first = Number(values.from)
const count = Number(values.seeds)
const powerLossesOnly = values['power-losses']

/** What a run tells, of one node or of several; numbers are added up. */
interface Result {
  readonly traceHash: string
  readonly traceLines: readonly string[]
  readonly events: number
  readonly virtualMs: number
  readonly [count: string]: number | string | readonly string[]
}

/** Between two lines that tell how far it is, and two notes in the state file. */
const reportMs = 20_000
const saveMs = 1000

const flags = ['cluster', 'separate-roles', 'power-losses', 'twice'] as const
const command = ['npm run simulate --', ...flags.filter((flag) => values[flag]).map((flag) => `--${flag}`)].join(' ')
const progress = resumed(values.state, command, first, count)
let isInterrupted = false
process.once('SIGINT', () => {
  isInterrupted = true
})
let reportedMs = performance.now()
let savedMs = 0
while (progress.next < first + count && !isInterrupted) {
  const seed = progress.next
  const startedMs = performance.now()
  try {
    const result = await run(seed)
    if (values.twice) compare(result, await run(seed), seed)
    addUp(progress.totals, result)
    progress.passed++
  } catch (error) {
    progress.failed.push(seed)
    console.error(`Seed ${seed} failed:`, error)
    console.error(`Replay it: ${command} --seeds 1 --from ${seed} --log\n`)
  }
  const nowMs = performance.now()
  progress.next = seed + 1
  progress.spentMs += nowMs - startedMs
  progress.slowestMs = Math.max(progress.slowestMs, nowMs - startedMs)
  if (nowMs - savedMs > saveMs) {
    save(values.state, progress)
    savedMs = nowMs
  }
  if (nowMs - reportedMs > reportMs) {
    console.error(progressLine(progress))
    reportedMs = nowMs
  }
  if (progress.failed.length > 0 && !values['keep-going']) break
}
save(values.state, progress)
if (progress.failed.length > 0) process.exitCode = 1
if (progress.next < first + count)
  console.log(`Not all was run: go on with --from ${progress.next}, or with the same --state`)
console.log(summary(progress))

async function run(seed: number): Promise<Result> {
  const recordTrace = values.twice
  const logger = (name: string, clock: Pick<Clock, 'now'>) =>
    createLogger({ level: 'info', destination: process.stdout, format: 'human', name, clock }).child({ node: name })
  if (values.cluster) {
    const result = await runCluster({
      seed,
      recordTrace,
      ...(values['separate-roles'] ? { separateRoles: true } : {}),
      ...(powerLossesOnly ? { faults: ['power-loss'] } : {}),
      ...(values.log ? { createLogger: logger } : {}),
    })
    return { ...result }
  }
  const createNodeLogger = (clock: Pick<Clock, 'now'>) => logger('node', clock)
  const result = await runNode({
    seed,
    powerLossesOnly,
    recordTrace,
    ...(values.log ? { createLogger: createNodeLogger } : {}),
  })
  return { ...result }
}

function compare(result: Result, again: Result, seed: number): void {
  if (result.traceHash === again.traceHash) return
  const at = result.traceLines.findIndex((line, i) => line !== again.traceLines[i])
  throw new Error(`Two runs of seed ${seed} part at call ${at}:\n  ${result.traceLines[at]}\n  ${again.traceLines[at]}`)
}
