import { styleText } from 'node:util'

const colors = { debug: 'gray', info: 'green', warn: 'yellow', error: 'red' } as const

/**
 * `12:00:01.250 info  isr shrunk  topic=orders partition=0` of one JSON line of pino's; a stack follows on lines of its own.
 * A line that is no JSON object comes back as it is. Times are in UTC.
 */
export function humanLine(line: string, colored: boolean): string {
  const record = parsed(line)
  if (record === undefined) return line
  const { level, time, msg, name: _name, error, ...fields } = record
  const label = String(level)
  const color = Object.hasOwn(colors, label) ? colors[label as keyof typeof colors] : 'gray'
  const paint = (style: Parameters<typeof styleText>[0], text: string) =>
    colored ? styleText(style, text, { validateStream: false }) : text
  const parts = [paint('gray', clockTime(time)), paint(color, label.padEnd(5)), String(msg ?? '')]
  const pairs = Object.entries(fields).map(([key, value]) => `${paint('gray', `${key}=`)}${shown(value)}`)
  if (error !== undefined) pairs.push(`${paint('gray', 'error=')}${shown(messageIn(error))}`)
  if (pairs.length > 0) parts.push('', pairs.join(' '))
  const stack = stackIn(error)
  return `${parts.join(' ')}\n${stack === undefined ? '' : `${stack}\n`}`
}

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined // Not one of pino's lines: shown as it is.
  }
}

function clockTime(time: unknown): string {
  const date = new Date(typeof time === 'number' ? time : Number.NaN)
  return Number.isNaN(date.getTime()) ? '-' : date.toISOString().slice(11, 23)
}

/** Text as it is where it can't be misread, everything else as JSON; control characters never reach the terminal. */
function shown(value: unknown): string {
  return typeof value === 'string' && /^[\w./:@+-]+$/.test(value) ? value : printable(JSON.stringify(value))
}

function messageIn(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'message' in error ? error.message : error
}

function stackIn(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('stack' in error)) return undefined
  return printable(String(error.stack)).replaceAll(/^/gm, '  ')
}

/** Control characters, but for the line feed, replaced: JSON leaves some of them as they are. */
function printable(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]/gu, '\ufffd')
}
