import { beforeEach, describe, expect, test } from 'vitest'
import type { LeaderEpoch, Offset, Uuid } from '../../../src/base/index.ts'
import {
  ClusterIdMismatchError,
  FlushScheduler,
  type LogManager,
  type LogSpec,
  type PartitionLog,
  StorageError,
} from '../../../src/log/index.ts'
import type { Platform } from '../../../src/platform/index.ts'
import { createSimulation, type SimulatedHost, type Simulation } from '../../../src/platform/simulated/index.ts'
import {
  append,
  appended,
  batchOf,
  directory,
  type Keys,
  offsetsOf,
  openLog,
  openLogs,
  read,
  readAll,
  topicConfig,
  topicId,
} from './support.ts'

let simulation: Simulation
let host: SimulatedHost
let logs: LogManager
let log: PartitionLog

const folder = `${directory}/orders-0`
const keys: Keys = { 'internal.segment.bytes': 600, 'index.interval.bytes': 100 }
const firstLog = `${folder}/00000000000000000000.log`

beforeEach(async () => {
  simulation = createSimulation({ seed: 21 })
  host = simulation.host('a')
  await start()
})

async function start(nodeKeys: Keys = {}): Promise<void> {
  logs = await simulation.run(openLogs(host.platform, { settings: { tailCacheBytes: 0 }, keys: nodeKeys }))
  if (logs.faultOf('orders', 0) === undefined) log = await simulation.run(openLog(logs, keys))
}

function fill(count: number): void {
  for (let i = 0; i < count; i++) appended(log, batchOf(2, `v${i}`))
}

/** Ends the process without losing what the page cache holds, as kill -9 does. */
async function kill(platform: Platform): Promise<void> {
  await simulation.run(syncTree(platform, '/data'))
  host.crash()
  host.restart()
}

async function syncTree(platform: Platform, path: string): Promise<void> {
  for (const { name, kind } of (await platform.files.list(path)) ?? []) {
    if (kind === 'directory') {
      await syncTree(platform, `${path}/${name}`)
    } else {
      const handle = await platform.files.open(`${path}/${name}`, 'write')
      await handle.sync()
      await handle.close()
    }
  }
  await platform.files.syncDirectory(path)
}

/** Writes over files while no process uses them, durably. */
async function tamper(change: (platform: Platform) => Promise<void>): Promise<void> {
  await simulation.run(change(host.platform))
  await kill(host.platform)
}

const overwrite = (path: string, position: number, bytes: Buffer) => async (platform: Platform) => {
  const handle = await platform.files.open(path, 'write')
  await handle.write([bytes], position)
  await handle.close()
}

const cut = (path: string, sizeBytes: number) => async (platform: Platform) => {
  const handle = await platform.files.open(path, 'write')
  await handle.truncate(sizeBytes)
  await handle.close()
}

const content = async (path: string) => await simulation.run(host.platform.files.readFile(path, 1 << 30))

function pairs(from: number, to: number): [Offset, Offset][] {
  return Array.from({ length: (to - from) / 2 }, (_, i) => [from + i * 2, from + i * 2 + 1])
}

const allOffsets = async () => offsetsOf(await simulation.run(readAll(log)))

