import fc from 'fast-check'
import { expect, test } from 'vitest'
import { tableCrc32c } from '../../../src/protocol/crc32c.ts'
import { crc32c } from '../../../src/protocol/index.ts'

// RFC 3720, appendix B.4.
const known: [string, Buffer, number][] = [
  ['nothing', Buffer.alloc(0), 0],
  ['the check string', Buffer.from('123456789'), 0xe3069283],
  ['32 zero bytes', Buffer.alloc(32), 0x8a9136aa],
  ['32 bytes of ff', Buffer.alloc(32, 0xff), 0x62a8ab43],
  ['32 rising bytes', Buffer.from(Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e],
]

test.each(known)('the CRC of %s is the published one', (_, bytes, crc) => {
  expect(crc32c(bytes)).toBe(crc)
  expect(tableCrc32c(bytes)).toBe(crc)
})

test('the CRC of chunks is that of the whole, in native code and in tables', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(), (bytes, cut) => {
      const at = bytes.length === 0 ? 0 : cut % bytes.length
      const whole = crc32c(bytes)
      expect(tableCrc32c(bytes)).toBe(whole)
      for (const crc of [crc32c, tableCrc32c]) expect(crc(bytes.subarray(at), crc(bytes.subarray(0, at)))).toBe(whole)
    }),
  )
})
