import { messageOf } from '../base/index.ts'
import type { RecordInput } from '../protocol/index.ts'
import type { FetchedRecord } from './client/fetcher.ts'
import { type DataFormat, formatData, isBase64, jsonOf, parseData } from './data-format.ts'
import { UsageError } from './exit.ts'
import { timeText } from './output.ts'
import { printable } from './table.ts'

/** A record of an input line, and where it is to go when the line says so. */
export interface LineRecord {
  readonly record: RecordInput
  readonly partition: number | undefined
}

export interface LineFormat {
  /** The text between key and value; undefined: a line is a value. */
  readonly keySeparator: string | undefined
  /** The key of every record that has none of its own. */
  readonly key: Buffer | null
  readonly keyFormat: DataFormat
  readonly valueFormat: DataFormat
  /** A key or a value that is this text is null; undefined: no text is. */
  readonly nullText: string | undefined
  /** What every record gets, before those of its own line. */
  readonly headers: NonNullable<RecordInput['headers']>
  /** For lines that say no time of their own; milliseconds since 1970. */
  readonly now: () => number
}

/** A line is a value, or a key and a value. `place` names the line in errors. Throws `UsageError`. */
export function parseTextLine(line: Buffer, place: string, format: LineFormat): LineRecord {
  const { keySeparator, headers } = format
  const timestamp = format.now()
  const parsed = (part: Buffer, as: DataFormat, what: string) => {
    if (format.nullText !== undefined && part.equals(Buffer.from(format.nullText))) return null
    return parseData(part, as, `${what} of ${place}`)
  }
  if (keySeparator === undefined) {
    const value = parsed(line, format.valueFormat, 'The value')
    return { record: { timestamp, key: format.key, value, headers }, partition: undefined }
  }
  const at = line.indexOf(keySeparator)
  if (at < 0) throw new UsageError(`${place} has no ${JSON.stringify(keySeparator)} between a key and a value`)
  const key = parsed(line.subarray(0, at), format.keyFormat, 'The key')
  const value = parsed(line.subarray(at + Buffer.byteLength(keySeparator)), format.valueFormat, 'The value')
  return { record: { timestamp, key, value, headers }, partition: undefined }
}

/**
 * A line is a JSON object as `formatJson` writes it: `value` or `valueBase64`, and where wanted `key` or `keyBase64`, `headers`,
 * `partition` and `timestamp`. A value that is no text is taken as its JSON text; null, or none, is a tombstone. What else
 * there is (`topic`, `offset`) is passed over, so that what was consumed can be produced. Throws `UsageError`.
 */
export function parseJsonLine(line: Buffer, place: string, format: LineFormat): LineRecord {
  const fields = parseObject(line, place)
  // A value under another name would become a null, which deletes its key.
  const other = Object.keys(fields).find((name) => !jsonFields.has(name))
  if (other !== undefined) throw badField(place, other, `only ${[...jsonFields].join(', ')}`)
  const { partition, timestamp } = fields
  if (partition !== undefined && !isNaturalNumber(partition)) throw badField(place, 'partition', 'a number from 0')
  if (timestamp !== undefined && timestamp !== -1 && !isNaturalNumber(timestamp)) {
    throw badField(place, 'timestamp', 'milliseconds since 1970, or -1 for none')
  }
  return {
    record: {
      timestamp: timestamp ?? format.now(),
      key: fields.key === undefined && fields.keyBase64 === undefined ? format.key : bytesOf(fields, 'key', place),
      value: bytesOf(fields, 'value', place),
      headers: [...format.headers, ...headersOf(fields.headers, place)],
    },
    partition,
  }
}

/** What `formatJson` writes; topic and offset are told by where a record goes. */
const jsonFields: ReadonlySet<string> = new Set([
  'key',
  'keyBase64',
  'value',
  'valueBase64',
  'headers',
  'timestamp',
  'partition',
  'topic',
  'offset',
])

/** `name=value` of a command line. Throws `UsageError`. */
export function parseHeader(text: string): { readonly key: string; readonly value: Buffer } {
  const equals = text.indexOf('=')
  if (equals < 1) throw new UsageError(`--header ${text}: allowed is name=value`)
  return { key: text.slice(0, equals), value: Buffer.from(text.slice(equals + 1)) }
}

/**
 * The record as one JSON line. Bytes that are no UTF-8 are there as `keyBase64`, `valueBase64`. With `valueFormat` json a value
 * that is a JSON object, array, number or boolean is there as such, and not as text.
 */
export function formatJson(record: FetchedRecord, valueFormat: DataFormat = 'text'): string {
  const { topic, partition, offset, timestamp, headers } = record
  const text = JSON.stringify({
    topic,
    partition,
    offset,
    timestamp,
    ...shownBytes('key', record.key),
    ...(valueFormat === 'json' ? embedded(record.value) : shownBytes('value', record.value)),
    ...(headers.length === 0
      ? {}
      : { headers: headers.map(({ key, value }) => ({ key, ...shownBytes('value', value) })) }),
  })
  return `${text}\n`
}

