import fc from 'fast-check'
import { expect, test } from 'vitest'
import { murmur2, partitionOfKey } from '../../../../src/cli/client/partitioner.ts'

/** From the unit tests of Kafka's clients: `UtilsTest.testMurmur2`. */
const golden: Readonly<Record<string, number>> = {
  '21': -973932308,
  foobar: -790332482,
  'a-little-bit-long-string': -985981536,
  'a-little-bit-longer-string': -1486304829,
  lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8: -58897971,
  abc: 479470107,
}

test.each(Object.entries(golden))('murmur2 of %s is what Kafka computes', (text, hash) => {
  expect(murmur2(Buffer.from(text))).toBe(hash)
})

test('a key has a partition that is there, whatever its hash', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.integer({ min: 1, max: 1000 }), (key, count) => {
      const partition = partitionOfKey(key, count)
      expect(partition).toBeGreaterThanOrEqual(0)
      expect(partition).toBeLessThan(count)
    }),
  )
  expect(partitionOfKey(Buffer.from('foobar'), 10)).toBe((-790332482 & 0x7fffffff) % 10)
})
