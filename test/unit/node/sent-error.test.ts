import { describe, expect, test } from 'vitest'
import { AssertionError } from '../../../src/base/index.ts'
import { reportOf } from '../../../src/cli/fault-report.ts'
import { ConfigError } from '../../../src/config/index.ts'
import { CoordinationError } from '../../../src/coordination/index.ts'
import { ClusterIdMismatchError, StorageError } from '../../../src/log/index.ts'
import { MetadataFormatError } from '../../../src/metadata/index.ts'
import { receivedError, type SentError, sentError } from '../../../src/node/sent-error.ts'
import { DirectoryLockedError, FileError, NetworkError } from '../../../src/platform/index.ts'
import { RaftStorageError } from '../../../src/raft/index.ts'
import { RpcError } from '../../../src/rpc/index.ts'

const across = (error: unknown) => receivedError(structuredClone(sentError(error)))

describe('an error that is sent', () => {
  test.each([
    new AssertionError('a bug'),
    new ClusterIdMismatchError('cluster.id', '/data', 'a', 'b'),
    new ConfigError([
      { key: 'ssl.keystore.location', message: 'It has expired' },
      { key: 'ssl.keystore.type', message: 'Unknown' },
    ]),
    new CoordinationError('wrong-cluster', 'Another cluster'),
    new DirectoryLockedError('/data', 7, false),
    new FileError('write', '/data/log', 'ENOSPC'),
    new MetadataFormatError('Too new'),
    new NetworkError('listen', 'localhost', 9093, 'EADDRINUSE'),
    new RaftStorageError('Damaged'),
    new RpcError('address-in-use', 'In use'),
    new StorageError('No room', '/data', { cause: new FileError('write', '/data', 'ENOSPC') }),
    new TypeError('not a function'),
  ])('is one of its class, with its fields, and reported in the same words: $name', (error) => {
    const received = across(error)
    expect(received).toBeInstanceOf(error.constructor === TypeError ? Error : error.constructor)
    expect({ ...received }).toEqual({ ...error, name: error.name })
    expect(received.message).toBe(error.message)
    expect(received.stack).toBe(error.stack)
    expect(String(received)).toBe(String(error))
    expect(reportOf(received)).toEqual(reportOf(error))
  })

  test('keeps its causes', () => {
    const cause = new FileError('sync', '/data/log', 'EIO')
    const received = across(new RaftStorageError('The disk failed', { cause }))
    expect(received.cause).toBeInstanceOf(FileError)
    expect(received.cause).toMatchObject({ systemCode: 'EIO' })
  })

  test('may be caused by itself, by anything, or be no error', () => {
    const ring = new Error('ring')
    ring.cause = ring
    let depth = 0
    for (let each: SentError | undefined = sentError(ring); each !== undefined; each = each.cause) depth++
    expect(depth).toBeLessThan(10)
    expect(across(new Error('odd', { cause: 'a word' })).cause).toMatchObject({ message: 'a word' })
    expect(across('a word')).toMatchObject({ message: 'a word' })
  })

  test('leaves behind what can not be sent', () => {
    const error = Object.assign(new Error('with more'), { run: () => 1, code: 'X', socket: { open: true } })
    expect({ ...across(error) }).toEqual({ code: 'X', name: 'Error' })
  })
})
