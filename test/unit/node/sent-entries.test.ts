import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryOf, packEntries, unpackEntries } from '../../../src/node/sent-entries.ts'
import type { Entry, LogIndex, Term } from '../../../src/raft/index.ts'

const anyEntries = fc
  .record({
    firstIndex: fc.integer({ min: 1, max: 2 ** 50 }),
    entries: fc.array(
      fc.record({
        term: fc.integer({ min: 1, max: 2 ** 50 }),
        type: fc.constantFrom('data', 'noop', 'config'),
        data: fc.uint8Array({ maxLength: 200 }),
      }),
      { minLength: 1, maxLength: 50 },
    ),
  })
  .map(({ firstIndex, entries }) =>
    entries.map((entry, i) => ({ ...entry, index: (firstIndex + i) as LogIndex, term: entry.term as Term }) as Entry),
  )

test('entries come as they were sent, but for what is in those that are not data', () => {
  fc.assert(
    fc.property(anyEntries, (entries) => {
      const sent = packEntries(entries)
      const received = unpackEntries(structuredClone(sent, { transfer: memoryOf(sent) }))
      expect(received.map(({ index, term }) => [index, term])).toEqual(entries.map(({ index, term }) => [index, term]))
      for (const [i, { type, data }] of entries.entries()) {
        const isData = type === 'data'
        expect(received[i]?.type).toBe(isData ? 'data' : 'noop')
        expect([...(received[i]?.data ?? [])]).toEqual(isData ? [...data] : [])
      }
    }),
  )
})

test('what is sent takes nothing of the memory that it came from, nor what lies around it', () => {
  const slab = new Uint8Array(1 << 20).fill(7)
  const entry: Entry = { index: 5 as LogIndex, term: 1 as Term, type: 'data', data: slab.subarray(100, 110) }
  const sent = packEntries([entry])
  expect(memoryOf(sent).reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThan(100)
  structuredClone(sent, { transfer: memoryOf(sent) })
  expect(slab.byteLength).toBe(1 << 20)
  expect([...entry.data]).toEqual(Array(10).fill(7))
})

test('entries with a hole between them are a bug', () => {
  const entry = (index: number): Entry => {
    return { index: index as LogIndex, term: 1 as Term, type: 'data', data: Uint8Array.of(1) }
  }
  expect(() => packEntries([entry(1), entry(3)])).toThrow('entries follow on each other')
  expect(() => packEntries([])).toThrow('there are entries to be sent')
})
