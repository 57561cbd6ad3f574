import { describe, expect, test } from 'vitest'
import {
  ApiVersionsRequest,
  DeleteTopicsRequest,
  decodeMessage,
  MalformedRequestError,
  MetadataRequest,
  OffsetFetchRequest,
  ProduceRequest,
  Reader,
} from '../../../src/protocol/index.ts'

function read(hex: string): Reader {
  return new Reader(Buffer.from(hex.replaceAll(/\s/g, ''), 'hex'))
}

describe('Reader', () => {
  test('reads varints of up to 32 bits and refuses longer ones', () => {
    expect(read('00').uvarint()).toBe(0)
    expect(read('7f').uvarint()).toBe(127)
    expect(read('8001').uvarint()).toBe(128)
    expect(read('ffffffff0f').uvarint()).toBe(2 ** 32 - 1)
    expect(() => read('ffffffff1f').uvarint()).toThrow(MalformedRequestError)
    expect(() => read('ffffffffff01').uvarint()).toThrow(MalformedRequestError)
    expect(() => read('ff').uvarint()).toThrow(MalformedRequestError)
  })

  test('stays inside the range it was given', () => {
    const reader = new Reader(Buffer.from('0000000100000002', 'hex'), 2, 4)
    expect(reader.int16()).toBe(1)
    expect(() => reader.int8()).toThrow('Message ends 0 bytes into a value of 1 bytes')
  })

  test('refuses null and odd lengths where text is required', () => {
    expect(() => read('ffff').string()).toThrow('Null where a string is required')
    expect(() => read('00').compactString()).toThrow(MalformedRequestError)
    expect(read('ffff').nullableString()).toBe(null)
    expect(() => read('fffe').nullableString()).toThrow('String claims -2 bytes')
    expect(() => read('fffffffe').nullableBytes()).toThrow('Byte string claims -2 bytes')
    expect(() => read('ffffffff').bytes()).toThrow(MalformedRequestError)
    expect(() =>
      new Reader(Buffer.concat([Buffer.from('818002', 'hex'), Buffer.alloc(40000)])).compactString(),
    ).toThrow('String claims 32768 bytes')
  })
})

describe('a hostile message', () => {
  const hostile: [string, () => unknown][] = [
    ['one topic more than bytes for it', () => decodeMessage(MetadataRequest, 1, read('00000002 0001 61'))],
    ['a topic count of 2^31 - 1', () => decodeMessage(MetadataRequest, 1, read('7fffffff'))],
    ['a compact count of 2^32 - 2', () => decodeMessage(MetadataRequest, 9, read('ffffffff0f 00'))],
    ['a negative count', () => decodeMessage(MetadataRequest, 1, read('fffffffe'))],
    ['a count of numbers', () => decodeMessage(OffsetFetchRequest, 1, read('0001 67 00000001 0001 74 7fffffff'))],
    ['a string of 32 KiB', () => decodeMessage(DeleteTopicsRequest, 1, read('00000001 7fff'))],
    ['a record set of 2 GiB', () => decodeMessage(ProduceRequest, 3, read(`${produce} 7fffffff 00`))],
    ['a compact record set of 4 GiB', () => decodeMessage(ProduceRequest, 9, read(`${produce9} ffffffff0f 00`))],
    ['2^32 - 1 tags', () => decodeMessage(ApiVersionsRequest, 3, read('0161 0162 ffffffff0f'))],
    ['a tag of 4 GiB', () => decodeMessage(ApiVersionsRequest, 3, read('0261 0262 01 07 ffffffff0f'))],
  ]
  const produce = 'ffff ffff 00000001 00000001 0001 74 00000001 00000000'
  const produce9 = '00 ffff 00000001 02 0274 02 00000000'

  test.each(hostile)('with %s is refused before anything is allocated for it', (_, decode) => {
    expect(decode).toThrow(/claims|Message ends/)
    const before = process.memoryUsage()
    for (let i = 0; i < 200; i++) expect(decode).toThrow(MalformedRequestError)
    const after = process.memoryUsage()
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(8 << 20)
    expect(after.heapUsed - before.heapUsed).toBeLessThan(32 << 20)
  })

  test('is refused at its first false claim, by the least that an element takes', () => {
    expect(() => decodeMessage(MetadataRequest, 1, read('00000002 0000 00'))).toThrow(
      'Array claims 2 elements with 3 bytes left',
    )
    expect(() => decodeMessage(OffsetFetchRequest, 1, read('0000 00000001 0000 00000002 00000000 000000'))).toThrow(
      'Array claims 2 elements with 7 bytes left',
    )
    expect(() => decodeMessage(MetadataRequest, 9, read('03 02 61 00'))).toThrow(MalformedRequestError)
  })

  test('of too many numbers is refused, whatever its size', () => {
    const topics = (count: number) => {
      const head = Buffer.from('000167000000010000', 'hex') // group "g", one topic ""
      const partitions = Buffer.alloc(4 + 4 * count)
      partitions.writeInt32BE(count)
      return new Reader(Buffer.concat([head, partitions]))
    }
    expect(() => decodeMessage(OffsetFetchRequest, 1, topics(250_000))).toThrow('more than 250000 elements')
    expect(decodeMessage(OffsetFetchRequest, 1, topics(200_000)).topics![0]!.partitionIndexes).toHaveLength(200_000)
  })

  test('of many tiny elements is refused, one of many real elements is not', () => {
    const request = (count: number, name: string) => {
      const element = Buffer.from(name.length.toString(16).padStart(4, '0') + Buffer.from(name).toString('hex'), 'hex')
      const head = Buffer.alloc(4)
      head.writeInt32BE(count)
      return new Reader(Buffer.concat([head, Buffer.alloc(element.length * count, element)]))
    }
    expect(() => decodeMessage(MetadataRequest, 0, request(250_000, ''))).toThrow('more elements than its size allows')
    expect(() => decodeMessage(MetadataRequest, 0, request(250_001, 'orders'))).toThrow('more than 250000 elements')
    expect(decodeMessage(MetadataRequest, 0, request(60_000, 'a')).topics).toHaveLength(60_000)
    expect(decodeMessage(MetadataRequest, 0, request(250_000, 'orders')).topics).toHaveLength(250_000)
  })
})