describe('after a kill', () => {
  test('everything that was written is there, and counts as flushed', async () => {
    fill(30)
    await simulation.run(log.flush())
    await kill(host.platform)
    await start()
    expect(log.flushedOffset).toBe(60)
    expect(await allOffsets()).toEqual(pairs(0, 60))
    expect(log.latestEpoch).toBe(1)
  })

  test('a torn tail is dropped, wherever the last batch was cut', async () => {
    fill(3)
    await simulation.run(log.flush())
    await kill(host.platform)
    const whole = (await content(firstLog))!
    const batchBytes = whole.length / 3
    for (let size = whole.length; size >= 0; size--) {
      await tamper(async (platform) => {
        const handle = await platform.files.open(firstLog, 'create')
        await handle.truncate(0)
        await handle.write([whole.subarray(0, size)], 0)
        await handle.close()
      })
      await start()
      expect(log.logEndOffset).toBe(Math.floor(size / batchBytes) * 2)
      host.crash()
      host.restart()
    }
  })

  test('a torn tail is dropped, whatever byte of it is wrong', async () => {
    fill(3)
    await simulation.run(log.flush())
    await kill(host.platform)
    const whole = (await content(firstLog))!
    const batchBytes = whole.length / 3
    for (let at = batchBytes * 2; at < whole.length; at++) {
      const wrong = Buffer.from(whole)
      wrong[at]! ^= 0x41
      await tamper(overwrite(firstLog, 0, wrong))
      await start()
      // The leader epoch isn't under the CRC: all that can be told is that the batch is whole.
      const isUnchecked = at - batchBytes * 2 >= 12 && at - batchBytes * 2 < 16
      const isBaseOffset = at - batchBytes * 2 < 8
      if (!isUnchecked && !isBaseOffset) expect(log.logEndOffset).toBe(4)
      host.crash()
      host.restart()
    }
  })

  test('segments behind a torn one are dropped', async () => {
    fill(30)
    await simulation.run(log.flush())
    await kill(host.platform)
    const size = (await content(firstLog))!.length
    await tamper(cut(firstLog, size - 1))
    await start()
    const end = log.logEndOffset
    expect(end).toBeLessThan(20)
    expect(await allOffsets()).toEqual(pairs(0, end))
    fill(2)
    expect(await allOffsets()).toEqual(pairs(0, end + 4))
  })

  test('a missing segment ends the log before the hole', async () => {
    fill(30)
    await simulation.run(log.flush())
    await kill(host.platform)
    const names = (await simulation.run(host.platform.files.list(folder)))!.filter(({ name }) => name.endsWith('.log'))
    await tamper((platform) => platform.files.remove(`${folder}/${names[1]!.name}`))
    await start()
    expect(log.logEndOffset).toBe(Number.parseInt(names[1]!.name, 10))
  })
})

