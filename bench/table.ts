/** Prints rows under headings, numbers to the right: what is read down a column is compared. */
export class Table {
  readonly #columns: readonly Column[]

  /** Each row is printed as soon as it is there; so widths are fixed from the start. */
  constructor(columns: readonly Column[]) {
    this.#columns = columns
  }

  head(): void {
    this.row(this.#columns.map(({ heading }) => heading))
  }

  row(cells: readonly string[]): void {
    const padded = this.#columns.map(({ width, left }, i) => {
      const cell = cells[i] ?? ''
      return left === true ? cell.padEnd(width) : cell.padStart(width)
    })
    console.log(padded.join('  ').trimEnd())
  }
}

export interface Column {
  readonly heading: string
  readonly width: number
  readonly left?: boolean
}

/** Three digits or so: what is measured is not better than that. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '-'
  if (value >= 100) return Math.round(value).toLocaleString('en-US')
  return value.toFixed(value >= 10 ? 1 : 2)
}

/** The least value that `rank` percent of all don't exceed; NaN of none. */
export function percentile(values: readonly number[], rank: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil((rank / 100) * sorted.length) - 1)] ?? Number.NaN
}

/** 12,345,678 as 12.3 M. */
export function count(value: number): string {
  if (value >= 1e6) return `${figure(value / 1e6)} M`
  return value >= 1e4 ? `${figure(value / 1e3)} k` : figure(value)
}

export function ratio(value: number): string {
  return Number.isFinite(value) ? `${value.toFixed(2)}x` : '-'
}

export function sizeText(bytes: number): string {
  if (bytes >= 2 ** 20) return `${figure(bytes / 2 ** 20).replace(/\.0+$/, '')} MiB`
  return bytes >= 1024 ? `${figure(bytes / 1024).replace(/\.0+$/, '')} KiB` : `${bytes} B`
}
