import { styleText } from 'node:util'

export interface Column<Row> {
  readonly title: string
  readonly value: (row: Row) => string | number | null
}

export interface TableOptions {
  /** Column titles in bold. */
  readonly colors: boolean
}

/**
 * Rows under their column titles: text to the left, columns of nothing but numbers to the right, two spaces between; null shows
 * as a dash. Each line ends with a line feed.
 */
export function formatTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], options: TableOptions): string {
  const cells = columns.map(({ value }) => rows.map((row) => value(row)))
  const isRight = cells.map((column) => column.length > 0 && column.every((cell) => typeof cell !== 'string'))
  const texts = cells.map((column) => column.map((cell) => printable(cell === null ? '-' : String(cell))))
  const widths = columns.map(({ title }, i) => Math.max(width(title), ...texts[i]!.map(width)))
  const line = (values: readonly string[]) =>
    values
      .map((text, i) => {
        const padding = ' '.repeat(widths[i]! - width(text))
        return isRight[i]! ? padding + text : text + padding
      })
      .join('  ')
      .trimEnd()
  const title = line(columns.map((column) => column.title))
  const head = options.colors ? styleText('bold', title, { validateStream: false }) : title
  return [head, ...rows.map((_, i) => line(texts.map((column) => column[i]!)))].map((each) => `${each}\n`).join('')
}

/** Characters of other parties never steer the terminal. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '\ufffd')
}

/** Characters that a terminal shows, as far as a count of code points tells. */
function width(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