describe('damage below the recovery point', () => {
  beforeEach(async () => {
    const other = await simulation.run(openLog(logs, keys, 1))
    appended(other, batchOf(1, 'other'))
    fill(31)
    await simulation.run(log.flush())
    // The recovery points are stored at a clean shutdown, and by a timer.
    await simulation.run(logs.close())
    await start()
    fill(1)
    await simulation.run(log.flush())
    await kill(host.platform)
  })

  test('is told, and nothing is cut; other partitions live on', async () => {
    const names = (await simulation.run(host.platform.files.list(folder)))!.filter(({ name }) => name.endsWith('.log'))
    const last = `${folder}/${names.at(-1)!.name}`
    const before = (await content(last))!
    await tamper(overwrite(last, 70, Buffer.from([before[70]! ^ 1])))
    await start()
    expect(logs.faultOf('orders', 0)).toBeInstanceOf(StorageError)
    expect(logs.faultOf('orders', 0)?.message).toMatch(
      /is damaged at offset \d+ \(crc\), although everything below offset 62 had been synced/,
    )
    expect(logs.get('orders', 0)).toBeUndefined()
    expect(logs.get('orders', 1)?.logEndOffset).toBe(1)
    expect((await content(last))!.length).toBe(before.length)
    await expect(simulation.run(openLog(logs, keys))).rejects.toBeInstanceOf(StorageError)
    // The next start looks again, also after a clean shutdown.
    await simulation.run(logs.close())
    await start()
    expect(logs.faultOf('orders', 0)).toBeInstanceOf(StorageError)
    // Whoever can rebuild it deletes it.
    await simulation.run(logs.delete('orders', 0))
    log = await simulation.run(openLog(logs, keys))
    expect(log.logEndOffset).toBe(0)
  })

  test('includes a log that is shorter than it', async () => {
    const names = (await simulation.run(host.platform.files.list(folder)))!.filter(({ name }) => name.endsWith('.log'))
    await tamper(cut(`${folder}/${names.at(-1)!.name}`, 0))
    await start()
    expect(logs.faultOf('orders', 0)?.message).toContain('although everything below offset 62 had been synced')
  })

  test('includes a missing partition.metadata', async () => {
    await tamper((platform) => platform.files.remove(`${folder}/partition.metadata`))
    await start()
    expect(logs.faultOf('orders', 0)?.message).toContain('has a log but no partition.metadata')
  })

  describe('is gone with its topic', () => {
    const newId = 'BBBBBBBBBBBBBBBBBBBBBQ' as Uuid
    const config = topicConfig({ ...keys, 'file.delete.delay.ms': 0 })
    const get = (fields: Partial<LogSpec> = {}) =>
      simulation.run(logs.getOrCreate({ topic: 'orders', topicId, partition: 0, config, ...fields }))
    const breakSegments = async () => {
      const listed = (await simulation.run(host.platform.files.list(folder)))!
      const last = `${folder}/${listed.map(({ name }) => name).findLast((name) => name.endsWith('.log'))}`
      const before = (await content(last))!
      await tamper(overwrite(last, 70, Buffer.from([before[70]! ^ 1])))
      await start()
      expect(logs.faultOf('orders', 0)).toBeInstanceOf(StorageError)
    }
    const expectNew = async (made: PartitionLog) => {
      expect([made.topicId, made.logEndOffset]).toEqual([newId, 0])
      expect(logs.faultOf('orders', 0)).toBeUndefined()
      log = made
      fill(1)
      await simulation.run(log.flush())
      await simulation.runFor(1000)
      const listed = (await simulation.run(host.platform.files.list(directory)))!.map(({ name }) => name)
      expect(listed.filter((name) => name.startsWith('orders-0'))).toEqual(['orders-0'])
      await simulation.run(logs.close())
      await kill(host.platform)
      logs = await simulation.run(openLogs(host.platform))
      expect((await get({ topicId: newId })).logEndOffset).toBe(2)
    }

    test('where one of the same name is made anew', async () => {
      await breakSegments()
      await expectNew(await get({ topicId: newId }))
    })

    test.each([
      ['is missing', (platform: Platform) => platform.files.remove(`${folder}/partition.metadata`)],
      ['is damaged', overwrite(`${folder}/partition.metadata`, 0, Buffer.from('x'))],
    ])('where its partition.metadata %s and the one of its name came after the start', async (_what, damage) => {
      await tamper(damage)
      await start()
      expect(logs.faultOf('orders', 0)).toBeInstanceOf(StorageError)
      await expect(get({ topicId: newId })).rejects.toBeInstanceOf(StorageError)
      expect(await content(firstLog)).toBeDefined()
      await expectNew(await get({ topicId: newId, isNew: true }))
    })

    test('and with no other, whatever becomes of the disk meanwhile', async () => {
      await start()
      log = await get({ topicId: newId, isNew: true })
      fill(5)
      await simulation.run(log.flush())
      host.disk.failNext({ operation: 'write', path: /\.log$/, code: 'ENOSPC' })
      expect(() => fill(1)).toThrow(/^Disk full/)
      await simulation.run(host.platform.files.remove(`${folder}/partition.metadata`))
      await simulation.runUntil(() => logs.directories()[0]!.error === undefined)
      await expect(get({ topicId: newId, isNew: true })).rejects.toThrow('no partition.metadata')
      expect(await content(firstLog)).toBeDefined()
    })

    test('of a topic that nothing tells is kept when the disk was full', async () => {
      await tamper((platform) => platform.files.remove(`${folder}/partition.metadata`))
      await start()
      await expect(get()).rejects.toThrow('no partition.metadata')
      const other = await simulation.run(openLog(logs, keys, 1))
      host.disk.failNext({ operation: 'write', path: /orders-1.*\.log$/, code: 'ENOSPC' })
      expect(() => appended(other, batchOf(1, 'x'))).toThrow(/^Disk full/)
      await simulation.runUntil(() => logs.directories()[0]!.error === undefined)
      await expect(get()).rejects.toThrow('no partition.metadata')
      expect(await content(firstLog)).toBeDefined()
    })

    test('of one that is deleted', async () => {
      await breakSegments()
      await simulation.run(logs.delete('orders', 0))
      await expectNew(await get({ topicId: newId }))
    })
  })

  test('in a segment that is only read is told by that read', async () => {
    await tamper(overwrite(firstLog, 16, Buffer.from([9])))
    await start()
    await expect(simulation.run(read(log, 0))).rejects.toBeInstanceOf(StorageError)
    expect(log.isOnline).toBe(true)
    expect(offsetsOf([await simulation.run(read(log, 50, { maxBytes: 1 }))])).toEqual([[50, 51]])
  })
})

