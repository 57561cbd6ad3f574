import { describe, expect, test } from 'vitest'
import {
  createMemoryFiles,
  createRealPlatform,
  DirectoryLockedError,
  FileError,
  type FileHandle,
  type Listener,
  NetworkError,
  OffloadError,
  type Platform,
  type Socket,
} from '../../src/platform/index.ts'
import { createSimulation } from '../../src/platform/simulated/index.ts'
import { failingTask, sumTask, unclonableTask } from './offload-tasks.ts'

/** Runs `body` with a platform and an empty folder. */
type Within = (body: (platform: Platform, folder: string) => Promise<void>) => Promise<void>

const withinReal: Within = async (body) => {
  const platform = createRealPlatform()
  const folder = await platform.files.makeTemporaryDirectory('rookery-conformance-')
  try {
    await body(platform, folder)
  } finally {
    await platform.files.removeTree(folder)
  }
}

/** Real but for the files. */
const withinMemory: Within = async (body) => {
  const files = createMemoryFiles()
  await body({ ...createRealPlatform(), files }, await files.makeTemporaryDirectory('rookery-conformance-'))
}

const withinSimulated: Within = async (body) => {
  for (const seed of [1, 2, 3]) {
    const simulation = createSimulation({ seed })
    const { platform } = simulation.host('a')
    await simulation.run(platform.files.makeDirectory('/data/test').then(() => body(platform, '/data/test')))
  }
}