export interface TextFormat {
  /** Prints the key too, this between it and the value. */
  readonly keySeparator: string | undefined
  readonly keyFormat: DataFormat
  readonly valueFormat: DataFormat
  /** What stands for null. */
  readonly nullText: string
  /** Prints partition, offset, time and headers before each record. */
  readonly details: boolean
  /** For a terminal: control characters but tabs and line feeds are replaced. */
  readonly printableOnly: boolean
}

/** The record's value and a line feed. */
export function formatText(record: FetchedRecord, format: TextFormat): Buffer {
  const parts: Buffer[] = []
  if (format.details) {
    parts.push(Buffer.from(detailsOf(record)))
    const isKeyShown = format.keySeparator === undefined && record.key !== null
    if (isKeyShown) parts.push(Buffer.from('key='), shown(record.key, format.keyFormat, format), blank)
    for (const pair of headerPairs(record)) parts.push(Buffer.from(pair), blank)
  }
  if (format.keySeparator !== undefined) {
    parts.push(shown(record.key, format.keyFormat, format), Buffer.from(format.keySeparator))
  }
  parts.push(shown(record.value, format.valueFormat, format), newline)
  return Buffer.concat(parts)
}

/**
 * Compiles a pattern of a line: `%t` topic, `%p` partition, `%o` offset, `%T` milliseconds since 1970, `%d` the same as a date,
 * `%k` key, `%v` value, `%h` headers, `%%` a percent sign; `\t`, `\n` and `\\`. Throws `UsageError` for any other sign.
 */
export function compilePattern(pattern: string, format: TextFormat): (record: FetchedRecord) => Buffer {
  const pieces = [...pattern.matchAll(/%(.?)|\\(.?)|[^%\\]+/gsu)].map(([text, sign, escaped]): Piece => {
    if (escaped !== undefined) {
      const character = escapes[escaped]
      if (character !== undefined) return () => character
      throw new UsageError(`--format: \\${escaped} is unknown: allowed are \\t, \\n and \\\\`)
    }
    if (sign === undefined) return () => text
    const piece = signs[sign]
    if (piece !== undefined) return piece
    throw new UsageError(`--format: %${sign} is unknown: allowed are %t %p %o %T %d %k %v %h %%`)
  })
  return (record) => {
    const parts = pieces.map((piece) => piece(record, format))
    return Buffer.concat([...parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)), newline])
  }
}

type Piece = (record: FetchedRecord, format: TextFormat) => string | Buffer

const escapes: Readonly<Record<string, string>> = { t: '\t', n: '\n', '\\': '\\' }

const signs: Readonly<Record<string, Piece>> = {
  t: ({ topic }) => topic,
  p: ({ partition }) => String(partition),
  o: ({ offset }) => String(offset),
  T: ({ timestamp }) => String(timestamp),
  d: ({ timestamp }) => timeText(timestamp),
  k: ({ key }, format) => shown(key, format.keyFormat, format),
  v: ({ value }, format) => shown(value, format.valueFormat, format),
  h: (record) => headerPairs(record).join(','),
  '%': () => '%',
}

const newline = Buffer.from('\n')
const blank = Buffer.from(' ')

function detailsOf({ topic, partition, offset, timestamp }: FetchedRecord): string {
  return `${topic}-${partition}@${offset} ${timeText(timestamp)} `
}

function headerPairs({ headers }: FetchedRecord): string[] {
  return headers.map(({ key, value }) => printable(`${key}=${value === null ? 'null' : value.toString()}`))
}

function shown(bytes: Buffer | null, as: DataFormat, { printableOnly, nullText }: TextFormat): Buffer {
  if (bytes === null) return Buffer.from(nullText)
  const text = formatData(bytes, as)
  return printableOnly ? Buffer.from(text.toString().replaceAll(/[^\P{Cc}\t\n]/gu, '\ufffd')) : text
}

/** `{"value": {...}}` for what is JSON and wouldn't be taken for a text, or for no value, when it is read again. */
function embedded(bytes: Buffer | null): Record<string, unknown> {
  const json = bytes === null ? undefined : jsonOf(bytes)
  const isText = json === undefined || json.value === null || typeof json.value === 'string'
  return isText ? shownBytes('value', bytes) : { value: json.value }
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
    throw new UsageError(`${place} is not JSON: ${messageOf(error)}`, { cause: error })
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
    const isUsable = typeof base64 === 'string' && isBase64(base64) && value === undefined
    if (!isUsable) throw badField(place, `${name}Base64`, `base64, without ${name}`)
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