describe('indexes', () => {
  test.each([
    ['missing', (path: string) => (platform: Platform) => platform.files.remove(path)],
    ['empty', (path: string) => cut(path, 0)],
    ['cut inside an entry', (path: string) => cut(path, 11)],
    ['wrong', (path: string) => overwrite(path, 0, Buffer.alloc(24, 0x7f))],
    ['of zeros', (path: string) => overwrite(path, 0, Buffer.alloc(24))],
  ])('that are %s are rebuilt', async (_, damage) => {
    fill(40)
    await simulation.run(logs.close())
    const names = (await simulation.run(host.platform.files.list(folder)))!.map(({ name }) => name)
    const indexNames = names.filter((name) => /index$/.test(name))
    for (const name of indexNames) await simulation.run(damage(`${folder}/${name}`)(host.platform))
    await start()
    for (let offset = 0; offset < 80; offset += 2) {
      expect(offsetsOf([await simulation.run(read(log, offset, { maxBytes: 1 }))])).toEqual([[offset, offset + 1]])
    }
    expect(await simulation.run(log.offsetForTimestamp(1_735_689_600_000, 80))).toMatchObject({ offset: 0 })
    await simulation.run(logs.close())
    // The interval of a rebuilt index is Kafka's default, so only its soundness is compared.
    for (const name of indexNames) expect(await content(`${folder}/${name}`)).toBeDefined()
  })
})

describe('a clean shutdown', () => {
  test('leaves whole files and a marker, and the next start finds the end without the CRCs', async () => {
    fill(30)
    await simulation.run(logs.close())
    expect(await content(`${directory}/.kafka_cleanshutdown`)).toBeDefined()
    await start()
    expect(await content(`${directory}/.kafka_cleanshutdown`)).toBeUndefined()
    expect(await allOffsets()).toEqual(pairs(0, 60))
    expect(log.flushedOffset).toBe(60)
  })

  test('stores the high watermark', async () => {
    fill(10)
    await simulation.run(log.flush())
    log.setHighWatermark(14)
    await simulation.run(logs.close())
    await start()
    expect(log.highWatermark).toBe(14)
  })
})

