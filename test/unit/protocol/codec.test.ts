import { describe, expect, test } from 'vitest'
import { AssertionError, zeroUuid } from '../../../src/base/index.ts'
import {
  decodeMessage,
  encodeMessage,
  FetchRequest,
  FetchResponse,
  InitProducerIdRequest,
  type Message,
  type MessageInput,
  MetadataRequest,
  MetadataResponse,
  OffsetCommitRequest,
  Reader,
  tooHighInt64,
  tooLowInt64,
  UnsupportedFieldError,
  Writer,
} from '../../../src/protocol/index.ts'
import { data } from '../../../src/protocol/message.ts'
import { array, arrayOf, float64, int32, string, struct, uint16 } from '../../../src/protocol/schema.ts'

function encode<M extends Message>(message: M, version: number, value: MessageInput<M>): Buffer {
  const writer = new Writer()
  encodeMessage(message as Message, version, value as Record<string, unknown>, writer)
  return Buffer.concat(writer.finish())
}

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(/\s/g, ''), 'hex')
}

const fetchPartition = { partition: 3, fetchOffset: 42, partitionMaxBytes: 1024 }

describe('a codec', () => {
  test('fills fields that the version lacks with their defaults', () => {
    const bytes = encode(FetchRequest, 4, { maxWaitMs: 1, minBytes: 2, topics: [{ topic: 't', partitions: [] }] })
    const value = decodeMessage(FetchRequest, 4, new Reader(bytes))
    expect(value).toMatchObject({ clusterId: null, sessionEpoch: -1, forgottenTopicsData: [], rackId: '' })
    expect(value.replicaState).toEqual({ replicaId: -1, replicaEpoch: -1 })
    expect(value.topics[0]).toEqual({ topic: 't', topicId: zeroUuid, partitions: [] })
  })

  test('drops a value the version lacks only where that is declared harmless', () => {
    const common = { maxWaitMs: 1, minBytes: 2, sessionId: 9, rackId: 'r' }
    expect(() => encode(FetchRequest, 4, { ...common, topics: [] })).not.toThrow()
    const topics = [{ topic: 't', partitions: [{ ...fetchPartition, lastFetchedEpoch: 5 }] }]
    expect(() => encode(FetchRequest, 11, { ...common, topics })).toThrow(UnsupportedFieldError)
    expect(() => encode(FetchRequest, 11, { ...common, topics })).toThrow(
      'FetchRequest.topics.partitions.lastFetchedEpoch has a value that version 11 cannot carry',
    )
    expect(() => encode(FetchRequest, 12, { ...common, topics })).not.toThrow()
  })

  test('refuses null where the version has no null', () => {
    expect(() => encode(MetadataRequest, 0, { topics: null })).toThrow(UnsupportedFieldError)
    expect(encode(MetadataRequest, 1, { topics: null }).toString('hex')).toBe('ffffffff')
  })

  test('writes tagged fields in order, only those that differ from the default', () => {
    const base = { topics: [], maxWaitMs: 0, minBytes: 0 }
    const plain = encode(FetchRequest, 15, base)
    expect(plain.at(-1)).toBe(0)
    const tagged = encode(FetchRequest, 15, { ...base, clusterId: 'c', replicaState: { replicaId: 2 } })
    expect(tagged.subarray(plain.length - 1)).toEqual(hex('02 00 02 0263 01 0d 00000002 ffffffffffffffff 00'))
  })

  test('writes a tagged field of 128 bytes and more with its real size', () => {
    const endpoints = (count: number, hostBytes: number) => {
      const nodeEndpoints = Array.from({ length: count }, () => ({ nodeId: 1, host: 'h'.repeat(hostBytes), port: 1 }))
      const bytes = encode(FetchResponse, 16, { responses: [], nodeEndpoints })
      const reader = new Reader(bytes)
      expect(decodeMessage(FetchResponse, 16, reader).nodeEndpoints).toEqual(
        nodeEndpoints.map((node) => ({ ...node, rack: null })),
      )
      expect(reader.remaining).toBe(0)
    }
    for (let hostBytes = 100; hostBytes < 140; hostBytes++) endpoints(1, hostBytes)
    for (let hostBytes = 16_350; hostBytes < 16_390; hostBytes++) endpoints(1, hostBytes)
    endpoints(200_000, 4)
  })

  test('skips tags it does not know, in every struct', () => {
    // One topic with tag 99 of two bytes; two flags; tag 5, empty, and tag 6 of three bytes.
    const bytes = hex('02 00000000000000000000000000000000 0261 01 63 02 0102 00 00 02 05 00 06 03 aabbcc')
    const value = decodeMessage(MetadataRequest, 12, new Reader(bytes))
    expect(value.topics).toEqual([{ topicId: zeroUuid, name: 'a' }])
  })

  test('refuses a known tag that is not as long as it claims', () => {
    const tagged = (size: string) => hex(`00000000 00000000 7fffffff 00 00000000 ffffffff 01 01 01 01 00 ${size} 0263`)
    expect(decodeMessage(FetchRequest, 15, new Reader(tagged('02'))).clusterId).toBe('c')
    expect(() => decodeMessage(FetchRequest, 15, new Reader(tagged('01')))).toThrow('not as long as it claims')
  })

  test('passes record chunks on without copying them', () => {
    const records = [Buffer.from('first'), Buffer.alloc(0), Buffer.from('second')]
    const partition = { partitionIndex: 0, errorCode: 0, highWatermark: 1, abortedTransactions: null, records }
    const writer = new Writer()
    writer.startFrame()
    encodeMessage(FetchResponse, 12, { responses: [{ topic: 't', partitions: [partition, partition] }] }, writer)
    const chunks = writer.finishFrame()
    expect(chunks.filter((chunk) => chunk === records[0])).toHaveLength(2)
    expect(chunks.filter((chunk) => chunk === records[2])).toHaveLength(2)
    const frame = Buffer.concat(chunks)
    expect(frame.readInt32BE(0)).toBe(frame.length - 4)
    const decoded = decodeMessage(FetchResponse, 12, new Reader(frame, 4))
    expect(decoded.responses[0]?.partitions[1]?.records?.toString()).toBe('firstsecond')
  })

  test('reads records as a slice of the request', () => {
    const chunks = encode(FetchResponse, 11, {
      responses: [
        {
          topic: 't',
          partitions: [
            { partitionIndex: 0, errorCode: 0, highWatermark: 0, abortedTransactions: [], records: Buffer.from('x') },
          ],
        },
      ],
    })
    const { records } = decodeMessage(FetchResponse, 11, new Reader(chunks)).responses[0]!.partitions[0]!
    expect(records?.buffer).toBe(chunks.buffer)
  })

  test('keeps int64 exact within 2^53 and marks what lies beyond', () => {
    const offsetOf = (text: string) => {
      const head = '0001 67 00000000 0000 0000000000000000 00000001 0001 74 00000001 00000000'
      const request = decodeMessage(OffsetCommitRequest, 2, new Reader(hex(`${head} ${text} ffff`)))
      return request.topics[0]!.partitions[0]!.committedOffset
    }
    expect(offsetOf('001fffffffffffff')).toBe(Number.MAX_SAFE_INTEGER)
    expect(offsetOf('ffe0000000000001')).toBe(Number.MIN_SAFE_INTEGER)
    expect(offsetOf('ffffffffffffffff')).toBe(-1)
    expect(offsetOf('0000000100000000')).toBe(2 ** 32)
    expect(offsetOf('0020000000000000')).toBe(tooHighInt64)
    expect(offsetOf('0030000000000000')).toBe(tooHighInt64)
    expect(offsetOf('ffd0000000000000')).toBe(tooLowInt64)
    expect(offsetOf('7fffffffffffffff')).toBe(tooHighInt64)
    expect(offsetOf('8000000000000000')).toBe(tooLowInt64)
    expect(Number.isSafeInteger(tooHighInt64) || Number.isSafeInteger(tooLowInt64)).toBe(false)
  })

  test('takes a number that its type cannot hold for a bug', () => {
    for (const transactionTimeoutMs of [2 ** 31, -(2 ** 31) - 1, 1.5, Number.NaN]) {
      const input = { transactionalId: null, transactionTimeoutMs }
      expect(() => encode(InitProducerIdRequest, 0, input)).toThrow(AssertionError)
    }
    expect(() => encode(MetadataRequest, 1, { topics: [{ name: 'x'.repeat(32768) }] })).toThrow(AssertionError)
  })

  test('handles strings of any length and script', () => {
    for (const unit of ['a', 'é', '€', '🐦']) {
      for (const length of [0, 1, 15, 16, 17, 41, 42, 43, 48, 49, 63, 64, 127, 128, 5000]) {
        const name = unit.repeat(length)
        for (const version of [4, 9]) {
          const bytes = encode(MetadataRequest, version, { topics: [{ name }] })
          expect(decodeMessage(MetadataRequest, version, new Reader(bytes)).topics).toEqual([
            { topicId: zeroUuid, name },
          ])
        }
      }
    }
  })

  test('handles the kinds of fields that no served API has', () => {
    const Odd = data({
      name: 'Odd',
      versions: '0-1',
      flexible: '1+',
      fields: {
        port: uint16(),
        ratio: float64(),
        maybe: struct({ a: int32() }, { nullable: true }),
        names: arrayOf(string()),
        nested: array({ inner: array({ b: uint16() }, { nullable: true }) }),
      },
    })
    for (const version of [0, 1]) {
      for (const maybe of [null, { a: -5 }]) {
        const value = {
          port: 65535,
          ratio: -0.25,
          maybe,
          names: ['x', ''],
          nested: [{ inner: null }, { inner: [{ b: 1 }] }],
        }
        expect(decodeMessage(Odd, version, new Reader(encode(Odd, version, value)))).toEqual(value)
      }
    }
  })
})