describe.each([
  { name: 'real', within: withinReal },
  { name: 'simulated', within: withinSimulated },
])('platform, $name', ({ within }) => {
  describe('clock, timers and randomness', () => {
    test('timers run in the order of their times, not before them, and not when cancelled', () =>
      within(async ({ timers, clock }) => {
        const order: string[] = []
        const start = clock.monotonic()
        await new Promise<void>((resolve) => {
          timers.set(30, () => {
            order.push('30')
            resolve()
          })
          timers.set(5, () => order.push('5'))
          const cancelled = timers.set(10, () => order.push('cancelled'))
          timers.set(0, () => {
            order.push('0')
            cancelled.cancel()
            cancelled.cancel()
          })
          timers.defer(() => order.push('deferred'))
        })
        expect(order.filter((name) => name !== 'deferred')).toEqual(['0', '5', '30'])
        expect(order).toContain('deferred')
        expect(clock.monotonic() - start).toBeGreaterThanOrEqual(29.9)
      }))

    test('a deferred callback runs after the promises of this turn', () =>
      within(async ({ timers }) => {
        const order: string[] = []
        await new Promise<void>((resolve) => {
          timers.defer(() => {
            order.push('deferred')
            resolve()
          })
          const deep = async (): Promise<void> => {
            for (let i = 0; i < 20; i++) await null
            order.push('deep')
          }
          void deep()
        })
        expect(order).toEqual(['deep', 'deferred'])
      }))

    test('the clock gives whole milliseconds since 1970', () =>
      within(async ({ clock }) => {
        expect(Number.isInteger(clock.now())).toBe(true)
        expect(clock.now()).toBeGreaterThan(Date.UTC(2024, 0, 1))
      }))

    test('random numbers are in range, and ids have the form of a version 4 UUID', () =>
      within(async ({ random }) => {
        const seen = new Set<number>()
        for (let i = 0; i < 500; i++) {
          const float = random.float()
          expect(float >= 0 && float < 1).toBe(true)
          seen.add(random.int(5))
          const large = random.int(2 ** 48)
          expect(Number.isSafeInteger(large) && large >= 0 && large < 2 ** 48).toBe(true)
        }
        expect(seen).toEqual(new Set([0, 1, 2, 3, 4]))
        expect(random.int(1)).toBe(0)
        const ids = Array.from({ length: 1000 }, () => random.uuid())
        expect(new Set(ids).size).toBe(1000)
        for (const id of ids) {
          expect(id).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{21}$/)
          const bytes = Buffer.from(id, 'base64url')
          expect(bytes[6]! >> 4).toBe(4)
          expect(bytes[8]! >> 6).toBe(2)
        }
        expect(random.bytes(0).length).toBe(0)
        expect(random.bytes(10_000).length).toBe(10_000)
        expect(random.bytes(16).equals(random.bytes(16))).toBe(false)
      }))
  })

  describe('network', () => {
    test.each(['127.0.0.1', 'localhost', '0.0.0.0', '::'])('a listener on %s echoes, and tells its port', (host) =>
      within(async ({ network }) => {
        const listener = await network.listen({ host, port: 0 }, echo)
        expect(listener.port).toBeGreaterThan(0)
        expect(listener.host).toBe(host)
        const client = await dial(network, listener)
        expect(client.socket.remotePort).toBe(listener.port)
        expect(client.socket.remoteAddress).toMatch(/^(127\.0\.0\.1|::1)$/)
        const isWritten = new Promise<void>((resolve) => {
          client.socket.write([Buffer.from('he'), Buffer.alloc(0), Buffer.from('llo')], resolve)
        })
        await client.receivedBytes(5)
        expect(String(client.received())).toBe('hello')
        await isWritten
        client.socket.end()
        expect(await client.closed).toBeUndefined()
        await listener.close()
      }),
    )

    test('a connection that nobody listens for is refused', () =>
      within(async ({ network }) => {
        const listener = await network.listen({ host: 'localhost', port: 0 }, echo)
        await listener.close()
        await expectNetworkError(network.connect({ ...listener, host: 'localhost', timeoutMs: 60_000 }), 'ECONNREFUSED')
      }))

    test('a port is taken once, and free again after close', () =>
      within(async ({ network }) => {
        const first = await network.listen({ host: 'localhost', port: 0 }, echo)
        await expectNetworkError(network.listen({ host: 'localhost', port: first.port }, echo), 'EADDRINUSE')
        await first.close()
        const second = await network.listen({ host: 'localhost', port: first.port }, echo)
        expect(second.port).toBe(first.port)
        await second.close()
      }))

    test('connections that were accepted outlive their listener', () =>
      within(async ({ network }) => {
        const listener = await network.listen({ host: 'localhost', port: 0 }, echo)
        const client = await dial(network, listener)
        client.socket.write([Buffer.from('1')])
        await client.receivedBytes(1)
        await listener.close()
        client.socket.write([Buffer.from('2')])
        await client.receivedBytes(2)
        client.socket.end()
        await client.closed
      }))

    test('large writes arrive whole and in order, and stop the writer until they drain', () =>
      within(async ({ network, random }) => {
        const { client, server, listener } = await connectedPair(network)
        const chunks = Array.from({ length: 64 }, () => random.bytes(65_000))
        server.socket.pause()
        let written = 0
        let wasFull = false
        for (const chunk of chunks) wasFull = !client.socket.write([chunk], () => written++) || wasFull
        expect(wasFull).toBe(true)
        expect(client.socket.queuedBytes).toBeGreaterThan(65_000)
        server.socket.resume()
        await client.drained
        await server.receivedBytes(64 * 65_000)
        expect(server.received().equals(Buffer.concat(chunks))).toBe(true)
        expect(client.socket.queuedBytes).toBe(0)
        expect(written).toBe(64)
        client.socket.end()
        await Promise.all([client.closed, server.closed])
        await listener.close()
      }))

    test('a paused socket delivers nothing until it is resumed', () =>
      within(async ({ network, timers }) => {
        const { client, server, listener } = await connectedPair(network)
        server.socket.pause()
        client.socket.write([Buffer.from('late')])
        await new Promise<void>((resolve) => timers.set(20, resolve))
        expect(server.received().length).toBe(0)
        server.socket.resume()
        await server.receivedBytes(4)
        client.socket.destroy()
        server.socket.destroy()
        await Promise.all([client.closed, server.closed])
        await listener.close()
      }))

    test('data that came before start is delivered, and an end after it closes once', () =>
      within(async ({ network, timers }) => {
        const accepted = Promise.withResolvers<Socket>()
        const listener = await network.listen({ host: 'localhost', port: 0 }, accepted.resolve)
        const client = await dial(network, listener)
        client.socket.write([Buffer.from('early')])
        client.socket.end()
        const socket = await accepted.promise
        await new Promise<void>((resolve) => timers.set(20, resolve))
        const server = watched(socket)
        expect(await server.closed).toBeUndefined()
        expect(String(server.received())).toBe('early')
        await client.closed
        expect([client.closeCount(), server.closeCount()]).toEqual([1, 1])
        await listener.close()
      }))

    test('end sends what is queued first, and the peer that sees the end closes too', () =>
      within(async ({ network, random }) => {
        const { client, server, listener } = await connectedPair(network)
        const data = random.bytes(2_000_000)
        client.socket.write([data])
        client.socket.end()
        expect(await server.closed).toBeUndefined()
        expect(await client.closed).toBeUndefined()
        expect(server.received().equals(data)).toBe(true)
        await listener.close()
      }))

    test('destroy closes at once: what waits is dropped and its callback runs', () =>
      within(async ({ network }) => {
        const { client, server, listener } = await connectedPair(network)
        server.socket.pause()
        let callbacks = 0
        for (let i = 0; i < 200; i++) client.socket.write([Buffer.alloc(100_000)], () => callbacks++)
        client.socket.destroy()
        expect(await client.closed).toBeUndefined()
        await server.socketIsOverAfterResume()
        expect(server.received().length).toBeLessThan(200 * 100_000)
        let isLateWritten = false
        const late = new Promise<void>((resolve) => {
          client.socket.write([Buffer.from('late')], () => {
            isLateWritten = true
            resolve()
          })
        })
        expect(isLateWritten).toBe(false)
        await late
        expect(callbacks).toBe(200)
        expect([client.closeCount(), server.closeCount()]).toEqual([1, 1])
        await listener.close()
      }))

    test('writes to a peer that is gone end in one close, not in a throw', () =>
      within(async ({ network }) => {
        const { client, server, listener } = await connectedPair(network)
        server.socket.destroy()
        for (let i = 0; i < 10; i++) client.socket.write([Buffer.alloc(1000)])
        await client.closed
        client.socket.write([Buffer.alloc(1)])
        client.socket.end()
        client.socket.destroy()
        await server.closed
        expect(client.closeCount()).toBe(1)
        await listener.close()
      }))
  })

  describe('offload', () => {
    test('a task gets a copy of its input, and Buffers come back as Uint8Array', () =>
      within(async ({ offload }) => {
        const bytes = Buffer.from([1, 2, 3])
        const { sum, same } = await offload.run(sumTask, { bytes })
        expect(sum).toBe(6)
        expect(same).toEqual(new Uint8Array([1, 2, 3]))
        expect(Buffer.isBuffer(same)).toBe(false)
      }))

    test('many tasks at once each get their own result', () =>
      within(async ({ offload }) => {
        const runs = Array.from({ length: 50 }, (_, i) => offload.run(sumTask, { bytes: Buffer.from([i, 1]) }))
        expect((await Promise.all(runs)).map(({ sum }) => sum)).toEqual(runs.map((_, i) => i + 1))
      }))

    test('an error of the task rejects with its message, and the next task runs', () =>
      within(async ({ offload }) => {
        const error = await offload.run(failingTask, 'No such codec').catch((thrown: unknown) => thrown)
        expect(error).toBeInstanceOf(OffloadError)
        expect((error as OffloadError).message).toBe('No such codec')
        await expect(offload.run(unclonableTask, 1)).rejects.toThrow(OffloadError)
        expect((await offload.run(sumTask, { bytes: Buffer.from([7]) })).sum).toBe(7)
      }))

    test('an input that cannot be copied rejects', () =>
      within(async ({ offload }) => {
        await expect(offload.run(failingTask, (() => 1) as unknown as string)).rejects.toThrow(OffloadError)
      }))
  })
})

