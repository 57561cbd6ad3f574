import { expect, test } from 'vitest'
import {
  ApiVersionsRequest,
  ApiVersionsResponse,
  apiName,
  apis,
  decodeMessage,
  ErrorCode,
  encodeRequest,
  encodeResponse,
  errorByCode,
  errorName,
  errors,
  HeartbeatRequest,
  HeartbeatResponse,
  MalformedRequestError,
  Reader,
  readRequestHeader,
  readResponseHeader,
} from '../../../src/protocol/index.ts'

const header = { correlationId: 0x01020304, clientId: 'me' }

test('a request header has tags when the version is flexible, and its client id is never compact', () => {
  const body = { groupId: 'g', generationId: 1, memberId: 'm' }
  const plain = Buffer.concat(encodeRequest(HeartbeatRequest, 3, header, body))
  expect(plain.toString('hex')).toBe(
    ['00000018', '000c', '0003', '01020304', '00026d65', '000167', '00000001', '00016d', 'ffff'].join(''),
  )
  const flexible = Buffer.concat(encodeRequest(HeartbeatRequest, 4, header, body))
  expect(flexible.subarray(4, 17).toString('hex')).toBe('000c0004010203040002' + '6d65' + '00')
  for (const frame of [plain, flexible]) {
    const reader = new Reader(frame, 4)
    const read = readRequestHeader(reader)
    expect(read).toMatchObject({ apiKey: 12, ...header })
    expect(decodeMessage(HeartbeatRequest, read.apiVersion, reader)).toMatchObject(body)
    expect(reader.remaining).toBe(0)
  }
})

test('tags in a request header are skipped', () => {
  const frame = Buffer.from('00120003000000070000' + '0205010a06020b0c' + '0261' + '0262' + '00', 'hex')
  const reader = new Reader(frame)
  expect(readRequestHeader(reader)).toEqual({ apiKey: 18, apiVersion: 3, correlationId: 7, clientId: '' })
  expect(decodeMessage(ApiVersionsRequest, 3, reader)).toMatchObject({
    clientSoftwareName: 'a',
    clientSoftwareVersion: 'b',
  })
})

test('the header of an unknown key or version is read as far as all versions share it', () => {
  for (const head of ['00120063', '7fff0000', 'ffff0001']) {
    const reader = new Reader(Buffer.from(`${head}00000007${'ffff'}${'ff'.repeat(9)}`, 'hex'))
    expect(readRequestHeader(reader)).toMatchObject({ correlationId: 7, clientId: null })
  }
  expect(() => readRequestHeader(new Reader(Buffer.from('00120003000000', 'hex')))).toThrow(MalformedRequestError)
})

test('a response header has tags when the version is flexible, ApiVersions never', () => {
  const heartbeat = encodeResponse(HeartbeatResponse, 4, 7, { errorCode: 27 })
  expect(Buffer.concat(heartbeat).toString('hex')).toBe('0000000c' + '00000007' + '00' + '00000000' + '001b' + '00')
  const reader = new Reader(Buffer.concat(heartbeat), 4)
  expect(readResponseHeader(apis.Heartbeat, 4, reader)).toBe(7)
  expect(decodeMessage(HeartbeatResponse, 4, reader).errorCode).toBe(27)
  const apiVersions = encodeResponse(ApiVersionsResponse, 3, 7, { errorCode: 0, apiKeys: [] })
  expect(Buffer.concat(apiVersions).toString('hex')).toBe('0000000c' + '00000007' + '0000' + '01' + '00000000' + '00')
})

test('an ApiVersions request of a version not known is answered in version 0', () => {
  const apiKeys = [{ apiKey: 18, minVersion: 0, maxVersion: 4 }]
  const frame = Buffer.concat(encodeResponse(ApiVersionsResponse, 0, 1, { errorCode: 35, apiKeys }))
  expect(frame.toString('hex')).toBe('00000010' + '00000001' + '0023' + '00000001' + '001200000004')
})

test('errors are found by name and by code', () => {
  expect(ErrorCode.NOT_LEADER_OR_FOLLOWER).toBe(6)
  expect(errorName(-1)).toBe('UNKNOWN_SERVER_ERROR')
  expect(errorName(4711)).toBe('4711')
  expect(errorByCode(45)).toBe(errors.OUT_OF_ORDER_SEQUENCE_NUMBER)
  expect(errors.NOT_COORDINATOR.retriable).toBe(true)
  expect(errors.INVALID_RECORD.retriable).toBe(false)
  const codes = Object.values(errors).map((error) => error.code)
  expect(codes).toEqual(Array.from({ length: 135 }, (_, i) => i - 1))
})

test('an API is named by its key', () => {
  expect(apiName(1)).toBe('Fetch')
  expect(apiName(999)).toBe('999')
})
