import { describe, expect, test } from 'vitest'
import { ClusterUnreachableError } from '../../../src/cli/client/errors.ts'
import { UsageError } from '../../../src/cli/exit.ts'
import { reportOf } from '../../../src/cli/fault-report.ts'
import { ConfigError } from '../../../src/config/index.ts'
import { StorageError } from '../../../src/log/index.ts'
import { DirectoryLockedError, FileError, NetworkError } from '../../../src/platform/index.ts'

describe('reportOf()', () => {
  test('settings and arguments exit with 2', () => {
    const error = new ConfigError([
      { key: 'a', message: 'a is wrong' },
      { key: 'b', message: 'b is wrong' },
    ])
    expect(reportOf(error)).toEqual({ exitCode: 2, text: expect.stringMatching(/a is wrong[\s\S]*b is wrong/) })
    expect(reportOf(new UsageError('No'))).toEqual({ exitCode: 2, text: 'No' })
  })

  test.each([
    [
      new NetworkError('listen', 'localhost', 9092, 'EADDRINUSE'),
      /^localhost:9092 is in use by another program: .*listeners=/,
    ],
    [new NetworkError('listen', 'localhost', 80, 'EACCES'), /^This user may not listen on localhost:80: /],
    [
      new NetworkError('listen', '1.2.3.4', 80, 'EADDRNOTAVAIL'),
      /^listeners: 1.2.3.4:80 is no address of this machine/,
    ],
    [new FileError('make folder', '/x', 'EACCES'), /^This user may not make folder \/x: .*log\.dirs=/],
    [new FileError('make folder', '/x', 'EROFS'), /^The disk of \/x is read-only: .*log\.dirs=/],
    [new FileError('make folder', '/x', 'ENOENT'), /^Cannot make folder \/x \(ENOENT\): .*log\.dirs=/],
    [
      new StorageError('Storage failed at /x', '/x', { cause: new FileError('open', '/x/.lock', 'EROFS') }),
      /^The disk of \/x\/.lock is read-only: .*log\.dirs=/,
    ],
    [
      new StorageError('Storage failed at /x', '/x', { cause: new FileError('sync', '/x', 'EIO') }),
      /^Storage failed at \/x: Cannot sync \/x \(EIO\)$/,
    ],
    [new FileError('write', '/x', 'ENOSPC'), /^The disk is full: cannot write \/x/],
    [new FileError('write', '/x', 'EIO'), /^Cannot write \/x \(EIO\)$/],
    [new DirectoryLockedError('/x', 12, false), /in use by process 12/],
    [
      new ClusterUnreachableError('Gone', { retriable: true, cause: new FileError('read', '/x', 'EIO') }),
      /^Gone: Cannot read \/x \(EIO\)$/,
    ],
  ])('a fault that is expected is one sentence: %s', (error, text) => {
    const report = reportOf(error)
    expect(report.exitCode).toBe(1)
    expect(report.text).toMatch(text)
    expect(report.text).not.toContain('\n')
  })

  test('what the system refuses is its sentence, without a stack', () => {
    const error = Object.assign(new Error("EACCES: permission denied, open '/x'"), { code: 'EACCES', syscall: 'open' })
    expect(reportOf(error)).toEqual({ exitCode: 1, text: "EACCES: permission denied, open '/x'" })
  })

  test('a bug shows where it is', () => {
    expect(reportOf(new TypeError('x is undefined')).text).toContain('fault-report.test.ts')
    expect(reportOf('thrown text')).toEqual({ exitCode: 1, text: 'thrown text' })
  })
})