describe('a disk that fails', () => {
  test('a failed write refuses the append, and every log of the directory goes offline at once', async () => {
    const other = await simulation.run(openLog(logs, keys, 1))
    const failed: string[] = []
    other.setListener({
      onFlushed: () => {},
      onFailed: (error) => void failed.push(error.message),
      onLogStartMoved: () => {},
    })
    fill(2)
    await simulation.run(log.flush())
    host.disk.failNext({ operation: 'write', code: 'EIO' })
    expect(() => appended(log, batchOf(1, 'lost'))).toThrow(StorageError)
    expect([log.isOnline, other.isOnline]).toEqual([false, false])
    expect(failed).toHaveLength(1)
    expect(() => appended(other, batchOf(1, 'lost'))).toThrow(StorageError)
    expect(logs.directories()[0]?.error).toBeInstanceOf(StorageError)
    await simulation.run(logs.close())
    await start()
    expect(log.logEndOffset).toBe(4)
  })

  test('a failed sync is never tried again: the flushed offset stays, the waiters are told', async () => {
    fill(2)
    await simulation.run(log.flush())
    host.disk.failNext({ operation: 'sync', code: 'EIO', path: /\.log$/ })
    fill(1)
    await expect(simulation.run(log.flush())).rejects.toBeInstanceOf(StorageError)
    expect([log.isOnline, log.flushedOffset]).toEqual([false, 4])
    await simulation.runFor(60_000)
    expect(log.flushedOffset).toBe(4)
  })

  test('takes only its own directory: partitions in the other one live on', async () => {
    await simulation.run(logs.close())
    const two = { 'log.dirs': `${directory},/data/more` }
    await start(two)
    const all = await simulation.run(Promise.all([1, 2, 3].map((partition) => openLog(logs, keys, partition))))
    for (const each of all) appended(each, batchOf(1, 'v'))
    await simulation.run(Promise.all(all.map((each) => each.flush())))
    expect(logs.directories().map(({ partitions }) => partitions.length)).toEqual([2, 2])
    host.disk.failNext({ operation: 'sync', code: 'EIO', path: /^\/data\/more/ })
    for (const each of all) appended(each, batchOf(1, 'w'))
    await simulation.runFor(100)
    const online = logs.directories().map(({ error }) => error === undefined)
    expect(online).toEqual([true, false])
    expect(all.filter((each) => each.isOnline)).toHaveLength(1)
    const created = await simulation.run(openLog(logs, keys, 9))
    expect(created.isOnline).toBe(true)
    await expect(simulation.run(openLog(logs, keys, all.find((each) => !each.isOnline)!.partition))).rejects.toThrow(
      StorageError,
    )
  })

  test('a full disk refuses, and service resumes when there is room', async () => {
    fill(5)
    await simulation.run(log.flush())
    const told: string[] = []
    logs.setListener({
      onDirectoryOffline: (_, error) => void told.push(error.message),
      onPlaced: () => {},
      onDirectoryOnline: () => void told.push('online'),
    })
    host.disk.capacityBytes = host.disk.usedBytes + 20
    expect(() => appended(log, batchOf(2, 'lost'))).toThrow(/^Disk full: no room left/)
    await simulation.runFor(20_000)
    expect(logs.get('orders', 0)?.isOnline).toBe(false)
    // What is there can be read all the time.
    expect(await allOffsets()).toEqual(pairs(0, 10))
    expect(() => appended(log, batchOf(2, 'lost'))).toThrow(/^Disk full/)
    host.disk.capacityBytes = 2 ** 40
    await simulation.runFor(20_000)
    expect(told).toEqual([expect.stringContaining('Disk full'), 'online'])
    expect(log.isOnline).toBe(false)
    log = logs.get('orders', 0)!
    expect([log.isOnline, log.logEndOffset]).toEqual([true, 10])
    fill(3)
    await simulation.run(log.flush())
    expect(await allOffsets()).toEqual(pairs(0, 16))
    host.crash()
    host.restart()
    await start()
    expect(await allOffsets()).toEqual(pairs(0, 16))
  })

  test('a sync that found no room is believed no more: that takes a restart', async () => {
    fill(5)
    await simulation.run(log.flush())
    host.disk.failNext({ operation: 'sync', code: 'ENOSPC', path: /\.log$/ })
    fill(1)
    await expect(simulation.run(log.flush())).rejects.toThrow(/^Disk full: no room left/)
    await simulation.runFor(60_000)
    expect(logs.get('orders', 0)?.isOnline).toBe(false)
    host.crash()
    host.restart()
    await start()
    expect(log.logEndOffset).toBeGreaterThanOrEqual(10)
  })
})

