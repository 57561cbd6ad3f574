import { readFileSync, renameSync, writeFileSync } from 'node:fs'

/** Seeds between `from` and `next` are done. */
export interface Progress {
  /** What was run: another command does not go on with it. */
  readonly command: string
  readonly from: number
  readonly seeds: number
  next: number
  passed: number
  readonly failed: number[]
  /** Milliseconds over all runs of the command. */
  spentMs: number
  slowestMs: number
  /** Numbers that the results tell, added up. */
  readonly totals: Record<string, number>
}

/** What `file` says of the same command, or a beginning. Throws when the file is of another command. */
export function resumed(file: string | undefined, command: string, from: number, seeds: number): Progress {
  const fresh = { command, from, seeds, next: from, passed: 0, failed: [], spentMs: 0, slowestMs: 0, totals: {} }
  const text = file === undefined ? undefined : readIfThere(file)
  if (text === undefined) return fresh
  const saved = JSON.parse(text) as Progress
  if (saved.command === command && saved.from === from && saved.seeds === seeds) return saved
  throw new Error(`${file} is of another run: ${saved.command} --from ${saved.from} --seeds ${saved.seeds}`)
}

/** Replaces the file as a whole. */
export function save(file: string | undefined, progress: Progress): void {
  if (file === undefined) return
  writeFileSync(`${file}.tmp`, `${JSON.stringify(progress, undefined, 2)}\n`)
  renameSync(`${file}.tmp`, file)
}

export function addUp(totals: Record<string, number>, result: object): void {
  for (const [name, value] of Object.entries(result)) {
    if (typeof value === 'number') totals[name] = (totals[name] ?? 0) + value
  }
}

export function progressLine({ from, seeds, next, failed, spentMs }: Progress): string {
  const done = next - from
  const leftS = done === 0 ? 0 : ((spentMs / done) * (seeds - done)) / 1000
  const failures = failed.length === 0 ? '' : ` (${failed.join(', ')})`
  return `${done} of ${seeds} seeds, ${failed.length} failed${failures}, ${Math.round(leftS / 60)} min left`
}

export function summary({ passed, failed, spentMs, slowestMs, totals }: Progress): string {
  const seconds = spentMs / 1000
  const rounded = Object.entries(totals).map(([name, value]) => `${name} ${Math.round(value)}`)
  const failures = failed.length === 0 ? '' : ` (${failed.join(', ')})`
  return [
    `${passed} seeds passed, ${failed.length} failed${failures}, in ${seconds.toFixed(1)} s:`,
    `${(passed / seconds).toFixed(1)} seeds/s (slowest ${slowestMs.toFixed(0)} ms), ${Math.round((totals.events ?? 0) / seconds)} events/s;`,
    rounded.join(', '),
  ].join(' ')
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
