import { spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createRealPlatform } from '../../../../src/platform/index.ts'

const { files } = createRealPlatform()
const holderProgram = fileURLToPath(new URL('./lock-holder.ts', import.meta.url))
const contenderProgram = fileURLToPath(new URL('./lock-contender.ts', import.meta.url))
let folder: string

beforeEach(async () => {
  folder = await files.makeTemporaryDirectory('rookery-lock-')
})

afterEach(() => files.removeTree(folder))

test('a folder that a living process holds is refused with its pid, and is free once it is killed', async () => {
  const holder = spawn(process.execPath, [holderProgram, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(holder.stdout, 'data')
  await expect(files.lockDirectory(folder)).rejects.toMatchObject({ holderPid: holder.pid, path: folder })
  await expect(files.lockDirectory(folder)).rejects.toThrow(
    `Folder ${folder} is in use by process ${holder.pid}: stop that one first, or use another folder`,
  )
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  const lock = await files.lockDirectory(folder)
  expect(JSON.parse(readFileSync(join(folder, '.lock'), 'utf8')).pid).toBe(process.pid)
  await lock.release()
  expect(await files.list(folder)).toEqual([])
})

test('a pid that another process has now does not hold a lock', async () => {
  const holder = spawn(process.execPath, [holderProgram, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(holder.stdout, 'data')
  const path = join(folder, '.lock')
  const content = JSON.parse(readFileSync(path, 'utf8'))
  try {
    for (const other of [{ startTime: '1' }, { bootId: 'of another boot' }]) {
      writeFileSync(path, JSON.stringify({ ...content, ...other }))
      await (await files.lockDirectory(folder)).release()
    }
    writeFileSync(path, JSON.stringify(content))
    await expect(files.lockDirectory(folder)).rejects.toThrow('is in use by process')
  } finally {
    holder.kill('SIGKILL')
  }
})

test.each([
  ['nothing', ''],
  ['half a holder', '{"pid": 12'],
  ['another form', '{"pid":"x","startTime":1}'],
  ['a path as token', '{"pid":1,"startTime":"","bootId":"","token":"../../x"}'],
  ['zeros', '\0\0\0\0'],
])('a lock file that holds %s, as a loss of power leaves it, is taken over', async (_, content) => {
  writeFileSync(join(folder, '.lock'), content)
  utimesSync(join(folder, '.lock'), new Date(0), new Date(0))
  const lock = await files.lockDirectory(folder)
  await lock.release()
  expect(await files.list(folder)).toEqual([])
})

test('what processes left that were killed while they took the lock is removed', async () => {
  const dead = JSON.stringify({ pid: 2 ** 22 + 1, startTime: '5', bootId: '', token: 'ab' })
  for (const name of ['.lock', '.lock.ab', '.lock.ab-takeover', '.lock.cd-takeover', '.lock.ab-takeover.ab-takeover']) {
    writeFileSync(join(folder, name), dead)
  }
  writeFileSync(join(folder, '.locked-by-me'), 'kept')
  const lock = await files.lockDirectory(folder)
  await lock.release()
  expect(await files.list(folder)).toEqual([{ name: '.locked-by-me', kind: 'file' }])
})

test('a disk that takes no more leaves nothing of the attempt behind, and what was there as it was', async () => {
  const stale = JSON.stringify({ pid: 2 ** 22 + 1, startTime: '5', bootId: '', token: 'ab' })
  writeFileSync(join(folder, '.lock'), stale)
  // No byte fits into any file, and files can be made: as on a full disk.
  const command = 'ulimit -f 0 && exec "$0" "$@"'
  const holder = spawn('sh', ['-c', command, process.execPath, holderProgram, folder], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let errors = ''
  holder.stderr.on('data', (text) => {
    errors += text
  })
  await once(holder, 'close')
  expect(errors).toContain('EFBIG')
  expect(await files.list(folder)).toEqual([{ name: '.lock', kind: 'file' }])
  expect(readFileSync(join(folder, '.lock'), 'utf8')).toBe(stale)
})

test('a folder is one, by whatever path', async () => {
  const lock = await files.lockDirectory(folder)
  await expect(files.lockDirectory(`${folder}/../${folder.split('/').at(-1)}`)).rejects.toThrow('another node')
  await lock.release()
})

test('of many that find one stale lock at once, one gets the folder', async () => {
  const racers = Array.from({ length: 4 }, () => new Worker(new URL('./lock-racer.ts', import.meta.url)))
  const answers = racers.map((racer) => on(racer, 'message'))
  try {
    for (let round = 0; round < 60; round++) {
      const stale = { pid: 2 ** 22 + 1, startTime: '5', bootId: '', token: round.toString(16) }
      writeFileSync(join(folder, '.lock'), JSON.stringify(stale))
      const start = new Int32Array(new SharedArrayBuffer(4))
      for (const racer of racers) racer.postMessage({ folder, start, count: racers.length })
      const results = await Promise.all(answers.map(next))
      expect(results.filter((result) => result === 'locked').length).toBe(1)
      expect(results.filter((result) => result === 'refused').length).toBe(racers.length - 1)
      for (const racer of racers) racer.postMessage('release')
      expect(new Set(await Promise.all(answers.map(next)))).toEqual(new Set(['released']))
      expect(await files.list(folder)).toEqual([])
    }
  } finally {
    for (const racer of racers) await racer.terminate()
  }
})

test('of many processes that lock and die, one at a time holds the folder', async () => {
  const contenders = Array.from({ length: 5 }, () =>
    spawn(process.execPath, [contenderProgram, folder, '15'], { stdio: ['ignore', 'inherit', 'pipe'] }),
  )
  const ends = contenders.map(async (contender) => {
    let errors = ''
    contender.stderr.on('data', (text) => {
      errors += text
    })
    const [, signal] = await once(contender, 'close')
    return { signal, errors }
  })
  for (const end of await Promise.all(ends)) expect(end).toEqual({ signal: 'SIGKILL', errors: '' })
  expect(existsSync(join(folder, 'owner'))).toBe(false)
  const lock = await files.lockDirectory(folder)
  await lock.release()
  expect(await files.list(folder)).toEqual([])
})

async function next(answers: AsyncIterator<unknown[]>): Promise<unknown> {
  const { value } = await answers.next()
  return (value as unknown[])[0]
}
