import { type Column, formatTable } from './table.ts'

/** Lines for programs instead of tables for people. */
export interface OutputOptions {
  readonly json?: boolean
}

/** A result: one JSON text, or what `asText` lays out. */
export async function show(options: OutputOptions, result: unknown, asText: () => string): Promise<void> {
  await write(options.json === true ? `${JSON.stringify(result, undefined, isTerminal() ? 2 : undefined)}\n` : asText())
}

export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  return formatTable(columns, rows, { colors: hasColors(process.stdout) })
}

/** Writes to the standard output; resolves when more may be written. */
export async function write(text: string | Uint8Array): Promise<void> {
  if (process.stdout.write(text)) return
  await new Promise<void>((resolve) => process.stdout.once('drain', resolve))
}

/** A remark beside the result, on the standard error. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`)
}

export function isTerminal(): boolean {
  return process.stdout.isTTY === true
}

/** NO_COLOR and its like are honoured by Node. */
export function hasColors(stream: NodeJS.WriteStream): boolean {
  return stream.isTTY === true && stream.hasColors()
}

/** `3 records`, `1 record` */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
