import { beforeEach, describe, expect, test } from 'vitest'
import { HandlePool } from '../../../src/log/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import { append, appended, batchOf, openLog, openLogs, readAll, replaceFiles } from './support.ts'

let simulation: Simulation
let host: SimulatedHost

beforeEach(() => {
  simulation = createSimulation({ seed: 31 })
  host = simulation.host('a')
})

const bytes = [Buffer.from('bytes')]

describe('the handle pool', () => {
  test('closes the file that is idle the longest, and opens it again when it is used', async () => {
    const pool = new HandlePool(host.platform.files, { maxOpen: 2 })
    const files = ['a', 'b', 'c'].map((name) => pool.file(`/data/${name}`))
    for (const file of files) file.createSync()
    expect(files.map((file) => file.isOpen)).toEqual([false, true, true])
    expect(files[1]!.sizeSync()).toBe(0)
    expect(files[0]!.readSync(Buffer.alloc(1), 0)).toBe(0)
    expect(files.map((file) => file.isOpen)).toEqual([true, true, false])
    await simulation.run(pool.drained())
    expect(pool.openCount).toBe(2)
  })

  test('keeps what is not synced, and what is being used, above its bound', async () => {
    const pool = new HandlePool(host.platform.files, { maxOpen: 1 })
    const dirty = pool.file('/data/dirty')
    const busy = pool.file('/data/busy')
    busy.createSync()
    dirty.writeSync(bytes, 0)
    const reading = busy.read(Buffer.alloc(1), 0)
    const other = pool.file('/data/other')
    other.createSync()
    expect([dirty.isOpen, busy.isOpen, other.isOpen]).toEqual([true, true, false])
    const syncing = dirty.sync()
    dirty.writeSync(bytes, 5)
    await simulation.run(Promise.all([reading, syncing]))
    // What was written while the sync ran is not covered by it.
    expect([dirty.hasUnsyncedBytes, dirty.isOpen]).toEqual([true, true])
    await simulation.run(dirty.sync())
    other.sizeSync()
    await simulation.run(pool.drained())
    expect(pool.openCount).toBe(1)
  })

  test('closes a discarded file after the last call on it', async () => {
    const pool = new HandlePool(host.platform.files, { maxOpen: 10 })
    const file = pool.file('/data/a')
    file.writeSync(bytes, 0)
    const target = Buffer.alloc(5)
    const reading = file.read(target, 0)
    file.discard()
    expect(file.isOpen).toBe(true)
    expect(await simulation.run(reading)).toBe(5)
    expect([file.isOpen, target.toString()]).toEqual([false, 'bytes'])
    expect(() => file.sizeSync()).toThrow('a discarded file is not used again')
  })

  test('a file whose sync failed stays unsynced', async () => {
    const pool = new HandlePool(host.platform.files, { maxOpen: 1 })
    const file = pool.file('/data/a')
    file.writeSync(bytes, 0)
    host.disk.failNext({ operation: 'sync', code: 'EIO' })
    await expect(simulation.run(file.sync())).rejects.toThrow('EIO')
    expect([file.hasUnsyncedBytes, file.isOpen]).toEqual([true, true])
  })
})

test('many partitions live on few handles', async () => {
  const handles = new HandlePool(host.platform.files, { maxOpen: 5 })
  const logs = await simulation.run(openLogs(host.platform, { handles, settings: { tailCacheBytes: 0 } }))
  const all = await simulation.run(Promise.all(Array.from({ length: 40 }, (_, i) => openLog(logs, {}, i))))
  for (let round = 0; round < 3; round++) {
    for (const log of all) appended(log, batchOf(1, `${log.partition}/${round}`))
    await simulation.run(Promise.all(all.map((log) => log.flush())))
    await simulation.run(handles.drained())
    expect(handles.openCount).toBeLessThanOrEqual(5)
  }
  for (const log of all) {
    const batches = await simulation.run(readAll(log))
    expect(batches.map((batch) => batch.toString('latin1').includes(`${log.partition}/`))).toEqual([true, true, true])
  }
  expect(handles.openCount).toBeLessThanOrEqual(5)
  await simulation.run(logs.close())
  expect(handles.openCount).toBe(0)
})

