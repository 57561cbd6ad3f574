import { expect, test } from 'vitest'
import { OpenFilesError, shareOpenFiles } from '../../../src/node/open-files.ts'

test('files and connections together stay below what the system allows, with room for the rest', () => {
  for (const limit of [256, 1024, 4096, 20_000, 1_048_576]) {
    const { maxFiles, maxIdleFiles, maxConnections } = shareOpenFiles(limit)
    expect(maxFiles + maxConnections).toBeLessThanOrEqual(limit - 100)
    expect(maxIdleFiles).toBeLessThan(maxFiles)
    expect(maxConnections).toBeGreaterThan(0)
  }
})

test('a limit that is tight is told, one that is far away is not, and one without a number is none', () => {
  expect(shareOpenFiles(1024).isTight).toBe(true)
  expect(shareOpenFiles(65_536).isTight).toBe(false)
  expect(shareOpenFiles(Number.POSITIVE_INFINITY)).toMatchObject({
    isTight: false,
    maxIdleFiles: 2048,
    maxFiles: Number.POSITIVE_INFINITY,
    maxConnections: Number.POSITIVE_INFINITY,
  })
})

test('too few are refused with what to do about it', () => {
  expect(() => shareOpenFiles(255)).toThrow(OpenFilesError)
  expect(() => shareOpenFiles(255)).toThrow(/may have 255 files.*ulimit -n 65536/)
})
