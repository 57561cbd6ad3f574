import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  apis,
  ConsumerProtocolAssignment,
  ConsumerProtocolSubscription,
  decodeMessage,
  encodeMessage,
  GroupMetadataKey,
  GroupMetadataValue,
  MalformedRequestError,
  type Message,
  OffsetCommitKey,
  OffsetCommitValue,
  Reader,
  Writer,
} from '../../../src/protocol/index.ts'
import { arbitraryValue } from './arbitrary-message.ts'

const messages: Message[] = [
  ...Object.values(apis).flatMap((api): Message[] => [api.request, api.response]),
  GroupMetadataKey,
  GroupMetadataValue,
  OffsetCommitKey,
  OffsetCommitValue,
  ConsumerProtocolAssignment,
  ConsumerProtocolSubscription,
]
const cases = messages.flatMap((message) => {
  const { min, max } = message.versions
  return Array.from({ length: max - min + 1 }, (_, i) => ({ message, version: min + i }))
})

function encode(message: Message, version: number, value: Record<string, unknown>): Buffer {
  const writer = new Writer(16)
  encodeMessage(message, version, value, writer)
  const bytes = Buffer.concat(writer.finish())
  expect(writer.size).toBe(bytes.length)
  return bytes
}

/** The value, or undefined for bytes that were refused. Any other error fails the test. */
function tryDecode(message: Message, version: number, bytes: Buffer): unknown {
  try {
    return decodeMessage(message, version, new Reader(bytes))
  } catch (error) {
    if (error instanceof MalformedRequestError) return undefined
    throw error
  }
}

describe.each(messages)('$name', (message) => {
  const versions = cases.filter((each) => each.message === message)

  test.each(versions)('version $version reads what it writes', ({ version }) => {
    fc.assert(
      fc.property(arbitraryValue(message.fields, version), (value) => {
        const reader = new Reader(encode(message, version, value))
        deepStrictEqual(decodeMessage(message, version, reader), value)
        expect(reader.remaining).toBe(0)
      }),
      { numRuns: 15 },
    )
  })

  test.each(versions)('version $version, cut off anywhere, is malformed', ({ version }) => {
    fc.assert(
      fc.property(arbitraryValue(message.fields, version), (value) => {
        const bytes = encode(message, version, value)
        for (let length = 0; length < bytes.length; length++) {
          expect(tryDecode(message, version, bytes.subarray(0, length)), `${length} of ${bytes.length}`).toBe(undefined)
        }
      }),
      { numRuns: 2 },
    )
  })

  test.each(versions)('version $version survives changed and random bytes', ({ version }) => {
    const change = fc.array(fc.tuple(fc.nat(), fc.constantFrom(0, 1, 0x7f, 0x80, 0xff)), { maxLength: 4 })
    fc.assert(
      fc.property(arbitraryValue(message.fields, version), change, fc.uint8Array(), (value, changes, random) => {
        const bytes = encode(message, version, value)
        for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte
        tryDecode(message, version, bytes)
        tryDecode(message, version, Buffer.from(random))
      }),
      { numRuns: 10 },
    )
  })
})

test('both halves of an API have the same key and versions', () => {
  for (const api of Object.values(apis)) {
    expect([api.request.apiKey, api.response.apiKey]).toEqual([api.key, api.key])
    expect(api.response.versions).toEqual(api.request.versions)
    expect([api.request.name, api.response.name]).toEqual([`${api.name}Request`, `${api.name}Response`])
  }
})