describe.each([
  { name: 'real', within: withinReal },
  { name: 'memory', within: withinMemory },
  { name: 'simulated', within: withinSimulated },
])('files, $name', ({ within }) => {
  test('writes go to their positions, and reads are short only at the end', () =>
    within(async ({ files }, folder) => {
      const file = await files.open(`${folder}/a`, 'create')
      file.writeSync([Buffer.from('hello '), Buffer.alloc(0), Buffer.from('world')], 0)
      await file.write([Buffer.from('HE'), Buffer.from('L')], 0)
      file.writeSync([], 3)
      await file.write([Buffer.alloc(0)], 100)
      expect(file.sizeSync()).toBe(11)
      const target = Buffer.alloc(6, '.')
      expect(file.readSync(target, 6)).toBe(5)
      expect(String(target)).toBe('world.')
      expect(await file.read(target, 0)).toBe(6)
      expect(String(target)).toBe('HELlo ')
      expect(file.readSync(target, 11)).toBe(0)
      expect(await file.read(target, 50)).toBe(0)
      await file.close()
    }))

  test('a write past the end leaves zeros, and truncation cuts or extends with zeros', () =>
    within(async ({ files }, folder) => {
      const file = files.openSync(`${folder}/a`, 'create')
      file.writeSync([Buffer.from('x')], 200_000)
      expect(file.sizeSync()).toBe(200_001)
      const target = Buffer.alloc(200_001, '.')
      expect(file.readSync(target, 0)).toBe(200_001)
      expect(target.subarray(0, 200_000).every((byte) => byte === 0)).toBe(true)
      file.writeSync([Buffer.from('abcdef')], 0)
      await file.truncate(3)
      file.truncateSync(5)
      expect(await files.readFile(`${folder}/a`, 100)).toEqual(Buffer.from('abc\0\0'))
      await file.close()
    }))

  test('large and many-chunked writes arrive whole', () =>
    within(async ({ files, random }, folder) => {
      const file = await files.open(`${folder}/a`, 'create')
      const chunks = Array.from({ length: 3000 }, (_, i) => random.bytes(i % 7 === 0 ? 900 : 13))
      chunks.push(random.bytes(1_000_000))
      file.writeSync(chunks, 5)
      const expected = Buffer.concat([Buffer.alloc(5), ...chunks])
      expect((await files.readFile(`${folder}/a`, 1e7))?.equals(expected)).toBe(true)
      await file.truncate(0)
      await file.write(chunks, 5)
      await file.sync()
      expect((await files.readFile(`${folder}/a`, 1e7))?.equals(expected)).toBe(true)
      await file.close()
    }))

  test('modes: only create makes a file, read does not write', () =>
    within(async ({ files }, folder) => {
      const path = `${folder}/a`
      for (const mode of ['read', 'write'] as const) {
        await expectFileError(files.open(path, mode), 'open', path, 'ENOENT')
        expect(() => files.openSync(path, mode)).toThrow(FileError)
      }
      const made = await files.open(path, 'create')
      made.writeSync([Buffer.from('kept')], 0)
      await made.close()
      const again = await files.open(path, 'create')
      expect(again.sizeSync()).toBe(4)
      await again.close()
      const reader = await files.open(path, 'read')
      await expectFileError(reader.write([Buffer.from('x')], 0), 'write', path, 'EBADF')
      expect(() => reader.writeSync([Buffer.from('x')], 0)).toThrow(FileError)
      await reader.close()
      await expectFileError(files.open(folder, 'write'), 'open', folder, 'EISDIR')
      await expectFileError(files.open(`${path}/below`, 'create'), 'open', `${path}/below`, 'ENOTDIR')
    }))

  test('what is missing is undefined where the port says so', () =>
    within(async ({ files }, folder) => {
      const path = `${folder}/missing`
      expect(await files.readFile(path, 10)).toBeUndefined()
      expect(await files.list(path)).toBeUndefined()
      expect(await files.stat(path)).toBeUndefined()
      await files.remove(path)
      await files.remove(`${path}/deeper`)
      await files.removeTree(path)
      await expectFileError(files.rename(path, `${folder}/b`), 'rename', path, 'ENOENT')
      await expectFileError(files.syncDirectory(path), 'sync', path, 'ENOENT')
    }))

  test('a path through a file leads nowhere, and what is in the way says so', () =>
    within(async ({ files }, folder) => {
      const path = `${folder}/a`
      await writeFile(files, path, 'x')
      expect(await files.readFile(`${path}/below`, 10)).toBeUndefined()
      expect(await files.stat(`${path}/below`)).toBeUndefined()
      expect(await files.list(path)).toBeUndefined()
      await files.remove(`${path}/below`)
      await expectFileError(files.makeDirectory(path), 'make folder', path, 'EEXIST')
      await expectFileError(files.makeDirectory(`${path}/b`), 'make folder', `${path}/b`, 'ENOTDIR')
      await files.makeDirectory(`${folder}/d/e`)
      await expectFileError(files.rename(path, `${folder}/d`), 'rename', path, 'EISDIR')
      await expectFileError(files.rename(`${folder}/d`, path), 'rename', `${folder}/d`, 'ENOTDIR')
      await expectFileError(files.rename(`${folder}/d`, `${folder}/d/e/f`), 'rename', `${folder}/d`, 'EINVAL')
      await files.makeDirectory(`${folder}/g`)
      await expectFileError(files.rename(`${folder}/g`, `${folder}/d`), 'rename', `${folder}/g`, 'ENOTEMPTY')
      await files.rename(`${folder}/g`, `${folder}/d/e`)
      await expectFileError(files.remove(`${folder}/d`), 'remove', `${folder}/d`, 'EISDIR')
      expect(await files.list(`${folder}/d`)).toEqual([{ name: 'e', kind: 'directory' }])
    }))

  test('a single folder is made at once, where there is its parent and no file', () =>
    within(async ({ files }, folder) => {
      files.makeDirectorySync(`${folder}/a`)
      files.makeDirectorySync(`${folder}/a`)
      files.makeDirectorySync(`${folder}/a/b`)
      expect(await files.list(`${folder}/a`)).toEqual([{ name: 'b', kind: 'directory' }])
      await writeFile(files, `${folder}/file`, 'x')
      const fault = (path: string, systemCode: string) =>
        expect(() => files.makeDirectorySync(path)).toThrow(
          expect.objectContaining({ code: 'FILE_FAILED', systemCode }),
        )
      fault(`${folder}/file`, 'EEXIST')
      fault(`${folder}/missing/c`, 'ENOENT')
    }))

  test('a folder is renamed at once, and its open files stay what they are', () =>
    within(async ({ files }, folder) => {
      await files.makeDirectory(`${folder}/a`)
      const handle = await files.open(`${folder}/a/file`, 'create')
      files.renameSync(`${folder}/a`, `${folder}/b`)
      handle.writeSync([Buffer.from('after')], 0)
      await handle.close()
      expect(String(await files.readFile(`${folder}/b/file`, 10))).toBe('after')
      expect(await files.stat(`${folder}/a`)).toBeUndefined()
      await files.makeDirectory(`${folder}/full`)
      await writeFile(files, `${folder}/full/file`, 'x')
      const fault = (from: string, to: string, systemCode: string) =>
        expect(() => files.renameSync(`${folder}/${from}`, `${folder}/${to}`)).toThrow(
          expect.objectContaining({ code: 'FILE_FAILED', operation: 'rename', systemCode }),
        )
      fault('a', 'c', 'ENOENT')
      fault('b', 'full', 'ENOTEMPTY')
      fault('b', 'missing/c', 'ENOENT')
    }))

  test('a file larger than allowed is not read', () =>
    within(async ({ files }, folder) => {
      await writeFile(files, `${folder}/a`, '12345')
      expect(String(await files.readFile(`${folder}/a`, 5))).toBe('12345')
      await expectFileError(files.readFile(`${folder}/a`, 4), 'read', `${folder}/a`, 'EFBIG')
    }))

  test('folders are made with their parents, listed by name, and removed with what is inside', () =>
    within(async ({ files, clock }, folder) => {
      await files.makeDirectory(`${folder}/x/y/z`)
      await files.makeDirectory(`${folder}/x/y/z`)
      for (const name of ['b', 'B', 'a10', 'a9']) await writeFile(files, `${folder}/x/y/${name}`, name)
      expect(await files.list(`${folder}/x/y`)).toEqual([
        { name: 'B', kind: 'file' },
        { name: 'a10', kind: 'file' },
        { name: 'a9', kind: 'file' },
        { name: 'b', kind: 'file' },
        { name: 'z', kind: 'directory' },
      ])
      expect(await files.stat(`${folder}/x/y/a10`)).toMatchObject({ sizeBytes: 3, kind: 'file' })
      expect(Math.abs((await files.stat(`${folder}/x/y/a10`))!.modifiedMs - clock.now())).toBeLessThan(60_000)
      expect(await files.stat(`${folder}/x`)).toMatchObject({ kind: 'directory' })
      await files.syncDirectory(`${folder}/x/y`)
      await files.removeTree(`${folder}/x`)
      expect(await files.list(folder)).toEqual([])
    }))

  test('rename replaces a file, moves a folder, and an open file keeps its content', () =>
    within(async ({ files }, folder) => {
      await writeFile(files, `${folder}/old`, 'old')
      await writeFile(files, `${folder}/new`, 'new')
      const opened = await files.open(`${folder}/old`, 'read')
      await files.rename(`${folder}/new`, `${folder}/old`)
      expect(String(await files.readFile(`${folder}/old`, 10))).toBe('new')
      const target = Buffer.alloc(3)
      expect(await opened.read(target, 0)).toBe(3)
      expect(String(target)).toBe('old')
      await opened.close()
      await files.makeDirectory(`${folder}/d`)
      await writeFile(files, `${folder}/d/inside`, 'in')
      await files.rename(`${folder}/d`, `${folder}/e`)
      expect(String(await files.readFile(`${folder}/e/inside`, 10))).toBe('in')
      expect((await files.list(folder))?.map((entry) => entry.name)).toEqual(['e', 'old'])
    }))

  test('a locked folder is refused to another node of this process until it is released, and no lock file stays', () =>
    within(async ({ files }, folder) => {
      const lock = await files.lockDirectory(folder)
      const error = await files.lockDirectory(folder).then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      expect(error).toBeInstanceOf(DirectoryLockedError)
      expect(error).toMatchObject({ path: folder, code: 'DIRECTORY_LOCKED' })
      expect((error as DirectoryLockedError).holderPid).toBeGreaterThan(0)
      expect((error as DirectoryLockedError).message).toContain('another node in this process')
      await lock.release()
      await lock.release()
      expect(await files.list(folder)).toEqual([])
      const again = await files.lockDirectory(folder)
      await again.release()
      await expectFileError(files.lockDirectory(`${folder}/missing`), 'lock', `${folder}/missing`, 'ENOENT')
    }))

  test('space and temporary folders', () =>
    within(async ({ files }, folder) => {
      const { freeBytes, totalBytes } = await files.space(folder)
      expect(freeBytes).toBeGreaterThan(0)
      expect(totalBytes).toBeGreaterThanOrEqual(freeBytes)
      const [one, other] = [await files.makeTemporaryDirectory('rk-'), await files.makeTemporaryDirectory('rk-')]
      expect(one).not.toBe(other)
      expect(one).toMatch(/\/rk-[^/]+$/)
      expect(await files.list(one)).toEqual([])
      await files.removeTree(one)
      await files.removeTree(other)
    }))
})

