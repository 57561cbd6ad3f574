import * as platformatic from '@platformatic/kafka'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { uuidToBytes } from '../../../src/base/index.ts'
import { apis, encodeMessage, type Message, Writer } from '../../../src/protocol/index.ts'
import type { Field, Fields } from '../../../src/protocol/schema.ts'
import { inRange } from '../../../src/protocol/versions.ts'
import { arbitraryValue } from './arbitrary-message.ts'

/** The client's parser of one version of one response. It throws for any error code but 0. */
interface ResponseParser {
  parseResponse(correlationId: number, apiKey: number, version: number, reader: { readonly remaining: number }): unknown
}

const exported = platformatic as unknown as Record<string, ResponseParser | undefined>

const cases = Object.values(apis).flatMap((api) => {
  const response: Message = api.response
  const name = api.name.charAt(0).toLowerCase() + api.name.slice(1)
  return Array.from({ length: response.versions.max + 1 }, (_, version) => ({
    name,
    key: api.key,
    response,
    version,
    parser: exported[`${name}V${version}`],
  })).filter((each) => each.parser !== undefined && each.version >= response.versions.min)
})

let compared = 0

test.each(cases)('@platformatic/kafka reads $name response, version $version, as we wrote it', (each) => {
  const { response, version, key, parser } = each
  fc.assert(
    fc.property(arbitraryValue(response.fields, version), (arbitrary) => {
      const value = withoutErrors(arbitrary) as Record<string, unknown>
      const writer = new Writer()
      encodeMessage(response, version, value, writer)
      const reader = platformatic.Reader.from(Buffer.concat(writer.finish()))
      const parsed = parser?.parseResponse(1, key, version, reader)
      expect(reader.remaining).toBe(0)
      compared += compareFields(response.fields, version, value, parsed as Record<string, unknown>)
    }),
    { numRuns: 10 },
  )
})

test('the other client has parsers for most versions, which were compared by many values', () => {
  expect(cases.length).toBeGreaterThan(150)
  expect(compared).toBeGreaterThan(5000)
})

/** The same without what makes the client throw, and without records, which it would take apart. */
function withoutErrors(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutErrors)
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      if (name === 'records') return [name, null]
      if (name === 'recordErrors') return [name, []]
      return [name, /errorCode/i.test(name) ? 0 : withoutErrors(inner)]
    }),
  )
}

/** Compares the fields that both sides know by the same name, and returns how many those were. */
function compareFields(
  fields: Fields,
  version: number,
  ours: Record<string, unknown>,
  theirs: Record<string, unknown>,
): number {
  let compared = 0
  for (const [name, field] of Object.entries(fields)) {
    if (inRange(field.versions, version) && name in theirs)
      compared += compare(field, version, ours[name], theirs[name])
  }
  return compared
}

function compare(field: Field, version: number, ours: unknown, theirs: unknown): number {
  if (ours === null) {
    expect(theirs ?? null).toBe(null)
    return 1
  }
  switch (field.kind) {
    case 'struct':
      return compareFields(field.fields, version, ours as Record<string, unknown>, theirs as Record<string, unknown>)
    case 'array': {
      const [ourElements, theirElements] = [ours, theirs] as Record<string, unknown>[][]
      expect(theirElements).toHaveLength(ourElements!.length)
      return ourElements!.reduce(
        (sum, each, i) => sum + compareFields(field.fields, version, each, theirElements![i]!),
        1,
      )
    }
    case 'uuid':
      expect(String(theirs).replaceAll('-', '')).toBe(uuidToBytes(String(ours))?.toString('hex'))
      return 1
    case 'int64':
      expect(Number(theirs)).toBe(ours)
      return 1
    default:
      expect(theirs).toEqual(ours)
      return 1
  }
}
