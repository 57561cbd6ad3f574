import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseSeparator } from '../../../src/cli/data-format.ts'
import { formatJson, formatText, parseHeader, parseJsonLine, parseTextLine } from '../../../src/cli/record-text.ts'

const format = {
  keySeparator: undefined,
  key: null,
  keyFormat: 'text',
  valueFormat: 'text',
  nullText: undefined,
  headers: [],
  now: () => 42,
} as const
const json = (text: string) => parseJsonLine(Buffer.from(text), 'Line 7', format)

describe('a line of text', () => {
  test('is a value', () => {
    const { record, partition } = parseTextLine(Buffer.from('a:b'), 'Line 1', format)
    expect(record).toEqual({ timestamp: 42, key: null, value: Buffer.from('a:b'), headers: [] })
    expect(partition).toBeUndefined()
  })

  test('is a key and a value, cut at the first separator', () => {
    const { record } = parseTextLine(Buffer.from('k=>v=>w'), 'Line 1', { ...format, keySeparator: '=>' })
    expect(record).toMatchObject({ key: Buffer.from('k'), value: Buffer.from('v=>w') })
  })

  test('without the separator is refused, and named', () => {
    const withKey = { ...format, keySeparator: ':' }
    expect(() => parseTextLine(Buffer.from('kv'), 'Line 3', withKey)).toThrow('Line 3 has no ":"')
  })
})

describe('a line of JSON', () => {
  test('says key, value, headers, partition and time', () => {
    const line = '{"key":"k","value":"v","headers":{"a":"b","n":null},"partition":2,"timestamp":7,"offset":9}'
    expect(json(line)).toEqual({
      record: {
        timestamp: 7,
        key: Buffer.from('k'),
        value: Buffer.from('v'),
        headers: [
          { key: 'a', value: Buffer.from('b') },
          { key: 'n', value: null },
        ],
      },
      partition: 2,
    })
  })

  test('may have an object for a value, or none', () => {
    expect(json('{"value":{"a":1}}').record.value).toEqual(Buffer.from('{"a":1}'))
    expect(json('{"key":"k"}').record).toMatchObject({ value: null, timestamp: 42 })
  })

  test.each([
    ['{', 'Line 7 is not JSON'],
    ['[]', 'allowed is a JSON object'],
    ['"text"', 'allowed is a JSON object'],
    ['{"partition":-1}', 'partition'],
    ['{"partition":"0"}', 'partition'],
    ['{"timestamp":1.5}', 'timestamp'],
    ['{"headers":"a=b"}', 'headers'],
    ['{"key":"k","payload":"v"}', 'payload: allowed is only key,'],
    ['{"headers":[{"value":"b"}]}', 'headers'],
    ['{"valueBase64":"%%"}', 'valueBase64'],
    ['{"valueBase64":"/w==","value":"a"}', 'valueBase64'],
  ])('%s is refused', (line, message) => {
    expect(() => json(line)).toThrow(message)
  })

  test('that was consumed is produced as the same record, whatever its bytes', () => {
    const bytes = fc.option(fc.uint8Array().map((each) => Buffer.from(each)))
    const headers = fc.array(fc.record({ key: fc.string(), value: bytes }), { maxLength: 3 })
    fc.assert(
      fc.property(bytes, bytes, headers, fc.nat(), (key, value, headers, timestamp) => {
        const line = formatJson({ topic: 't', partition: 1, offset: 5, timestamp, key, value, headers })
        expect(line.indexOf('\n')).toBe(line.length - 1)
        expect(json(line)).toEqual({ record: { timestamp, key, value, headers }, partition: 1 })
      }),
    )
  })
})

describe('a record as text', () => {
  const record = {
    topic: 't',
    partition: 1,
    offset: 5,
    timestamp: 0,
    key: null,
    value: Buffer.from('a\u001bb'),
    headers: [{ key: 'h', value: Buffer.from('x') }],
  }

  const plain = { keyFormat: 'text', valueFormat: 'text', nullText: 'null' } as const

  test('is its value, byte for byte', () => {
    const options = { ...plain, keySeparator: undefined, details: false, printableOnly: false }
    expect(formatText(record, options).toString()).toBe('a\u001bb\n')
  })

  test('has its key among the details, where it is not printed already', () => {
    const details = { ...plain, keySeparator: undefined, details: true, printableOnly: false }
    const keyed = { ...record, key: Buffer.from('anna'), value: Buffer.from('a') }
    expect(formatText(keyed, details).toString()).toBe('t-1@5 1970-01-01T00:00:00.000Z key=anna h=x a\n')
    expect(formatText({ ...keyed, key: null }, details).toString()).toBe('t-1@5 1970-01-01T00:00:00.000Z h=x a\n')
    const separated = formatText(keyed, { ...details, keySeparator: ':' }).toString()
    expect(separated).toBe('t-1@5 1970-01-01T00:00:00.000Z h=x anna:a\n')
  })

  test('has no control characters on a terminal', () => {
    const options = { ...plain, keySeparator: '\t', details: true, printableOnly: true }
    expect(formatText(record, options).toString()).toBe('t-1@5 1970-01-01T00:00:00.000Z h=x null\ta\ufffdb\n')
  })
})

test('a separator may be written with the escapes of kcat', () => {
  expect(parseSeparator('\\t')).toBe('\t')
  expect(parseSeparator('=\\x3a\\n')).toBe('=:\n')
  expect(parseSeparator('\\\\t')).toBe('\\t')
  for (const plain of ['\t', ':', '\\', '\\w', '']) expect(parseSeparator(plain)).toBe(plain)
})

test('a line that is no JSON is told with the reason', () => {
  expect(() => parseJsonLine(Buffer.from('{"value":}'), 'Line 1', format)).toThrow(/^Line 1 is not JSON: .*'}'/)
  expect(() => parseTextLine(Buffer.from('{"a":1'), 'Line 2', { ...format, valueFormat: 'json' })).toThrow(
    /^The value of Line 2 is not JSON: .*position 6/,
  )
})

test('a header is a name and a value', () => {
  expect(parseHeader('a=b=c')).toEqual({ key: 'a', value: Buffer.from('b=c') })
  expect(() => parseHeader('a')).toThrow('allowed is name=value')
})