async function writeFile(files: Platform['files'], path: string, text: string): Promise<void> {
  const file: FileHandle = await files.open(path, 'create')
  file.writeSync([Buffer.from(text)], 0)
  await file.close()
}

async function expectFileError(call: Promise<unknown>, operation: string, path: string, code: string): Promise<void> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(FileError)
  expect(error).toMatchObject({ operation, path, systemCode: code, code: 'FILE_FAILED' })
}

async function expectNetworkError(call: Promise<unknown>, code: string): Promise<void> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(NetworkError)
  expect(error).toMatchObject({ systemCode: code, code: 'NETWORK_FAILED' })
}

interface WatchedSocket {
  readonly socket: Socket
  readonly closed: Promise<Error | undefined>
  readonly drained: Promise<void>
  received(): Buffer
  closeCount(): number
  receivedBytes(count: number): Promise<void>
  socketIsOverAfterResume(): Promise<Error | undefined>
}

function watched(socket: Socket): WatchedSocket {
  const chunks: Buffer[] = []
  let total = 0
  let closeCount = 0
  const closed = Promise.withResolvers<Error | undefined>()
  const drained = Promise.withResolvers<void>()
  let waiting: { count: number; resolve: () => void } | undefined
  const check = (): void => {
    if (waiting !== undefined && total >= waiting.count) waiting.resolve()
  }
  socket.start({
    onData: (chunk) => {
      expect(closeCount).toBe(0)
      chunks.push(Buffer.from(chunk))
      total += chunk.length
      check()
    },
    onDrain: () => drained.resolve(),
    onClose: (error) => {
      closeCount++
      closed.resolve(error)
    },
  })
  return {
    socket,
    closed: closed.promise,
    drained: drained.promise,
    received: () => Buffer.concat(chunks),
    closeCount: () => closeCount,
    receivedBytes: (count) =>
      new Promise((resolve) => {
        waiting = { count, resolve }
        check()
      }),
    socketIsOverAfterResume: () => {
      socket.resume()
      return closed.promise
    },
  }
}

function echo(socket: Socket): void {
  socket.start({ onData: (chunk) => void socket.write([Buffer.from(chunk)]), onClose: () => {} })
}

async function dial(network: Platform['network'], listener: Listener): Promise<WatchedSocket> {
  return watched(await network.connect({ host: 'localhost', port: listener.port, timeoutMs: 60_000 }))
}

async function connectedPair(
  network: Platform['network'],
): Promise<{ client: WatchedSocket; server: WatchedSocket; listener: Listener }> {
  const accepted = Promise.withResolvers<Socket>()
  const listener = await network.listen({ host: 'localhost', port: 0 }, accepted.resolve)
  const client = await dial(network, listener)
  return { client, server: watched(await accepted.promise), listener }
}
