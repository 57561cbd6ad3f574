import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRealPlatform, type Platform } from '../../../../src/platform/index.ts'
import { openDurableStorage, RaftStorageError } from '../../../../src/raft/index.ts'
import { contentOf, entry, hardState, membership, ready } from './store-fixture.ts'

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

  test("refuses a flipped byte in Level's log, which Level opens without a word, or has lost nothing", {
    timeout: 60_000,
  }, async () => {
    const content = await fill('whole')
    const whole = join(directory, 'whole')
    const logName = readdirSync(join(whole, 'log')).find((name) => name.endsWith('.log'))!
    const bytes = readFileSync(join(whole, 'log', logName))
    expect(bytes.length).toBeGreaterThan(500)
    let refused = 0
    const stride = Math.ceil(bytes.length / 100)
    for (let position = 0; position < bytes.length; position += stride) {
      const damaged = join(directory, 'damaged')
      rmSync(damaged, { recursive: true, force: true })
      cpSync(whole, damaged, { recursive: true })
      const copy = Buffer.from(bytes)
      copy[position]! ^= 0x08
      writeFileSync(join(damaged, 'log', logName), copy)
      try {
        const storage = await open('damaged')
        expect(contentOf(storage), `byte ${position}`).toEqual(content)
        await storage.close()
      } catch (error) {
        if (!(error instanceof RaftStorageError)) throw error
        refused++
      }
    }
    expect(refused).toBeGreaterThan(50)
  })
})
