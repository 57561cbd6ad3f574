import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { buildBatch } from '../../../src/protocol/index.ts'

const loaded = createRequire(import.meta.url).cache

function isLoaded(name: string): boolean {
  return Object.keys(loaded).some((path) => path.includes(`/node_modules/${name}/`))
}

test('native libraries are loaded at their first use, each by itself', () => {
  expect(['@node-rs/crc32', 'lz4-napi', 'snappy'].filter(isLoaded)).toEqual([])
  buildBatch({ records: [{ timestamp: 1 }] })
  expect(['@node-rs/crc32', 'lz4-napi', 'snappy'].filter(isLoaded)).toEqual(['@node-rs/crc32'])
  buildBatch({ records: [{ timestamp: 1 }], codec: 'lz4' })
  expect(['lz4-napi', 'snappy'].filter(isLoaded)).toEqual(['lz4-napi'])
  buildBatch({ records: [{ timestamp: 1 }], codec: 'snappy' })
  expect(isLoaded('snappy')).toBe(true)
})
