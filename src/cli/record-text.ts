import type { RecordInput } from '../protocol/index.ts'
import type { FetchedRecord } from './client/fetcher.ts'
import { UsageError } from './exit.ts'
import { printable } from './table.ts'

/** A record of an input line, and where it is to go when the line says so. */
export interface LineRecord {
  readonly record: RecordInput
  readonly partition: number | undefined
}

export interface LineFormat {
  /** The text between key and value; undefined: a line is a value. */
  readonly keySeparator: string | undefined
  /** What every record gets, before those of its own line. */
  readonly headers: NonNullable<RecordInput['headers']>
  /** For lines that say no time of their own; milliseconds since 1970. */
  readonly now: () => number
}

/** A line is a value, or a key and a value. `place` names the line in errors. Throws `UsageError`. */
export function parseTextLine(line: Buffer, place: string, format: LineFormat): LineRecord {
  const { keySeparator, headers } = format
  const timestamp = format.now()
  if (keySeparator === undefined) return { record: { timestamp, value: line, headers }, partition: undefined }
  const at = line.indexOf(keySeparator)
  if (at < 0) throw new UsageError(`${place} has no ${JSON.stringify(keySeparator)} between a key and a value`)
  const key = line.subarray(0, at)
  const value = line.subarray(at + Buffer.byteLength(keySeparator))
  return { record: { timestamp, key, value, headers }, partition: undefined }
}

/**
 * A line is a JSON object as `formatJson` writes it: `value` or `valueBase64`, and where wanted `key` or `keyBase64`, `headers`,
 * `partition` and `timestamp`. A value that is no text is taken as its JSON text; null, or none, is a tombstone. What else
 * there is (`topic`, `offset`) is passed over, so that what was consumed can be produced. Throws `UsageError`.
 */
export function parseJsonLine(line: Buffer, place: string, format: LineFormat): LineRecord {
  const fields = parseObject(line, place)
  const { partition, timestamp } = fields
  if (partition !== undefined && !isNaturalNumber(partition)) throw badField(place, 'partition', 'a number from 0')
  if (timestamp !== undefined && !isNaturalNumber(timestamp)) {
    throw badField(place, 'timestamp', 'milliseconds since 1970')
  }
  return {
    record: {
      timestamp: timestamp ?? format.now(),
      key: bytesOf(fields, 'key', place),
      value: bytesOf(fields, 'value', place),
      headers: [...format.headers, ...headersOf(fields.headers, place)],
    },
    partition,
  }
}

/** `name=value` of a command line. Throws `UsageError`. */
export function parseHeader(text: string): { readonly key: string; readonly value: Buffer } {
  const equals = text.indexOf('=')
  if (equals < 1) throw new UsageError(`--header ${text}: allowed is name=value`)
  return { key: text.slice(0, equals), value: Buffer.from(text.slice(equals + 1)) }
}

/** The record as one JSON line. Bytes that are no UTF-8 are there as `keyBase64`, `valueBase64`. */
export function formatJson(record: FetchedRecord): string {
  const { topic, partition, offset, timestamp, headers } = record
  const text = JSON.stringify({
    topic,
    partition,
    offset,
    timestamp,
    ...shownBytes('key', record.key),
    ...shownBytes('value', record.value),
    ...(headers.length === 0
      ? {}
      : { headers: headers.map(({ key, value }) => ({ key, ...shownBytes('value', value) })) }),
  })
  return `${text}\n`
}

export interface TextFormat {
  /** Prints the key too, this between it and the value. */
  readonly keySeparator: string | undefined
  /** Prints partition, offset, time and headers before each record. */
  readonly details: boolean
  /** For a terminal: control characters but tabs and line feeds are replaced. */
  readonly printableOnly: boolean
}

/** The record's value and a line feed; null shows as `null`. */
export function formatText(record: FetchedRecord, format: TextFormat): Buffer {
  const parts: Buffer[] = []
  if (format.details) parts.push(Buffer.from(detailsOf(record)))
  if (format.keySeparator !== undefined) {
    parts.push(shown(record.key, format.printableOnly), Buffer.from(format.keySeparator))
  }
  parts.push(shown(record.value, format.printableOnly), newline)
  return Buffer.concat(parts)
}

const newline = Buffer.from('\n')
const nullText = Buffer.from('null')

function detailsOf({ topic, partition, offset, timestamp, headers }: FetchedRecord): string {
  const time = timestamp < 0 || timestamp > 8.64e15 ? '-' : new Date(timestamp).toISOString()
  const pairs = headers.map(({ key, value }) => printable(`${key}=${value === null ? 'null' : value.toString()}`))
  return [`${topic}-${partition}@${offset}`, time, ...pairs, ''].join(' ')
}

function shown(bytes: Buffer | null, printableOnly: boolean): Buffer {
  if (bytes === null) return nullText
  return printableOnly ? Buffer.from(bytes.toString().replaceAll(/[^\P{Cc}\t\n]/gu, '\ufffd')) : bytes
}

/** `{"value": "text"}`, or `{"valueBase64": "..."}` for bytes that are no UTF-8. */
function shownBytes(name: string, bytes: Buffer | null): Record<string, string | null> {
  if (bytes === null) return { [name]: null }
  const text = bytes.toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? { [name]: text } : { [`${name}Base64`]: bytes.toString('base64') }
}

function parseObject(line: Buffer, place: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(line.toString('utf8'))
  } catch (error) {
    throw new UsageError(`${place} is not JSON`, { cause: error })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new UsageError(`${place}: allowed is a JSON object such as {"key":"k","value":"v"}`)
  }
  return value as Record<string, unknown>
}

function bytesOf(fields: Record<string, unknown>, name: string, place: string): Buffer | null {
  const base64 = fields[`${name}Base64`]
  const value = fields[name]
  if (base64 !== undefined) {
    const isBase64 = typeof base64 === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(base64) && value === undefined
    if (!isBase64) throw badField(place, `${name}Base64`, `base64, without ${name}`)
    return Buffer.from(base64, 'base64')
  }
  return textBytes(value)
}

function textBytes(value: unknown): Buffer | null {
  if (value === undefined || value === null) return null
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
}

/** A list as `formatJson` writes it, or an object of names and texts. */
function headersOf(value: unknown, place: string): NonNullable<RecordInput['headers']> {
  if (value === undefined || value === null) return []
  const allowed = 'an object of texts, or a list of {"key", "value"}'
  if (typeof value !== 'object') throw badField(place, 'headers', allowed)
  if (!Array.isArray(value)) {
    return Object.entries(value).map(([key, each]) => ({ key, value: textBytes(each) }))
  }
  return value.map((header: unknown) => {
    const fields = (typeof header === 'object' && header !== null ? header : {}) as Record<string, unknown>
    if (typeof fields.key !== 'string') throw badField(place, 'headers', allowed)
    return { key: fields.key, value: bytesOf(fields, 'value', place) }
  })
}

function isNaturalNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function badField(place: string, field: string, allowed: string): UsageError {
  return new UsageError(`${place}: ${field}: allowed is ${allowed}`)
}
