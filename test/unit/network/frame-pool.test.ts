import { expect, test } from 'vitest'
import { FramePool } from '../../../src/network/frame-pool.ts'
import { FrameReader } from '../../../src/network/frame-reader.ts'
import { frameOf } from './memory-network.ts'

test('a buffer that was given back is taken again, by any slice of it', () => {
  const pool = new FramePool()
  const first = pool.take(100_000)
  expect(first.length).toBeGreaterThanOrEqual(100_000)
  const second = pool.take(100_000)
  expect(second.buffer).not.toBe(first.buffer)
  pool.giveBack(first.subarray(0, 7))
  expect(pool.take(200_000).buffer).toBe(first.buffer)
})

test('what the pool did not give, or got back already, is left alone', () => {
  const pool = new FramePool()
  const buffer = pool.take(100_000)
  pool.giveBack(buffer)
  pool.giveBack(buffer)
  pool.giveBack(Buffer.alloc(100_000))
  expect(pool.take(100_000).buffer).toBe(buffer.buffer)
  expect(pool.take(100_000).buffer).not.toBe(buffer.buffer)
})

test.each([10, 5000, 2_000_000])('%i bytes are not worth keeping: they are of that size and new', (sizeBytes) => {
  const pool = new FramePool()
  const buffer = pool.take(sizeBytes)
  expect(buffer).toHaveLength(sizeBytes)
  pool.giveBack(buffer)
  expect(pool.take(sizeBytes)).not.toBe(buffer)
})

test('frames of a megabyte use one memory again and again and hold what was sent', () => {
  const pool = new FramePool()
  const memories = new Set<ArrayBufferLike>()
  const reader = new FrameReader(2_000_000, pool)
  for (let round = 0; round < 5; round++) {
    const body = Buffer.alloc(1_048_600, round + 1)
    const bytes = frameOf(body)
    let frame: Buffer | undefined
    for (let at = 0; at < bytes.length; at += 65_536) {
      reader.push(bytes.subarray(at, at + 65_536))
      frame = reader.next()
    }
    expect(frame!.equals(body)).toBe(true)
    memories.add(frame!.buffer)
    pool.giveBack(frame!)
  }
  expect(memories.size).toBe(1)
})

test('a reader that stops gives back what it was collecting in', () => {
  const pool = new FramePool()
  const reader = new FrameReader(2_000_000, pool)
  reader.push(frameOf(Buffer.alloc(1_000_000)).subarray(0, 50_000))
  expect(reader.next()).toBeUndefined()
  reader.stop()
  const again = new FrameReader(2_000_000, pool)
  again.push(frameOf(Buffer.alloc(200_000)))
  expect(again.next()).toHaveLength(200_000)
})