describe('golden bytes', () => {
  test('Metadata response, version 1', () => {
    const bytes = encode(MetadataResponse, 1, {
      brokers: [{ nodeId: 1, host: 'localhost', port: 9092 }],
      controllerId: 1,
      topics: [
        {
          errorCode: 0,
          name: 'orders',
          partitions: [{ errorCode: 0, partitionIndex: 0, leaderId: 1, replicaNodes: [1], isrNodes: [1] }],
        },
      ],
    })
    expect(bytes).toEqual(
      hex(`
        00000001 00000001 0009 6c6f63616c686f7374 00002384 ffff
        00000001
        00000001 0000 0006 6f7264657273 00
        00000001 0000 00000000 00000001 00000001 00000001 00000001 00000001`),
    )
  })

  test('Metadata response, version 12', () => {
    const bytes = encode(MetadataResponse, 12, {
      brokers: [{ nodeId: 1, host: 'h', port: 9092, rack: 'r' }],
      clusterId: 'c',
      controllerId: 1,
      topics: [{ errorCode: 100, name: null, topicId: zeroUuid, partitions: [] }],
    })
    expect(bytes).toEqual(
      hex(`
        00000000
        02 00000001 0268 00002384 0272 00
        0263 00000001
        02 0064 00 00000000000000000000000000000000 00 01 80000000 00
        00`),
    )
  })

  test('Fetch request, version 11, and version 12', () => {
    const value = {
      maxWaitMs: 500,
      minBytes: 1,
      maxBytes: 4096,
      topics: [{ topic: 't', partitions: [fetchPartition] }],
    }
    expect(encode(FetchRequest, 11, value)).toEqual(
      hex(`
        ffffffff 000001f4 00000001 00001000 00 00000000 ffffffff
        00000001 0001 74 00000001 00000003 ffffffff 000000000000002a ffffffffffffffff 00000400
        00000000 0000`),
    )
    expect(encode(FetchRequest, 12, value)).toEqual(
      hex(`
        ffffffff 000001f4 00000001 00001000 00 00000000 ffffffff
        02 0274 02 00000003 ffffffff 000000000000002a ffffffff ffffffffffffffff 00000400 00 00
        01 01 00`),
    )
  })
})
