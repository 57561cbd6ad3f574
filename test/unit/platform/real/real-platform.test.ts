import { execFile } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test, vi } from 'vitest'
import { createRealPlatform, OffloadError, type Socket } from '../../../../src/platform/index.ts'
import { exitingTask, sumTask, workerIdTask } from '../../../conformance/offload-tasks.ts'

test('timers and idle workers do not keep the process alive, and a task does until it is done', async () => {
  const program = fileURLToPath(new URL('./ends-by-itself.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 20_000 })
  expect(stdout).toBe('sum 3\n')
})

test('a worker that stops rejects its task, and another takes the next ones', async () => {
  const { offload } = createRealPlatform()
  const runs = [offload.run(exitingTask, 3), offload.run(exitingTask, 4), offload.run(exitingTask, 5)]
  const next = offload.run(sumTask, { bytes: Buffer.from([9]) })
  const results = await Promise.allSettled(runs)
  expect(results.map((result) => result.status)).toEqual(['rejected', 'rejected', 'rejected'])
  for (const result of results) expect((result as PromiseRejectedResult).reason).toBeInstanceOf(OffloadError)
  expect((results[0] as PromiseRejectedResult).reason.message).toBe(
    'Worker stopped with code 3 while it ran exitingTask',
  )
  expect((await next).sum).toBe(9)
})

test('idle workers stop after a while, and a later task starts one again', async () => {
  const { offload } = createRealPlatform()
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    await Promise.all([1, 2, 3].map((byte) => offload.run(workerIdTask, byte)))
    const before = await offload.run(workerIdTask, 0)
    vi.advanceTimersByTime(4999)
    const [first, second] = await Promise.all([offload.run(workerIdTask, 0), offload.run(workerIdTask, 0)])
    expect([first, second]).toContain(before)
    vi.advanceTimersByTime(5000)
    expect([first, second]).not.toContain(await offload.run(workerIdTask, 0))
  } finally {
    vi.useRealTimers()
  }
})

test('writes of one turn, also those after its promises, wait for its end and leave together', async () => {
  const { network } = createRealPlatform()
  const accepted = Promise.withResolvers<Socket>()
  const listener = await network.listen({ host: '127.0.0.1', port: 0 }, accepted.resolve)
  const client = await network.connect({ host: '127.0.0.1', port: listener.port, timeoutMs: 5000 })
  const chunks: Buffer[] = []
  const closed = Promise.withResolvers<void>()
  client.start({ onData: (chunk) => chunks.push(Buffer.from(chunk)), onClose: () => closed.resolve() })
  const server = await accepted.promise
  server.start({
    onData: async () => {
      server.write([Buffer.from('a'), Buffer.from('b')])
      for (let i = 0; i < 30; i++) {
        await null
        server.write([Buffer.from('c')])
      }
      expect(server.queuedBytes).toBe(32)
      server.end()
    },
    onClose: () => {},
  })
  client.write([Buffer.from('go')])
  await closed.promise
  expect(chunks.map(String)).toEqual([`ab${'c'.repeat(30)}`])
  await listener.close()
})

test('links in a folder count as what they point to, and those that point nowhere do not', async () => {
  const { files } = createRealPlatform()
  const folder = await files.makeTemporaryDirectory('rookery-links-')
  await files.makeDirectory(join(folder, 'target'))
  symlinkSync(join(folder, 'target'), join(folder, 'link'))
  symlinkSync(join(folder, 'nowhere'), join(folder, 'broken'))
  expect(await files.list(folder)).toEqual([
    { name: 'link', kind: 'directory' },
    { name: 'target', kind: 'directory' },
  ])
  await files.removeTree(folder)
})

test('a connection that is not answered times out', async () => {
  const { network } = createRealPlatform()
  // 192.0.2.0/24 is reserved for documentation: no route, or nobody there.
  const error = await network.connect({ host: '192.0.2.1', port: 9, timeoutMs: 50 }).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({
    code: 'NETWORK_FAILED',
    operation: 'connect',
    address: '192.0.2.1:9',
    systemCode: expect.stringMatching(/^E(TIMEDOUT|NETUNREACH|HOSTUNREACH|CONNREFUSED|ACCES)$/),
  })
})

test('a delay beyond the range of setTimeout does not fire early', () => {
  vi.useFakeTimers()
  try {
    const { timers } = createRealPlatform()
    let count = 0
    const delayMs = 2 ** 32
    timers.set(delayMs, () => count++)
    const cancelled = timers.set(delayMs, () => count++)
    vi.advanceTimersByTime(2 ** 31)
    cancelled.cancel()
    vi.advanceTimersByTime(2 ** 31 - 1)
    expect(count).toBe(0)
    vi.advanceTimersByTime(1)
    expect(count).toBe(1)
  } finally {
    vi.useRealTimers()
  }
})

// Node's own recursive mkdir spins for ever there.
test.runIf(process.platform === 'linux')('a folder where the file system takes none is refused', async () => {
  const { files } = createRealPlatform()
  await expect(files.makeDirectory('/proc/rookery/data')).rejects.toMatchObject({ code: 'FILE_FAILED' })
})
