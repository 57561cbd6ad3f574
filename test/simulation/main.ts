/**
 * Runs simulated nodes, or clusters of them, from seeds until one breaks a promise, or all are done.
 *
 *     npm run simulate -- --seeds 1000 --from 1 [--cluster [--separate-roles]] [--power-losses] [--keep-going] [--twice] [--log]
 *
 * `--cluster`: three nodes. `--separate-roles`: three brokers and three controllers. `--power-losses`: every fault is a power loss (of one node). `--keep-going`: doesn't end at the first failure. `--twice`: runs each seed
 * twice and compares the traces. `--log`: prints the node's log, its times in virtual time. A failure prints its seed and the
 * command that replays it.
 */
import { parseArgs } from 'node:util'
import type { Clock } from '../../src/platform/index.ts'
import { createLogger } from '../../src/telemetry/index.ts'
import { runCluster } from './cluster/run.ts'
import { runNode } from './node/run.ts'

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

const startedMs = performance.now()
const results: Result[] = []
let failures = 0
let slowestMs = 0
for (let seed = first; seed < first + count; seed++) {
  const seedStartedMs = performance.now()
  try {
    const result = await run(seed)
    results.push(result)
    if (values.twice) compare(result, await run(seed), seed)
  } catch (error) {
    failures++
    const flags = `${values.cluster ? ' --cluster' : ''}${values['separate-roles'] ? ' --separate-roles' : ''}${powerLossesOnly ? ' --power-losses' : ''}`
    console.error(`Seed ${seed} failed:`, error)
    console.error(`Replay it: npm run simulate -- --seeds 1 --from ${seed}${flags} --log\n`)
    process.exitCode = 1
    if (!values['keep-going']) break
  }
  slowestMs = Math.max(slowestMs, performance.now() - seedStartedMs)
}
report()

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

function report(): void {
  const seconds = (performance.now() - startedMs) / 1000
  const totals = new Map<string, number>()
  for (const result of results) {
    for (const [name, value] of Object.entries(result)) {
      if (typeof value === 'number') totals.set(name, (totals.get(name) ?? 0) + value)
    }
  }
  const events = totals.get('events') ?? 0
  console.log(
    [
      `${results.length} seeds passed, ${failures} failed, in ${seconds.toFixed(1)} s:`,
      `${(results.length / seconds).toFixed(1)} seeds/s (slowest ${slowestMs.toFixed(0)} ms), ${Math.round(events / seconds)} events/s;`,
      [...totals].map(([name, value]) => `${name} ${Math.round(value)}`).join(', '),
    ].join(' '),
  )
}