describe('whose folder it is', () => {
  test('an empty one is labelled, and a restart finds the same ids', async () => {
    const text = (await content(`${directory}/meta.properties`))!.toString()
    expect(text).toContain(`version=1\ncluster.id=${logs.clusterId}\nnode.id=1\ndirectory.id=${logs.directoryIds[0]}\n`)
    const { clusterId, directoryIds, metadataDirectoryId } = logs
    await simulation.run(logs.close())
    await start()
    expect([logs.clusterId, logs.directoryIds, logs.metadataDirectoryId]).toEqual([
      clusterId,
      directoryIds,
      metadataDirectoryId,
    ])
  })

  test('one of another cluster or node is refused with both ids, the folder and a command', async () => {
    const { clusterId } = logs
    await simulation.run(logs.close())
    const expected = 'MkU3OEVBNTcwNTJENDM2Qg'
    await expect(simulation.run(openLogs(host.platform, { keys: { 'cluster.id': expected } }))).rejects.toThrow(
      `Folder ${directory} belongs to cluster.id ${clusterId}, but this node has cluster.id ${expected}. To start with an empty folder and keep the old one beside it: mv '${directory}' '${directory}.${clusterId}'`,
    )
    await expect(simulation.run(openLogs(host.platform, { keys: { 'node.id': 2 } }))).rejects.toBeInstanceOf(
      ClusterIdMismatchError,
    )
    await expect(simulation.run(openLogs(host.platform, { keys: { 'node.id': 2 } }))).rejects.toThrow(
      'belongs to node.id 1',
    )
    await start()
  })

  test('one in use is refused', async () => {
    await expect(simulation.run(openLogs(host.platform))).rejects.toThrow('in use')
  })
})

describe('partitions', () => {
  test('a deleted one is gone for good, also after a crash, and another may take its name', async () => {
    fill(10)
    await simulation.run(log.flush())
    await simulation.run(logs.delete('orders', 0))
    expect(logs.get('orders', 0)).toBeUndefined()
    host.crash()
    host.restart()
    await start()
    expect(log.logEndOffset).toBe(0)
    fill(1)
    await simulation.run(log.flush())
    host.crash()
    host.restart()
    await start()
    expect(logs.faultOf('orders', 0)).toBeUndefined()
    expect(log.logEndOffset).toBe(2)
    await simulation.runFor(70_000)
    const names = (await simulation.run(host.platform.files.list(directory)))!.map(({ name }) => name)
    expect(names.filter((name) => name.endsWith('-delete'))).toEqual([])
  })

  test('of a topic that was made anew under the same name is discarded', async () => {
    fill(10)
    const other = 'AAAAAAAAAAAAAAAAAAAAAg' as typeof topicId
    const config = topicConfig(keys)
    const made = await simulation.run(logs.getOrCreate({ topic: 'orders', topicId: other, partition: 0, config }))
    expect([made.topicId, made.logEndOffset]).toEqual([other, 0])
    expect(logs.directories()[0]!.partitions).toEqual([made])
  })

  test('an empty folder is nothing', async () => {
    await simulation.run(logs.close())
    logs = await simulation.run(openLogs(host.platform))
    expect(logs.partitions()).toEqual([])
    expect(logs.isEmpty).toBe(true)
    expect((await simulation.run(host.platform.files.list(directory)))!.map(({ name }) => name)).not.toContain(
      'orders-0',
    )
  })

  test('leader epochs of before a restart are there after it', async () => {
    fill(1)
    appended(log, batchOf(1, 'v'), { leaderEpoch: 7 as LeaderEpoch })
    await simulation.run(log.flush())
    host.crash()
    host.restart()
    await start()
    expect(log.latestEpoch).toBe(7)
    expect(log.epochForOffset(1)).toBe(1)
    expect(log.epochForOffset(2)).toBe(7)
    expect(await append(log, batchOf(1, 'v'))).toMatchObject({ reason: 'fenced-leader-epoch' })
  })
})

test('more syncs than allowed wait for their turn, those of Raft least', async () => {
  const scheduler = new FlushScheduler({ maxConcurrent: 2 })
  const order: string[] = []
  const ends: (() => void)[] = []
  const run = (lane: 'raft' | 'log', name: string) =>
    scheduler.run(lane, () => {
      order.push(name)
      return new Promise((resolve) => ends.push(resolve))
    })
  const all = [run('log', 'a'), run('log', 'b'), run('log', 'c'), run('raft', 'r'), run('raft', 's')]
  expect([order, scheduler.running]).toEqual([['a', 'b', 'r'], 3])
  for (let i = 0; i < all.length; i++) {
    ends[i]!()
    await new Promise(setImmediate)
  }
  await Promise.all(all)
  expect(order).toEqual(['a', 'b', 'r', 's', 'c'])
})
