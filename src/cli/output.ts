import { exitCodes } from './exit.ts'
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

/** Text is collected, and written when there is enough of it: for output of many lines. */
export class BufferedOutput {
  #parts: string[] = []
  #length = 0

  async add(text: string): Promise<void> {
    this.#parts.push(text)
    this.#length += text.length
    if (this.#length >= 64 * 1024) await this.flush()
  }

  async flush(): Promise<void> {
    const text = this.#parts.join('')
    this.#parts = []
    this.#length = 0
    if (text !== '') await write(text)
  }
}

/** Codes of a pipe without a reader, and of a terminal that was closed. */
const readerGoneCodes: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EIO'])

let beforeEnd: () => Promise<void> = async () => undefined

/** What is to be done before the command ends because nobody reads it any more. */
export function whenReaderIsGone(work: () => Promise<void>): void {
  beforeEnd = work
}

/** `rookery consume | head`: who reads has had enough, and the command ends with 0. */
export function endWithReader(): void {
  if (process.stdout.listenerCount('error') > 0) return
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    const isGone = readerGoneCodes.has(error.code)
    if (!isGone) note(`rookery: The standard output takes no more: ${error.message}`)
    const end = () => process.exit(isGone ? exitCodes.ok : exitCodes.fault)
    beforeEnd().then(end, end)
  })
  // Whoever doesn't read remarks misses nothing of the result.
  process.stderr.on('error', () => undefined)
}

/** Asks a person; without one at the terminal, the command line is what was meant. */
export async function confirmed(question: string): Promise<boolean> {
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) return true
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    // Ctrl-C and Ctrl-D answer no.
    const answer = await terminal.question(`${question} [y/N] `).catch(() => '\n')
    if (/^y(?:es)?$/i.test(answer.trim())) return true
    if (answer === '\n') note('')
    note('Nothing was changed')
    return false
  } finally {
    terminal.close()
  }
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

/** How far long work is: a line on the standard error that is written over, only where that is a terminal. */
export class Progress {
  readonly #isShown = process.stderr.isTTY === true
  #lastMs = performance.now()
  #width = 0

  /** `text` is only made when it is time for the next. */
  show(text: () => string): void {
    const nowMs = performance.now()
    if (!this.#isShown || nowMs - this.#lastMs < 200) return
    this.#lastMs = nowMs
    const line = text().slice(0, (process.stderr.columns ?? 80) - 1)
    process.stderr.write(`\r${line}${' '.repeat(Math.max(0, this.#width - line.length))}`)
    this.#width = line.length
  }

  /** Takes the line away. */
  clear(): void {
    if (this.#width === 0) return
    process.stderr.write(`\r${' '.repeat(this.#width)}\r`)
    this.#width = 0
  }
}

/** `1.5 MiB` */
export function sizeText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let unit = 0
  let size = bytes
  for (; size >= 1024 && unit < units.length - 1; unit++) size /= 1024
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`
}

/** ISO 8601, in UTC; a dash for what is no time. */
export function timeText(timestampMs: number): string {
  return timestampMs < 0 || timestampMs > 8.64e15 ? '-' : new Date(timestampMs).toISOString()
}

/** `3 records`, `1 record` */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
