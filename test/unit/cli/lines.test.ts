import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LineSplitter, maxLineBytes } from '../../../src/cli/lines.ts'

test('the lines are the same however the text is cut', () => {
  const text = fc.stringMatching(/^[ab\r\n]*$/)
  fc.assert(
    fc.property(text, fc.array(fc.nat({ max: 5 })), (whole, sizes) => {
      const splitter = new LineSplitter()
      const lines: string[] = []
      let rest = Buffer.from(whole)
      for (const size of sizes) {
        for (const line of splitter.push(rest.subarray(0, size))) lines.push(line.toString())
        rest = rest.subarray(size)
      }
      for (const line of splitter.push(rest)) lines.push(line.toString())
      const last = splitter.end()
      if (last !== undefined) lines.push(last.toString())
      const expected = whole.split('\n')
      if (expected.at(-1) === '') expected.pop()
      expect(lines).toEqual(expected.map((line) => line.replace(/\r$/, '')))
    }),
  )
})

test('a line without an end is refused before it takes all memory', () => {
  const splitter = new LineSplitter()
  const chunk = Buffer.alloc(maxLineBytes / 2)
  splitter.push(chunk)
  splitter.push(chunk)
  expect(() => splitter.push(Buffer.alloc(1))).toThrow(RangeError)
})
