import { execFile } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRealPlatform, type Platform } from '../../../../src/platform/index.ts'
import { isDurableStorageEmpty, openDurableStorage, RaftStorageError } from '../../../../src/raft/index.ts'
import { openLevelStore } from '../../../../src/raft/storage/level-store.ts'
import { contentOf, entry, hardState, membership, ready } from './store-fixture.ts'

/** Of each file, evenly spread; each costs opening a store. Set ROOKERY_RAFT_DAMAGES for every byte. */
const maxDamages = Number(process.env.ROOKERY_RAFT_DAMAGES ?? 60)

let platform: Platform
let directory: string

beforeAll(async () => {
  platform = createRealPlatform()
  directory = await platform.files.makeTemporaryDirectory('rookery-raft-')
})

afterAll(async () => {
  await platform.files.removeTree(directory)
})

function open(folder: string) {
  const { files, timers } = platform
  return openDurableStorage({
    files,
    timers,
    directory: join(directory, folder),
    bootstrap: membership,
    scheduleSync: (work) => work(),
  })
}

async function fill(folder: string) {
  const storage = await open(folder)
  await storage.persist(ready({ hardState: hardState(1, 2) }))
  for (let index = 1; index <= 10; index++) {
    await storage.persist(ready({ entries: [entry(index, 1)], hardState: hardState(1, 2, index - 1) }))
  }
  const content = contentOf(storage)
  await storage.close()
  return content
}

describe('openDurableStorage()', () => {
  test('finds everything again', async () => {
    const content = await fill('plain')
    const storage = await open('plain')
    expect(contentOf(storage)).toEqual(content)
    await storage.close()
  })

  test('says so when the folder is in use', async () => {
    const storage = await open('used')
    await expect(open('used')).rejects.toThrow(RaftStorageError)
    await storage.close()
  })

  /** Every file of a small store with its bytes. */
  function filesOf(folder: string): { readonly name: string; readonly bytes: Buffer }[] {
    const names = [
      'quorum-state',
      ...readdirSync(join(directory, folder, 'log'))
        .filter((name) => name !== 'LOCK' && !name.startsWith('LOG'))
        .map((name) => `log/${name}`),
    ]
    return names.map((name) => ({ name, bytes: readFileSync(join(directory, folder, name)) }))
  }

  /** Opens a copy of `folder` in which `name` holds `bytes`; undefined when that is refused. */
  async function openWith(folder: string, name: string, bytes: Buffer) {
    const damaged = join(directory, 'damaged')
    rmSync(damaged, { recursive: true, force: true })
    cpSync(join(directory, folder), damaged, { recursive: true })
    writeFileSync(join(damaged, name), bytes)
    try {
      const storage = await open('damaged')
      const content = contentOf(storage)
      await storage.close()
      return content
    } catch (error) {
      if (!(error instanceof RaftStorageError)) throw error
      return undefined
    }
  }

  test('refuses each flipped byte of its files, which Level opens without a word, or has lost nothing', {
    timeout: 300_000,
  }, async () => {
    const content = await fill('whole')
    let refused = 0
    let tried = 0
    for (const { name, bytes } of filesOf('whole')) {
      const stride = Math.max(1, Math.ceil(bytes.length / maxDamages))
      for (let position = 0; position < bytes.length; position += stride) {
        const copy = Buffer.from(bytes)
        copy[position]! ^= 0x08
        tried++
        const found = await openWith('whole', name, copy)
        if (found === undefined) refused++
        else expect(found, `${name} byte ${position}`).toEqual(content)
      }
    }
    expect(refused).toBeGreaterThan(tried / 3)
  })

  test('refuses each of its files cut off anywhere, or has lost nothing', { timeout: 300_000 }, async () => {
    const content = await fill('cut')
    for (const { name, bytes } of filesOf('cut')) {
      const stride = Math.max(1, Math.ceil(bytes.length / maxDamages))
      for (let length = 0; length < bytes.length; length += stride) {
        const found = await openWith('cut', name, bytes.subarray(0, length))
        if (found !== undefined) expect(found, `${name} length ${length}`).toEqual(content)
      }
    }
  })

  test('isDurableStorageEmpty() is true until something was formatted, and never again', async () => {
    const { files } = platform
    const isEmpty = () => isDurableStorageEmpty({ files, directory: join(directory, 'first') })
    expect(await isEmpty()).toBe(true)
    // A crash between making the folder and formatting leaves a store without anything in it.
    const store = await openLevelStore(await made('first/log'))
    await store.close()
    expect(await isEmpty()).toBe(true)
    await fill('first')
    expect(await isEmpty()).toBe(false)
    rmSync(join(directory, 'first', 'quorum-state'))
    expect(await isEmpty()).toBe(false)
  })

  async function made(folder: string): Promise<string> {
    await platform.files.makeDirectory(join(directory, folder))
    return join(directory, folder)
  }
})

test.runIf(process.platform === 'linux')('Level stays loaded when the only thread that used it has ended', async () => {
  const program = fileURLToPath(new URL('./level-in-thread.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [program, join(directory, 'in a thread')])
  expect(JSON.parse(stdout)).toEqual({ code: 0, isLoaded: true }) // its own thread goes on, in its code
})
