import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type dataFormats, formatData, parseData } from '../../../src/cli/data-format.ts'

const parsed = (text: string, format: (typeof dataFormats)[number]) => parseData(Buffer.from(text), format, 'It')

test.each(['hex', 'base64', 'text'] as const)('bytes as %s come back as they were', (format) => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const buffer = Buffer.from(bytes)
      expect(parseData(formatData(buffer, format), format, 'It').equals(buffer)).toBe(true)
    }),
  )
})

describe('JSON', () => {
  test('is one line when it is shown, and a string where it is no JSON', () => {
    expect(formatData(Buffer.from('{ "a":\n 1 }'), 'json').toString()).toBe('{"a":1}')
    expect(formatData(Buffer.from('a "b"\n'), 'json').toString()).toBe('"a \\"b\\"\\n"')
  })

  test('is checked and kept byte for byte when it is written', () => {
    expect(parsed('{ "a": 1.0 }', 'json').toString()).toBe('{ "a": 1.0 }')
    expect(() => parsed('{a}', 'json')).toThrow('It is not JSON')
  })
})

test('what is no hex or base64 is refused', () => {
  for (const text of ['1', 'xy', '0x12', 'ab ']) expect(() => parsed(text, 'hex')).toThrow('It is not hexadecimal')
  for (const text of ['a', 'ab=c', 'a===', '_-', 'ab=', 'abcde']) {
    expect(() => parsed(text, 'base64')).toThrow('It is not base64')
  }
  expect(parsed('aGk=', 'base64').toString()).toBe('hi')
  expect(parsed('aGk', 'base64').toString()).toBe('hi')
})