describe('the hard limit of the handle pool', () => {
  test('is never passed, and appends wait until files can be closed', async () => {
    const handles = new HandlePool(host.platform.files, { maxOpen: 3, hardLimit: 6 })
    const logs = await simulation.run(openLogs(host.platform, { handles, settings: { tailCacheBytes: 0 } }))
    // Nothing is synced of its own accord.
    const unsynced = { 'flush.messages': '9223372036854775807' }
    const all = await simulation.run(Promise.all(Array.from({ length: 40 }, (_, i) => openLog(logs, unsynced, i))))
    for (let round = 0; round < 3; round++) {
      const appends = all.map((log) => append(log, batchOf(1, `${log.partition}/${round}`)))
      expect(handles.openCount).toBeLessThanOrEqual(6)
      const results = await simulation.run(Promise.all(appends))
      expect(results.filter(({ ok }) => ok)).toHaveLength(40)
      expect(handles.openCount).toBeLessThanOrEqual(6)
    }
    for (const log of all) expect(await simulation.run(readAll(log))).toHaveLength(3)
    await simulation.run(logs.close())
  })
})

describe('a file that the system does not open', () => {
  /** It is tried again once idle files are closed. */
  const outOfFiles = { operation: 'open', code: 'EMFILE', times: 2 } as const

  test.each(['partition.metadata', '00000000000000000000.log'])(
    'costs a new partition no record, and takes nothing offline (%s)',
    async (name) => {
      const logs = await simulation.run(openLogs(host.platform))
      const log = await simulation.run(openLog(logs))
      host.disk.failNext({ ...outOfFiles, path: new RegExp(name) })
      expect(() => appended(log, batchOf(1, 'a'))).toThrow(expect.objectContaining({ isOutOfFiles: true }))
      expect([log.isOnline, log.logEndOffset]).toEqual([true, 0])
      appended(log, batchOf(1, 'b'))
      await simulation.run(log.flush())
      expect(await simulation.run(readAll(log))).toHaveLength(1)
      await simulation.run(logs.close())
    },
  )

  test('costs no record at a roll, nor at a read', async () => {
    const handles = new HandlePool(host.platform.files, { maxOpen: 1 })
    const logs = await simulation.run(openLogs(host.platform, { handles, settings: { tailCacheBytes: 0 } }))
    const log = await simulation.run(openLog(logs, { 'segment.bytes': 1_048_576 }))
    const large = () => batchOf(1, 'x'.repeat(600_000))
    appended(log, large())
    await simulation.run(log.flush())
    host.disk.failNext({ ...outOfFiles, path: /1\.log$/ })
    expect(() => appended(log, large())).toThrow(expect.objectContaining({ isOutOfFiles: true }))
    expect([log.isOnline, log.logEndOffset]).toEqual([true, 1])
    appended(log, large())
    await simulation.run(log.flush())
    host.disk.failNext({ ...outOfFiles, path: /0\.log$/ })
    await expect(simulation.run(readAll(log))).rejects.toMatchObject({ isOutOfFiles: true })
    expect(await simulation.run(readAll(log))).toHaveLength(2)
    await simulation.run(logs.close())
  })

  test('at a sync takes the directory offline until files can be opened again, and loses nothing', async () => {
    const logs = await simulation.run(openLogs(host.platform))
    const log = await simulation.run(openLog(logs))
    appended(log, batchOf(1, 'a'))
    host.disk.failNext({ ...outOfFiles, times: 1, path: /leader-epoch-checkpoint/ })
    await expect(simulation.run(log.flush())).rejects.toMatchObject({ isOutOfFiles: true })
    expect(log.isOnline).toBe(false)
    await simulation.run(new Promise<void>((resolve) => void host.platform.timers.set(20_000, resolve)))
    const again = logs.get('orders', 0)!
    expect(again.isOnline).toBe(true)
    expect(await simulation.run(readAll(again))).toHaveLength(1)
    await simulation.run(logs.close())
  })
})

test('a bug in one log stops that log with its own error, and no other', async () => {
  const bug = new TypeError('undefined is not a function')
  let isBroken = false
  const files = replaceFiles(host.platform.files, {
    openSync: (path, mode) => {
      if (isBroken) throw bug
      return host.platform.files.openSync(path, mode)
    },
  })
  const logs = await simulation.run(openLogs({ ...host.platform, files }))
  const [broken, sound] = await simulation.run(Promise.all([openLog(logs, {}, 0), openLog(logs, {}, 1)]))
  isBroken = true
  expect(() => appended(broken!, batchOf(1, 'a'))).toThrow(bug)
  isBroken = false
  expect([broken!.isOnline, sound!.isOnline]).toEqual([false, true])
  expect(() => appended(broken!, batchOf(1, 'a'))).toThrow('stopped by a fault')
  appended(sound!, batchOf(1, 'b'))
  await simulation.run(logs.close())
  // The next start looks at every batch.
  expect(await simulation.run(host.platform.files.stat('/data/logs/.kafka_cleanshutdown'))).toBeUndefined()
})
