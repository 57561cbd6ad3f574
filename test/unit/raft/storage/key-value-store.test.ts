import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createRealPlatform, type Platform } from '../../../../src/platform/index.ts'
import { type KeyValueStore, MemoryStore } from '../../../../src/raft/index.ts'
import { openLevelStore } from '../../../../src/raft/storage/level-store.ts'
import { openSimulatedStore } from '../../../support/simulated-kv.ts'

let platform: Platform
let directory: string

beforeAll(async () => {
  platform = createRealPlatform()
  directory = await platform.files.makeTemporaryDirectory('rookery-raft-')
})

afterAll(async () => {
  await platform.files.removeTree(directory)
})

let memory = new MemoryStore()

/** How each is opened; the second time with what the first one left. */
const stores: Readonly<Record<string, (name: string) => Promise<KeyValueStore>>> = {
  'the store in memory': async () => memory,
  'the simulated store': (name) => openSimulatedStore(platform.files, `${directory}/simulated-${name}`),
  Level: (name) => openLevelStore(`${directory}/level-${name}`),
}

const put = (key: string, value: string) =>
  ({ type: 'put', key: Buffer.from(key, 'hex'), value: Buffer.from(value) }) as const
const remove = (key: string) => ({ type: 'delete', key: Buffer.from(key, 'hex') }) as const

async function contentOf(store: KeyValueStore, from = '', end = 'ff'): Promise<string[]> {
  const found: string[] = []
  for await (const [key, value] of store.iterate(Buffer.from(from, 'hex'), Buffer.from(end, 'hex'))) {
    found.push(`${Buffer.from(key).toString('hex')}=${Buffer.from(value).toString()}`)
  }
  return found
}

describe.each(Object.entries(stores))('%s', (_name, open) => {
  test('orders keys by their bytes, and iterates from inclusive to exclusive', async () => {
    memory = new MemoryStore()
    const store = await open('order')
    await store.batch([put('80', 'c'), put('0100', 'b'), put('01', 'a'), put('fe', 'd')], { sync: true })
    expect(await contentOf(store)).toEqual(['01=a', '0100=b', '80=c', 'fe=d'])
    expect(await contentOf(store, '0100', 'fe')).toEqual(['0100=b', '80=c'])
    const get = async (key: string) => Buffer.from((await store.get(Buffer.from(key, 'hex'))) ?? 'none').toString()
    expect([await get('80'), await get('81')]).toEqual(['c', 'none'])
    await store.close()
  })

  test('carries out a batch in its order, and batches in the order of the calls', async () => {
    memory = new MemoryStore()
    const store = await open('batches')
    const first = store.batch([put('01', 'a'), remove('01'), put('02', 'b')], { sync: true })
    const second = store.batch([put('02', 'c'), put('03', '')], { sync: false })
    await Promise.all([first, second])
    expect(await contentOf(store)).toEqual(['02=c', '03='])
    await store.close()
  })
})

describe.each(Object.entries(stores).filter(([name]) => name !== 'the store in memory'))('%s', (_name, open) => {
  test('has everything again after it was closed', async () => {
    const store = await open('again')
    await store.batch([put('01', 'a'), put('02', 'b')], { sync: true })
    await store.batch([remove('01')], { sync: false })
    await store.close()
    const again = await open('again')
    expect(await contentOf(again)).toEqual(['02=b'])
    await again.close()
  })
})
