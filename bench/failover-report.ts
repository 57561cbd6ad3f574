import { UsageError } from './options.ts'
import { percentile } from './table.ts'

/** What one run gave, in milliseconds, by the name of the figure. */
export type Figures = Readonly<Record<string, number>>

/** Milliseconds that the median and the worst of all runs are to stay below. */
export interface Target {
  readonly median?: number
  readonly worst?: number
}

/** All runs of one event on one cluster. A run that failed gave no figures, whatever it saw before. */
export interface Outcome {
  readonly brokers: string
  readonly figures: readonly Figures[]
  /** Why each of the other runs failed. */
  readonly failures: readonly string[]
}

export interface FailoverRow {
  readonly brokers: string
  /** Empty where no run told what it measures. */
  readonly figure: string
  /** '20', or '19 of 20' where runs failed. */
  readonly runs: string
  /** NaN where every run failed. */
  readonly median: number
  readonly worst: number
  /** Empty: there is none. */
  readonly target: string
  /** A run that failed has not met it. */
  readonly met: '' | 'yes' | 'no'
}

/** A row for each figure, those with a target first. None for an event that no run was begun of. */
export function rowsOf(
  { brokers, figures, failures }: Outcome,
  targets: Readonly<Record<string, Target>>,
): FailoverRow[] {
  const all = figures.length + failures.length
  if (all === 0) return []
  const names = new Set([...Object.keys(targets), ...figures.flatMap((each) => Object.keys(each))])
  return [...(names.size === 0 ? [''] : names)].map((name) => {
    const values = figures.flatMap((each) => each[name] ?? [])
    const [median, worst] = [percentile(values, 50), percentile(values, 100)]
    const target = targets[name]
    const isMet =
      values.length === all &&
      median < (target?.median ?? Number.POSITIVE_INFINITY) &&
      worst < (target?.worst ?? Number.POSITIVE_INFINITY)
    return {
      brokers,
      figure: name,
      runs: values.length === all ? String(all) : `${values.length} of ${all}`,
      median,
      worst,
      target: Object.entries(target ?? {})
        .map(([which, ms]) => `${which} < ${ms}`)
        .join(', '),
      met: target === undefined ? '' : isMet ? 'yes' : 'no',
    }
  })
}

/** Rows of the same figure one after the other, figures in the order in which they first come. */
export function sideBySide(rows: readonly FailoverRow[]): FailoverRow[] {
  return [...Map.groupBy(rows, ({ figure }) => figure).values()].flat()
}

/**
 * Those whose name has one of the texts in `wanted` in it, which commas separate, whatever their case; all when left out. Throws `UsageError`
 * when a text is in no name.
 */
export function namesLike(names: readonly string[], wanted: string | undefined): string[] {
  if (wanted === undefined) return [...names]
  const texts = wanted.split(',').map((text) => text.trim().toLowerCase())
  const has = (name: string, text: string) => text !== '' && name.toLowerCase().includes(text)
  const missing = texts.find((text) => !names.some((name) => has(name, text)))
  if (missing !== undefined) {
    throw new UsageError(`--rows ${wanted}: no event has '${missing}' in its name; there are ${names.join(', ')}`)
  }
  return names.filter((name) => texts.some((text) => has(name, text)))
}

/** 45 s, 3.5 min, 68 min. */
export function durationText(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`
  const minutes = seconds / 60
  return minutes < 10 ? `${minutes.toFixed(1).replace('.0', '')} min` : `${Math.round(minutes)} min`
}
