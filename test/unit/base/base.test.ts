import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  AssertionError,
  addressText,
  assert,
  deferred,
  isUuid,
  messageOf,
  ownCopy,
  partitionName,
  RookeryError,
  unreachable,
  uuidFromBytes,
  uuidToBytes,
  zeroUuid,
} from '../../../src/base/index.ts'

class DiskError extends RookeryError {
  readonly code = 'DISK_FAILED'
}

describe('assert', () => {
  test('throws what it was told when the condition does not hold', () => {
    assert(true, 'never seen')
    expect(() => assert(0, 'a batch continues the log')).toThrow(new AssertionError('a batch continues the log'))
    expect(() => unreachable('lost' as never)).toThrow('Unexpected value lost')
  })
})

describe('deferred', () => {
  test('settles when its switch is used', async () => {
    const good = deferred<number>()
    good.resolve(3)
    expect(await good.promise).toBe(3)
    const bad = deferred<number>()
    bad.reject(new Error('no'))
    await expect(bad.promise).rejects.toThrow('no')
  })
})

describe('RookeryError', () => {
  test('has the name of its class, its code and its cause', () => {
    const cause = new Error('ENOSPC')
    expect(new DiskError('Disk is full', { cause })).toMatchObject({ name: 'DiskError', code: 'DISK_FAILED', cause })
    expect(messageOf(new DiskError('Disk is full'))).toBe('Disk is full')
    expect(messageOf('thrown text')).toBe('thrown text')
  })
})

describe('ids', () => {
  test('a UUID goes from bytes to text and back', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
        const text = uuidFromBytes(bytes)
        expect(text).toHaveLength(22)
        expect(uuidToBytes(text)).toEqual(Buffer.from(bytes))
      }),
    )
    expect(uuidFromBytes(new Uint8Array(16))).toBe(zeroUuid)
  })

  test('only the one text of a UUID is taken for it', () => {
    expect(uuidToBytes('AAAAAAAAAAAAAAAAAAAAAB')).toBeUndefined()
    expect(uuidToBytes('++++++++++++++++++++++')).toBeUndefined()
    expect(uuidToBytes('AAAAAAAAAAAAAAAAAAAAA=')).toBeUndefined()
    fc.assert(
      fc.property(fc.string({ maxLength: 30 }), (text) => {
        const bytes = uuidToBytes(text)
        if (bytes !== undefined) expect(uuidFromBytes(bytes)).toBe(text)
      }),
    )
  })

  test('isUuid() knows that one text from all others', () => {
    expect([zeroUuid, 'AAAAAAAAAAAAAAAAAAAAAQ'].map(isUuid)).toEqual([true, true])
    expect(['AAAAAAAAAAAAAAAAAAAAAB', '', 'AAAAAAAAAAAAAAAAAAAAA='].map(isUuid)).toEqual([false, false, false])
  })

  test('an address has brackets around an IPv6 host only', () => {
    expect(addressText({ host: 'localhost', port: 9092 })).toBe('localhost:9092')
    expect(addressText({ host: '::1', port: 9092 })).toBe('[::1]:9092')
  })

  test('a partition is named as its folder is', () => {
    expect(partitionName('orders', 0)).toBe('orders-0')
  })
})

describe('ownCopy', () => {
  test('holds the parts, one after the other, and no other memory', () => {
    const parts = [Buffer.from([1, 2]), new Uint8Array(0), Buffer.from([3])]
    const copy = ownCopy(...parts)
    parts[0]![0] = 9
    expect([...copy]).toEqual([1, 2, 3])
    expect(copy.buffer.byteLength).toBe(3)
  })
})
