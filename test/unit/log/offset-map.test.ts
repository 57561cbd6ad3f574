import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { KeyHash } from '../../../src/log/key-hash.ts'
import { OffsetMap, slotBytes } from '../../../src/log/offset-map.ts'

const seed = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex')

function mapOf(maxBytes: number, loadFactor = 0.9): OffsetMap {
  return new OffsetMap({ hash: new KeyHash(seed), maxBytes, loadFactor })
}

const put = (map: OffsetMap, key: Buffer, offset: number) => map.put(key, 0, key.length, offset)
const get = (map: OffsetMap, key: Buffer) => map.get(key, 0, key.length)

describe('KeyHash', () => {
  test('is HalfSipHash with 64 bits, by the first vectors of its reference implementation', () => {
    const hash = new KeyHash(seed)
    const hashed = (count: number) => {
      hash.update(Buffer.from(Array.from({ length: count }, (_, i) => i)), 0, count)
      const bytes = Buffer.alloc(8)
      bytes.writeInt32LE(hash.words[0]!, 0)
      bytes.writeInt32LE(hash.words[1]!, 4)
      return bytes.toString('hex')
    }
    expect(hashed(0)).toBe('218d1f59b9b83cc8')
  })

  test('depends on every byte, on the length, and on the seed', () => {
    const all = new Set<string>()
    for (const hash of [new KeyHash(seed), new KeyHash(Buffer.alloc(16))]) {
      for (let length = 0; length < 20; length++) {
        for (let changed = -1; changed < length; changed++) {
          const key = Buffer.alloc(length)
          if (changed >= 0) key[changed] = 1
          hash.update(key, 0, length)
          all.add(hash.words.join())
        }
      }
    }
    expect(all.size).toBe(2 * 210)
  })

  test('takes the key out of the middle of a buffer', () => {
    const hash = new KeyHash(seed)
    hash.update(Buffer.from('xxkeyyy'), 2, 3)
    const inside = hash.words.join()
    hash.update(Buffer.from('key'), 0, 3)
    expect(hash.words.join()).toBe(inside)
  })
})

describe('OffsetMap', () => {
  test('holds the last offset of each key, as a map does', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.uint8Array({ maxLength: 6 }), fc.nat(2 ** 31)), { maxLength: 400 }),
        (entries) => {
          const map = mapOf(1 << 20)
          const model = new Map<string, number>()
          for (const [i, [bytes, jump]] of entries.entries()) {
            const offset = i * 2 ** 32 + jump
            expect(put(map, Buffer.from(bytes), offset)).toBe(true)
            model.set(Buffer.from(bytes).toString('hex'), offset)
          }
          expect(map.size).toBe(model.size)
          for (const [key, offset] of model) expect(get(map, Buffer.from(key, 'hex'))).toBe(offset)
          expect(get(map, Buffer.from('never there'))).toBe(-1)
        },
      ),
    )
  })

  test.each([0.5, 0.9, 1])('with a load factor of %d says when its memory is full, and keeps what it has', (factor) => {
    const maxBytes = 400_000
    const map = mapOf(maxBytes, factor)
    let count = 0
    while (put(map, Buffer.from(`key ${count}`), count)) count++
    expect(map.allocatedBytes).toBeLessThanOrEqual(maxBytes)
    expect(count).toBeGreaterThan((maxBytes / slotBytes) * Math.min(factor, 0.95) * 0.4)
    expect(count).toBeLessThanOrEqual((maxBytes / slotBytes) * factor)
    for (let i = 0; i < count; i++) expect(get(map, Buffer.from(`key ${i}`))).toBe(i)
    expect(put(map, Buffer.from('key 1'), 5000)).toBe(true)
    expect(get(map, Buffer.from('key 1'))).toBe(5000)
  })

  test('takes memory in proportion to its keys', () => {
    const map = mapOf(128 << 20)
    for (let i = 0; i < 10_000; i++) put(map, Buffer.from(`key ${i}`), i)
    expect(map.allocatedBytes).toBeLessThan(10_000 * slotBytes * 3)
  })
})
