import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FrameError } from '../../../src/network/errors.ts'
import { FrameReader } from '../../../src/network/frame-reader.ts'
import { frameOf } from './memory-network.ts'

function readAll(reader: FrameReader): Buffer[] {
  const frames: Buffer[] = []
  for (let frame = reader.next(); frame !== undefined; frame = reader.next()) frames.push(frame)
  return frames
}

test('FrameReader gives the same frames wherever the bytes are cut', () => {
  const bodies = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 8 })
  fc.assert(
    fc.property(bodies, fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1 }), (contents, cuts) => {
      const expected = contents.map((content) => Buffer.from(content))
      const bytes = Buffer.concat(expected.map(frameOf))
      const reader = new FrameReader(1000)
      const frames: Buffer[] = []
      let at = 0
      for (let i = 0; at < bytes.length; i++) {
        const end = Math.min(bytes.length, at + cuts[i % cuts.length]!)
        reader.push(bytes.subarray(at, end))
        frames.push(...readAll(reader))
        at = end
      }
      expect(frames).toEqual(expected)
      expect(reader.isInsideFrame).toBe(false)
    }),
  )
})

test('FrameReader gives the same frames for every single split of two frames', () => {
  const bodies = [Buffer.from('hello, frame'), Buffer.alloc(0), Buffer.from('x')]
  const bytes = Buffer.concat(bodies.map(frameOf))
  for (let split = 0; split <= bytes.length; split++) {
    const reader = new FrameReader(100)
    reader.push(bytes.subarray(0, split))
    const frames = readAll(reader)
    reader.push(bytes.subarray(split))
    frames.push(...readAll(reader))
    expect(frames).toEqual(bodies)
  }
})

test('a chunk is only lent: frames cut from it, and what is kept of it, have memory of their own', () => {
  const bodies = [Buffer.from('abc'), Buffer.from('later'), Buffer.from('split')]
  const bytes = Buffer.concat(bodies.map(frameOf))
  const reader = new FrameReader(100)
  const lend = (chunk: Buffer) => {
    reader.push(chunk)
    const frame = reader.next()
    reader.keep()
    chunk.fill(0xdb)
    return frame
  }
  const frames = [lend(Buffer.from(bytes.subarray(0, -2))), lend(Buffer.from(bytes.subarray(-2)))]
  expect([...frames, ...readAll(reader)]).toEqual(bodies)
})

test('a large frame collected from many chunks is whole and tells what is missing', () => {
  const body = Buffer.alloc(300_000, 7)
  body.writeInt32BE(42, 150_000)
  const bytes = frameOf(body)
  const reader = new FrameReader(1_000_000)
  for (let at = 0; at < bytes.length; at += 1000) {
    expect(readAll(reader)).toEqual([])
    if (at >= 4) expect(reader.missingBytes).toBe(bytes.length - at)
    reader.push(bytes.subarray(at, at + 1000))
  }
  expect(readAll(reader)).toEqual([body])
  expect(reader.missingBytes).toBe(0)
})

test('a claimed length takes no memory before its bytes arrive', () => {
  const claim = Buffer.alloc(5)
  claim.writeInt32BE(2 ** 31 - 1)
  const before = process.memoryUsage().arrayBuffers
  const readers = Array.from({ length: 100 }, () => {
    const reader = new FrameReader(2 ** 31 - 1)
    reader.push(claim)
    expect(reader.next()).toBeUndefined()
    return reader
  })
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10_000_000)
  expect(readers.every((reader) => reader.isInsideFrame)).toBe(true)
})

test.each([-1, -(2 ** 31), 101, 2 ** 31 - 1])('a length of %i is refused when 100 are allowed', (length) => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(length)
  const reader = new FrameReader(100)
  reader.push(bytes)
  expect(() => reader.next()).toThrow(FrameError)
})
