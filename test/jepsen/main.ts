/**
 * Real processes under real faults, judged:
 *
 *     npm run chaos -- --minutes 8 --seed 1 [--faults 'kill one,cut one off'] [--times 10] [--out folder]
 *
 * `--faults`: these in turn. `--times`: so many faults at most. Three nodes with load from producers, readers and groups, while a nemesis drawn from the seed kills, suspends, cuts off and fills up. A seed fixes which
 * faults come and how long they last, not how processes are scheduled: two runs of one seed are alike, not the same. Where a promise is
 * broken the exit code is 1, and what clients saw and nodes logged is in the folder that is named.
 */
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type ChaosResult, runChaos } from './run.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: '1' },
    faults: { type: 'string' },
    times: { type: 'string' },
    out: { type: 'string' },
  },
})

const seed = Number(values.seed)
const result = await runChaos({
  seed,
  durationMs: Number(values.minutes) * 60_000,
  ...(values.faults === undefined ? {} : { faults: values.faults.split(',') }),
  ...(values.times === undefined ? {} : { maxFaults: Number(values.times) }),
  onStep: (text) => console.log(text),
})
report(result)
if (result.violations.length > 0 || values.out !== undefined) await keep(result)
process.exitCode = result.violations.length > 0 ? 1 : 0

function report({ violations, history, faults, worstRecovery, worstStall }: ChaosResult): void {
  const { appends, reads, commits, committed, topicChanges, logs } = history
  const of = (outcome: string) => appends.filter((append) => append.outcome === outcome).length
  const records = logs.reduce((sum, log) => sum + log.records.length, 0)
  console.log(
    [
      `Seed ${seed}: ${[...faults].map(([name, count]) => `${name} ${count}`).join(', ')}`,
      `${appends.length} appends (${of('ok')} ok, ${of('fail')} refused, ${of('unknown')} unknown), ${reads.length} reads, ` +
        `${commits.length} commits, ${committed.length} looks at them, ${topicChanges.length} changes of topics, ${records} records in ${logs.length} logs`,
      `Longest until all clients went on: ${worstRecovery.ms.toFixed(0)} ms, after ${worstRecovery.after}; longest stall of a partition: ` +
        `${worstStall.ms.toFixed(0)} ms, during ${worstStall.during}`,
      violations.length === 0 ? 'No promise was broken' : `${violations.length} violations:`,
      ...violations.map(({ property, message }) => `  ${property}: ${message}`),
    ].join('\n'),
  )
}

async function keep({ history, violations, logs }: ChaosResult): Promise<void> {
  const folder = values.out ?? (await mkdtemp(join(tmpdir(), 'rookery-chaos-')))
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'violations.json'), JSON.stringify(violations, undefined, 2))
  for (const [kind, list] of Object.entries(history)) {
    if (!Array.isArray(list)) continue
    await writeFile(join(folder, `${kind}.jsonl`), list.map((each) => JSON.stringify(each)).join('\n'))
  }
  for (const [id, log] of logs) await writeFile(join(folder, `node-${id}.log`), log)
  console.log(`What clients saw and nodes logged: ${folder}`)
}
