import { describe, expect, test } from 'vitest'
import { parseBootstrapServers } from '../../../../src/cli/client/cluster.ts'
import { expectNoError, RequestRefusedError } from '../../../../src/cli/client/errors.ts'
import { parseFrom } from '../../../../src/cli/client/starting-offsets.ts'

describe('parseBootstrapServers()', () => {
  test('takes lists, IPv6 addresses and hosts without a port', () => {
    expect(parseBootstrapServers('localhost:1, [::1]:2,kafka.example')).toEqual([
      { host: 'localhost', port: 1 },
      { host: '::1', port: 2 },
      { host: 'kafka.example', port: 9092 },
    ])
  })

  test.each(['', 'a:0', 'a:65536', 'a:b', 'a,,b', 'http://a:1', '::1:9092'])('refuses %j', (text) => {
    expect(() => parseBootstrapServers(text)).toThrow('allowed is host:port')
  })
})

describe('parseFrom()', () => {
  test.each([
    ['latest', { kind: 'latest' }],
    ['beginning', { kind: 'beginning' }],
    ['earliest', { kind: 'beginning' }],
    ['0', { kind: 'offset', offset: 0 }],
    ['-5', { kind: 'last', count: 5 }],
    ['2026-01-31T12:00:00Z', { kind: 'time', timestamp: Date.UTC(2026, 0, 31, 12) }],
  ])('%s', (text, from) => {
    expect(parseFrom(text)).toEqual(from)
  })

  test.each(['', 'now', '1.5', '--1', '99999999999999999', '2026-13-01', 'Jan 1'])('refuses %j', (text) => {
    expect(parseFrom(text)).toBeUndefined()
  })
})

test('a refusal says what, why and the name of the code, in the words of the broker where it has some', () => {
  const thrown = (code: number, message?: string) => {
    try {
      expectNoError('Topic t', code, message)
    } catch (error) {
      return error as RequestRefusedError
    }
    return undefined
  }
  expect(thrown(0)).toBeUndefined()
  expect(thrown(36, 'It is there')?.message).toBe('Topic t: It is there (TOPIC_ALREADY_EXISTS)')
  expect(thrown(5)).toMatchObject({ retriable: true, errorCode: 5 })
  expect(thrown(36)).toMatchObject({ retriable: false })
  expect(thrown(12345)).toBeInstanceOf(RequestRefusedError)
})
